/*
 * 16550A serial port: registers, receive FIFO, interrupt line.
 *
 * The transmitter is always empty: a byte goes to the console's ring, and no
 * vCPU waits for the host. Input waits in a buffer of ours until the FIFO has
 * room, so nothing from the host overruns it.
 *
 * Threads: registers on any vCPU thread; the console on the device's thread.
 * Locks: u->lock (level DEVICE). The interrupt line is driven with it held.
 * LSR, which drivers poll, is read without it unless there is an error to clear.
 * Not here: where the port sits (the board), output and threads (console.c),
 * baud rates (bytes take no time), parity and break.
 */
#include "devices/uart16550.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "devices/console.h"
#include "vmm/base/bits.h"
#include "vmm/base/lock.h"
#include "vmm/limits.h"
#include "vmm/metrics.h"

/* Offsets; with DLAB the first two are the divisor latch. */
enum uart_reg {
	UART_REG_DATA, /* RBR read, THR written */
	UART_REG_IER,
	UART_REG_IIR, /* FCR written */
	UART_REG_LCR,
	UART_REG_MCR,
	UART_REG_LSR,
	UART_REG_MSR,
	UART_REG_SCR,
};

#define UART_IER_ERBFI BIT(0) /* received data available */
#define UART_IER_ETBEI BIT(1) /* transmitter holding register empty */
#define UART_IER_ELSI BIT(2)  /* receiver line status */
#define UART_IER_EDSSI BIT(3) /* modem status */
#define UART_IER_VALID 0x0fu

#define UART_IIR_NONE 0x01u
#define UART_IIR_MODEM 0x00u
#define UART_IIR_THRE 0x02u
#define UART_IIR_DATA 0x04u
#define UART_IIR_LINE 0x06u
#define UART_IIR_TIMEOUT 0x0cu
#define UART_IIR_FIFO 0xc0u

#define UART_FCR_ENABLE BIT(0)
#define UART_FCR_CLEAR_RX BIT(1)
#define UART_FCR_TRIGGER_SHIFT 6

#define UART_LCR_DLAB BIT(7)

#define UART_MCR_DTR BIT(0)
#define UART_MCR_RTS BIT(1)
#define UART_MCR_OUT1 BIT(2)
#define UART_MCR_OUT2 BIT(3)
#define UART_MCR_LOOP BIT(4)
#define UART_MCR_VALID 0x1fu

#define UART_LSR_DR BIT(0)
#define UART_LSR_OE BIT(1)
#define UART_LSR_ERRORS 0x1eu
#define UART_LSR_THRE BIT(5)
#define UART_LSR_TEMT BIT(6)
#define UART_LSR_EMPTY (UART_LSR_THRE | UART_LSR_TEMT)

#define UART_MSR_DCTS BIT(0)
#define UART_MSR_DDSR BIT(1)
#define UART_MSR_TERI BIT(2)
#define UART_MSR_DDCD BIT(3)
#define UART_MSR_DELTAS 0x0fu
#define UART_MSR_CTS BIT(4)
#define UART_MSR_DSR BIT(5)
#define UART_MSR_RI BIT(6)
#define UART_MSR_DCD BIT(7)

#define UART_FIFO 16u

static const uint8_t rx_triggers[] = { 1, 4, 8, 14 };

/* Free-running positions over a power of two of bytes. */
struct ring {
	uint32_t head; /* next to be put */
	uint32_t tail; /* next to be taken */
	uint32_t size;
	uint8_t *bytes;
};

struct uart {
	/* constant after create */
	struct device dev;
	struct irq_line line;
	struct metrics *metrics;

	struct lock lock;
	/* under lock */
	uint8_t ier, fcr, lcr, mcr, scr, dll, dlm;
	uint8_t msr_deltas;
	bool thre_pending; /* these two only count while ETBEI is set */
	bool thre_acked;   /* the driver reads IIR to acknowledge THRE */
	bool irq_level;
	struct ring fifo;
	struct ring input;
	bool input_paused; /* the console stopped reading: no room */
	/* written under lock; what is read without it is what a read at that moment returns */
	_Atomic uint8_t lsr;
	uint8_t fifo_bytes[UART_FIFO];
	uint8_t input_bytes[LIMIT_SERIAL_INPUT];

