/* The configuration file: what it may hold, in which order it is applied. */
#include "tests/api/cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/config_file.h"
#include "tests/fakes/fake_control.h"

#define BOOT "\"boot-source\":{\"kernel_image_path\":\"k\"}"

static struct vm vm;
static struct error err;
static char path[64];

static int setup(void **state)
{
	int fd;

	fake_control_init(&vm);
	memset(&err, 0, sizeof(err));
	snprintf(path, sizeof(path), "/tmp/lull-config-XXXXXX");
	fd = mkstemp(path);
	close(fd);
	return fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	unlink(path);
	return 0;
}

static int load_bytes(const char *text, size_t len)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	fclose(f);
	return api_load_config_file(&vm, path, &err);
}

static int load(const char *text)
{
	return load_bytes(text, strlen(text));
}

static void smallest_file_has_drives_and_boot_source(void **state)
{
	assert_int_equal(load("{\"drives\":[]," BOOT "}\n"), 0);
	assert_int_equal(vm.call_count, 1);
	assert_string_equal(vm.config.boot_source.kernel_image_path, "k");
	assert_int_equal(load("{" BOOT "}"), -EINVAL);
	assert_non_null(strstr(err.text, "Invalid JSON: missing field `drives`"));
	assert_int_equal(load("{\"drives\":[]}"), -EINVAL);
	assert_non_null(strstr(err.text, "missing field `boot-source`"));
}

static void topology_is_applied_after_the_machine(void **state)
{
	static const char format[] = "{\"topology\":{\"sockets\":%d},\"drives\":[]," BOOT ","
				     "\"machine-config\":{\"vcpu_count\":4,\"mem_size_mib\":64}}";
	char text[256];

	snprintf(text, sizeof(text), format, 4);
	assert_int_equal(load(text), 0);
	assert_string_equal(vm.calls[1], "put_topology");
	assert_int_equal(vm.config.topology.sockets.value, 4);
	snprintf(text, sizeof(text), format, 3);
	assert_int_equal(load(text), -EINVAL);
	assert_non_null(strstr(err.text, "Topology error: sockets: "));
}

static void affinity_is_taken_from_the_file(void **state)
{
	assert_int_equal(load("{\"affinity\":{\"vcpus\":[{\"index\":1,\"cpus\":[2,3]}],\"devices\":"
			      "[{\"device\":\"virtio-blk:a\",\"cpus\":[4]}]},\"drives\":[]," BOOT "}"),
			 0);
	assert_int_equal(fake_control_called(&vm, "put_vcpu_affinity"), 1);
	assert_string_equal(vm.pinned_name, "virtio-blk:a");
	assert_true(CPU_ISSET(4, &vm.pinned));
	assert_int_equal(load("{\"affinity\":{\"vcpus\":[{\"index\":32,\"cpus\":[0]}]},\"drives\":[],"
			      BOOT "}"), -EINVAL);
	vm.code = -EINVAL;
	assert_int_equal(load("{\"affinity\":{\"vcpus\":[{\"index\":0,\"cpus\":[0]}]},\"drives\":[],"
			      BOOT "}"), -EINVAL);
	assert_string_equal(err.text, "Affinity error: told to fail");
}

static void parts_are_applied_in_their_order(void **state)
{
	static const char *const order[] = { "put_logger", "put_metrics", "put_machine",
					     "put_boot_source", "put_drive", "put_drive",
					     "put_net", "put_entropy" };
	size_t i;

	assert_int_equal(load("{\"entropy\":{},\"network-interfaces\":[{\"iface_id\":\"n\","
			      "\"host_dev_name\":\"tap0\"}],\"drives\":[{\"drive_id\":\"a\","
			      "\"is_root_device\":true,\"path_on_host\":\"p\"},{\"drive_id\":\"b\","
			      "\"is_root_device\":false,\"path_on_host\":\"q\"}]," BOOT ","
			      "\"machine-config\":{\"vcpu_count\":2,\"mem_size_mib\":64},"
			      "\"metrics\":{\"metrics_path\":\"m\"},\"logger\":{}}"), 0);
	assert_int_equal(vm.call_count, 8);
	for (i = 0; i < 8; i++)
		assert_string_equal(vm.calls[i], order[i]);
	assert_int_equal(vm.config.machine.vcpu_count, 2);
	assert_string_equal(vm.config.drives[1].drive_id, "b");
}

static void the_clock_may_be_given_too(void **state)
{
	assert_int_equal(load("{\"drives\":[]," BOOT ",\"rtc\":null}"), 0);
	assert_int_equal(vm.call_count, 1);
	assert_int_equal(load("{\"drives\":[]," BOOT ",\"rtc\":{\"lost_ticks\":\"discard\"}}"), 0);
	assert_string_equal(vm.calls[1], "put_rtc");
	assert_int_equal(vm.config.rtc.lost_ticks, RTC_LOST_TICKS_DISCARD);
	assert_int_equal(load("{\"drives\":[]," BOOT ",\"rtc\":{\"lost_ticks\":\"none\"}}"), -EINVAL);
	assert_non_null(strstr(err.text, "Invalid JSON: "));
}

static void the_spin_policy_may_be_given_too(void **state)
{
	assert_int_equal(load("{\"drives\":[]," BOOT ",\"spin\":null}"), 0);
	assert_int_equal(vm.call_count, 1);
	assert_int_equal(load("{\"drives\":[]," BOOT ",\"spin\":{\"controller\":\"on\"}}"), 0);
	assert_string_equal(vm.calls[1], "put_spin");
	assert_int_equal(vm.config.spin.controller, SPIN_CONTROLLER_ON);
	assert_int_equal(vm.config.spin.mode, SPIN_AUTO);
	assert_int_equal(vm.config.spin.period_ms, 1000);
	assert_int_equal(load("{\"drives\":[]," BOOT ",\"spin\":{\"period_ms\":99}}"), -EINVAL);
	assert_string_equal(err.text, "Spin policy error: period_ms must be from 100 to 60000");
}

