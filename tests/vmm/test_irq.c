/*
 * Interrupt lines, over a chip of the test and over the fake KVM.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "fake_arch.h"
#include "vm_rig.h"
#include "vmm/base/log.h"
#include "vmm/irq.h"

struct chip {
	unsigned calls;
	uint32_t gsi;
	bool levels[8];
	int code;
};

static int chip_set(void *arg, uint32_t gsi, bool level)
{
	struct chip *c = arg;

	c->gsi = gsi;
	c->levels[c->calls++] = level;
	return c->code;
}

static const struct irq_ops ops = { .set = chip_set };

static void a_line_drives_its_own_pin(void **state)
{
	struct chip chip = { 0 };
	struct irq_line line = { .ops = &ops, .chip = &chip, .gsi = 9 };

	irq_line_set(&line, true);
	assert_int_equal(chip.calls, 1);
	assert_int_equal(chip.gsi, 9);
	assert_true(chip.levels[0]);
	irq_line_set(&line, false);
	assert_false(chip.levels[1]);
}

static void a_pulse_is_high_then_low(void **state)
{
	struct chip chip = { 0 };
	struct irq_line line = { .ops = &ops, .chip = &chip, .gsi = 4 };

	irq_line_pulse(&line);
	assert_int_equal(chip.calls, 2);
	assert_true(chip.levels[0]);
	assert_false(chip.levels[1]);
}

static void raises_are_counted_and_falls_are_not(void **state)
{
	struct chip chip = { 0 };
	_Atomic uint64_t raised = 0;
	struct irq_line line = { .ops = &ops, .chip = &chip, .gsi = 4, .raised = &raised };

	irq_line_set(&line, true);
	irq_line_set(&line, false);
	irq_line_pulse(&line);
	assert_int_equal(raised, 2);
}

static void a_chip_that_refuses_is_survived(void **state)
{
	struct chip chip = { .code = -EIO };
	struct irq_line line = { .ops = &ops, .chip = &chip, .gsi = 4 };

	irq_line_set(&line, true);
	irq_line_pulse(&line);
	assert_int_equal(chip.calls, 3);
}

static void a_line_of_the_vm_is_a_pin_of_kvm(void **state)
{
	struct vm_rig r;
	struct irq_line line;

	vm_rig_init(&r, 1, 16);
	assert_int_equal(vm_rig_start(&r), 0);
	vm_irq_line_init(r.vm, &line, 5);
	irq_line_pulse(&line);
	irq_line_set(&line, true);
	assert_int_equal(fake_kvm_irq_edges(5), 2);
	assert_true(fake_kvm_irq_level(5));
	assert_int_equal(fake_kvm_irq_edges(6), 0);
	assert_int_equal(metric_read(&r.vm->irq_counts[5].triggers), 2);
	vm_rig_end(&r);
	vm_rig_fini(&r);
}

/* The guest halts, a device thread raises the line, the guest goes on. */
static void a_raised_line_wakes_a_halted_vcpu(void **state)
{
	static const struct fake_step script[] = {
		FAKE_WAIT_IRQ(5), FAKE_OUT(FAKE_POWER_PORT, 1, FAKE_POWER_OFF),
	};
	struct vm_rig r;
	struct irq_line line;

	vm_rig_init(&r, 1, 16);
	FAKE_SCRIPT(0, script);
	assert_int_equal(vm_rig_start(&r), 0);
	vm_irq_line_init(r.vm, &line, 5);
	vm_rig_run_for(&r, 20);
	assert_false(r.ended);
	irq_line_pulse(&line);
	assert_int_equal(vm_rig_wait_end(&r), VM_END_GUEST_POWEROFF);
	vm_rig_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_drives_its_own_pin),
		cmocka_unit_test(a_pulse_is_high_then_low),
		cmocka_unit_test(raises_are_counted_and_falls_are_not),
		cmocka_unit_test(a_chip_that_refuses_is_survived),
		cmocka_unit_test(a_line_of_the_vm_is_a_pin_of_kvm),
		cmocka_unit_test(a_raised_line_wakes_a_halted_vcpu),
	};

	log_init("test");
	log_set_level(LOG_LEVEL_OFF);
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
