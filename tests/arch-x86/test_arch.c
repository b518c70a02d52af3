/*
 * The x86 machine over the fake KVM: what it needs of a host, what it puts
 * where, and that a start which fails leaves nothing behind.
 */
#include "tests/arch-x86/elf_image.h"

#include <linux/kvm_para.h>

#include "fake_kvm.h"
#include "vm_rig.h"

#include "arch-x86/arch_vm.h"
#include "arch-x86/kvm_x86.h"
#include "arch-x86/layout.h"
#include "vmm/arch.h"
#include "vmm/vcpu.h"

#define POWER_OFF FAKE_OUT(LAYOUT_ACPI_PM_PORT, 1, 5 << 2 | 0x20)

static struct vm_rig rig;

/* A machine with a small PVH kernel that waits to be ended. */
static void make(uint32_t vcpus)
{
	static const struct fake_step wait[] = { FAKE_WAIT() };
	struct elf_image e;

	vm_rig_init(&rig, vcpus, 16);
	fake_kvm_set_default_script(wait, 1);
	elf_image_init(&e);
	elf_image_pvh(&e, ELF_TEXT, 4);
	rig.vm->kernel_fd = elf_image_file(&e);
	rig.vm->config.has_boot_source = true;
	rig.vm->config.serial.console = CONSOLE_NONE;
}

static int free_rig(void **state)
{
	if (rig.vm && rig.vm->state.phase == VM_RUNNING)
		vm_rig_end(&rig);
	if (rig.vm)
		vm_rig_fini(&rig);
	return 0;
}

/* Starts on a host where this capability has another value than usual. */
static int start_with_cap(int capability, int value, int usual)
{
	int ret;

	fake_kvm_set_cap(capability, value);
	ret = vm_rig_start(&rig);
	fake_kvm_set_cap(capability, usual);
	return ret;
}

