/*
 * The wire contract: orders of requests that known clients send, and the
 * answers they look at, word by word.
 */
#include "tests/api/cmocka_all.h"

#include <errno.h>
#include <stdio.h>

#include "tests/api/wire.h"
#include "vmm/control.h"

#define DESERIALIZING "An error occurred when deserializing the json body of a request: "
#define BEFORE "The requested operation is not supported before starting the microVM."
#define AFTER "The requested operation is not supported after starting the microVM."

#define INITRD "The initrd file cannot be opened due to invalid path or invalid permissions. " \
	       "No such file or directory (os error 2) /i"
#define TAP "Could not create the network device: Open tap device failed: " \
	    "there is no interface 't'"
#define BAD_KERNEL "System configuration error: Cannot load kernel due to invalid memory " \
		   "configuration or invalid kernel image: kernel: file is empty"
#define BAD_INITRD "Error with initrd initialization: initrd: file is empty"

struct step {
	const char *request;
	const char *body;
	int status;
	const char *has; /* a part of the answer; NULL: nothing is asked of it */
};

static void play(struct wire *w, const struct step *steps, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		wire_send(w, steps[i].request, steps[i].body);
		if (w->status != steps[i].status)
			fail_msg("step %zu, %s: status %d, body %s", i, steps[i].request, w->status,
				 w->body);
		if (steps[i].status == 204)
			assert_string_equal(w->body, "");
		if (steps[i].has)
			assert_body_has(w, steps[i].has);
	}
}

#define PLAY(state, steps) play(state, steps, sizeof(steps) / sizeof((steps)[0]))

static const struct step go_sdk_steps[] = {
	{ "GET /machine-config", NULL, 200, "\"vcpu_count\":1" },
	{ "PUT /logger", "{\"level\":\"Debug\",\"log_path\":\"log.fifo\",\"show_level\":true,"
			 "\"show_log_origin\":false}\n", 204 },
	{ "PUT /metrics", "{\"metrics_path\":\"metrics.fifo\"}\n", 204 },
	{ "PUT /machine-config", "{\"mem_size_mib\":256,\"smt\":false,\"vcpu_count\":1,"
				 "\"track_dirty_pages\":false}\n", 204 },
	{ "GET /machine-config", NULL, 200, "\"mem_size_mib\":256" },
	{ "PUT /boot-source", "{\"boot_args\":\"ro console=ttyS0 noapic reboot=k panic=1 "
			      "pci=off nomodules\",\"kernel_image_path\":\"vmlinux\"}\n",
	  204 },
	{ "PUT /drives/root", "{\"drive_id\":\"root\",\"is_read_only\":false,"
			      "\"is_root_device\":true,\"path_on_host\":\"root.img\"}\n",
	  204 },
	{ "PUT /network-interfaces/1", "{\"guest_mac\":\"01-23-45-67-89-AB\","
				       "\"host_dev_name\":\"tap0\",\"iface_id\":\"1\"}\n",
	  400, "The provided MAC address is invalid." },
	{ "PUT /network-interfaces/1", "{\"guest_mac\":\"AA:FC:00:00:00:01\","
				       "\"host_dev_name\":\"tap0\",\"iface_id\":\"1\"}\n",
	  204 },
	{ "PUT /actions", "{\"action_type\":\"InstanceStart\"}\n", 204 },
	{ "GET /", NULL, 200, "\"state\":\"Running\"" },
	{ "PATCH /vm", "{\"state\":\"Paused\"}\n", 204 },
	{ "PATCH /vm", "{\"state\":\"Paused\"}\n", 204 },
	{ "GET /", NULL, 200, "\"state\":\"Paused\"" },
	{ "PATCH /vm", "{\"state\":\"Resumed\"}\n", 204 },
	{ "PUT /actions", "{\"action_type\":\"FlushMetrics\"}\n", 204 },
	{ "PUT /actions", "{\"action_type\":\"SendCtrlAltDel\"}\n", 204 },
};