	/* has its own rules */
	struct console console;
};

static struct uart *to_uart(struct device *d)
{
	return (struct uart *)d;
}

/* ---- rings -------------------------------------------------------------------------------- */

static uint32_t ring_used(const struct ring *r)
{
	return r->head - r->tail;
}

static uint32_t ring_free(const struct ring *r)
{
	return r->size - ring_used(r);
}

static void ring_put(struct ring *r, uint8_t byte)
{
	r->bytes[r->head++ & (r->size - 1)] = byte;
}

static uint8_t ring_take(struct ring *r)
{
	return r->bytes[r->tail++ & (r->size - 1)];
}

/* ---- the FIFO and LSR --------------------------------------------------------------------- */

static uint8_t lsr(const struct uart *u)
{
	return atomic_load_explicit(&u->lsr, memory_order_relaxed);
}

/* DR follows the FIFO. */
static void set_lsr_locked(struct uart *u, uint8_t errors) TSA_REQUIRES(u->lock)
{
	uint8_t value = UART_LSR_EMPTY | (ring_used(&u->fifo) ? UART_LSR_DR : 0) | errors;

	atomic_store_explicit(&u->lsr, value, memory_order_relaxed);
}

static uint8_t lsr_errors_locked(const struct uart *u) TSA_REQUIRES(u->lock)
{
	return lsr(u) & UART_LSR_ERRORS;
}

static uint32_t fifo_depth_locked(const struct uart *u) TSA_REQUIRES(u->lock)
{
	return u->fcr & UART_FCR_ENABLE ? UART_FIFO : 1;
}

/* ---- interrupts --------------------------------------------------------------------------- */

/*
 * The interrupt of highest priority. A FIFO below its trigger level counts as
 * timed out at once: no more bytes are on their way at any baud rate.
 */
static uint8_t interrupt_id_locked(const struct uart *u) TSA_REQUIRES(u->lock)
{
	uint32_t received = ring_used(&u->fifo);

	if ((u->ier & UART_IER_ELSI) && lsr_errors_locked(u))
		return UART_IIR_LINE;
	if ((u->ier & UART_IER_ERBFI) && received) {
		if ((u->fcr & UART_FCR_ENABLE) &&
		    received < rx_triggers[u->fcr >> UART_FCR_TRIGGER_SHIFT])
			return UART_IIR_TIMEOUT;
		return UART_IIR_DATA;
	}
	if ((u->ier & UART_IER_ETBEI) && u->thre_pending)
		return UART_IIR_THRE;
	if ((u->ier & UART_IER_EDSSI) && u->msr_deltas)
		return UART_IIR_MODEM;
	return UART_IIR_NONE;
}

/* The line follows the interrupt, and is driven only when it changes. */
static void update_irq_locked(struct uart *u) TSA_REQUIRES(u->lock)
{
	bool level = interrupt_id_locked(u) != UART_IIR_NONE;

	if (level == u->irq_level)
		return;
	u->irq_level = level;
	irq_line_set(&u->line, level);
}

/* ---- receiving ---------------------------------------------------------------------------- */

/* Moves input into the FIFO, which has changed; in loopback the serial input is cut off. */
static void refill_locked(struct uart *u) TSA_REQUIRES(u->lock)
{
	while (!(u->mcr & UART_MCR_LOOP) && ring_used(&u->input) &&
	       ring_used(&u->fifo) < fifo_depth_locked(u))
		ring_put(&u->fifo, ring_take(&u->input));
	set_lsr_locked(u, lsr_errors_locked(u));
	if (u->input_paused && ring_free(&u->input) >= LIMIT_SERIAL_INPUT / 2) {
		u->input_paused = false;
		console_want_input(&u->console);
	}
}

