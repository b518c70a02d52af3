/*
 * Descriptor chains. Threads: the device's. Locks: none.
 * The walk is bounded by one count of descriptors, direct and indirect
 * together, which may not pass the queue's size: no loop survives that.
 */
#include "devices/virtio/chain.h"

#include <errno.h>
#include <linux/virtio_ring.h>
#include <string.h>

#include "vmm/base/bits.h"

/* One descriptor, copied out of a table. */
struct descriptor {
	uint64_t addr;
	uint32_t len;
	uint16_t flags; /* VRING_DESC_F_* */
	uint16_t next;
};

/* The table that is being walked: the queue's own or an indirect one. */
struct walk {
	struct chain *chain;
	const struct queue *queue;
	uint32_t seen;        /* descriptors so far, in both tables */
	uint64_t table;       /* guest address of the indirect table */
	uint32_t table_count; /* its entries; 0 while in the queue's own */
};

static int fetch(const struct walk *w, uint16_t index, struct descriptor *ret)
{
	uint64_t at = (uint64_t)QUEUE_DESC_BYTES * index;
	uint8_t raw[QUEUE_DESC_BYTES];

	if (index >= (w->table_count ? w->table_count : w->queue->size))
		return -EBADMSG;
	if (!w->table_count)
		memcpy(raw, w->queue->desc + at, sizeof(raw));
	else if (guest_mem_copy_in(w->queue->mem, w->table + at, raw, sizeof(raw)))
		return -EBADMSG;
	__asm__ volatile("" : : : "memory"); /* the copy is what is checked and used */
	ret->addr = load_le64(raw);
	ret->len = load_le32(raw + 8);
	ret->flags = load_le16(raw + 12);
	ret->next = load_le16(raw + 14);
	return 0;
}

/* The WRITE flag of such a descriptor means nothing and is ignored. */
static int enter_indirect(struct walk *w, const struct descriptor *d)
{
	uint64_t end;

	if (!w->queue->indirect || w->table_count || (d->flags & VRING_DESC_F_NEXT))
		return -EBADMSG;
	if (d->len == 0 || d->len % QUEUE_DESC_BYTES || d->len / QUEUE_DESC_BYTES > w->queue->size ||
	    __builtin_add_overflow(d->addr, (uint64_t)d->len, &end))
		return -EBADMSG;
	w->table = d->addr;
	w->table_count = d->len / QUEUE_DESC_BYTES;
	return 0;
}

static int add_buffer(struct walk *w, const struct descriptor *d)
{
	struct chain *c = w->chain;
	bool write = d->flags & VRING_DESC_F_WRITE;
	size_t used = c->readable + c->writable;
	size_t before = used;

	if (!write && c->writable)
		return -EBADMSG;
	if (guest_mem_iov(w->queue->mem, d->addr, d->len, c->iov, LIMIT_CHAIN_IOV, &used))
		return -EBADMSG;
	if (write) {
		c->writable += (uint32_t)(used - before);
		c->writable_bytes += d->len;
	} else {
		c->readable += (uint32_t)(used - before);
		c->readable_bytes += d->len;
	}
	return 0;
}

int chain_parse(struct chain *c, const struct queue *q, uint16_t head)
{
	struct walk w = { .chain = c, .queue = q };
	struct descriptor d;
	uint16_t index = head;

	c->head = head;
	c->descriptors = 0;
	c->readable = 0;
	c->writable = 0;
	c->readable_bytes = 0;
	c->writable_bytes = 0;
	for (;;) {
		if (w.seen++ == q->size || fetch(&w, index, &d))
			return -EBADMSG;
		c->descriptors += !w.table_count;
		if (d.flags & VRING_DESC_F_INDIRECT) {
			if (enter_indirect(&w, &d))
				return -EBADMSG;
			w.seen--; /* it stands for its table, and there is only one */
			index = 0;
			continue;
		}
		if (add_buffer(&w, &d))
			return -EBADMSG;
		if (!(d.flags & VRING_DESC_F_NEXT))
			return 0;
		index = d.next;
	}
}