static void go_sdk_boots_a_machine(void **state)
{
	PLAY(*state, go_sdk_steps);
}

static void firectl_puts_extra_drives_first(void **state)
{
	static const struct step steps[] = {
		{ "GET /machine-config", NULL, 200 },
		{ "PUT /machine-config", "{\"mem_size_mib\":512,\"smt\":true,\"vcpu_count\":1}\n",
		  204 },
		{ "GET /machine-config", NULL, 200, "\"smt\":true" },
		{ "PUT /boot-source", "{\"boot_args\":\"noapic\",\"kernel_image_path\":\"k\"}\n",
		  204 },
		{ "PUT /drives/2", "{\"drive_id\":\"2\",\"is_read_only\":false,\"is_root_device\":"
				   "false,\"path_on_host\":\"/dev/null\"}\n", 204 },
		{ "PUT /drives/1", "{\"drive_id\":\"1\",\"is_read_only\":false,\"is_root_device\":"
				   "true,\"path_on_host\":\"/dev/null\"}\n", 204 },
		{ "PUT /network-interfaces/1", "{\"host_dev_name\":\"tap0\",\"iface_id\":\"1\"}\n",
		  204 },
		{ "PUT /actions", "{\"action_type\":\"InstanceStart\"}\n", 204 },
		{ "PUT /mmds", "{\"a\":1}\n", 400, "Invalid request method" },
	};

	PLAY(*state, steps);
}

static void deno_client_uses_absolute_targets(void **state)
{
	static const struct step steps[] = {
		{ "GET http://localhost/", NULL, 200, "\"app_name\":\"Firecracker\"" },
		{ "PUT http://localhost/machine-config", "{\"vcpu_count\":1,\"mem_size_mib\":128}",
		  204 },
		{ "PUT http://localhost/boot-source", "{\"kernel_image_path\":\"k\"}", 204 },
		{ "PUT http://localhost/drives/rootfs",
		  "{\"drive_id\":\"rootfs\",\"path_on_host\":\"r\",\"is_root_device\":true}", 204 },
		{ "PUT http://localhost/actions", "{\"action_type\":\"InstanceStart\"}", 204 },
		{ "PUT http://localhost/actions", "{\"action_type\":\"InstanceStart\"}", 400, AFTER },
		{ "PUT http://localhost/boot-source", "{\"kernel_image_path\":\"k\"}", 400, AFTER },
	};

	PLAY(*state, steps);
}

static void kata_sends_nulls_and_empty_limiters(void **state)
{
	static const struct step steps[] = {
		{ "PUT /boot-source", "{\"kernel_image_path\":\"k\",\"initrd_path\":null,"
				      "\"boot_args\":null}", 204 },
		{ "PUT /machine-config", "{\"vcpu_count\":1,\"mem_size_mib\":2048,"
					 "\"cpu_template\":null,\"smt\":null}", 204 },
		{ "PUT /drives/drive_0", "{\"drive_id\":\"drive_0\",\"path_on_host\":\"r\","
					 "\"is_root_device\":false,\"rate_limiter\":{}}", 204 },
		{ "PUT /network-interfaces/eth0",
		  "{\"iface_id\":\"eth0\",\"host_dev_name\":\"tap0\",\"guest_mac\":null,"
		  "\"rx_rate_limiter\":{},\"tx_rate_limiter\":{\"bandwidth\":null,\"ops\":null}}",
		  204 },
		{ "PUT /actions", "{\"action_type\":\"InstanceStart\"}", 204 },
		{ "PATCH /drives/drive_0", "{\"drive_id\":\"drive_0\",\"path_on_host\":\"n\"}", 204 },
	};

	PLAY(*state, steps);
	assert_string_equal(((struct wire *)*state)->vm.patched_path, "n");
}

