/*
 * The topology model: ids, who shares what, what is filled in for what a client
 * leaves out, and how pinning narrows the third level.
 */
#include "tests/arch-x86/arch_test.h"

#include "vmm/config.h"
#include "vmm/topology.h"

#define GIVEN(v) { .value = (v), .given = true }

static const struct topology_host unknown;
static const struct topology_host host = {
	.caches = {
		[TOPOLOGY_L1D] = { 48, 12, 64 },
		[TOPOLOGY_L1I] = { 32, 8, 64 },
		[TOPOLOGY_L2] = { 2048, 16, 64 },
		[TOPOLOGY_L3] = { 266240, 20, 64 },
	},
};
static struct topology built;

static void build(const struct topology_config *c, uint32_t vcpus, bool smt,
		  const struct topology_host *h)
{
	struct machine_config m = { .vcpu_count = vcpus, .smt = smt, .mem_size_mib = 1025 };
	struct error err = { .text = "" };

	if (topology_build(&built, c, &m, h, &err) < 0)
		fail_msg("%s", err.text);
}

static void one_vcpu_is_one_core(void **state)
{
	struct topology t;

	topology_init(&t, 1, true);
	assert_int_equal(topology_cpu_count(&t), 1);
	assert_int_equal(t.threads, 1);
	assert_int_equal(topology_apic_id(&t, 0), 0);
	assert_int_equal(topology_shift(&t, TOPOLOGY_SOCKET), 0);
}

static void without_smt_each_vcpu_is_a_core(void **state)
{
	struct topology t;

	topology_init(&t, 6, false);
	assert_int_equal(t.cores, 6);
	assert_int_equal(t.threads, 1);
	assert_int_equal(topology_max_apic_id(&t), 5);
}

static void with_smt_two_vcpus_are_a_core(void **state)
{
	struct topology t;

	topology_init(&t, 6, true);
	assert_int_equal(t.cores, 3);
	assert_int_equal(t.threads, 2);
	assert_int_equal(topology_shift(&t, TOPOLOGY_CORE), 1);
	assert_int_equal(topology_shift(&t, TOPOLOGY_DIE), 3);
	assert_int_equal(topology_apic_id(&t, 5), 5);
}

static void vcpu_count_is_kept_for_all_counts(void **state)
{
	struct topology t;
	uint32_t n;

	for (n = 1; n <= LIMIT_VCPUS; n++) {
		topology_init(&t, n, false);
		assert_int_equal(topology_cpu_count(&t), n);
		topology_init(&t, n, true);
		assert_int_equal(topology_cpu_count(&t), n);
	}
}

static void ids_ascend_and_fit_their_field(void **state)
{
	struct topology t;
	uint32_t n, i, smt;

	for (n = 1; n <= LIMIT_VCPUS; n++)
		for (smt = 0; smt < 2; smt++) {
			topology_init(&t, n, smt);
			for (i = 1; i < n; i++)
				assert_true(topology_apic_id(&t, i) > topology_apic_id(&t, i - 1));
			assert_true(topology_max_apic_id(&t) < topology_ids_in(&t, TOPOLOGY_SOCKET));
		}
}

static void ids_are_sparse(void **state)
{
	struct topology t = { .sockets = 2, .dies = 3, .cores = 3, .threads = 1 };

	assert_int_equal(topology_apic_id(&t, 2), 2);
	assert_int_equal(topology_apic_id(&t, 3), 4);  /* second die */
	assert_int_equal(topology_apic_id(&t, 8), 10); /* third die, third core */
	assert_int_equal(topology_apic_id(&t, 9), 16); /* second socket */
	assert_int_equal(topology_max_apic_id(&t), 26);
}

static void units_hold_cpus_and_room_for_ids(void **state)
{
	struct topology t = { .sockets = 1, .dies = 2, .cores = 3, .threads = 2 };

	assert_int_equal(topology_cpus_in(&t, TOPOLOGY_THREAD), 1);
	assert_int_equal(topology_cpus_in(&t, TOPOLOGY_CORE), 2);
	assert_int_equal(topology_cpus_in(&t, TOPOLOGY_DIE), 6);
	assert_int_equal(topology_cpus_in(&t, TOPOLOGY_SOCKET), 12);
	assert_int_equal(topology_ids_in(&t, TOPOLOGY_DIE), 8);
	assert_int_equal(topology_ids_in(&t, TOPOLOGY_SOCKET), 16);
}

