/*
 * What a device is: the class that opens its host side and makes it, and the
 * operations the VM needs of it. A device knows no VM, no vCPU and no KVM; it
 * is given guest memory, interrupt lines and doorbells, and it answers the bus
 * with a bus_action.
 */
#ifndef LULL_DEVICE_H
#define LULL_DEVICE_H

#include <stdint.h>
#include <sys/types.h>

#include "vmm/base/error.h"
#include "vmm/bus.h"
#include "vmm/limits.h"

struct device;
struct device_thread;
struct doorbells;
struct guest_mem;
struct metrics;

/* What every device may use; outlives the devices. */
struct device_env {
	const struct guest_mem *mem;
	const struct doorbells *doorbells;
	struct metrics *metrics;
};

struct device_ops {
	/* Main thread, once, before a vCPU runs: starts threads. May fail; does not wait. */
	int (*start)(struct device *d, struct error *err);
	/*
	 * On the device's thread (main thread if it has none), vCPUs parked: stops
	 * every source that leads to guest memory and waits for I/O in flight. When
	 * it returns, nothing of the device touches guest memory.
	 */
	void (*quiesce)(struct device *d);
	/* On the same thread, before vCPUs run again: starts the sources again. */
	void (*unquiesce)(struct device *d);
	/* Any thread: "active", "inactive", "needs-reset"; static text. */
	const char *(*status)(const struct device *d);
	/*
	 * On the device's thread, active or quiesced: takes over a new host side
	 * (class->open() made it), which stays the caller's if this fails. NULL if
	 * it has none to exchange.
	 */
	int (*exchange)(struct device *d, void *backend, struct error *err);
	/* Main thread, vCPUs gone. A device that was never started is fine. */
	void (*destroy)(struct device *d);
};

/* The common head of every device; the rest of its struct is its own. */
struct device {
	const struct device_ops *ops;
	const char *type; /* static: "virtio-blk" */
	char id[LIMIT_ID + 1];
	struct device_thread *thread; /* NULL: served by vCPU threads alone */
	struct bus_watch watch; /* of its registers */
	/* set by the board when it places the device, for reports */
	uint64_t base;
	uint64_t size;
	int32_t gsi; /* -1: no interrupt */
};

/*
 * A kind of device that clients configure. `config` is the kind's struct of
 * vmm/config.h. All on the main thread.
 */
struct device_class {
	const char *type;
	/* Opens the host side when it is configured; NULL if there is none. */
	int (*open)(const void *config, void **ret_backend, struct error *err);
	/* NULL allowed. */
	void (*close)(void *backend);
	/* Makes the device; owns `backend` from then on, also when it fails. */
	struct device *(*create)(const struct device_env *env, const void *config, void *backend,
				 struct error *err);
};

/* The classes that main.c hands to the core. */
struct device_classes {
	const struct device_class *block;
	const struct device_class *net;
	const struct device_class *entropy;
};

#endif
