/*
 * 16550A registers: what reads back, what a driver's probe finds, the FIFO.
 */
#include "tests/devices/device_test.h"

#include <pthread.h>
#include <sched.h>

#include "devices/uart16550.h"

enum { DATA, IER, IIR, LCR, MCR, LSR, MSR, SCR };

struct fixture {
	struct spy_irq irq;
	struct metrics *metrics;
	struct device *uart;
};

static int setup(void **state)
{
	static const struct serial_config none = { .console = CONSOLE_NONE };
	struct fixture *f = calloc(1, sizeof(*f));
	struct device_env env = { 0 };

	spy_irq_init(&f->irq);
	f->metrics = metrics_new();
	env.metrics = f->metrics;
	f->uart = uart16550_create(&env, &none, &f->irq.line, NULL);
	*state = f;
	return f->uart ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	f->uart->ops->destroy(f->uart);
	metrics_free(f->metrics);
	free(f);
	return 0;
}

static unsigned rd(struct fixture *f, unsigned reg)
{
	return (unsigned)uart16550_bus_ops.read(f->uart, reg, 1);
}

static void wr(struct fixture *f, unsigned reg, unsigned value)
{
	assert_int_equal(uart16550_bus_ops.write(f->uart, reg, 1, value), BUS_DONE);
}

static size_t type(struct fixture *f, const char *text)
{
	return uart16550_receive(f->uart, (const uint8_t *)text, strlen(text));
}

static void reset_state_is_that_of_the_data_sheet(void **state)
{
	static const uint8_t expected[8] = { 0, 0, 0x01, 0, 0, 0x60, 0xb0, 0 };
	unsigned reg;

	for (reg = 0; reg < 8; reg++)
		assert_int_equal(rd(*state, reg), expected[reg]);
}

static void ier_reserved_bits_read_zero(void **state)
{
	unsigned v;

	for (v = 0; v < 256; v++) {
		wr(*state, IER, v);
		assert_int_equal(rd(*state, IER), v & 0x0f);
	}
}

static void mcr_reserved_bits_read_zero(void **state)
{
	unsigned v;

	for (v = 0; v < 256; v++) {
		wr(*state, MCR, v);
		assert_int_equal(rd(*state, MCR), v & 0x1f);
	}
}

static void lcr_and_scratch_keep_every_value(void **state)
{
	unsigned v;

	for (v = 0; v < 256; v++) {
		wr(*state, LCR, v);
		wr(*state, SCR, v ^ 0xff);
		assert_int_equal(rd(*state, LCR), v);
		assert_int_equal(rd(*state, SCR), v ^ 0xff);
	}
}

static void status_registers_ignore_writes(void **state)
{
	unsigned v;

	for (v = 0; v < 256; v++) {
		wr(*state, LSR, v);
		wr(*state, MSR, v);
		assert_int_equal(rd(*state, LSR), 0x60);
		assert_int_equal(rd(*state, MSR), 0xb0);
	}
}

static void dlab_swaps_data_and_ier_for_the_divisor(void **state)
{
	struct fixture *f = *state;

	wr(f, IER, 0x05);
	wr(f, LCR, 0x80);
	wr(f, DATA, 0x34);
	wr(f, IER, 0x12);
	assert_int_equal(rd(f, DATA), 0x34);
	assert_int_equal(rd(f, IER), 0x12);
	wr(f, LCR, 0x03);
	assert_int_equal(rd(f, IER), 0x05);
	assert_int_equal(count_of(f->metrics, "uart", "write_count"), 0);
}

/* The FIFO bits of IIR follow bit 0 of FCR, whatever else is written with it. */
static void iir_shows_the_fifo_for_every_fcr(void **state)
{
	unsigned v;

	for (v = 0; v < 256; v++) {
		wr(*state, IIR, v);
		assert_int_equal(rd(*state, IIR), v & 1 ? 0xc1 : 0x01);
	}
}

/* The steps of Linux' 8250 driver up to "16550A", with its other candidates refused. */
static void linux_autoconfig_finds_a_16550a(void **state)
{
	struct fixture *f = *state;

	wr(f, IER, 0x00);
	assert_int_equal(rd(f, IER) & 0x0f, 0x00);
	wr(f, IER, 0x0f);
	assert_int_equal(rd(f, IER) & 0x0f, 0x0f);
	wr(f, IER, 0x00);
	wr(f, MCR, 0x10 | 0x0a); /* loopback with RTS and OUT2 */
	assert_int_equal(rd(f, MSR) & 0xf0, 0x90);
	wr(f, MCR, 0x00);
	wr(f, LCR, 0xbf); /* an EFR there would be a 16650 */
	wr(f, IIR, 0x00);
	wr(f, LCR, 0x00);
	wr(f, IIR, 0x01);
	assert_int_equal(rd(f, IIR) >> 6, 3);
}

