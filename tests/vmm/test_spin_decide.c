/* What is decided from which inputs: scripted workloads, period by period. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vmm/spin_decide.h"

#define MS UINT64_C(1000000)
#define MAX_NS 1000000
#define START_NS 200000

static struct spin_state state;
static struct spin_decision d;
static unsigned class_changes, poll_changes; /* since the set-up */

static int setup(void **unused)
{
	spin_state_init(&state, START_NS);
	class_changes = poll_changes = 0;
	return 0;
}

/* The same period, so many times. */
static void run(const struct spin_inputs *in, unsigned periods)
{
	while (periods--) {
		spin_decide(&state, in, MAX_NS, &d);
		class_changes += d.class_changed;
		poll_changes += d.halt_poll_changed;
		assert_true(!d.class_changed || d.class_why[0]);
		assert_true(!d.halt_poll_changed || d.halt_poll_why[0]);
	}
}

/* Workloads of a second: 4 vCPUs on 2 or 4 host CPUs. */

/* 2:1, and a lock: each runs half the time, and waits the other half. */
static struct spin_inputs preempted_holder(void)
{
	return (struct spin_inputs){
		.wall_ns = 1000 * MS, .vcpus = 4, .host_cpus = 2, .run_ns = 2000 * MS,
		.delay_ns = 1990 * MS, .max_delay_ns = 510 * MS, .spin_exits = 12000,
	};
}

/* The same lock where each vCPU has a host CPU: all spin, none waits. */
static struct spin_inputs true_contention(void)
{
	return (struct spin_inputs){
		.wall_ns = 1000 * MS, .vcpus = 4, .host_cpus = 4, .run_ns = 3980 * MS,
		.delay_ns = 12 * MS, .max_delay_ns = 5 * MS, .spin_exits = 30000,
	};
}

static struct spin_inputs idle(void)
{
	return (struct spin_inputs){
		.wall_ns = 1000 * MS, .vcpus = 4, .host_cpus = 2, .run_ns = 20 * MS,
		.delay_ns = MS, .max_delay_ns = MS, .spin_exits = 400, .halts = 400,
		.wait_hist = { [24] = 400 },
	};
}

/* It computes: the timer's interrupts are all there is. */
static struct spin_inputs busy(void)
{
	return (struct spin_inputs){
		.wall_ns = 1000 * MS, .vcpus = 4, .host_cpus = 4, .run_ns = 3900 * MS,
		.delay_ns = 40 * MS, .max_delay_ns = 20 * MS, .spin_exits = 900,
	};
}

/* A server: half busy; KVM polls 200 us after each halt, then sleeps, for `bucket`. */
static struct spin_inputs server(unsigned bucket)
{
	struct spin_inputs in = {
		.wall_ns = 1000 * MS, .vcpus = 4, .host_cpus = 4, .run_ns = 2000 * MS,
		.delay_ns = 10 * MS, .max_delay_ns = 5 * MS, .spin_exits = 800, .halts = 8000,
		.polls_bad = 8000, .poll_bad_ns = 8000 * (uint64_t)START_NS,
	};

	in.wait_hist[bucket] = 8000;
	return in;
}

static void each_workload_is_named(void **unused)
{
	const struct {
		struct spin_inputs in;
		enum spin_class class;
		enum spin_advice advice;
	} cases[] = {
		{ preempted_holder(), SPIN_PREEMPTED_HOLDER, SPIN_ADVICE_MORE_CPUS },
		{ true_contention(), SPIN_TRUE_CONTENTION, SPIN_ADVICE_LEAVE },
		{ idle(), SPIN_IDLE, SPIN_ADVICE_NONE },
		{ busy(), SPIN_NORMAL, SPIN_ADVICE_NONE },
		{ server(15), SPIN_NORMAL, SPIN_ADVICE_NONE },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		spin_state_init(&state, START_NS);
		run(&cases[i].in, SPIN_CONFIRM);
		assert_int_equal(state.class, cases[i].class);
		assert_int_equal(d.advice, cases[i].advice);
	}
}

static void one_starved_vcpu_of_many_is_a_preempted_holder(void **unused)
{
	struct spin_inputs in = true_contention();

	in.vcpus = in.host_cpus = 16;
	in.delay_ns = in.max_delay_ns = 400 * MS; /* one shares its host CPU with another task */
	run(&in, SPIN_CONFIRM);
	assert_int_equal(state.class, SPIN_PREEMPTED_HOLDER);
	assert_int_equal(d.advice, SPIN_ADVICE_SPREAD);
}

