/*
 * Doorbells: a guest's write to an address becomes a signal on an eventfd,
 * inside the kernel, without an exit to user space (KVM_IOEVENTFD).
 *
 * Threads: made and freed on the main thread; the eventfd is read by whoever
 * serves it. Locks: none.
 */
#ifndef LULL_DOORBELL_H
#define LULL_DOORBELL_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/error.h"
#include "vmm/bus.h"

struct doorbell_ops {
	/* assigns or takes away; 0 or negative errno */
	int (*assign)(void *vm, enum bus_kind kind, uint64_t address, unsigned width,
		      uint64_t value, int fd, bool on);
};

struct doorbells {
	const struct doorbell_ops *ops;
	void *vm;
};

struct doorbell {
	const struct doorbells *owner;
	enum bus_kind kind;
	uint64_t address;
	unsigned width;
	uint64_t value;
	int fd; /* eventfd; -EBADF when not assigned */
};

/* Signals d->fd on writes of `value`, `width` bytes wide, to `address`. */
int doorbell_init(struct doorbell *d, const struct doorbells *owner, enum bus_kind kind,
		  uint64_t address, unsigned width, uint64_t value, struct error *err);
/* Takes it away and closes the eventfd; a doorbell that was never made is fine. */
void doorbell_fini(struct doorbell *d);

#endif
