/*
 * Token bucket arithmetic, with the time as a parameter.
 */
#include "tests/vmm/base/base_test.h"

#include "vmm/base/ratelimit.h"

#define MS 1000000ull

static void full_bucket_gives_its_size_and_no_more(void **state)
{
	struct ratelimit r;
	unsigned i;

	ratelimit_init(&r, 10, 1000 * MS, 0, 0);
	for (i = 0; i < 10; i++)
		assert_true(ratelimit_take(&r, 1, 0));
	assert_false(ratelimit_take(&r, 1, 0));
}

static void tokens_come_back_with_time(void **state)
{
	struct ratelimit r;

	ratelimit_init(&r, 10, 1000 * MS, 0, 0);
	assert_true(ratelimit_take(&r, 10, 0));
	assert_false(ratelimit_take(&r, 1, 99 * MS));
	assert_true(ratelimit_take(&r, 1, 100 * MS));
	assert_false(ratelimit_take(&r, 1, 199 * MS));
	assert_true(ratelimit_take(&r, 1, 200 * MS));
	assert_true(ratelimit_take(&r, 3, 500 * MS));
}

/* Looking often must not lose the fractions of tokens. */
static void frequent_looks_do_not_slow_the_refill(void **state)
{
	struct ratelimit r;
	unsigned taken = 0;
	uint64_t t;

	ratelimit_init(&r, 1000, 1000 * MS, 0, 0);
	assert_true(ratelimit_take(&r, 1000, 0));
	for (t = 0; t <= 1000 * MS; t += 70001)
		taken += ratelimit_take(&r, 1, t);
	assert_in_range(taken, 998, 1000);
}

static void bucket_never_holds_more_than_its_size(void **state)
{
	struct ratelimit r;

	ratelimit_init(&r, 10, 1000 * MS, 0, 0);
	assert_true(ratelimit_take(&r, 10, 1000000 * MS));
	assert_false(ratelimit_take(&r, 1, 1000000 * MS));
}

static void burst_is_spent_first_and_once(void **state)
{
	struct ratelimit r;

	ratelimit_init(&r, 10, 1000 * MS, 5, 0);
	assert_true(ratelimit_take(&r, 5, 0));
	assert_int_equal(r.burst, 0);
	assert_true(ratelimit_take(&r, 10, 0));
	assert_false(ratelimit_take(&r, 1, 0));
	assert_true(ratelimit_take(&r, 10, 5000 * MS));
	assert_false(ratelimit_take(&r, 5, 5000 * MS));
}

/* What the burst does not cover comes from the bucket; a refusal takes neither. */
static void burst_covers_part_of_a_request(void **state)
{
	struct ratelimit r;

	ratelimit_init(&r, 10, 1000 * MS, 5, 0);
	assert_true(ratelimit_take(&r, 8, 0));
	assert_int_equal(r.burst, 0);
	assert_int_equal(r.tokens, 7);
	ratelimit_init(&r, 10, 1000 * MS, 5, 0);
	assert_true(ratelimit_take(&r, 15, 0));
	ratelimit_init(&r, 10, 1000 * MS, 5, 0);
	r.tokens = 2;
	assert_false(ratelimit_take(&r, 8, 0));
	assert_int_equal(r.burst, 5);
	assert_int_equal(r.tokens, 2);
	assert_int_equal(ratelimit_wait_ns(&r, 8, 0), 100 * MS);
}

/* More than the bucket holds passes when it is full: else it would wait for ever. */
static void oversized_request_needs_a_full_bucket(void **state)
{
	struct ratelimit r;

	ratelimit_init(&r, 10, 1000 * MS, 0, 0);
	assert_true(ratelimit_take(&r, 100, 0));
	assert_false(ratelimit_take(&r, 100, 999 * MS));
	assert_true(ratelimit_take(&r, 100, 1000 * MS));
}