static void third_level_cache_is_shared_by_the_die(void **state)
{
	struct topology t;

	topology_init(&t, 4, true);
	assert_int_equal(t.caches[TOPOLOGY_L1D].shared_by, TOPOLOGY_CORE);
	assert_int_equal(t.caches[TOPOLOGY_L2].shared_by, TOPOLOGY_CORE);
	assert_int_equal(t.caches[TOPOLOGY_L3].shared_by, TOPOLOGY_DIE);
}

static void cache_sizes_are_whole_powers_of_two_sets(void **state)
{
	struct topology t;
	int i;

	topology_init(&t, 1, false);
	for (i = 0; i < TOPOLOGY_CACHES; i++) {
		const struct topology_geometry *g = &t.caches[i].geometry;
		uint32_t sets = topology_cache_sets(&t.caches[i]);

		assert_true(is_power_of_two(sets));
		assert_int_equal((uint64_t)sets * g->ways * g->line, g->size_kib * KIB);
	}
}

static void units_are_counted_within_the_one_above(void **state)
{
	struct topology t = { .sockets = 2, .dies = 2, .cores = 3, .threads = 2 };

	assert_int_equal(topology_unit_of(&t, TOPOLOGY_SOCKET, 23), 1);
	assert_int_equal(topology_unit_of(&t, TOPOLOGY_DIE, 23), 1);
	assert_int_equal(topology_unit_of(&t, TOPOLOGY_DIE, 12), 0);
	assert_int_equal(topology_unit_of(&t, TOPOLOGY_CORE, 11), 2);
	assert_int_equal(topology_unit_of(&t, TOPOLOGY_THREAD, 7), 1);
}

/* Every shape of at most LIMIT_VCPUS: what leaf 1, 4 and 0x80000008 have bits for. */
static void ids_of_every_shape_fit_cpuid(void **state)
{
	struct topology t = { 0 };

	for (t.sockets = 1; t.sockets <= LIMIT_VCPUS; t.sockets++)
		for (t.dies = 1; t.dies * t.sockets <= LIMIT_VCPUS; t.dies++)
			for (t.cores = 1; t.cores * t.dies * t.sockets <= LIMIT_VCPUS; t.cores++) {
				t.threads = LIMIT_VCPUS / (t.cores * t.dies * t.sockets);
				assert_true(topology_ids_in(&t, TOPOLOGY_SOCKET) <= 255);
				assert_true(topology_shift(&t, TOPOLOGY_SOCKET) <= 15);
				assert_true(topology_ids_in(&t, TOPOLOGY_SOCKET) /
					    topology_ids_in(&t, TOPOLOGY_CORE) <= 64);
				assert_true(topology_max_apic_id(&t) < 255);
			}
}

static void what_is_left_out_comes_from_the_machine(void **state)
{
	const struct topology_config c = { .sockets = GIVEN(2), .dies = GIVEN(3) };

	build(&c, 24, true, &unknown);
	assert_int_equal(built.cores, 2);
	assert_int_equal(built.threads, 2);
	assert_int_equal(built.from.sockets, TOPOLOGY_BY_CLIENT);
	assert_int_equal(built.from.cores, TOPOLOGY_BY_MACHINE);
	assert_int_equal(built.from.threads, TOPOLOGY_BY_MACHINE);
	build(&(const struct topology_config){ .cores = GIVEN(8) }, 8, false, &unknown);
	assert_int_equal(built.from.dies, TOPOLOGY_BY_DEFAULT);
	assert_int_equal(built.from.cores, TOPOLOGY_BY_CLIENT);
}

