/*
 * The topology model. Threads: any. Locks: none.
 * Not here: what is refused (topology_check.c), how a guest is told
 * (arch-x86/cpuid_cache.c, acpi.c, mptable.c), how the host is asked (host_cpu.c).
 */
#include "vmm/topology.h"

#include <string.h>

#include "vmm/base/bits.h"
#include "vmm/config.h"

static const struct topology_geometry default_geometry[TOPOLOGY_CACHES] = {
	[TOPOLOGY_L1D] = { .size_kib = 32, .ways = 8, .line = 64 },
	[TOPOLOGY_L1I] = { .size_kib = 32, .ways = 8, .line = 64 },
	[TOPOLOGY_L2] = { .size_kib = 1024, .ways = 16, .line = 64 },
	[TOPOLOGY_L3] = { .size_kib = 16384, .ways = 16, .line = 64 },
};

static const enum topology_level default_sharing[TOPOLOGY_CACHES] = {
	[TOPOLOGY_L1D] = TOPOLOGY_CORE,
	[TOPOLOGY_L1I] = TOPOLOGY_CORE,
	[TOPOLOGY_L2] = TOPOLOGY_CORE,
	[TOPOLOGY_L3] = TOPOLOGY_DIE,
};

/* Takes what is given; otherwise the value stays, and so does where it comes from. */
static void take(uint32_t *value, enum topology_origin *from, const struct config_number *n)
{
	if (!n->given)
		return;
	*value = n->value;
	*from = TOPOLOGY_BY_CLIENT;
}

/* Cores that are not given are what is left; what does not divide is topology_check()'s. */
static void build_units(struct topology *t, const struct topology_config *c,
			const struct machine_config *m)
{
	uint64_t others;

	t->sockets = 1;
	t->dies = 1;
	t->threads = m->smt && m->vcpu_count > 1 ? 2 : 1;
	t->from.cores = t->from.threads = TOPOLOGY_BY_MACHINE;
	take(&t->sockets, &t->from.sockets, &c->sockets);
	take(&t->dies, &t->from.dies, &c->dies);
	take(&t->threads, &t->from.threads, &c->threads);
	others = (uint64_t)t->sockets * t->dies;
	others = others <= LIMIT_VCPUS ? others * t->threads : 0;
	t->cores = others ? (uint32_t)(m->vcpu_count / others) : 0;
	take(&t->cores, &t->from.cores, &c->cores);
}

static bool has_whole_sets(const struct topology_geometry *g)
{
	return g->ways && g->line && g->size_kib * KIB % ((uint64_t)g->ways * g->line) == 0;
}

/* A size that the host's ways do not divide takes the usual number of them. */
static void build_cache(struct topology_cache *cache, enum topology_cache_kind kind,
			const struct topology_cache_config *c, const struct topology_host *host)
{
	struct topology_geometry *g = &cache->geometry;
	bool host_has = topology_can_have(kind, &host->caches[kind]);

	*g = host_has ? host->caches[kind] : default_geometry[kind];
	cache->from.size_kib = cache->from.ways = cache->from.line =
		host_has ? TOPOLOGY_BY_HOST : TOPOLOGY_BY_DEFAULT;
	take(&g->size_kib, &cache->from.size_kib, &c->size_kib);
	take(&g->line, &cache->from.line, &c->line);
	if (!has_whole_sets(g)) {
		g->ways = default_geometry[kind].ways;
		cache->from.ways = TOPOLOGY_BY_DEFAULT;
	}
	take(&g->ways, &cache->from.ways, &c->ways);
	cache->shared_by = c->has_shared_by ? c->shared_by : default_sharing[kind];
	cache->from.shared_by = c->has_shared_by ? TOPOLOGY_BY_CLIENT : TOPOLOGY_BY_DEFAULT;
	cache->from.enabled = c->has_enabled ? TOPOLOGY_BY_CLIENT : TOPOLOGY_BY_DEFAULT;
	if (c->has_enabled && !c->enabled)
		*g = (struct topology_geometry){ 0 };
}

/* A virtual cache that nobody has sized is at least as large as the one before it. */
static void fit_l3(struct topology *t)
{
	struct topology_cache *l3 = &t->caches[TOPOLOGY_L3];
	const struct topology_cache *l2 = &t->caches[TOPOLOGY_L2];

	if (!topology_cache_exists(l3) || l3->geometry.size_kib >= l2->geometry.size_kib ||
	    l3->from.size_kib == TOPOLOGY_BY_CLIENT || l3->from.ways == TOPOLOGY_BY_CLIENT ||
	    l3->from.line == TOPOLOGY_BY_CLIENT)
		return;
	l3->geometry = l2->geometry;
	l3->from.size_kib = l3->from.ways = l3->from.line = TOPOLOGY_BY_DEFAULT;
}

/* As even as whole MiB allow; the first nodes get what is left. */
static void build_nodes(struct topology *t, const struct numa_config *c,
			const struct machine_config *m)
{
	uint64_t units = t->node == TOPOLOGY_DIE ? (uint64_t)t->sockets * t->dies : t->sockets;
	uint32_t i;

	if (units > LIMIT_NUMA_NODES)
		return; /* topology_check() finds too many sockets or dies */
	t->node_count = (uint32_t)units;
	t->node_mib_from = c->has_nodes ? TOPOLOGY_BY_CLIENT : TOPOLOGY_BY_MACHINE;
	for (i = 0; i < t->node_count; i++)
		t->node_mib[i] = c->has_nodes ? c->nodes[i].mem_size_mib :
						m->mem_size_mib / units +
							(i < m->mem_size_mib % units);
}

int topology_build(struct topology *t, const struct topology_config *c,
		   const struct machine_config *m, const struct topology_host *host,
		   struct error *err)
{
	int kind;

