/*
 * The topology model. Threads: any. Locks: none.
 * Not here: how a guest is told (arch-x86/cpuid_cache.c, acpi.c, mptable.c).
 */
#include "vmm/topology.h"

#include <string.h>

#include "vmm/base/bits.h"

static const struct topology_cache default_caches[TOPOLOGY_CACHES] = {
	[TOPOLOGY_L1D] = { .size_kib = 32, .ways = 8, .line = 64, .shared_by = TOPOLOGY_CORE },
	[TOPOLOGY_L1I] = { .size_kib = 32, .ways = 8, .line = 64, .shared_by = TOPOLOGY_CORE },
	[TOPOLOGY_L2] = { .size_kib = 1024, .ways = 16, .line = 64, .shared_by = TOPOLOGY_CORE },
	[TOPOLOGY_L3] = { .size_kib = 16384, .ways = 16, .line = 64, .shared_by = TOPOLOGY_DIE },
};

void topology_init(struct topology *t, uint32_t vcpu_count, bool smt)
{
	memset(t, 0, sizeof(*t));
	t->sockets = 1;
	t->dies = 1;
	t->threads = smt && vcpu_count > 1 && vcpu_count % 2 == 0 ? 2 : 1;
	t->cores = vcpu_count / t->threads;
	memcpy(t->caches, default_caches, sizeof(t->caches));
}

uint32_t topology_cpu_count(const struct topology *t)
{
	return t->sockets * t->dies * t->cores * t->threads;
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
	return cpus;
}

uint32_t topology_ids_in(const struct topology *t, enum topology_level level)
{
	return 1u << topology_shift(t, level);
}

uint32_t topology_apic_id(const struct topology *t, uint32_t index)
{
	uint32_t thread = index % t->threads;
	uint32_t core = index / t->threads % t->cores;
	uint32_t die = index / t->threads / t->cores % t->dies;
	uint32_t socket = index / t->threads / t->cores / t->dies;

	return socket << topology_shift(t, TOPOLOGY_SOCKET) |
	       die << topology_shift(t, TOPOLOGY_DIE) |
	       core << topology_shift(t, TOPOLOGY_CORE) | thread;
}

uint32_t topology_max_apic_id(const struct topology *t)
{
	return topology_apic_id(t, topology_cpu_count(t) - 1);
}

uint32_t topology_cache_sets(const struct topology_cache *c)
{
	return (uint32_t)(c->size_kib * KIB / (c->ways * c->line));
}
