/* The spin policy's paths: what is asked for, refused and told. */
#include "tests/api/cmocka_all.h"

#include "tests/api/wire.h"

static void policy_is_taken_and_bounds_are_named(void **state)
{
	struct wire *w = *state;

	assert_int_equal(wire_send(w, "PUT /v1/spin", "{\"mode\":\"dedicated\","
			 "\"controller\":\"dry_run\",\"halt_poll_ns\":0}"), 204);
	assert_int_equal(w->vm.config.spin.mode, SPIN_DEDICATED);
	assert_int_equal(w->vm.config.spin.controller, SPIN_CONTROLLER_DRY_RUN);
	assert_true(w->vm.config.spin.has_halt_poll_ns);
	assert_int_equal(w->vm.config.spin.period_ms, 1000);
	assert_int_equal(wire_send(w, "PUT /v1/spin", "{\"period_ms\":60001}"), 422);
	assert_body_has(w, "period_ms must be from 100 to 60000");
	assert_int_equal(w->vm.config.spin.mode, SPIN_DEDICATED);
}

static void what_was_left_out_is_the_default(void **state)
{
	struct wire *w = *state;

	assert_int_equal(wire_send(w, "PUT /v1/spin", "{\"controller\":\"on\"}"), 204);
	assert_int_equal(wire_send(w, "PUT /v1/spin", "{}"), 204);
	assert_int_equal(w->vm.config.spin.mode, SPIN_AUTO);
	assert_int_equal(w->vm.config.spin.controller, SPIN_CONTROLLER_OFF);
	assert_false(w->vm.config.spin.has_halt_poll_ns);
}

static void bad_fields_are_told_apart(void **state)
{
	struct wire *w = *state;

	assert_int_equal(wire_send(w, "PUT /v1/spin", "{\"mode\":\"Shared\"}"), 422);
	assert_body_has(w, "\"field\":\"mode\"");
	assert_int_equal(wire_send(w, "PUT /v1/spin", "{\"spin\":1}"), 422);
	assert_body_has(w, "unknown_field");
	assert_int_equal(wire_send(w, "PUT /v1/spin", "{\"period_ms\":\"1\"}"), 422);
	assert_body_has(w, "wrong_type");
	assert_int_equal(wire_send(w, "PUT /v1/spin", "{\"halt_poll_ns\":4294967296}"), 422);
	assert_body_has(w, "\"field\":\"halt_poll_ns\"");
}

static void a_running_vm_keeps_its_policy(void **state)
{
	struct wire *w = *state;

	w->vm.phase = CONTROL_RUNNING;
	assert_int_equal(wire_send(w, "PUT /v1/spin", "{\"mode\":\"shared\"}"), 409);
}

static void before_the_start_nothing_is_in_force(void **state)
{
	struct wire *w = *state;

	assert_int_equal(wire_send(w, "GET /v1/spin", NULL), 200);
	assert_body_has(w, "{\"mode\":{\"asked\":\"auto\",\"in_force\":null,\"why\":\"\"},"
			   "\"controls\":[],\"halt_poll\":{\"asked_ns\":null,"
			   "\"in_force_ns\":null,\"max_ns\":1000000}");
}

static void each_control_tells_asked_granted_and_why(void **state)
{
	static const struct spin_control controls[] = {
		{ "pause_exits", true, SPIN_NO, "kvm_intel has ple_gap=0" },
		{ "hlt_exits", true, SPIN_YES, "" },
		{ "x", false, SPIN_UNKNOWN, "a \"quote\"" },
	};
	struct wire *w = *state;

	w->vm.config.spin.has_halt_poll_ns = true;
	w->vm.config.spin.halt_poll_ns = 5;
	w->vm.spin = (struct control_spin_info){ SPIN_SHARED, "asked for", controls, 3, 5 };
	assert_int_equal(wire_send(w, "GET /v1/spin", NULL), 200);
	assert_body_has(w, "\"in_force\":\"shared\",\"why\":\"asked for\"}");
	assert_body_has(w, "{\"name\":\"pause_exits\",\"asked\":true,\"granted\":false,"
			   "\"why\":\"kvm_intel has ple_gap=0\"}");
	assert_body_has(w, "\"granted\":null,\"why\":\"a \\\"quote\\\"\"}]");
	assert_body_has(w, "\"asked_ns\":5,\"in_force_ns\":5");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, wire_setup, wire_teardown)
	static const struct CMUnitTest tests[] = {
		TEST(policy_is_taken_and_bounds_are_named),
		TEST(what_was_left_out_is_the_default),
		TEST(bad_fields_are_told_apart),
		TEST(a_running_vm_keeps_its_policy),
		TEST(before_the_start_nothing_is_in_force),
		TEST(each_control_tells_asked_granted_and_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
