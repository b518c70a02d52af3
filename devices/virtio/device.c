/*
 * Virtio devices in general.
 *
 * Threads: registers on vCPU threads; activation, service and reset on the
 * device's thread; creation and destruction on the main thread.
 * Locks: v->lock (level DEVICE), for registers and configuration space.
 * Not here: the register layout (mmio.c), what a queue's requests mean.
 */
#include "devices/virtio/device.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bits.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/device_thread.h"

/* Device status, virtio 1.2 section 2.1 */
enum {
	ACKNOWLEDGE = VIRTIO_CONFIG_S_ACKNOWLEDGE,
	DRIVER = VIRTIO_CONFIG_S_DRIVER,
	FEATURES_OK = VIRTIO_CONFIG_S_FEATURES_OK,
	DRIVER_OK = VIRTIO_CONFIG_S_DRIVER_OK,
	NEEDS_RESET = VIRTIO_CONFIG_S_NEEDS_RESET,
	FAILED = VIRTIO_CONFIG_S_FAILED,
};

/*
 * The steps a driver may take by writing the status register; besides these it
 * may set FAILED in any state, and write 0. Everything else is ignored: bits
 * never go away one by one, and no step is skipped but ACKNOWLEDGE, which some
 * firmware writes together with DRIVER.
 */
static const struct {
	uint8_t from;
	uint8_t to;
} steps[] = {
	{ 0, ACKNOWLEDGE },
	{ 0, ACKNOWLEDGE | DRIVER },
	{ ACKNOWLEDGE, ACKNOWLEDGE | DRIVER },
	{ ACKNOWLEDGE | DRIVER, ACKNOWLEDGE | DRIVER | FEATURES_OK },
	{ ACKNOWLEDGE | DRIVER | FEATURES_OK, ACKNOWLEDGE | DRIVER | FEATURES_OK | DRIVER_OK },
};

/*
 * A driver reads InterruptStatus and acknowledges what it saw before it looks
 * at the rings. So while a reason is pending, whatever we publish is still to be
 * seen, and another edge would tell nothing: only the first one is sent.
 */
static void interrupt(struct virtio_device *v, uint32_t reason)
{
	if (atomic_fetch_or(&v->interrupts, reason) & reason)
		return;
	bus_watch_changed(&v->dev.watch);
	if (v->irq.ops)
		irq_line_pulse(&v->irq);
}

static bool step_allowed(uint32_t from, uint32_t to)
{
	size_t i;

	if (from && to == (from | FAILED))
		return true;
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		if (steps[i].from == from && steps[i].to == to)
			return true;
	}
	return false;
}

bool virtio_device_configurable_locked(struct virtio_device *v)
{
	return !v->resetting &&
	       atomic_load(&v->status) == (ACKNOWLEDGE | DRIVER | FEATURES_OK);
}

uint32_t virtio_device_get_status(struct virtio_device *v)
{
	return atomic_load(&v->status) | (atomic_load(&v->needs_reset) ? NEEDS_RESET : 0);
}

void virtio_fail(struct virtio_device *v, const char *why)
{
	unsigned i;

	v->failed = true;
	for (i = 0; i < v->queue_count; i++) {
		if (v->kicks[i])
			event_source_enable(v->kicks[i], false);
	}
	log_warn("device %s: %s: it needs a reset", v->dev.id, why);
	atomic_store(&v->needs_reset, true);
	bus_watch_changed(&v->dev.watch); /* if that interrupt is pending already */
	interrupt(v, VIRTIO_INT_CONFIG_CHANGE);
}

/* Activation, on the device's thread */

static void on_kick(struct virtio_device *v, unsigned queue)
{
	fd_eventfd_drain(v->doorbells[queue].fd);
	virtio_serve(v, queue);
}

static void on_kick_0(void *arg, int fd, unsigned events)
{
	on_kick(arg, 0);
}

static void on_kick_1(void *arg, int fd, unsigned events)
{
	on_kick(arg, 1);
}

static const event_fd_fn kick_fns[LIMIT_QUEUES] = { on_kick_0, on_kick_1 };

static int watch_kicks(struct virtio_device *v)
{
	struct event_loop *loop = device_thread_loop(v->dev.thread);
	unsigned i;

	for (i = 0; i < v->queue_count; i++) {
		if (!v->queues[i].size || v->doorbells[i].fd < 0)
			continue;
		v->kicks[i] = event_loop_add_fd(loop, v->doorbells[i].fd, EVENT_READABLE,
						kick_fns[i], v);
		if (!v->kicks[i])
			return -ENOMEM;
	}
	return 0;
}

static void unwatch_kicks(struct virtio_device *v)
{
	unsigned i;

	for (i = 0; i < v->queue_count; i++)
		v->kicks[i] = event_source_free(v->kicks[i]);
}

/* A kick may have come before anyone watched; each queue is looked at once. */
static void serve_all(struct virtio_device *v)
{
	unsigned i;

	for (i = 0; i < v->queue_count; i++)
		virtio_serve(v, i);
}

