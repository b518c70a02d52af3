/*
 * The CPUs of a VM: its topology, and where its threads run.
 * Threads: main. Locks: none.
 */
#include "vmm/vm_cpus.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "vmm/device_thread.h"
#include "vmm/host_cpu.h"
#include "vmm/vcpu.h"
#include "vmm/vm.h"

/* ---- topology ----------------------------------------------------------------------------- */

static unsigned first_cpu(const cpu_set_t *cpus)
{
	unsigned cpu = 0;

	while (cpu + 1 < LIMIT_HOST_CPUS && !CPU_ISSET(cpu, cpus))
		cpu++;
	return cpu;
}

/* Where a thread runs that is not pinned. */
static void own_cpus(cpu_set_t *ret)
{
	CPU_ZERO(ret);
	(void)sched_getaffinity(0, sizeof(*ret), ret);
}

/*
 * Of one CPU, the first that this process may run on, and only once: hosts whose
 * CPUs differ would otherwise give another answer now and then.
 */
static const struct topology_host *host_of(struct vm *vm)
{
	cpu_set_t own;

	if (vm->host_is_known)
		return &vm->host;
	own_cpus(&own);
	host_cpu_caches(vm->host_cpus, first_cpu(&own), &vm->host);
	vm->host_is_known = true;
	return &vm->host;
}

/* The host cache that all of these CPUs lie in, by its first CPU; -1 if there is none. */
static int host_cache_of(const struct vm *vm, const cpu_set_t *cpus, int32_t *ret)
{
	cpu_set_t sharers, both;
	int code = host_cpu_llc(vm->host_cpus, first_cpu(cpus), &sharers);

	CPU_OR(&both, cpus, &sharers);
	*ret = CPU_EQUAL(&both, &sharers) ? (int32_t)first_cpu(&sharers) : -1;
	return code;
}

/*
 * A pinned vCPU shall not believe that it shares a cache with one that runs in
 * another host cache. Where the host does not show its caches there is nothing to
 * go by; where nobody is pinned, nothing that would last.
 */
static void narrow_l3(const struct vm *vm, struct topology *t)
{
	int32_t groups[LIMIT_VCPUS];
	const cpu_set_t *pinned;
	cpu_set_t own;
	uint32_t i;

	if (!vm->config.affinity.vcpu_count)
		return;
	own_cpus(&own);
	for (i = 0; i < topology_cpu_count(t); i++) {
		pinned = vm_cpus_of_vcpu(vm, i);
		if (host_cache_of(vm, pinned ? pinned : &own, &groups[i]) < 0)
			return;
	}
	topology_narrow_l3(t, groups);
}

int vm_cpus_check(struct vm *vm, const struct topology_config *c, const struct machine_config *m,
		  struct error *err)
{
	struct topology t;

	return topology_build(&t, c, m, host_of(vm), err);
}

int vm_cpus_make(struct vm *vm, struct error *err)
{
	const struct affinity_config *a = &vm->config.affinity;
	uint32_t vcpus = vm->config.machine.vcpu_count, i;
	int ret = topology_build(&vm->topology, &vm->config.topology, &vm->config.machine,
				 host_of(vm), err);

	if (ret < 0)
		return ret;
	for (i = 0; i < a->vcpu_count; i++)
		if (a->vcpus[i].index >= vcpus)
			return error_set(err, -EINVAL, "affinity of vCPU %u: there are %u vCPUs",
					 a->vcpus[i].index, vcpus);
	narrow_l3(vm, &vm->topology);
	return 0;
}

void vm_cpus_preview(struct vm *vm, struct topology *ret)
{
	/* what is configured has been checked */
	(void)topology_build(ret, &vm->config.topology, &vm->config.machine, host_of(vm), NULL);
	narrow_l3(vm, ret);
}

/* ---- affinity ----------------------------------------------------------------------------- */

static int check_cpus(const struct vm *vm, const cpu_set_t *cpus, struct error *err)
{
	cpu_set_t online, lacking;
	char list[128];

	if (host_cpu_online(vm->host_cpus, &online) < 0)
		return 0; /* the kernel will say what it does not take */
	CPU_AND(&lacking, cpus, &online);
	CPU_XOR(&lacking, cpus, &lacking);
	if (CPU_COUNT(&lacking) == 0)
		return 0;
	host_cpu_print_list(&online, list, sizeof(list));
	return error_set_field(err, -EINVAL, "cpus", "the host has no CPU %u, online are %s",
			       first_cpu(&lacking), list);
}

