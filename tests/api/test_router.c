/* Routing: every row of the tables in every phase, paths, methods, v1's errors. */
#include "tests/api/cmocka_all.h"

#include <errno.h>
#include <stdio.h>

#include "api/router.h"
#include "tests/api/wire.h"
#include "vmm/control.h"

static const enum control_phase phases[] = { CONTROL_NOT_STARTED, CONTROL_RUNNING, CONTROL_PAUSED,
					     CONTROL_ENDED };

/* A good request for each row of the tables. */
static const struct sample {
	const char *request;
	const char *pattern;
	const char *body;
	unsigned phases; /* in which it succeeds, when the row alone does not say; else 0 */
} samples[] = {
	{ "GET /", "/", NULL, 0 },
	{ "GET /version", "/version", NULL, 0 },
	{ "GET /machine-config", "/machine-config", NULL, 0 },
	{ "GET /vm/config", "/vm/config", NULL, 0 },
	{ "PUT /machine-config", "/machine-config", "{\"vcpu_count\":2,\"mem_size_mib\":256}", 0 },
	{ "PATCH /machine-config", "/machine-config", "{\"vcpu_count\":2}", 0 },
	{ "PUT /boot-source", "/boot-source", "{\"kernel_image_path\":\"k\"}", 0 },
	{ "PUT /drives/a", "/drives/{id}",
	  "{\"drive_id\":\"a\",\"is_root_device\":true,\"path_on_host\":\"p\"}", 0 },
	{ "PUT /network-interfaces/n", "/network-interfaces/{id}",
	  "{\"iface_id\":\"n\",\"host_dev_name\":\"tap0\"}", 0 },
	{ "PUT /entropy", "/entropy", "{}", 0 },
	{ "PUT /serial", "/serial", "{\"serial_out_path\":\"s\"}", 0 },
	{ "PUT /logger", "/logger", "{\"log_path\":\"l\"}", 0 },
	{ "PUT /metrics", "/metrics", "{\"metrics_path\":\"m\"}", 0 },
	{ "PUT /actions", "/actions", "{\"action_type\":\"InstanceStart\"}", CONTROL_NOT_STARTED },
	{ "PATCH /drives/a", "/drives/{id}", "{\"drive_id\":\"a\",\"path_on_host\":\"p\"}", 0 },
	{ "PATCH /network-interfaces/n", "/network-interfaces/{id}", "{\"iface_id\":\"n\"}", 0 },
	{ "PATCH /vm", "/vm", "{\"state\":\"Paused\"}", 0 },
	{ "GET /v1/vm", "/v1/vm", NULL, 0 },
	{ "PATCH /v1/vm", "/v1/vm", "{\"state\":\"Resumed\"}", PHASES_AFTER },
	{ "GET /v1/devices", "/v1/devices", NULL, 0 },
	{ "GET /v1/vcpus", "/v1/vcpus", NULL, 0 },
	{ "GET /v1/vcpus/0", "/v1/vcpus/{id}", NULL, 0 },
	{ "GET /v1/vcpus/0/affinity", "/v1/vcpus/{id}/affinity", NULL, 0 },
	{ "PUT /v1/vcpus/0/affinity", "/v1/vcpus/{id}/affinity", "{\"cpus\":[0]}", 0 },
	{ "GET /v1/devices/rtc/affinity", "/v1/devices/{id}/affinity", NULL, 0 },
	{ "PUT /v1/devices/rtc/affinity", "/v1/devices/{id}/affinity", "{\"cpus\":[0]}", 0 },
	{ "GET /v1/topology", "/v1/topology", NULL, 0 },
	{ "PUT /v1/topology", "/v1/topology", "{\"caches\":{\"l3\":{\"enabled\":false}}}", 0 },
	{ "GET /v1/locks", "/v1/locks", NULL, 0 },
	{ "PUT /v1/locks", "/v1/locks", "{\"profiling\":false}", 0 },
	{ "PUT /v1/serial", "/v1/serial", "{\"console\":\"None\"}", 0 },
	{ "GET /v1/spin", "/v1/spin", NULL, 0 },
	{ "PUT /v1/spin", "/v1/spin", "{\"mode\":\"shared\"}", 0 },
	{ "PUT /v1/rtc", "/v1/rtc", "{\"lost_ticks\":\"slew\"}", 0 },
};

#define SAMPLES (sizeof(samples) / sizeof(samples[0]))