static void activate(void *arg)
{
	struct virtio_device *v = arg;
	int ret = v->ops->activate(v);

	if (ret == 0) {
		ret = watch_kicks(v);
		if (ret < 0) {
			v->ops->stop(v, true);
			v->ops->deactivate(v);
			unwatch_kicks(v);
		}
	}
	if (ret < 0) {
		if (v->activate_fails)
			metric_inc(v->activate_fails);
		virtio_fail(v, "it could not be activated");
		return;
	}
	v->active = true;
	serve_all(v);
}

/* Stops an active device; one whose I/O does not end needs a reset that ends it. */
static bool stop(struct virtio_device *v, bool discard)
{
	if (v->ops->stop(v, discard))
		return true;
	virtio_fail(v, "its I/O in flight does not end");
	return false;
}

/*
 * Undoes activate(), also one that failed; then the rings are not touched any
 * more. If I/O in flight does not end, the device stays active.
 */
static void deactivate(void *arg)
{
	struct virtio_device *v = arg;

	if (v->active) {
		if (!stop(v, true))
			return;
		v->ops->deactivate(v);
		unwatch_kicks(v);
		v->active = false;
	}
	v->failed = false;
	memset(v->queues, 0, sizeof(v->queues));
}

/* The status register, on vCPU threads */

static bool features_acceptable_locked(struct virtio_device *v) TSA_REQUIRES(v->lock)
{
	return !(v->accepted & ~v->offered) && (v->accepted & BIT_ULL(VIRTIO_F_VERSION_1));
}

/* Freezes the queues that are ready. -EINVAL if there is none. */
static int freeze_queues_locked(struct virtio_device *v) TSA_REQUIRES(v->lock)
{
	unsigned i, ready = 0;
	int ret;

	for (i = 0; i < v->queue_count; i++) {
		if (!v->setups[i].ready)
			continue;
		ret = queue_init(&v->queues[i], v->mem, &v->setups[i], LIMIT_QUEUE_SIZE,
				 v->accepted);
		if (ret < 0)
			return ret;
		ready++;
	}
	return ready ? 0 : -EINVAL;
}

static void driver_ok_locked(struct virtio_device *v) TSA_REQUIRES(v->lock)
{
	int ret = v->dev.thread ? freeze_queues_locked(v) : -ENODEV;

	if (ret == 0) {
		/* From here on the queues are the device thread's. */
		v->negotiated = v->accepted;
		ret = event_loop_post(device_thread_loop(v->dev.thread), activate, v);
	}
	if (ret == 0)
		return;
	if (v->activate_fails)
		metric_inc(v->activate_fails);
	log_warn("device %s: the driver's queues cannot be used: it needs a reset", v->dev.id);
	atomic_store(&v->needs_reset, true);
	interrupt(v, VIRTIO_INT_CONFIG_CHANGE);
}

static void step_locked(struct virtio_device *v, uint32_t value) TSA_REQUIRES(v->lock)
{
	uint32_t from = atomic_load(&v->status);

	/* A driver that adds a bit to what it read writes NEEDS_RESET back. */
	if (atomic_load(&v->needs_reset))
		value &= ~(uint32_t)NEEDS_RESET;
	if (v->resetting || value == from || !step_allowed(from, value))
		return;
	if ((value & ~from) == FEATURES_OK && !features_acceptable_locked(v))
		return;
	atomic_store(&v->status, value);
	if ((value & ~from) == DRIVER_OK)
		driver_ok_locked(v);
}

static void clear_registers_locked(struct virtio_device *v) TSA_REQUIRES(v->lock)
{
	v->device_features_sel = 0;
	v->driver_features_sel = 0;
	v->accepted = 0;
	v->queue_sel = 0;
	memset(v->setups, 0, sizeof(v->setups));
	atomic_store(&v->interrupts, 0);
	atomic_store(&v->needs_reset, false);
	atomic_store(&v->status, 0);
}

/*
 * The driver reads 0 only when the device's thread has let go of the rings. The
 * wait is without the lock; what other vCPUs write meanwhile is dropped.
 */
static void reset(struct virtio_device *v)
{
	bool active;
	int ret;

	lock_take(&v->lock);
	active = (atomic_load(&v->status) & DRIVER_OK) && v->dev.thread;
	if (v->resetting || !active) {
		/* Another vCPU is at it, or there is nothing to wait for. */
		if (!v->resetting)
			clear_registers_locked(v);
		lock_release(&v->lock);
		return;
	}
	v->resetting = true;
	lock_release(&v->lock);

	ret = device_thread_call(v->dev.thread, deactivate, v);

	lock_take(&v->lock);
	v->resetting = false;
	if (ret == 0 && !v->active)
		clear_registers_locked(v);
	else
		/* It still has the rings: the status stays, the driver may try again. */
		atomic_store(&v->needs_reset, true);
	lock_release(&v->lock);
}

void virtio_device_set_status(struct virtio_device *v, uint32_t value)
{
	if (value == 0) {
		reset(v);
		return;
	}
	lock_take(&v->lock);
	step_locked(v, value);
	lock_release(&v->lock);
}

