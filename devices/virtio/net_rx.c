/*
 * Receive buffers. Threads: the device's. Locks: none.
 * All buffers of one frame become visible to the driver at once.
 */
#include "devices/virtio/net_rx.h"

#include <errno.h>
#include <linux/virtio_net.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "devices/virtio/iov.h"
#include "devices/virtio/tap.h"
#include "vmm/base/bits.h"

int net_rx_init(struct net_rx *rx)
{
	memset(rx, 0, sizeof(*rx));
	rx->spill = malloc(LIMIT_NET_FRAME);
	return rx->spill ? 0 : -ENOMEM;
}

void net_rx_fini(struct net_rx *rx)
{
	free(rx->spill);
	rx->spill = NULL;
}

void net_rx_clear(struct net_rx *rx, uint64_t features)
{
	rx->mergeable = features & BIT_ULL(VIRTIO_NET_F_MRG_RXBUF);
	rx->csum = features & BIT_ULL(VIRTIO_NET_F_GUEST_CSUM);
	rx->tso4 = rx->csum && features & BIT_ULL(VIRTIO_NET_F_GUEST_TSO4);
	rx->tso6 = rx->csum && features & BIT_ULL(VIRTIO_NET_F_GUEST_TSO6);
	rx->first = 0;
	rx->end = 0;
	rx->iov_first = 0;
	rx->iov_end = 0;
	rx->bytes = 0;
	rx->descriptors = 0;
	rx->frame_bytes = 0;
}

/* Moves what is held to the front of the arrays. */
static void compact(struct net_rx *rx)
{
	if (!rx->first && !rx->iov_first)
		return;
	memmove(rx->buffers, rx->buffers + rx->first,
		(rx->end - rx->first) * sizeof(rx->buffers[0]));
	memmove(rx->iov, rx->iov + rx->iov_first,
		(rx->iov_end - rx->iov_first) * sizeof(rx->iov[0]));
	rx->end -= rx->first;
	rx->first = 0;
	rx->iov_end -= rx->iov_first;
	rx->iov_first = 0;
}

bool net_rx_has_room(const struct net_rx *rx)
{
	return rx->end - rx->first < LIMIT_QUEUE_SIZE &&
	       NET_RX_IOV - (rx->iov_end - rx->iov_first) >= LIMIT_CHAIN_IOV;
}

int net_rx_add(struct net_rx *rx, struct chain *c)
{
	struct net_rx_buffer *b;

	if (c->readable || c->writable_bytes < TAP_HEADER_BYTES)
		return -EINVAL;
	if (rx->end == LIMIT_QUEUE_SIZE || rx->iov_end + c->writable > NET_RX_IOV)
		compact(rx);
	/* No frame is longer: what lies behind is of no use, and sums stay small. */
	iov_cut(chain_writable(c), &c->writable, LIMIT_NET_FRAME);
	b = &rx->buffers[rx->end++];
	b->head = c->head;
	b->iov_count = (uint16_t)c->writable;
	b->descriptors = c->descriptors;
	b->bytes = (uint32_t)iov_bytes(chain_writable(c), c->writable);
	memcpy(rx->iov + rx->iov_end, chain_writable(c), c->writable * sizeof(rx->iov[0]));
	rx->iov_end += c->writable;
	rx->bytes += b->bytes;
	rx->descriptors += b->descriptors;
	return 0;
}

/* The ranges that a frame may go to: all, or those of the first buffer. */
static uint32_t usable(const struct net_rx *rx, uint64_t *ret_bytes)
{
	if (rx->mergeable) {
		*ret_bytes = rx->bytes;
		return rx->iov_end - rx->iov_first;
	}
	*ret_bytes = rx->buffers[rx->first].bytes;
	return rx->buffers[rx->first].iov_count;
}