static const struct sample *sample_of(const struct route *r)
{
	const char *method = api_method_name(r->method);
	size_t i;

	for (i = 0; i < SAMPLES; i++) {
		if (!strcmp(samples[i].pattern, r->path) &&
		    !strncmp(samples[i].request, method, strlen(method)))
			return &samples[i];
	}
	fail_msg("no sample request for %s %s", method, r->path);
	return NULL;
}

static void each_phase_of(struct wire *w, const struct route *r, bool is_v1)
{
	const struct sample *s = sample_of(r);
	unsigned good = s->phases ? s->phases : r->phases;
	size_t i;

	for (i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		fake_control_init(&w->vm);
		w->vm.phase = phases[i];
		w->vm.config.net_count = 1;
		w->vm.vcpu_count = 1;
		w->vm.vcpus[0].state = "running";
		memcpy(w->vm.config.nets[0].iface_id, "n", 2);
		wire_send(w, s->request, s->body);
		if (phases[i] & good)
			assert_in_range(w->status, 200, 204);
		else
			assert_int_equal(w->status, is_v1 ? 409 : 400);
	}
}

static void every_firecracker_route_answers_in_every_phase(void **state)
{
	const struct route *r;

	for (r = routes_firecracker; r->path; r++)
		each_phase_of(*state, r, false);
}

static void every_v1_route_answers_in_every_phase(void **state)
{
	const struct route *r;

	for (r = routes_v1; r->path; r++)
		each_phase_of(*state, r, true);
}

static void every_route_with_a_body_needs_one(void **state)
{
	const struct route *tables[] = { routes_firecracker, routes_v1 }, *r;
	struct wire *w = *state;
	size_t i;

	for (i = 0; i < 2; i++) {
		for (r = tables[i]; r->path; r++) {
			if (!r->fields)
				continue;
			assert_int_equal(wire_send(w, sample_of(r)->request, NULL), 400);
			assert_body_has(w, "Empty P");
		}
	}
}

static void every_route_with_a_body_refuses_bad_json(void **state)
{
	const struct route *r;
	struct wire *w = *state;

	for (r = routes_firecracker; r->path; r++) {
		if (!r->fields)
			continue;
		assert_int_equal(wire_send(w, sample_of(r)->request, "{"), 400);
		assert_fault(w, "An error occurred when deserializing the json body of a request: "
				"EOF while parsing an object at line 1 column 1.");
	}
	assert_int_equal(w->vm.call_count, 0);
}

static void every_route_refuses_an_unknown_field(void **state)
{
	const struct route *r;
	struct wire *w = *state;

	for (r = routes_firecracker; r->path; r++) {
		if (!r->fields || r->fields->open)
			continue;
		assert_int_equal(wire_send(w, sample_of(r)->request, "{\"surprise\":1}"), 400);
		assert_body_has(w, "unknown field `surprise`, expected ");
	}
	assert_int_equal(w->vm.call_count, 0);
}

static void path_words_decide_as_in_firecracker(void **state)
{
	struct wire *w = *state;

	assert_int_equal(wire_send(w, "GET //machine-config/", NULL), 200);
	assert_int_equal(wire_send(w, "GET /machine-config/more/words", NULL), 200);
	assert_int_equal(wire_send(w, "GET /vm/config/x", NULL), 200);
	assert_int_equal(wire_send(w, "GET http://localhost/machine-config", NULL), 200);
	assert_int_equal(wire_send(w, "GET http://localhost", NULL), 200);
	assert_body_has(w, "\"app_name\"");
	assert_int_equal(wire_send(w, "PUT /drives/a/b/c", samples[7].body), 204);
}

static void unknown_paths_name_method_and_first_word(void **state)
{
	struct wire *w = *state;

	wire_send(w, "GET /nowhere/at/all", NULL);
	assert_fault(w, "Invalid request method and/or path: GET nowhere.");
	wire_send(w, "GET /machine-config?x=1", NULL);
	assert_fault(w, "Invalid request method and/or path: GET machine-config?x=1.");
	wire_send(w, "PUT /version", "{}");
	assert_fault(w, "Invalid request method and/or path: PUT version.");
	wire_send(w, "GET /vm", NULL);
	assert_fault(w, "Invalid request method and/or path: GET vm.");
	wire_send(w, "GET /../machine-config", NULL);
	assert_fault(w, "Invalid request method and/or path: GET ...");
	wire_send(w, "DELETE /drives/a", NULL);
	assert_fault(w, "Invalid request method and/or path: DELETE drives.");
}

