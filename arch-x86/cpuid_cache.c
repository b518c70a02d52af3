/*
 * Topology and cache leaves. Threads: any. Locks: none.
 *
 * Sources: Intel SDM volume 2A, CPUID; AMD APM volume 3, appendix E. Counts of
 * "addressable ids" are powers of two, because ids are sparse.
 */
#include "arch-x86/cpuid_cache.h"

#include "vmm/base/bits.h"

/* Cache types of leaves 4 and 0x8000001D */
enum { CACHE_NONE, CACHE_DATA, CACHE_INSTRUCTION, CACHE_UNIFIED };
#define CACHE_SELF_INIT BIT(8)
#define CACHE_L3_INCLUSIVE BIT(1)
#define CACHE_L3_COMPLEX_INDEX BIT(2)

/* Level types of leaves 0xB and 0x1F, in ECX[15:8] */
enum { LEVEL_SMT = 1, LEVEL_CORE = 2, LEVEL_DIE = 5 };

static const struct {
	uint8_t type;
	uint8_t level;
} cache_kinds[TOPOLOGY_CACHES] = {
	[TOPOLOGY_L1D] = { CACHE_DATA, 1 },
	[TOPOLOGY_L1I] = { CACHE_INSTRUCTION, 1 },
	[TOPOLOGY_L2] = { CACHE_UNIFIED, 2 },
	[TOPOLOGY_L3] = { CACHE_UNIFIED, 3 },
};

/* One subleaf of leaf 4 or 0x8000001D; the two are the same but for EAX[31:26]. */
static struct cpuid_regs cache_subleaf(const struct topology *t, enum topology_cache_kind kind)
{
	const struct topology_geometry *g = &t->caches[kind].geometry;
	uint32_t ids = 1u << topology_cache_shift(t, kind); /* that share it */
	struct cpuid_regs r = {
		.eax = cache_kinds[kind].type | (uint32_t)cache_kinds[kind].level << 5 |
		       CACHE_SELF_INIT | (ids - 1) << 14,
		.ebx = (g->line - 1) | (g->ways - 1) << 22,
		.ecx = topology_cache_sets(&t->caches[kind]) - 1,
	};

	if (kind == TOPOLOGY_L3)
		r.edx = CACHE_L3_INCLUSIVE | CACHE_L3_COMPLEX_INDEX;
	return r;
}

/* All caches as subleaves and the one of type 0 that ends them. */
static int cache_subleaves(struct cpuid_table *table, const struct topology *t, uint32_t function,
			   uint32_t eax_or)
{
	uint32_t index = 0;
	int kind, ret;

	cpuid_remove(table, function);
	for (kind = 0; kind < TOPOLOGY_CACHES; kind++) {
		struct cpuid_regs r;

		if (!topology_cache_exists(&t->caches[kind]))
			continue;
		r = cache_subleaf(t, (enum topology_cache_kind)kind);
		r.eax |= eax_or;
		ret = cpuid_put_sub(table, function, index++, r);
		if (ret < 0)
			return ret;
	}
	return cpuid_put_sub(table, function, index, (struct cpuid_regs){ 0 });
}

struct level {
	uint8_t type;
	enum topology_level unit; /* what one step up the level's shift leads to */
};

static int topology_subleaves(struct cpuid_table *table, const struct topology *t,
			      uint32_t function, uint32_t id, const struct level *levels,
			      uint32_t count)
{
	uint32_t i;
	int ret;

	cpuid_remove(table, function);
	for (i = 0; i < count; i++) {
		struct cpuid_regs r = {
			.eax = topology_shift(t, levels[i].unit),
			.ebx = topology_cpus_in(t, levels[i].unit),
			.ecx = i | (uint32_t)levels[i].type << 8,
			.edx = id,
		};

		ret = cpuid_put_sub(table, function, i, r);
		if (ret < 0)
			return ret;
	}
	return cpuid_put_sub(table, function, count, (struct cpuid_regs){ .ecx = count, .edx = id });
}

/* Leaf 0xB has the levels that it always had; dies are told in 0x1F alone. */
static int put_topology(struct cpuid_table *table, const struct topology *t,
			enum cpuid_vendor vendor, uint32_t id)
{
	static const struct level plain[] = {
		{ LEVEL_SMT, TOPOLOGY_CORE },
		{ LEVEL_CORE, TOPOLOGY_SOCKET },
	};
	static const struct level with_dies[] = {
		{ LEVEL_SMT, TOPOLOGY_CORE },
		{ LEVEL_CORE, TOPOLOGY_DIE },
		{ LEVEL_DIE, TOPOLOGY_SOCKET },
	};
	const struct kvm_cpuid_entry2 *leaf0 = cpuid_find(table, 0, 0);
	int ret;

	ret = topology_subleaves(table, t, 0xB, id, plain, ARRAY_SIZE(plain));
	if (ret < 0)
		return ret;
	cpuid_remove(table, 0x1F);
	if (vendor != CPUID_INTEL || !leaf0 || leaf0->eax < 0x1F)
		return 0;
	if (t->dies > 1)
		return topology_subleaves(table, t, 0x1F, id, with_dies, ARRAY_SIZE(with_dies));
	return topology_subleaves(table, t, 0x1F, id, plain, ARRAY_SIZE(plain));
}

/* Codes of leaf 0x80000006 for a number of ways that has none: the cache leaf has it. */
#define WAYS_IN_LEAF_4 7
#define WAYS_IN_LEAF_8000001D 9

