/*
 * Topology and affinity of a VM over the fake KVM: what is kept before the start,
 * what its threads get, and what pinning does to the third-level cache. The host's
 * CPUs are those of a folder, but the kernel's own where threads are pinned.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cpu_folder.h"
#include "fake_arch.h"
#include "fake_device.h"
#include "vm_rig.h"
#include "vmm/control.h"
#include "vmm/device_set.h"
#include "vmm/device_thread.h"
#include "vmm/host_cpu.h"
#include "vmm/vcpu.h"

static char root[64];
static struct error err;
static cpu_set_t one; /* a CPU that this process may run on */

static int setup(void **state)
{
	cpu_set_t own;
	int cpu = 0;

	if (vm_rig_setup(state) < 0)
		return -1;
	cpu_folder_make(root, sizeof(root));
	memset(&err, 0, sizeof(err));
	sched_getaffinity(0, sizeof(own), &own);
	while (!CPU_ISSET(cpu, &own))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return 0;
}

static int teardown(void **state)
{
	cpu_folder_remove(root);
	return vm_rig_teardown(state);
}

static cpu_set_t cpus(const char *list)
{
	cpu_set_t set;

	assert_int_equal(host_cpu_parse_list(list, &set), 0);
	return set;
}

static struct vm *vm_of(void **state)
{
	return ((struct vm_rig *)*state)->vm;
}

static void expect_pinned(pid_t tid, const cpu_set_t *wanted)
{
	cpu_set_t now;

	assert_int_equal(sched_getaffinity(tid, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&now, wanted));
}

static pid_t vcpu_tid(const struct vm *vm, uint32_t index)
{
	return atomic_load(&vm->vcpus[index]->tid);
}

/* A host of 8 CPUs with a third level for each four. */
static void two_caches(struct vm *vm)
{
	unsigned cpu;

	for (cpu = 0; cpu < 8; cpu++)
		cpu_folder_cache(root, cpu, 3, 3, "Unified", "8192K", "16",
				 cpu < 4 ? "0-3" : "4-7");
	cpu_folder_online(root, "0-7");
	vm->host_cpus = root;
}

static unsigned l3_shift(struct vm *vm)
{
	struct topology t;

	control_get_topology(vm, &t);
	return topology_cache_shift(&t, TOPOLOGY_L3);
}

static void pin_to(struct vm *vm, const char *const lists[VM_RIG_VCPUS])
{
	uint32_t i;

	for (i = 0; i < VM_RIG_VCPUS; i++) {
		cpu_set_t set = cpus(lists[i]);

		assert_int_equal(control_put_vcpu_affinity(vm, i, &set, &err), 0);
	}
}

static const struct {
	const char *lists[VM_RIG_VCPUS];
	unsigned shift; /* 2: all four share */
} pinnings[] = {
	{ { "0", "1", "2", "3" }, 2 },
	{ { "0-3", "0-3", "1", "2" }, 2 },
	{ { "0", "1", "4", "5" }, 1 },
	{ { "0", "4", "1", "5" }, 0 },
	{ { "0", "0", "0", "0-7" }, 0 }, /* somewhere in both */
};

static void pinned_vcpus_share_what_their_cpus_share(void **state)
{
	struct vm *vm = vm_of(state);
	size_t i;

	two_caches(vm);
	assert_int_equal(l3_shift(vm), 2);
	for (i = 0; i < sizeof(pinnings) / sizeof(pinnings[0]); i++) {
		pin_to(vm, pinnings[i].lists);
		assert_int_equal(l3_shift(vm), pinnings[i].shift);
	}
}

/* A host of two CPUs without a common cache: one that we may run on, and another. */
static void vcpu_that_is_not_pinned_counts_where_the_process_runs(void **state)
{
	struct vm *vm = vm_of(state);
	unsigned ours = 0, other;
	char list[8];
	cpu_set_t set, before;

	while (!CPU_ISSET(ours, &one))
		ours++;
	other = ours ? 0 : 1;
	snprintf(list, sizeof(list), "%u", ours);
	cpu_folder_cache(root, ours, 3, 3, "Unified", "8192K", "16", list);
	snprintf(list, sizeof(list), "%u", other);
	cpu_folder_cache(root, other, 3, 3, "Unified", "8192K", "16", list);
	set = cpus(list);
	sched_getaffinity(0, sizeof(before), &before);
	sched_setaffinity(0, sizeof(one), &one);
	assert_int_equal(control_put_vcpu_affinity(vm, 0, &one, &err), 0);
	vm->host_cpus = root;
	assert_int_equal(l3_shift(vm), 2);
	assert_int_equal(control_put_vcpu_affinity(vm, 0, &set, &err), 0);
	assert_int_equal(l3_shift(vm), 0);
	sched_setaffinity(0, sizeof(before), &before);
}