/* All of them or none: -EPERM, and all is as before, if the kernel takes some only. */
static int set_cpus(pid_t tid, const cpu_set_t *cpus)
{
	cpu_set_t before, after;

	if (sched_getaffinity(tid, sizeof(before), &before) < 0 ||
	    sched_setaffinity(tid, sizeof(*cpus), cpus) < 0 ||
	    sched_getaffinity(tid, sizeof(after), &after) < 0)
		return -errno;
	if (CPU_EQUAL(cpus, &after))
		return 0;
	(void)sched_setaffinity(tid, sizeof(before), &before);
	return -EPERM;
}

static int pin(pid_t tid, const cpu_set_t *cpus, const char *what, struct error *err)
{
	int ret = set_cpus(tid, cpus);

	if (ret == -EPERM)
		return error_set_field(err, -EINVAL, "cpus",
				       "%s may not run on all of them: the process's cpuset has "
				       "fewer", what);
	if (ret < 0)
		return error_set_field(err, -EINVAL, "cpus",
				       "the host does not take them for %s (os error %d)", what,
				       -ret);
	return 0;
}

static int pin_vcpu(struct vm *vm, uint32_t index, const cpu_set_t *cpus, struct error *err)
{
	const struct vcpu *v;

	if (index >= vm->vcpu_count)
		return error_set(err, -ENODEV, "there is no vCPU %u", index);
	v = vm->vcpus[index];
	return pin(atomic_load_explicit(&v->tid, memory_order_acquire), cpus, v->name, err);
}

/* 1 when they wait or run: until then the start will see to them. -EBUSY when they go. */
static int has_threads(const struct vm *vm, struct error *err)
{
	if (vm->state.phase == VM_STOPPING || vm->state.phase == VM_ENDED)
		return error_set(err, -EBUSY, "the VM is %s", vm_phase_name(vm->state.phase));
	return vm->state.phase != VM_CONFIGURING && vm->state.phase != VM_STARTING;
}

static int find_vcpu(const struct affinity_config *a, uint32_t index)
{
	uint32_t i;

	for (i = 0; i < a->vcpu_count; i++)
		if (a->vcpus[i].index == index)
			return (int)i;
	return -ENOENT;
}

static int find_device(const struct affinity_config *a, const char *name)
{
	uint32_t i;

	for (i = 0; i < a->device_count; i++)
		if (!strcmp(a->devices[i].device, name))
			return (int)i;
	return -ENOENT;
}

const cpu_set_t *vm_cpus_of_vcpu(const struct vm *vm, uint32_t index)
{
	int at = find_vcpu(&vm->config.affinity, index);

	return at < 0 ? NULL : &vm->config.affinity.vcpus[at].cpus;
}

int vm_cpus_pin_vcpu(struct vm *vm, uint32_t index, const cpu_set_t *cpus, struct error *err)
{
	struct affinity_config *a = &vm->config.affinity;
	int at = find_vcpu(a, index);
	int ret = check_cpus(vm, cpus, err);

	if (ret == 0)
		ret = has_threads(vm, err);
	if (ret < 0)
		return ret;
	if (index >= LIMIT_VCPUS)
		return error_set(err, -ENODEV, "there is no vCPU %u", index);
	ret = ret ? pin_vcpu(vm, index, cpus, err) : 0;
	if (ret < 0)
		return ret;
	if (at < 0)
		at = (int)a->vcpu_count++;
	a->vcpus[at] = (struct vcpu_affinity_config){ .index = index, .cpus = *cpus };
	return 0;
}

static void full_name(const struct device *d, char name[LIMIT_DEVICE_NAME])
{
	snprintf(name, LIMIT_DEVICE_NAME, "%s:%s", d->type, d->id);
}

/* Ids are unique within a type only, so that one alone may fit two devices. */
static struct device *find_named(const struct vm *vm, const char *name, struct error *err)
{
	struct device *found = NULL;
	char full[LIMIT_DEVICE_NAME];
	uint32_t i;

