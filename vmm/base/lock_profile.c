/*
 * What the lock profiler counts, and its report.
 *
 * A lock holds a list with one entry for each call site that ever waited for
 * it. Entries are added and counted in by whoever has just waited, and so holds
 * the lock; a report reads them without it. All locks of the process are in one
 * list, under a mutex that only making, unmaking and reporting take.
 *
 * Threads: any. Locks: the registry's mutex, a leaf; it is not in the report.
 */
#include "vmm/base/lock_profile.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Atomic uint32_t lock_expected;

/* Waits at one call site for one lock. */
struct lock_waits {
	struct lock_waits *next;
	const struct lock_site *site;
	_Atomic uint64_t count, wait_ns, max_ns;
	/* what they were at the last reset; under the registry's mutex */
	uint64_t reset_count, reset_ns;
};

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static struct lock_profile all = { .next = &all, .previous = &all };

static void list(struct lock_profile *p)
{
	pthread_mutex_lock(&registry);
	p->next = &all;
	p->previous = all.previous;
	p->previous->next = p;
	all.previous = p;
	pthread_mutex_unlock(&registry);
	p->is_listed = true;
}

void lock_profile_add(struct lock_profile *p, enum lock_level level, const char *type,
		      const char *object)
{
	p->type = type;
	p->object = object;
	p->level = level;
	p->reset_takes = 0;
	atomic_init(&p->takes, 0);
	atomic_init(&p->waits, NULL);
	list(p);
}

void lock_profile_remove(struct lock_profile *p)
{
	struct lock_waits *w, *next;

	pthread_mutex_lock(&registry);
	p->previous->next = p->next;
	p->next->previous = p->previous;
	pthread_mutex_unlock(&registry);
	for (w = atomic_load(&p->waits); w; w = next) {
		next = w->next;
		free(w);
	}
}

static uint64_t load(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* For counters with one writer at a time. */
static void add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, load(counter) + n, memory_order_relaxed);
}

void lock_profile_charge(struct lock_profile *p, const struct lock_site *site, uint64_t ns)
{
	struct lock_waits *first = atomic_load_explicit(&p->waits, memory_order_relaxed);
	struct lock_waits *w;

	if (!p->is_listed)
		list(p);
	for (w = first; w && w->site != site; w = w->next)
		;
	if (!w) {
		w = calloc(1, sizeof(*w));
		if (!w)
			return; /* this one wait is not counted; the next may be */
		w->site = site;
		w->next = first;
		atomic_store_explicit(&p->waits, w, memory_order_release);
	}
	add(&w->count, 1);
	add(&w->wait_ns, ns);
	if (ns > load(&w->max_ns))
		atomic_store_explicit(&w->max_ns, ns, memory_order_relaxed);
}

/* __FILE__ as the compiler was given it, from the root of the source. */
static const char *source_name(const char *file)
{
	while (!strncmp(file, "../", 3))
		file += 3;
	return file;
}

static void fill(struct lock_report_wait *row, const struct lock_profile *p,
		 const struct lock_waits *w)
{
	*row = (struct lock_report_wait){
		.type = p->type,
		.file = source_name(w->site->file),
		.line = w->site->line,
		.is_condition = p->level == 0,
		.level = p->level,
		.count = load(&w->count) - w->reset_count,
		.wait_ns = load(&w->wait_ns) - w->reset_ns,
		.max_ns = load(&w->max_ns),
	};
	snprintf(row->object, sizeof(row->object), "%s", p->object);
}

/* Keeps the rows in descending order of their wait. */
static void insert(struct lock_report_wait *rows, size_t count, size_t max,
		   const struct lock_report_wait *row)
{
	size_t at = count < max ? count : max;

	while (at > 0 && rows[at - 1].wait_ns < row->wait_ns) {
		if (at < max)
			rows[at] = rows[at - 1];
		at--;
	}
	if (at < max)
		rows[at] = *row;
}

size_t lock_report_waits(struct lock_report_wait *rows, size_t max)
{
	const struct lock_profile *p;
	const struct lock_waits *w;
	struct lock_report_wait row;
	size_t count = 0;

	pthread_mutex_lock(&registry);
	for (p = all.next; p != &all; p = p->next) {
		for (w = atomic_load_explicit(&p->waits, memory_order_acquire); w; w = w->next) {
			fill(&row, p, w);
			if (row.count)
				insert(rows, count++, max, &row);
		}
	}
	pthread_mutex_unlock(&registry);
	return count;
}

size_t lock_report_locks(struct lock_report_lock *rows, size_t max)
{
	const struct lock_profile *p;
	size_t count = 0;

	pthread_mutex_lock(&registry);
	for (p = all.next; p != &all; p = p->next) {
		if (p->level == 0)
			continue;
		if (count < max) {
			rows[count] = (struct lock_report_lock){
				.type = p->type,
				.level = p->level,
				.takes = load(&p->takes) - p->reset_takes,
			};
			snprintf(rows[count].object, sizeof(rows[count].object), "%s", p->object);
		}
		count++;
	}
	pthread_mutex_unlock(&registry);
	return count;
}

void lock_report_reset(void)
{
	struct lock_profile *p;
	struct lock_waits *w;

	pthread_mutex_lock(&registry);
	for (p = all.next; p != &all; p = p->next) {
		p->reset_takes = load(&p->takes);
		for (w = atomic_load_explicit(&p->waits, memory_order_acquire); w; w = w->next) {
			w->reset_count = load(&w->count);
			w->reset_ns = load(&w->wait_ns);
			atomic_store_explicit(&w->max_ns, 0, memory_order_relaxed);
		}
	}
	pthread_mutex_unlock(&registry);
}

void lock_set_profiling(bool on)
{
	atomic_store_explicit(&lock_expected, on ? LOCK_PROFILED : LOCK_FREE,
			      memory_order_relaxed);
}

bool lock_is_profiling(void)
{
	return atomic_load_explicit(&lock_expected, memory_order_relaxed) != LOCK_FREE;
}

const char *lock_level_name(enum lock_level level)
{
	static const char *const names[] = {
		[LOCK_LEVEL_GLOBAL] = "global", [LOCK_LEVEL_VM] = "vm",
		[LOCK_LEVEL_DEVICE_SET] = "device-set", [LOCK_LEVEL_BUS] = "bus",
		[LOCK_LEVEL_DEVICE] = "device", [LOCK_LEVEL_IRQ] = "irq",
		[LOCK_LEVEL_LOG] = "log",
	};

	return names[level];
}