static void nothing_is_narrowed_where_the_host_shows_no_caches(void **state)
{
	static const char *const lists[] = { "0", "1", "4", "5" };
	struct vm *vm = vm_of(state);

	cpu_folder_online(root, "0-7");
	vm->host_cpus = root;
	pin_to(vm, lists);
	assert_int_equal(l3_shift(vm), 2);
}

static void started_topology_is_the_one_that_was_shown(void **state)
{
	struct vm *vm = vm_of(state);
	struct topology before;

	vm->config.topology.dies = (struct config_number){ 2, true };
	control_get_topology(vm, &before);
	assert_int_equal(vm_rig_start(*state), 0);
	assert_memory_equal(&vm->topology, &before, sizeof(before));
}

static void geometry_of_the_host_is_read_once(void **state)
{
	struct vm *vm = vm_of(state);
	struct topology t;
	unsigned cpu;

	vm->host_cpus = root;
	for (cpu = 0; cpu < 64; cpu++)
		cpu_folder_cache(root, cpu, 2, 2, "Unified", "512K", "8", "0");
	control_get_topology(vm, &t);
	for (cpu = 0; cpu < 64; cpu++)
		cpu_folder_cache(root, cpu, 2, 2, "Unified", "256K", "8", "0");
	control_get_topology(vm, &t);
	assert_int_equal(t.caches[TOPOLOGY_L2].geometry.size_kib, 512);
}

static void affinity_is_kept_and_applied_at_the_start(void **state)
{
	struct vm *vm = vm_of(state);

	assert_int_equal(control_put_vcpu_affinity(vm, 1, &one, &err), 0);
	assert_int_equal(control_put_device_affinity(vm, "threaded", &one, &err), 0);
	assert_int_equal(vm_rig_start(*state), 0);
	expect_pinned(vcpu_tid(vm, 1), &one);
	expect_pinned(device_thread_tid(device_set_find(&vm->devices, "fake", "threaded")->thread),
		      &one);
}

static void affinity_changes_while_the_guest_runs(void **state)
{
	struct vm *vm = vm_of(state);
	struct control_vcpu_info info;

	assert_int_equal(vm_rig_start(*state), 0);
	assert_int_equal(control_get_vcpu(vm, 2, &info), 0);
	assert_null(info.affinity);
	assert_int_equal(control_put_vcpu_affinity(vm, 2, &one, &err), 0);
	expect_pinned(vcpu_tid(vm, 2), &one);
	assert_int_equal(control_get_vcpu(vm, 2, &info), 0);
	assert_true(CPU_EQUAL(info.affinity, &one));
	assert_int_equal(vm_rig_pause(*state), 0);
	assert_int_equal(control_put_vcpu_affinity(vm, 0, &one, &err), 0);
	expect_pinned(vcpu_tid(vm, 0), &one);
}

static void cpus_that_the_host_lacks_are_refused(void **state)
{
	struct vm *vm = vm_of(state);
	cpu_set_t set = cpus("0,6"), main_cpus;

	cpu_folder_online(root, "0-3");
	vm->host_cpus = root;
	assert_int_equal(control_put_vcpu_affinity(vm, 0, &set, &err), -EINVAL);
	assert_string_equal(err.text, "cpus: the host has no CPU 6, online are 0-3");
	assert_string_equal(err.field, "cpus");
	assert_int_equal(control_put_device_affinity(vm, "threaded", &set, &err), -EINVAL);
	assert_null(control_vcpu_affinity(vm, 0));
	/* it may have the CPU, and the kernel not take it */
	set = cpus("1022");
	cpu_folder_online(root, "0-1023");
	assert_int_equal(vm_rig_start(*state), 0);
	sched_getaffinity(0, sizeof(main_cpus), &main_cpus);
	assert_int_equal(control_put_vcpu_affinity(vm, 0, &set, &err), -EINVAL);
	assert_string_equal(err.field, "cpus");
	expect_pinned(vcpu_tid(vm, 0), &main_cpus);
}

static void cpus_that_the_kernel_takes_in_part_change_nothing(void **state)
{
	struct vm *vm = vm_of(state);
	cpu_set_t set, before;

	cpu_folder_online(root, "0-1023");
	vm->host_cpus = root;
	assert_int_equal(vm_rig_start(*state), 0);
	sched_getaffinity(vcpu_tid(vm, 0), sizeof(before), &before);
	set = one;
	CPU_SET(1022, &set);
	assert_int_equal(control_put_vcpu_affinity(vm, 0, &set, &err), -EINVAL);
	assert_non_null(strstr(err.text, "cpuset"));
	expect_pinned(vcpu_tid(vm, 0), &before);
	assert_null(control_vcpu_affinity(vm, 0));
}

