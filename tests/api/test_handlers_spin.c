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
	assert_body_has(w, "\"register_polls\":{\"park\":false,\"parked\":0,\"changed\":0}");
}

static void parking_of_polls_is_asked_for(void **state)
{
	struct wire *w = *state;

	w->vm.phase = CONTROL_NOT_STARTED;
	assert_int_equal(wire_send(w, "PUT /v1/spin", "{\"park_polls\":true}"), 204);
	assert_true(w->vm.config.spin.park_polls);
	assert_int_equal(wire_send(w, "PUT /v1/spin", "{\"park_polls\":1}"), 422);
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

static void see_one_vcpu(struct wire *w)
{
	w->vm.vcpu_count = 1;
	w->vm.vcpus[0] = (struct control_vcpu_info){ 0, 4712, "running", 3 };
	w->vm.sample = (struct spin_sample){
		.has_sched = true, .run_ns = 10, .delay_ns = 20, .slices = 30, .host_cpu = 1,
		.has_kvm = true, .exits = 40, .spin_exits = 50, .yields = 60, .yields_good = 61,
	};
}

static void vcpus_show_what_is_seen_of_them(void **state)
{
	struct wire *w = *state;

	see_one_vcpu(w);
	assert_int_equal(wire_send(w, "GET /v1/vcpus", NULL), 200);
	assert_body_has(w, ",\"stats\":{\"sched\":{\"run_ns\":10,\"run_delay_ns\":20,"
			   "\"slices\":30,\"host_cpu\":1},\"spin\":{\"exits\":40,"
			   "\"spin_exits\":50,");
	assert_body_has(w, "\"directed_yields\":60,\"directed_yields_successful\":61},"
			   "\"kvm\":{\"exits\":40,\"a \\\"hist\\\"\":[0,5]}}}]}");
	assert_int_equal(wire_send(w, "GET /v1/spin", NULL), 200);
	assert_body_has(w, ",\"vcpus\":[{\"index\":0,\"sched\":{\"run_ns\":10,");
	assert_body_has(w, ",\"kvm\":{\"remote_tlb_flush\":3}");
}

static void what_is_not_seen_is_null(void **state)
{
	struct wire *w = *state;

	see_one_vcpu(w);
	w->vm.sample = (struct spin_sample){ 0 };
	assert_int_equal(wire_send(w, "GET /v1/vcpus", NULL), 200);
	assert_body_has(w, "\"stats\":{\"sched\":null,\"spin\":null,\"kvm\":null}}");
}

static void host_checks_have_a_status_and_a_text(void **state)
{
	struct wire *w = *state;

	w->vm.checks = (struct spin_checks){ .count = 2, .rows = {
		{ "pause_filter", SPIN_CHECK_WARN, "none" },
		{ "one_cgroup", SPIN_CHECK_UNKNOWN, "" } } };
	assert_int_equal(wire_send(w, "GET /v1/spin", NULL), 200);
	assert_body_has(w, "\"host\":[{\"name\":\"pause_filter\",\"status\":\"warning\","
			   "\"text\":\"none\"},{\"name\":\"one_cgroup\",\"status\":\"unknown\"");
}

static void a_controller_that_has_decided_nothing_is_null(void **state)
{
	struct wire *w = *state;

	assert_int_equal(wire_send(w, "GET /v1/spin", NULL), 200);
	assert_body_has(w, ",\"controller\":{\"mode\":\"off\",\"period_ms\":1000,\"periods\":0,"
			   "\"blind_periods\":0,\"class\":null,\"halt_poll_ns\":null,"
			   "\"advice\":null},\"events\":[]");
}

static void the_controller_tells_class_and_advice(void **state)
{
	struct wire *w = *state;

	w->vm.config.spin.controller = SPIN_CONTROLLER_DRY_RUN;
	w->vm.controller = (struct control_spin_controller){
		.class = SPIN_PREEMPTED_HOLDER, .advice = SPIN_ADVICE_SPREAD, .periods = 7,
		.blind = 1, .halt_poll_ns = 5, .host_cpus = { 2, 3 }, .host_cpu_count = 2,
	};
	assert_int_equal(wire_send(w, "GET /v1/spin", NULL), 200);
	assert_body_has(w, "{\"mode\":\"dry_run\",\"period_ms\":1000,\"periods\":7,"
			   "\"blind_periods\":1,\"class\":\"preempted_holder\",\"halt_poll_ns\":5,"
			   "\"advice\":{\"action\":\"spread_vcpus\",");
	assert_body_has(w, "\"host_cpus\":[2,3]}}");
}

static void events_tell_what_was_decided_from_what(void **state)
{
	struct wire *w = *state;

	w->vm.spin_event_count = 2;
	w->vm.spin_events[0] = (struct spin_event){
		.number = 1, .uptime_ms = 3000, .kind = SPIN_EVENT_CLASS, .from_class = SPIN_NORMAL,
		.to_class = SPIN_TRUE_CONTENTION, .why = "they spin",
		.inputs = { .wall_ns = 9, .vcpus = 2, .spin_exits = 8, .poll_hist = { 0, 4 } },
	};
	w->vm.spin_events[1] = (struct spin_event){
		.number = 2, .kind = SPIN_EVENT_HALT_POLL, .from_ns = 200000, .to_ns = 0,
		.why = "x", .dry_run = true, .code = -22,
	};
	assert_int_equal(wire_send(w, "GET /v1/spin", NULL), 200);
	assert_body_has(w, "\"events\":[{\"number\":1,\"uptime_ms\":3000,\"kind\":\"class\","
			   "\"from\":\"normal\",\"to\":\"true_contention\",\"why\":\"they spin\","
			   "\"inputs\":{\"wall_ns\":9,\"vcpus\":2,");
	assert_body_has(w, "\"halts_polled\":[0,4],\"halts_slept\":[]}},{\"number\":2,");
	assert_body_has(w, "\"kind\":\"halt_poll_ns\",\"from\":200000,\"to\":0,\"dry_run\":true,"
			   "\"errno\":22,\"why\":\"x\"");
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
		TEST(parking_of_polls_is_asked_for),
		TEST(each_control_tells_asked_granted_and_why),
		TEST(vcpus_show_what_is_seen_of_them),
		TEST(what_is_not_seen_is_null),
		TEST(host_checks_have_a_status_and_a_text),
		TEST(a_controller_that_has_decided_nothing_is_null),
		TEST(the_controller_tells_class_and_advice),
		TEST(events_tell_what_was_decided_from_what),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
