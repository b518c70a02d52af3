/*
 * i8042 keyboard controller, and the keyboard on its first port.
 *
 * Bytes for the guest wait in a queue of 16, each with the status bits it is
 * shown with; one is in the output buffer at a time and raises an edge on
 * IRQ 1 when it gets there. The second port answers as one without a device.
 *
 * Threads: registers on any vCPU thread, i8042_ctrl_alt_del() on any.
 * Locks: k->lock (level DEVICE). The line is pulsed with it held.
 * Not here: a mouse, scan code set 3, the speaker at port 0x61.
 */
#include "devices/i8042.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "vmm/base/bits.h"
#include "vmm/base/lock.h"
#include "vmm/metrics.h"

enum i8042_reg {
	I8042_REG_DATA = 0,
	I8042_REG_STATUS = 4, /* commands are written here */
};

#define I8042_STATUS_OBF BIT(0)  /* a byte for the guest */
#define I8042_STATUS_SYS BIT(2)  /* self test passed */
#define I8042_STATUS_CMD BIT(3)  /* the last write was a command */
#define I8042_STATUS_KEYL BIT(4) /* not locked */
#define I8042_STATUS_AUX BIT(5)  /* the byte comes from the second port */
#define I8042_STATUS_TIMEOUT BIT(6)

/* The command byte. */
#define I8042_CB_KBD_INT BIT(0)
#define I8042_CB_SYS BIT(2)
#define I8042_CB_KBD_OFF BIT(4)
#define I8042_CB_AUX_OFF BIT(5)
#define I8042_CB_TRANSLATE BIT(6)
#define I8042_CB_VALID 0x7fu

enum i8042_command {
	I8042_CMD_READ_RAM = 0x20, /* .. 0x3f; byte 0 is the command byte */
	I8042_CMD_WRITE_RAM = 0x60, /* .. 0x7f */
	I8042_CMD_PASSWORD = 0xa4,
	I8042_CMD_AUX_DISABLE = 0xa7,
	I8042_CMD_AUX_ENABLE = 0xa8,
	I8042_CMD_AUX_TEST = 0xa9,
	I8042_CMD_SELF_TEST = 0xaa,
	I8042_CMD_KBD_TEST = 0xab,
	I8042_CMD_KBD_DISABLE = 0xad,
	I8042_CMD_KBD_ENABLE = 0xae,
	I8042_CMD_READ_INPUT = 0xc0,
	I8042_CMD_READ_OUTPUT = 0xd0,
	I8042_CMD_WRITE_OUTPUT = 0xd1,
	I8042_CMD_KBD_LOOP = 0xd2,
	I8042_CMD_AUX_LOOP = 0xd3,
	I8042_CMD_AUX_SEND = 0xd4,
	I8042_CMD_TEST_INPUTS = 0xe0,
	I8042_CMD_PULSE = 0xf0, /* .. 0xff; a zero in bit 0 pulses the reset line */
};

#define I8042_RAM_BYTES 32u
#define I8042_SELF_TEST_OK 0x55u
#define I8042_NO_PASSWORD 0xf1u
#define I8042_PORT_TEST_OK 0x00u
#define I8042_PORT_TEST_STUCK 0x02u /* clock line high: nothing is plugged in */
#define I8042_INPUT_PORT 0x80u      /* keyboard not inhibited */
#define I8042_OUTPUT_NO_RESET BIT(0)
#define I8042_OUTPUT_A20 BIT(1)
#define I8042_OUTPUT_KBD_FULL BIT(4)

enum kbd_command {
	KBD_CMD_SET_LEDS = 0xed,
	KBD_CMD_ECHO = 0xee,
	KBD_CMD_SCAN_SET = 0xf0,
	KBD_CMD_GET_ID = 0xf2,
	KBD_CMD_SET_RATE = 0xf3,
	KBD_CMD_ENABLE = 0xf4,
	KBD_CMD_DISABLE = 0xf5,
	KBD_CMD_DEFAULTS = 0xf6,
	KBD_CMD_RESEND = 0xfe,
	KBD_CMD_RESET = 0xff,
};