static void linux_autoconfig_finds_no_better_chip(void **state)
{
	struct fixture *f = *state;

	wr(f, IIR, 0x01);
	wr(f, LCR, 0x80);
	assert_int_not_equal(rd(f, IIR), 0); /* 16650 */
	wr(f, LCR, 0xbf);
	assert_int_not_equal(rd(f, IIR), 0); /* 16650V2 */
	wr(f, LCR, 0xe0);
	assert_int_equal(rd(f, IIR) & 0x10, 0); /* NS16550A with EXCR1 */
	wr(f, LCR, 0x80);
	wr(f, IIR, 0x21);
	assert_int_equal(rd(f, IIR) >> 5, 6); /* 7 would be a 16750 */
	wr(f, LCR, 0x00);
	wr(f, IER, 0x40);
	assert_int_equal(rd(f, IER) & 0x40, 0); /* XScale's UUE */
}

static void loopback_turns_outputs_into_inputs(void **state)
{
	unsigned v;

	for (v = 0; v < 16; v++) {
		unsigned expected = (v & 2 ? 0x10 : 0) | (v & 1 ? 0x20 : 0) |
				    (v & 4 ? 0x40 : 0) | (v & 8 ? 0x80 : 0);

		wr(*state, MCR, 0x10 | v);
		assert_int_equal(rd(*state, MSR) & 0xf0, expected);
	}
}

static void loopback_returns_what_is_sent(void **state)
{
	struct fixture *f = *state;
	unsigned v;

	wr(f, IIR, 0x01);
	wr(f, MCR, 0x10);
	for (v = 0; v < 256; v++) {
		wr(f, DATA, v);
		assert_int_equal(rd(f, LSR), 0x61);
		assert_int_equal(rd(f, DATA), v);
		assert_int_equal(rd(f, LSR), 0x60);
	}
	assert_int_equal(count_of(f->metrics, "uart", "write_count"), 0);
}

/* Linux tells chips apart by how much a loopback FIFO holds. */
static void loopback_fifo_holds_16_and_then_overruns(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	wr(f, IIR, 0x07);
	wr(f, MCR, 0x10);
	for (i = 0; i < 256; i++)
		wr(f, DATA, i);
	assert_int_equal(rd(f, LSR), 0x63);
	for (i = 0; i < 16; i++)
		assert_int_equal(rd(f, DATA), i);
	assert_int_equal(rd(f, LSR), 0x60);
}

/* It destroys the one that was there (NS16550A, bit 1 of LSR). */
static void without_fifo_the_last_byte_fits(void **state)
{
	struct fixture *f = *state;

	wr(f, MCR, 0x10);
	wr(f, DATA, 'a');
	wr(f, DATA, 'b');
	assert_int_equal(rd(f, LSR), 0x63);
	assert_int_equal(rd(f, DATA), 'b');
	assert_int_equal(rd(f, LSR), 0x60);
}

static void loopback_cuts_off_the_input_for_a_while(void **state)
{
	struct fixture *f = *state;

	wr(f, MCR, 0x10);
	assert_int_equal(type(f, "x"), 1);
	assert_int_equal(rd(f, LSR), 0x60);
	wr(f, MCR, 0x00);
	assert_int_equal(rd(f, LSR), 0x61);
	assert_int_equal(rd(f, DATA), 'x');
}

static void input_arrives_in_order(void **state)
{
	static const char text[] = "the quick brown fox jumps over the lazy dog";
	struct fixture *f = *state;
	const char *p;

	wr(f, IIR, 0x01);
	assert_int_equal(type(f, text), strlen(text));
	for (p = text; *p; p++) {
		assert_int_equal(rd(f, LSR), 0x61);
		assert_int_equal(rd(f, DATA), *p);
	}
	assert_int_equal(rd(f, LSR), 0x60);
	assert_int_equal(count_of(f->metrics, "uart", "read_count"), strlen(text));
}