static void what_this_version_lacks_is_an_unknown_path(void **state)
{
	static const char *const words[] = { "balloon", "vsock",      "mmds",   "pmem",
					     "hotplug", "cpu-config", "snapshot" };
	struct wire *w = *state;
	char request[64], want[128];
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		snprintf(request, sizeof(request), "PUT /%s/x", words[i]);
		snprintf(want, sizeof(want), "path: PUT %s.", words[i]);
		assert_int_equal(wire_send(w, request, "{}"), 400);
		assert_body_has(w, want);
	}
}

static void bodies_where_none_belongs_are_refused(void **state)
{
	struct wire *w = *state;

	wire_send(w, "GET /", "{}");
	assert_fault(w, "GET request cannot have a body.");
	wire_send(w, "DELETE /drives/a", "{}");
	assert_fault(w, "Empty Delete request.");
	wire_send(w, "PUT /nowhere", NULL);
	assert_fault(w, "Empty PUT request.");
	wire_send(w, "PATCH /nowhere", NULL);
	assert_fault(w, "Empty PATCH request.");
}

static void ids_are_checked_before_bodies(void **state)
{
	struct wire *w = *state;
	char request[128];

	wire_send(w, "PUT /drives", "{");
	assert_fault(w, "The ID cannot be empty.");
	wire_send(w, "PUT /drives//x", "{");
	assert_fault(w, "The ID cannot be empty.");
	wire_send(w, "PUT /network-interfaces/a-b", "{");
	assert_fault(w, "API Resource IDs can only contain alphanumeric characters and "
			"underscores.");
	snprintf(request, sizeof(request), "PUT /drives/%065d", 0);
	wire_send(w, request, "{");
	assert_fault(w, "API Resource IDs can only have 64 characters.");
}

static void ids_of_path_and_body_must_agree(void **state)
{
	struct wire *w = *state;

	wire_send(w, "PUT /drives/b", samples[7].body);
	assert_fault(w, "The id from the path does not match the id from the body!");
	wire_send(w, "PUT /network-interfaces/m", samples[8].body);
	assert_fault(w, "The id from the path [m] does not match the id from the body [n]!");
	assert_int_equal(w->vm.call_count, 0);
}

static void requests_are_counted(void **state)
{
	struct wire *w = *state;

	wire_send(w, "GET /", NULL);
	wire_send(w, "PUT /drives/a", samples[7].body);
	wire_send(w, "PUT /drives/a", "{}");
	wire_send(w, "PATCH /drives/a", samples[14].body);
	assert_int_equal(metric_read(&w->api.metrics.get.instance_info_count), 1);
	assert_int_equal(metric_read(&w->api.metrics.put.drive_count), 2);
	assert_int_equal(metric_read(&w->api.metrics.put.drive_fails), 1);
	assert_int_equal(metric_read(&w->api.metrics.patch.drive_count), 1);
	assert_int_equal(metric_read(&w->api.metrics.patch.drive_fails), 1);
}

static void v1_unknown_path_is_404(void **state)
{
	struct wire *w = *state;

	assert_int_equal(wire_send(w, "GET /v1/nothing", NULL), 404);
	assert_string_equal(w->body, "{\"error\":{\"code\":\"not_found\",\"message\":\"there is no "
				     "/v1/nothing\"}}");
	assert_int_equal(wire_send(w, "GET /v1", NULL), 404);
	assert_int_equal(wire_send(w, "GET /v1/vm/more", NULL), 404);
	assert_int_equal(wire_send(w, "GET /v1/vm/", NULL), 200);
}

static void v1_wrong_method_is_405_with_allow(void **state)
{
	struct wire *w = *state;

	assert_int_equal(wire_send(w, "PUT /v1/vm", "{}"), 405);
	assert_string_equal(w->allow, "GET, PATCH");
	assert_body_has(w, "\"code\":\"method_not_allowed\"");
	assert_int_equal(wire_send(w, "POST /v1/vcpus", NULL), 405);
	assert_string_equal(w->allow, "GET");
}

static void v1_wrong_phase_is_409(void **state)
{
	struct wire *w = *state;

	assert_int_equal(wire_send(w, "PATCH /v1/vm", "{\"state\":\"Paused\"}"), 409);
	assert_string_equal(w->body, "{\"error\":{\"code\":\"wrong_phase\",\"message\":\"not "
				     "possible while the VM is in state \\\"configuring\\\"\"}}");
	w->vm.phase = CONTROL_RUNNING;
	w->vm.state = "running";
	assert_int_equal(wire_send(w, "PUT /v1/serial", "{\"console\":\"None\"}"), 409);
}

