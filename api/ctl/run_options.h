/*
 * The words of `lullctl run`.
 * Threads: main. Locks: none.
 */
#ifndef LULL_CTL_RUN_OPTIONS_H
#define LULL_CTL_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/error.h"
#include "vmm/config.h"

struct run_options {
	const char *kernel;
	const char *initrd;
	const char *cmdline; /* NULL: one that shows the console */
	const char *socket;  /* NULL: in a directory of its own */
	const char *lulld;   /* NULL: beside lullctl, else from PATH */
	const char *id;      /* NULL: lulld's own default */
	const char *log;     /* NULL: kept only to explain a failure */
	const char *level;
	uint32_t cpus;
	uint64_t memory_mib;
	bool entropy;
	bool no_console;
	struct drive_config drives[LIMIT_DRIVES];
	uint32_t drive_count;
	struct net_config nets[LIMIT_NETS];
	uint32_t net_count;
	char **rest; /* words after "--", for lulld */
	int rest_count;
};

/*
 * Fills `o` from the words after "run"; strings point into them. Without an
 * initrd and without a drive marked as root, the first drive is the root.
 * -EINVAL with text for the user.
 */
int run_options_parse(struct run_options *o, int argc, char **argv, struct error *err);

extern const char run_options_help[];

#endif
