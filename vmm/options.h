/*
 * The command line, by table. Words are `--name value` or `--name` alone, as
 * Firecracker takes them; each at most once.
 */
#ifndef LULL_OPTIONS_H
#define LULL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/error.h"

struct options {
	const char *api_sock;
	const char *id;
	const char *config_file;
	const char *log_path;
	const char *level;
	const char *module;
	const char *metrics_path;
	const char *http_api_max_payload_size;
	const char *start_time_us;
	const char *start_time_cpu_us;
	const char *parent_cpu_time_us;
	bool no_api;
	bool no_seccomp;
	bool show_level;
	bool show_log_origin;
	bool boot_timer;
	bool big_lock;
	bool version;
	bool help;
	/* derived */
	uint32_t max_payload; /* bytes */
};

/*
 * Fills `o` from argv; strings point into it. -EINVAL with text for an unknown,
 * repeated or incomplete option and for options that contradict one another.
 */
int options_parse(struct options *o, int argc, char **argv, struct error *err);

/* Prints the usage to stdout. */
void options_usage(const char *program);

#endif
