/*
 * What a topology must be: possible in itself, in accord with the machine's
 * configuration, and such that every place that tells a guest about it (CPUID of
 * both makes, ACPI, MP table) can. Each error names the client's field.
 *
 * Widths of fields: Intel SDM volume 2A, CPUID, leaf 4; AMD APM volume 3, appendix
 * E, leaves 0x80000005, 0x80000006 and 0x8000001E. The narrower of the two makes
 * counts, so that a configuration does not depend on the host. Numbers of cores
 * and ids need no check: LIMIT_VCPUS keeps them far below what leaves can hold.
 *
 * Threads: any. Locks: none.
 */
#include "vmm/topology.h"

#include <errno.h>

#include "vmm/base/bits.h"
#include "vmm/config.h"

#define DIES_MAX 8       /* 0x8000001E: nodes of a socket, 3 bits */
#define LINE_MIN 16
#define LINE_MAX 128     /* 0x80000005, 0x80000006: 8 bits */
#define WAYS_MAX 1024    /* leaf 4: 10 bits, counted from 0 */
#define L1_WAYS_MAX 254  /* 0x80000005: 8 bits, 255 for "fully associative" */
#define L1_KIB_MAX 255   /* 0x80000005: 8 bits */
#define L2_KIB_MAX 65535 /* 0x80000006: 16 bits */
#define L3_UNIT_KIB 512  /* 0x80000006: less than one unit is no cache */
#define L3_KIB_MAX (16383 * L3_UNIT_KIB) /* 14 bits of units */

/* What each cache's fields are called, and what it may be. */
static const struct cache_limits {
	const char *size_kib, *ways, *line, *shared_by;
	uint32_t kib_min, kib_max, ways_max;
} cache_limits[TOPOLOGY_CACHES] = {
	[TOPOLOGY_L1D] = { "caches.l1d.size_kib", "caches.l1d.ways", "caches.l1d.line",
			   "caches.l1d.shared_by", 1, L1_KIB_MAX, L1_WAYS_MAX },
	[TOPOLOGY_L1I] = { "caches.l1i.size_kib", "caches.l1i.ways", "caches.l1i.line",
			   "caches.l1i.shared_by", 1, L1_KIB_MAX, L1_WAYS_MAX },
	[TOPOLOGY_L2] = { "caches.l2.size_kib", "caches.l2.ways", "caches.l2.line",
			  "caches.l2.shared_by", 1, L2_KIB_MAX, WAYS_MAX },
	[TOPOLOGY_L3] = { "caches.l3.size_kib", "caches.l3.ways", "caches.l3.line",
			  "caches.l3.shared_by", L3_UNIT_KIB, L3_KIB_MAX, WAYS_MAX },
};

static int check_range(const char *field, uint64_t value, uint64_t min, uint64_t max,
		       struct error *err)
{
	if (value >= min && value <= max)
		return 0;
	return error_set_field(err, -EINVAL, field, "%llu is out of range [%llu, %llu]",
			       (unsigned long long)value, (unsigned long long)min,
			       (unsigned long long)max);
}

/* The field that is to blame where the product is wrong: the last that a client gave. */
static const char *blamed_unit(const struct topology_config *c)
{
	if (c->cores.given)
		return "cores";
	if (c->threads.given)
		return "threads";
	return c->dies.given ? "dies" : "sockets";
}

static int check_units(const struct topology *t, const struct topology_config *c,
		       const struct machine_config *m, struct error *err)
{
	uint64_t product;
	int ret = check_range("sockets", t->sockets, 1, m->vcpu_count, err);

	if (ret == 0)
		ret = check_range("dies", t->dies, 1,
				  m->vcpu_count < DIES_MAX ? m->vcpu_count : DIES_MAX, err);
	if (ret == 0)
		ret = check_range("threads", t->threads, 1, m->vcpu_count, err);
	if (ret == 0 && c->cores.given)
		ret = check_range("cores", t->cores, 1, m->vcpu_count, err);
	if (ret < 0)
		return ret;
	product = (uint64_t)t->sockets * t->dies * t->cores * t->threads;
	if (product != m->vcpu_count)
		return error_set_field(err, -EINVAL, blamed_unit(c),
				       "%u sockets of %u dies of %u cores of %u threads are %llu "
				       "vCPUs, the machine's vcpu_count is %u",
				       t->sockets, t->dies, t->cores, t->threads,
				       (unsigned long long)product, m->vcpu_count);
	if (m->vcpu_count > 1 && m->smt != (t->threads > 1))
		return error_set_field(err, -EINVAL, "threads",
				       "%u threads a core, the machine's smt is %s", t->threads,
				       m->smt ? "true" : "false");
	return 0;
}

/* Nothing that a client gives may be without effect. */
static int check_disabled(const struct topology_cache_config *c, const struct cache_limits *l,
			  struct error *err)
{
	const char *field = c->size_kib.given  ? l->size_kib :
			    c->ways.given      ? l->ways :
			    c->line.given      ? l->line :
			    c->has_shared_by   ? l->shared_by :
						 NULL;

	if (!field)
		return 0;
	return error_set_field(err, -EINVAL, field, "the cache is not enabled");
}

static int check_geometry(const struct topology_geometry *g, const struct cache_limits *l,
			  struct error *err)
{
	int ret = check_range(l->size_kib, g->size_kib, l->kib_min, l->kib_max, err);

