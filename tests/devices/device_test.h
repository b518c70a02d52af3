/*
 * What the device tests share: an interrupt line that notes what happens to
 * it, byte accesses through a device's bus_ops, and the value of a counter.
 */
#ifndef LULL_TESTS_DEVICE_TEST_H
#define LULL_TESTS_DEVICE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vmm/base/log.h"
#include "vmm/bus.h"
#include "vmm/device.h"
#include "vmm/irq.h"
#include "vmm/metrics.h"

struct spy_irq {
	struct irq_line line;
	bool level;
	unsigned edges;   /* low to high */
	unsigned calls;
};

static inline int spy_irq_set(void *chip, uint32_t gsi, bool level)
{
	struct spy_irq *spy = chip;

	spy->edges += level && !spy->level;
	spy->level = level;
	spy->calls++;
	return 0;
}

static const struct irq_ops spy_irq_ops = { .set = spy_irq_set };

static inline void spy_irq_init(struct spy_irq *spy)
{
	*spy = (struct spy_irq){ .line = { .ops = &spy_irq_ops, .chip = spy, .gsi = 4 } };
}

/* The edges since the last call. */
static inline unsigned spy_irq_edges(struct spy_irq *spy)
{
	unsigned edges = spy->edges;

	spy->edges = 0;
	return edges;
}

/* The number after `"name":` in the group's object; UINT64_MAX if it is not there. */
static inline uint64_t count_of(const struct metrics *m, const char *group, const char *name)
{
	char key[96];
	struct buf text;
	const char *at;
	uint64_t value = UINT64_MAX;

	buf_init(&text, 1 << 20);
	assert_int_equal(metrics_format(m, &text), 0);
	snprintf(key, sizeof(key), "\"%s\":{", group);
	at = strstr(buf_text(&text), key);
	snprintf(key, sizeof(key), "\"%s\":", name);
	at = at ? strstr(at, key) : NULL;
	if (at)
		value = strtoull(at + strlen(key), NULL, 10);
	buf_fini(&text);
	return value;
}

#endif
