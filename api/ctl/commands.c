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

/* Tells, and expects no answer. */
static int tell(const struct ctl *ctl, const char *method, const char *path, const char *body,
		struct error *err)
{
	struct ctl_answer got;
	int ret = ctl_ask(&ctl->server, method, path, body, &got, err);

	if (ret == 0)
		buf_fini(&got.body);
	return ret;
}

static int set_state(const struct ctl *ctl, const char *body, struct error *err)
{
	return tell(ctl, "PATCH", "/v1/vm", body, err);
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

/* Locks */

/* Columns of the widest text; `heading` counts. */
static int width_of(struct json_object *rows, const char *key, const char *heading)
{
	size_t width = strlen(heading), i, n;

	for (i = 0; i < json_object_array_length(rows); i++) {
		n = strlen(text_of(json_object_array_get_idx(rows, i), key));
		width = n > width ? n : width;
	}
	return (int)width;
}

struct duration {
	char text[24];
};

static struct duration duration_of(struct json_object *row, const char *key)
{
	int64_t ns = number_of(row, key);
	struct duration d;

	if (ns < 1000)
		snprintf(d.text, sizeof(d.text), "%" PRId64 " ns", ns);
	else if (ns < 1000000)
		snprintf(d.text, sizeof(d.text), "%.1f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(d.text, sizeof(d.text), "%.1f ms", (double)ns / 1e6);
	else
		snprintf(d.text, sizeof(d.text), "%.1f s", (double)ns / 1e9);
	return d;
}

static void show_waits(const struct ctl *ctl, struct json_object *rows, const char *heading)
{
	int type = width_of(rows, "type", heading);
	int object = width_of(rows, "object", "OBJECT");
	int site = width_of(rows, "site", "CALL SITE");
	struct json_object *row;
	size_t i;

	fprintf(ctl->out, "%-*s  %-*s  %-*s %10s %10s %10s %10s\n", type, heading, object, "OBJECT",
		site, "CALL SITE", "WAIT", "COUNT", "AVERAGE", "MAXIMUM");
	for (i = 0; i < json_object_array_length(rows); i++) {
		row = json_object_array_get_idx(rows, i);
		fprintf(ctl->out, "%-*s  %-*s  %-*s %10s %10" PRId64 " %10s %10s\n", type,
			text_of(row, "type"), object, or_dash(text_of(row, "object")), site,
			text_of(row, "site"), duration_of(row, "wait_ns").text,
			number_of(row, "count"), duration_of(row, "average_ns").text,
			duration_of(row, "max_ns").text);
	}
}

static void show_takes(const struct ctl *ctl, struct json_object *rows)
{
	int type = width_of(rows, "type", "LOCK TYPE");
	int object = width_of(rows, "object", "OBJECT");
	struct json_object *row;
	size_t i;

	fprintf(ctl->out, "\n%-*s  %-*s  %-10s %12s\n", type, "LOCK TYPE", object, "OBJECT", "LEVEL",
		"TAKES");
	for (i = 0; i < json_object_array_length(rows); i++) {
		row = json_object_array_get_idx(rows, i);
		fprintf(ctl->out, "%-*s  %-*s  %-10s %12" PRId64 "\n", type, text_of(row, "type"),
			object, or_dash(text_of(row, "object")), text_of(row, "level"),
			number_of(row, "takes"));
	}
}

static bool any_takes(struct json_object *rows)
{
	size_t i;

	for (i = 0; i < json_object_array_length(rows); i++) {
		if (number_of(json_object_array_get_idx(rows, i), "takes"))
			return true;
	}
	return false;
}

static void show_locks(const struct ctl *ctl, struct json_object *answer)
{
	struct json_object *locks = member_of(answer, "locks");
	struct json_object *conditions = member_of(answer, "conditions");
	struct json_object *objects = member_of(answer, "objects");
	int64_t waits_left = number_of(answer, "waits_left_out");
	int64_t objects_left = number_of(answer, "objects_left_out");

	if (locks)
		show_waits(ctl, locks, "LOCK TYPE");
	fprintf(ctl->out, "\n");
	if (conditions)
		show_waits(ctl, conditions, "CONDITION TYPE");
	if (objects && any_takes(objects))
		show_takes(ctl, objects);
	if (waits_left || objects_left)
		fprintf(ctl->out, "\nleft out: %" PRId64 " call sites, %" PRId64 " locks\n",
			waits_left, objects_left);
}

/* The words become the body of a PUT; "" if there are none. */
static int read_locks_words(const struct ctl *ctl, char *body, size_t size, struct error *err)
{
	const char *profile = NULL;
	bool reset = false;
	size_t i;

	for (i = 0; i < ctl->word_count; i++) {
		if (!strcmp(ctl->words[i], "--reset"))
			reset = true;
		else if (!strcmp(ctl->words[i], "--profile") && i + 1 < ctl->word_count)
			profile = ctl->words[++i];
		else
			return error_set(err, -EINVAL, "locks: unknown or incomplete option %s",
					 ctl->words[i]);
	}
	if (profile && strcmp(profile, "on") != 0 && strcmp(profile, "off") != 0)
		return error_set(err, -EINVAL, "locks: --profile is on or off, not \"%s\"", profile);
	body[0] = '\0';
	if (profile)
		snprintf(body, size, "{\"profiling\":%s,\"reset\":%s}",
			 !strcmp(profile, "on") ? "true" : "false", reset ? "true" : "false");
	else if (reset)
		snprintf(body, size, "{\"reset\":true}");
	return 0;
}

static int command_locks(const struct ctl *ctl, struct error *err)
{
	char body[64];
	int ret = read_locks_words(ctl, body, sizeof(body), err);

	if (ret < 0)
		return ret;
	if (body[0])
		return tell(ctl, "PUT", "/v1/locks", body, err);
	return get_and_show(ctl, "/v1/locks", show_locks, err);
}

/* Spinning */

/* "true", "false", or what a null stands for. */
static const char *granted_of(struct json_object *control)
{
	struct json_object *granted = member_of(control, "granted");

	return granted ? json_object_get_string(granted) : "unknown";
}

static void show_controls(const struct ctl *ctl, struct json_object *rows)
{
	int name = width_of(rows, "name", "CONTROL");
	struct json_object *row;
	size_t i;

	fprintf(ctl->out, "\n%-*s  %-6s %-8s %s\n", name, "CONTROL", "ASKED", "GRANTED", "WHY");
	for (i = 0; i < json_object_array_length(rows); i++) {
		row = json_object_array_get_idx(rows, i);
		fprintf(ctl->out, "%-*s  %-6s %-8s %s\n", name, text_of(row, "name"),
			text_of(row, "asked"), granted_of(row), or_dash(text_of(row, "why")));
	}
}

static void show_checks(const struct ctl *ctl, struct json_object *rows)
{
	int name = width_of(rows, "name", "HOST");
	struct json_object *row;
	size_t i;

	fprintf(ctl->out, "\n%-*s  %-8s %s\n", name, "HOST", "STATUS", "TEXT");
	for (i = 0; i < json_object_array_length(rows); i++) {
		row = json_object_array_get_idx(rows, i);
		fprintf(ctl->out, "%-*s  %-8s %s\n", name, text_of(row, "name"),
			text_of(row, "status"), text_of(row, "text"));
	}
}

static void show_events(const struct ctl *ctl, struct json_object *rows)
{
	struct json_object *row;
	size_t i;

	for (i = 0; i < json_object_array_length(rows); i++) {
		row = json_object_array_get_idx(rows, i);
		fprintf(ctl->out, "%s%6" PRId64 " ms  %s: %s -> %s: %s\n", i ? "" : "\n",
			number_of(row, "uptime_ms"), text_of(row, "kind"), text_of(row, "from"),
			text_of(row, "to"), text_of(row, "why"));
	}
}

static void show_spin(const struct ctl *ctl, struct json_object *answer)
{
	struct json_object *mode = member_of(answer, "mode"), *c = member_of(answer, "controller");
	struct json_object *poll = member_of(answer, "halt_poll"), *rows;

	fprintf(ctl->out, "%-11s %s, asked for %s: %s\n", "mode",
		or_dash(text_of(mode, "in_force")), text_of(mode, "asked"),
		or_dash(text_of(mode, "why")));
	fprintf(ctl->out, "%-11s up to %s ns\n", "halt poll", or_dash(text_of(poll, "in_force_ns")));
	fprintf(ctl->out, "%-11s %s, class %s, advice %s\n", "controller", text_of(c, "mode"),
		or_dash(text_of(c, "class")),
		or_dash(text_of(member_of(c, "advice"), "action")));
	rows = member_of(answer, "controls");
	if (rows)
		show_controls(ctl, rows);
	rows = member_of(answer, "host");
	if (rows)
		show_checks(ctl, rows);
	rows = member_of(answer, "events");
	if (rows)
		show_events(ctl, rows);
}

static int command_spin(const struct ctl *ctl, struct error *err)
{
	return get_and_show(ctl, "/v1/spin", show_spin, err);
}

const struct ctl_command ctl_commands[] = {
	{ "status", command_status, "state, reason, process and age of the VM" },
	{ "pause", command_pause, "stops the vCPUs; returns when they stand still" },
	{ "resume", command_resume, "lets them run again" },
	{ "stop", command_stop, "ends the VM" },
	{ "config", command_config, "what was configured" },
	{ "vcpus", command_vcpus, "vCPUs, their threads and exits" },
	{ "devices", command_devices, "devices, their places and threads" },
	{ "locks", command_locks,
	  "who waited for which lock or condition, where and how long;\n"
	  "             --profile on|off: count how often each is taken; --reset: from zero",
	  .takes_words = true },
	{ "spin", command_spin, "the spin policy, what KVM granted of it, what the controller did" },
	{ 0 },
};
