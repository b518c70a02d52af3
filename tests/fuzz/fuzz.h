/*
 * What the fuzz targets of registers share: a promise that traps when it is
 * broken, an interrupt line that notes what happens to it, and counters that
 * can be read at once.
 */
#ifndef LULL_TESTS_FUZZ_H
#define LULL_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "vmm/irq.h"
#include "vmm/metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(bool holds)
{
	if (!holds)
		__builtin_trap();
}

struct fuzz_line {
	bool level;
	uint32_t calls;
	uint32_t edges; /* low to high */
};

static inline int fuzz_line_set(void *chip, uint32_t gsi, bool level)
{
	struct fuzz_line *line = chip;

	line->edges += level && !line->level;
	line->level = level;
	line->calls++;
	return 0;
}

static const struct irq_ops fuzz_line_ops = { .set = fuzz_line_set };

/* In place of vmm/metrics.c, whose reports take longer than a run. One device. */
struct metrics {
	const struct metric_field *fields;
	const void *base;
};

int metrics_add_group(struct metrics *m, const char *name, const struct metric_field *fields,
		      const void *base)
{
	m->fields = fields;
	m->base = base;
	return 0;
}

void metrics_remove_group(struct metrics *m, const void *base)
{
	require(m->base == base);
	m->base = NULL;
}

static inline uint64_t fuzz_count(const struct metrics *m, const char *name)
{
	const struct metric_field *f = m->fields;

	while (strcmp(f->name, name) != 0)
		f++;
	return metric_read((const metric *)((const char *)m->base + f->offset));
}

#endif
