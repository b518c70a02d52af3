/*
 * The topology model: ids, and who shares what.
 */
#include "tests/arch-x86/arch_test.h"

#include "vmm/topology.h"

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
		const struct topology_cache *c = &t.caches[i];
		uint32_t sets = topology_cache_sets(c);

		assert_true(is_power_of_two(sets));
		assert_int_equal((uint64_t)sets * c->ways * c->line, c->size_kib * KIB);
	}
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
