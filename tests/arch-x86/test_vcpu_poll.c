/*
 * Guests that poll a register: when their vCPU is parked, what wakes it, and
 * that it is never parked for good.
 */
#include "tests/arch-x86/elf_image.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "fake_kvm.h"
#include "vm_rig.h"

#include "arch-x86/layout.h"
#include "devices/uart16550.h"
#include "vmm/vcpu.h"

#define LSR (LAYOUT_SERIAL_PORT + 5)
#define LSR_DATA 0x01
#define POWEROFF FAKE_OUT(LAYOUT_ACPI_PM_PORT, 1, 0x34)
#define DEADLINE_MS 20000

static struct vm_rig rig;

static int make(void **state)
{
	struct elf_image e;

	vm_rig_init(&rig, 1, 16);
	elf_image_init(&e);
	elf_image_pvh(&e, ELF_TEXT, 4);
	rig.vm->kernel_fd = elf_image_file(&e);
	rig.vm->config.has_boot_source = true;
	rig.vm->config.serial.console = CONSOLE_NONE;
	rig.vm->config.spin.park_polls = true;
	return 0;
}

static int unmake(void **state)
{
	if (rig.vm->state.phase != VM_ENDED)
		vm_rig_end(&rig);
	vm_rig_fini(&rig);
	return fake_kvm_open_objects() || fake_kvm_mismatches() ? -1 : 0;
}

static void start(const struct fake_step *steps, size_t count)
{
	fake_kvm_set_script(0, steps, count);
	assert_int_equal(vm_rig_start(&rig), 0);
}

#define START(steps) start(steps, ARRAY_SIZE(steps))

static uint64_t parked(void)
{
	return metric_read(&rig.vm->vcpus[0]->metrics.polls_parked);
}

static uint64_t exits(void)
{
	return vcpu_exits(rig.vm->vcpus[0], KVM_EXIT_IO);
}

static void wait_until_parked(uint64_t times)
{
	unsigned ms;

	for (ms = 0; parked() < times && ms < DEADLINE_MS; ms++)
		vm_rig_run_for(&rig, 1);
	assert_true(parked() >= times);
}

static const struct fake_step poll_lsr[] = { FAKE_IN_UNTIL(LSR, 1, LSR_DATA, LSR_DATA), POWEROFF };

/* A millisecond is the longest bound: of reads without a pause there would be thousands. */
static void a_guest_that_polls_makes_few_exits(void **state)
{
	uint64_t before;

	START(poll_lsr);
	wait_until_parked(10);
	before = exits();
	vm_rig_run_for(&rig, 100);
	assert_true(exits() - before <= 100 * VCPU_POLL_READS * 2);
	assert_true(exits() - before >= 2 * VCPU_POLL_READS); /* and it is not parked for good */
}

static void without_the_option_it_is_not_parked(void **state)
{
	rig.vm->config.spin.park_polls = false;
	START(poll_lsr);
	vm_rig_run_for(&rig, 20);
	assert_int_equal(parked(), 0);
	assert_true(exits() > 0);
}

static void the_change_it_polls_for_wakes_it(void **state)
{
	START(poll_lsr);
	wait_until_parked(10);
	assert_int_equal(uart16550_receive(device_set_find(&rig.vm->devices, "uart16550", "serial"),
					   (const uint8_t *)"x", 1), 1);
	assert_int_equal(vm_rig_wait_end(&rig), VM_END_GUEST_POWEROFF);
}

static void an_interrupt_wakes_it(void **state)
{
	struct irq_line line;
	struct fake_vcpu_counts before, after;
	unsigned i;

	START(poll_lsr);
	vm_irq_line_init(rig.vm, &line, 9);
	wait_until_parked(10);
	fake_kvm_get_counts(0, &before);
	for (i = 0; i < 100; i++) {
		irq_line_pulse(&line);
		vm_rig_run_for(&rig, 1);
	}
	fake_kvm_get_counts(0, &after);
	assert_true(after.interrupted - before.interrupted < after.runs - before.runs);
}

static void a_pause_reaches_it_and_a_resume_parks_it_again(void **state)
{
	unsigned i;

	START(poll_lsr);
	for (i = 0; i < 20; i++) {
		wait_until_parked(parked() + 2);
		assert_int_equal(vm_rig_pause(&rig), 0);
		assert_int_equal(vm_rig_resume(&rig), 0);
	}
}

static void reads_with_something_in_between_are_no_polling(void **state)
{
	static const struct fake_step steps[] = {
		FAKE_IN(LSR, 1), FAKE_OUT(LAYOUT_SERIAL_PORT + 7, 1, 1), FAKE_LOOP(0, 0),
	};

	START(steps);
	vm_rig_run_for(&rig, 30);
	assert_true(exits() > 4 * VCPU_POLL_READS);
	assert_int_equal(parked(), 0);
}

static void a_register_that_does_not_rest_is_not_parked_on(void **state)
{
	static const struct fake_step steps[] = { FAKE_IN(LAYOUT_SERIAL_PORT + 7, 1),
						  FAKE_LOOP(0, 0) };

	START(steps);
	vm_rig_run_for(&rig, 30);
	assert_true(exits() > 4 * VCPU_POLL_READS);
	assert_int_equal(parked(), 0);
}

static void what_nobody_answers_is_not_parked_on(void **state)
{
	static const struct fake_step steps[] = { FAKE_IN(0xcfc, 1), FAKE_LOOP(0, 0) };

	START(steps);
	vm_rig_run_for(&rig, 30);
	assert_int_equal(parked(), 0);
}

/* The clock's update flag: the second ends within the bound of its own time. */
static void polling_the_clock_for_an_update_sees_it(void **state)
{
	static const struct fake_step steps[] = {
		FAKE_OUT(LAYOUT_RTC_PORT, 1, 0x0a),
		FAKE_IN_UNTIL(LAYOUT_RTC_PORT + 1, 1, 0x80, 0x80),
		FAKE_IN_UNTIL(LAYOUT_RTC_PORT + 1, 1, 0x80, 0x00),
		POWEROFF,
	};

	START(steps);
	assert_int_equal(vm_rig_wait_end(&rig), VM_END_GUEST_POWEROFF);
}

static void a_vcpu_that_cannot_be_halted_goes_on_polling(void **state)
{
	fake_kvm_fail(KVM_SET_MP_STATE, 1, EINVAL);
	START(poll_lsr);
	wait_until_parked(3);
	assert_true(fake_kvm_failed());
}

/* The end of the VM, at any moment of it. */
static void it_can_be_stopped_at_any_time(void **state)
{
	START(poll_lsr);
	wait_until_parked(1);
	assert_int_equal(vm_rig_end(&rig), VM_END_STOPPED);
}

#define T(name) cmocka_unit_test_setup_teardown(name, make, unmake)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(a_guest_that_polls_makes_few_exits),
		T(without_the_option_it_is_not_parked),
		T(the_change_it_polls_for_wakes_it),
		T(an_interrupt_wakes_it),
		T(a_pause_reaches_it_and_a_resume_parks_it_again),
		T(reads_with_something_in_between_are_no_polling),
		T(a_register_that_does_not_rest_is_not_parked_on),
		T(what_nobody_answers_is_not_parked_on),
		T(polling_the_clock_for_an_update_sees_it),
		T(a_vcpu_that_cannot_be_halted_goes_on_polling),
		T(it_can_be_stopped_at_any_time),
	};

	alarm(120);
	return cmocka_run_group_tests_name("vcpu_poll", tests, NULL, NULL);
}
