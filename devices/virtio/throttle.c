/*
 * Rate limiter of requests. Threads: the device's. Locks: none.
 */
#include "devices/virtio/throttle.h"

#include <errno.h>
#include <string.h>

static void bucket_init(struct ratelimit *r, const struct token_bucket_config *c)
{
	if (!c->present) {
		ratelimit_init(r, 0, 0, 0, ratelimit_now());
		return;
	}
	ratelimit_init(r, c->size, ratelimit_ns_of_ms(c->refill_time_ms), c->one_time_burst,
		       ratelimit_now());
}

void throttle_init(struct throttle *t, const struct rate_limiter_config *config, event_fn resume,
		   void *arg)
{
	memset(t, 0, sizeof(*t));
	t->resume = resume;
	t->arg = arg;
	bucket_init(&t->bytes, &config->bandwidth);
	bucket_init(&t->ops, &config->ops);
}

/* Pays in parts that fit the bucket; returns how long to wait for the next part. */
static uint64_t pay(struct ratelimit *r, uint64_t *owed, uint64_t now_ns)
{
	while (*owed) {
		uint64_t part = r->size && *owed > r->size ? r->size : *owed;

		if (!ratelimit_take(r, part, now_ns))
			return ratelimit_wait_ns(r, part, now_ns);
		*owed -= part;
	}
	return 0;
}

/* Pays what can be paid and arms the timer for the rest. */
static void settle(struct throttle *t)
{
	uint64_t now_ns = ratelimit_now();
	uint64_t wait = pay(&t->bytes, &t->owed_bytes, now_ns);
	uint64_t wait_ops = pay(&t->ops, &t->owed_ops, now_ns);

	if (wait_ops > wait)
		wait = wait_ops;
	if (wait && t->timer && !t->delayed)
		event_source_arm(t->timer, wait);
}

static void on_timer(void *arg)
{
	struct throttle *t = arg;

	t->delayed = false;
	settle(t);
	if (!throttle_blocked(t))
		t->resume(t->arg);
}

int throttle_start(struct throttle *t, struct event_loop *loop)
{
	t->timer = event_loop_add_timer(loop, on_timer, t);
	if (!t->timer)
		return -ENOMEM;
	settle(t);
	return 0;
}

void throttle_stop(struct throttle *t)
{
	t->timer = event_source_free(t->timer);
	t->delayed = false;
}

bool throttle_charge(struct throttle *t, uint64_t bytes)
{
	/* Without a limit, no clock is read. */
	if (t->bytes.size && t->bytes.refill_ns)
		t->owed_bytes += bytes;
	if (t->ops.size && t->ops.refill_ns)
		t->owed_ops++;
	if (!throttle_blocked(t))
		return false;
	settle(t);
	return throttle_blocked(t);
}

void throttle_delay(struct throttle *t, uint64_t ns)
{
	if (!t->timer)
		return;
	t->delayed = true;
	event_source_arm(t->timer, ns);
}
