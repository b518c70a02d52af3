/*
 * Command line. Threads: main, before all others. Locks: none.
 */
#include "vmm/options.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bits.h"
#include "vmm/limits.h"

struct option {
	const char *name;
	const char *value; /* what to call it in the usage; NULL: takes none */
	size_t offset;     /* of a const char *, or of a bool */
	const char *help;
};

#define VALUE(option, member, value, help) { option, value, offsetof(struct options, member), help }
#define FLAG(option, member, help) { option, NULL, offsetof(struct options, member), help }

static const struct option options[] = {
	VALUE("api-sock", api_sock, "PATH", "control socket [/run/lulld.socket]"),
	VALUE("id", id, "ID", "name of the VM, letters, digits and hyphens [anonymous-instance]"),
	VALUE("config-file", config_file, "PATH", "configure from a JSON file and start at once"),
	FLAG("no-api", no_api, "no control socket; needs --config-file"),
	VALUE("log-path", log_path, "PATH", "log to this file or FIFO [standard output]"),
	VALUE("level", level, "LEVEL", "off, error, warn, info, debug or trace [info]"),
	VALUE("module", module, "PREFIX", "log only what comes from these source files"),
	FLAG("show-level", show_level, "show the level in log lines"),
	FLAG("show-log-origin", show_log_origin, "show file and line in log lines"),
	VALUE("metrics-path", metrics_path, "PATH", "write metrics to this file or FIFO"),
	FLAG("boot-timer", boot_timer, "give the guest the boot timer device"),
	VALUE("http-api-max-payload-size", http_api_max_payload_size, "BYTES",
	      "largest request body [51200]"),
	FLAG("big-lock", big_lock, "one lock around all exits and devices: the benchmarks' baseline"),
	FLAG("no-seccomp", no_seccomp, "accepted; there are no system call filters yet"),
	VALUE("start-time-us", start_time_us, "US", "accepted: when the launcher was started"),
	VALUE("start-time-cpu-us", start_time_cpu_us, "US", "accepted: its CPU time then"),
	VALUE("parent-cpu-time-us", parent_cpu_time_us, "US", "accepted: its parent's CPU time"),
	FLAG("version", version, "print the version and end"),
	FLAG("help", help, "print this and end"),
};

static const struct option *find(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(options); i++) {
		if (!strcmp(options[i].name, name))
			return &options[i];
	}
	return NULL;
}

static int take(struct options *o, const struct option *option, const char *value,
		struct error *err)
{
	void *member = (char *)o + option->offset;

	if (!option->value) {
		if (*(bool *)member)
			return error_set(err, -EINVAL, "option --%s is given twice", option->name);
		*(bool *)member = true;
		return 0;
	}
	if (*(const char **)member)
		return error_set(err, -EINVAL, "option --%s is given twice", option->name);
	if (!value || !strncmp(value, "--", 2))
		return error_set(err, -EINVAL, "option --%s needs a value (%s)", option->name,
				 option->value);
	*(const char **)member = value;
	return 0;
}

static int check_id(const char *id, struct error *err)
{
	size_t i, len = strlen(id);

	if (len == 0 || len > LIMIT_ID)
		return error_set(err, -EINVAL, "--id: 1 to %d characters, not %zu", LIMIT_ID, len);
	for (i = 0; i < len; i++) {
		if (!isalnum((unsigned char)id[i]) && id[i] != '-')
			return error_set(err, -EINVAL,
					 "--id: only letters, digits and hyphens, not \"%s\"", id);
	}
	return 0;
}

static int check_payload(struct options *o, struct error *err)
{
	const char *text = o->http_api_max_payload_size;
	unsigned long bytes;
	char *end;

	if (!text) {
		o->max_payload = LIMIT_API_BODY;
		return 0;
	}
	errno = 0;
	bytes = strtoul(text, &end, 10);
	if (errno || !isdigit((unsigned char)text[0]) || *end || bytes == 0 ||
	    bytes > LIMIT_API_BODY_MAX)
		return error_set(err, -EINVAL,
				 "--http-api-max-payload-size: 1 to %d bytes, not \"%s\"",
				 LIMIT_API_BODY_MAX, text);
	o->max_payload = (uint32_t)bytes;
	return 0;
}

static int check(struct options *o, struct error *err)
{
	int ret = o->id ? check_id(o->id, err) : 0;

	if (ret == 0)
		ret = check_payload(o, err);
	if (ret == 0 && o->no_api && !o->config_file)
		ret = error_set(err, -EINVAL, "--no-api needs --config-file");
	if (ret == 0 && o->no_api && o->api_sock)
		ret = error_set(err, -EINVAL, "--no-api and --api-sock exclude each other");
	return ret;
}

int options_parse(struct options *o, int argc, char **argv, struct error *err)
{
	int i;

	memset(o, 0, sizeof(*o));
	for (i = 1; i < argc; i++) {
		const struct option *option;
		int ret;

		if (!strcmp(argv[i], "--"))
			break;
		option = strncmp(argv[i], "--", 2) ? NULL : find(argv[i] + 2);
		if (!option)
			return error_set(err, -EINVAL, "unknown option \"%s\" (see --help)", argv[i]);
		ret = take(o, option, i + 1 < argc ? argv[i + 1] : NULL, err);
		if (ret < 0)
			return ret;
		if (option->value)
			i++;
	}
	if (o->version || o->help)
		return 0;
	return check(o, err);
}

void options_usage(const char *program)
{
	size_t i;

	printf("Usage: %s [OPTION]...\n\nRuns one virtual machine, driven over a control socket.\n\n",
	       program);
	for (i = 0; i < ARRAY_SIZE(options); i++)
		printf("  --%s%s%s%*s%s\n", options[i].name, options[i].value ? " " : "",
		       options[i].value ? options[i].value : "",
		       (int)(36 - strlen(options[i].name) -
			     (options[i].value ? strlen(options[i].value) + 1 : 0)),
		       "", options[i].help);
}
