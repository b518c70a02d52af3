/*
 * What all virtio devices have in common: features, the status register's state
 * machine, configuration space, queues, interrupts, and the way from DRIVER_OK
 * to activity and back on reset.
 *
 * A device is two halves that share little. The vCPU threads write registers
 * under `lock`. The device's thread owns the queues and everything behind
 * them, from the moment an activation was posted to it until a reset has called
 * it back. In between the two meet only in atomics.
 *
 * No vCPU holds the lock while it waits for the device's thread, so that
 * thread may take it.
 */
#ifndef LULL_VIRTIO_DEVICE_H
#define LULL_VIRTIO_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "devices/virtio/chain.h"
#include "devices/virtio/queue.h"
#include "vmm/base/lock.h"
#include "vmm/device.h"
#include "vmm/doorbell.h"
#include "vmm/event_loop.h"
#include "vmm/irq.h"
#include "vmm/metrics.h"

#define VIRTIO_CONFIG_MAX 64 /* bytes of configuration space of any of our devices */

/* Interrupt reasons, virtio 1.2 section 4.2.2, InterruptStatus */
#define VIRTIO_INT_USED_BUFFER 1u
#define VIRTIO_INT_CONFIG_CHANGE 2u

struct virtio_device;

/* What a kind of device adds. All on the device's thread, but for destroy. */
struct virtio_ops {
	/* Queues are ready: takes up its sources and timers. 0 or negative errno. */
	int (*activate)(struct virtio_device *v);
	/*
	 * Serves a queue after a kick, bounded in time. True if it stopped with work
	 * left that no later event announces; it is called again from the loop.
	 */
	bool (*serve)(struct virtio_device *v, unsigned queue);
	/*
	 * Stops all sources that lead to guest memory and waits for I/O in flight.
	 * With `discard` the guest is resetting: results are dropped. False if I/O
	 * may still be in flight: then the device has failed, and is stopped again
	 * when the driver resets it.
	 */
	bool (*stop)(struct virtio_device *v, bool discard);
	/* Undoes stop(false). */
	void (*resume)(struct virtio_device *v);
	/* After stop(): undoes activate. */
	void (*deactivate)(struct virtio_device *v);
	/* Main thread, inactive: frees the device and what it owns. */
	void (*destroy)(struct virtio_device *v);
};

struct virtio_device {
	struct device dev; /* first: the board and the bus know it by this */

	/* constant after virtio_device_init() and virtio_mmio_attach() */
	const struct virtio_ops *ops;
	const struct guest_mem *mem;
	struct metrics *metrics;
	uint32_t virtio_id;
	uint64_t offered; /* features */
	unsigned queue_count;
	metric *activate_fails;
	struct irq_line irq;
	struct doorbell doorbells[LIMIT_QUEUES];

	struct lock lock;
	/* under lock */
	uint32_t device_features_sel TSA_GUARDED;
	uint32_t driver_features_sel TSA_GUARDED;
	uint64_t accepted TSA_GUARDED; /* features, as the driver wrote them */
	uint32_t queue_sel TSA_GUARDED;
	struct queue_setup setups[LIMIT_QUEUES] TSA_GUARDED;
	uint8_t config[VIRTIO_CONFIG_MAX] TSA_GUARDED;
	bool resetting TSA_GUARDED;

	/* atomic */
	_Atomic uint32_t status;      /* as the driver set it; written under lock */
	atomic_bool needs_reset;      /* set by the device's thread, cleared by a reset */
	_Atomic uint32_t interrupts;  /* InterruptStatus */
	_Atomic uint32_t generation;  /* of config; changed under lock */

	/* the device's thread, once an activation was posted to it */
	struct queue queues[LIMIT_QUEUES];
	uint64_t negotiated; /* features */
	struct event_source *kicks[LIMIT_QUEUES];
	bool active;
	bool quiesced;
	bool failed; /* a queue contradicted itself: nothing is served until a reset */
};

static inline struct virtio_device *virtio_of(struct device *d)
{
	return (struct virtio_device *)d;
}

void virtio_device_init(struct virtio_device *v, const struct device_ops *device_ops,
			const struct virtio_ops *ops, const struct device_env *env,
			const char *type, const char *id, uint32_t virtio_id);

/* device_ops that every virtio device uses as they are */
int virtio_device_start(struct device *d, struct error *err);
void virtio_device_quiesce(struct device *d);
void virtio_device_unquiesce(struct device *d);
const char *virtio_device_state(const struct device *d);
void virtio_device_destroy(struct device *d);

/* For the transport, on vCPU threads. */
uint32_t virtio_device_get_status(struct virtio_device *v);
void virtio_device_set_status(struct virtio_device *v, uint32_t value);
/* True while the driver may set queues up: FEATURES_OK, not yet DRIVER_OK. */
bool virtio_device_configurable_locked(struct virtio_device *v) TSA_REQUIRES(v->lock);

/* For the devices, on the device's thread. */

/* True if queues may be served now. */
static inline bool virtio_running(const struct virtio_device *v)
{
	return v->active && !v->quiesced && !v->failed;
}

static inline bool virtio_has(const struct virtio_device *v, unsigned feature)
{
	return v->negotiated >> feature & 1;
}

/*
 * The next chain of a queue. 1 and the chain; 0 if there is none, and the driver
 * will kick for the next; -EBADMSG if a malformed one was given back with length
 * 0; -EPROTO if the queue is broken: the device has failed.
 */
int virtio_pop(struct virtio_device *v, unsigned queue, struct chain *c);
/* Gives a chain back of which `written` bytes were written, and shows it. */
void virtio_push(struct virtio_device *v, unsigned queue, uint16_t head, uint32_t written);
/* Interrupts for what was given back, if the driver wants that. */
void virtio_notify(struct virtio_device *v, unsigned queue);
/* Serves a queue now, as after a kick. */
void virtio_serve(struct virtio_device *v, unsigned queue);
/* The device can go on only after a reset. */
void virtio_fail(struct virtio_device *v, const char *why);
/* Changes configuration space under the driver: generation and interrupt. */
void virtio_set_config(struct virtio_device *v, unsigned offset, const void *bytes, unsigned n);

#endif
