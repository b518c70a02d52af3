/*
 * Topologies that are refused, with the field that is to blame, each beside the
 * nearest one that is taken.
 */
#include "tests/arch-x86/arch_test.h"

#include "vmm/config.h"
#include "vmm/topology.h"

#define GIVEN(v) { .value = (v), .given = true }
#define L1D caches.of[TOPOLOGY_L1D]
#define L1I caches.of[TOPOLOGY_L1I]
#define L2 caches.of[TOPOLOGY_L2]
#define L3 caches.of[TOPOLOGY_L3]
#define SHARED(level) .shared_by = (level), .has_shared_by = true
#define OFF .has_enabled = true
#define ON .has_enabled = true, .enabled = true
#define NUMA(level) .numa.node = (level), .has_numa = true

struct row {
	const char *field; /* NULL: it is taken */
	uint32_t vcpus;
	bool smt;
	struct topology_config c;
};

static const struct row units[] = {
	{ NULL, 8, true, { .sockets = GIVEN(2), .dies = GIVEN(2), .cores = GIVEN(1),
			   .threads = GIVEN(2) } },
	{ "sockets", 4, false, { .sockets = GIVEN(0) } },
	{ "dies", 4, false, { .dies = GIVEN(0) } },
	{ "cores", 4, false, { .cores = GIVEN(0) } },
	{ "threads", 4, true, { .threads = GIVEN(0) } },
	{ "sockets", 4, false, { .sockets = GIVEN(3) } },
	{ "sockets", 4, false, { .sockets = GIVEN(5) } },
	{ "sockets", 4, false, { .sockets = GIVEN(UINT32_MAX), .dies = GIVEN(UINT32_MAX) } },
	{ "dies", 8, false, { .sockets = GIVEN(2), .dies = GIVEN(3) } },
	{ "cores", 4, false, { .cores = GIVEN(3) } },
	{ "cores", 8, false, { .sockets = GIVEN(2), .cores = GIVEN(8) } },
	{ "threads", 6, true, { .threads = GIVEN(4) } },
	{ "cores", 4, false, { .cores = GIVEN(UINT32_MAX) } },
	{ "threads", 4, true, { .threads = GIVEN(UINT32_MAX) } },
	/* the machine's smt says otherwise */
	{ "threads", 4, false, { .threads = GIVEN(2) } },
	{ "threads", 4, true, { .threads = GIVEN(1) } },
	{ NULL, 4, true, { .threads = GIVEN(4) } },
	{ NULL, 1, true, { .threads = GIVEN(1) } },
	/* nodes of a socket have 3 bits */
	{ NULL, 8, false, { .dies = GIVEN(8) } },
	{ "dies", 9, false, { .dies = GIVEN(9) } },
	{ NULL, 32, false, { .sockets = GIVEN(4), .dies = GIVEN(8) } },
};

