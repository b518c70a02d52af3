/*
 * ACPI sleep and reset registers.
 */
#include "tests/devices/device_test.h"

#include "devices/acpi_pm.h"

static int setup(void **state)
{
	struct device_env env = { 0 };

	*state = acpi_pm_create(&env, NULL);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	struct device *d = *state;

	d->ops->destroy(d);
	return 0;
}

static unsigned rd(void *d, unsigned reg)
{
	return (unsigned)acpi_pm_bus_ops.read(d, reg, 1);
}

static enum bus_action wr(void *d, unsigned reg, unsigned value)
{
	return acpi_pm_bus_ops.write(d, reg, 1, value);
}

static void registers_read_zero_at_first(void **state)
{
	unsigned reg;

	for (reg = 0; reg < ACPI_PM_SIZE; reg++)
		assert_int_equal(rd(*state, reg), 0);
}

/* SLP_EN with type 5 in bits 4:2, whatever the reserved bits say. */
static void only_s5_switches_off(void **state)
{
	unsigned v;

	for (v = 0; v < 256; v++) {
		bool off = (v & 0x20) && ((v >> 2) & 7) == ACPI_PM_SLP_TYP_S5;

		assert_int_equal(wr(*state, ACPI_PM_SLEEP_CONTROL, v),
				 off ? BUS_GUEST_POWEROFF : BUS_DONE);
	}
}

static void only_the_reset_value_resets(void **state)
{
	unsigned v;

	for (v = 0; v < 256; v++)
		assert_int_equal(wr(*state, ACPI_PM_RESET, v),
				 v == ACPI_PM_RESET_VALUE ? BUS_GUEST_RESET : BUS_DONE);
	assert_int_equal(rd(*state, ACPI_PM_RESET), 0);
}

static void status_writes_do_nothing_to_the_machine(void **state)
{
	unsigned v;

	for (v = 0; v < 256; v++) {
		assert_int_equal(wr(*state, ACPI_PM_SLEEP_STATUS, v), BUS_DONE);
		assert_int_equal(rd(*state, ACPI_PM_SLEEP_STATUS), 0);
	}
}

static void sleep_type_reads_back_without_slp_en(void **state)
{
	unsigned v;

	for (v = 0; v < 256; v++) {
		wr(*state, ACPI_PM_SLEEP_CONTROL, v);
		assert_int_equal(rd(*state, ACPI_PM_SLEEP_CONTROL), v & 0x1c);
	}
}

/* A guest that sleeps anyhow polls WAK_STS, and must not do so for ever. */
static void unknown_sleep_wakes_at_once(void **state)
{
	assert_int_equal(wr(*state, ACPI_PM_SLEEP_CONTROL, 0x20 | 3 << 2), BUS_DONE);
	assert_int_equal(rd(*state, ACPI_PM_SLEEP_STATUS), 0x80);
	wr(*state, ACPI_PM_SLEEP_STATUS, 0x7f);
	assert_int_equal(rd(*state, ACPI_PM_SLEEP_STATUS), 0x80);
	wr(*state, ACPI_PM_SLEEP_STATUS, 0x80);
	assert_int_equal(rd(*state, ACPI_PM_SLEEP_STATUS), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(registers_read_zero_at_first),
		T(only_s5_switches_off),
		T(only_the_reset_value_resets),
		T(status_writes_do_nothing_to_the_machine),
		T(sleep_type_reads_back_without_slp_en),
		T(unknown_sleep_wakes_at_once),
	};

	log_init("test");
	return cmocka_run_group_tests_name("acpi_pm", tests, NULL, NULL);
}
