/* Host checks over kernels and hosts that are not this one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "host_tree.h"
#include "vmm/spin_host.h"

static const char *root;
static struct spin_checks checks;

static int setup(void **state)
{
	memset(&checks, 0, sizeof(checks));
	root = host_tree_new();
	return root ? 0 : -1;
}

static int teardown(void **state)
{
	host_tree_free();
	return 0;
}

static const struct spin_check *check(const char *name)
{
	uint32_t i;

	for (i = 0; i < checks.count; i++) {
		if (!strcmp(checks.rows[i].name, name))
			return &checks.rows[i];
	}
	fail_msg("there is no check %s", name);
	return NULL;
}

static void assert_check(const char *name, enum spin_check_status status, const char *text)
{
	const struct spin_check *c = check(name);

	assert_int_equal(c->status, status);
	if (!strstr(c->text, text))
		fail_msg("\"%s\" does not contain \"%s\"", c->text, text);
}

static enum spin_check_status kernel(const char *release)
{
	memset(&checks, 0, sizeof(checks));
	spin_check_kernel(root, release, &checks);
	return check("directed_yield")->status;
}

static void kernels_with_a_known_fault_are_named(void **state)
{
	assert_int_equal(kernel("5.10.0"), SPIN_CHECK_OK);
	assert_int_equal(kernel("6.1.0-30-amd64"), SPIN_CHECK_OK);
	assert_int_equal(kernel("6.5.13"), SPIN_CHECK_OK);
	assert_int_equal(kernel("6.13.0"), SPIN_CHECK_WARN);
	assert_check("directed_yield", SPIN_CHECK_WARN, "wrong vCPU");
	assert_int_equal(kernel("6.18.4"), SPIN_CHECK_WARN);
	assert_int_equal(kernel("6.19.0-rc1"), SPIN_CHECK_OK);
	assert_int_equal(kernel("7.0"), SPIN_CHECK_OK);
}

static void the_buddy_feature_decides_between_6_6_and_6_13(void **state)
{
	assert_int_equal(kernel("6.6.0"), SPIN_CHECK_WARN);
	assert_check("directed_yield", SPIN_CHECK_WARN, "cannot be read");
	host_tree_put("/sys/kernel/debug/sched/features", "PLACE_LAG NO_NEXT_BUDDY\n");
	assert_int_equal(kernel("6.12.9"), SPIN_CHECK_WARN);
	assert_check("directed_yield", SPIN_CHECK_WARN, "without PICK_BUDDY");
	host_tree_put("/sys/kernel/debug/sched/features", "PLACE_LAG NO_PICK_BUDDY\n");
	assert_int_equal(kernel("6.12.9"), SPIN_CHECK_WARN);
	host_tree_put("/sys/kernel/debug/sched/features", "PLACE_LAG PICK_BUDDY NO_NEXT_BUDDY\n");
	assert_int_equal(kernel("6.12.9"), SPIN_CHECK_OK);
}

static void a_release_without_a_number_is_unknown(void **state)
{
	assert_int_equal(kernel(""), SPIN_CHECK_UNKNOWN);
	assert_int_equal(kernel("linux"), SPIN_CHECK_UNKNOWN);
	assert_int_equal(kernel("6"), SPIN_CHECK_UNKNOWN);
	assert_int_equal(kernel("6."), SPIN_CHECK_UNKNOWN);
	assert_int_equal(kernel("99999999999999999999.1"), SPIN_CHECK_UNKNOWN);
}

/* A thread of this policy in these cgroups. */
static void put_task(int tid, unsigned policy, const char *cgroups)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	snprintf(text, sizeof(text), "%d (vcpu 0) S 1 1 1 0 -1 0 5 0 0 0 6 7 0 0 20 0 4 0 1 2 3 4 "
				     "1 2 3 4 5 0 0 0 0 0 0 0 -1 0 0 %u 0\n", tid, policy);
	host_tree_put(path, text);
	snprintf(path, sizeof(path), "/proc/self/task/%d/cgroup", tid);
	host_tree_put(path, cgroups);
}

static void check_two(void)
{
	const pid_t tids[] = { 1, 2 };

	memset(&checks, 0, sizeof(checks));
	spin_check_threads(root, tids, 2, &checks);
}

