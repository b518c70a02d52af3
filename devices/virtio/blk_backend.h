/*
 * Where a drive's bytes lie: the contract between virtio-blk and an engine.
 * Engines know nothing of virtio; virtio-blk knows nothing of files.
 */
#ifndef LULL_VIRTIO_BLK_BACKEND_H
#define LULL_VIRTIO_BLK_BACKEND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "vmm/event_loop.h"

#define BLK_SECTOR_BYTES 512u /* virtio 1.2 section 5.2: the unit of sizes and positions */

enum blk_op { BLK_READ, BLK_WRITE, BLK_FLUSH };

/* One transfer. The caller keeps it, its ranges and their memory until it is done. */
struct blk_io {
	enum blk_op op;
	bool stable; /* a write is on stable storage when it is done */
	/* what is still to do; counted down by the engine */
	uint64_t offset;
	uint64_t bytes;
	struct iovec *iov;
	uint32_t iov_count;
	/* Device thread, once: 0, or a negative errno. May be called inside submit(). */
	void (*done)(struct blk_io *io, int result);
};

struct blk_backend;

/* All on the device's thread, but for destroy. */
struct blk_backend_ops {
	const char *name; /* "Sync" or "Async" */
	/* Takes up its sources; `idle(arg)` is called after transfers were done. */
	int (*attach)(struct blk_backend *b, struct event_loop *loop, event_fn idle, void *arg);
	/* Nothing is in flight. */
	void (*detach)(struct blk_backend *b);
	/* 0: taken, and done() follows. -EAGAIN: full; try again after idle(). */
	int (*submit)(struct blk_backend *b, struct blk_io *io);
	/* Sends off what was submitted since the last call. */
	void (*commit)(struct blk_backend *b);
	/*
	 * Waits until nothing is in flight; with `cancel`, transfers that have not
	 * begun are given up. idle() is not called. False if that is not certain:
	 * what is in flight must then never be freed.
	 */
	bool (*drain)(struct blk_backend *b, bool cancel);
	/* Any thread, detached. */
	void (*destroy)(struct blk_backend *b);
};

struct blk_backend {
	const struct blk_backend_ops *ops;
	uint64_t size; /* bytes, when it was opened */
	bool read_only;
};

/* Takes `n` bytes that were transferred off the front of `io`. */
void blk_io_advance(struct blk_io *io, uint64_t n);

#endif