/* Takes out of the frame's header what the driver did not agree to. */
static void clean_header(const struct net_rx *rx)
{
	const struct iovec *iov = rx->iov + rx->iov_first;
	uint32_t count = rx->buffers[rx->first].iov_count;
	uint8_t h[2]; /* flags, gso_type */

	iov_read(iov, count, 0, h, sizeof(h));
	h[0] &= rx->csum ? VIRTIO_NET_HDR_F_NEEDS_CSUM | VIRTIO_NET_HDR_F_DATA_VALID : 0;
	h[1] &= (uint8_t)~VIRTIO_NET_HDR_GSO_ECN; /* never offered */
	if (!(h[1] == VIRTIO_NET_HDR_GSO_TCPV4 && rx->tso4) &&
	    !(h[1] == VIRTIO_NET_HDR_GSO_TCPV6 && rx->tso6))
		h[1] = VIRTIO_NET_HDR_GSO_NONE;
	iov_write(iov, count, 0, h, sizeof(h));
}

/* A frame of `len` bytes lies in the first buffers: gives them to the driver. */
static void deliver(struct net_rx *rx, struct queue *q, uint32_t len)
{
	uint8_t count[2];
	uint32_t n = 0, left = len, at = rx->first;

	while (left) {
		left -= left < rx->buffers[at].bytes ? left : rx->buffers[at].bytes;
		at++;
		n++;
	}
	clean_header(rx);
	store_le16(count, (uint16_t)n);
	iov_write(rx->iov + rx->iov_first, rx->buffers[rx->first].iov_count,
		  offsetof(struct virtio_net_hdr_v1, num_buffers), count, sizeof(count));
	for (left = len; left; rx->first++) {
		const struct net_rx_buffer *b = &rx->buffers[rx->first];
		uint32_t part = left < b->bytes ? left : b->bytes;

		queue_put(q, b->head, part);
		left -= part;
		rx->iov_first += b->iov_count;
		rx->bytes -= b->bytes;
		rx->descriptors -= b->descriptors;
	}
	queue_publish(q);
}

/* True if the driver may still add to what it gave: it has descriptors left for that. */
static bool more_can_come(const struct net_rx *rx, const struct queue *q)
{
	return rx->mergeable && rx->descriptors < q->size && net_rx_has_room(rx);
}

/* The frame ran over: puts it together in the spill, where it waits. */
static enum net_rx_result hold(struct net_rx *rx, const struct queue *q, uint32_t count,
			       uint32_t room, uint32_t len)
{
	if (len > LIMIT_NET_FRAME || !more_can_come(rx, q))
		return NET_RX_DROPPED;
	memmove(rx->spill + room, rx->spill, len - room);
	iov_read(rx->iov + rx->iov_first, count, 0, rx->spill, room);
	rx->frame_bytes = len;
	return NET_RX_WAITS;
}

enum net_rx_result net_rx_read(struct net_rx *rx, struct queue *q, int fd, int *ret)
{
	uint64_t room;
	uint32_t count = usable(rx, &room);
	struct iovec *iov = rx->iov + rx->iov_first;
	struct iovec behind = iov[count];
	ssize_t n;

	/* The spill takes the place of the next buffer's range for the time of the call. */
	iov[count].iov_base = rx->spill;
	iov[count].iov_len = LIMIT_NET_FRAME;
	do {
		n = readv(fd, iov, (int)count + 1);
	} while (n < 0 && errno == EINTR);
	*ret = n < 0 ? -errno : (int)n;
	iov[count] = behind;
	if (n <= 0)
		return NET_RX_NOTHING;
	if (n < TAP_HEADER_BYTES)
		return NET_RX_DROPPED;
	if ((uint64_t)n > room)
		return hold(rx, q, count, (uint32_t)room, (uint32_t)n);
	deliver(rx, q, (uint32_t)n);
	return NET_RX_DELIVERED;
}

enum net_rx_result net_rx_retry(struct net_rx *rx, struct queue *q, int *ret)
{
	uint64_t room;
	uint32_t len = rx->frame_bytes, count;

	*ret = (int)len;
	count = net_rx_empty(rx) ? 0 : usable(rx, &room);
	if (!count || len > room) {
		if (more_can_come(rx, q))
			return NET_RX_WAITS;
		rx->frame_bytes = 0;
		return NET_RX_DROPPED;
	}
	iov_write(rx->iov + rx->iov_first, count, 0, rx->spill, len);
	rx->frame_bytes = 0;
	deliver(rx, q, len);
	return NET_RX_DELIVERED;
}
