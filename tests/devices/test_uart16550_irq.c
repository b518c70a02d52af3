/*
 * 16550A interrupts: sources, priorities, acknowledgement, and the line as an
 * edge-triggered interrupt controller sees it.
 */
#include "tests/devices/device_test.h"

#include "devices/uart16550.h"

enum { DATA, IER, IIR, LCR, MCR, LSR, MSR, SCR };

#define IER_RX 0x01
#define IER_TX 0x02
#define IER_LINE 0x04
#define IER_MODEM 0x08

struct fixture {
	struct spy_irq irq;
	struct device *uart;
};

static int setup(void **state)
{
	static const struct serial_config none = { .console = CONSOLE_NONE };
	struct fixture *f = calloc(1, sizeof(*f));
	struct device_env env = { 0 };

	spy_irq_init(&f->irq);
	f->uart = uart16550_create(&env, &none, &f->irq.line, NULL);
	*state = f;
	return f->uart ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	f->uart->ops->destroy(f->uart);
	free(f);
	return 0;
}

static unsigned rd(struct fixture *f, unsigned reg)
{
	return (unsigned)uart16550_bus_ops.read(f->uart, reg, 1);
}

static void wr(struct fixture *f, unsigned reg, unsigned value)
{
	uart16550_bus_ops.write(f->uart, reg, 1, value);
}

static void type(struct fixture *f, const char *text)
{
	assert_int_equal(uart16550_receive(f->uart, (const uint8_t *)text, strlen(text)),
			 strlen(text));
}

static void line_is_low_and_untouched_at_first(void **state)
{
	struct fixture *f = *state;

	type(f, "x");
	wr(f, DATA, 'y');
	assert_int_equal(f->irq.calls, 0);
}

static void received_byte_raises_the_line_until_it_is_read(void **state)
{
	struct fixture *f = *state;

	wr(f, IER, IER_RX);
	type(f, "x");
	assert_true(f->irq.level);
	assert_int_equal(rd(f, IIR), 0x04);
	rd(f, DATA);
	assert_false(f->irq.level);
	assert_int_equal(rd(f, IIR), 0x01);
}

static void enabling_an_interrupt_that_waits_raises_the_line(void **state)
{
	struct fixture *f = *state;

	type(f, "x");
	assert_false(f->irq.level);
	wr(f, IER, IER_RX);
	assert_true(f->irq.level);
	wr(f, IER, 0);
	assert_false(f->irq.level);
}

/* Below the trigger level the FIFO counts as timed out. */
static void trigger_levels_tell_data_from_timeout(void **state)
{
	static const unsigned levels[] = { 1, 4, 8, 14 };
	struct fixture *f = *state;
	unsigned i, n;

	wr(f, IER, IER_RX);
	for (i = 0; i < 4; i++) {
		wr(f, IIR, 0x03 | i << 6);
		for (n = 1; n <= 16; n++) {
			type(f, "x");
			assert_int_equal(rd(f, IIR), n < levels[i] ? 0xcc : 0xc4);
		}
	}
}

static void line_stays_high_until_the_fifo_is_empty(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	wr(f, IIR, 0x81);
	wr(f, IER, IER_RX);
	type(f, "0123456789");
	for (i = 0; i < 10; i++) {
		assert_true(f->irq.level);
		rd(f, DATA);
	}
	assert_false(f->irq.level);
	assert_int_equal(f->irq.calls, 2);
}

static void fifo_refilled_from_input_keeps_the_line_high(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	wr(f, IIR, 0x01);
	wr(f, IER, IER_RX);
	type(f, "0123456789abcdef0123456789abcdef");
	for (i = 0; i < 32; i++)
		rd(f, DATA);
	assert_false(f->irq.level);
	assert_int_equal(f->irq.calls, 2);
}

static void enabling_thre_raises_it_each_time(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	for (i = 0; i < 3; i++) {
		wr(f, IER, IER_TX);
		assert_int_equal(spy_irq_edges(&f->irq), 1);
		assert_int_equal(rd(f, IIR), 0x02);
		wr(f, IER, 0);
	}
}

static void reading_iir_acknowledges_thre(void **state)
{
	struct fixture *f = *state;

	wr(f, IER, IER_TX);
	assert_int_equal(rd(f, IIR), 0x02);
	assert_false(f->irq.level);
	assert_int_equal(rd(f, IIR), 0x01);
}

/* Linux' test for chips that do not raise THRE again must find ours good. */
static void linux_thre_test_passes(void **state)
{
	struct fixture *f = *state;
	unsigned first;

	wr(f, IER, IER_TX);
	first = rd(f, IIR);
	wr(f, IER, 0);
	wr(f, IER, IER_TX);
	assert_int_equal(first & 1, 0);
	assert_int_equal(rd(f, IIR) & 1, 0);
	wr(f, IER, 0);
}

/* A driver that reads IIR gets one edge for a burst of bytes. */
static void burst_after_an_acknowledgement_is_one_edge(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	wr(f, IIR, 0x01);
	wr(f, IER, IER_TX);
	rd(f, IIR);
	spy_irq_edges(&f->irq);
	f->irq.calls = 0;
	for (i = 0; i < 16; i++)
		wr(f, DATA, 'x');
	assert_int_equal(spy_irq_edges(&f->irq), 1);
	assert_int_equal(f->irq.calls, 1);
}