static void zero_size_or_time_is_no_limit(void **state)
{
	struct ratelimit r;

	ratelimit_init(&r, 0, 1000 * MS, 0, 0);
	assert_true(ratelimit_take(&r, UINT64_MAX, 0));
	assert_int_equal(ratelimit_wait_ns(&r, UINT64_MAX, 0), 0);
	ratelimit_init(&r, 10, 0, 0, 0);
	assert_true(ratelimit_take(&r, 1000, 0));
	assert_true(ratelimit_take(&r, 1000, 0));
	ratelimit_refund(&r, 5);
}

/* After the time that was announced, the tokens are there; just before, not. */
static void announced_wait_is_exact(void **state)
{
	uint64_t n, wait;

	for (n = 1; n <= 7; n++) {
		struct ratelimit r;

		ratelimit_init(&r, 7, 1000 * MS, 0, 0);
		assert_true(ratelimit_take(&r, 7, 0));
		wait = ratelimit_wait_ns(&r, n, 0);
		assert_true(wait > 0);
		assert_false(ratelimit_take(&r, n, wait - 1));
		assert_true(ratelimit_take(&r, n, wait));
	}
}

static void wait_for_an_oversized_request_ends(void **state)
{
	struct ratelimit r;

	ratelimit_init(&r, 10, 1000 * MS, 0, 0);
	assert_int_equal(ratelimit_wait_ns(&r, 50, 0), 0);
	assert_true(ratelimit_take(&r, 50, 0));
	assert_int_equal(ratelimit_wait_ns(&r, 50, 0), 1000 * MS);
	assert_true(ratelimit_take(&r, 50, 1000 * MS));
}

static void refund_fills_up_to_the_size(void **state)
{
	struct ratelimit r;

	ratelimit_init(&r, 10, 1000 * MS, 0, 0);
	assert_true(ratelimit_take(&r, 10, 0));
	ratelimit_refund(&r, 4);
	assert_true(ratelimit_take(&r, 4, 0));
	ratelimit_refund(&r, UINT64_MAX);
	assert_true(ratelimit_take(&r, 10, 0));
	assert_false(ratelimit_take(&r, 1, 0));
}

static void clock_that_goes_back_gives_nothing(void **state)
{
	struct ratelimit r;

	ratelimit_init(&r, 10, 1000 * MS, 0, 5000 * MS);
	assert_true(ratelimit_take(&r, 10, 5000 * MS));
	assert_false(ratelimit_take(&r, 1, 0));
	assert_true(ratelimit_take(&r, 1, 5100 * MS));
}

static void extreme_values_do_not_overflow(void **state)
{
	struct ratelimit r;

	ratelimit_init(&r, UINT64_MAX, UINT64_MAX, UINT64_MAX, 0);
	assert_true(ratelimit_take(&r, UINT64_MAX, 1));
	assert_true(ratelimit_take(&r, UINT64_MAX, 2));
	assert_true(ratelimit_wait_ns(&r, UINT64_MAX, 3) > 0);
	assert_true(ratelimit_take(&r, 1, UINT64_MAX - 1));
}

static void clock_is_monotonic(void **state)
{
	uint64_t before = ratelimit_now();

	assert_true(before > 0);
	assert_true(ratelimit_now() >= before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_bucket_gives_its_size_and_no_more),
		cmocka_unit_test(tokens_come_back_with_time),
		cmocka_unit_test(frequent_looks_do_not_slow_the_refill),
		cmocka_unit_test(bucket_never_holds_more_than_its_size),
		cmocka_unit_test(burst_is_spent_first_and_once),
		cmocka_unit_test(burst_covers_part_of_a_request),
		cmocka_unit_test(oversized_request_needs_a_full_bucket),
		cmocka_unit_test(zero_size_or_time_is_no_limit),
		cmocka_unit_test(announced_wait_is_exact),
		cmocka_unit_test(wait_for_an_oversized_request_ends),
		cmocka_unit_test(refund_fills_up_to_the_size),
		cmocka_unit_test(clock_that_goes_back_gives_nothing),
		cmocka_unit_test(extreme_values_do_not_overflow),
		cmocka_unit_test(clock_is_monotonic),
	};

	return cmocka_run_group_tests_name("ratelimit", tests, NULL, NULL);
}
