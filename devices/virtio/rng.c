/*
 * Virtio entropy device, the shortest complete one: the pattern for others.
 *
 * Threads: the device's. Locks: none of its own.
 * Not here: registers, reset and kicks (device.c).
 */
#include "devices/virtio/rng.h"

#include <errno.h>
#include <linux/virtio_ids.h>
#include <stdlib.h>
#include <sys/random.h>

#include "devices/virtio/device.h"
#include "devices/virtio/throttle.h"
#include "vmm/base/log.h"
#include "vmm/config.h"
#include "vmm/device_thread.h"

#define RNG_ID "rng"
#define RNG_BATCH 16u /* requests served in one go */

struct rng_metrics {
	metric activate_fails;
	metric entropy_event_fails;
	metric entropy_event_count;
	metric entropy_bytes;
	metric host_rng_fails;
	metric entropy_rate_limiter_throttled;
	metric rate_limiter_event_count;
};

static const struct metric_field rng_metric_fields[] = {
	METRIC(struct rng_metrics, activate_fails),
	METRIC(struct rng_metrics, entropy_event_fails),
	METRIC(struct rng_metrics, entropy_event_count),
	METRIC(struct rng_metrics, entropy_bytes),
	METRIC(struct rng_metrics, host_rng_fails),
	METRIC(struct rng_metrics, entropy_rate_limiter_throttled),
	METRIC(struct rng_metrics, rate_limiter_event_count),
	{ NULL, METRIC_COUNT, 0 },
};

struct virtio_rng {
	struct virtio_device v; /* first */
	struct rng_metrics metrics;

	/* the device's thread */
	struct throttle throttle;
	struct chain chain;
};

static struct virtio_rng *rng_of(struct virtio_device *v)
{
	return (struct virtio_rng *)v;
}

/* Fills up to LIMIT_RNG_BYTES of the buffers; returns how many bytes. */
static uint32_t fill(struct virtio_rng *rng, const struct chain *c)
{
	uint32_t total = 0, i;

	for (i = 0; i < c->writable; i++) {
		uint8_t *at = c->iov[i].iov_base;
		size_t left = c->iov[i].iov_len;

		if (left > LIMIT_RNG_BYTES - total)
			left = LIMIT_RNG_BYTES - total;
		while (left) {
			ssize_t got = getrandom(at, left, 0);

			if (got < 0 && errno == EINTR)
				continue;
			if (got <= 0) {
				metric_inc(&rng->metrics.host_rng_fails);
				return total;
			}
			at += got;
			left -= (size_t)got;
			total += (uint32_t)got;
		}
	}
	return total;
}

static void serve_one(struct virtio_rng *rng, const struct chain *c)
{
	uint32_t written = 0;

	if (c->readable)
		metric_inc(&rng->metrics.entropy_event_fails);
	else
		written = fill(rng, c);
	metric_add(&rng->metrics.entropy_bytes, written);
	if (throttle_charge(&rng->throttle, written))
		metric_inc(&rng->metrics.entropy_rate_limiter_throttled);
	virtio_push(&rng->v, 0, c->head, written);
}

static bool rng_serve(struct virtio_device *v, unsigned queue)
{
	struct virtio_rng *rng = rng_of(v);
	unsigned n;
	int ret = 1;

	metric_inc(&rng->metrics.entropy_event_count);
	for (n = 0; n < RNG_BATCH && ret && !throttle_blocked(&rng->throttle); n++) {
		ret = virtio_pop(v, queue, &rng->chain);
		if (ret > 0)
			serve_one(rng, &rng->chain);
		else if (ret < 0)
			metric_inc(&rng->metrics.entropy_event_fails);
		if (ret == -EPROTO)
			return false;
	}
	virtio_notify(v, queue);
	return ret && !throttle_blocked(&rng->throttle);
}

static void on_refilled(void *arg)
{
	struct virtio_rng *rng = arg;

	metric_inc(&rng->metrics.rate_limiter_event_count);
	virtio_serve(&rng->v, 0);
}

static int rng_activate(struct virtio_device *v)
{
	return throttle_start(&rng_of(v)->throttle, device_thread_loop(v->dev.thread));
}

/* Requests are served at once: nothing is ever in flight. */
static bool rng_stop(struct virtio_device *v, bool discard)
{
	return true;
}

static void rng_resume(struct virtio_device *v)
{
}

static void rng_deactivate(struct virtio_device *v)
{
	throttle_stop(&rng_of(v)->throttle);
}

static void rng_destroy(struct virtio_device *v)
{
	struct virtio_rng *rng = rng_of(v);

	metrics_remove_group(v->metrics, &rng->metrics);
	free(rng);
}

static const struct virtio_ops rng_ops = {
	.activate = rng_activate,
	.serve = rng_serve,
	.stop = rng_stop,
	.resume = rng_resume,
	.deactivate = rng_deactivate,
	.destroy = rng_destroy,
};

static const struct device_ops rng_device_ops = {
	.start = virtio_device_start,
	.quiesce = virtio_device_quiesce,
	.unquiesce = virtio_device_unquiesce,
	.status = virtio_device_state,
	.destroy = virtio_device_destroy,
};

static struct device *rng_create(const struct device_env *env, const void *config, void *backend,
				 struct error *err)
{
	const struct entropy_config *c = config;
	struct virtio_rng *rng = calloc(1, sizeof(*rng));
	int ret;

	if (!rng) {
		error_set(err, -ENOMEM, "entropy device: no memory");
		return NULL;
	}
	virtio_device_init(&rng->v, &rng_device_ops, &rng_ops, env, "virtio-rng", RNG_ID,
			   VIRTIO_ID_RNG);
	rng->v.activate_fails = &rng->metrics.activate_fails;
	throttle_init(&rng->throttle, &c->rate_limiter, on_refilled, rng);
	ret = metrics_add_group(env->metrics, "entropy", rng_metric_fields, &rng->metrics);
	if (ret < 0) {
		error_set_errno(err, ret, "entropy device: metrics");
		virtio_device_destroy(&rng->v.dev);
		return NULL;
	}
	return &rng->v.dev;
}

const struct device_class virtio_rng_class = {
	.type = "virtio-rng",
	.create = rng_create,
};
