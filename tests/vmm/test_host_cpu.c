/*
 * The host's CPUs, read from a folder that looks like sysfs.
 */
#include "tests/arch-x86/arch_test.h"

#include <stdio.h>
#include <sys/stat.h>

#include "tests/fakes/cpu_folder.h"
#include "vmm/host_cpu.h"

static char root[64];

static int setup(void **state)
{
	cpu_folder_make(root, sizeof(root));
	return 0;
}

static int teardown(void **state)
{
	cpu_folder_remove(root);
	return 0;
}

static void caches_are_read_by_level_and_type(void **state)
{
	struct topology_host h;

	cpu_folder_cache(root, 3, 0, 1, "Data", "48K", "12", "3");
	cpu_folder_cache(root, 3, 1, 1, "Instruction", "64K", "8", "3");
	cpu_folder_cache(root, 3, 2, 2, "Unified", "2048K", "16", "3");
	cpu_folder_cache(root, 3, 3, 3, "Unified", "32768K", "16", "0-7");
	host_cpu_caches(root, 3, &h);
	assert_int_equal(h.caches[TOPOLOGY_L1D].size_kib, 48);
	assert_int_equal(h.caches[TOPOLOGY_L1D].ways, 12);
	assert_int_equal(h.caches[TOPOLOGY_L1I].size_kib, 64);
	assert_int_equal(h.caches[TOPOLOGY_L2].size_kib, 2048);
	assert_int_equal(h.caches[TOPOLOGY_L3].size_kib, 32768);
	assert_int_equal(h.caches[TOPOLOGY_L3].line, 64);
}

static void cpu_without_caches_has_none(void **state)
{
	static const struct topology_host none;
	struct topology_host h = { .caches[0].size_kib = 1 };

	host_cpu_caches(root, 0, &h);
	assert_memory_equal(&h, &none, sizeof(h));
}

static void numbers_that_are_none_count_as_unknown(void **state)
{
	struct topology_host h;

	cpu_folder_cache(root, 0, 0, 1, "Data", "48M", "many", "0");
	cpu_folder_cache(root, 0, 1, 2, "Unified", "99999999999K", "", "0");
	host_cpu_caches(root, 0, &h);
	assert_int_equal(h.caches[TOPOLOGY_L1D].size_kib, 0);
	assert_int_equal(h.caches[TOPOLOGY_L1D].ways, 0);
	assert_int_equal(h.caches[TOPOLOGY_L2].size_kib, 0);
	assert_int_equal(h.caches[TOPOLOGY_L2].ways, 0);
}

static void outermost_cache_tells_who_shares(void **state)
{
	cpu_set_t set;

	assert_int_equal(host_cpu_llc(root, 5, &set), -ENOENT);
	cpu_folder_cache(root, 5, 0, 2, "Unified", "1024K", "16", "4-5");
	assert_int_equal(host_cpu_llc(root, 5, &set), 0);
	assert_int_equal(CPU_COUNT(&set), 2);
	cpu_folder_cache(root, 5, 1, 3, "Unified", "16384K", "16", "4-7,12");
	assert_int_equal(host_cpu_llc(root, 5, &set), 0);
	assert_int_equal(CPU_COUNT(&set), 5);
	assert_true(CPU_ISSET(12, &set));
}

static void cache_that_does_not_name_its_own_cpu_is_not_believed(void **state)
{
	cpu_set_t set;

	cpu_folder_cache(root, 5, 0, 3, "Unified", "1024K", "16", "0-3");
	assert_int_equal(host_cpu_llc(root, 5, &set), -ENOENT);
}

static void online_cpus_are_a_list(void **state)
{
	cpu_set_t set;

	assert_int_equal(host_cpu_online(root, &set), -ENOENT);
	cpu_folder_online(root, "0-2,5");
	assert_int_equal(host_cpu_online(root, &set), 0);
	assert_int_equal(CPU_COUNT(&set), 4);
	assert_false(CPU_ISSET(3, &set));
}

static void lists_are_parsed_or_refused(void **state)
{
	static const char *const bad[] = { "-1", "3-", "3-1", "a", "1,,2", "1;2", " 1", "1-2-3" };
	cpu_set_t set;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(host_cpu_parse_list(bad[i], &set), -EINVAL);
	assert_int_equal(host_cpu_parse_list("", &set), 0);
	assert_int_equal(CPU_COUNT(&set), 0);
	assert_int_equal(host_cpu_parse_list("1020-4000000000", &set), 0);
	assert_int_equal(CPU_COUNT(&set), LIMIT_HOST_CPUS - 1020);
}

static void lists_are_printed_as_they_are_written(void **state)
{
	static const char list[] = "0-2,5,7-8,1023";
	char text[64];
	cpu_set_t set;

	assert_int_equal(host_cpu_parse_list(list, &set), 0);
	host_cpu_print_list(&set, text, sizeof(text));
	assert_string_equal(text, list);
	host_cpu_print_list(&set, text, 20);
	assert_string_equal(text, "0-2,5");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(caches_are_read_by_level_and_type),
		TEST(cpu_without_caches_has_none),
		TEST(numbers_that_are_none_count_as_unknown),
		TEST(outermost_cache_tells_who_shares),
		TEST(cache_that_does_not_name_its_own_cpu_is_not_believed),
		TEST(online_cpus_are_a_list),
		TEST(lists_are_parsed_or_refused),
		TEST(lists_are_printed_as_they_are_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