static void fctools_reads_all_four_identity_fields(void **state)
{
	struct wire *w = *state;

	assert_int_equal(wire_send(w, "GET /", NULL), 200);
	assert_string_equal(w->body, "{\"id\":\"anonymous-instance\",\"state\":\"Not started\","
				     "\"vmm_version\":\"1.15.0\",\"app_name\":\"Firecracker\"}");
	assert_int_equal(wire_send(w, "GET /version", NULL), 200);
	assert_string_equal(w->body, "{\"firecracker_version\":\"1.15.0\"}");
}

static void own_name_shows_under_own_identity(void **state)
{
	struct wire *w = *state;

	w->api.identity = (struct api_identity){ "lull", "0.1.0" };
	wire_send(w, "GET /", NULL);
	assert_body_has(w, "\"vmm_version\":\"0.1.0\",\"app_name\":\"lull\"");
	wire_send(w, "GET /version", NULL);
	assert_string_equal(w->body, "{\"firecracker_version\":\"0.1.0\"}");
}

static void machine_config_has_its_fields_in_order(void **state)
{
	struct wire *w = *state;

	wire_send(w, "GET /machine-config", NULL);
	assert_string_equal(w->body, "{\"vcpu_count\":1,\"mem_size_mib\":128,\"smt\":false,"
				     "\"track_dirty_pages\":false,\"huge_pages\":\"None\"}");
}

static void put_machine_config_resets_what_is_left_out(void **state)
{
	static const struct step steps[] = {
		{ "PUT /machine-config", "{\"vcpu_count\":2,\"mem_size_mib\":256,\"smt\":true,"
					 "\"track_dirty_pages\":true,\"huge_pages\":\"2M\"}", 204 },
		{ "GET /machine-config", NULL, 200, "\"huge_pages\":\"2M\"" },
		{ "PUT /machine-config", "{\"vcpu_count\":4,\"mem_size_mib\":257}", 204 },
		{ "GET /machine-config", NULL, 200,
		  "{\"vcpu_count\":4,\"mem_size_mib\":257,\"smt\":false,\"track_dirty_pages\":false,"
		  "\"huge_pages\":\"None\"}" },
	};

	PLAY(*state, steps);
}

static void patch_machine_config_keeps_what_is_left_out(void **state)
{
	static const struct step steps[] = {
		{ "PUT /machine-config", "{\"vcpu_count\":2,\"mem_size_mib\":256,\"smt\":true}", 204 },
		{ "PATCH /machine-config", "{\"mem_size_mib\":512}", 204 },
		{ "GET /machine-config", NULL, 200,
		  "{\"vcpu_count\":2,\"mem_size_mib\":512,\"smt\":true" },
		{ "PATCH /machine-config", "{}", 400, "Empty PATCH request." },
		{ "PATCH /machine-config", "{\"vcpu_count\":null}", 400, "Empty PATCH request." },
		{ "PATCH /machine-config", "{\"mem_size_mib\":0}", 400,
		  "Machine config error: The memory size (MiB) is either 0, or not a multiple of "
		  "the configured page size." },
		{ "GET /machine-config", NULL, 200, "\"mem_size_mib\":512" },
	};

	PLAY(*state, steps);
}

#define VCPUS "Machine config error: The number of vCPUs must be greater than 0, less than 32 " \
	      "and must be 1 or an even number if SMT is enabled."