static void caches_are_like_the_hosts(void **state)
{
	build(&(const struct topology_config){ 0 }, 4, false, &host);
	assert_memory_equal(&built.caches[TOPOLOGY_L1D].geometry, &host.caches[TOPOLOGY_L1D],
			    sizeof(host.caches[0]));
	assert_int_equal(built.caches[TOPOLOGY_L3].geometry.size_kib, 266240);
	assert_int_equal(built.caches[TOPOLOGY_L3].from.ways, TOPOLOGY_BY_HOST);
	assert_int_equal(built.caches[TOPOLOGY_L3].from.shared_by, TOPOLOGY_BY_DEFAULT);
}

static void caches_that_no_guest_can_be_told_of_are_not_taken_from_the_host(void **state)
{
	static const struct topology_geometry bad[] = {
		{ 32, 0, 64 }, { 0, 8, 64 }, { 32, 8, 48 }, { 33, 7, 64 }, { 256, 8, 64 },
	};
	struct topology_host odd;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		odd = host;
		odd.caches[TOPOLOGY_L1D] = bad[i];
		build(&(const struct topology_config){ 0 }, 2, false, &odd);
		assert_int_equal(built.caches[TOPOLOGY_L1D].geometry.size_kib, 32);
		assert_int_equal(built.caches[TOPOLOGY_L1D].from.size_kib, TOPOLOGY_BY_DEFAULT);
	}
}

static void size_that_the_hosts_ways_do_not_divide_gets_the_usual_ones(void **state)
{
	struct topology_config c = { .caches.of[TOPOLOGY_L3].size_kib = GIVEN(16384) };

	build(&c, 2, false, &host);
	assert_int_equal(built.caches[TOPOLOGY_L3].geometry.ways, 16);
	assert_int_equal(built.caches[TOPOLOGY_L3].from.ways, TOPOLOGY_BY_DEFAULT);
	c.caches.of[TOPOLOGY_L3].size_kib.value = 20480;
	build(&c, 2, false, &host);
	assert_int_equal(built.caches[TOPOLOGY_L3].geometry.ways, 20);
	assert_int_equal(built.caches[TOPOLOGY_L3].from.ways, TOPOLOGY_BY_HOST);
}

static void third_level_that_nobody_sized_holds_the_second(void **state)
{
	const struct topology_config c = { .caches.of[TOPOLOGY_L2].size_kib = GIVEN(32768) };

	build(&c, 2, false, &unknown);
	assert_int_equal(built.caches[TOPOLOGY_L3].geometry.size_kib, 32768);
	assert_int_equal(built.caches[TOPOLOGY_L3].from.size_kib, TOPOLOGY_BY_DEFAULT);
}

static void cache_that_is_not_enabled_is_not_there(void **state)
{
	const struct topology_config c = { .caches.of[TOPOLOGY_L3].has_enabled = true };

	build(&c, 4, false, &host);
	assert_false(topology_cache_exists(&built.caches[TOPOLOGY_L3]));
	assert_true(topology_cache_exists(&built.caches[TOPOLOGY_L2]));
	assert_int_equal(built.caches[TOPOLOGY_L3].from.enabled, TOPOLOGY_BY_CLIENT);
}

static void memory_is_split_evenly_over_the_nodes(void **state)
{
	const struct topology_config c = {
		.sockets = GIVEN(2), .dies = GIVEN(2), .numa.node = TOPOLOGY_DIE, .has_numa = true,
	};

	build(&c, 8, false, &unknown);
	assert_int_equal(built.node_count, 4);
	assert_int_equal(built.node_mib[0], 257);
	assert_int_equal(built.node_mib[3], 256);
	assert_int_equal(topology_node_of(&built, 1), 0);
	assert_int_equal(topology_node_of(&built, 7), 3);
}

static void memory_of_nodes_can_be_given(void **state)
{
	const struct topology_config c = {
		.sockets = GIVEN(2),
		.numa = { .node = TOPOLOGY_SOCKET, .nodes = { { 4 }, { 1021 } }, .node_count = 2,
			  .has_nodes = true },
		.has_numa = true,
	};

	build(&c, 4, false, &unknown);
	assert_int_equal(built.node_mib[0], 4);
	assert_int_equal(built.node_mib[1], 1021);
	assert_int_equal(built.node_mib_from, TOPOLOGY_BY_CLIENT);
}

