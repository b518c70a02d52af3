/*
 * The buses. Threads: changes on the main thread, the rest on vCPU threads with
 * a bus_lookup each. Locks: none.
 */
#include "vmm/bus.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bits.h"

/* Nothing hits here. It is only read. */
static struct bus_table poison;

void bus_init(struct bus *b)
{
	memset(b, 0, sizeof(*b));
}

struct bus_map *bus_take_replaced(struct bus *b)
{
	struct bus_map *maps = b->replaced;

	b->replaced = NULL;
	return maps;
}

void bus_free_maps(struct bus_map *maps)
{
	while (maps) {
		struct bus_map *next = maps->next;

		free(maps);
		maps = next;
	}
}

void bus_fini(struct bus *b)
{
	unsigned kind;

	bus_free_maps(bus_take_replaced(b));
	for (kind = 0; kind < BUS_KINDS; kind++)
		free(atomic_exchange(&b->maps[kind], NULL));
	b->lookup_count = 0;
}

static struct bus_map *current_map(const struct bus *b, enum bus_kind kind)
{
	return atomic_load_explicit(&b->maps[kind], memory_order_acquire);
}

uint32_t bus_count(const struct bus *b, enum bus_kind kind)
{
	const struct bus_map *map = current_map(b, kind);

	return map ? map->count : 0;
}

static int check_region(const struct bus_region *r, struct error *err)
{
	uint64_t end;

	if (r->size == 0 || r->size > 1ull << 32 ||
	    __builtin_add_overflow(r->base, r->size, &end))
		return error_set(err, -EINVAL, "bus region %s: bad size", r->name);
	if (!is_power_of_two(r->min_access) || !is_power_of_two(r->max_access) ||
	    r->min_access > r->max_access || r->max_access > 8)
		return error_set(err, -EINVAL, "bus region %s: bad access width", r->name);
	return 0;
}

/* The map first, then the poison: who finds the poison finds the map. */
static void publish(struct bus *b, enum bus_kind kind, struct bus_map *map)
{
	struct bus_map *old = atomic_exchange(&b->maps[kind], map);
	uint32_t i;

	if (old) {
		old->next = b->replaced;
		b->replaced = old;
	}
	for (i = 0; i < b->lookup_count; i++)
		atomic_store(&b->lookups[i]->table, &poison);
}

static struct bus_map *map_new(uint32_t count)
{
	struct bus_map *map = calloc(1, sizeof(*map) + count * sizeof(map->regions[0]));

	if (map)
		map->count = count;
	return map;
}

static void copy_regions(struct bus_region *to, const struct bus_region *from, uint32_t count)
{
	if (count)
		memcpy(to, from, count * sizeof(*to));
}

int bus_add(struct bus *b, enum bus_kind kind, const struct bus_region *region, struct error *err)
{
	const struct bus_map *old = current_map(b, kind);
	const struct bus_region *r = old ? old->regions : NULL;
	uint32_t at, count = bus_count(b, kind);
	struct bus_map *map;
	int ret = check_region(region, err);

	if (ret < 0)
		return ret;
	if (count == LIMIT_BUS_REGIONS)
		return error_set(err, -ENOSPC, "bus region %s: more than %d regions", region->name,
				 LIMIT_BUS_REGIONS);
	for (at = 0; at < count && r[at].base < region->base; at++)
		;
	if ((at > 0 && r[at - 1].base + r[at - 1].size > region->base) ||
	    (at < count && region->base + region->size > r[at].base))
		return error_set(err, -EEXIST, "bus region %s overlaps another", region->name);
	map = map_new(count + 1);
	if (!map)
		return error_set(err, -ENOMEM, "bus region %s: no memory", region->name);
	copy_regions(map->regions, r, at);
	map->regions[at] = *region;
	copy_regions(&map->regions[at + 1], r + at, count - at);
	publish(b, kind, map);
	return 0;
}

int bus_remove(struct bus *b, enum bus_kind kind, uint64_t base, struct error *err)
{
	const struct bus_map *old = current_map(b, kind);
	uint32_t at, count = bus_count(b, kind);
	struct bus_map *map;

	for (at = 0; at < count && old->regions[at].base != base; at++)
		;
	if (at == count)
		return error_set(err, -ENOENT, "no bus region at 0x%llx", (unsigned long long)base);
	map = map_new(count - 1);
	if (!map)
		return error_set(err, -ENOMEM, "bus region %s: no memory", old->regions[at].name);
	copy_regions(map->regions, old->regions, at);
	copy_regions(&map->regions[at], &old->regions[at + 1], count - 1 - at);
	publish(b, kind, map);
	return 0;
}

int bus_lookup_init(struct bus_lookup *l, struct bus *b)
{
	if (b->lookup_count == LIMIT_VCPUS)
		return -ENOSPC;
	memset(l, 0, sizeof(*l));
	l->bus = b;
	atomic_init(&l->table, &l->own);
	b->lookups[b->lookup_count++] = l;
	return 0;
}

/*
 * The exchange acquires what was published with the last poisoning it undoes.
 * One that comes after it stands, and its request brings us here again.
 */
void bus_lookup_serve(struct bus_lookup *l)
{
	if (atomic_load_explicit(&l->table, memory_order_relaxed) == &l->own)
		return;
	memset(&l->own, 0, sizeof(l->own));
	(void)atomic_exchange(&l->table, &l->own);
}

static uint64_t read_nothing(void *device, uint64_t offset, unsigned width)
{
	return UINT64_MAX;
}

static enum bus_action write_nothing(void *device, uint64_t offset, unsigned width,
				     uint64_t value)
{
	return BUS_DONE;
}

static const struct bus_ops nothing = { .read = read_nothing, .write = write_nothing };

static const struct bus_region *search(const struct bus_map *map, uint64_t address)
{
	uint32_t low = 0, high = map ? map->count : 0;

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

const struct bus_region *bus_region_at(const struct bus *b, enum bus_kind kind, uint64_t address)
{
	return search(current_map(b, kind), address);
}

static bool allows(const struct bus_region *r, uint64_t address, unsigned width)
{
	return width >= r->min_access && width <= r->max_access &&
	       width <= r->size - (address - r->base);
}

/* What nobody answers is a line too, so that a guest that tries again pays no search. */
const struct bus_line *bus_lookup_miss(struct bus_lookup *l, enum bus_kind kind,
				       uint64_t address, unsigned width)
{
	struct bus_table *table = atomic_load_explicit(&l->table, memory_order_acquire);
	const struct bus_region *r = search(current_map(l->bus, kind), address);
	struct bus_line *line = &l->spare;

	l->misses++;
	if (table == &l->own)
		line = &table->lines[kind][bus_line_of(kind, address)];
	*line = (struct bus_line){ .address = address, .width = width, .ops = &nothing };
	if (r && allows(r, address, width)) {
		line->offset = (uint32_t)(address - r->base);
		line->ops = r->ops;
		line->device = r->device;
	}
	return line;
}