	memset(t, 0, sizeof(*t));
	build_units(t, c, m);
	for (kind = 0; kind < TOPOLOGY_CACHES; kind++)
		build_cache(&t->caches[kind], (enum topology_cache_kind)kind, &c->caches.of[kind],
			    host);
	fit_l3(t);
	if (c->has_numa) {
		t->node = c->numa.node;
		build_nodes(t, &c->numa, m);
	}
	return topology_check(t, c, m, err);
}

void topology_init(struct topology *t, uint32_t vcpu_count, bool smt)
{
	static const struct topology_config nothing;
	static const struct topology_host unknown;
	struct machine_config m = { .vcpu_count = vcpu_count };

	m.smt = smt && vcpu_count % 2 == 0;
	(void)topology_build(t, &nothing, &m, &unknown, NULL);
}

uint32_t topology_cpu_count(const struct topology *t)
{
	return topology_cpus_in(t, TOPOLOGY_ALL);
}

unsigned topology_shift(const struct topology *t, enum topology_level level)
{
	unsigned shift = 0;

	if (level >= TOPOLOGY_CORE)
		shift += ceil_log2(t->threads);
	if (level >= TOPOLOGY_DIE)
		shift += ceil_log2(t->cores);
	if (level >= TOPOLOGY_SOCKET)
		shift += ceil_log2(t->dies);
	if (level >= TOPOLOGY_ALL)
		shift += ceil_log2(t->sockets);
	return shift;
}

uint32_t topology_cpus_in(const struct topology *t, enum topology_level level)
{
	uint32_t cpus = 1;

	if (level >= TOPOLOGY_CORE)
		cpus *= t->threads;
	if (level >= TOPOLOGY_DIE)
		cpus *= t->cores;
	if (level >= TOPOLOGY_SOCKET)
		cpus *= t->dies;
	if (level >= TOPOLOGY_ALL)
		cpus *= t->sockets;
	return cpus;
}

uint32_t topology_ids_in(const struct topology *t, enum topology_level level)
{
	return 1u << topology_shift(t, level);
}

uint32_t topology_unit_of(const struct topology *t, enum topology_level level, uint32_t index)
{
	uint32_t above = level < TOPOLOGY_ALL ? topology_cpus_in(t, level + 1) : UINT32_MAX;

	return index % above / topology_cpus_in(t, level);
}

uint32_t topology_apic_id(const struct topology *t, uint32_t index)
{
	uint32_t id = 0;
	int level;

	for (level = TOPOLOGY_THREAD; level <= TOPOLOGY_SOCKET; level++)
		id |= topology_unit_of(t, (enum topology_level)level, index)
		      << topology_shift(t, (enum topology_level)level);
	return id;
}

uint32_t topology_max_apic_id(const struct topology *t)
{
	return topology_apic_id(t, topology_cpu_count(t) - 1);
}

uint32_t topology_node_of(const struct topology *t, uint32_t index)
{
	return t->node_count ? index / topology_cpus_in(t, t->node) : 0;
}

bool topology_cache_exists(const struct topology_cache *c)
{
	return c->geometry.size_kib > 0;
}

unsigned topology_cache_shift(const struct topology *t, enum topology_cache_kind kind)
{
	const struct topology_cache *c = &t->caches[kind];

	return c->is_narrowed ? c->narrow_shift : topology_shift(t, c->shared_by);
}

uint32_t topology_cache_sets(const struct topology_cache *c)
{
	return (uint32_t)(c->geometry.size_kib * KIB / (c->geometry.ways * c->geometry.line));
}

/* Every two CPUs whose ids agree above `shift` lie in one host cache. */
static bool groups_fit(const struct topology *t, const int32_t *groups, unsigned shift)
{
	uint32_t count = topology_cpu_count(t), i;

	for (i = 1; i < count; i++) {
		/* ids ascend, so that a group's CPUs follow each other */
		bool together = topology_apic_id(t, i) >> shift ==
				topology_apic_id(t, i - 1) >> shift;

		if (together && (groups[i] < 0 || groups[i] != groups[i - 1]))
			return false;
	}
	return true;
}

bool topology_narrow_l3(struct topology *t, const int32_t *groups)
{
	struct topology_cache *l3 = &t->caches[TOPOLOGY_L3];
	const struct topology_cache *l2 = &t->caches[TOPOLOGY_L2];
	unsigned shift = topology_shift(t, l3->shared_by);
	unsigned floor = topology_shift(t, topology_cache_exists(l2) ? l2->shared_by :
								       TOPOLOGY_CORE);

	l3->is_narrowed = false;
	if (!topology_cache_exists(l3))
		return false;
	while (shift > floor && !groups_fit(t, groups, shift))
		shift--;
	l3->is_narrowed = shift < topology_shift(t, l3->shared_by);
	l3->narrow_shift = shift;
	return l3->is_narrowed;
}

const char *topology_level_name(enum topology_level level)
{
	static const char *const names[TOPOLOGY_LEVELS] = {
		[TOPOLOGY_THREAD] = "thread", [TOPOLOGY_CORE] = "core",
		[TOPOLOGY_DIE] = "die",       [TOPOLOGY_SOCKET] = "socket",
		[TOPOLOGY_ALL] = "all",
	};

	return names[level];
}

const char *topology_cache_name(enum topology_cache_kind kind)
{
	static const char *const names[TOPOLOGY_CACHES] = {
		[TOPOLOGY_L1D] = "l1d",
		[TOPOLOGY_L1I] = "l1i",
		[TOPOLOGY_L2] = "l2",
		[TOPOLOGY_L3] = "l3",
	};

	return names[kind];
}