static uint8_t read_data_locked(struct uart *u) TSA_REQUIRES(u->lock)
{
	uint8_t byte;

	if (!ring_used(&u->fifo)) {
		metric_count(&u->console.counts.missed_read_count);
		return 0;
	}
	byte = ring_take(&u->fifo);
	metric_count(&u->console.counts.read_count);
	refill_locked(u);
	update_irq_locked(u);
	return byte;
}

size_t uart16550_receive(struct device *d, const uint8_t *data, size_t n)
{
	struct uart *u = to_uart(d);
	size_t taken = 0;

	lock_take(&u->lock);
	while (taken < n && ring_free(&u->input))
		ring_put(&u->input, data[taken++]);
	refill_locked(u);
	update_irq_locked(u);
	lock_release(&u->lock);
	return taken;
}

/* ---- transmitting ------------------------------------------------------------------------- */

/* A full FIFO keeps what it has; without one the new byte destroys the old (NS16550A, LSR). */
static void loop_back_locked(struct uart *u, uint8_t byte) TSA_REQUIRES(u->lock)
{
	bool is_full = ring_used(&u->fifo) == fifo_depth_locked(u);

	if (is_full && !(u->fcr & UART_FCR_ENABLE))
		(void)ring_take(&u->fifo);
	if (ring_used(&u->fifo) < fifo_depth_locked(u))
		ring_put(&u->fifo, byte);
	set_lsr_locked(u, lsr_errors_locked(u) | (is_full ? UART_LSR_OE : 0));
	update_irq_locked(u);
}

/*
 * The register is empty again as soon as it was written. A driver that does
 * not read IIR acknowledges by writing, and waits for the line to fall and
 * rise; for one that does, the line rises once per acknowledgement.
 */
static void write_data_locked(struct uart *u, uint8_t byte) TSA_REQUIRES(u->lock)
{
	if ((u->ier & UART_IER_ETBEI) && u->thre_pending && !u->thre_acked) {
		u->thre_pending = false;
		update_irq_locked(u);
	}
	if (u->mcr & UART_MCR_LOOP)
		loop_back_locked(u, byte);
	else
		console_send_locked(&u->console, byte);
	if ((u->ier & UART_IER_ETBEI) && !u->thre_pending) {
		u->thre_pending = true;
		update_irq_locked(u);
	}
}

/* ---- registers ---------------------------------------------------------------------------- */

static uint8_t modem_inputs_locked(const struct uart *u) TSA_REQUIRES(u->lock)
{
	if (!(u->mcr & UART_MCR_LOOP))
		return UART_MSR_CTS | UART_MSR_DSR | UART_MSR_DCD;
	return (u->mcr & UART_MCR_RTS ? UART_MSR_CTS : 0) |
	       (u->mcr & UART_MCR_DTR ? UART_MSR_DSR : 0) |
	       (u->mcr & UART_MCR_OUT1 ? UART_MSR_RI : 0) |
	       (u->mcr & UART_MCR_OUT2 ? UART_MSR_DCD : 0);
}

static void write_mcr_locked(struct uart *u, uint8_t value) TSA_REQUIRES(u->lock)
{
	uint8_t old = modem_inputs_locked(u);
	uint8_t now;

	u->mcr = value & UART_MCR_VALID;
	now = modem_inputs_locked(u);
	u->msr_deltas |= (uint8_t)((old ^ now) >> 4) &
			 (UART_MSR_DCTS | UART_MSR_DDSR | UART_MSR_DDCD);
	if (old & ~now & UART_MSR_RI)
		u->msr_deltas |= UART_MSR_TERI;
	refill_locked(u);
	update_irq_locked(u);
}