static void a_vm_that_is_starved_is_not_idle(void **unused)
{
	struct spin_inputs in = idle();

	in.delay_ns = 3000 * MS;
	in.max_delay_ns = 900 * MS;
	run(&in, SPIN_CONFIRM);
	assert_int_equal(state.class, SPIN_PREEMPTED_HOLDER); /* 400 exits in 20 ms */
	in.spin_exits = 1;
	run(&in, SPIN_CONFIRM);
	assert_int_equal(state.class, SPIN_NORMAL);
}

static void a_class_must_be_seen_in_a_row(void **unused)
{
	const struct spin_inputs a = preempted_holder(), b = busy();
	unsigned i;

	for (i = 0; i < 20; i++) {
		run(&a, SPIN_CONFIRM - 1);
		run(&b, 1);
	}
	assert_int_equal(class_changes, 0);
	run(&a, SPIN_CONFIRM);
	assert_int_equal(class_changes, 1);
}

/* Between half of a threshold and all of it, what is stays. */
static void classes_have_two_thresholds(void **unused)
{
	struct spin_inputs in = true_contention();

	in.spin_exits = 3000; /* 750 a second of running */
	run(&in, 10);
	assert_int_equal(state.class, SPIN_NORMAL);
	in.spin_exits = 30000;
	in.max_delay_ns = 70 * MS;
	run(&in, 10);
	assert_int_equal(state.class, SPIN_TRUE_CONTENTION);
	in.spin_exits = 3000;
	run(&in, 10);
	assert_int_equal(state.class, SPIN_TRUE_CONTENTION);
	in.max_delay_ns = 120 * MS;
	run(&in, 10);
	assert_int_equal(state.class, SPIN_PREEMPTED_HOLDER);
	in.max_delay_ns = 70 * MS;
	run(&in, 10);
	assert_int_equal(state.class, SPIN_PREEMPTED_HOLDER);
	in.spin_exits = 1000;
	run(&in, 10);
	assert_int_equal(state.class, SPIN_NORMAL);
}

static void at_its_threshold_a_load_does_not_flap(void **unused)
{
	struct spin_inputs in = preempted_holder();
	unsigned i;

	run(&in, SPIN_CONFIRM);
	assert_int_equal(class_changes, 1);
	for (i = 0; i < 200; i++) {
		in.max_delay_ns = (i % 8 < 4 ? 95 : 105) * MS;
		in.spin_exits = i % 10 < 5 ? 1900 : 2100; /* 950 and 1050 a second */
		run(&in, 1);
	}
	assert_int_equal(class_changes, 1);
	assert_true(poll_changes <= 1);
}

/* Halt polling */

static void polling_ends_where_host_cpus_are_short(void **unused)
{
	const struct spin_inputs in = preempted_holder();

	run(&in, SPIN_CONFIRM - 1);
	assert_int_equal(state.halt_poll_ns, START_NS);
	run(&in, 1);
	assert_int_equal(state.halt_poll_ns, 0);
	run(&in, 100);
	assert_int_equal(poll_changes, 1);
}

static void short_halts_shorten_the_limit(void **unused)
{
	struct spin_inputs in = server(0);

	in.wait_hist[0] = 0;
	in.poll_hist[14] = 8000; /* up to 16 us, while KVM polls */
	run(&in, 100);
	assert_int_equal(state.halt_poll_ns, 16384);
	assert_int_equal(poll_changes, 1);
}

static void halts_a_little_too_long_lengthen_the_limit(void **unused)
{
	struct spin_inputs in = server(18); /* 131 to 262 us of sleep behind 200 us of polling */

	run(&in, 100);
	assert_int_equal(state.halt_poll_ns, 524288);
	assert_int_equal(poll_changes, 1);
	in.wait_hist[18] = 0;
	in.poll_hist[19] = 8000; /* and so they are when KVM polls longer */
	run(&in, 100);
	assert_int_equal(poll_changes, 1);
}

static void the_limit_never_exceeds_the_most_allowed(void **unused)
{
	struct spin_inputs in = server(19); /* up to 724 us in all: 1048576 ns would be next */

	run(&in, 10);
	assert_int_equal(state.halt_poll_ns, MAX_NS);
	in.wait_hist[19] = 0;
	in.poll_hist[20] = 8000; /* and now all of it is polled */
	in.polls_bad = in.poll_bad_ns = 0;
	run(&in, 100);
	assert_int_equal(state.halt_poll_ns, MAX_NS);
	assert_int_equal(poll_changes, 1);
}