static const struct {
	const char *body, *code, *field;
	int status;
} bad_bodies[] = {
	{ "{", "invalid_json", NULL, 400 },
	{ "{\"state\":\"Paused\",\"state\":\"Paused\"}", "duplicate_field", "state", 400 },
	{ "{\"mode\":1}", "unknown_field", "mode", 422 },
	{ "{}", "missing_field", "state", 422 },
	{ "{\"state\":5}", "wrong_type", "state", 422 },
	{ "{\"state\":\"Flying\"}", "out_of_range", "state", 422 },
};

static void v1_bad_bodies_have_codes_and_fields(void **state)
{
	struct wire *w = *state;
	char want[64];
	size_t i;

	for (i = 0; i < sizeof(bad_bodies) / sizeof(bad_bodies[0]); i++) {
		assert_int_equal(wire_send(w, "PATCH /v1/vm", bad_bodies[i].body),
				 bad_bodies[i].status);
		snprintf(want, sizeof(want), "\"code\":\"%s\"", bad_bodies[i].code);
		assert_body_has(w, want);
		snprintf(want, sizeof(want), "\"field\":\"%s\"", bad_bodies[i].field);
		assert_true(!bad_bodies[i].field || strstr(w->body, want));
	}
}

static void v1_machine_errors_map_to_statuses(void **state)
{
	static const struct {
		int code, status;
	} cases[] = { { -EINVAL, 422 }, { -EBUSY, 409 }, { -ENOMEM, 500 }, { -EIO, 500 } };
	struct wire *w = *state;
	size_t i;

	w->vm.phase = CONTROL_RUNNING;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		w->vm.code = cases[i].code;
		assert_int_equal(wire_send(w, "PATCH /v1/vm", "{\"state\":\"Paused\"}"),
				 cases[i].status);
	}
}

static void v1_vm_shows_the_life_cycle(void **state)
{
	struct wire *w = *state;

	w->vm.phase = CONTROL_ENDED;
	w->vm.state = "ended";
	w->vm.reason = "guest-poweroff";
	assert_int_equal(wire_send(w, "GET /v1/vm", NULL), 200);
	assert_string_equal(w->body, "{\"id\":\"anonymous-instance\",\"state\":\"ended\",\"reason\":"
				     "\"guest-poweroff\",\"pid\":4711,\"uptime_ms\":1234,"
				     "\"app_name\":\"Firecracker\",\"version\":\"" LULL_VERSION
				     "\"}");
}

static void v1_stop_answers_in_any_phase(void **state)
{
	struct wire *w = *state;
	size_t i;

	for (i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		w->vm.phase = phases[i];
		assert_int_equal(wire_send(w, "PATCH /v1/vm", "{\"state\":\"Stopped\"}"), 204);
	}
	assert_int_equal(fake_control_called(&w->vm, "stop"), 4);
}

#define NO_STATS ",\"stats\":{\"sched\":null,\"spin\":null,\"kvm\":null}"

static void v1_vcpus_show_exits_by_reason(void **state)
{
	struct wire *w = *state;

	w->vm.vcpu_count = 2;
	w->vm.vcpus[0] = (struct control_vcpu_info){ 0, 100, "running", 7 };
	w->vm.vcpus[1] = (struct control_vcpu_info){ 1, 101, "created", 0 };
	assert_int_equal(wire_send(w, "GET /v1/vcpus", NULL), 200);
	assert_string_equal(w->body, "{\"vcpus\":[{\"index\":0,\"tid\":100,\"state\":\"running\",\"affinity\":null,"
				     "\"exits\":{\"total\":7,\"by_reason\":{\"io\":6,\"hlt\":1}}" NO_STATS "},"
				     "{\"index\":1,\"tid\":101,\"state\":\"created\",\"affinity\":null,\"exits\":"
				     "{\"total\":0,\"by_reason\":{}}" NO_STATS "}]}");
}

