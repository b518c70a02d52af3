/*
 * Commands that ask and tell. Threads: main. Locks: none.
 * Not here: `run` (run.c), bytes on the socket (http.c).
 */
#include "api/ctl/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

#include "api/ctl/http.h"

/* Members of answers; a missing one reads as "" or 0, which is shown as such. */

static const char *text_of(struct json_object *o, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(o, key, &value) && value ? json_object_get_string(value)
								   : "";
}

static int64_t number_of(struct json_object *o, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(o, key, &value) ? json_object_get_int64(value) : 0;
}

static struct json_object *member_of(struct json_object *o, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(o, key, &value) ? value : NULL;
}

static const char *or_dash(const char *text)
{
	return text[0] ? text : "-";
}

/* Asks and either prints the raw answer or hands the parsed one to `show`. */
static int get_and_show(const struct ctl *ctl, const char *path,
			void (*show)(const struct ctl *ctl, struct json_object *answer),
			struct error *err)
{
	struct json_object *answer;
	struct ctl_answer got;
	int ret = ctl_ask(&ctl->server, "GET", path, NULL, &got, err);

	if (ret < 0)
		return ret;
	if (ctl->json) {
		fprintf(ctl->out, "%s\n", buf_text(&got.body));
		buf_fini(&got.body);
		return 0;
	}
	answer = json_tokener_parse(buf_text(&got.body));
	buf_fini(&got.body);
	if (!answer)
		return error_set(err, -EPROTO, "the answer to GET %s is no JSON", path);
	show(ctl, answer);
	json_object_put(answer);
	return 0;
}

static void show_status(const struct ctl *ctl, struct json_object *vm)
{
	int64_t up = number_of(vm, "uptime_ms");

	fprintf(ctl->out, "%-20s %-12s %-16s %8s %10s  %s\n", "ID", "STATE", "REASON", "PID",
		"UPTIME", "VERSION");
	fprintf(ctl->out, "%-20s %-12s %-16s %8" PRId64 " %7" PRId64 ".%01" PRId64 "s  %s\n",
		text_of(vm, "id"), text_of(vm, "state"), or_dash(text_of(vm, "reason")),
		number_of(vm, "pid"), up / 1000, up % 1000 / 100, text_of(vm, "version"));
}

static int command_status(const struct ctl *ctl, struct error *err)
{
	return get_and_show(ctl, "/v1/vm", show_status, err);
}

/* "io 1200, hlt 17", for as many as the vCPU had. */
static void show_reasons(const struct ctl *ctl, struct json_object *reasons)
{
	const char *lead = "";

	json_object_object_foreach(reasons, reason, count) {
		fprintf(ctl->out, "%s%s %" PRId64, lead, reason, json_object_get_int64(count));
		lead = ", ";
	}
}

static void show_vcpus(const struct ctl *ctl, struct json_object *answer)
{
	struct json_object *vcpus = member_of(answer, "vcpus"), *v, *exits, *reasons;
	size_t i;

	fprintf(ctl->out, "%5s %8s %-8s %12s  %s\n", "INDEX", "TID", "STATE", "EXITS",
		"BY REASON");
	for (i = 0; vcpus && i < json_object_array_length(vcpus); i++) {
		v = json_object_array_get_idx(vcpus, i);
		exits = member_of(v, "exits");
		reasons = exits ? member_of(exits, "by_reason") : NULL;
		fprintf(ctl->out, "%5" PRId64 " %8" PRId64 " %-8s %12" PRId64 "  ",
			number_of(v, "index"), number_of(v, "tid"), text_of(v, "state"),
			exits ? number_of(exits, "total") : 0);
		if (reasons)
			show_reasons(ctl, reasons);
		fprintf(ctl->out, "\n");
	}
}

static int command_vcpus(const struct ctl *ctl, struct error *err)
{
	return get_and_show(ctl, "/v1/vcpus", show_vcpus, err);
}

