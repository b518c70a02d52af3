/*
 * The keyboard on the i8042: its commands, and Ctrl-Alt-Del.
 */
#include "tests/devices/device_test.h"

#include <errno.h>

#include "devices/i8042.h"

#define DATA 0
#define STATUS 4

struct fixture {
	struct spy_irq irq;
	struct device *kbc;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct device_env env = { 0 };

	spy_irq_init(&f->irq);
	f->kbc = i8042_create(&env, &f->irq.line, NULL);
	*state = f;
	return f->kbc ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	f->kbc->ops->destroy(f->kbc);
	free(f);
	return 0;
}

static unsigned rd(struct fixture *f, unsigned port)
{
	return (unsigned)i8042_bus_ops.read(f->kbc, port, 1);
}

static void wr(struct fixture *f, unsigned port, unsigned value)
{
	assert_int_equal(i8042_bus_ops.write(f->kbc, port, 1, value), BUS_DONE);
}

static void set_command_byte(struct fixture *f, unsigned value)
{
	wr(f, STATUS, 0x60);
	wr(f, DATA, value);
}

/* The bytes that wait are `expected`, and no more. */
static void expect(struct fixture *f, const uint8_t *expected, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		assert_int_equal(rd(f, STATUS) & 0x21, 0x01);
		assert_int_equal(rd(f, DATA), expected[i]);
	}
	assert_int_equal(rd(f, STATUS) & 0x01, 0);
}

#define EXPECT(f, ...) \
	expect(f, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void reset_acknowledges_and_passes(void **state)
{
	wr(*state, DATA, 0xff);
	EXPECT(*state, 0xfa, 0xaa);
}

static void identity_is_that_of_a_pc_keyboard(void **state)
{
	wr(*state, DATA, 0xf2);
	EXPECT(*state, 0xfa, 0xab, 0x41);
	set_command_byte(*state, 0x05); /* no translation */
	wr(*state, DATA, 0xf2);
	EXPECT(*state, 0xfa, 0xab, 0x83);
}

static void simple_commands_are_acknowledged(void **state)
{
	static const uint8_t commands[] = { 0xf4, 0xf5, 0xf6 };
	size_t i;

	for (i = 0; i < sizeof(commands); i++) {
		wr(*state, DATA, commands[i]);
		EXPECT(*state, 0xfa);
	}
}

static void leds_and_rate_take_any_parameter(void **state)
{
	unsigned v;

	for (v = 0; v < 256; v++) {
		wr(*state, DATA, v & 1 ? 0xed : 0xf3);
		EXPECT(*state, 0xfa);
		wr(*state, DATA, v);
		EXPECT(*state, 0xfa);
	}
}

static void echo_echoes(void **state)
{
	wr(*state, DATA, 0xee);
	EXPECT(*state, 0xee);
}

static void resend_repeats_the_last_byte(void **state)
{
	wr(*state, DATA, 0xee);
	rd(*state, DATA);
	wr(*state, DATA, 0xfe);
	EXPECT(*state, 0xee);
}

static void unknown_commands_are_refused(void **state)
{
	unsigned v;

	for (v = 0; v < 0xed; v++) {
		wr(*state, DATA, v);
		EXPECT(*state, 0xfe);
	}
}

static void scan_set_can_be_chosen_and_asked_for(void **state)
{
	set_command_byte(*state, 0x05);
	wr(*state, DATA, 0xf0);
	wr(*state, DATA, 0x01);
	EXPECT(*state, 0xfa, 0xfa);
	wr(*state, DATA, 0xf0);
	wr(*state, DATA, 0x00);
	EXPECT(*state, 0xfa, 0xfa, 0x01);
	wr(*state, DATA, 0xf0);
	wr(*state, DATA, 0x03);
	EXPECT(*state, 0xfa, 0xfe);
}

static void ctrl_alt_del_is_typed_translated(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(i8042_ctrl_alt_del(f->kbc), 0);
	assert_int_equal(spy_irq_edges(&f->irq), 1);
	EXPECT(f, 0x1d, 0x38, 0xe0, 0x53, 0xe0, 0xd3, 0xb8, 0x9d);
	assert_int_equal(spy_irq_edges(&f->irq), 7);
}

static void ctrl_alt_del_is_typed_untranslated(void **state)
{
	struct fixture *f = *state;

	set_command_byte(f, 0x05);
	assert_int_equal(i8042_ctrl_alt_del(f->kbc), 0);
	EXPECT(f, 0x14, 0x11, 0xe0, 0x71, 0xe0, 0xf0, 0x71, 0xf0, 0x11, 0xf0, 0x14);
}

/* All of it or nothing: half a sequence would leave keys pressed. */
static void ctrl_alt_del_needs_room(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(i8042_ctrl_alt_del(f->kbc), 0);
	assert_int_equal(i8042_ctrl_alt_del(f->kbc), 0);
	assert_int_equal(i8042_ctrl_alt_del(f->kbc), -ENOSPC);
	rd(f, DATA);
	assert_int_equal(i8042_ctrl_alt_del(f->kbc), -ENOSPC);
}

static void ctrl_alt_del_needs_a_keyboard_that_is_on(void **state)
{
	struct fixture *f = *state;

	wr(f, DATA, 0xf5);
	EXPECT(f, 0xfa);
	assert_int_equal(i8042_ctrl_alt_del(f->kbc), -EAGAIN);
	wr(f, DATA, 0xf4);
	EXPECT(f, 0xfa);
	wr(f, STATUS, 0xad);
	assert_int_equal(i8042_ctrl_alt_del(f->kbc), -EAGAIN);
	wr(f, STATUS, 0xae);
	assert_int_equal(i8042_ctrl_alt_del(f->kbc), 0);
}

static void talking_to_the_keyboard_switches_its_port_on(void **state)
{
	wr(*state, STATUS, 0xad);
	wr(*state, DATA, 0xf4);
	EXPECT(*state, 0xfa);
	wr(*state, STATUS, 0x20);
	assert_int_equal(rd(*state, DATA) & 0x10, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(reset_acknowledges_and_passes),
		T(identity_is_that_of_a_pc_keyboard),
		T(simple_commands_are_acknowledged),
		T(leds_and_rate_take_any_parameter),
		T(echo_echoes),
		T(resend_repeats_the_last_byte),
		T(unknown_commands_are_refused),
		T(scan_set_can_be_chosen_and_asked_for),
		T(ctrl_alt_del_is_typed_translated),
		T(ctrl_alt_del_is_typed_untranslated),
		T(ctrl_alt_del_needs_room),
		T(ctrl_alt_del_needs_a_keyboard_that_is_on),
		T(talking_to_the_keyboard_switches_its_port_on),
	};

	log_init("test");
	return cmocka_run_group_tests_name("i8042_keyboard", tests, NULL, NULL);
}
