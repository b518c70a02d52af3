/*
 * The serial port against a model of one, written from the data sheet with
 * arrays that are shifted: random register accesses, input from the host and
 * consoles of every limit.
 *
 * Promises: every read is the model's, the line is high exactly while an
 * interrupt is pending, bytes come in order and none is lost that was taken,
 * and at the end the counters say what happened.
 *
 * Input: one byte that chooses the console, then steps of 2 bytes: what to do
 * and where, and a value.
 */
#include <stdio.h>
#include <string.h>

#include "devices/uart16550.h"
#include "tests/fuzz/fuzz.h"

#define STEP_BYTES 2
#define MAX_STEPS 1024

enum { DATA, IER, IIR, LCR, MCR, LSR, MSR, SCR };

#define FIFO 16u
#define BUCKET 8u /* bytes that a limited console takes in all: an hour refills it */

enum console { NONE, OPEN, LIMITED, CONSOLES };

/* ---- the model ---------------------------------------------------------------------------- */

struct model {
	uint8_t ier, fcr, lcr, mcr, scr, dll, dlm;
	bool overrun;
	bool thre; /* an interrupt, not the bit of LSR: that is always set */
	bool reads_iir; /* the driver acknowledges so; else by writing */
	uint8_t deltas;
	uint8_t fifo[FIFO];
	unsigned received;
	uint8_t input[LIMIT_SERIAL_INPUT]; /* bytes of the host that the FIFO has no room for */
	unsigned waiting;
	uint64_t sent, read, missed;
};

static unsigned depth(const struct model *m)
{
	return m->fcr & 1 ? FIFO : 1;
}

/* What IIR says, by priority, without the FIFO bits. */
static uint8_t interrupt(const struct model *m)
{
	static const unsigned triggers[] = { 1, 4, 8, 14 };

	if ((m->ier & 4) && m->overrun)
		return 0x06;
	if ((m->ier & 1) && m->received > 0)
		return (m->fcr & 1) && m->received < triggers[m->fcr >> 6] ? 0x0c : 0x04;
	if ((m->ier & 2) && m->thre)
		return 0x02;
	if ((m->ier & 8) && m->deltas)
		return 0x00;
	return 0x01;
}

static uint8_t modem_inputs(const struct model *m)
{
	if (!(m->mcr & 0x10))
		return 0xb0;
	return (uint8_t)((m->mcr & 2) << 3 | (m->mcr & 1) << 5 | (m->mcr & 0x0c) << 4);
}

static void shift(uint8_t *bytes, unsigned *n)
{
	memmove(bytes, bytes + 1, --*n);
}

static void pull(struct model *m)
{
	while (!(m->mcr & 0x10) && m->waiting > 0 && m->received < depth(m)) {
		m->fifo[m->received++] = m->input[0];
		shift(m->input, &m->waiting);
	}
}

static uint8_t model_read_data(struct model *m)
{
	uint8_t byte = m->fifo[0];

	if (m->received == 0) {
		m->missed++;
		return 0;
	}
	m->read++;
	shift(m->fifo, &m->received);
	pull(m);
	return byte;
}

static uint8_t model_read(struct model *m, unsigned reg)
{
	uint8_t value;

	switch (reg) {
	case DATA:
		return m->lcr & 0x80 ? m->dll : model_read_data(m);
	case IER:
		return m->lcr & 0x80 ? m->dlm : m->ier;
	case IIR:
		value = interrupt(m);
		if (value == 0x02) {
			m->thre = false;
			m->reads_iir = true;
		}
		return value | (m->fcr & 1 ? 0xc0 : 0);
	case LCR:
		return m->lcr;
	case MCR:
		return m->mcr;
	case LSR:
		value = 0x60 | (m->overrun ? 0x02 : 0) | (m->received > 0);
		m->overrun = false;
		return value;
	case MSR:
		value = modem_inputs(m) | m->deltas;
		m->deltas = 0;
		return value;
	default:
		return m->scr;
	}
}

static void model_send(struct model *m, uint8_t byte)
{
	m->thre = true;
	if (!(m->mcr & 0x10)) {
		m->sent++;
	} else if (m->received < depth(m)) {
		m->fifo[m->received++] = byte;
	} else {
		m->overrun = true;
		if (!(m->fcr & 1)) /* the register is written over */
			m->fifo[0] = byte;
	}
}

static void model_write_ier(struct model *m, uint8_t value)
{
	if (value & ~m->ier & 2) {
		m->thre = true;
		m->reads_iir = false;
	}
	m->ier = value & 0x0f;
}

static void model_write_fcr(struct model *m, uint8_t value)
{
	if (((m->fcr ^ value) & 1) || (value & 3) == 3)
		m->received = 0;
	m->fcr = value & 1 ? value & 0xc1 : 0;
}

static void model_write_mcr(struct model *m, uint8_t value)
{
	uint8_t before = modem_inputs(m), changed;

	m->mcr = value & 0x1f;
	changed = before ^ modem_inputs(m);
	/* RI counts where it ends only */
	m->deltas |= (changed & 0xb0) >> 4 | (changed & before & 0x40) >> 4;
}

static void model_write(struct model *m, unsigned reg, uint8_t value)
{
	bool dlab = m->lcr & 0x80;

	if (reg == DATA && dlab)
		m->dll = value;
	else if (reg == IER && dlab)
		m->dlm = value;
	else if (reg == DATA)
		model_send(m, value);
	else if (reg == IER)
		model_write_ier(m, value);
	else if (reg == IIR)
		model_write_fcr(m, value);
	else if (reg == LCR)
		m->lcr = value;
	else if (reg == MCR)
		model_write_mcr(m, value);
	else if (reg == SCR)
		m->scr = value;
	pull(m);
}

