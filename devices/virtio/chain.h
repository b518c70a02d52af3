/*
 * A descriptor chain, turned into host ranges: first what the device reads,
 * then what it writes. Everything is checked on the way, each descriptor is
 * copied once, and the ring is not looked at again.
 */
#ifndef LULL_VIRTIO_CHAIN_H
#define LULL_VIRTIO_CHAIN_H

#include <stdint.h>
#include <sys/uio.h>

#include "devices/virtio/queue.h"
#include "vmm/limits.h"

struct chain {
	uint16_t head;
	uint16_t descriptors; /* that it takes of the queue's own table */
	uint32_t readable; /* elements of iov, from 0 */
	uint32_t writable; /* elements of iov, behind the readable ones */
	uint64_t readable_bytes;
	uint64_t writable_bytes;
	struct iovec iov[LIMIT_CHAIN_IOV];
};

/*
 * Walks the chain that starts at `head` (< q->size). -EBADMSG if it is
 * malformed: longer than the queue, an index out of its table, no bytes, bytes
 * that are not RAM, readable after writable, a wrong indirect table.
 */
int chain_parse(struct chain *c, const struct queue *q, uint16_t head);

static inline struct iovec *chain_writable(struct chain *c)
{
	return c->iov + c->readable;
}

#endif