/* Somebody else wants the host CPU, so that each poll ends at once and the limit does nothing. */
static void polls_that_are_cut_short_do_not_make_it_swing(void **unused)
{
	struct spin_inputs in = server(19);

	in.poll_bad_ns = 0;
	run(&in, 500);
	assert_int_equal(state.halt_poll_ns, 524288);
	assert_int_equal(poll_changes, 1);
}

static void polling_for_nothing_ends(void **unused)
{
	const struct spin_inputs in = server(24); /* 8 to 16 ms */

	run(&in, 100);
	assert_int_equal(state.halt_poll_ns, 0);
	assert_int_equal(poll_changes, 1);
	assert_int_equal(class_changes, 0);
}

static void what_helps_some_halts_stays(void **unused)
{
	struct spin_inputs in = server(24);

	in.wait_hist[24] = 4000;
	in.poll_hist[16] = 4000;
	run(&in, 100);
	assert_int_equal(poll_changes, 0);
}

static void idle_vms_and_few_halts_change_nothing(void **unused)
{
	struct spin_inputs in = idle();

	run(&in, 100);
	in = server(24);
	in.halts = 99;
	run(&in, 100);
	assert_int_equal(poll_changes, 0);
	assert_int_equal(state.halt_poll_ns, START_NS);
}

static void neighbours_of_a_histogram_are_the_same(void **unused)
{
	struct spin_inputs a = server(0), b = server(0);
	unsigned i;

	a.poll_hist[14] = b.poll_hist[15] = 8000;
	a.wait_hist[0] = b.wait_hist[0] = 0;
	for (i = 0; i < 100; i++) {
		run(&a, SPIN_CONFIRM);
		run(&b, SPIN_CONFIRM);
	}
	assert_int_equal(poll_changes, 1);
}

static void a_limit_rests_after_a_change(void **unused)
{
	const struct spin_inputs starved = preempted_holder();
	struct spin_inputs good = server(15);

	good.polls_bad = good.poll_bad_ns = 0; /* nothing is polled any more */
	run(&starved, SPIN_CONFIRM);
	assert_int_equal(state.halt_poll_ns, 0);
	run(&good, SPIN_REST);
	assert_int_equal(state.halt_poll_ns, 0);
	run(&good, 1);
	assert_int_equal(state.halt_poll_ns, 32768);
	assert_int_equal(poll_changes, 2);
}

/* Whatever alternates, changes are as far apart as confirming and resting take. */
static void changes_are_seldom_whatever_happens(void **unused)
{
	const struct spin_inputs loads[] = { preempted_holder(), server(15), server(24), idle(),
					     true_contention() };
	unsigned i, seed = 1, last_change = 0;

	for (i = 1; i <= 5000; i++) {
		unsigned before = poll_changes;

		seed = seed * 1103515245 + 12345;
		run(&loads[seed / 65536 % 5], 1);
		if (poll_changes == before)
			continue;
		assert_int_equal(poll_changes, before + 1);
		assert_true(last_change == 0 || i - last_change > SPIN_REST);
		last_change = i;
		assert_true(state.halt_poll_ns <= MAX_NS);
	}
}

static void nothing_at_all_is_idle_and_divides_nothing(void **unused)
{
	const struct spin_inputs none = { 0 };
	struct spin_inputs most;
	unsigned char *p = (unsigned char *)&most;
	size_t i;

	run(&none, 10);
	assert_int_equal(state.class, SPIN_IDLE);
	for (i = 0; i < sizeof(most); i++)
		p[i] = 0xff;
	run(&most, 10);
	assert_true(state.halt_poll_ns <= MAX_NS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
	static const struct CMUnitTest tests[] = {
		TEST(each_workload_is_named),
		TEST(one_starved_vcpu_of_many_is_a_preempted_holder),
		TEST(a_vm_that_is_starved_is_not_idle),
		TEST(a_class_must_be_seen_in_a_row),
		TEST(classes_have_two_thresholds),
		TEST(at_its_threshold_a_load_does_not_flap),
		TEST(polling_ends_where_host_cpus_are_short),
		TEST(short_halts_shorten_the_limit),
		TEST(halts_a_little_too_long_lengthen_the_limit),
		TEST(the_limit_never_exceeds_the_most_allowed),
		TEST(polls_that_are_cut_short_do_not_make_it_swing),
		TEST(polling_for_nothing_ends),
		TEST(what_helps_some_halts_stays),
		TEST(idle_vms_and_few_halts_change_nothing),
		TEST(neighbours_of_a_histogram_are_the_same),
		TEST(a_limit_rests_after_a_change),
		TEST(changes_are_seldom_whatever_happens),
		TEST(nothing_at_all_is_idle_and_divides_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