/* A driver that only writes must see the line fall and rise, or it would wait for ever. */
static void driver_that_never_reads_iir_gets_edges(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	wr(f, IER, IER_TX);
	spy_irq_edges(&f->irq);
	for (i = 0; i < 5; i++) {
		wr(f, DATA, 'x');
		assert_int_equal(spy_irq_edges(&f->irq), 1);
	}
}

static void other_interrupts_survive_reading_iir(void **state)
{
	struct fixture *f = *state;

	wr(f, IER, IER_RX | IER_TX);
	type(f, "x");
	assert_int_equal(rd(f, IIR), 0x04);
	assert_int_equal(rd(f, IIR), 0x04);
	rd(f, DATA);
	assert_int_equal(rd(f, IIR), 0x02);
	assert_int_equal(rd(f, IIR), 0x01);
}

static void overrun_is_a_line_status_interrupt(void **state)
{
	struct fixture *f = *state;

	wr(f, MCR, 0x10);
	wr(f, IER, IER_LINE);
	wr(f, DATA, 'a');
	assert_false(f->irq.level);
	wr(f, DATA, 'b');
	assert_true(f->irq.level);
	assert_int_equal(rd(f, IIR), 0x06);
	assert_int_equal(rd(f, LSR) & 0x02, 0x02);
	assert_false(f->irq.level);
	assert_int_equal(rd(f, LSR) & 0x02, 0);
}

static void modem_change_is_an_interrupt_until_msr_is_read(void **state)
{
	struct fixture *f = *state;

	wr(f, MCR, 0x1b); /* loopback showing what the host side shows */
	rd(f, MSR);
	wr(f, IER, IER_MODEM);
	assert_false(f->irq.level);
	wr(f, MCR, 0x19); /* RTS falls, so CTS changes */
	assert_int_equal(rd(f, IIR), 0x00);
	assert_int_equal(rd(f, MSR), 0xa1);
	assert_false(f->irq.level);
	assert_int_equal(rd(f, MSR), 0xa0);
}

static void ring_indicator_counts_its_trailing_edge_only(void **state)
{
	struct fixture *f = *state;

	wr(f, MCR, 0x1b);
	rd(f, MSR);
	wr(f, MCR, 0x1f);
	assert_int_equal(rd(f, MSR) & 0x0f, 0);
	wr(f, MCR, 0x1b);
	assert_int_equal(rd(f, MSR) & 0x0f, 0x04);
}

/* Line status, data, THRE, modem, in that order. */
static void sources_are_served_by_priority(void **state)
{
	struct fixture *f = *state;

	wr(f, MCR, 0x10);
	wr(f, DATA, 'a');
	wr(f, DATA, 'b');
	wr(f, IER, 0x0f);
	assert_int_equal(rd(f, IIR), 0x06);
	rd(f, LSR);
	assert_int_equal(rd(f, IIR), 0x04);
	rd(f, DATA);
	assert_int_equal(rd(f, IIR), 0x02);
	assert_int_equal(rd(f, IIR), 0x00);
	rd(f, MSR);
	assert_int_equal(rd(f, IIR), 0x01);
	assert_false(f->irq.level);
}

/* The line equals "IIR says pending" after every single write. */
static void line_agrees_with_iir_after_any_write(void **state)
{
	struct fixture *f = *state;
	unsigned reg, v;

	for (reg = 0; reg < 8; reg++) {
		for (v = 0; v < 256; v++) {
			bool level;

			wr(f, LCR, 0);
			wr(f, IER, v & 0x0f);
			wr(f, reg, v);
			level = f->irq.level;
			assert_int_equal(level, !(rd(f, IIR) & 1));
		}
	}
}

static void line_is_driven_on_changes_only(void **state)
{
	struct fixture *f = *state;
	unsigned v;

	for (v = 0; v < 4096; v++) {
		bool before = f->irq.level;
		unsigned calls = f->irq.calls;

		wr(f, IER, v & 1);
		if (v % 3 == 0)
			type(f, "z");
		else
			rd(f, DATA);
		assert_true(f->irq.calls - calls <= 2);
		assert_true(f->irq.calls != calls || f->irq.level == before);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(line_is_low_and_untouched_at_first),
		T(received_byte_raises_the_line_until_it_is_read),
		T(enabling_an_interrupt_that_waits_raises_the_line),
		T(trigger_levels_tell_data_from_timeout),
		T(line_stays_high_until_the_fifo_is_empty),
		T(fifo_refilled_from_input_keeps_the_line_high),
		T(enabling_thre_raises_it_each_time),
		T(reading_iir_acknowledges_thre),
		T(linux_thre_test_passes),
		T(burst_after_an_acknowledgement_is_one_edge),
		T(driver_that_never_reads_iir_gets_edges),
		T(other_interrupts_survive_reading_iir),
		T(overrun_is_a_line_status_interrupt),
		T(modem_change_is_an_interrupt_until_msr_is_read),
		T(ring_indicator_counts_its_trailing_edge_only),
		T(sources_are_served_by_priority),
		T(line_agrees_with_iir_after_any_write),
		T(line_is_driven_on_changes_only),
	};

	log_init("test");
	return cmocka_run_group_tests_name("uart16550_irq", tests, NULL, NULL);
}