static const struct step machine_error_steps[] = {
	{ "PUT /machine-config", "{\"mem_size_mib\": 128}", 400,
	  DESERIALIZING "missing field `vcpu_count` at line 1 column 21." },
	{ "PUT /machine-config", "{\"vcpu_count\": 2}", 400,
	  DESERIALIZING "missing field `mem_size_mib` at line 1 column 17." },
	{ "PUT /machine-config", "{\"vcpu_count\":\"-2\",\"mem_size_mib\":1}", 400,
	  DESERIALIZING "invalid type: string \\\"-2\\\", expected u8" },
	{ "PUT /machine-config", "{\"vcpu_count\":300,\"mem_size_mib\":1}", 400,
	  DESERIALIZING "invalid value: integer `300`, expected u8" },
	{ "PUT /machine-config", "{\"vcpu_count\":1,\"mem_size_mib\":\"-2\"}", 400,
	  DESERIALIZING "invalid type: string \\\"-2\\\", expected usize" },
	{ "PUT /machine-config", "{\"vcpu_count\":1,\"mem_size_mib\":18446744073709551616}",
	  400, DESERIALIZING "invalid type" },
	{ "PUT /machine-config", "{\"vcpu_count\":0,\"mem_size_mib\":1}", 400, VCPUS },
	{ "PUT /machine-config", "{\"vcpu_count\":33,\"mem_size_mib\":1}", 400, VCPUS },
	{ "PUT /machine-config", "{\"vcpu_count\":3,\"mem_size_mib\":1,\"smt\":true}", 400,
	  VCPUS },
	{ "PUT /machine-config", "{\"vcpu_count\":32,\"mem_size_mib\":1,\"smt\":true}", 204 },
	{ "PUT /machine-config", "{\"vcpu_count\":1,\"mem_size_mib\":1,\"ht_enabled\":true}",
	  400, "unknown field `ht_enabled`, expected one of `vcpu_count`, `mem_size_mib`" },
};

static void machine_config_errors_are_those_clients_know(void **state)
{
	PLAY(*state, machine_error_steps);
}

static void cpu_template_none_is_taken_and_deprecated(void **state)
{
	struct wire *w = *state;

	assert_int_equal(wire_send(w, "PUT /machine-config", "{\"vcpu_count\":1,\"mem_size_mib\":1,"
							     "\"cpu_template\":\"None\"}"), 204);
	assert_true(w->deprecated);
	assert_int_equal(metric_read(&w->api.metrics.deprecated.deprecated_http_api_calls), 1);
	assert_int_equal(wire_send(w, "PATCH /machine-config", "{\"cpu_template\":\"T2\"}"), 400);
	assert_body_has(w, "field `cpu_template`: value `T2` is not supported by this version");
	assert_int_equal(wire_send(w, "PATCH /machine-config", "{\"cpu_template\":\"X\"}"), 400);
	assert_body_has(w, "unknown variant `X`, expected one of `C3`, `T2`");
}

static void boot_source_errors_have_their_prefix(void **state)
{
	struct wire *w = *state;

	w->vm.code = -ENOENT;
	w->vm.text = "The kernel file cannot be opened: No such file or directory (os error 2)";
	wire_send(w, "PUT /boot-source", "{\"kernel_image_path\":\"foo.bar\"}");
	assert_fault(w, "Boot source error: The kernel file cannot be opened: No such file or "
			"directory (os error 2)");
}

/* The texts of the machine, as its own tests have them, behind the route's. */
static void refused_files_read_as_clients_know_them(void **state)
{
	static const struct { const char *request, *body, *text, *fault; } cases[] = {
		{ "PUT /boot-source", "{\"kernel_image_path\":\"k\",\"initrd_path\":\"/i\"}", INITRD,
		  "{\"fault_message\":\"Boot source error: " INITRD "\"}" },
		{ "PUT /network-interfaces/1", "{\"iface_id\":\"1\",\"host_dev_name\":\"t\"}", TAP,
		  "{\"fault_message\":\"Network config error: " TAP "\"}" },
		{ "PUT /actions", "{\"action_type\":\"InstanceStart\"}", BAD_KERNEL,
		  "{\"fault_message\":\"Start microvm error: " BAD_KERNEL "\"}" },
		{ "PUT /actions", "{\"action_type\":\"InstanceStart\"}", BAD_INITRD,
		  "{\"fault_message\":\"Start microvm error: " BAD_INITRD "\"}" },
	};
	struct wire *w = *state;
	size_t i;

	w->vm.code = -EINVAL;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		w->vm.text = cases[i].text;
		assert_int_equal(wire_send(w, cases[i].request, cases[i].body), 400);
		assert_string_equal(w->body, cases[i].fault);
	}
}

