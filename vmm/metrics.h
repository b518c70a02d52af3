/*
 * Counters by group, and their export as one JSON object a line.
 *
 * A counter is bumped where the thing happens, with relaxed atomics, by the
 * thread it happens on. Groups are added and lines are written on the main
 * thread. Values of kind COUNT are written as the difference to the last line,
 * values of kind STORE as they are.
 */
#ifndef LULL_METRICS_H
#define LULL_METRICS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/base/buf.h"
#include "vmm/base/error.h"

typedef _Atomic uint64_t metric;

enum metric_kind { METRIC_COUNT, METRIC_STORE };

struct metric_field {
	const char *name;
	enum metric_kind kind;
	size_t offset; /* of a `metric` in the group's struct */
};

#define METRIC(type, member) { #member, METRIC_COUNT, offsetof(type, member) }
#define METRIC_STORED(type, member) { #member, METRIC_STORE, offsetof(type, member) }

struct metrics;

static inline void metric_add(metric *m, uint64_t n)
{
	atomic_fetch_add_explicit(m, n, memory_order_relaxed);
}

static inline void metric_inc(metric *m)
{
	metric_add(m, 1);
}

/* For a counter with one writer: no atomic read-modify-write. */
static inline void metric_count(metric *m)
{
	atomic_store_explicit(m, atomic_load_explicit(m, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static inline uint64_t metric_read(const metric *m)
{
	return atomic_load_explicit(m, memory_order_relaxed);
}

struct metrics *metrics_new(void);
struct metrics *metrics_free(struct metrics *m);

/*
 * Adds a group called `name` (copied) whose counters lie in `base`, which must
 * outlive the group. `fields` ends with a NULL name. Groups of one name are
 * added up. -EINVAL for different fields under one name.
 */
int metrics_add_group(struct metrics *m, const char *name, const struct metric_field *fields,
		      const void *base);
/* Takes the groups over `base` out, keeping what they counted in the sum. */
void metrics_remove_group(struct metrics *m, const void *base);

/*
 * `fn` is called before each line is made, to bring up to date what is counted
 * elsewhere; there is one at a time, NULL for none.
 */
void metrics_set_refresh(struct metrics *m, void (*fn)(void *arg), void *arg);

/* Opens the file or FIFO that lines go to. -EALREADY when there is one. */
int metrics_set_target(struct metrics *m, const char *path, struct error *err);

/* Writes one line if there is a target; a target that is full loses the line. */
int metrics_flush(struct metrics *m, struct error *err);

/* Appends the object that metrics_flush() would write, without its effects. */
int metrics_format(const struct metrics *m, struct buf *out);

#endif
