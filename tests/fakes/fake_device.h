/*
 * A device for tests: it counts what is done to it, may have a thread, and may
 * fail to start or dawdle.
 */
#ifndef LULL_FAKE_DEVICE_H
#define LULL_FAKE_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "vmm/device.h"

struct vm;

struct fake_device {
	struct device dev; /* first: a device is cast to us */
	/* set before the start */
	int start_code;
	bool own_thread;     /* made by start */
	unsigned dawdle_us;  /* in quiesce and unquiesce */
	unsigned *destroyed; /* counted up by destroy; NULL allowed */

	/* counted; any thread */
	_Atomic unsigned started;
	_Atomic unsigned quiesced;
	_Atomic unsigned unquiesced;
	_Atomic unsigned ran_beside_vcpus; /* quiesced or unquiesced while a vCPU ran */
	_Atomic int served_by;             /* tid of the thread that quiesced it last */
};

/* NULL without memory. Freed by its destroy op. */
struct fake_device *fake_device_new(const char *id);

/*
 * For fake_arch.build: adds three devices to the VM, two with a thread and, in
 * the middle, one without.
 */
#define FAKE_DEVICES 3
int fake_devices_build(struct vm *vm, struct error *err);
extern struct fake_device *fake_devices[FAKE_DEVICES]; /* made last */
extern unsigned fake_devices_destroyed;                /* of all that it made */

#endif