static void write_fcr_locked(struct uart *u, uint8_t value) TSA_REQUIRES(u->lock)
{
	bool changes_mode = (u->fcr ^ value) & UART_FCR_ENABLE;

	/* The other bits are only programmed when bit 0 is one. */
	if (changes_mode || ((value & UART_FCR_ENABLE) && (value & UART_FCR_CLEAR_RX)))
		u->fifo.tail = u->fifo.head;
	u->fcr = value & UART_FCR_ENABLE ? value & (0xc0u | UART_FCR_ENABLE) : 0;
	refill_locked(u);
	update_irq_locked(u);
}

static void write_ier_locked(struct uart *u, uint8_t value) TSA_REQUIRES(u->lock)
{
	if (value & ~u->ier & UART_IER_ETBEI) {
		u->thre_pending = true;
		u->thre_acked = false;
	}
	u->ier = value & UART_IER_VALID;
	update_irq_locked(u);
}

static uint8_t read_iir_locked(struct uart *u) TSA_REQUIRES(u->lock)
{
	uint8_t id = interrupt_id_locked(u);

	if (id == UART_IIR_THRE) {
		u->thre_pending = false;
		u->thre_acked = true;
		update_irq_locked(u);
	}
	return id | (u->fcr & UART_FCR_ENABLE ? UART_IIR_FIFO : 0);
}

/* Clears errors. */
static uint8_t read_lsr_locked(struct uart *u) TSA_REQUIRES(u->lock)
{
	uint8_t value = lsr(u);

	set_lsr_locked(u, 0);
	update_irq_locked(u);
	return value;
}

static uint8_t read_msr_locked(struct uart *u) TSA_REQUIRES(u->lock)
{
	uint8_t msr = modem_inputs_locked(u) | u->msr_deltas;

	u->msr_deltas = 0;
	update_irq_locked(u);
	return msr;
}

static uint8_t read_locked(struct uart *u, enum uart_reg reg) TSA_REQUIRES(u->lock)
{
	bool dlab = u->lcr & UART_LCR_DLAB;

	switch (reg) {
	case UART_REG_DATA:
		return dlab ? u->dll : read_data_locked(u);
	case UART_REG_IER:
		return dlab ? u->dlm : u->ier;
	case UART_REG_IIR:
		return read_iir_locked(u);
	case UART_REG_LCR:
		return u->lcr;
	case UART_REG_MCR:
		return u->mcr;
	case UART_REG_LSR:
		return read_lsr_locked(u);
	case UART_REG_MSR:
		return read_msr_locked(u);
	case UART_REG_SCR:
		return u->scr;
	}
	return 0xff;
}

/* Anything but data to send. */
static __attribute__((noinline)) void write_locked(struct uart *u, enum uart_reg reg,
						   uint8_t value) TSA_REQUIRES(u->lock)
{
	switch (reg) {
	case UART_REG_DATA:
		u->dll = value;
		break;
	case UART_REG_IER:
		if (u->lcr & UART_LCR_DLAB)
			u->dlm = value;
		else
			write_ier_locked(u, value);
		break;
	case UART_REG_IIR:
		write_fcr_locked(u, value);
		break;
	case UART_REG_LCR:
		u->lcr = value;
		break;
	case UART_REG_MCR:
		write_mcr_locked(u, value);
		break;
	case UART_REG_LSR: /* read-only */
	case UART_REG_MSR:
		break;
	case UART_REG_SCR:
		u->scr = value;
		break;
	}
}

static __attribute__((noinline)) uint64_t read_register(struct uart *u, enum uart_reg reg)
{
	uint8_t value;

	lock_take(&u->lock);
	value = read_locked(u, reg);
	lock_release(&u->lock);
	return value;
}

static uint64_t uart_read(void *device, uint64_t offset, unsigned width)
{
	struct uart *u = device;
	uint8_t status = lsr(u);

	if (offset == UART_REG_LSR && !(status & UART_LSR_ERRORS))
		return status;
	return read_register(u, (enum uart_reg)(offset & 7));
}

static enum bus_action uart_write(void *device, uint64_t offset, unsigned width, uint64_t value)
{
	struct uart *u = device;

