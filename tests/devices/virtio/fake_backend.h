/*
 * A drive of plain memory behind the engine contract, that can be slow, full
 * or broken when a test wants it so.
 */
#ifndef LULL_TEST_FAKE_BACKEND_H
#define LULL_TEST_FAKE_BACKEND_H

#include "devices/virtio/blk_backend.h"

#define FAKE_HELD 256

struct fake_backend {
	struct blk_backend b; /* first */
	uint8_t *disk;
	/* set by tests before, or while nothing runs */
	bool slow;         /* transfers are held until fake_finish() */
	unsigned capacity; /* how many are taken before it is full */
	bool stuck;        /* what is held does not end: drain() gives up */
	int fail;          /* result of every transfer, if not 0 */
	/* device thread */
	struct blk_io *held[FAKE_HELD];
	unsigned held_count;
	unsigned submitted;
	unsigned drains;
	unsigned cancels;
	unsigned flushes;
	unsigned stable;
	bool attached;
	event_fn idle;
	void *idle_arg;
	bool *destroyed; /* set to true when it is; may be NULL */
};

struct fake_backend *fake_backend_new(uint64_t size);
/* Device thread: ends the transfers that are held and calls idle(). */
void fake_finish(void *fake);

#endif
