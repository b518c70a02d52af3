/*
 * A queue without a device, for tests of queue.c and chain.c: the rig's memory
 * and rings, driven in the test's own thread.
 */
#ifndef LULL_TEST_QUEUE_FIXTURE_H
#define LULL_TEST_QUEUE_FIXTURE_H

#include <errno.h>

#include "tests/devices/virtio/ring_rig.h"

struct queue_fixture {
	struct rig *r;
	struct queue q;
	struct chain c;
};

/* cmocka set-up and tear-down: queue 0 of 8 entries, indirect allowed, no event index */
int queue_setup_8(void **state);
int queue_teardown(void **state);

/* Makes the queue again. */
int queue_open(struct queue_fixture *f, uint32_t size, uint64_t features);
/* A descriptor of the queue's table. */
void d(struct queue_fixture *f, unsigned i, uint64_t addr, uint32_t len, uint16_t flags,
       uint16_t next);
/* Parses the chain at `head`. */
int parse(struct queue_fixture *f, uint16_t head);
/* Pops, expecting a head. */
uint16_t pop(struct queue_fixture *f);

#endif