static void nulls_stand_for_absent_parts(void **state)
{
	assert_int_equal(load("{\"balloon\":null,\"drives\":[]," BOOT ",\"cpu-config\":null,"
			      "\"logger\":null,\"machine-config\":null,\"metrics\":null,"
			      "\"mmds-config\":null,\"network-interfaces\":[],\"vsock\":null,"
			      "\"entropy\":null,\"pmem\":[],\"memory-hotplug\":null}"), 0);
	assert_int_equal(vm.call_count, 1);
}

static void unknown_parts_are_passed_over(void **state)
{
	assert_int_equal(load("{\"drives\":[]," BOOT ",\"comment\":{\"a\":[1]}}"), 0);
}

static void parts_of_other_versions_are_refused(void **state)
{
	assert_int_equal(load("{\"drives\":[]," BOOT ",\"vsock\":{\"guest_cid\":3,"
			      "\"uds_path\":\"v\"}}"), -EINVAL);
	assert_string_equal(err.text,
			    "Invalid JSON: field `vsock` is not supported by this version");
	assert_int_equal(load("{\"drives\":[]," BOOT ",\"pmem\":[{}]}"), -EINVAL);
	assert_int_equal(vm.call_count, 0);
}

static void faults_inside_name_the_field(void **state)
{
	assert_int_equal(load("{\"drives\":[{\"drive_id\":\"a\"}]," BOOT "}"), -EINVAL);
	assert_string_equal(err.text, "Invalid JSON: missing field `is_root_device`");
	assert_int_equal(load("{\"drives\":[],\"boot-source\":{\"kernel\":1}}"), -EINVAL);
	assert_non_null(strstr(err.text, "unknown field `kernel`"));
	assert_int_equal(load("{\"drives\":{}," BOOT "}"), -EINVAL);
	assert_non_null(strstr(err.text, "invalid type: map, expected a sequence"));
}

static void refused_parts_have_a_prefix(void **state)
{
	assert_int_equal(load("{\"drives\":[]," BOOT ",\"machine-config\":{\"vcpu_count\":0,"
			      "\"mem_size_mib\":64}}"), -EINVAL);
	assert_ptr_equal(strstr(err.text, "VM config error: The number of vCPUs"), err.text);
	assert_int_equal(load("{\"drives\":[{\"drive_id\":\"a\",\"is_root_device\":true}]," BOOT
			      "}"), -EINVAL);
	assert_ptr_equal(strstr(err.text, "Block device error: "), err.text);
}

static void bad_text_is_an_error(void **state)
{
	assert_int_equal(load(""), -EINVAL);
	assert_string_equal(err.text,
			    "Invalid JSON: EOF while parsing a value at line 1 column 0");
	assert_int_equal(load("{\"drives\":[],\n\"drives\":[]," BOOT "}"), -EEXIST);
	assert_non_null(strstr(err.text, "duplicate field `drives` at line 2 column 8"));
	assert_int_equal(load("\x7f" "ELF"), -EINVAL);
}

static void file_must_be_a_readable_file(void **state)
{
	assert_int_equal(api_load_config_file(&vm, "/nonexistent.json", &err), -ENOENT);
	assert_non_null(strstr(err.text, "No such file or directory (os error 2) /nonexistent.json"));
	assert_int_equal(api_load_config_file(&vm, "/tmp", &err), -EISDIR);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(api_load_config_file(&vm, path, &err), -EINVAL);
}

/* A good document of `size` bytes. */
static int load_padded(size_t size)
{
	static const char text[] = "{\"drives\":[]," BOOT "}";
	char *padded = malloc(size);
	int ret;

	memset(padded, ' ', size);
	memcpy(padded, text, sizeof(text) - 1);
	ret = load_bytes(padded, size);
	free(padded);
	return ret;
}

static void file_ends_at_its_limit(void **state)
{
	assert_int_equal(load_padded(LIMIT_CONFIG_FILE), 0);
	assert_int_equal(load_padded(LIMIT_CONFIG_FILE + 1), -EFBIG);
	assert_non_null(strstr(err.text, "has 1048577 bytes, the most is 1048576"));
}

static void more_drives_than_fit_are_refused(void **state)
{
	char text[8192];
	size_t used = (size_t)snprintf(text, sizeof(text), "{" BOOT ",\"drives\":["), i;

	for (i = 0; i <= LIMIT_DRIVES; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s{\"drive_id\":\"d%zu\",\"is_root_device\":false,"
					 "\"path_on_host\":\"p\"}", i ? "," : "", i);
	snprintf(text + used, sizeof(text) - used, "]}");
	assert_int_equal(load(text), -EINVAL);
	assert_non_null(strstr(err.text, "invalid length 17, expected at most 16 elements"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(smallest_file_has_drives_and_boot_source),
		TEST(parts_are_applied_in_their_order),
		TEST(topology_is_applied_after_the_machine),
		TEST(affinity_is_taken_from_the_file),
		TEST(the_clock_may_be_given_too),
		TEST(the_spin_policy_may_be_given_too),
		TEST(nulls_stand_for_absent_parts),
		TEST(unknown_parts_are_passed_over),
		TEST(parts_of_other_versions_are_refused),
		TEST(faults_inside_name_the_field),
		TEST(refused_parts_have_a_prefix),
		TEST(bad_text_is_an_error),
		TEST(file_must_be_a_readable_file),
		TEST(file_ends_at_its_limit),
		TEST(more_drives_than_fit_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