#define KBD_ACK 0xfau
#define KBD_NAK 0xfeu
#define KBD_RESET_OK 0xaau

#define QUEUE_BYTES 16u

/* left Ctrl, left Alt and Delete, down and up */
static const uint8_t ctrl_alt_del_set1[] = { 0x1d, 0x38, 0xe0, 0x53, 0xe0, 0xd3, 0xb8, 0x9d };
static const uint8_t ctrl_alt_del_set2[] = { 0x14, 0x11, 0xe0, 0x71, 0xe0, 0xf0,
					     0x71, 0xf0, 0x11, 0xf0, 0x14 };

struct i8042_metrics {
	metric error_count;
	metric missed_read_count;
	metric missed_write_count;
	metric read_count;
	metric reset_count;
	metric write_count;
};

struct i8042 {
	/* constant after create */
	struct device dev;
	struct irq_line line;
	struct metrics *metrics;

	struct lock lock;
	/* under lock */
	uint16_t queue[QUEUE_BYTES]; /* byte, and status bits above it */
	uint32_t head, tail;         /* free-running */
	uint8_t last_read;
	uint8_t ram[I8042_RAM_BYTES];
	uint8_t status; /* SYS and CMD only */
	uint8_t a20;
	uint8_t command;     /* controller command that waits for its byte; 0: none */
	uint8_t kbd_command; /* the same of the keyboard */
	uint8_t scan_set;
	bool scanning;

	/* under lock, read by any thread */
	struct i8042_metrics counts;
};

static struct i8042 *to_i8042(struct device *d)
{
	return (struct i8042 *)d;
}

/* ---- the queue to the guest --------------------------------------------------------------- */

static uint32_t queued_locked(const struct i8042 *k) TSA_REQUIRES(k->lock)
{
	return k->head - k->tail;
}

/* A byte is in the output buffer: one edge, if the guest wants it. */
static void raise_locked(struct i8042 *k) TSA_REQUIRES(k->lock)
{
	if (queued_locked(k) && (k->ram[0] & I8042_CB_KBD_INT))
		irq_line_pulse(&k->line);
}

static void put_locked(struct i8042 *k, uint8_t byte, uint8_t status) TSA_REQUIRES(k->lock)
{
	if (queued_locked(k) == QUEUE_BYTES) {
		metric_count(&k->counts.error_count);
		return;
	}
	k->queue[k->head++ % QUEUE_BYTES] = (uint16_t)(byte | status << 8);
	if (queued_locked(k) == 1)
		raise_locked(k);
}

static void reply_locked(struct i8042 *k, uint8_t byte) TSA_REQUIRES(k->lock)
{
	put_locked(k, byte, 0);
}

static uint8_t read_data_locked(struct i8042 *k) TSA_REQUIRES(k->lock)
{
	if (!queued_locked(k)) {
		metric_count(&k->counts.missed_read_count);
		return k->last_read;
	}
	metric_count(&k->counts.read_count);
	k->last_read = (uint8_t)k->queue[k->tail++ % QUEUE_BYTES];
	raise_locked(k);
	return k->last_read;
}

static uint8_t read_status_locked(const struct i8042 *k) TSA_REQUIRES(k->lock)
{
	uint8_t status = k->status | I8042_STATUS_KEYL;

	if (queued_locked(k))
		status |= I8042_STATUS_OBF | (uint8_t)(k->queue[k->tail % QUEUE_BYTES] >> 8);
	return status;
}

/* ---- the keyboard ------------------------------------------------------------------------- */

static void kbd_defaults_locked(struct i8042 *k, bool scanning) TSA_REQUIRES(k->lock)
{
	k->scan_set = 2;
	k->scanning = scanning;
}

/* Codes of scan set 2 that the controller turns into set 1. */
static uint8_t translate_locked(const struct i8042 *k, uint8_t byte) TSA_REQUIRES(k->lock)
{
	if (!(k->ram[0] & I8042_CB_TRANSLATE))
		return byte;
	switch (byte) {
	case 0x01:
		return 0x43;
	case 0x02:
		return 0x41;
	case 0x83:
		return 0x41;
	default:
		return byte;
	}
}