	for (i = 0; i < vm->devices.count; i++) {
		struct device *d = vm->devices.devices[i];

		full_name(d, full);
		if (strcmp(name, d->id) != 0 && strcmp(name, full) != 0)
			continue;
		if (found) {
			error_set(err, -EEXIST, "device %s: there are a %s and a %s of this id, "
						"call it %s:%s", name, found->type, d->type,
				  d->type, d->id);
			return NULL;
		}
		found = d;
	}
	if (!found)
		error_set(err, -ENODEV, "there is no device %s", name);
	return found;
}

static const cpu_set_t *cpus_of_name(const struct vm *vm, const char *name)
{
	int at = find_device(&vm->config.affinity, name);

	return at < 0 ? NULL : &vm->config.affinity.devices[at].cpus;
}

const cpu_set_t *vm_cpus_of_device(const struct vm *vm, const struct device *d)
{
	char name[LIMIT_DEVICE_NAME];

	full_name(d, name);
	return cpus_of_name(vm, name);
}

int vm_cpus_of_named(const struct vm *vm, const char *name, const cpu_set_t **ret,
		     struct error *err)
{
	const struct device *d;

	if (!vm->devices.count) {
		*ret = cpus_of_name(vm, name);
		return 0;
	}
	d = find_named(vm, name, err);
	if (!d)
		return err->code;
	*ret = vm_cpus_of_device(vm, d);
	return 0;
}

static int pin_device(const struct device *d, const cpu_set_t *cpus, struct error *err)
{
	char what[LIMIT_DEVICE_NAME + 16];

	if (!d->thread)
		return error_set(err, -ENOTSUP, "device %s has no thread: vCPUs do its work",
				 d->id);
	snprintf(what, sizeof(what), "device %s", d->id);
	return pin(device_thread_tid(d->thread), cpus, what, err);
}

static int keep_device(struct affinity_config *a, const char *name, const cpu_set_t *cpus,
		       struct error *err)
{
	int at = find_device(a, name);

	if (at < 0 && a->device_count == LIMIT_PINNED_DEVICES)
		return error_set(err, -E2BIG, "affinity of more than %d devices",
				 LIMIT_PINNED_DEVICES);
	if (at < 0)
		at = (int)a->device_count++;
	snprintf(a->devices[at].device, sizeof(a->devices[at].device), "%s", name);
	a->devices[at].cpus = *cpus;
	return 0;
}

/* From the start on names are kept whole, so that each device has one. */
static int pin_named(struct vm *vm, struct affinity_config *a, const char *name,
		     const cpu_set_t *cpus, struct error *err)
{
	struct device *d = find_named(vm, name, err);
	char full[LIMIT_DEVICE_NAME];
	int ret;

	if (!d)
		return err->code;
	ret = pin_device(d, cpus, err);
	if (ret < 0)
		return ret;
	full_name(d, full);
	return keep_device(a, full, cpus, err);
}

int vm_cpus_pin_device(struct vm *vm, const char *name, const cpu_set_t *cpus,
		       struct error *err)
{
	int ret = check_cpus(vm, cpus, err);

	if (ret == 0)
		ret = has_threads(vm, err);
	if (ret < 0)
		return ret;
	if (ret)
		return pin_named(vm, &vm->config.affinity, name, cpus, err);
	return keep_device(&vm->config.affinity, name, cpus, err);
}

int vm_cpus_pin_all(struct vm *vm, struct error *err)
{
	struct affinity_config *a = &vm->config.affinity;
	struct device_affinity_config asked[LIMIT_PINNED_DEVICES];
	uint32_t count = a->device_count, i;
	int ret = 0;

	for (i = 0; ret == 0 && i < a->vcpu_count; i++)
		ret = pin_vcpu(vm, a->vcpus[i].index, &a->vcpus[i].cpus, err);
	memcpy(asked, a->devices, count * sizeof(asked[0]));
	a->device_count = 0;
	for (i = 0; ret == 0 && i < count; i++)
		ret = pin_named(vm, a, asked[i].device, &asked[i].cpus, err);
	if (ret < 0) { /* as it was, for the next try */
		memcpy(a->devices, asked, count * sizeof(asked[0]));
		a->device_count = count;
		error_prefix(err, "affinity: ");
	}
	return ret;
}