static void without_numa_all_are_on_node_0(void **state)
{
	build(&(const struct topology_config){ .sockets = GIVEN(2) }, 4, false, &unknown);
	assert_int_equal(built.node_count, 0);
	assert_int_equal(topology_node_of(&built, 3), 0);
}

/* What is left of a third level that eight CPUs of one die share. */
static const struct {
	int32_t groups[8];
	bool smt;
	unsigned shift; /* 3: not narrowed */
} narrowings[] = {
	{ { 0, 0, 0, 0, 0, 0, 0, 0 }, false, 3 },
	{ { 0, 0, 0, 0, 8, 8, 8, 8 }, false, 2 },
	{ { 0, 0, 8, 8, 0, 0, 8, 8 }, false, 1 },
	{ { 0, 0, 0, 8, 8, 8, 8, 8 }, false, 0 }, /* not at a power of two */
	{ { 0, 8, 0, 8, 0, 8, 0, 8 }, false, 0 },
	{ { 0, 8, 0, 8, 0, 8, 0, 8 }, true, 1 },  /* a core's threads share all it has */
	{ { 0, 0, 0, 0, 8, 8, 8, 8 }, true, 2 },
	{ { -1, -1, -1, -1, -1, -1, -1, -1 }, false, 0 },
	{ { 0, 0, 0, 0, 0, 0, 0, -1 }, false, 0 },
};

static void third_level_is_narrowed_to_the_hosts_groups(void **state)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(narrowings); i++) {
		build(&(const struct topology_config){ 0 }, 8, narrowings[i].smt, &unknown);
		assert_int_equal(topology_narrow_l3(&built, narrowings[i].groups),
				 narrowings[i].shift < 3);
		assert_int_equal(topology_cache_shift(&built, TOPOLOGY_L3), narrowings[i].shift);
		assert_int_equal(topology_cache_shift(&built, TOPOLOGY_L2), narrowings[i].smt);
	}
}

static void narrowing_keeps_what_is_narrow_and_what_is_not_there(void **state)
{
	static const int32_t two[8] = { 0, 0, 0, 0, 8, 8, 8, 8 };
	struct topology_config c = { .dies = GIVEN(2) };

	build(&c, 8, false, &unknown);
	assert_false(topology_narrow_l3(&built, two));
	assert_int_equal(topology_cache_shift(&built, TOPOLOGY_L3), 2);
	c.caches.of[TOPOLOGY_L3].has_enabled = true;
	build(&c, 8, false, &unknown);
	assert_false(topology_narrow_l3(&built, two));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_vcpu_is_one_core),
		cmocka_unit_test(without_smt_each_vcpu_is_a_core),
		cmocka_unit_test(with_smt_two_vcpus_are_a_core),
		cmocka_unit_test(vcpu_count_is_kept_for_all_counts),
		cmocka_unit_test(ids_ascend_and_fit_their_field),
		cmocka_unit_test(ids_are_sparse),
		cmocka_unit_test(units_hold_cpus_and_room_for_ids),
		cmocka_unit_test(third_level_cache_is_shared_by_the_die),
		cmocka_unit_test(cache_sizes_are_whole_powers_of_two_sets),
		cmocka_unit_test(units_are_counted_within_the_one_above),
		cmocka_unit_test(ids_of_every_shape_fit_cpuid),
		cmocka_unit_test(what_is_left_out_comes_from_the_machine),
		cmocka_unit_test(caches_are_like_the_hosts),
		cmocka_unit_test(caches_that_no_guest_can_be_told_of_are_not_taken_from_the_host),
		cmocka_unit_test(size_that_the_hosts_ways_do_not_divide_gets_the_usual_ones),
		cmocka_unit_test(third_level_that_nobody_sized_holds_the_second),
		cmocka_unit_test(cache_that_is_not_enabled_is_not_there),
		cmocka_unit_test(memory_is_split_evenly_over_the_nodes),
		cmocka_unit_test(memory_of_nodes_can_be_given),
		cmocka_unit_test(without_numa_all_are_on_node_0),
		cmocka_unit_test(third_level_is_narrowed_to_the_hosts_groups),
		cmocka_unit_test(narrowing_keeps_what_is_narrow_and_what_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
