/*
 * Port and memory-mapped I/O: which region answers which address.
 *
 * Two buses, each a sorted map that never changes: a change publishes a new
 * one. A vCPU looks accesses up in a direct-mapped table of its own, inline: a
 * hit takes no lock, no atomic read-modify-write and checks no generation. A
 * miss searches the map that is published and fills the line.
 *
 * Publishing *poisons* the table of every vCPU: the pointer it is reached
 * through then leads to a table in which nothing hits, so that each later
 * access finds the new map. The vCPU's own thread undoes that where it serves
 * requests, with an emptied table. Replaced maps are kept until
 * no vCPU is inside an access any more (bus_take_replaced(), vm_bus.h).
 *
 * The bus checks bounds and access width; a region's call-backs see an offset
 * and a width between its min_access and max_access. What no region answers
 * reads as all ones, and writes to it are dropped.
 *
 * Threads: lookups on vCPU threads, each its own. Changes on the main thread.
 * Locks: none.
 */
#ifndef LULL_BUS_H
#define LULL_BUS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/base/error.h"
#include "vmm/limits.h"

enum bus_kind { BUS_PIO, BUS_MMIO, BUS_KINDS };

/* What a device wants of the VM; the device itself never touches it. */
enum bus_action {
	BUS_DONE,
	BUS_GUEST_RESET,    /* the guest asked for a reset (i8042, ACPI reset register) */
	BUS_GUEST_POWEROFF, /* the guest switched itself off (ACPI S5) */
};

/* The ops run on vCPU threads, many at once; the device serialises itself. */
struct bus_ops {
	uint64_t (*read)(void *device, uint64_t offset, unsigned width);
	enum bus_action (*write)(void *device, uint64_t offset, unsigned width, uint64_t value);
	/*
	 * For how many nanoseconds a guest that reads this register in a loop may be
	 * left asleep, provided that it is woken when bus_watch_changed() is called: 0,
	 * not at all; UINT64_MAX, time alone does not change it. NULL: 0 for all.
	 */
	uint64_t (*rests)(void *device, uint64_t offset);
};

/*
 * Tells who sleeps until a register changes. A device that has bus_ops.rests
 * calls bus_watch_changed() after each change that no access of the guest's
 * made, from any thread, locks or not.
 */
struct bus_watch {
	_Atomic uint64_t generation;
	_Atomic uint64_t parked; /* bits of the vCPUs that sleep */
	void (*wake)(void *arg, uint64_t vcpus); /* set before vCPUs run; NULL: nobody sleeps */
	void *arg;
};

static inline void bus_watch_changed(struct bus_watch *w)
{
	uint64_t parked;

	atomic_fetch_add(&w->generation, 1);
	parked = atomic_load(&w->parked);
	if (parked && w->wake)
		w->wake(w->arg, parked);
}

struct bus_region {
	const char *name;
	uint64_t base;
	uint64_t size; /* at most 4 GiB */
	uint8_t min_access; /* bytes: 1, 2, 4 or 8 */
	uint8_t max_access;
	const struct bus_ops *ops;
	void *device;
	struct bus_watch *watch; /* of the device; NULL if it has none */
};

/* Constant once it is published. */
struct bus_map {
	struct bus_map *next; /* of those that were replaced */
	uint32_t count;
	struct bus_region regions[]; /* ascending base, disjoint */
};

struct bus_lookup;

struct bus {
	_Atomic(struct bus_map *) maps[BUS_KINDS]; /* NULL: empty */
	/* main thread */
	struct bus_map *replaced; /* but perhaps still in use */
	struct bus_lookup *lookups[LIMIT_VCPUS];
	uint32_t lookup_count;
};

#define BUS_LINES 64 /* of one kind; power of two */

struct bus_line {
	uint64_t address; /* of the access, exactly */
	uint32_t width;   /* of the access; 0: empty */
	uint32_t offset;  /* in the region */
	const struct bus_ops *ops;
	void *device;
};

/* The table of one vCPU. */
struct bus_table {
	struct bus_line lines[BUS_KINDS][BUS_LINES];
};

/* One a vCPU; only its thread touches it, but for the pointer. */
struct bus_lookup {
	_Atomic(struct bus_table *) table; /* &own, or a table in which nothing hits */
	const struct bus *bus;
	uint64_t misses;
	struct bus_line spare; /* for what must not go into a poisoned table */
	struct bus_table own;
};

void bus_init(struct bus *b);
/* Lookups must not be used any more. */
void bus_fini(struct bus *b);

/*
 * Main thread, also while vCPUs run: publishes a map with one region more, or
 * without the one at `base`, and poisons all lookups. -EEXIST if it overlaps
 * another, -ENOSPC when full, -EINVAL for a bad width or size, -ENOENT, -ENOMEM;
 * then nothing has changed.
 */
int bus_add(struct bus *b, enum bus_kind kind, const struct bus_region *region,
	    struct error *err);
int bus_remove(struct bus *b, enum bus_kind kind, uint64_t base, struct error *err);
/*
 * Main thread: takes over the maps that were replaced so far. They may be freed
 * once every vCPU has been outside an access. NULL if there are none.
 */
struct bus_map *bus_take_replaced(struct bus *b);
/* Any thread. NULL allowed. */
void bus_free_maps(struct bus_map *maps);
/*
 * vCPU threads: the region of an address, by a search; NULL if there is none. It
 * is constant until the next time the vCPU serves requests.
 */
const struct bus_region *bus_region_at(const struct bus *b, enum bus_kind kind,
				       uint64_t address);
/* Regions of one bus. */
uint32_t bus_count(const struct bus *b, enum bus_kind kind);

/* Main thread, before the lookup is used. -ENOSPC for more than LIMIT_VCPUS. */
int bus_lookup_init(struct bus_lookup *l, struct bus *b);
/* The vCPU's thread, between accesses: undoes a poisoning. */
void bus_lookup_serve(struct bus_lookup *l);
/* The slow path: searches the map that is published and fills a line. */
const struct bus_line *bus_lookup_miss(struct bus_lookup *l, enum bus_kind kind,
				       uint64_t address, unsigned width);

static inline unsigned bus_line_of(enum bus_kind kind, uint64_t address)
{
	/* registers of one device are neighbours; in memory devices lie 4 KiB apart */
	if (kind == BUS_MMIO)
		address ^= address >> 12;
	return (unsigned)address & (BUS_LINES - 1);
}

/* The line that answers an access, until the next one; never NULL. */
static inline const struct bus_line *bus_find(struct bus_lookup *l, enum bus_kind kind,
					      uint64_t address, unsigned width)
{
	/* Acquire: who finds the table poisoned finds the map that it was poisoned for. */
	struct bus_table *table = atomic_load_explicit(&l->table, memory_order_acquire);
	const struct bus_line *line = &table->lines[kind][bus_line_of(kind, address)];

	if (__builtin_expect(line->address == address && line->width == width, 1))
		return line;
	return bus_lookup_miss(l, kind, address, width);
}

/* One access of `width` bytes (1, 2, 4 or 8), on the vCPU's thread. */
static inline uint64_t bus_read(struct bus_lookup *l, enum bus_kind kind, uint64_t address,
				unsigned width)
{
	const struct bus_line *line = bus_find(l, kind, address, width);

	return line->ops->read(line->device, line->offset, width);
}

static inline enum bus_action bus_write(struct bus_lookup *l, enum bus_kind kind,
					uint64_t address, unsigned width, uint64_t value)
{
	const struct bus_line *line = bus_find(l, kind, address, width);

	return line->ops->write(line->device, line->offset, width, value);
}

#endif