static void command_line_ends_at_its_limit(void **state)
{
	struct wire *w = *state;
	char body[2 * LIMIT_CMDLINE];
	int extra;

	for (extra = 0; extra <= 1; extra++) {
		snprintf(body, sizeof(body), "{\"kernel_image_path\":\"k\",\"boot_args\":\"%0*d\"}",
			 LIMIT_CMDLINE - 1 + extra, 0);
		assert_int_equal(wire_send(w, "PUT /boot-source", body), extra ? 400 : 204);
	}
	assert_body_has(w, "Boot source error: The kernel command line is invalid: boot_args has "
			   "2048 bytes, the most is 2047");
}

static void second_root_drive_is_refused(void **state)
{
	static const struct step steps[] = {
		{ "PUT /drives/a", "{\"drive_id\":\"a\",\"is_root_device\":true,"
				   "\"path_on_host\":\"p\"}", 204 },
		{ "PUT /drives/b", "{\"drive_id\":\"b\",\"is_root_device\":true,"
				   "\"path_on_host\":\"p\"}", 400,
		  "Drive config error: A root block device already exists!" },
		{ "PUT /drives/a", "{\"drive_id\":\"a\",\"is_root_device\":true,"
				   "\"path_on_host\":\"other\"}", 204 },
	};

	PLAY(*state, steps);
}

static void drive_errors_are_those_clients_know(void **state)
{
	static const struct step steps[] = {
		{ "PUT /drives/a", "{\"drive_id\":\"a\",\"path_on_host\":\"p\"}", 400,
		  DESERIALIZING "missing field `is_root_device`" },
		{ "PUT /drives/a", "{\"drive_id\":\"a\",\"is_root_device\":false}", 400,
		  "Invalid block config." },
		{ "PUT /drives/a", "{\"drive_id\":\"a\",\"is_root_device\":false,"
				   "\"socket\":\"vhost.sock\"}", 400,
		  "field `socket` is not supported by this version" },
		{ "PUT /drives/a", "{\"drive_id\":\"a\",\"is_root_device\":false,"
				   "\"path_on_host\":\"p\",\"cache_type\":\"Fast\"}", 400,
		  "unknown variant `Fast`, expected `Unsafe` or `Writeback`" },
		{ "PUT /drives/a", "{\"drive_id\":\"a\",\"is_root_device\":false,"
				   "\"path_on_host\":\"p\",\"io_engine\":\"Sync\",\"socket\":null,"
				   "\"cache_type\":\"Writeback\",\"rate_limiter\":{\"ops\":"
				   "{\"size\":0,\"refill_time\":0,\"new_key\":1}}}", 204 },
	};

	PLAY(*state, steps);
}

static void drive_patch_errors_are_those_clients_know(void **state)
{
	struct wire *w = *state;
	static const struct step steps[] = {
		{ "PATCH /drives/a", "{\"drive_id\":\"a\",\"path_on_host\":\"p\"}", 400, BEFORE },
		{ "PATCH /drives/a", "{\"drive_id\":\"a\",\"is_read_only\":true}", 400,
		  "unknown field `is_read_only`, expected one of `drive_id`" },
	};

	PLAY(w, steps);
	w->vm.phase = CONTROL_RUNNING;
	wire_send(w, "PATCH /drives/a", "{\"drive_id\":\"a\"}");
	assert_fault(w, "Drive config error: Unable to patch the block device: Block: Running method "
			"expected different backend. Please verify the request arguments.");
	w->vm.code = -ENOENT;
	w->vm.text = "Failed perform action on device: Device not found";
	wire_send(w, "PATCH /drives/a", "{\"drive_id\":\"a\",\"path_on_host\":\"p\"}");
	assert_fault(w, "Drive config error: Unable to patch the block device: Failed perform action "
			"on device: Device not found Please verify the request arguments.");
}

