/*
 * Recorded exits: text to memory, and classes of them.
 *
 * Threads: one. Locks: none.
 */
#include "exit_stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch-x86/layout.h"
#include "vmm/base/bits.h"

#define VIRTIO_INTERRUPT_STATUS 0x060u
#define VIRTIO_STATUS 0x070u

/* ---- text --------------------------------------------------------------------------------- */

static int append(struct exit_stream *s, const struct replay_exit *e)
{
	/* grown to each power of two */
	if ((s->count & (s->count - 1)) == 0) {
		size_t room = s->count ? 2 * s->count : 1;
		struct replay_exit *more = realloc(s->exits, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->exits = more;
	}
	s->exits[s->count++] = *e;
	return 0;
}

/* The words of a line, one after the other; false at its end. */
static bool next_hex(char **line, unsigned long long *ret)
{
	char *end;

	*ret = strtoull(*line, &end, 16);
	if (end == *line)
		return false;
	*line = end;
	return true;
}

static int read_console(struct exit_stream *s, char *line)
{
	struct replay_exit poll = { REPLAY_PIO_READ, 1, 1, 0x3fd, 0x60 };
	struct replay_exit byte = { REPLAY_PIO_WRITE, 1, 1, 0x3f8, 0 };
	unsigned long long value;
	int ret = 0;

	while (ret == 0 && next_hex(&line, &value)) {
		byte.value = value;
		ret = append(s, &poll);
		if (ret == 0)
			ret = append(s, &byte);
	}
	return ret;
}

static int read_accesses(struct exit_stream *s, enum replay_op op, char *line)
{
	unsigned long long address, width, value;
	struct replay_exit e = { .op = (uint8_t)op, .count = 1 };
	int ret = 0;

	if (!next_hex(&line, &address) || !next_hex(&line, &width))
		return -EINVAL;
	e.address = address;
	e.width = (uint8_t)width;
	if (width != 1 && width != 2 && width != 4 && width != 8)
		return -EINVAL;
	if (*line == '*')
		e.count = (uint16_t)strtoul(line + 1, &line, 10);
	while (ret == 0 && next_hex(&line, &value)) {
		e.value = value;
		ret = append(s, &e);
	}
	return ret;
}

static int read_line(struct exit_stream *s, char *line)
{
	switch (line[0]) {
	case '#':
		return 0;
	case 'c':
		return read_console(s, line + 1);
	case 'i':
		return read_accesses(s, REPLAY_PIO_READ, line + 1);
	case 'o':
		return read_accesses(s, REPLAY_PIO_WRITE, line + 1);
	case 'r':
		return read_accesses(s, REPLAY_MMIO_READ, line + 1);
	case 'w':
		return read_accesses(s, REPLAY_MMIO_WRITE, line + 1);
	default:
		return -EINVAL;
	}
}

int exit_stream_read(struct exit_stream *ret, const char *path)
{
	FILE *file = fopen(path, "re");
	char line[1024];
	unsigned number = 0;
	int code = 0;

	memset(ret, 0, sizeof(*ret));
	if (!file) {
		code = -errno;
		perror(path);
		return code;
	}
	while (code == 0 && fgets(line, sizeof(line), file)) {
		number++;
		code = read_line(ret, line);
	}
	fclose(file);
	if (code < 0)
		fprintf(stderr, "%s:%u: not a line of exits\n", path, number);
	return code;
}

void exit_stream_fini(struct exit_stream *s)
{
	free(s->exits);
	memset(s, 0, sizeof(*s));
}

/* ---- classes ------------------------------------------------------------------------------ */

static bool is_pio(const struct replay_exit *e)
{
	return e->op == REPLAY_PIO_READ || e->op == REPLAY_PIO_WRITE;
}

static bool is_port_in(const struct replay_exit *e, uint64_t first, uint64_t count)
{
	return is_pio(e) && e->address - first < count;
}

/* All but what would end or reset the machine. */
static bool is_any(const struct replay_exit *e)
{
	return !is_port_in(e, LAYOUT_ACPI_PM_PORT, LAYOUT_ACPI_PM_PORTS);
}

static bool is_rtc(const struct replay_exit *e)
{
	return is_port_in(e, LAYOUT_RTC_PORT, LAYOUT_RTC_PORTS);
}

static bool is_serial(const struct replay_exit *e)
{
	return is_port_in(e, LAYOUT_SERIAL_PORT, LAYOUT_SERIAL_PORTS);
}

/* Reads: a write of Status resets the device or sets it up, which no guest does often. */
static bool is_virtio_status(const struct replay_exit *e)
{
	uint64_t offset = e->address & (LAYOUT_VIRTIO_BYTES - 1);

	return e->op == REPLAY_MMIO_READ &&
	       (offset == VIRTIO_INTERRUPT_STATUS || offset == VIRTIO_STATUS);
}

static bool is_unknown_port(const struct replay_exit *e)
{
	return is_pio(e) && is_any(e) && !is_rtc(e) && !is_serial(e) &&
	       !is_port_in(e, LAYOUT_I8042_PORT, LAYOUT_I8042_PORTS);
}

/* Of the stream, what a device answers. */
static bool is_known(const struct replay_exit *e)
{
	return is_any(e) && !is_unknown_port(e);
}

static const struct {
	const char *name;
	bool (*holds)(const struct replay_exit *e);
} classes[] = {
	{ "stream", is_any },
	{ "known", is_known },
	{ "rtc", is_rtc },
	{ "serial", is_serial },
	{ "virtio_status", is_virtio_status },
	{ "unknown_port", is_unknown_port },
};

int exit_stream_filter(struct exit_stream *s, const char *class)
{
	size_t c, i, kept = 0;

	for (c = 0; c < ARRAY_SIZE(classes) && strcmp(classes[c].name, class); c++)
		;
	if (c == ARRAY_SIZE(classes))
		return -ENOENT;
	for (i = 0; i < s->count; i++) {
		if (classes[c].holds(&s->exits[i]))
			s->exits[kept++] = s->exits[i];
	}
	s->count = kept;
	return kept ? 0 : -ENOENT;
}