/* Code for the number of ways in leaf 0x80000006; `other` if there is none. */
static uint32_t ways_code(uint32_t ways, uint32_t other)
{
	static const struct {
		uint8_t ways;
		uint8_t code;
	} codes[] = {
		{ 1, 1 }, { 2, 2 }, { 4, 4 }, { 8, 6 }, { 16, 8 }, { 32, 10 }, { 48, 11 },
		{ 64, 12 }, { 96, 13 }, { 128, 14 },
	};
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].ways == ways)
			return codes[i].code;
	return other;
}

static uint32_t l1_register(const struct topology_geometry *g)
{
	return g->size_kib ? g->size_kib << 24 | g->ways << 16 | 1 << 8 | g->line : 0;
}

static uint32_t l2_register(const struct topology_geometry *g, enum cpuid_vendor vendor)
{
	uint32_t other = vendor == CPUID_AMD ? WAYS_IN_LEAF_8000001D : WAYS_IN_LEAF_4;

	return g->size_kib ? g->size_kib << 16 | ways_code(g->ways, other) << 12 | g->line : 0;
}

/* Whole units of 512 KiB: the leaf gives the size as that much at least. */
static uint32_t l3_register(const struct topology_geometry *g)
{
	uint32_t units = g->size_kib / 512;

	return units ? units << 18 | ways_code(g->ways, WAYS_IN_LEAF_8000001D) << 12 | 1 << 8 |
			       g->line :
		       0;
}

/* Leaves 0x80000005 and 0x80000006; what AMD tells of TLBs in EAX and EBX stays. */
static int put_legacy_caches(struct cpuid_table *table, const struct topology *t,
			     enum cpuid_vendor vendor)
{
	const struct kvm_cpuid_entry2 *e = cpuid_find(table, 0x80000005, 0);
	struct cpuid_regs l1 = { 0 }, l2 = { 0 };
	int ret;

	if (vendor == CPUID_AMD) {
		l1.eax = e ? e->eax : 0;
		l1.ebx = e ? e->ebx : 0;
		l1.ecx = l1_register(&t->caches[TOPOLOGY_L1D].geometry);
		l1.edx = l1_register(&t->caches[TOPOLOGY_L1I].geometry);
		e = cpuid_find(table, 0x80000006, 0);
		l2.eax = e ? e->eax : 0;
		l2.ebx = e ? e->ebx : 0;
		l2.edx = l3_register(&t->caches[TOPOLOGY_L3].geometry);
	}
	l2.ecx = l2_register(&t->caches[TOPOLOGY_L2].geometry, vendor);
	l2.ecx |= vendor == CPUID_AMD && l2.ecx ? 1 << 8 : 0; /* lines per tag */
	ret = cpuid_put(table, 0x80000005, l1);
	return ret < 0 ? ret : cpuid_put(table, 0x80000006, l2);
}

static int put_intel(struct cpuid_table *table, const struct topology *t)
{
	uint32_t cores = topology_ids_in(t, TOPOLOGY_SOCKET) / topology_ids_in(t, TOPOLOGY_CORE);
	int ret;

	cpuid_remove(table, 0x8000001D);
	cpuid_remove(table, 0x8000001E);
	/* one descriptor: "leaf 4 has it" */
	ret = cpuid_put(table, 2, (struct cpuid_regs){ .eax = 0xFF01 });
	if (ret < 0)
		return ret;
	return cache_subleaves(table, t, 4, (cores - 1) << 26);
}

/*
 * A node of leaf 0x8000001E is a die. Its id is unique in the system, not only in
 * its socket: Linux takes it for the id of the third-level cache where that is
 * shared by a node (families below 17h).
 */
static int put_amd(struct cpuid_table *table, const struct topology *t, uint32_t id)
{
	unsigned socket_shift = topology_shift(t, TOPOLOGY_SOCKET);
	uint32_t in_socket = id & ((1u << socket_shift) - 1);
	struct cpuid_regs ids = {
		.eax = id,
		.ebx = in_socket >> topology_shift(t, TOPOLOGY_CORE) | (t->threads - 1) << 8,
		.ecx = (id >> topology_shift(t, TOPOLOGY_DIE) & 0xFF) | (t->dies - 1) << 8,
	};
	int ret;

	cpuid_remove(table, 2);
	cpuid_remove(table, 4);
	ret = cache_subleaves(table, t, 0x8000001D, 0);
	if (ret < 0)
		return ret;
	return cpuid_put(table, 0x8000001E, ids);
}

int cpuid_cache_build(struct cpuid_table *table, const struct topology *t,
		      enum cpuid_vendor vendor, uint32_t index)
{
	uint32_t id = topology_apic_id(t, index);
	struct kvm_cpuid_entry2 *e;
	int ret;

	ret = put_topology(table, t, vendor, id);
	if (ret < 0)
		return ret;
	ret = put_legacy_caches(table, t, vendor);
	if (ret < 0)
		return ret;
	ret = vendor == CPUID_AMD ? put_amd(table, t, id) : put_intel(table, t);
	if (ret < 0)
		return ret;
	e = cpuid_find(table, 0x80000008, 0);
	if (e) {
		e->ecx = 0;
		if (vendor == CPUID_AMD)
			e->ecx = (topology_cpus_in(t, TOPOLOGY_SOCKET) - 1) |
				 topology_shift(t, TOPOLOGY_SOCKET) << 12;
		e->edx = 0;
	}
	return 0;
}
