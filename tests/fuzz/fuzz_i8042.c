/*
 * The keyboard controller against a model of one that answers from tables:
 * random register accesses, and Ctrl-Alt-Del from the host.
 *
 * Promises: status and data are the model's after every step, the queue is
 * bounded and in order, each byte that reaches the output buffer is one edge
 * on IRQ 1 if the guest wants it, and only what resets a PC asks for a reset.
 *
 * Input: steps of 2 bytes: what to do, and a value.
 */
#include "devices/i8042.h"
#include "tests/fuzz/fuzz.h"

#define STEP_BYTES 2
#define MAX_STEPS 1024

#define DATA 0
#define STATUS 4

#define QUEUE 16u
#define RAM 32u

/* of the command byte, which is the first of the RAM */
#define INT 0x01
#define SYS 0x04
#define KBD_OFF 0x10
#define AUX_OFF 0x20
#define TRANSLATE 0x40

struct text {
	uint8_t n;
	uint8_t bytes[11];
};

/* ---- the model ---------------------------------------------------------------------------- */

struct model {
	uint8_t bytes[QUEUE], flags[QUEUE]; /* what is in line, the output buffer first */
	unsigned queued;
	uint8_t last;
	uint8_t ram[RAM];
	uint8_t was_command; /* a bit of the status */
	uint8_t a20;
	uint8_t command, kbd_command; /* that wait for their byte */
	uint8_t scan_set;
	bool scanning;
	uint32_t edges;
	uint64_t lost, resets;
};

/* Commands that answer with one byte, whatever the state. */
static const uint8_t answers[][2] = {
	{ 0xa4, 0xf1 }, { 0xa9, 0x02 }, { 0xaa, 0x55 }, { 0xab, 0x00 }, { 0xc0, 0x80 }, { 0xe0, 0x00 },
};

/* Commands that change the command byte: what they clear and set. */
static const uint8_t switches[][3] = {
	{ 0xa7, 0, AUX_OFF }, { 0xa8, AUX_OFF, 0 }, { 0xad, 0, KBD_OFF }, { 0xae, KBD_OFF, 0 },
	{ 0xaa, 0, SYS },
};

/* What a keyboard answers to its commands: acknowledged, and then? */
static const struct {
	uint8_t command;
	struct text reply;
} replies[] = {
	{ 0xed, { 1, { 0xfa } } }, { 0xee, { 1, { 0xee } } },
	{ 0xf0, { 1, { 0xfa } } }, { 0xf2, { 3, { 0xfa, 0xab, 0x83 } } },
	{ 0xf3, { 1, { 0xfa } } }, { 0xf4, { 1, { 0xfa } } },
	{ 0xf5, { 1, { 0xfa } } }, { 0xf6, { 1, { 0xfa } } },
	{ 0xff, { 2, { 0xfa, 0xaa } } },
};

static const struct text delete_set1 = { 8, { 0x1d, 0x38, 0xe0, 0x53, 0xe0, 0xd3, 0xb8, 0x9d } };
static const struct text delete_set2 = { 11, { 0x14, 0x11, 0xe0, 0x71, 0xe0, 0xf0, 0x71, 0xf0,
					       0x11, 0xf0, 0x14 } };

static void put(struct model *m, uint8_t byte, uint8_t flags)
{
	if (m->queued == QUEUE) {
		m->lost++;
		return;
	}
	m->bytes[m->queued] = byte;
	m->flags[m->queued] = flags;
	m->edges += m->queued++ == 0 && (m->ram[0] & INT);
}

static uint8_t model_read_data(struct model *m)
{
	if (m->queued > 0) {
		m->last = m->bytes[0];
		m->queued--;
		memmove(m->bytes, m->bytes + 1, m->queued);
		memmove(m->flags, m->flags + 1, m->queued);
		m->edges += m->queued > 0 && (m->ram[0] & INT);
	}
	return m->last;
}

static uint8_t model_status(const struct model *m)
{
	return 0x10 | m->was_command | (m->ram[0] & SYS) | (m->queued ? 0x01 | m->flags[0] : 0);
}

static void model_write_ram(struct model *m, unsigned at, uint8_t value)
{
	uint8_t old = m->ram[at];

	m->ram[at] = value;
	if (at > 0)
		return;
	m->ram[0] &= 0x7f;
	m->edges += m->queued > 0 && (value & ~old & INT);
}