static void kbd_parameter_locked(struct i8042 *k, uint8_t command, uint8_t byte)
	TSA_REQUIRES(k->lock)
{
	if (command == KBD_CMD_SCAN_SET && byte > 2) {
		reply_locked(k, KBD_NAK);
		return;
	}
	reply_locked(k, KBD_ACK);
	if (command != KBD_CMD_SCAN_SET)
		return;
	if (byte == 0)
		reply_locked(k, translate_locked(k, k->scan_set));
	else
		k->scan_set = byte;
}

static void kbd_write_locked(struct i8042 *k, uint8_t byte) TSA_REQUIRES(k->lock)
{
	uint8_t waiting = k->kbd_command;

	/* Talking to the keyboard switches its port on. */
	k->ram[0] &= (uint8_t)~I8042_CB_KBD_OFF;
	k->kbd_command = 0;
	if (waiting) {
		kbd_parameter_locked(k, waiting, byte);
		return;
	}
	switch (byte) {
	case KBD_CMD_SET_LEDS:
	case KBD_CMD_SCAN_SET:
	case KBD_CMD_SET_RATE:
		k->kbd_command = byte;
		reply_locked(k, KBD_ACK);
		break;
	case KBD_CMD_ECHO:
		reply_locked(k, KBD_CMD_ECHO);
		break;
	case KBD_CMD_GET_ID:
		reply_locked(k, KBD_ACK);
		reply_locked(k, 0xab);
		reply_locked(k, translate_locked(k, 0x83));
		break;
	case KBD_CMD_ENABLE:
		k->scanning = true;
		reply_locked(k, KBD_ACK);
		break;
	case KBD_CMD_DISABLE:
		kbd_defaults_locked(k, false);
		reply_locked(k, KBD_ACK);
		break;
	case KBD_CMD_DEFAULTS:
		kbd_defaults_locked(k, true);
		reply_locked(k, KBD_ACK);
		break;
	case KBD_CMD_RESEND:
		reply_locked(k, k->last_read);
		break;
	case KBD_CMD_RESET:
		kbd_defaults_locked(k, true);
		reply_locked(k, KBD_ACK);
		reply_locked(k, KBD_RESET_OK);
		break;
	default:
		metric_count(&k->counts.missed_write_count);
		reply_locked(k, KBD_NAK);
		break;
	}
}

int i8042_ctrl_alt_del(struct device *d)
{
	struct i8042 *k = to_i8042(d);
	const uint8_t *codes = ctrl_alt_del_set2;
	size_t n = sizeof(ctrl_alt_del_set2), i;
	int ret = 0;

	lock_take(&k->lock);
	if ((k->ram[0] & I8042_CB_TRANSLATE) || k->scan_set == 1) {
		codes = ctrl_alt_del_set1;
		n = sizeof(ctrl_alt_del_set1);
	}
	if (!k->scanning || (k->ram[0] & I8042_CB_KBD_OFF))
		ret = -EAGAIN;
	else if (QUEUE_BYTES - queued_locked(k) < n)
		ret = -ENOSPC;
	for (i = 0; ret == 0 && i < n; i++)
		reply_locked(k, codes[i]);
	lock_release(&k->lock);
	return ret;
}

/* ---- the controller ----------------------------------------------------------------------- */

static enum bus_action reset(struct i8042 *k)
{
	metric_count(&k->counts.reset_count);
	return BUS_GUEST_RESET;
}

static void write_ram_locked(struct i8042 *k, uint8_t at, uint8_t byte) TSA_REQUIRES(k->lock)
{
	uint8_t old = k->ram[at];

	k->ram[at] = at == 0 ? byte & I8042_CB_VALID : byte;
	if (at != 0)
		return;
	k->status = (uint8_t)((k->status & ~I8042_STATUS_SYS) |
			      (byte & I8042_CB_SYS ? I8042_STATUS_SYS : 0));
	if (~old & byte & I8042_CB_KBD_INT)
		raise_locked(k);
}

