/* The lock profiler's paths, over locks and conditions of the test's own. */
#include "tests/api/cmocka_all.h"

#include <json-c/json.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/api/wire.h"
#include "vmm/base/lock.h"

#define SHORT_NS 1000
#define LONG_NS 5000000

static struct lock lock;
static struct lock_cond cond;
static atomic_bool held;

static int setup(void **state)
{
	lock_init(&lock, LOCK_LEVEL_DEVICE, "tool", "left");
	lock_cond_init(&cond, "signal", "green");
	return wire_setup(state);
}

static int teardown(void **state)
{
	lock_set_profiling(false);
	lock_cond_fini(&cond);
	lock_fini(&lock);
	lock_report_reset();
	return wire_teardown(state);
}

static void *hold(void *arg)
{
	lock_take(&lock);
	atomic_store(&held, true);
	usleep(5000);
	lock_release(&lock);
	return NULL;
}

/* A busy host may let the holder go before we come; then again. */
static void wait_for_lock(void)
{
	pthread_t holder;

	while (lock_report_waits(NULL, 0) == 0) {
		atomic_store(&held, false);
		pthread_create(&holder, NULL, hold, NULL);
		while (!atomic_load(&held))
			usleep(100);
		lock_take(&lock);
		lock_release(&lock);
		pthread_join(holder, NULL);
	}
}

static void wait_for_condition(struct lock_cond *c, uint64_t ns)
{
	lock_take(&lock);
	while (lock_cond_wait_for(c, &lock, ns) == 0)
		;
	lock_release(&lock);
}

static struct json_object *get(struct wire *w)
{
	struct json_object *answer;

	assert_int_equal(wire_send(w, "GET /v1/locks", NULL), 200);
	answer = json_tokener_parse(w->body);
	assert_non_null(answer);
	return answer;
}

static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(o, key, &value))
		fail_msg("no member %s", key);
	return value;
}

static const char *text(struct json_object *o, const char *key)
{
	return json_object_get_string(member(o, key));
}

static uint64_t number(struct json_object *o, const char *key)
{
	return json_object_get_uint64(member(o, key));
}

static void nothing_was_waited_for_and_the_lock_is_listed(void **state)
{
	struct wire *w = *state;

	assert_int_equal(wire_send(w, "GET /v1/locks", NULL), 200);
	assert_string_equal(w->body, "{\"profiling\":false,\"locks\":[],\"conditions\":[],"
				     "\"objects\":[{\"type\":\"tool\",\"object\":\"left\","
				     "\"level\":\"device\",\"takes\":0}],"
				     "\"waits_left_out\":0,\"objects_left_out\":0}");
}

static void a_wait_for_a_lock_has_its_name_level_and_site(void **state)
{
	struct json_object *answer, *row;

	wait_for_lock();
	answer = get(*state);
	assert_int_equal(json_object_array_length(member(answer, "locks")), 1);
	assert_int_equal(json_object_array_length(member(answer, "conditions")), 0);
	row = json_object_array_get_idx(member(answer, "locks"), 0);
	assert_string_equal(text(row, "type"), "tool");
	assert_string_equal(text(row, "object"), "left");
	assert_string_equal(text(row, "level"), "device");
	assert_ptr_equal(strstr(text(row, "site"), "tests/api/test_handlers_locks.c:"),
			 text(row, "site"));
	assert_int_equal(number(row, "count"), 1);
	assert_in_range(number(row, "wait_ns"), 1, 10000000000);
	assert_int_equal(number(row, "average_ns"), number(row, "wait_ns"));
	assert_int_equal(number(row, "max_ns"), number(row, "wait_ns"));
	json_object_put(answer);
}

static void a_wait_for_a_condition_is_in_a_list_of_its_own(void **state)
{
	struct json_object *answer, *row;
	uint64_t wait_ns;

	wait_for_condition(&cond, LONG_NS);
	wait_for_condition(&cond, LONG_NS);
	answer = get(*state);
	assert_int_equal(json_object_array_length(member(answer, "locks")), 0);
	row = json_object_array_get_idx(member(answer, "conditions"), 0);
	assert_string_equal(text(row, "type"), "signal");
	assert_string_equal(text(row, "object"), "green");
	assert_false(json_object_object_get_ex(row, "level", NULL));
	wait_ns = number(row, "wait_ns");
	assert_true(wait_ns >= 2 * LONG_NS);
	assert_int_equal(number(row, "average_ns"), wait_ns / number(row, "count"));
	assert_in_range(number(row, "max_ns"), LONG_NS, wait_ns);
	json_object_put(answer);
}

static void the_longest_wait_comes_first(void **state)
{
	struct json_object *answer, *rows;
	struct lock_cond other;

	lock_cond_init(&other, "signal", "red");
	wait_for_condition(&cond, SHORT_NS);
	wait_for_condition(&other, 10 * LONG_NS);
	answer = get(*state);
	rows = member(answer, "conditions");
	assert_string_equal(text(json_object_array_get_idx(rows, 0), "object"), "red");
	assert_string_equal(text(json_object_array_get_idx(rows, 1), "object"), "green");
	json_object_put(answer);
	lock_cond_fini(&other);
}

static void takes_are_counted_when_a_client_says_so(void **state)
{
	struct wire *w = *state;

	assert_int_equal(wire_send(w, "PUT /v1/locks", "{\"profiling\":true}"), 204);
	lock_take(&lock);
	lock_release(&lock);
	wire_send(w, "GET /v1/locks", NULL);
	assert_body_has(w, "{\"profiling\":true,");
	assert_body_has(w, "\"object\":\"left\",\"level\":\"device\",\"takes\":1}");
	assert_int_equal(wire_send(w, "PUT /v1/locks", "{\"profiling\":false}"), 204);
	assert_false(lock_is_profiling());
}

