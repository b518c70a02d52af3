/* The topology's paths: what is taken, what is refused and how, what is shown. */
#include "tests/api/cmocka_all.h"

#include <json-c/json.h>
#include <stdio.h>

#include "tests/api/wire.h"
#include "vmm/base/buf.h"

static void machine(struct wire *w, unsigned vcpus, bool smt)
{
	w->vm.config.machine.vcpu_count = vcpus;
	w->vm.config.machine.smt = smt;
}

static int put(struct wire *w, const char *body)
{
	return wire_send(w, "PUT /v1/topology", body);
}

/* The text of one member of the answer to a GET, by the names that lead to it. */
static const char *shown(struct wire *w, const char *a, const char *b, const char *c)
{
	static char text[512];
	struct json_object *o, *at;

	assert_int_equal(wire_send(w, "GET /v1/topology", NULL), 200);
	at = o = json_tokener_parse(w->body);
	assert_non_null(o);
	at = json_object_object_get(at, a);
	at = b ? json_object_object_get(at, b) : at;
	at = c ? json_object_object_get(at, c) : at;
	snprintf(text, sizeof(text), "%s",
		 at ? json_object_to_json_string_ext(at, JSON_C_TO_STRING_PLAIN) : "null");
	json_object_put(o);
	return text;
}

static void defaults_are_shown_with_where_they_come_from(void **state)
{
	struct wire *w = *state;

	machine(w, 4, true);
	assert_string_equal(shown(w, "cores", NULL, NULL), "2");
	assert_string_equal(shown(w, "from", NULL, NULL),
			    "{\"sockets\":\"default\",\"dies\":\"default\","
			    "\"cores\":\"machine-config\",\"threads\":\"machine-config\"}");
	assert_string_equal(shown(w, "numa", NULL, NULL), "null");
	assert_string_equal(shown(w, "caches", "l3", "enabled"), "true");
	assert_string_equal(shown(w, "caches", "l3", "shared_by"), "\"die\"");
	assert_string_equal(shown(w, "caches", "l3", "sets"), "16384");
	assert_string_equal(shown(w, "caches", "l3", "groups"), "[[0,1,2,3]]");
	assert_string_equal(shown(w, "caches", "l1d", "groups"), "[[0,1],[2,3]]");
	assert_string_equal(shown(w, "caches", "l3", "narrowed"), "null");
}

static void what_was_asked_for_is_shown(void **state)
{
	struct wire *w = *state;

	machine(w, 8, true);
	w->vm.config.machine.mem_size_mib = 101;
	assert_int_equal(put(w, "{\"sockets\":2,\"dies\":2,\"numa\":{\"node\":\"socket\"},\"caches\":"
				"{\"l3\":{\"size_kib\":4096,\"shared_by\":\"socket\"},"
				"\"l2\":{\"enabled\":false}}}"), 204);
	assert_string_equal(shown(w, "numa", "nodes", NULL),
			    "[{\"mem_size_mib\":51,\"vcpus\":[0,1,2,3]},"
			    "{\"mem_size_mib\":50,\"vcpus\":[4,5,6,7]}]");
	assert_string_equal(shown(w, "caches", "l2", NULL),
			    "{\"enabled\":false,\"from\":{\"enabled\":\"client\"}}");
	assert_string_equal(shown(w, "caches", "l3", "from"),
			    "{\"enabled\":\"default\",\"size_kib\":\"client\",\"ways\":\"default\","
			    "\"line\":\"default\",\"shared_by\":\"client\"}");
	assert_string_equal(shown(w, "caches", "l3", "groups"), "[[0,1,2,3],[4,5,6,7]]");
}

static void vcpus_are_shown_with_their_places(void **state)
{
	struct wire *w = *state;

	machine(w, 12, false);
	assert_int_equal(put(w, "{\"sockets\":2,\"dies\":2,\"numa\":{\"node\":\"die\"}}"), 204);
	assert_int_equal(wire_send(w, "GET /v1/topology", NULL), 200);
	assert_body_has(w, "{\"index\":5,\"id\":6,\"socket\":0,\"die\":1,\"core\":2,\"thread\":0,"
			   "\"node\":1}");
	assert_body_has(w, "{\"index\":11,\"id\":14,\"socket\":1,\"die\":1,\"core\":2,\"thread\":0,"
			   "\"node\":3}");
}

static void narrowed_cache_is_shown_with_the_reason(void **state)
{
	static const int32_t groups[] = { 0, 0, 8, 8 };
	struct wire *w = *state;

	machine(w, 4, false);
	w->vm.l3_groups = groups;
	assert_string_equal(shown(w, "caches", "l3", "groups"), "[[0,1],[2,3]]");
	assert_string_equal(shown(w, "caches", "l3", "narrowed"),
			    "\"vCPUs are pinned to CPUs of different host caches\"");
}