/* The byte that a controller command waited for. */
static enum bus_action parameter_locked(struct i8042 *k, uint8_t command, uint8_t byte)
	TSA_REQUIRES(k->lock)
{
	switch (command) {
	case I8042_CMD_WRITE_OUTPUT:
		k->a20 = byte & I8042_OUTPUT_A20;
		if (!(byte & I8042_OUTPUT_NO_RESET))
			return reset(k);
		break;
	case I8042_CMD_KBD_LOOP:
	case I8042_CMD_AUX_LOOP: /* no second port: the byte does not look like its */
		reply_locked(k, byte);
		break;
	case I8042_CMD_AUX_SEND: /* nobody answers there */
		put_locked(k, KBD_NAK, I8042_STATUS_AUX | I8042_STATUS_TIMEOUT);
		break;
	default:
		write_ram_locked(k, command & (I8042_RAM_BYTES - 1), byte);
		break;
	}
	return BUS_DONE;
}

static void self_test_locked(struct i8042 *k) TSA_REQUIRES(k->lock)
{
	k->tail = k->head;
	k->kbd_command = 0;
	k->status |= I8042_STATUS_SYS;
	k->ram[0] |= I8042_CB_SYS;
	reply_locked(k, I8042_SELF_TEST_OK);
}

/* Commands that stand alone, one value each. */
static void command_locked(struct i8042 *k, uint8_t command) TSA_REQUIRES(k->lock)
{
	switch (command) {
	case I8042_CMD_PASSWORD:
		reply_locked(k, I8042_NO_PASSWORD);
		break;
	case I8042_CMD_AUX_DISABLE:
		k->ram[0] |= I8042_CB_AUX_OFF;
		break;
	case I8042_CMD_AUX_ENABLE:
		k->ram[0] &= (uint8_t)~I8042_CB_AUX_OFF;
		break;
	case I8042_CMD_AUX_TEST:
		reply_locked(k, I8042_PORT_TEST_STUCK);
		break;
	case I8042_CMD_SELF_TEST:
		self_test_locked(k);
		break;
	case I8042_CMD_KBD_TEST:
		reply_locked(k, I8042_PORT_TEST_OK);
		break;
	case I8042_CMD_KBD_DISABLE:
		k->ram[0] |= I8042_CB_KBD_OFF;
		break;
	case I8042_CMD_KBD_ENABLE:
		k->ram[0] &= (uint8_t)~I8042_CB_KBD_OFF;
		break;
	case I8042_CMD_READ_INPUT:
		reply_locked(k, I8042_INPUT_PORT);
		break;
	case I8042_CMD_READ_OUTPUT:
		reply_locked(k, I8042_OUTPUT_NO_RESET | k->a20 |
				       (queued_locked(k) ? I8042_OUTPUT_KBD_FULL : 0));
		break;
	case I8042_CMD_WRITE_OUTPUT:
	case I8042_CMD_KBD_LOOP:
	case I8042_CMD_AUX_LOOP:
	case I8042_CMD_AUX_SEND:
		k->command = command;
		break;
	case I8042_CMD_TEST_INPUTS:
		reply_locked(k, 0);
		break;
	default:
		metric_count(&k->counts.missed_write_count);
		break;
	}
}

static enum bus_action write_command_locked(struct i8042 *k, uint8_t command)
	TSA_REQUIRES(k->lock)
{
	k->status |= I8042_STATUS_CMD;
	k->command = 0;
	if (command >= I8042_CMD_PULSE) {
		if (!(command & I8042_OUTPUT_NO_RESET))
			return reset(k);
	} else if (command >= I8042_CMD_READ_RAM &&
		   command < I8042_CMD_READ_RAM + I8042_RAM_BYTES) {
		reply_locked(k, k->ram[command & (I8042_RAM_BYTES - 1)]);
	} else if (command >= I8042_CMD_WRITE_RAM &&
		   command < I8042_CMD_WRITE_RAM + I8042_RAM_BYTES) {
		k->command = command;
	} else {
		command_locked(k, command);
	}
	return BUS_DONE;
}