static unsigned model_receive(struct model *m, const uint8_t *data, unsigned n)
{
	unsigned taken;

	for (taken = 0; taken < n && m->waiting < sizeof(m->input); taken++)
		m->input[m->waiting++] = data[taken];
	pull(m);
	return taken;
}

/* ---- both --------------------------------------------------------------------------------- */

struct machine {
	struct fuzz_line line;
	struct metrics metrics;
	struct device *uart;
	struct model model;
	uint8_t next; /* what the host sends is numbered */
};

static uint8_t rd(struct machine *m, unsigned reg)
{
	uint64_t got = uart16550_bus_ops.read(m->uart, reg, 1);

	require(got == model_read(&m->model, reg));
	return (uint8_t)got;
}

static bool pending(const struct model *m)
{
	return interrupt(m) != 0x01;
}

/* Whether the line is low for a moment: a byte acknowledges the one before. */
static bool falls(const struct model *m, unsigned reg)
{
	struct model sending = *m;

	if (reg != DATA || (m->lcr & 0x80) || m->reads_iir)
		return false;
	sending.thre = false;
	return !pending(&sending);
}

static void wr(struct machine *m, unsigned reg, uint8_t value)
{
	bool was_low = !m->line.level || falls(&m->model, reg);
	uint32_t edges = m->line.edges;

	require(uart16550_bus_ops.write(m->uart, reg, 1, value) == BUS_DONE);
	model_write(&m->model, reg, value);
	require(m->line.edges - edges == (was_low && pending(&m->model)));
}

static void receive(struct machine *m, unsigned n)
{
	uint8_t bytes[UINT8_MAX];
	unsigned i;

	for (i = 0; i < n; i++)
		bytes[i] = (uint8_t)(m->next + i);
	i = model_receive(&m->model, bytes, n);
	require(uart16550_receive(m->uart, bytes, n) == i);
	m->next = (uint8_t)(m->next + i);
}

static void step(struct machine *m, uint8_t what, uint8_t value)
{
	unsigned i;

	switch (what >> 6) {
	case 0:
		rd(m, what & 7);
		break;
	case 1:
		wr(m, what & 7, value);
		break;
	case 2:
		receive(m, value);
		break;
	default: /* up to one more than the FIFO holds */
		for (i = 0; i < value % 18u; i++) {
			if (value & 0x80)
				wr(m, DATA, (uint8_t)i);
			else
				rd(m, DATA);
		}
		break;
	}
	require(m->line.level == pending(&m->model));
}

/* Each register once more, and the bytes that are left. */
static void read_all(struct machine *m)
{
	unsigned reg;

	for (reg = IER; reg <= SCR; reg++)
		rd(m, reg);
	wr(m, LCR, m->model.lcr ^ 0x80);
	rd(m, DATA);
	rd(m, IER);
	wr(m, LCR, 0);
	wr(m, MCR, 0);
	while (rd(m, LSR) & 1)
		rd(m, DATA);
	require(m->model.waiting == 0);
	rd(m, MSR);
	rd(m, IIR);
	require(rd(m, IIR) == (m->model.fcr & 1 ? 0xc1 : 0x01));
	require(!m->line.level);
}

static void check_counts(const struct machine *m, enum console console)
{
	uint64_t sent = m->model.sent;
	uint64_t dropped = console == LIMITED && sent > BUCKET ? sent - BUCKET : 0;
	uint64_t kept = console == NONE ? 0 : sent - dropped;

	require(fuzz_count(&m->metrics, "write_count") == sent);
	require(fuzz_count(&m->metrics, "read_count") == m->model.read);
	require(fuzz_count(&m->metrics, "missed_read_count") == m->model.missed);
	require(fuzz_count(&m->metrics, "rate_limiter_dropped_bytes") == dropped);
	/* nobody takes what the ring holds */
	require(fuzz_count(&m->metrics, "missed_write_count") ==
		(kept > LIMIT_SERIAL_OUTPUT ? kept - LIMIT_SERIAL_OUTPUT : 0));
}

static void build(struct machine *m, enum console console)
{
	struct serial_config config = { .console = console == NONE ? CONSOLE_NONE : CONSOLE_FILE };
	const struct irq_line line = { .ops = &fuzz_line_ops, .chip = &m->line, .gsi = 4 };
	const struct device_env env = { .metrics = &m->metrics };

	if (console != NONE)
		snprintf(config.path, sizeof(config.path), "/dev/null");
	if (console == LIMITED)
		config.rate_limiter = (struct token_bucket_config){
			.present = true, .size = BUCKET, .refill_time_ms = 3600000 };
	m->uart = uart16550_create(&env, &config, &line, NULL);
	require(m->uart);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct machine m = { 0 };
	enum console console;
	unsigned i;

	if (size == 0)
		return 0;
	console = data[0] % CONSOLES;
	build(&m, console);
	for (i = 0; i < MAX_STEPS && (i + 1) * STEP_BYTES < size; i++)
		step(&m, data[1 + i * STEP_BYTES], data[2 + i * STEP_BYTES]);
	read_all(&m);
	check_counts(&m, console);
	m.uart->ops->destroy(m.uart);
	require(!m.metrics.base);
	return 0;
}
