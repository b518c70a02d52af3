/*
 * Receive buffers of a network device: chains that the driver gave, held until
 * a frame fills them, and the frame that did not fit yet.
 *
 * Frames are read straight into the driver's buffers. How long a frame is shows
 * only afterwards, so a spill area stands behind the buffers: what runs into it
 * was longer than they are.
 *
 * Threads: the device's. Locks: none.
 */
#ifndef LULL_VIRTIO_NET_RX_H
#define LULL_VIRTIO_NET_RX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "devices/virtio/chain.h"
#include "devices/virtio/queue.h"
#include "vmm/limits.h"

#define NET_RX_IOV 768 /* ranges held; with the spill fewer than the kernel's 1024 */

struct net_rx_buffer {
	uint16_t head;
	uint16_t iov_count;
	uint16_t descriptors; /* of the queue's table */
	uint32_t bytes;
};

struct net_rx {
	bool mergeable; /* a frame may take several buffers */
	bool csum;      /* what the driver can do itself: finish a checksum, */
	bool tso4;      /* take segments that were not cut */
	bool tso6;
	/* buffers held: [first, end), their ranges [iov_first, iov_end) in the same order */
	uint32_t first;
	uint32_t end;
	uint32_t iov_first;
	uint32_t iov_end;
	uint64_t bytes;
	uint32_t descriptors;
	struct net_rx_buffer buffers[LIMIT_QUEUE_SIZE];
	struct iovec iov[NET_RX_IOV + 1];
	uint8_t *spill;       /* LIMIT_NET_FRAME bytes */
	uint32_t frame_bytes; /* of a whole frame in `spill` that waits for buffers */
};

/* -ENOMEM, or 0. */
int net_rx_init(struct net_rx *rx);
void net_rx_fini(struct net_rx *rx);
/* Forgets all buffers and the waiting frame. `features` are the negotiated ones. */
void net_rx_clear(struct net_rx *rx, uint64_t features);

static inline bool net_rx_empty(const struct net_rx *rx)
{
	return rx->first == rx->end;
}

/* True if a chain of any shape can be held. */
bool net_rx_has_room(const struct net_rx *rx);
/* Holds a chain; -EINVAL if it cannot take even a frame's header, or is readable. */
int net_rx_add(struct net_rx *rx, struct chain *c);

enum net_rx_result {
	NET_RX_DELIVERED,
	NET_RX_WAITS,   /* it is kept until there are more buffers */
	NET_RX_DROPPED, /* no buffers the driver can give will hold it */
	NET_RX_NOTHING, /* *ret is 0, or the negative errno of the read */
};

/* Reads a frame of the descriptor into the buffers held (at least one). *ret: its bytes. */
enum net_rx_result net_rx_read(struct net_rx *rx, struct queue *q, int fd, int *ret);
/* Tries again with the frame that waits. *ret: its bytes. */
enum net_rx_result net_rx_retry(struct net_rx *rx, struct queue *q, int *ret);

#endif
