/*
 * i8042 controller: its commands, its queue, its interrupt, and what a driver
 * that looks for a second port finds.
 */
#include "tests/devices/device_test.h"

#include "devices/i8042.h"

#define DATA 0
#define STATUS 4

struct fixture {
	struct spy_irq irq;
	struct metrics *metrics;
	struct device *kbc;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct device_env env = { 0 };

	spy_irq_init(&f->irq);
	f->metrics = metrics_new();
	env.metrics = f->metrics;
	f->kbc = i8042_create(&env, &f->irq.line, NULL);
	*state = f;
	return f->kbc ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	f->kbc->ops->destroy(f->kbc);
	metrics_free(f->metrics);
	free(f);
	return 0;
}

static unsigned rd(struct fixture *f, unsigned port)
{
	return (unsigned)i8042_bus_ops.read(f->kbc, port, 1);
}

static enum bus_action wr(struct fixture *f, unsigned port, unsigned value)
{
	return i8042_bus_ops.write(f->kbc, port, 1, value);
}

static unsigned count(struct fixture *f, const char *name)
{
	return (unsigned)count_of(f->metrics, "i8042", name);
}

/* A command that answers with one byte. */
static unsigned ask(struct fixture *f, unsigned command)
{
	unsigned answer;

	wr(f, STATUS, command);
	assert_int_equal(rd(f, STATUS) & 1, 1);
	answer = rd(f, DATA);
	assert_int_equal(rd(f, STATUS) & 1, 0);
	return answer;
}

static void tell(struct fixture *f, unsigned command, unsigned parameter)
{
	assert_int_equal(wr(f, STATUS, command), BUS_DONE);
	assert_int_equal(wr(f, DATA, parameter), BUS_DONE);
}

static void status_at_first_is_idle_and_unlocked(void **state)
{
	assert_int_equal(rd(*state, STATUS), 0x14);
}

static void ports_between_read_all_ones(void **state)
{
	struct fixture *f = *state;
	unsigned port;

	for (port = 1; port < 4; port++) {
		assert_int_equal(wr(f, port, 0xfe), BUS_DONE);
		assert_int_equal(rd(f, port), 0xff);
	}
	assert_int_equal(count(f, "missed_read_count"), 3);
	assert_int_equal(count(f, "missed_write_count"), 3);
}

static void self_test_passes(void **state)
{
	assert_int_equal(ask(*state, 0xaa), 0x55);
	assert_int_equal(rd(*state, STATUS) & 0x04, 0x04);
}

static void self_test_empties_the_queue(void **state)
{
	tell(*state, 0xd2, 'x');
	assert_int_equal(ask(*state, 0xaa), 0x55);
}

static void keyboard_port_test_passes(void **state)
{
	assert_int_equal(ask(*state, 0xab), 0x00);
}

static void ports_and_password_answer(void **state)
{
	assert_int_equal(ask(*state, 0xc0), 0x80);
	assert_int_equal(ask(*state, 0xd0), 0x03);
	assert_int_equal(ask(*state, 0xe0), 0x00);
	assert_int_equal(ask(*state, 0xa4), 0xf1);
}

static void command_byte_reads_back(void **state)
{
	unsigned v;

	for (v = 0; v < 256; v++) {
		tell(*state, 0x60, v);
		assert_int_equal(ask(*state, 0x20), v & 0x7f);
	}
}

static void internal_memory_reads_back(void **state)
{
	unsigned i;

	for (i = 1; i < 32; i++)
		tell(*state, 0x60 + i, i * 7);
	for (i = 1; i < 32; i++)
		assert_int_equal(ask(*state, 0x20 + i), (i * 7) & 0xff);
}

static void system_flag_follows_the_command_byte(void **state)
{
	tell(*state, 0x60, 0x00);
	assert_int_equal(rd(*state, STATUS) & 0x04, 0);
	tell(*state, 0x60, 0x04);
	assert_int_equal(rd(*state, STATUS) & 0x04, 0x04);
}

static void status_tells_command_from_data(void **state)
{
	wr(*state, STATUS, 0xae);
	assert_int_equal(rd(*state, STATUS) & 0x08, 0x08);
	wr(*state, DATA, 0xf4);
	assert_int_equal(rd(*state, STATUS) & 0x08, 0);
}

static void port_switches_show_in_the_command_byte(void **state)
{
	wr(*state, STATUS, 0xad);
	assert_int_equal(ask(*state, 0x20) & 0x10, 0x10);
	wr(*state, STATUS, 0xae);
	assert_int_equal(ask(*state, 0x20) & 0x10, 0);
	wr(*state, STATUS, 0xa8);
	assert_int_equal(ask(*state, 0x20) & 0x20, 0);
	wr(*state, STATUS, 0xa7);
	assert_int_equal(ask(*state, 0x20) & 0x20, 0x20);
}

/* Linux: the loop test must not look like the second port, and its test must fail. */
static void second_port_is_absent(void **state)
{
	unsigned test;

	tell(*state, 0xd3, 0x5a);
	assert_int_equal(rd(*state, STATUS) & 0x21, 0x01);
	assert_int_equal(rd(*state, DATA), 0x5a);
	test = ask(*state, 0xa9);
	assert_true(test != 0x00 && test != 0xfa && test != 0xff);
}

