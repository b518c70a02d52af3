/*
 * A rate limiter of requests: two token buckets, bytes and operations, and a
 * timer. A request is served when nothing is owed; what the buckets cannot
 * pay for it is owed, and the next request waits until the debt is paid. So a
 * request never has to be put back, and one larger than the bucket costs what
 * it is worth.
 *
 * Threads: the device's. Locks: none.
 */
#ifndef LULL_VIRTIO_THROTTLE_H
#define LULL_VIRTIO_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/ratelimit.h"
#include "vmm/config.h"
#include "vmm/event_loop.h"

struct throttle {
	/* constant after throttle_init() */
	event_fn resume; /* requests may be served again */
	void *arg;

	struct ratelimit bytes;
	struct ratelimit ops;
	uint64_t owed_bytes;
	uint64_t owed_ops;
	bool delayed;
	struct event_source *timer; /* between start and stop */
};

/* Buckets start full; what the configuration does not have is not limited. */
void throttle_init(struct throttle *t, const struct rate_limiter_config *config, event_fn resume,
		   void *arg);
/* -ENOMEM, or 0. */
int throttle_start(struct throttle *t, struct event_loop *loop);
void throttle_stop(struct throttle *t);

/* True while the next request has to wait; `resume` is called when it need not. */
static inline bool throttle_blocked(const struct throttle *t)
{
	return t->owed_bytes || t->owed_ops || t->delayed;
}

/* Charges one request. True if the next one has to wait. */
bool throttle_charge(struct throttle *t, uint64_t bytes);
/* Blocks for `ns` nanoseconds whatever the buckets say. */
void throttle_delay(struct throttle *t, uint64_t ns);

#endif