/* At the limit all is taken; one byte more is not. */
static void input_is_bounded(void **state)
{
	char text[LIMIT_SERIAL_INPUT + 2];
	struct fixture *f = *state;

	memset(text, 'i', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	wr(f, MCR, 0x10); /* nothing moves on to the receiver */
	assert_int_equal(type(f, text), LIMIT_SERIAL_INPUT);
	assert_int_equal(type(f, text), 0);
}

static void clearing_the_fifo_keeps_input_that_waits(void **state)
{
	struct fixture *f = *state;

	wr(f, IIR, 0x01);
	assert_int_equal(type(f, "0123456789abcdefXY"), 18);
	wr(f, IIR, 0x03);
	assert_int_equal(rd(f, DATA), 'X');
	assert_int_equal(rd(f, DATA), 'Y');
	assert_int_equal(rd(f, LSR), 0x60);
}

static void switching_the_fifo_clears_it(void **state)
{
	struct fixture *f = *state;

	wr(f, IIR, 0x01);
	type(f, "abc");
	wr(f, IIR, 0x00);
	assert_int_equal(rd(f, LSR), 0x60);
	type(f, "d");
	wr(f, IIR, 0x01);
	assert_int_equal(rd(f, LSR), 0x60);
}

/* FCR bits 7 to 1 only count when bit 0 is written as one. */
static void fcr_clear_bit_needs_the_enable_bit(void **state)
{
	struct fixture *f = *state;

	type(f, "a");
	wr(f, IIR, 0x02);
	assert_int_equal(rd(f, DATA), 'a');
}

#define POLLED_BYTES 20000u

/* A vCPU that polls LSR, which takes no lock, sees every byte that is there. */
static void *poll_receiver(void *arg)
{
	unsigned i;

	for (i = 0; i < POLLED_BYTES; i++) {
		while (!(rd(arg, LSR) & 0x01))
			sched_yield();
		if (rd(arg, DATA) != i % 251)
			return arg;
	}
	return NULL;
}

static void polled_input_arrives_in_order(void **state)
{
	struct fixture *f = *state;
	void *failed = f;
	pthread_t vcpu;
	unsigned i;

	wr(f, IIR, 0x01);
	assert_int_equal(pthread_create(&vcpu, NULL, poll_receiver, f), 0);
	for (i = 0; i < POLLED_BYTES; i++) {
		uint8_t byte = (uint8_t)(i % 251);

		while (uart16550_receive(f->uart, &byte, 1) == 0)
			sched_yield();
	}
	pthread_join(vcpu, &failed);
	assert_null(failed);
	assert_int_equal(rd(f, LSR), 0x60);
}

static void reading_an_empty_receiver_is_counted(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(rd(f, DATA), 0);
	assert_int_equal(count_of(f->metrics, "uart", "missed_read_count"), 1);
	assert_int_equal(count_of(f->metrics, "uart", "read_count"), 0);
}

static void sent_bytes_are_counted_without_a_console(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	for (i = 0; i < 100000; i++)
		wr(f, DATA, 'x');
	assert_int_equal(count_of(f->metrics, "uart", "write_count"), 100000);
	assert_int_equal(count_of(f->metrics, "uart", "missed_write_count"), 0);
}

/* Every register with every value under every FIFO and loopback setting. */
static void transmitter_is_ready_after_any_write(void **state)
{
	struct fixture *f = *state;
	unsigned mode, reg, v;

	for (mode = 0; mode < 4; mode++) {
		for (reg = 0; reg < 8; reg++) {
			for (v = 0; v < 256; v++) {
				wr(f, IIR, mode & 1);
				wr(f, MCR, mode & 2 ? 0x10 : 0);
				wr(f, reg, v);
				assert_int_equal(rd(f, LSR) & 0x60, 0x60);
				assert_true((rd(f, IIR) & 0x30) == 0);
			}
		}
	}
}

static void two_ports_add_up_in_the_metrics(void **state)
{
	static const struct serial_config none = { .console = CONSOLE_NONE };
	struct fixture *f = *state;
	struct device_env env = { .metrics = f->metrics };
	struct device *other = uart16550_create(&env, &none, &f->irq.line, NULL);

	assert_non_null(other);
	wr(f, DATA, 'a');
	uart16550_bus_ops.write(other, DATA, 1, 'b');
	other->ops->destroy(other);
	assert_int_equal(count_of(f->metrics, "uart", "write_count"), 2);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(reset_state_is_that_of_the_data_sheet),
		T(ier_reserved_bits_read_zero),
		T(mcr_reserved_bits_read_zero),
		T(lcr_and_scratch_keep_every_value),
		T(status_registers_ignore_writes),
		T(dlab_swaps_data_and_ier_for_the_divisor),
		T(iir_shows_the_fifo_for_every_fcr),
		T(linux_autoconfig_finds_a_16550a),
		T(linux_autoconfig_finds_no_better_chip),
		T(loopback_turns_outputs_into_inputs),
		T(loopback_returns_what_is_sent),
		T(loopback_fifo_holds_16_and_then_overruns),
		T(without_fifo_the_last_byte_fits),
		T(loopback_cuts_off_the_input_for_a_while),
		T(input_arrives_in_order),
		T(polled_input_arrives_in_order),
		T(input_is_bounded),
		T(clearing_the_fifo_keeps_input_that_waits),
		T(switching_the_fifo_clears_it),
		T(fcr_clear_bit_needs_the_enable_bit),
		T(reading_an_empty_receiver_is_counted),
		T(sent_bytes_are_counted_without_a_console),
		T(transmitter_is_ready_after_any_write),
		T(two_ports_add_up_in_the_metrics),
	};

	log_init("test");
	return cmocka_run_group_tests_name("uart16550", tests, NULL, NULL);
}