	if (ret == 0)
		ret = check_range(l->ways, g->ways, 1, l->ways_max, err);
	if (ret == 0)
		ret = check_range(l->line, g->line, LINE_MIN, LINE_MAX, err);
	if (ret < 0)
		return ret;
	if (!is_power_of_two(g->line))
		return error_set_field(err, -EINVAL, l->line, "%u is no power of two", g->line);
	if (g->size_kib * KIB % (g->ways * g->line))
		return error_set_field(err, -EINVAL, l->size_kib,
				       "%u KiB are no whole number of sets of %u ways of %u bytes",
				       g->size_kib, g->ways, g->line);
	return 0;
}

bool topology_can_have(enum topology_cache_kind kind, const struct topology_geometry *g)
{
	return check_geometry(g, &cache_limits[kind], NULL) == 0;
}

static int check_sharing(const struct topology *t, enum topology_cache_kind kind,
			 struct error *err)
{
	const struct topology_cache *c = &t->caches[kind];
	const char *field = cache_limits[kind].shared_by;
	const char *name = topology_level_name(c->shared_by);
	uint32_t cpus = topology_cpus_in(t, c->shared_by);

	if (cpus < t->threads)
		return error_set_field(err, -EINVAL, field,
				       "\"%s\" is narrower than a core, whose threads share all "
				       "its caches", name);
	if (cpus > topology_cpus_in(t, TOPOLOGY_SOCKET))
		return error_set_field(err, -EINVAL, field, "\"%s\" is wider than a socket", name);
	if (t->node_count && cpus > topology_cpus_in(t, t->node))
		return error_set_field(err, -EINVAL, field, "\"%s\" is wider than a NUMA node, "
				       "which is a %s", name, topology_level_name(t->node));
	return 0;
}

static int check_outer(const struct topology *t, enum topology_cache_kind inner,
		       enum topology_cache_kind outer, struct error *err)
{
	const struct topology_cache *i = &t->caches[inner], *o = &t->caches[outer];

	if (!topology_cache_exists(i) || !topology_cache_exists(o) ||
	    topology_cpus_in(t, o->shared_by) >= topology_cpus_in(t, i->shared_by))
		return 0;
	return error_set_field(err, -EINVAL, cache_limits[outer].shared_by,
			       "\"%s\" is narrower than the \"%s\" of %s",
			       topology_level_name(o->shared_by), topology_level_name(i->shared_by),
			       topology_cache_name(inner));
}

/* Each outer cache holds the inner ones. */
static int check_nesting(const struct topology *t, struct error *err)
{
	const struct topology_geometry *l2 = &t->caches[TOPOLOGY_L2].geometry;
	const struct topology_geometry *l3 = &t->caches[TOPOLOGY_L3].geometry;
	int inner, outer, ret;

	for (outer = TOPOLOGY_L2; outer < TOPOLOGY_CACHES; outer++)
		for (inner = 0; inner < outer; inner++) {
			ret = check_outer(t, (enum topology_cache_kind)inner,
					  (enum topology_cache_kind)outer, err);
			if (ret < 0)
				return ret;
		}
	if (l3->size_kib && l3->size_kib < l2->size_kib)
		return error_set_field(err, -EINVAL, "caches.l3.size_kib",
				       "%u KiB are smaller than the %u KiB of l2", l3->size_kib,
				       l2->size_kib);
	return 0;
}

static int check_caches(const struct topology *t, const struct topology_config *c,
			struct error *err)
{
	int kind, ret = 0;

	for (kind = 0; ret == 0 && kind < TOPOLOGY_CACHES; kind++) {
		const struct topology_cache_config *asked = &c->caches.of[kind];

		if (asked->has_enabled && !asked->enabled) {
			ret = check_disabled(asked, &cache_limits[kind], err);
			continue;
		}
		ret = check_geometry(&t->caches[kind].geometry, &cache_limits[kind], err);
		if (ret == 0)
			ret = check_sharing(t, (enum topology_cache_kind)kind, err);
	}
	return ret == 0 ? check_nesting(t, err) : ret;
}

static int check_nodes(const struct topology *t, const struct numa_config *c,
		       const struct machine_config *m, struct error *err)
{
	uint64_t sum = 0;
	uint32_t i;

	if (c->has_nodes && c->node_count != t->node_count)
		return error_set_field(err, -EINVAL, "numa.nodes",
				       "%u are given, there are %u (one for each %s)",
				       c->node_count, t->node_count, topology_level_name(t->node));
	for (i = 0; i < t->node_count; i++) {
		if (t->node_mib[i] < LIMIT_NUMA_NODE_MIB)
			return error_set_field(err, -EINVAL,
					       c->has_nodes ? "numa.nodes.mem_size_mib" : "numa",
					       "node %u has %llu MiB, less than %d", i,
					       (unsigned long long)t->node_mib[i],
					       LIMIT_NUMA_NODE_MIB);
		if (t->node_mib[i] > m->mem_size_mib - sum)
			break;
		sum += t->node_mib[i];
	}
	if (i == t->node_count && sum == m->mem_size_mib)
		return 0;
	return error_set_field(err, -EINVAL, "numa.nodes.mem_size_mib",
			       "the nodes have %s than the machine's mem_size_mib of %llu",
			       i < t->node_count ? "more" : "less",
			       (unsigned long long)m->mem_size_mib);
}

int topology_check(const struct topology *t, const struct topology_config *c,
		   const struct machine_config *m, struct error *err)
{
	int ret = check_units(t, c, m, err);

	if (ret == 0)
		ret = check_caches(t, c, err);
	if (ret == 0 && c->has_numa)
		ret = check_nodes(t, &c->numa, m, err);
	return ret;
}
