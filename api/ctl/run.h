/*
 * `lullctl run`: starts a lulld, configures it over its socket, lends it the
 * console and waits for its end.
 * Threads: main. Locks: none.
 */
#ifndef LULL_CTL_RUN_H
#define LULL_CTL_RUN_H

#include "api/ctl/run_options.h"

/*
 * The exit status for the shell: 0 when the guest powered off or rebooted, else
 * that of lulld, or 1; then the reason is on stderr.
 */
int ctl_run(const struct run_options *o);

#endif
