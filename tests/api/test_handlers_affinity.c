/* The paths of affinity: which names they take, what they show. */
#include "tests/api/cmocka_all.h"

#include <errno.h>
#include <stdio.h>

#include "tests/api/wire.h"

static void vcpus_are_called_by_their_index(void **state)
{
	struct wire *w = *state;

	assert_int_equal(wire_send(w, "PUT /v1/vcpus/3/affinity", "{\"cpus\":[1,5]}"), 204);
	assert_string_equal(w->vm.pinned_name, "vcpu 3");
	assert_int_equal(CPU_COUNT(&w->vm.pinned), 2);
	assert_int_equal(wire_send(w, "GET /v1/vcpus/3/affinity", NULL), 200);
	assert_string_equal(w->body, "{\"cpus\":[1,5]}");
	assert_int_equal(wire_send(w, "GET /v1/vcpus/2/affinity", NULL), 200);
	assert_string_equal(w->body, "{\"cpus\":null}");
}

static void before_the_start_every_vcpu_that_may_come_has_a_path(void **state)
{
	struct wire *w = *state;

	assert_int_equal(wire_send(w, "PUT /v1/vcpus/31/affinity", "{\"cpus\":[0]}"), 204);
	assert_int_equal(wire_send(w, "PUT /v1/vcpus/32/affinity", "{\"cpus\":[0]}"), 404);
	w->vm.phase = CONTROL_RUNNING;
	w->vm.vcpu_count = 2;
	assert_int_equal(wire_send(w, "PUT /v1/vcpus/1/affinity", "{\"cpus\":[0]}"), 204);
	assert_int_equal(wire_send(w, "PUT /v1/vcpus/2/affinity", "{\"cpus\":[0]}"), 404);
	assert_int_equal(wire_send(w, "GET /v1/vcpus/2/affinity", NULL), 404);
}

static void names_of_vcpus_that_are_none_are_not_found(void **state)
{
	static const char *const bad[] = { "", "01", "a", "1a", "-1", "99999999999999999999" };
	struct wire *w = *state;
	char request[128];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(request, sizeof(request), "PUT /v1/vcpus/%s/affinity", bad[i]);
		assert_int_equal(wire_send(w, request, "{\"cpus\":[0]}"), 404);
		assert_body_has(w, "\"not_found\"");
	}
	assert_int_equal(fake_control_called(&w->vm, "put_vcpu_affinity"), 0);
}

static void devices_are_called_by_id_or_type_and_id(void **state)
{
	struct wire *w = *state;

	assert_int_equal(wire_send(w, "PUT /v1/devices/rootfs/affinity", "{\"cpus\":[0]}"), 204);
	assert_string_equal(w->vm.pinned_name, "rootfs");
	assert_int_equal(wire_send(w, "PUT /v1/devices/virtio-net:eth-0/affinity",
				   "{\"cpus\":[7]}"), 204);
	assert_string_equal(w->vm.pinned_name, "virtio-net:eth-0");
	assert_int_equal(wire_send(w, "GET /v1/devices/virtio-net:eth-0/affinity", NULL), 200);
	assert_string_equal(w->body, "{\"cpus\":[7]}");
}

static void longest_device_name_is_taken_and_one_more_is_not_found(void **state)
{
	struct wire *w = *state;
	char request[256];

	snprintf(request, sizeof(request), "PUT /v1/devices/%0*d/affinity", LIMIT_DEVICE_NAME - 1, 7);
	assert_int_equal(wire_send(w, request, "{\"cpus\":[0]}"), 204);
	assert_int_equal(strlen(w->vm.pinned_name), LIMIT_DEVICE_NAME - 1);
	snprintf(request, sizeof(request), "PUT /v1/devices/%0*d/affinity", LIMIT_DEVICE_NAME, 7);
	assert_int_equal(wire_send(w, request, "{\"cpus\":[0]}"), 404);
}

static const struct {
	int code;
	int status;
	const char *name;
} faults[] = {
	{ -EINVAL, 422, "invalid_value" },
	{ -ENODEV, 404, "not_found" },
	{ -EEXIST, 409, "conflict" },
	{ -EBUSY, 409, "conflict" },
	{ -ENOTSUP, 422, "not_supported" },
};

static void what_the_machine_refuses_has_a_status_that_fits(void **state)
{
	struct wire *w = *state;
	size_t i;

	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		w->vm.code = faults[i].code;
		assert_int_equal(wire_send(w, "PUT /v1/devices/a/affinity", "{\"cpus\":[0]}"),
				 faults[i].status);
		assert_body_has(w, faults[i].name);
		assert_int_equal(wire_send(w, "GET /v1/devices/a/affinity", NULL),
				 faults[i].status);
	}
}

static void affinity_is_shown_with_vcpus_and_devices(void **state)
{
	struct wire *w = *state;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(3, &set);
	w->vm.vcpu_count = w->vm.device_count = 2;
	w->vm.vcpus[0] = (struct control_vcpu_info){ .state = "running", .affinity = &set };
	w->vm.vcpus[1].state = "running";
	w->vm.devices[0] = (struct control_device_info){ .id = "a", .type = "t", .status = "s",
							 .affinity = &set };
	w->vm.devices[1] = (struct control_device_info){ .id = "b", .type = "t", .status = "s" };
	assert_int_equal(wire_send(w, "GET /v1/vcpus", NULL), 200);
	assert_body_has(w, "\"state\":\"running\",\"affinity\":[3],");
	assert_body_has(w, "\"state\":\"running\",\"affinity\":null,");
	assert_int_equal(wire_send(w, "GET /v1/devices", NULL), 200);
	assert_body_has(w, "\"affinity\":[3]}");
	assert_body_has(w, "\"affinity\":null}");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, wire_setup, wire_teardown)
	const struct CMUnitTest tests[] = {
		TEST(vcpus_are_called_by_their_index),
		TEST(before_the_start_every_vcpu_that_may_come_has_a_path),
		TEST(names_of_vcpus_that_are_none_are_not_found),
		TEST(devices_are_called_by_id_or_type_and_id),
		TEST(longest_device_name_is_taken_and_one_more_is_not_found),
		TEST(what_the_machine_refuses_has_a_status_that_fits),
		TEST(affinity_is_shown_with_vcpus_and_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