static void a_reset_forgets_and_leaves_the_profiler_as_it_is(void **state)
{
	struct wire *w = *state;

	lock_set_profiling(true);
	wait_for_condition(&cond, SHORT_NS);
	assert_int_equal(wire_send(w, "PUT /v1/locks", "{\"reset\":true}"), 204);
	assert_int_equal(wire_send(w, "GET /v1/locks", NULL), 200);
	assert_body_has(w, "{\"profiling\":true,\"locks\":[],\"conditions\":[],");
	assert_body_has(w, "\"takes\":0}");
}

static void a_reset_that_is_false_forgets_nothing(void **state)
{
	struct wire *w = *state;

	wait_for_condition(&cond, SHORT_NS);
	assert_int_equal(wire_send(w, "PUT /v1/locks", "{\"reset\":false}"), 204);
	wire_send(w, "GET /v1/locks", NULL);
	assert_body_has(w, "\"conditions\":[{");
}

/* The profiler is off first, so that nothing is counted behind the reset. */
static void both_can_be_asked_at_once(void **state)
{
	struct wire *w = *state;

	lock_set_profiling(true);
	lock_take(&lock);
	lock_release(&lock);
	assert_int_equal(wire_send(w, "PUT /v1/locks", "{\"profiling\":false,\"reset\":true}"), 204);
	wire_send(w, "GET /v1/locks", NULL);
	assert_body_has(w, "{\"profiling\":false,");
	assert_body_has(w, "\"takes\":0}");
}

static void bad_bodies_change_nothing_and_name_the_field(void **state)
{
	static const struct {
		const char *body, *answer;
	} bad[] = {
		{ "{}", "\"code\":\"missing_field\",\"message\":\"missing field `profiling` or `reset`\"}" },
		{ "{\"profiling\":null,\"reset\":null}", "\"code\":\"missing_field\"" },
		{ "{\"profiling\":1}", "\"code\":\"wrong_type\"" },
		{ "{\"profiling\":1}", "\"field\":\"profiling\"" },
		{ "{\"profiling\":true,\"reset\":\"yes\"}", "\"field\":\"reset\"" },
		{ "{\"profiling\":true,\"sites\":3}", "\"field\":\"sites\"" },
	};
	struct wire *w = *state;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(wire_send(w, "PUT /v1/locks", bad[i].body), 422);
		assert_body_has(w, bad[i].answer);
		assert_false(lock_is_profiling());
	}
}

static struct lock_cond many[LIMIT_LOCK_ROWS + 1];

static void wait_for_many(size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		lock_cond_init(&many[i], "many", "");
		wait_for_condition(&many[i], SHORT_NS);
	}
}

static void forget_many(size_t n)
{
	while (n > 0)
		lock_cond_fini(&many[--n]);
}

static void call_sites_up_to_the_cap_are_all_there(void **state)
{
	struct json_object *answer;

	wait_for_many(LIMIT_LOCK_ROWS);
	answer = get(*state);
	assert_int_equal(json_object_array_length(member(answer, "conditions")), LIMIT_LOCK_ROWS);
	assert_int_equal(number(answer, "waits_left_out"), 0);
	json_object_put(answer);
	forget_many(LIMIT_LOCK_ROWS);
}

static void call_sites_beyond_the_cap_are_left_out_and_counted(void **state)
{
	struct json_object *answer;

	wait_for_many(LIMIT_LOCK_ROWS + 1);
	answer = get(*state);
	assert_int_equal(json_object_array_length(member(answer, "conditions")), LIMIT_LOCK_ROWS);
	assert_int_equal(number(answer, "waits_left_out"), 1);
	json_object_put(answer);
	forget_many(LIMIT_LOCK_ROWS + 1);
}

/* One lock is the fixture's. */
static void locks_are_capped_and_counted_too(void **state)
{
	static struct lock locks[LIMIT_LOCK_ROWS];
	struct json_object *answer;
	size_t i, beyond;

	for (i = 0; i < LIMIT_LOCK_ROWS; i++)
		lock_init(&locks[i], LOCK_LEVEL_DEVICE, "many", "");
	for (beyond = 2; beyond-- > 0;) {
		answer = get(*state);
		assert_int_equal(json_object_array_length(member(answer, "objects")),
				 LIMIT_LOCK_ROWS);
		assert_int_equal(number(answer, "objects_left_out"), beyond);
		json_object_put(answer);
		if (beyond)
			lock_fini(&locks[--i]);
	}
	while (i > 0)
		lock_fini(&locks[--i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(nothing_was_waited_for_and_the_lock_is_listed),
		TEST(a_wait_for_a_lock_has_its_name_level_and_site),
		TEST(a_wait_for_a_condition_is_in_a_list_of_its_own),
		TEST(the_longest_wait_comes_first),
		TEST(takes_are_counted_when_a_client_says_so),
		TEST(a_reset_forgets_and_leaves_the_profiler_as_it_is),
		TEST(a_reset_that_is_false_forgets_nothing),
		TEST(both_can_be_asked_at_once),
		TEST(bad_bodies_change_nothing_and_name_the_field),
		TEST(call_sites_up_to_the_cap_are_all_there),
		TEST(call_sites_beyond_the_cap_are_left_out_and_counted),
		TEST(locks_are_capped_and_counted_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
