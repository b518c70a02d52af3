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

#include "vmm/base/error.h"
#include "vmm/limits.h"

struct machine_config;
struct topology_config;

/* A unit of the machine; each consists of units of the level before. */
enum topology_level {
	TOPOLOGY_THREAD,
	TOPOLOGY_CORE,
	TOPOLOGY_DIE,
	TOPOLOGY_SOCKET,
	TOPOLOGY_ALL,
	TOPOLOGY_LEVELS,
};

enum topology_cache_kind {
	TOPOLOGY_L1D,
	TOPOLOGY_L1I,
	TOPOLOGY_L2,
	TOPOLOGY_L3,
	TOPOLOGY_CACHES,
};

/* Where a value comes from. */
enum topology_origin {
	TOPOLOGY_BY_DEFAULT,
	TOPOLOGY_BY_MACHINE, /* vcpu_count, smt and mem_size_mib of the machine's configuration */
	TOPOLOGY_BY_HOST,    /* a CPU of the host has it */
	TOPOLOGY_BY_CLIENT,
};

/* Size and shape of a cache. */
struct topology_geometry {
	uint32_t size_kib; /* 0: there is no such cache */
	uint32_t ways;
	uint32_t line; /* bytes */
};

struct topology_cache {
	struct topology_geometry geometry;
	enum topology_level shared_by; /* the CPUs of one such unit share it */
	/* fewer share it: those whose ids agree but for the lowest `narrow_shift` bits */
	bool is_narrowed;
	unsigned narrow_shift;
	struct {
		enum topology_origin size_kib, ways, line, shared_by, enabled;
	} from;
};

struct topology {
	uint32_t sockets;
	uint32_t dies;    /* per socket */
	uint32_t cores;   /* per die */
	uint32_t threads; /* per core */
	struct {
		enum topology_origin sockets, dies, cores, threads;
	} from;
	struct topology_cache caches[TOPOLOGY_CACHES];
	/* NUMA: each unit of a level is a node, if node_count is not 0 */
	enum topology_level node;
	uint32_t node_count;
	uint64_t node_mib[LIMIT_NUMA_NODES];
	enum topology_origin node_mib_from;
};

/* What the caches of the host are like; a size of 0: unknown. */
struct topology_host {
	struct topology_geometry caches[TOPOLOGY_CACHES];
};

/*
 * The model for what a client asks for, what it has left out filled in: one socket
 * of one die, cores and threads by the machine, caches like the host's, the third
 * level virtual and shared by the die. Checked by topology_check().
 */
int topology_build(struct topology *t, const struct topology_config *c,
		   const struct machine_config *m, const struct topology_host *host,
		   struct error *err);
/* The same with nothing asked for and nothing known of the host. */
void topology_init(struct topology *t, uint32_t vcpu_count, bool smt);

/* 0, or -EINVAL with the field named: what cannot be, and what cannot be told to a guest. */
int topology_check(const struct topology *t, const struct topology_config *c,
		   const struct machine_config *m, struct error *err);

/* A guest can be told of such a cache. */
bool topology_can_have(enum topology_cache_kind kind, const struct topology_geometry *g);

/*
 * Host caches are narrower than the model's: lets as many CPUs share the third
 * level as lie in one host cache, groups[i] being that of CPU i, or negative if it
 * lies in several. Not below the level before it. True if that narrowed anything.
 */
bool topology_narrow_l3(struct topology *t, const int32_t *groups);

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
/* Number of the unit of `level` that a CPU is in, within the unit of the level above. */
uint32_t topology_unit_of(const struct topology *t, enum topology_level level, uint32_t index);
/* NUMA node of a CPU; 0 without NUMA. */
uint32_t topology_node_of(const struct topology *t, uint32_t index);

bool topology_cache_exists(const struct topology_cache *c);
/* Right-shift of an id that leaves the number of the group of CPUs that share the cache. */
unsigned topology_cache_shift(const struct topology *t, enum topology_cache_kind kind);
/* Sets of a cache: size / (ways * line). */
uint32_t topology_cache_sets(const struct topology_cache *c);

/* "thread", "core", "die", "socket", "all" */
const char *topology_level_name(enum topology_level level);
/* "l1d", "l1i", "l2", "l3" */
const char *topology_cache_name(enum topology_cache_kind kind);

#endif