static void rate_limiters_of_a_running_guest_are_refused(void **state)
{
	struct wire *w = *state;
	static const struct step steps[] = {
		{ "PATCH /drives/a", "{\"drive_id\":\"a\",\"rate_limiter\":{}}", 400,
		  "this version cannot change the rate_limiter of a drive" },
		{ "PATCH /network-interfaces/n", "{\"iface_id\":\"n\"}", 204 },
		{ "PATCH /network-interfaces/n", "{\"iface_id\":\"n\",\"rx_rate_limiter\":{}}", 400,
		  "Network config error: Unable to update the net device: this version cannot" },
		{ "PATCH /network-interfaces/x", "{\"iface_id\":\"x\"}", 400, "Device not found" },
	};

	w->vm.phase = CONTROL_RUNNING;
	w->vm.config.net_count = 1;
	memcpy(w->vm.config.nets[0].iface_id, "n", 2);
	PLAY(w, steps);
	assert_int_equal(w->vm.call_count, 0);
}

static void network_errors_are_those_clients_know(void **state)
{
	static const struct step steps[] = {
		{ "PUT /network-interfaces/1", "{\"iface_id\":\"1\",\"host_dev_name\":\"tap1\","
					       "\"guest_mac\":\"06:00:00:00:00:01\"}", 204 },
		{ "PUT /network-interfaces/2", "{\"iface_id\":\"2\",\"host_dev_name\":\"tap2\","
					       "\"guest_mac\":\"06:00:00:00:00:01\"}", 400,
		  "Network config error: The MAC address is already in use: 06:00:00:00:00:01" },
		{ "PUT /network-interfaces/1", "{\"iface_id\":\"1\",\"host_dev_name\":\"tap3\","
					       "\"guest_mac\":\"06:00:00:00:00:01\"}", 204 },
		{ "PUT /network-interfaces/2", "{\"iface_id\":\"2\",\"host_dev_name\":\"tap2\","
					       "\"mtu\":67}", 400, "MTU 67 is out of range [68, 65535]" },
		{ "PUT /network-interfaces/2", "{\"iface_id\":\"2\",\"host_dev_name\":\"tap2\","
					       "\"mtu\":65536}", 400,
		  "invalid value: integer `65536`, expected u16" },
		{ "PUT /network-interfaces/2", "{\"iface_id\":\"2\",\"host_dev_name\":\"tap2\","
					       "\"mtu\":1500}", 204 },
		{ "GET /vm/config", NULL, 200, "\"mtu\":1500" },
	};

	PLAY(*state, steps);
}

static void actions_keep_to_their_phases(void **state)
{
	struct wire *w = *state;
	static const struct step before[] = {
		{ "PUT /actions", "{\"action_type\":\"FlushMetrics\"}", 400, BEFORE },
		{ "PUT /actions", "{\"action_type\":\"SendCtrlAltDel\"}", 400, BEFORE },
		{ "PATCH /vm", "{\"state\":\"Paused\"}", 400, BEFORE },
		{ "PUT /actions", "{\"action_type\":\"foo\"}", 400,
		  DESERIALIZING "unknown variant `foo`, expected one of `FlushMetrics`, "
				"`InstanceStart`, `SendCtrlAltDel`" },
		{ "PATCH /vm", "{\"state\":\"Stopped\"}", 400,
		  "unknown variant `Stopped`, expected `Paused` or `Resumed`" },
	};

	PLAY(w, before);
	assert_int_equal(w->vm.call_count, 0);
	w->vm.phase = CONTROL_ENDED;
	wire_send(w, "PATCH /vm", "{\"state\":\"Paused\"}");
	assert_fault(w, "The requested operation is not supported: the guest has ended.");
}

