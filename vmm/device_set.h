/*
 * The devices of a VM in the order they were placed, and what is done to all
 * of them. Main thread only; what runs on device threads is posted to them and
 * answers by call-back.
 */
#ifndef LULL_DEVICE_SET_H
#define LULL_DEVICE_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/error.h"
#include "vmm/device.h"
#include "vmm/event_loop.h"

#define DEVICE_SET_MAX (LIMIT_VIRTIO_DEVICES + 8)

/* One device's part of a pause or resume. */
struct device_job {
	struct device_set *set;
	struct device *device;
	void (*op)(struct device *d);
	struct event_post ask;
	struct event_post answer;
};

struct device_set {
	struct device *devices[DEVICE_SET_MAX];
	uint32_t count;
	bool paused;
	/* of the fan-out under way; there is one at a time */
	struct device_job jobs[DEVICE_SET_MAX];
	uint32_t pending;
	struct event_loop *loop;
	event_fn done;
	void *done_arg;
};

void device_set_init(struct device_set *s, struct event_loop *loop);
/* Owns `d` from here on. -ENOSPC when full; then `d` is destroyed. */
int device_set_add(struct device_set *s, struct device *d, struct error *err);
/* Ids are unique within a type only. NULL if there is none. */
struct device *device_set_find(const struct device_set *s, const char *type, const char *id);
int device_set_start(struct device_set *s, struct error *err);
/* Quiesces or unquiesces all; `done(arg)` on the main thread when all have answered. */
void device_set_pause(struct device_set *s, event_fn done, void *arg);
void device_set_resume(struct device_set *s, event_fn done, void *arg);
/* Destroys all, last first. */
void device_set_fini(struct device_set *s);

#endif