static void missing_capability_is_named(void **state)
{
	static const struct {
		int capability;
		const char *name;
	} cases[] = {
		{ KVM_CAP_IRQCHIP, "KVM_CAP_IRQCHIP" },
		{ KVM_CAP_PIT2, "KVM_CAP_PIT2" },
		{ KVM_CAP_SET_TSS_ADDR, "KVM_CAP_SET_TSS_ADDR" },
		{ KVM_CAP_IMMEDIATE_EXIT, "KVM_CAP_IMMEDIATE_EXIT" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		make(1);
		assert_int_equal(start_with_cap(cases[i].capability, 0, 1), -ENOTSUP);
		assert_contains(rig.err.text, cases[i].name);
		vm_rig_fini(&rig);
	}
	rig.vm = NULL;
}

static void error_of_a_capability_check_is_no_lack(void **state)
{
	make(1);
	fake_kvm_fail(KVM_CHECK_EXTENSION, 1, EPERM);
	assert_int_equal(vm_rig_start(&rig), -EPERM);
	assert_begins(rig.err.text, "KVM_CHECK_EXTENSION of KVM_CAP_USER_MEMORY: ");
}

static void capabilities_that_are_not_used_are_not_needed(void **state)
{
	make(1);
	fake_kvm_set_cap(KVM_CAP_IRQFD, 0);
	assert_int_equal(start_with_cap(KVM_CAP_MP_STATE, 0, 1), 0);
	fake_kvm_set_cap(KVM_CAP_IRQFD, 1);
}

static void start_does_without_the_counters_filter(void **state)
{
	make(1);
	fake_kvm_set_vendor(FAKE_AMD);
	fake_kvm_fail(KVM_X86_SET_MSR_FILTER, 1, ENOMEM);
	assert_int_equal(vm_rig_start(&rig), 0);
	assert_true(fake_kvm_failed());
}

static void missing_huge_pages_are_named(void **state)
{
	const struct guest_mem_range range = { .gpa = 0, .size = 1ull << 46 };
	struct guest_mem m;
	struct error err;

	assert_true(guest_mem_init(&m, &range, 1, HUGE_PAGES_2M, false, &err) < 0);
	assert_contains(err.text, "2 MiB huge pages");
}

static void more_vcpus_than_kvm_runs_are_refused(void **state)
{
	make(4);
	assert_int_equal(start_with_cap(KVM_CAP_MAX_VCPUS, 3, 1024), -EINVAL);
	assert_contains(rig.err.text, "at most 3");
}

static void ids_beyond_what_kvm_numbers_are_refused(void **state)
{
	make(4);
	assert_int_equal(start_with_cap(KVM_CAP_MAX_VCPU_ID, 3, 4096), -EINVAL);
	assert_contains(rig.err.text, "APIC id 3");
}

static void memory_has_a_hole_below_4_gib(void **state)
{
	struct guest_mem_range r[LIMIT_MEM_REGIONS];
	uint32_t count;

	arch_mem_layout(128 * MIB, r, &count);
	assert_int_equal(count, 1);
	arch_mem_layout(3 * GIB, r, &count);
	assert_int_equal(count, 1);
	assert_int_equal(r[0].size, 3 * GIB);
	arch_mem_layout(5 * GIB, r, &count);
	assert_int_equal(count, 2);
	assert_int_equal(r[0].size, 3 * GIB);
	assert_int_equal(r[1].gpa, 4 * GIB);
	assert_int_equal(r[1].size, 2 * GIB);
}

static void fixed_devices_are_where_the_layout_says(void **state)
{
	static const struct {
		const char *id;
		uint64_t base, size;
		int32_t gsi;
	} devices[] = {
		{ "serial", 0x3F8, 8, 4 },
		{ "i8042", 0x60, 5, 1 },
		{ "rtc", 0x70, 2, 8 },
		{ "acpi-pm", 0x600, 3, -1 },
	};
	uint32_t i;

	make(1);
	assert_int_equal(vm_rig_start(&rig), 0);
	assert_int_equal(rig.vm->devices.count, ARRAY_SIZE(devices));
	for (i = 0; i < ARRAY_SIZE(devices); i++) {
		const struct device *d = rig.vm->devices.devices[i];

		assert_int_equal(d->base, devices[i].base);
		assert_int_equal(d->size, devices[i].size);
		assert_int_equal(d->gsi, devices[i].gsi);
	}
}

static void boot_timer_is_there_when_asked_for(void **state)
{
	const struct bus_map *map;

	make(1);
	rig.vm->config.boot_timer = true;
	assert_int_equal(vm_rig_start(&rig), 0);
	map = atomic_load(&rig.vm->bus.maps[BUS_MMIO]);
	assert_int_equal(map->count, 1);
	assert_int_equal(map->regions[0].base, 0xC0000000);
	assert_int_equal(map->regions[0].size, 4096);
}

static void virtio_lines_leave_the_rtcs_out(void **state)
{
	static const uint32_t gsis[] = { 5, 6, 7, 9, 10 };
	struct board_slot slot;
	struct error err;
	uint32_t n;

	for (n = 0; n < ARRAY_SIZE(gsis); n++) {
		assert_int_equal(board_virtio_slot(n, &slot, &err), 0);
		assert_int_equal(slot.gsi, gsis[n]);
		assert_int_equal(slot.base, 0xC0001000 + n * 0x1000);
	}
}

static void virtio_devices_end_with_the_lines(void **state)
{
	struct board_slot slot;
	struct error err;

	assert_int_equal(board_virtio_slot(LAYOUT_VIRTIO_MAX - 1, &slot, &err), 0);
	assert_int_equal(slot.gsi, 23);
	assert_int_equal(board_virtio_slot(LAYOUT_VIRTIO_MAX, &slot, &err), -ENOSPC);
	assert_contains(err.text, "more than 18");
}

static void guest_can_switch_itself_off(void **state)
{
	static const struct fake_step script[] = { POWER_OFF };

	make(1);
	fake_kvm_set_default_script(script, 1);
	assert_int_equal(vm_rig_start(&rig), 0);
	assert_int_equal(vm_rig_wait_end(&rig), VM_END_GUEST_POWEROFF);
}

static void vcpu_ids_are_apic_ids(void **state)
{
	uint32_t i;

	make(6);
	rig.vm->config.machine.smt = true;
	assert_int_equal(vm_rig_start(&rig), 0);
	assert_int_equal(rig.vm->topology.threads, 2);
	for (i = 0; i < 6; i++)
		assert_int_equal(rig.vm->vcpus[i]->id,
				 topology_apic_id(&rig.vm->topology, i));
}

static void only_the_first_vcpu_is_given_a_start(void **state)
{
	struct kvm_regs regs;

	make(2);
	assert_int_equal(vm_rig_start(&rig), 0);
	assert_int_equal(kvm_get_regs(rig.vm->vcpus[0]->fd, &regs), 0);
	assert_int_equal(regs.rip, ELF_TEXT);
	assert_int_equal(regs.rbx, LAYOUT_PVH_START_INFO);
	assert_int_equal(kvm_get_regs(rig.vm->vcpus[1]->fd, &regs), 0);
	assert_int_not_equal(regs.rip, ELF_TEXT);
}

static uint32_t pin(uint32_t vcpu, unsigned offset)
{
	struct kvm_lapic_state s;

	assert_int_equal(kvm_get_lapic(rig.vm->vcpus[vcpu]->fd, &s), 0);
	return load_le32(s.regs + offset);
}

static void only_the_first_vcpu_has_its_pins_connected(void **state)
{
	make(2);
	assert_int_equal(vm_rig_start(&rig), 0);
	assert_int_equal(pin(0, 0x350), 0x700); /* LINT0: as the PIC says */
	assert_int_equal(pin(0, 0x360), 0x400); /* LINT1: NMI */
	assert_int_equal(pin(1, 0x350), 0x10000);
	assert_int_equal(pin(1, 0x360), 0x10000);
}

static void start_works_on_both_makes(void **state)
{
	uint32_t vendor;

	for (vendor = FAKE_INTEL; vendor <= FAKE_AMD; vendor++) {
		make(LIMIT_VCPUS);
		fake_kvm_set_vendor((enum fake_vendor)vendor);
		assert_int_equal(vm_rig_start(&rig), 0);
		assert_int_equal(fake_kvm_mismatches(), 0);
		vm_rig_end(&rig);
		vm_rig_fini(&rig);
	}
	rig.vm = NULL;
}

static void bad_kernel_is_named_and_leaves_nothing(void **state)
{
	make(2);
	close(rig.vm->kernel_fd);
	rig.vm->kernel_fd = test_file("no kernel", 9, 4096);
	assert_int_equal(vm_rig_start(&rig), -EINVAL);
	assert_begins(rig.err.text, KERNEL_ERROR "kernel: neither an ELF file nor a bzImage");
	assert_int_equal(fake_kvm_open_objects(), 0);
	assert_null(rig.vm->arch);
}

/* Starts with the n-th call to KVM failing; false when there are fewer calls. */
static bool start_with_fault(uint64_t n)
{
	bool failed;

	make(2);
	fake_kvm_set_vendor(FAKE_AMD);
	fake_kvm_fail(FAKE_ANY, n, ENOMEM);
	if (vm_rig_start(&rig) == 0)
		vm_rig_end(&rig);
	failed = fake_kvm_failed();
	vm_rig_fini(&rig);
	assert_int_equal(fake_kvm_open_objects(), 0);
	return failed;
}

static void every_failure_of_kvm_unwinds(void **state)
{
	uint64_t n = 1;

	while (start_with_fault(n))
		n++;
	assert_true(n > 40);
	rig.vm = NULL;
}

static enum vcpu_exit_result serve(struct vcpu *v, uint32_t reason)
{
	v->run->exit_reason = reason;
	return arch_vcpu_exit(v);
}

static void exits_of_x86_are_answered(void **state)
{
	struct kvm_run run = { .exit_reason = 0 };
	struct vcpu v = { .run = &run };

	assert_int_equal(serve(&v, KVM_EXIT_X86_RDMSR), VCPU_CONTINUE);
	assert_int_equal(run.msr.error, 1);
	assert_int_equal(serve(&v, KVM_EXIT_HYPERCALL), VCPU_CONTINUE);
	assert_true(run.hypercall.ret == (uint64_t)-KVM_ENOSYS);
}

static void unknown_exit_ends_the_vm(void **state)
{
	static const struct fake_step script[] = { FAKE_EXIT(60) };

	make(1);
	fake_kvm_set_default_script(script, 1);
	assert_int_equal(vm_rig_start(&rig), 0);
	assert_int_equal(vm_rig_wait_end(&rig), VM_END_VCPU_FAILED);
}

static void registers_are_described(void **state)
{
	char text[300] = "x", little[8];

	make(1);
	assert_int_equal(vm_rig_start(&rig), 0);
	arch_vcpu_describe(rig.vm->vcpus[0], text, sizeof(text));
	assert_begins(text, "RIP 0010:0000000000100000 RSP ");
	assert_contains(text, " CR0 00000011 ");
	arch_vcpu_describe(rig.vm->vcpus[0], little, sizeof(little));
	assert_int_equal(strlen(little), sizeof(little) - 1);
	arch_vcpu_describe(rig.vm->vcpus[0], NULL, 0);
}

#define TEST(function) cmocka_unit_test_teardown(function, free_rig)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(missing_capability_is_named),
		TEST(error_of_a_capability_check_is_no_lack),
		TEST(capabilities_that_are_not_used_are_not_needed),
		TEST(start_does_without_the_counters_filter),
		cmocka_unit_test(missing_huge_pages_are_named),
		TEST(more_vcpus_than_kvm_runs_are_refused),
		TEST(ids_beyond_what_kvm_numbers_are_refused),
		cmocka_unit_test(memory_has_a_hole_below_4_gib),
		TEST(fixed_devices_are_where_the_layout_says),
		TEST(boot_timer_is_there_when_asked_for),
		cmocka_unit_test(virtio_lines_leave_the_rtcs_out),
		cmocka_unit_test(virtio_devices_end_with_the_lines),
		TEST(guest_can_switch_itself_off),
		TEST(vcpu_ids_are_apic_ids),
		TEST(only_the_first_vcpu_is_given_a_start),
		TEST(only_the_first_vcpu_has_its_pins_connected),
		TEST(start_works_on_both_makes),
		TEST(bad_kernel_is_named_and_leaves_nothing),
		TEST(every_failure_of_kvm_unwinds),
		cmocka_unit_test(exits_of_x86_are_answered),
		TEST(unknown_exit_ends_the_vm),
		TEST(registers_are_described),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
