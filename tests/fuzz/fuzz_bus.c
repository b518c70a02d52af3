/*
 * The buses against a list that is searched from end to end: regions come and
 * go, several vCPUs look up through tables of their own, serve their poisonings
 * or do not, and access every edge at every width.
 *
 * Promises: who should answers, once, with the right offset and width; nobody
 * who was removed does; what nobody answers reads as all ones; a repeated
 * access is searched for again only while the table is poisoned.
 *
 * Input: steps of 3 bytes: what to do, where, and how.
 */
#include <errno.h>

#include "tests/fuzz/fuzz.h"
#include "vmm/base/bits.h"
#include "vmm/bus.h"

#define STEP_BYTES 3
#define MAX_STEPS 1024
#define VCPUS 3
#define ROW 22u /* regions that one step may add; three are more than fit */

/* ---- the devices: a number each, in place of a pointer ------------------------------------- */

struct access {
	uint64_t device; /* 0: none was called */
	uint64_t offset, value;
	unsigned width;
};

static struct access seen;
static unsigned calls;

static uint64_t answer(uint64_t device, uint64_t offset)
{
	return device << 32 | (offset & 0xffffffff);
}

static enum bus_action action(uint64_t device)
{
	return (enum bus_action)(device % (BUS_GUEST_POWEROFF + 1));
}

static uint64_t device_read(void *device, uint64_t offset, unsigned width)
{
	seen = (struct access){ (uintptr_t)device, offset, 0, width };
	calls++;
	return answer((uintptr_t)device, offset);
}

static enum bus_action device_write(void *device, uint64_t offset, unsigned width, uint64_t value)
{
	seen = (struct access){ (uintptr_t)device, offset, value, width };
	calls++;
	return action((uintptr_t)device);
}

static const struct bus_ops device_ops = { .read = device_read, .write = device_write };

/* ---- the machine --------------------------------------------------------------------------- */

struct machine {
	struct bus bus;
	struct bus_lookup lookups[VCPUS];
	bool poisoned[VCPUS];
	struct bus_region regions[BUS_KINDS][LIMIT_BUS_REGIONS]; /* in no order */
	unsigned counts[BUS_KINDS];
	uint64_t devices; /* made so far */
	bool has_map[BUS_KINDS];
	unsigned replaced; /* maps */
};

static void published(struct machine *m, enum bus_kind kind)
{
	unsigned i;

	m->replaced += m->has_map[kind];
	m->has_map[kind] = true;
	for (i = 0; i < VCPUS; i++)
		m->poisoned[i] = true;
}

static int expected_add(const struct machine *m, enum bus_kind kind, const struct bus_region *new)
{
	unsigned i;

	if (new->size == 0 || new->base > UINT64_MAX - new->size)
		return -EINVAL;
	if (!is_power_of_two(new->min_access) || !is_power_of_two(new->max_access) ||
	    new->min_access > new->max_access || new->max_access > 8)
		return -EINVAL;
	if (m->counts[kind] == LIMIT_BUS_REGIONS)
		return -ENOSPC;
	for (i = 0; i < m->counts[kind]; i++) {
		const struct bus_region *r = &m->regions[kind][i];

		if (new->base < r->base + r->size && r->base < new->base + new->size)
			return -EEXIST;
	}
	return 0;
}

static void add(struct machine *m, enum bus_kind kind, struct bus_region r)
{
	int expected = expected_add(m, kind, &r);

	r.name = "fuzz";
	r.ops = &device_ops;
	r.device = (void *)(uintptr_t)++m->devices;
	require(bus_add(&m->bus, kind, &r, NULL) == expected);
	if (expected == 0) {
		m->regions[kind][m->counts[kind]++] = r;
		published(m, kind);
	}
	require(bus_count(&m->bus, kind) == m->counts[kind]);
}

static void take_out(struct machine *m, enum bus_kind kind, uint64_t base)
{
	struct bus_region *all = m->regions[kind];
	int expected = -ENOENT;
	unsigned i;

	for (i = 0; i < m->counts[kind] && all[i].base != base; i++)
		;
	if (i < m->counts[kind]) {
		all[i] = all[--m->counts[kind]];
		expected = 0;
		published(m, kind);
	}
	require(bus_remove(&m->bus, kind, base, NULL) == expected);
	require(bus_count(&m->bus, kind) == m->counts[kind]);
}

/* No access is under way: they may be freed. Until then they are kept. */
static void free_replaced(struct machine *m)
{
	struct bus_map *maps = bus_take_replaced(&m->bus), *map;
	unsigned n = 0;

	for (map = maps; map; map = map->next)
		n++;
	require(n == m->replaced);
	m->replaced = 0;
	bus_free_maps(maps);
}

static const struct bus_region *who(const struct machine *m, enum bus_kind kind, uint64_t address,
				    unsigned width)
{
	unsigned i;

	for (i = 0; i < m->counts[kind]; i++) {
		const struct bus_region *r = &m->regions[kind][i];

		if (address >= r->base && address <= r->base + (r->size - 1) &&
		    width <= r->size - (address - r->base) &&
		    width >= r->min_access && width <= r->max_access)
			return r;
	}
	return NULL;
}

struct request {
	enum bus_kind kind;
	unsigned vcpu, width;
	uint64_t address, value;
	bool is_write;
};