/* Of a machine of 4 vCPUs without SMT and 128 MiB. */
static const struct {
	const char *body;
	const char *code;
	const char *field;
} refused[] = {
	{ "{\"sockets\":3}", "invalid_value", "sockets" },
	{ "{\"cores\":0}", "invalid_value", "cores" },
	{ "{\"dies\":-1}", "out_of_range", "dies" },
	{ "{\"threads\":2}", "invalid_value", "threads" },
	{ "{\"threads\":4294967296}", "out_of_range", "threads" },
	{ "{\"clusters\":1}", "unknown_field", "clusters" },
	{ "{\"caches\":{\"l4\":{}}}", "unknown_field", "caches.l4" },
	{ "{\"caches\":{\"l3\":{\"size\":1}}}", "unknown_field", "caches.l3.size" },
	{ "{\"caches\":{\"l3\":{\"ways\":\"16\"}}}", "wrong_type", "caches.l3.ways" },
	{ "{\"caches\":{\"l3\":{\"ways\":0}}}", "invalid_value", "caches.l3.ways" },
	{ "{\"caches\":{\"l3\":{\"size_kib\":1000}}}", "invalid_value", "caches.l3.size_kib" },
	{ "{\"caches\":{\"l3\":{\"size_kib\":512}}}", "invalid_value", "caches.l3.size_kib" },
	{ "{\"caches\":{\"l3\":{\"shared_by\":\"node\"}}}", "out_of_range", "caches.l3.shared_by" },
	{ "{\"sockets\":2,\"caches\":{\"l3\":{\"shared_by\":\"all\"}}}", "invalid_value",
	  "caches.l3.shared_by" },
	{ "{\"numa\":{}}", "missing_field", "numa.node" },
	{ "{\"numa\":{\"node\":\"core\"}}", "out_of_range", "numa.node" },
	{ "{\"numa\":{\"node\":\"die\",\"nodes\":[]}}", "invalid_value", "numa.nodes" },
	{ "{\"numa\":{\"node\":\"die\",\"nodes\":[{\"mem_size_mib\":127}]}}", "invalid_value",
	  "numa.nodes.mem_size_mib" },
};

static void bad_topology_is_refused_with_the_field_named(void **state)
{
	struct wire *w = *state;
	char code[64], field[64];
	size_t i;

	machine(w, 4, false);
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		snprintf(code, sizeof(code), "\"code\":\"%s\"", refused[i].code);
		snprintf(field, sizeof(field), "\"field\":\"%s\"", refused[i].field);
		if (put(w, refused[i].body) != 422 || !strstr(w->body, code) ||
		    !strstr(w->body, field))
			fail_msg("%s: %d %s", refused[i].body, w->status, w->body);
	}
	assert_int_equal(w->vm.config.topology.sockets.given, false);
}

static void machine_must_agree_with_the_topology_that_is_there(void **state)
{
	struct wire *w = *state;

	machine(w, 4, false);
	assert_int_equal(put(w, "{\"sockets\":2,\"cores\":2}"), 204);
	assert_int_equal(wire_send(w, "PUT /machine-config",
				   "{\"vcpu_count\":6,\"mem_size_mib\":128}"), 400);
	assert_fault(w, "Machine config error: cores: 2 sockets of 1 dies of 2 cores of 1 threads "
			"are 4 vCPUs, the machine's vcpu_count is 6");
	assert_int_equal(put(w, "{}"), 204);
	assert_int_equal(wire_send(w, "PUT /machine-config",
				   "{\"vcpu_count\":6,\"mem_size_mib\":128}"), 204);
}

static int put_nodes(struct wire *w, unsigned count)
{
	struct buf body;
	int status;

	buf_init(&body, 4096);
	buf_printf(&body, "{\"sockets\":32,\"numa\":{\"node\":\"socket\",\"nodes\":[");
	while (count-- > 1)
		buf_printf(&body, "{\"mem_size_mib\":4},");
	buf_printf(&body, "{\"mem_size_mib\":4}]}}");
	status = put(w, buf_text(&body));
	buf_fini(&body);
	return status;
}

static void most_nodes_are_taken_and_one_more_is_refused(void **state)
{
	struct wire *w = *state;

	machine(w, LIMIT_VCPUS, false);
	assert_int_equal(put_nodes(w, LIMIT_NUMA_NODES), 204);
	assert_int_equal(put_nodes(w, LIMIT_NUMA_NODES + 1), 422);
	assert_body_has(w, "\"field\":\"numa.nodes\"");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, wire_setup, wire_teardown)
	const struct CMUnitTest tests[] = {
		TEST(defaults_are_shown_with_where_they_come_from),
		TEST(what_was_asked_for_is_shown),
		TEST(vcpus_are_shown_with_their_places),
		TEST(narrowed_cache_is_shown_with_the_reason),
		TEST(bad_topology_is_refused_with_the_field_named),
		TEST(machine_must_agree_with_the_topology_that_is_there),
		TEST(most_nodes_are_taken_and_one_more_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