static void show_devices(const struct ctl *ctl, struct json_object *answer)
{
	struct json_object *devices = member_of(answer, "devices"), *d;
	size_t i;

	fprintf(ctl->out, "%-16s %-16s %-12s %12s %8s %4s %8s\n", "ID", "TYPE", "STATUS", "BASE",
		"SIZE", "GSI", "TID");
	for (i = 0; devices && i < json_object_array_length(devices); i++) {
		d = json_object_array_get_idx(devices, i);
		fprintf(ctl->out, "%-16s %-16s %-12s %#12" PRIx64 " %#8" PRIx64 " %4s %8s\n",
			text_of(d, "id"), text_of(d, "type"), text_of(d, "status"),
			(uint64_t)number_of(d, "base"), (uint64_t)number_of(d, "size"),
			or_dash(text_of(d, "gsi")), or_dash(text_of(d, "tid")));
	}
}

static int command_devices(const struct ctl *ctl, struct error *err)
{
	return get_and_show(ctl, "/v1/devices", show_devices, err);
}

static void show_config_lists(const struct ctl *ctl, struct json_object *config)
{
	struct json_object *list = member_of(config, "drives"), *o;
	size_t i;

	for (i = 0; list && i < json_object_array_length(list); i++) {
		o = json_object_array_get_idx(list, i);
		fprintf(ctl->out, "%-12s %s: %s%s%s, %s, %s\n", "drive", text_of(o, "drive_id"),
			text_of(o, "path_on_host"),
			!strcmp(text_of(o, "is_root_device"), "true") ? ", root" : "",
			!strcmp(text_of(o, "is_read_only"), "true") ? ", read-only" : "",
			text_of(o, "cache_type"), text_of(o, "io_engine"));
	}
	list = member_of(config, "network-interfaces");
	for (i = 0; list && i < json_object_array_length(list); i++) {
		o = json_object_array_get_idx(list, i);
		fprintf(ctl->out, "%-12s %s: %s, %s\n", "network", text_of(o, "iface_id"),
			text_of(o, "host_dev_name"), or_dash(text_of(o, "guest_mac")));
	}
}

static void show_config(const struct ctl *ctl, struct json_object *config)
{
	struct json_object *machine = member_of(config, "machine-config");
	struct json_object *boot = member_of(config, "boot-source");

	if (machine)
		fprintf(ctl->out, "%-12s %" PRId64 " vCPUs%s, %" PRId64 " MiB, huge pages: %s\n",
			"machine", number_of(machine, "vcpu_count"),
			!strcmp(text_of(machine, "smt"), "true") ? " in pairs of threads" : "",
			number_of(machine, "mem_size_mib"), text_of(machine, "huge_pages"));
	if (boot) {
		fprintf(ctl->out, "%-12s %s\n", "kernel", text_of(boot, "kernel_image_path"));
		fprintf(ctl->out, "%-12s %s\n", "initrd", or_dash(text_of(boot, "initrd_path")));
		fprintf(ctl->out, "%-12s %s\n", "arguments", or_dash(text_of(boot, "boot_args")));
	}
	show_config_lists(ctl, config);
	if (member_of(config, "entropy"))
		fprintf(ctl->out, "%-12s yes\n", "entropy");
}

static int command_config(const struct ctl *ctl, struct error *err)
{
	return get_and_show(ctl, "/vm/config", show_config, err);
}

static int set_state(const struct ctl *ctl, const char *body, struct error *err)
{
	struct ctl_answer got;
	int ret = ctl_ask(&ctl->server, "PATCH", "/v1/vm", body, &got, err);

	if (ret == 0)
		buf_fini(&got.body);
	return ret;
}

static int command_pause(const struct ctl *ctl, struct error *err)
{
	return set_state(ctl, "{\"state\":\"Paused\"}", err);
}

static int command_resume(const struct ctl *ctl, struct error *err)
{
	return set_state(ctl, "{\"state\":\"Resumed\"}", err);
}

static int command_stop(const struct ctl *ctl, struct error *err)
{
	return set_state(ctl, "{\"state\":\"Stopped\"}", err);
}

const struct ctl_command ctl_commands[] = {
	{ "status", command_status, "state, reason, process and age of the VM" },
	{ "pause", command_pause, "stops the vCPUs; returns when they stand still" },
	{ "resume", command_resume, "lets them run again" },
	{ "stop", command_stop, "ends the VM" },
	{ "config", command_config, "what was configured" },
	{ "vcpus", command_vcpus, "vCPUs, their threads and exits" },
	{ "devices", command_devices, "devices, their places and threads" },
	{ 0 },
};