static const struct row geometries[] = {
	{ "caches.l3.size_kib", 2, false, { .L3 = { .size_kib = GIVEN(0) } } },
	{ "caches.l3.ways", 2, false, { .L3 = { .ways = GIVEN(0) } } },
	{ "caches.l3.line", 2, false, { .L3 = { .line = GIVEN(0) } } },
	{ "caches.l1d.size_kib", 2, false, { .L1D = { .size_kib = GIVEN(0) } } },
	/* no whole number of sets */
	{ "caches.l2.size_kib", 2, false, { .L2 = { .size_kib = GIVEN(1000), .ways = GIVEN(7) } } },
	{ "caches.l1d.size_kib", 2, false, { .L1D = { .ways = GIVEN(3) } } },
	{ NULL, 2, false, { .L1D = { .size_kib = GIVEN(48), .ways = GIVEN(3) } } },
	/* lines */
	{ "caches.l1i.line", 2, false, { .L1I = { .line = GIVEN(96) } } },
	{ "caches.l1i.line", 2, false, { .L1I = { .line = GIVEN(8) } } },
	{ NULL, 2, false, { .L1I = { .line = GIVEN(16) } } },
	{ NULL, 2, false, { .L3 = { .line = GIVEN(128) } } },
	{ "caches.l3.line", 2, false, { .L3 = { .line = GIVEN(256) } } },
	/* as wide as CPUID has bits */
	{ NULL, 2, false, { .L1D = { .size_kib = GIVEN(255), .ways = GIVEN(15) } } },
	{ "caches.l1d.size_kib", 2, false, { .L1D = { .size_kib = GIVEN(256) } } },
	{ NULL, 2, false, { .L1D = { .size_kib = GIVEN(254), .ways = GIVEN(254) } } },
	{ "caches.l1d.ways", 2, false, { .L1D = { .size_kib = GIVEN(255), .ways = GIVEN(255) } } },
	{ NULL, 2, false, { .L2 = { .size_kib = GIVEN(65535), .ways = GIVEN(15) } } },
	{ "caches.l2.size_kib", 2, false, { .L2 = { .size_kib = GIVEN(65536) } } },
	{ NULL, 2, false, { .L2 = { .ways = GIVEN(1024) } } },
	{ "caches.l2.ways", 2, false, { .L2 = { .size_kib = GIVEN(1025), .ways = GIVEN(1025) } } },
	{ NULL, 2, false, { .L3 = { .size_kib = GIVEN(16383 * 512) } } },
	{ "caches.l3.size_kib", 2, false, { .L3 = { .size_kib = GIVEN(16384 * 512) } } },
	{ NULL, 2, false, { .L2 = { .size_kib = GIVEN(512) }, .L3 = { .size_kib = GIVEN(512) } } },
	{ "caches.l3.size_kib", 2, false, { .L2 = { .size_kib = GIVEN(256) },
					    .L3 = { .size_kib = GIVEN(511) } } },
	{ "caches.l3.size_kib", 2, false, { .L3 = { .size_kib = GIVEN(UINT32_MAX),
						    .ways = GIVEN(UINT32_MAX) } } },
	/* the third level holds the second */
	{ NULL, 2, false, { .L3 = { .size_kib = GIVEN(1024) } } },
	{ "caches.l3.size_kib", 2, false, { .L3 = { .size_kib = GIVEN(1023), .ways = GIVEN(1) } } },
	{ NULL, 2, false, { .L2 = { OFF }, .L3 = { .size_kib = GIVEN(512) } } },
};

static const struct row sharings[] = {
	/* wider than a socket, than a node */
	{ NULL, 4, false, { .L3 = { SHARED(TOPOLOGY_ALL) } } },
	{ "caches.l3.shared_by", 4, false, { .sockets = GIVEN(2), .L3 = { SHARED(TOPOLOGY_ALL) } } },
	{ NULL, 4, false, { .dies = GIVEN(2), .L3 = { SHARED(TOPOLOGY_SOCKET) } } },
	{ "caches.l3.shared_by", 4, false, { .dies = GIVEN(2), NUMA(TOPOLOGY_DIE),
					     .L3 = { SHARED(TOPOLOGY_SOCKET) } } },
	{ NULL, 4, false, { .dies = GIVEN(2), NUMA(TOPOLOGY_SOCKET),
			    .L3 = { SHARED(TOPOLOGY_SOCKET) } } },
	/* an outer cache holds the inner ones */
	{ NULL, 4, false, { .L2 = { SHARED(TOPOLOGY_DIE) } } },
	{ "caches.l3.shared_by", 4, false, { .L2 = { SHARED(TOPOLOGY_DIE) },
					     .L3 = { SHARED(TOPOLOGY_CORE) } } },
	{ "caches.l2.shared_by", 4, false, { .L1I = { SHARED(TOPOLOGY_DIE) } } },
	{ "caches.l3.shared_by", 4, false, { .L1D = { SHARED(TOPOLOGY_DIE) }, .L2 = { OFF },
					     .L3 = { SHARED(TOPOLOGY_CORE) } } },
	{ NULL, 4, false, { .L1D = { SHARED(TOPOLOGY_CORE) }, .L2 = { SHARED(TOPOLOGY_THREAD) } } },
	/* a core's threads share all its caches */
	{ NULL, 4, false, { .L1D = { SHARED(TOPOLOGY_THREAD) } } },
	{ "caches.l1d.shared_by", 4, true, { .L1D = { SHARED(TOPOLOGY_THREAD) } } },
	{ "caches.l2.shared_by", 4, true, { .L2 = { SHARED(TOPOLOGY_THREAD) } } },
	{ NULL, 4, true, { .L3 = { SHARED(TOPOLOGY_CORE) } } },
	{ "caches.l3.shared_by", 4, true, { .L3 = { SHARED(TOPOLOGY_THREAD) } } },
	/* nothing that is given is without effect */
	{ NULL, 4, false, { .L3 = { OFF } } },
	{ NULL, 4, false, { .L3 = { ON, .size_kib = GIVEN(4096) } } },
	{ "caches.l3.size_kib", 4, false, { .L3 = { OFF, .size_kib = GIVEN(4096) } } },
	{ "caches.l3.ways", 4, false, { .L3 = { OFF, .ways = GIVEN(16) } } },
	{ "caches.l3.line", 4, false, { .L3 = { OFF, .line = GIVEN(64) } } },
	{ "caches.l3.shared_by", 4, false, { .L3 = { OFF, SHARED(TOPOLOGY_DIE) } } },
};

