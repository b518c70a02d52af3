/*
 * CPU topology and caches: how many sockets, dies, cores and threads the guest
 * sees, which ids its CPUs have, and which CPUs share which cache.
 *
 * One model for everything that tells the guest about it (x86: CPUID leaves,
 * MADT, MP table; arm64: cpu-map, cache nodes, MPIDR). Ids are sparse: each
 * level has a field of its own, wide enough for its count, so that a guest
 * finds the level by shifting.
 *
 *	id = socket | die | core | thread	(thread in the lowest bits)
 *
 * Pure data; made on the main thread, read by any.
 */
#ifndef LULL_TOPOLOGY_H
#define LULL_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

/* A unit of the machine; each consists of units of the level before. */
enum topology_level {
	TOPOLOGY_THREAD,
	TOPOLOGY_CORE,
	TOPOLOGY_DIE,
	TOPOLOGY_SOCKET,
	TOPOLOGY_LEVELS,
};

enum topology_cache_kind {
	TOPOLOGY_L1D,
	TOPOLOGY_L1I,
	TOPOLOGY_L2,
	TOPOLOGY_L3,
	TOPOLOGY_CACHES,
};

struct topology_cache {
	uint32_t size_kib; /* 0: there is no such cache */
	uint32_t ways;
	uint32_t line;               /* bytes */
	enum topology_level shared_by; /* the CPUs of one such unit share it */
};

struct topology {
	uint32_t sockets;
	uint32_t dies;    /* per socket */
	uint32_t cores;   /* per die */
	uint32_t threads; /* per core */
	struct topology_cache caches[TOPOLOGY_CACHES];
};

/*
 * One socket of one die; two threads a core if `smt` and there is more than
 * one vCPU (which then must be an even number). Caches of usual sizes; the
 * third level is virtual and shared by the die.
 */
void topology_init(struct topology *t, uint32_t vcpu_count, bool smt);

uint32_t topology_cpu_count(const struct topology *t);

/* Hardware id (APIC id) of the CPU of this index; CPUs are numbered thread first. */
uint32_t topology_apic_id(const struct topology *t, uint32_t index);
/* The largest id of all CPUs. */
uint32_t topology_max_apic_id(const struct topology *t);

/* Right-shift of an id that leaves the number of the unit of `level`: 0 for threads. */
unsigned topology_shift(const struct topology *t, enum topology_level level);
/* CPUs in one unit of `level`: 1 for threads. */
uint32_t topology_cpus_in(const struct topology *t, enum topology_level level);
/* Ids that the field of one unit of `level` has room for: the power of two above. */
uint32_t topology_ids_in(const struct topology *t, enum topology_level level);

/* Sets of a cache: size / (ways * line). */
uint32_t topology_cache_sets(const struct topology_cache *c);

#endif