	lock_take(&u->lock);
	if (offset == UART_REG_DATA && !(u->lcr & UART_LCR_DLAB))
		write_data_locked(u, (uint8_t)value);
	else
		write_locked(u, (enum uart_reg)(offset & 7), (uint8_t)value);
	lock_release(&u->lock);
	return BUS_DONE;
}

/* ---- host side ---------------------------------------------------------------------------- */

static void on_input(void *user, const uint8_t *data, size_t n)
{
	struct uart *u = user;

	(void)uart16550_receive(&u->dev, data, n);
}

/* When there is no room, a guest that reads will ask for input. */
static size_t input_room(void *user)
{
	struct uart *u = user;
	size_t room;

	lock_take(&u->lock);
	room = ring_free(&u->input);
	u->input_paused = room == 0;
	lock_release(&u->lock);
	return room;
}

static const struct console_ops console_ops = {
	.input = on_input,
	.room = input_room,
};

static int uart_start(struct device *d, struct error *err)
{
	struct uart *u = to_uart(d);
	int ret = console_start(&u->console, err);

	d->thread = u->console.thread;
	return ret;
}

static void uart_quiesce(struct device *d)
{
	console_quiesce(&to_uart(d)->console);
}

static void uart_unquiesce(struct device *d)
{
	console_unquiesce(&to_uart(d)->console);
}

static const char *uart_status(const struct device *d)
{
	return "active";
}

static void uart_destroy(struct device *d)
{
	struct uart *u = to_uart(d);

	if (!u)
		return;
	console_fini(&u->console);
	if (u->metrics)
		metrics_remove_group(u->metrics, &u->console.counts);
	lock_fini(&u->lock);
	free(u);
}

/* ---- create ------------------------------------------------------------------------------- */

static const struct metric_field uart_fields[] = {
	METRIC(struct console_metrics, error_count),
	METRIC(struct console_metrics, flush_count),
	METRIC(struct console_metrics, missed_read_count),
	METRIC(struct console_metrics, missed_write_count),
	METRIC(struct console_metrics, read_count),
	METRIC(struct console_metrics, write_count),
	METRIC(struct console_metrics, rate_limiter_dropped_bytes),
	{ NULL },
};

static const struct device_ops uart_device_ops = {
	.start = uart_start,
	.quiesce = uart_quiesce,
	.unquiesce = uart_unquiesce,
	.status = uart_status,
	.destroy = uart_destroy,
};

struct device *uart16550_create(const struct device_env *env, const struct serial_config *config,
				const struct irq_line *line, struct error *err)
{
	struct uart *u = calloc(1, sizeof(*u));
	int ret;

	if (!u) {
		error_set_errno(err, -ENOMEM, "serial: cannot be made");
		return NULL;
	}
	u->dev.ops = &uart_device_ops;
	u->dev.type = "uart16550";
	u->dev.gsi = -1;
	snprintf(u->dev.id, sizeof(u->dev.id), "serial");
	u->line = *line;
	atomic_init(&u->lsr, UART_LSR_EMPTY);
	lock_init(&u->lock, LOCK_LEVEL_DEVICE, "uart16550", u->dev.id);
	u->fifo = (struct ring){ .size = UART_FIFO, .bytes = u->fifo_bytes };
	u->input = (struct ring){ .size = LIMIT_SERIAL_INPUT, .bytes = u->input_bytes };
	ret = console_init(&u->console, u->dev.id, config, &u->lock, &console_ops, u, err);
	if (ret == 0 && env->metrics) {
		ret = metrics_add_group(env->metrics, "uart", uart_fields, &u->console.counts);
		if (ret < 0)
			error_set_errno(err, ret, "serial: cannot count");
		else
			u->metrics = env->metrics;
	}
	if (ret == 0)
		return &u->dev;
	uart_destroy(&u->dev);
	return NULL;
}

const struct bus_ops uart16550_bus_ops = {
	.read = uart_read,
	.write = uart_write,
};