#define NODES(level, count, ...)                                                       \
	.numa = { .node = (level), .nodes = { __VA_ARGS__ }, .node_count = (count),    \
		  .has_nodes = true }, .has_numa = true

/* The machine has 64 MiB. */
static const struct row nodes[] = {
	{ NULL, 4, false, { NUMA(TOPOLOGY_SOCKET) } },
	{ NULL, 4, false, { .sockets = GIVEN(4), NUMA(TOPOLOGY_DIE) } },
	{ NULL, 16, false, { .sockets = GIVEN(16), NUMA(TOPOLOGY_SOCKET) } },
	{ "numa", 17, false, { .sockets = GIVEN(17), NUMA(TOPOLOGY_SOCKET) } }, /* 3 MiB each */
	{ "sockets", 4, false, { .sockets = GIVEN(33), NUMA(TOPOLOGY_SOCKET) } },
	{ NULL, 4, false, { .dies = GIVEN(2), NODES(TOPOLOGY_DIE, 2, { 4 }, { 60 }) } },
	{ "numa.nodes.mem_size_mib", 4, false,
	  { .dies = GIVEN(2), NODES(TOPOLOGY_DIE, 2, { 3 }, { 61 }) } },
	{ "numa.nodes.mem_size_mib", 4, false,
	  { .dies = GIVEN(2), NODES(TOPOLOGY_DIE, 2, { 4 }, { 59 }) } },
	{ "numa.nodes.mem_size_mib", 4, false,
	  { .dies = GIVEN(2), NODES(TOPOLOGY_DIE, 2, { 4 }, { 61 }) } },
	{ "numa.nodes.mem_size_mib", 4, false,
	  { .dies = GIVEN(2), NODES(TOPOLOGY_DIE, 2, { UINT64_MAX - 3 }, { 68 }) } },
	{ "numa.nodes", 4, false, { .dies = GIVEN(2), NODES(TOPOLOGY_DIE, 1, { 64 }) } },
	{ "numa.nodes", 4, false, { .dies = GIVEN(2), NODES(TOPOLOGY_DIE, 0, { 0 }) } },
	{ "numa.nodes", 4, false, { NODES(TOPOLOGY_SOCKET, 2, { 32 }, { 32 }) } },
};

static void check(const struct row *r, size_t row)
{
	static const struct topology_host unknown;
	struct machine_config m = { .vcpu_count = r->vcpus, .smt = r->smt, .mem_size_mib = 64 };
	struct error err = { .field = NULL, .text = "" };
	struct topology t;
	int ret = topology_build(&t, &r->c, &m, &unknown, &err);

	if (ret != (r->field ? -EINVAL : 0))
		fail_msg("row %zu: %d, %s", row, ret, err.text);
	if (r->field && (!err.field || strcmp(err.field, r->field) != 0))
		fail_msg("row %zu: blames %s, %s", row, err.field, err.text);
	if (r->field)
		assert_memory_equal(err.text, r->field, strlen(r->field));
}

#define CHECK_ALL(rows)                                \
	do {                                           \
		size_t i_;                             \
		for (i_ = 0; i_ < ARRAY_SIZE(rows); i_++) \
			check(&(rows)[i_], i_);        \
	} while (0)

static void units_must_make_the_vcpus(void **state)
{
	CHECK_ALL(units);
}

static void geometries_must_fit_cpuid(void **state)
{
	CHECK_ALL(geometries);
}

static void sharing_must_nest(void **state)
{
	CHECK_ALL(sharings);
}

static void nodes_must_have_the_memory(void **state)
{
	CHECK_ALL(nodes);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_must_make_the_vcpus),
		cmocka_unit_test(geometries_must_fit_cpuid),
		cmocka_unit_test(sharing_must_nest),
		cmocka_unit_test(nodes_must_have_the_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