static void failed_start_stays_configurable(void **state)
{
	struct wire *w = *state;

	w->vm.code = -EINVAL;
	w->vm.text = "Cannot start microvm without kernel configuration.";
	wire_send(w, "PUT /actions", "{\"action_type\":\"InstanceStart\"}");
	assert_fault(w, "Start microvm error: Cannot start microvm without kernel configuration.");
	w->vm.code = 0;
	assert_int_equal(wire_send(w, "PUT /boot-source", "{\"kernel_image_path\":\"k\"}"), 204);
	assert_int_equal(wire_send(w, "PUT /actions", "{\"action_type\":\"InstanceStart\"}"), 204);
}

static void failed_metrics_and_logger_have_their_prefix(void **state)
{
	struct wire *w = *state;

	w->vm.code = -EALREADY;
	w->vm.text = "Cannot initialize the metrics system due to bad user input: "
		     "Reinitialization of metrics not allowed.";
	wire_send(w, "PUT /metrics", "{\"metrics_path\":\"m\"}");
	assert_fault(w, "Metrics error: Cannot initialize the metrics system due to bad user input: "
			"Reinitialization of metrics not allowed.");
	w->vm.text = "Failed to open target file: /x: No such file or directory";
	wire_send(w, "PUT /logger", "{\"log_path\":\"/x\"}");
	assert_fault(w, "Logger error: Failed to open target file: /x: No such file or directory");
}

static void logger_level_is_checked(void **state)
{
	struct wire *w = *state;

	assert_int_equal(wire_send(w, "PUT /logger", "{\"level\":\"WARNING\"}"), 204);
	assert_int_equal(w->vm.config.logger.level, LOG_LEVEL_WARN);
	assert_int_equal(wire_send(w, "PUT /logger", "{\"level\":\"loud\"}"), 400);
	assert_int_equal(wire_send(w, "PUT /logger", "{}"), 204);
	assert_int_equal(w->vm.config.logger.level, LOG_LEVEL_INFO);
}

static void serial_goes_to_a_file_or_back_to_stdio(void **state)
{
	struct wire *w = *state;

	assert_int_equal(wire_send(w, "PUT /serial",
				   "{\"serial_out_path\":\"out\",\"rate_limiter\":"
				   "{\"size\":1000,\"refill_time\":100}}"), 204);
	assert_int_equal(w->vm.config.serial.console, CONSOLE_FILE);
	assert_true(w->vm.config.serial.rate_limiter.present);
	assert_int_equal(wire_send(w, "PUT /serial", "{}"), 204);
	assert_int_equal(w->vm.config.serial.console, CONSOLE_STDIO);
}

static void vm_config_of_nothing_has_all_keys(void **state)
{
	struct wire *w = *state;

	wire_send(w, "GET /vm/config", NULL);
	assert_string_equal(w->body, "{\"balloon\":null,\"drives\":[],\"boot-source\":null,"
				     "\"cpu-config\":null,\"logger\":null,\"machine-config\":"
				     "{\"vcpu_count\":1,\"mem_size_mib\":128,\"smt\":false,"
				     "\"track_dirty_pages\":false,\"huge_pages\":\"None\"},"
				     "\"metrics\":null,\"mmds-config\":null,\"network-interfaces\":[],"
				     "\"vsock\":null,\"entropy\":null,\"pmem\":[],"
				     "\"memory-hotplug\":null}");
}