static void v1_devices_show_place_and_thread(void **state)
{
	struct wire *w = *state;

	w->vm.device_count = 2;
	w->vm.devices[0] = (struct control_device_info){ "serial", "uart16550", "active", 0x3f8,
							 8, 4, 77 };
	w->vm.devices[1] = (struct control_device_info){ "timer", "boot-timer", "inactive", 4096,
							 1, -1, 0 };
	assert_int_equal(wire_send(w, "GET /v1/devices", NULL), 200);
	assert_string_equal(w->body, "{\"devices\":[{\"id\":\"serial\",\"type\":\"uart16550\","
				     "\"status\":\"active\",\"base\":1016,\"size\":8,\"gsi\":4,"
				     "\"tid\":77,\"affinity\":null},{\"id\":\"timer\",\"type\":\"boot-timer\","
				     "\"status\":\"inactive\",\"base\":4096,\"size\":1,"
				     "\"gsi\":null,\"tid\":null,\"affinity\":null}]}");
}

static void v1_serial_wants_a_path_only_where_there_is_one(void **state)
{
	struct wire *w = *state;

	assert_int_equal(wire_send(w, "PUT /v1/serial", "{\"console\":\"Socket\"}"), 422);
	assert_int_equal(wire_send(w, "PUT /v1/serial",
				   "{\"console\":\"Pty\",\"path\":\"x\"}"), 422);
	assert_int_equal(wire_send(w, "PUT /v1/serial",
				   "{\"console\":\"Socket\",\"path\":\"x\"}"), 204);
	assert_int_equal(w->vm.config.serial.console, CONSOLE_SOCKET);
	assert_string_equal(w->vm.config.serial.path, "x");
}

static void v1_rtc_takes_each_policy_and_no_other(void **state)
{
	struct wire *w = *state;

	assert_int_equal(w->vm.config.rtc.lost_ticks, RTC_LOST_TICKS_SLEW);
	assert_int_equal(wire_send(w, "PUT /v1/rtc", "{\"lost_ticks\":\"discard\"}"), 204);
	assert_int_equal(w->vm.config.rtc.lost_ticks, RTC_LOST_TICKS_DISCARD);
	assert_int_equal(wire_send(w, "PUT /v1/rtc", "{\"lost_ticks\":\"Slew\"}"), 422);
	assert_int_equal(wire_send(w, "PUT /v1/rtc", "{}"), 422);
	assert_int_equal(w->vm.config.rtc.lost_ticks, RTC_LOST_TICKS_DISCARD);
	assert_int_equal(wire_send(w, "PUT /v1/rtc", "{\"lost_ticks\":\"slew\"}"), 204);
	assert_int_equal(w->vm.config.rtc.lost_ticks, RTC_LOST_TICKS_SLEW);
	assert_int_equal(wire_send(w, "GET /vm/config", NULL), 200);
	assert_null(strstr(w->body, "rtc"));
}

static void cut_text_stays_valid_utf8(void **state)
{
	struct wire *w = *state;
	char text[600];
	size_t i;

	for (i = 0; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa4", 3);
	w->vm.code = -EINVAL;
	w->vm.text = text;
	assert_int_equal(wire_send(w, "PUT /entropy", "{}"), 400);
	assert_non_null(strstr(w->body, "\xc3\xa4\"}"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, wire_setup, wire_teardown)
	const struct CMUnitTest tests[] = {
		TEST(every_firecracker_route_answers_in_every_phase),
		TEST(every_v1_route_answers_in_every_phase),
		TEST(every_route_with_a_body_needs_one),
		TEST(every_route_with_a_body_refuses_bad_json),
		TEST(every_route_refuses_an_unknown_field),
		TEST(path_words_decide_as_in_firecracker),
		TEST(unknown_paths_name_method_and_first_word),
		TEST(what_this_version_lacks_is_an_unknown_path),
		TEST(bodies_where_none_belongs_are_refused),
		TEST(ids_are_checked_before_bodies),
		TEST(ids_of_path_and_body_must_agree),
		TEST(requests_are_counted),
		TEST(v1_unknown_path_is_404),
		TEST(v1_wrong_method_is_405_with_allow),
		TEST(v1_wrong_phase_is_409),
		TEST(v1_bad_bodies_have_codes_and_fields),
		TEST(v1_machine_errors_map_to_statuses),
		TEST(v1_vm_shows_the_life_cycle),
		TEST(v1_stop_answers_in_any_phase),
		TEST(v1_vcpus_show_exits_by_reason),
		TEST(v1_devices_show_place_and_thread),
		TEST(v1_serial_wants_a_path_only_where_there_is_one),
		TEST(v1_rtc_takes_each_policy_and_no_other),
		TEST(cut_text_stays_valid_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
