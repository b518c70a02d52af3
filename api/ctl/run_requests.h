/*
 * The requests by which `lullctl run` configures and starts a lulld.
 * Threads: main. Locks: none.
 */
#ifndef LULL_CTL_RUN_REQUESTS_H
#define LULL_CTL_RUN_REQUESTS_H

#include "api/ctl/http.h"
#include "api/ctl/run_options.h"

/* Configures everything and starts the guest. A negative errno with `err` filled. */
int run_requests_send(const struct run_options *o, const struct ctl_server *to,
		      struct error *err);

#endif