static enum bus_action write_data_locked(struct i8042 *k, uint8_t byte) TSA_REQUIRES(k->lock)
{
	uint8_t command = k->command;

	k->status &= (uint8_t)~I8042_STATUS_CMD;
	k->command = 0;
	if (command)
		return parameter_locked(k, command, byte);
	kbd_write_locked(k, byte);
	return BUS_DONE;
}

/* ---- the bus ------------------------------------------------------------------------------ */

static uint64_t i8042_read(void *device, uint64_t offset, unsigned width)
{
	struct i8042 *k = device;
	uint64_t value = 0xff;

	lock_take(&k->lock);
	if (offset == I8042_REG_DATA)
		value = read_data_locked(k);
	else if (offset == I8042_REG_STATUS)
		value = read_status_locked(k);
	else
		metric_count(&k->counts.missed_read_count);
	lock_release(&k->lock);
	return value;
}

static enum bus_action i8042_write(void *device, uint64_t offset, unsigned width, uint64_t value)
{
	struct i8042 *k = device;
	enum bus_action action = BUS_DONE;

	lock_take(&k->lock);
	if (offset == I8042_REG_DATA || offset == I8042_REG_STATUS)
		metric_count(&k->counts.write_count);
	else
		metric_count(&k->counts.missed_write_count);
	if (offset == I8042_REG_DATA)
		action = write_data_locked(k, (uint8_t)value);
	else if (offset == I8042_REG_STATUS)
		action = write_command_locked(k, (uint8_t)value);
	lock_release(&k->lock);
	return action;
}

static const char *i8042_status(const struct device *d)
{
	return "active";
}

static void i8042_destroy(struct device *d)
{
	struct i8042 *k = to_i8042(d);

	if (!k)
		return;
	if (k->metrics)
		metrics_remove_group(k->metrics, &k->counts);
	lock_fini(&k->lock);
	free(k);
}

static const struct metric_field i8042_fields[] = {
	METRIC(struct i8042_metrics, error_count),
	METRIC(struct i8042_metrics, missed_read_count),
	METRIC(struct i8042_metrics, missed_write_count),
	METRIC(struct i8042_metrics, read_count),
	METRIC(struct i8042_metrics, reset_count),
	METRIC(struct i8042_metrics, write_count),
	{ NULL },
};

static const struct device_ops i8042_device_ops = {
	.status = i8042_status,
	.destroy = i8042_destroy,
};

struct device *i8042_create(const struct device_env *env, const struct irq_line *line,
			    struct error *err)
{
	struct i8042 *k = calloc(1, sizeof(*k));
	int ret;

	if (!k) {
		error_set_errno(err, -ENOMEM, "i8042: cannot be made");
		return NULL;
	}
	k->dev.ops = &i8042_device_ops;
	k->dev.type = "i8042";
	k->dev.gsi = -1;
	snprintf(k->dev.id, sizeof(k->dev.id), "i8042");
	k->line = *line;
	lock_init(&k->lock, LOCK_LEVEL_DEVICE, "i8042", k->dev.id);
	/* What firmware leaves behind. */
	k->ram[0] = I8042_CB_KBD_INT | I8042_CB_SYS | I8042_CB_AUX_OFF | I8042_CB_TRANSLATE;
	k->status = I8042_STATUS_SYS;
	k->a20 = I8042_OUTPUT_A20;
	k->scan_set = 2;
	k->scanning = true;
	if (env->metrics) {
		ret = metrics_add_group(env->metrics, "i8042", i8042_fields, &k->counts);
		if (ret < 0) {
			error_set_errno(err, ret, "i8042: cannot count");
			i8042_destroy(&k->dev);
			return NULL;
		}
		k->metrics = env->metrics;
	}
	return &k->dev;
}

const struct bus_ops i8042_bus_ops = {
	.read = i8042_read,
	.write = i8042_write,
};