static void nobody_answers_on_the_second_port(void **state)
{
	tell(*state, 0xd4, 0xf2);
	assert_int_equal(rd(*state, STATUS) & 0x61, 0x61);
	assert_int_equal(rd(*state, DATA), 0xfe);
	assert_int_equal(rd(*state, STATUS) & 0x61, 0);
}

static void keyboard_loop_returns_the_byte(void **state)
{
	tell(*state, 0xd2, 0x42);
	assert_int_equal(rd(*state, STATUS) & 0x21, 0x01);
	assert_int_equal(rd(*state, DATA), 0x42);
}

/* A zero in bit 0 pulses the reset line; 0xfe is what kernels send. */
static void pulse_commands_reset(void **state)
{
	struct fixture *f = *state;
	unsigned v;

	for (v = 0xf0; v <= 0xff; v++)
		assert_int_equal(wr(f, STATUS, v), v & 1 ? BUS_DONE : BUS_GUEST_RESET);
	assert_int_equal(count(f, "reset_count"), 8);
}

static void output_port_resets_and_gates_a20(void **state)
{
	struct fixture *f = *state;

	tell(f, 0xd1, 0x01);
	assert_int_equal(ask(f, 0xd0), 0x01);
	tell(f, 0xd1, 0x03);
	assert_int_equal(ask(f, 0xd0), 0x03);
	wr(f, STATUS, 0xd1);
	assert_int_equal(wr(f, DATA, 0x02), BUS_GUEST_RESET);
}

/* Every command with every parameter: nothing but the known ones reset. */
static void no_other_command_resets(void **state)
{
	unsigned command, v;

	for (command = 0; command < 0xf0; command++) {
		for (v = 0; v < 256; v++) {
			bool resets = command == 0xd1 && !(v & 1);

			assert_int_equal(wr(*state, STATUS, command), BUS_DONE);
			assert_int_equal(wr(*state, DATA, v),
					 resets ? BUS_GUEST_RESET : BUS_DONE);
			rd(*state, DATA);
		}
	}
}

static void unknown_commands_are_counted_and_silent(void **state)
{
	struct fixture *f = *state;

	wr(f, STATUS, 0x00);
	wr(f, STATUS, 0xa5);
	assert_int_equal(rd(f, STATUS) & 1, 0);
	assert_int_equal(count(f, "missed_write_count"), 2);
}

static void new_command_replaces_one_that_waits(void **state)
{
	wr(*state, STATUS, 0xd1);
	wr(*state, STATUS, 0xd2);
	assert_int_equal(wr(*state, DATA, 0x00), BUS_DONE);
	assert_int_equal(rd(*state, DATA), 0x00);
}

/* 16 bytes wait; the seventeenth is dropped and counted. */
static void queue_is_bounded(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	for (i = 0; i < 17; i++)
		tell(f, 0xd2, i);
	assert_int_equal(count(f, "error_count"), 1);
	for (i = 0; i < 16; i++)
		assert_int_equal(rd(f, DATA), i);
	assert_int_equal(rd(f, STATUS) & 1, 0);
}

static void reading_nothing_repeats_the_last_byte(void **state)
{
	struct fixture *f = *state;

	tell(f, 0xd2, 0x77);
	assert_int_equal(rd(f, DATA), 0x77);
	assert_int_equal(rd(f, DATA), 0x77);
	assert_int_equal(count(f, "missed_read_count"), 1);
	assert_int_equal(count(f, "read_count"), 1);
}

static void each_byte_raises_one_edge(void **state)
{
	struct fixture *f = *state;

	tell(f, 0xd2, 1);
	tell(f, 0xd2, 2);
	assert_int_equal(spy_irq_edges(&f->irq), 1);
	rd(f, DATA);
	assert_int_equal(spy_irq_edges(&f->irq), 1);
	rd(f, DATA);
	assert_int_equal(spy_irq_edges(&f->irq), 0);
	assert_false(f->irq.level);
}

static void interrupt_waits_until_it_is_enabled(void **state)
{
	struct fixture *f = *state;

	tell(f, 0x60, 0x44);
	tell(f, 0xd2, 1);
	assert_int_equal(f->irq.calls, 0);
	tell(f, 0x60, 0x45);
	assert_int_equal(spy_irq_edges(&f->irq), 1);
	tell(f, 0x60, 0x45);
	assert_int_equal(spy_irq_edges(&f->irq), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(status_at_first_is_idle_and_unlocked),
		T(ports_between_read_all_ones),
		T(self_test_passes),
		T(self_test_empties_the_queue),
		T(keyboard_port_test_passes),
		T(ports_and_password_answer),
		T(command_byte_reads_back),
		T(internal_memory_reads_back),
		T(system_flag_follows_the_command_byte),
		T(status_tells_command_from_data),
		T(port_switches_show_in_the_command_byte),
		T(second_port_is_absent),
		T(nobody_answers_on_the_second_port),
		T(keyboard_loop_returns_the_byte),
		T(pulse_commands_reset),
		T(output_port_resets_and_gates_a20),
		T(no_other_command_resets),
		T(unknown_commands_are_counted_and_silent),
		T(new_command_replaces_one_that_waits),
		T(queue_is_bounded),
		T(reading_nothing_repeats_the_last_byte),
		T(each_byte_raises_one_edge),
		T(interrupt_waits_until_it_is_enabled),
	};

	log_init("test");
	return cmocka_run_group_tests_name("i8042", tests, NULL, NULL);
}