static void vcpus_that_there_are_not_are_refused(void **state)
{
	struct vm *vm = vm_of(state);

	assert_int_equal(control_put_vcpu_affinity(vm, LIMIT_VCPUS - 1, &one, &err), 0);
	assert_int_equal(control_put_vcpu_affinity(vm, LIMIT_VCPUS, &one, &err), -ENODEV);
	assert_int_equal(vm_rig_start(*state), -EINVAL);
	assert_non_null(strstr(((struct vm_rig *)*state)->err.text,
			       "affinity of vCPU 31: there are 4 vCPUs"));
	vm->config.affinity.vcpu_count = 0;
	assert_int_equal(vm_rig_start(*state), 0);
	assert_int_equal(control_put_vcpu_affinity(vm, VM_RIG_VCPUS, &one, &err), -ENODEV);
}

static int build_twins(struct vm *vm, struct error *e)
{
	int ret = fake_devices_build(vm, e);

	fake_devices[0]->dev.type = "virtio-blk";
	snprintf(fake_devices[0]->dev.id, sizeof(fake_devices[0]->dev.id), "eth0");
	fake_devices[0]->own_thread = true;
	fake_devices[1]->dev.type = "virtio-net";
	snprintf(fake_devices[1]->dev.id, sizeof(fake_devices[1]->dev.id), "eth0");
	return ret;
}

static void device_is_called_by_its_type_where_its_id_is_not_enough(void **state)
{
	struct vm *vm = vm_of(state);
	const cpu_set_t *set;

	fake_arch.build = build_twins;
	assert_int_equal(vm_rig_start(*state), 0);
	assert_int_equal(control_put_device_affinity(vm, "eth0", &one, &err), -EEXIST);
	assert_non_null(strstr(err.text, "virtio-net:eth0"));
	assert_int_equal(control_put_device_affinity(vm, "virtio-blk:eth0", &one, &err), 0);
	assert_int_equal(control_device_affinity(vm, "virtio-blk:eth0", &set, &err), 0);
	assert_true(CPU_EQUAL(set, &one));
	assert_int_equal(control_put_device_affinity(vm, "virtio-net:eth1", &one, &err), -ENODEV);
	assert_int_equal(control_device_affinity(vm, "eth0", &set, &err), -EEXIST);
}

static void device_without_a_thread_is_refused(void **state)
{
	assert_int_equal(vm_rig_start(*state), 0);
	assert_int_equal(control_put_device_affinity(vm_of(state), "served-by-main", &one, &err),
			 -ENOTSUP);
}

static void names_that_fit_no_device_fail_the_start(void **state)
{
	struct vm *vm = vm_of(state);
	const cpu_set_t *set = NULL;

	assert_int_equal(control_put_device_affinity(vm, "threaded", &one, &err), 0);
	assert_int_equal(control_put_device_affinity(vm, "gone", &one, &err), 0);
	assert_int_equal(vm_rig_start(*state), -ENODEV);
	assert_string_equal(((struct vm_rig *)*state)->err.text,
			    "affinity: there is no device gone");
	assert_int_equal(vm->state.phase, VM_CONFIGURING);
	assert_int_equal(control_device_affinity(vm, "gone", &set, &err), 0);
	assert_non_null(set); /* kept for the next try */
}

static void as_many_devices_as_the_limit_are_kept(void **state)
{
	struct vm *vm = vm_of(state);
	char name[16];
	int i;

	for (i = 0; i <= LIMIT_PINNED_DEVICES; i++) {
		snprintf(name, sizeof(name), "dev%d", i);
		assert_int_equal(control_put_device_affinity(vm, name, &one, &err),
				 i < LIMIT_PINNED_DEVICES ? 0 : -E2BIG);
	}
	assert_int_equal(control_put_device_affinity(vm, "dev0", &one, &err), 0);
}

static void after_the_end_nothing_is_pinned(void **state)
{
	struct vm *vm = vm_of(state);

	assert_int_equal(vm_rig_start(*state), 0);
	vm_rig_end(*state);
	assert_int_equal(control_put_vcpu_affinity(vm, 0, &one, &err), -EBUSY);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(pinned_vcpus_share_what_their_cpus_share),
		TEST(vcpu_that_is_not_pinned_counts_where_the_process_runs),
		TEST(nothing_is_narrowed_where_the_host_shows_no_caches),
		TEST(started_topology_is_the_one_that_was_shown),
		TEST(geometry_of_the_host_is_read_once),
		TEST(affinity_is_kept_and_applied_at_the_start),
		TEST(affinity_changes_while_the_guest_runs),
		TEST(cpus_that_the_host_lacks_are_refused),
		TEST(cpus_that_the_kernel_takes_in_part_change_nothing),
		TEST(vcpus_that_there_are_not_are_refused),
		TEST(device_is_called_by_its_type_where_its_id_is_not_enough),
		TEST(device_without_a_thread_is_refused),
		TEST(names_that_fit_no_device_fail_the_start),
		TEST(as_many_devices_as_the_limit_are_kept),
		TEST(after_the_end_nothing_is_pinned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