static void access_once(struct machine *m, const struct request *q)
{
	struct bus_lookup *l = &m->lookups[q->vcpu];
	const struct bus_region *r = who(m, q->kind, q->address, q->width);
	uint64_t device = r ? (uintptr_t)r->device : 0;
	uint64_t offset = r ? q->address - r->base : 0;

	seen = (struct access){ 0 };
	calls = 0;
	if (q->is_write)
		require(bus_write(l, q->kind, q->address, q->width, q->value) ==
			(r ? action(device) : BUS_DONE));
	else
		require(bus_read(l, q->kind, q->address, q->width) ==
			(r ? answer(device, offset) : UINT64_MAX));
	require(calls == (r ? 1 : 0));
	require(seen.device == device && seen.offset == offset);
	require(!r || (seen.width == q->width && seen.value == (q->is_write ? q->value : 0)));
}

static void access_twice(struct machine *m, const struct request *q)
{
	struct bus_lookup *l = &m->lookups[q->vcpu];
	uint64_t misses = l->misses;

	access_once(m, q);
	require(l->misses - misses <= 1);
	misses = l->misses;
	access_once(m, q);
	require(l->misses - misses == (m->poisoned[q->vcpu] ? 1 : 0));
}

static void serve(struct machine *m, unsigned vcpu)
{
	bus_lookup_serve(&m->lookups[vcpu]);
	m->poisoned[vcpu] = false;
}

/* ---- the input ----------------------------------------------------------------------------- */

/* Ports and windows as a board has them, the ends, and what shares lines of the tables. */
static uint64_t place(uint8_t where)
{
	static const uint64_t bases[8] = {
		0, 0x60, 0x3f8, 0x600, 0xd0000000, 0x40000, UINT64_MAX - 0x100, 1ull << 63,
	};
	static const uint64_t strides[4] = { 1, 8, 0x1000, 0x41000 };

	return bases[where & 7] + strides[where >> 3 & 3] * (where >> 5);
}

static struct bus_region region(uint8_t where, uint8_t how)
{
	static const uint64_t sizes[8] = { 1, 2, 5, 8, 0x200, 0x1000, 0, 0x100 };
	struct bus_region r = { .base = place(where), .size = sizes[how & 7] };

	r.min_access = (uint8_t)(1u << (how >> 3 & 3));
	r.max_access = (uint8_t)(1u << (how >> 5 & 3));
	if (how & 0x80) {
		/* mostly such that all is allowed, at times such that nothing may be */
		r.min_access = (how & 0x78) == 0x78 ? 3 : 1;
		r.max_access = (how & 0x78) == 0x70 ? 16 : 8;
	}
	return r;
}

static void add_row(struct machine *m, enum bus_kind kind, uint8_t where, uint8_t how)
{
	struct bus_region r = region(where, how);
	unsigned i;

	for (i = 0; i < ROW; i++, r.base += 0x1000)
		add(m, kind, r);
}

/* Around an edge of a region, or anywhere. */
static uint64_t edge(const struct machine *m, enum bus_kind kind, uint8_t where, uint8_t how)
{
	unsigned count = m->counts[kind];
	const struct bus_region *r = &m->regions[kind][count ? where % count : 0];
	unsigned width = 1u << (how >> 3 & 3);

	if (count == 0)
		return place(where);
	switch (how & 7) {
	case 0:
	case 1:
		return r->base;
	case 2:
		return r->base - 1;
	case 3:
		return r->base + 1;
	case 4:
		return r->base + r->size - 1;
	case 5:
		return r->base + r->size - width;
	case 6:
		return r->base + r->size;
	default:
		return place(where);
	}
}

static void step(struct machine *m, const uint8_t *s)
{
	enum bus_kind kind = s[0] & 0x80 ? BUS_MMIO : BUS_PIO;
	struct request q = { .kind = kind, .vcpu = (s[2] >> 5) % VCPUS,
			     .width = 1u << (s[2] >> 3 & 3), .value = s[0] * 0x0101010101010101ull,
			     .is_write = s[0] & 0x40 };

	switch (s[0] & 7) {
	case 0:
		add(m, kind, region(s[1], s[2]));
		break;
	case 1: /* the way to a full map, and slow */
		if (s[0] & 0x38)
			add(m, kind, region(s[1], s[2]));
		else
			add_row(m, kind, s[1], s[2]);
		break;
	case 2:
		take_out(m, kind, edge(m, kind, s[1], s[2]));
		break;
	case 3:
		serve(m, s[1] % VCPUS);
		break;
	case 4:
		free_replaced(m);
		break;
	default:
		q.address = edge(m, kind, s[1], s[2]);
		access_twice(m, &q);
		break;
	}
}

/* Every region through every table, served at last. */
static void access_all(struct machine *m)
{
	unsigned kind, i;

	for (i = 0; i < VCPUS; i++)
		serve(m, i);
	for (kind = 0; kind < BUS_KINDS; kind++) {
		for (i = 0; i < m->counts[kind]; i++) {
			const struct bus_region *r = &m->regions[kind][i];
			struct request q = { .kind = (enum bus_kind)kind, .vcpu = i % VCPUS,
					     .width = r->min_access, .address = r->base };

			access_twice(m, &q);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct machine m;
	unsigned i;

	memset(&m, 0, sizeof(m));
	bus_init(&m.bus);
	for (i = 0; i < VCPUS; i++)
		require(bus_lookup_init(&m.lookups[i], &m.bus) == 0);
	for (i = 0; i < MAX_STEPS && (i + 1) * STEP_BYTES <= size; i++)
		step(&m, data + i * STEP_BYTES);
	access_all(&m);
	bus_fini(&m.bus);
	return 0;
}
