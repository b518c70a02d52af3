/* The rate limiter of requests, without a timer unless a test makes one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "devices/virtio/throttle.h"

static int resumed;

static void on_resume(void *arg)
{
	resumed++;
}

static void make(struct throttle *t, uint64_t bytes, uint64_t ops, uint64_t refill_ms)
{
	struct rate_limiter_config c = {
		.bandwidth = { .size = bytes, .refill_time_ms = refill_ms, .present = bytes },
		.ops = { .size = ops, .refill_time_ms = refill_ms, .present = ops },
	};

	resumed = 0;
	throttle_init(t, &c, on_resume, NULL);
}

static void without_configuration_nothing_is_limited(void **state)
{
	struct throttle t;
	int i;

	make(&t, 0, 0, 0);
	for (i = 0; i < 1000; i++)
		assert_false(throttle_charge(&t, 1 << 30));
}

static void what_the_bucket_cannot_pay_blocks_the_next(void **state)
{
	struct throttle t;

	make(&t, 1000, 0, 3600000);
	assert_false(throttle_charge(&t, 600));
	assert_true(throttle_charge(&t, 600));
	assert_true(throttle_blocked(&t));
}

static void operations_are_counted_apart(void **state)
{
	struct throttle t;

	make(&t, 0, 3, 3600000);
	assert_false(throttle_charge(&t, 1 << 30));
	assert_false(throttle_charge(&t, 0));
	assert_false(throttle_charge(&t, 0));
	assert_true(throttle_charge(&t, 0));
}

/* A request of four buckets costs four, not one. */
static void more_than_the_bucket_is_owed_in_full(void **state)
{
	struct throttle t;

	make(&t, 100, 0, 3600000);
	assert_true(throttle_charge(&t, 400));
	assert_int_equal(t.owed_bytes, 300);
}

static void a_zero_size_or_time_is_no_limit(void **state)
{
	struct rate_limiter_config c = {
		.bandwidth = { .size = 10, .refill_time_ms = 0, .present = true },
		.ops = { .size = 0, .refill_time_ms = 10, .present = true },
	};
	struct throttle t;
	int i;

	throttle_init(&t, &c, on_resume, NULL);
	for (i = 0; i < 100; i++)
		assert_false(throttle_charge(&t, 1000));
}

static void the_largest_refill_time_does_not_wrap(void **state)
{
	struct throttle t;

	make(&t, 10, 0, UINT64_MAX);
	assert_false(throttle_charge(&t, 10));
	assert_true(throttle_charge(&t, 10));
}

static void stop_loop(void *arg)
{
	event_loop_stop(arg);
}

/* Runs a loop with the throttle's timer for `ms` milliseconds. */
static void run(struct throttle *t, struct event_loop *loop, unsigned ms)
{
	struct event_source *end = event_loop_add_timer(loop, stop_loop, loop);

	event_source_arm(end, ms * 1000000ull);
	event_loop_run(loop);
	event_source_free(end);
}

static void the_timer_resumes_when_the_debt_is_paid(void **state)
{
	struct event_loop *loop = event_loop_new();
	struct throttle t;

	make(&t, 100, 0, 50);
	assert_int_equal(throttle_start(&t, loop), 0);
	assert_true(throttle_charge(&t, 200));
	run(&t, loop, 20);
	assert_int_equal(resumed, 0);
	run(&t, loop, 300);
	assert_int_equal(resumed, 1);
	assert_false(throttle_blocked(&t));
	throttle_stop(&t);
	event_loop_free(loop);
}

static void a_delay_blocks_whatever_the_buckets_say(void **state)
{
	struct event_loop *loop = event_loop_new();
	struct throttle t;

	make(&t, 0, 0, 0);
	assert_int_equal(throttle_start(&t, loop), 0);
	throttle_delay(&t, 20000000);
	assert_true(throttle_blocked(&t));
	run(&t, loop, 200);
	assert_false(throttle_blocked(&t));
	assert_int_equal(resumed, 1);
	throttle_stop(&t);
	event_loop_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_configuration_nothing_is_limited),
		cmocka_unit_test(what_the_bucket_cannot_pay_blocks_the_next),
		cmocka_unit_test(operations_are_counted_apart),
		cmocka_unit_test(more_than_the_bucket_is_owed_in_full),
		cmocka_unit_test(a_zero_size_or_time_is_no_limit),
		cmocka_unit_test(the_largest_refill_time_does_not_wrap),
		cmocka_unit_test(the_timer_resumes_when_the_debt_is_paid),
		cmocka_unit_test(a_delay_blocks_whatever_the_buckets_say),
	};

	return cmocka_run_group_tests_name("throttle", tests, NULL, NULL);
}
