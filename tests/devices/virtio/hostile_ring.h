/*
 * The hostile ring suite: what a guest can do wrong to queues, registers and
 * devices. After each the device is alive: it served the next request, or said
 * that it needs a reset and works after one.
 */
#ifndef LULL_TEST_HOSTILE_RING_H
#define LULL_TEST_HOSTILE_RING_H

#include <errno.h>

#include <string.h>

#include "tests/devices/virtio/ring_rig.h"

struct hostile_group {
	const char *name;
	const struct CMUnitTest *tests;
	size_t count;
};

extern const struct hostile_group hostile_queue, hostile_chain, hostile_mmio, hostile_blk,
	hostile_net, hostile_rng;

#endif
