/*
 * The buses. Threads: bus_add() on the main thread before vCPUs run, the rest
 * on vCPU threads with a bus_lookup each. Locks: none.
 */
#include "vmm/bus.h"

#include <errno.h>
#include <string.h>

#include "vmm/base/bits.h"

void bus_init(struct bus *b)
{
	memset(b, 0, sizeof(*b));
}

static int check_region(const struct bus_region *r, struct error *err)
{
	uint64_t end;

	if (r->size == 0 || __builtin_add_overflow(r->base, r->size, &end))
		return error_set(err, -EINVAL, "bus region %s: bad size", r->name);
	if (!is_power_of_two(r->min_access) || !is_power_of_two(r->max_access) ||
	    r->min_access > r->max_access || r->max_access > 8)
		return error_set(err, -EINVAL, "bus region %s: bad access width", r->name);
	return 0;
}

int bus_add(struct bus *b, enum bus_kind kind, const struct bus_region *region, struct error *err)
{
	struct bus_map *map = &b->maps[kind];
	uint32_t at;
	int ret = check_region(region, err);

	if (ret < 0)
		return ret;
	if (map->count == LIMIT_BUS_REGIONS)
		return error_set(err, -ENOSPC, "bus region %s: more than %d regions", region->name,
				 LIMIT_BUS_REGIONS);
	for (at = 0; at < map->count && map->regions[at].base < region->base; at++)
		;
	if ((at > 0 && map->regions[at - 1].base + map->regions[at - 1].size > region->base) ||
	    (at < map->count && region->base + region->size > map->regions[at].base))
		return error_set(err, -EEXIST, "bus region %s overlaps another", region->name);
	memmove(&map->regions[at + 1], &map->regions[at],
		(map->count - at) * sizeof(map->regions[0]));
	map->regions[at] = *region;
	map->count++;
	return 0;
}

void bus_lookup_init(struct bus_lookup *l, const struct bus *b)
{
	memset(l, 0, sizeof(*l));
	l->bus = b;
}

static const struct bus_region *search(const struct bus_map *map, uint64_t address)
{
	uint32_t low = 0, high = map->count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		const struct bus_region *r = &map->regions[mid];

		if (address < r->base)
			high = mid;
		else if (address - r->base >= r->size)
			low = mid + 1;
		else
			return r;
	}
	return NULL;
}

const struct bus_region *bus_lookup_miss(struct bus_lookup *l, enum bus_kind kind,
					 uint64_t address)
{
	const struct bus_region *r = search(&l->bus->maps[kind], address);
	struct bus_line *line =
		&l->lines[kind][(address ^ (address >> 12)) & (BUS_LINES - 1)];

	l->misses++;
	if (!r)
		return NULL;
	line->address = address;
	line->region = r;
	return r;
}

static bool allows(const struct bus_region *r, uint64_t address, unsigned width)
{
	return width >= r->min_access && width <= r->max_access &&
	       width <= r->size - (address - r->base);
}

uint64_t bus_read(struct bus_lookup *l, enum bus_kind kind, uint64_t address, unsigned width)
{
	const struct bus_region *r = bus_find(l, kind, address);

	if (__builtin_expect(r && allows(r, address, width), 1))
		return r->ops->read(r->device, address - r->base, width);
	l->unknown++;
	return UINT64_MAX;
}

enum bus_action bus_write(struct bus_lookup *l, enum bus_kind kind, uint64_t address,
			  unsigned width, uint64_t value)
{
	const struct bus_region *r = bus_find(l, kind, address);

	if (__builtin_expect(r && allows(r, address, width), 1))
		return r->ops->write(r->device, address - r->base, width, value);
	l->unknown++;
	return BUS_DONE;
}
