/*
 * Port and memory-mapped I/O: which region answers which address.
 *
 * Two buses, each a sorted map that does not change once vCPUs run. A vCPU
 * looks addresses up in a direct-mapped table of its own, inline: a hit takes
 * no lock and no atomic read-modify-write; a miss searches the map and fills
 * the line. The bus checks bounds and access width; a region's call-backs see
 * an offset and a width between its min_access and max_access. What no region
 * answers reads as all ones, and writes to it are dropped.
 *
 * Threads: lookups on vCPU threads. Regions are added on the main thread
 * before the vCPUs run.
 */
#ifndef LULL_BUS_H
#define LULL_BUS_H

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
};

struct bus_region {
	const char *name;
	uint64_t base;
	uint64_t size;
	uint8_t min_access; /* bytes: 1, 2, 4 or 8 */
	uint8_t max_access;
	const struct bus_ops *ops;
	void *device;
};

struct bus_map {
	uint32_t count;
	struct bus_region regions[LIMIT_BUS_REGIONS]; /* ascending base, disjoint */
};

struct bus {
	struct bus_map maps[BUS_KINDS];
};

#define BUS_LINES 64 /* power of two */

struct bus_line {
	uint64_t address; /* exact address of the access */
	const struct bus_region *region;
};

/* One per vCPU; only its thread touches it. */
struct bus_lookup {
	const struct bus *bus;
	struct bus_line lines[BUS_KINDS][BUS_LINES];
	uint64_t misses;
	uint64_t unknown; /* accesses that no region answered or allowed */
};

void bus_init(struct bus *b);
/* -EEXIST if it overlaps another, -ENOSPC when full, -EINVAL for a bad width or size. */
int bus_add(struct bus *b, enum bus_kind kind, const struct bus_region *region,
	    struct error *err);

void bus_lookup_init(struct bus_lookup *l, const struct bus *b);
/* The slow path: searches the map and fills the line; NULL if nothing is there. */
const struct bus_region *bus_lookup_miss(struct bus_lookup *l, enum bus_kind kind,
					 uint64_t address);

static inline const struct bus_region *bus_find(struct bus_lookup *l, enum bus_kind kind,
						uint64_t address)
{
	/* registers of one device are neighbours, devices lie 4 KiB apart */
	struct bus_line *line =
		&l->lines[kind][(address ^ (address >> 12)) & (BUS_LINES - 1)];

	if (__builtin_expect(line->region && line->address == address, 1))
		return line->region;
	return bus_lookup_miss(l, kind, address);
}

/* One access of `width` bytes (1, 2, 4 or 8), on the vCPU's thread. */
uint64_t bus_read(struct bus_lookup *l, enum bus_kind kind, uint64_t address, unsigned width);
enum bus_action bus_write(struct bus_lookup *l, enum bus_kind kind, uint64_t address,
			  unsigned width, uint64_t value);

#endif
