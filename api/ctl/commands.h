/*
 * The commands of lullctl that ask a running lulld. Each prints to `out` and
 * returns 0 or a negative errno with `err` filled.
 * Threads: main. Locks: none.
 */
#ifndef LULL_CTL_COMMANDS_H
#define LULL_CTL_COMMANDS_H

#include <stdbool.h>
#include <stdio.h>

#include "api/ctl/http.h"
#include "vmm/base/error.h"

struct ctl {
	struct ctl_server server;
	bool json; /* print the answer as it is */
	FILE *out;
	const char *const *words; /* what follows the command's name */
	size_t word_count;
};

struct ctl_command {
	const char *name; /* NULL ends the table */
	int (*run)(const struct ctl *ctl, struct error *err);
	const char *help;
	bool takes_words; /* run() returns -EINVAL for those that it does not know */
};

/* How long the slowest of them may take. */
#define CTL_TIMEOUT_S 35 /* a pause may take 30 s before it fails */

extern const struct ctl_command ctl_commands[];

#endif