/* Returns whether the machine is reset. */
static bool model_command(struct model *m, uint8_t command)
{
	unsigned i;

	m->was_command = 0x08;
	m->command = 0;
	if (command >= 0xf0)
		return !(command & 1);
	if (command == 0xaa) {
		m->queued = 0;
		m->kbd_command = 0;
	}
	for (i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
		if (switches[i][0] == command)
			m->ram[0] = (m->ram[0] & (uint8_t)~switches[i][1]) | switches[i][2];
	for (i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (answers[i][0] == command)
			put(m, answers[i][1], 0);
	if (command == 0xd0)
		put(m, 0x01 | m->a20 | (m->queued ? 0x10 : 0), 0);
	else if ((command & 0xe0) == 0x20)
		put(m, m->ram[command & 0x1f], 0);
	else if ((command & 0xe0) == 0x60 || (command >= 0xd1 && command <= 0xd4))
		m->command = command;
	return false;
}

static uint8_t translated(const struct model *m, uint8_t byte)
{
	if (!(m->ram[0] & TRANSLATE))
		return byte;
	return byte == 0x01 ? 0x43 : byte == 0x02 || byte == 0x83 ? 0x41 : byte;
}

static void model_kbd_parameter(struct model *m, uint8_t command, uint8_t byte)
{
	bool refused = command == 0xf0 && byte > 2;

	put(m, refused ? 0xfe : 0xfa, 0);
	if (command != 0xf0 || refused)
		return;
	if (byte == 0)
		put(m, translated(m, m->scan_set), 0);
	else
		m->scan_set = byte;
}

static void model_kbd_command(struct model *m, uint8_t byte)
{
	unsigned i, k;

	if (byte == 0xed || byte == 0xf0 || byte == 0xf3)
		m->kbd_command = byte;
	if (byte == 0xf5 || byte == 0xf6 || byte == 0xff)
		m->scan_set = 2;
	if (byte == 0xf5)
		m->scanning = false;
	else if (byte == 0xf4 || byte == 0xf6 || byte == 0xff)
		m->scanning = true;
	for (i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		if (replies[i].command != byte)
			continue;
		for (k = 0; k < replies[i].reply.n; k++)
			put(m, translated(m, replies[i].reply.bytes[k]), 0);
		return;
	}
	put(m, byte == 0xfe ? m->last : 0xfe, 0);
}

static bool model_data(struct model *m, uint8_t byte)
{
	uint8_t command = m->command, kbd_command = m->kbd_command;

	m->was_command = 0;
	m->command = 0;
	if (command == 0xd1) {
		m->a20 = byte & 2;
		return !(byte & 1);
	}
	if (command == 0xd2 || command == 0xd3) {
		put(m, byte, 0);
	} else if (command == 0xd4) {
		put(m, 0xfe, 0x60);
	} else if (command) {
		model_write_ram(m, command & 0x1f, byte);
	} else {
		m->ram[0] &= (uint8_t)~KBD_OFF;
		m->kbd_command = 0;
		if (kbd_command)
			model_kbd_parameter(m, kbd_command, byte);
		else
			model_kbd_command(m, byte);
	}
	return false;
}

static bool model_ctrl_alt_del(struct model *m)
{
	bool set1 = (m->ram[0] & TRANSLATE) || m->scan_set == 1;
	const struct text *keys = set1 ? &delete_set1 : &delete_set2;
	unsigned i;

	if (!m->scanning || (m->ram[0] & KBD_OFF) || m->queued + keys->n > QUEUE)
		return false;
	for (i = 0; i < keys->n; i++)
		put(m, keys->bytes[i], 0);
	return true;
}

/* ---- both --------------------------------------------------------------------------------- */

struct machine {
	struct fuzz_line line;
	struct metrics metrics;
	struct device *kbc;
	struct model model;
};

static uint8_t rd(struct machine *m, unsigned port)
{
	uint64_t got = i8042_bus_ops.read(m->kbc, port, 1);

	if (port == DATA)
		require(got == model_read_data(&m->model));
	else
		require(got == (port == STATUS ? model_status(&m->model) : 0xff));
	return (uint8_t)got;
}

static void wr(struct machine *m, unsigned port, uint8_t value)
{
	enum bus_action action = i8042_bus_ops.write(m->kbc, port, 1, value);
	bool resets = false;

	if (port == DATA)
		resets = model_data(&m->model, value);
	else if (port == STATUS)
		resets = model_command(&m->model, value);
	m->model.resets += resets;
	require(action == (resets ? BUS_GUEST_RESET : BUS_DONE));
}

static void step(struct machine *m, uint8_t what, uint8_t value)
{
	switch (what & 7) {
	case 0:
	case 1:
		rd(m, DATA);
		break;
	case 2:
	case 3:
		wr(m, DATA, value);
		break;
	case 4:
	case 5:
		wr(m, STATUS, value);
		break;
	case 6:
		require((i8042_ctrl_alt_del(m->kbc) == 0) == model_ctrl_alt_del(&m->model));
		break;
	default: /* the ports between */
		if (value & 4)
			wr(m, 1 + (value & 3) % 3, value);
		else
			rd(m, 1 + (value & 3) % 3);
		break;
	}
	rd(m, STATUS);
	require(!m->line.level && m->line.calls == 2 * m->line.edges);
	require(m->line.edges == m->model.edges);
}

/* What is in line, then all that is remembered. */
static void read_all(struct machine *m)
{
	unsigned i;

	for (i = 0; rd(m, STATUS) & 1; i++)
		rd(m, DATA);
	require(i <= QUEUE);
	for (i = 0; i < RAM; i++) {
		wr(m, STATUS, (uint8_t)(0x20 + i));
		rd(m, DATA);
	}
	wr(m, STATUS, 0xd0);
	rd(m, DATA);
	require(fuzz_count(&m->metrics, "error_count") == m->model.lost);
	require(fuzz_count(&m->metrics, "reset_count") == m->model.resets);
}

static void build(struct machine *m)
{
	const struct irq_line line = { .ops = &fuzz_line_ops, .chip = &m->line, .gsi = 1 };
	const struct device_env env = { .metrics = &m->metrics };

	m->kbc = i8042_create(&env, &line, NULL);
	require(m->kbc);
	/* as firmware leaves it */
	m->model.ram[0] = INT | SYS | AUX_OFF | TRANSLATE;
	m->model.a20 = 2;
	m->model.scan_set = 2;
	m->model.scanning = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct machine m = { 0 };
	unsigned i;

	build(&m);
	for (i = 0; i < MAX_STEPS && (i + 1) * STEP_BYTES <= size; i++)
		step(&m, data[i * STEP_BYTES], data[i * STEP_BYTES + 1]);
	read_all(&m);
	m.kbc->ops->destroy(m.kbc);
	require(!m.metrics.base);
	return 0;
}
