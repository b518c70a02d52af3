/* What procfs says of a thread, and what it might say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

#include "host_tree.h"
#include "vmm/sched_stat.h"

static void three_numbers_are_a_schedstat(void **state)
{
	struct sched_stat s;

	assert_int_equal(sched_stat_parse("123 18446744073709551615 7", &s), 0);
	assert_int_equal(s.run_ns, 123);
	assert_true(s.delay_ns == UINT64_MAX);
	assert_int_equal(s.slices, 7);
}

static void other_text_is_none(void **state)
{
	static const char *const bad[] = {
		"", "1", "1 2", "1 2 ", "1 2 x", "1 2 3 4", "1 2 3x", "-1 2 3",
		"18446744073709551616 1 1", "0 0 0\n0",
	};
	struct sched_stat s;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(sched_stat_parse(bad[i], &s), -EPROTO);
}

#define HEAD "17 (vcpu 0) S"
#define TO_38 " 1 1 1 0 -1 4194368 5 0 0 0 6 7 0 0 20 0 4 0 100 200 300 18446744073709551615" \
	      " 1 2 3 4 5 0 0 0 0 0 0 0 -1"

static void place_is_told_by_fields_39_and_41(void **state)
{
	struct sched_place p;

	assert_int_equal(sched_place_parse(HEAD TO_38 " 63 0 2 0 0 0", &p), 0);
	assert_int_equal(p.cpu, 63);
	assert_int_equal(p.policy, 2);
	assert_int_equal(sched_place_parse("17 (a) b) 1 (c) S" TO_38 " 3 0 0", &p), 0);
	assert_int_equal(p.cpu, 3);
}

static void a_cut_line_has_no_place(void **state)
{
	struct sched_place p;

	assert_int_equal(sched_place_parse("", &p), -EPROTO);
	assert_int_equal(sched_place_parse("17 (vcpu 0)", &p), -EPROTO);
	assert_int_equal(sched_place_parse(HEAD, &p), -EPROTO);
	assert_int_equal(sched_place_parse(HEAD TO_38, &p), -EPROTO);
	assert_int_equal(sched_place_parse(HEAD TO_38 " 3", &p), -EPROTO);
	assert_int_equal(sched_place_parse(HEAD TO_38 " 3 0 ", &p), -EPROTO);
	assert_int_equal(sched_place_parse(HEAD TO_38 " 4294967296 0 0", &p), -EPROTO);
}

static void this_thread_has_a_place(void **state)
{
	struct sched_place p;

	assert_int_equal(sched_place_read("", gettid(), &p), 0);
	assert_int_equal(p.policy, 0);
}

static void no_thread_has_none(void **state)
{
	struct sched_place p;
	struct sched_stat s;

	assert_int_equal(sched_place_read("", 0, &p), -ENOENT);
	assert_int_equal(sched_stat_read("", 0, &s), -ENOENT);
}

static void files_of_another_root_are_read(void **state)
{
	const char *root = host_tree_new();
	struct sched_stat s;

	assert_non_null(root);
	assert_true(host_tree_put("/proc/self/task/12/schedstat", "10 20 30\n"));
	assert_int_equal(sched_stat_read(root, 12, &s), 0);
	assert_int_equal(s.delay_ns, 20);
	host_tree_free();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_numbers_are_a_schedstat),
		cmocka_unit_test(other_text_is_none),
		cmocka_unit_test(place_is_told_by_fields_39_and_41),
		cmocka_unit_test(a_cut_line_has_no_place),
		cmocka_unit_test(this_thread_has_a_place),
		cmocka_unit_test(no_thread_has_none),
		cmocka_unit_test(files_of_another_root_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