static void ordinary_threads_in_one_cgroup_are_good(void **state)
{
	put_task(1, 0, "0::/vm/a\n");
	put_task(2, 0, "0::/vm/a\n");
	host_tree_put("/sys/fs/cgroup/vm/a/cpu.max", "max 100000\n");
	check_two();
	assert_check("scheduling_class", SPIN_CHECK_OK, "no vCPU thread");
	assert_check("one_cgroup", SPIN_CHECK_OK, "/vm/a");
	assert_check("cpu_quota", SPIN_CHECK_OK, "no quota");
}

static void a_real_time_thread_is_told(void **state)
{
	put_task(1, 0, "0::/\n");
	put_task(2, 1, "0::/\n");
	check_two();
	assert_check("scheduling_class", SPIN_CHECK_WARN, "vCPU 1 has scheduling policy 1");
	put_task(2, 6, "0::/\n");
	check_two();
	assert_check("scheduling_class", SPIN_CHECK_WARN, "policy 6");
	put_task(2, 5, "0::/\n"); /* SCHED_IDLE is of the ordinary class */
	check_two();
	assert_check("scheduling_class", SPIN_CHECK_OK, "");
}

static void a_cgroup_a_vcpu_is_told(void **state)
{
	put_task(1, 0, "0::/vm/vcpu0\n");
	put_task(2, 0, "0::/vm/vcpu1\n");
	check_two();
	assert_check("one_cgroup", SPIN_CHECK_WARN, "/vm/vcpu0, vCPU 1 in /vm/vcpu1");
}

static void a_quota_of_a_group_above_is_told(void **state)
{
	put_task(1, 0, "0::/pod/vm\n");
	put_task(2, 0, "0::/pod/vm\n");
	host_tree_put("/sys/fs/cgroup/pod/vm/cpu.max", "max 100000\n");
	host_tree_put("/sys/fs/cgroup/pod/cpu.max", "50000 100000\n");
	check_two();
	assert_check("cpu_quota", SPIN_CHECK_WARN, "/pod has a quota (50000 100000)");
}

static void version_1_has_a_hierarchy_for_the_cpu(void **state)
{
	static const char groups[] = "5:cpuset:/set\n4:cpu,cpuacct:/slice\n1:name=systemd:/x\n0::/u\n";

	put_task(1, 0, groups);
	put_task(2, 0, "4:cpu,cpuacct:/other\n");
	host_tree_put("/sys/fs/cgroup/cpu/slice/cpu.cfs_quota_us", "20000\n");
	check_two();
	assert_check("one_cgroup", SPIN_CHECK_WARN, "/slice, vCPU 1 in /other");
	assert_check("cpu_quota", SPIN_CHECK_WARN, "/slice has a quota (20000)");
	host_tree_put("/sys/fs/cgroup/cpu/slice/cpu.cfs_quota_us", "-1\n");
	check_two();
	assert_check("cpu_quota", SPIN_CHECK_OK, "");
}

static void threads_that_are_gone_are_unknown(void **state)
{
	check_two();
	assert_check("scheduling_class", SPIN_CHECK_UNKNOWN, "vCPU 0");
	assert_check("one_cgroup", SPIN_CHECK_UNKNOWN, "");
}

static void odd_cgroup_files_are_unknown(void **state)
{
	char longest[600];

	put_task(1, 0, "nonsense\n::\n");
	check_two();
	snprintf(longest, sizeof(longest), "0::/%0500d\n", 0);
	put_task(1, 0, longest);
	check_two();
	assert_check("one_cgroup", SPIN_CHECK_UNKNOWN, "");
}

static void no_more_rows_than_fit_are_added(void **state)
{
	unsigned i;

	for (i = 0; i < SPIN_CHECKS + 2; i++)
		spin_check_add(&checks, "x", SPIN_CHECK_OK, "%u", i);
	assert_int_equal(checks.count, SPIN_CHECKS);
	assert_string_equal(checks.rows[SPIN_CHECKS - 1].text, "7");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(kernels_with_a_known_fault_are_named),
		TEST(the_buddy_feature_decides_between_6_6_and_6_13),
		TEST(a_release_without_a_number_is_unknown),
		TEST(ordinary_threads_in_one_cgroup_are_good),
		TEST(a_real_time_thread_is_told),
		TEST(a_cgroup_a_vcpu_is_told),
		TEST(a_quota_of_a_group_above_is_told),
		TEST(version_1_has_a_hierarchy_for_the_cpu),
		TEST(threads_that_are_gone_are_unknown),
		TEST(odd_cgroup_files_are_unknown),
		TEST(no_more_rows_than_fit_are_added),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