static void vm_config_shows_what_was_put(void **state)
{
	static const struct step steps[] = {
		{ "PUT /boot-source", "{\"kernel_image_path\":\"k\",\"boot_args\":\"\"}", 204 },
		{ "PUT /drives/a", "{\"drive_id\":\"a\",\"is_root_device\":true,\"path_on_host\":"
				   "\"p\",\"rate_limiter\":{\"ops\":{\"size\":7,\"refill_time\":8}}}",
		  204 },
		{ "PUT /entropy", "{}", 204 },
		{ "GET /vm/config", NULL, 200,
		  "\"boot-source\":{\"kernel_image_path\":\"k\",\"initrd_path\":null,"
		  "\"boot_args\":\"\"}" },
		{ "GET /vm/config", NULL, 200,
		  "\"drives\":[{\"drive_id\":\"a\",\"partuuid\":null,\"is_root_device\":true,"
		  "\"cache_type\":\"Unsafe\",\"is_read_only\":false,\"path_on_host\":\"p\","
		  "\"rate_limiter\":{\"bandwidth\":null,\"ops\":{\"size\":7,\"one_time_burst\":null,"
		  "\"refill_time\":8}},\"io_engine\":\"Sync\",\"socket\":null}]" },
		{ "GET /vm/config", NULL, 200, "\"entropy\":{\"rate_limiter\":null}" },
	};

	PLAY(*state, steps);
}

static void too_many_drives_are_refused(void **state)
{
	struct wire *w = *state;
	char request[64], body[128];
	int i;

	for (i = 0; i <= LIMIT_DRIVES; i++) {
		snprintf(request, sizeof(request), "PUT /drives/d%d", i);
		snprintf(body, sizeof(body), "{\"drive_id\":\"d%d\",\"is_root_device\":false,"
					     "\"path_on_host\":\"p\"}", i);
		assert_int_equal(wire_send(w, request, body), i < LIMIT_DRIVES ? 204 : 400);
	}
	assert_body_has(w, "more than 16 drives");
}

static void failed_requests_change_nothing(void **state)
{
	struct vm_config before;
	struct wire *w = *state;

	before = w->vm.config;
	wire_send(w, "PUT /machine-config", "{\"vcpu_count\":33,\"mem_size_mib\":1}");
	wire_send(w, "PATCH /machine-config", "{\"vcpu_count\":4,\"mem_size_mib\":true}");
	wire_send(w, "PUT /boot-source", "{\"kernel_image_path\":\"\"}");
	wire_send(w, "PUT /drives/a", "{\"drive_id\":\"a\",\"is_root_device\":true}");
	wire_send(w, "PUT /network-interfaces/n", "{\"iface_id\":\"n\",\"host_dev_name\":\"\"}");
	assert_memory_equal(&before, &w->vm.config, sizeof(before));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, wire_setup, wire_teardown)
	const struct CMUnitTest tests[] = {
		TEST(go_sdk_boots_a_machine),
		TEST(firectl_puts_extra_drives_first),
		TEST(deno_client_uses_absolute_targets),
		TEST(kata_sends_nulls_and_empty_limiters),
		TEST(fctools_reads_all_four_identity_fields),
		TEST(own_name_shows_under_own_identity),
		TEST(machine_config_has_its_fields_in_order),
		TEST(put_machine_config_resets_what_is_left_out),
		TEST(patch_machine_config_keeps_what_is_left_out),
		TEST(machine_config_errors_are_those_clients_know),
		TEST(cpu_template_none_is_taken_and_deprecated),
		TEST(boot_source_errors_have_their_prefix),
		TEST(refused_files_read_as_clients_know_them),
		TEST(command_line_ends_at_its_limit),
		TEST(second_root_drive_is_refused),
		TEST(drive_errors_are_those_clients_know),
		TEST(drive_patch_errors_are_those_clients_know),
		TEST(rate_limiters_of_a_running_guest_are_refused),
		TEST(network_errors_are_those_clients_know),
		TEST(actions_keep_to_their_phases),
		TEST(failed_start_stays_configurable),
		TEST(failed_metrics_and_logger_have_their_prefix),
		TEST(logger_level_is_checked),
		TEST(serial_goes_to_a_file_or_back_to_stdio),
		TEST(vm_config_of_nothing_has_all_keys),
		TEST(vm_config_shows_what_was_put),
		TEST(too_many_drives_are_refused),
		TEST(failed_requests_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