/* Service, on the device's thread */

void virtio_serve(struct virtio_device *v, unsigned queue)
{
	if (!virtio_running(v) || !v->queues[queue].size)
		return;
	queue_disable_kicks(&v->queues[queue]);
	if (v->ops->serve(v, queue) && v->doorbells[queue].fd >= 0)
		fd_eventfd_signal(v->doorbells[queue].fd);
}

int virtio_pop(struct virtio_device *v, unsigned queue, struct chain *c)
{
	struct queue *q = &v->queues[queue];
	uint16_t head;
	int ret;

	if (v->failed || !q->size)
		return q->size ? -EPROTO : 0;
	ret = queue_pop(q, &head);
	if (ret == 0 && queue_enable_kicks(q))
		ret = queue_pop(q, &head);
	if (ret < 0)
		virtio_fail(v, "the driver's available ring is broken");
	if (ret <= 0)
		return ret;
	if (chain_parse(c, q, head) < 0) {
		virtio_push(v, queue, head, 0);
		return -EBADMSG;
	}
	return 1;
}

void virtio_push(struct virtio_device *v, unsigned queue, uint16_t head, uint32_t written)
{
	queue_put(&v->queues[queue], head, written);
	queue_publish(&v->queues[queue]);
}

void virtio_notify(struct virtio_device *v, unsigned queue)
{
	struct queue *q = &v->queues[queue];

	if (q->size && queue_should_interrupt(q))
		interrupt(v, VIRTIO_INT_USED_BUFFER);
}

void virtio_set_config(struct virtio_device *v, unsigned offset, const void *bytes, unsigned n)
{
	if (offset > VIRTIO_CONFIG_MAX || n > VIRTIO_CONFIG_MAX - offset)
		return;
	lock_take(&v->lock);
	memcpy(v->config + offset, bytes, n);
	atomic_fetch_add(&v->generation, 1);
	bus_watch_changed(&v->dev.watch);
	lock_release(&v->lock);
	if (atomic_load(&v->status) & DRIVER_OK)
		interrupt(v, VIRTIO_INT_CONFIG_CHANGE);
}

/* device_ops and life */

void virtio_device_init(struct virtio_device *v, const struct device_ops *device_ops,
			const struct virtio_ops *ops, const struct device_env *env,
			const char *type, const char *id, uint32_t virtio_id)
{
	unsigned i;

	v->dev.ops = device_ops;
	v->dev.type = type;
	v->dev.gsi = -1;
	snprintf(v->dev.id, sizeof(v->dev.id), "%s", id);
	v->ops = ops;
	v->mem = env->mem;
	v->metrics = env->metrics;
	v->virtio_id = virtio_id;
	v->offered = BIT_ULL(VIRTIO_F_VERSION_1) | BIT_ULL(VIRTIO_RING_F_EVENT_IDX) |
		     BIT_ULL(VIRTIO_RING_F_INDIRECT_DESC);
	v->queue_count = 1;
	for (i = 0; i < LIMIT_QUEUES; i++)
		v->doorbells[i].fd = -EBADF;
	lock_init(&v->lock, LOCK_LEVEL_DEVICE, type, v->dev.id);
}

int virtio_device_start(struct device *d, struct error *err)
{
	if (d->thread)
		return 0;
	d->thread = device_thread_new(d->id, err);
	return d->thread ? 0 : -EAGAIN;
}

void virtio_device_quiesce(struct device *d)
{
	struct virtio_device *v = virtio_of(d);
	unsigned i;

	if (v->quiesced)
		return;
	v->quiesced = true;
	for (i = 0; i < v->queue_count; i++) {
		if (v->kicks[i] && !v->failed)
			event_source_enable(v->kicks[i], false);
	}
	if (v->active)
		stop(v, false);
}

void virtio_device_unquiesce(struct device *d)
{
	struct virtio_device *v = virtio_of(d);
	unsigned i;

	if (!v->quiesced)
		return;
	v->quiesced = false;
	if (!v->active || v->failed)
		return;
	v->ops->resume(v);
	for (i = 0; i < v->queue_count; i++) {
		if (v->kicks[i])
			event_source_enable(v->kicks[i], true);
	}
	serve_all(v);
}

const char *virtio_device_state(const struct device *d)
{
	const struct virtio_device *v = (const struct virtio_device *)d;

	if (atomic_load(&v->needs_reset))
		return "needs-reset";
	return atomic_load(&v->status) & DRIVER_OK ? "active" : "inactive";
}

void virtio_device_destroy(struct device *d)
{
	struct virtio_device *v = virtio_of(d);
	unsigned i;

	if (d->thread && (device_thread_call(d->thread, deactivate, v) < 0 || v->active)) {
		log_error("device %s: it cannot be stopped; it is left as it is", d->id);
		return;
	}
	d->thread = device_thread_free(d->thread);
	for (i = 0; i < v->queue_count; i++)
		doorbell_fini(&v->doorbells[i]);
	lock_fini(&v->lock);
	v->ops->destroy(v);
}
