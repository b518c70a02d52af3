/*
 * Split virtqueue. Threads: the device's. Locks: none; the ring's own order of
 * accesses is kept by the acquire and release helpers and two full fences.
 * Not here: what a descriptor chain means (chain.c), who is woken (device.c).
 */
#include "devices/virtio/queue.h"

#include <errno.h>
#include <linux/virtio_ring.h>
#include <string.h>

#include "vmm/base/bits.h"

/* Layout of the rings, virtio 1.2 section 2.7 */
enum {
	DESC_ALIGN = 16,
	AVAIL_FLAGS = 0,
	AVAIL_IDX = 2,
	AVAIL_RING = 4,
	AVAIL_ALIGN = 2,
	USED_FLAGS = 0,
	USED_IDX = 2,
	USED_RING = 4,
	USED_ELEM_BYTES = 8,
	USED_ALIGN = 4,
};

static uint64_t avail_bytes(uint32_t size)
{
	return AVAIL_RING + 2ull * size + 2; /* used_event behind the ring */
}

static uint64_t used_bytes(uint32_t size)
{
	return USED_RING + (uint64_t)USED_ELEM_BYTES * size + 2; /* avail_event behind the ring */
}

static uint8_t *used_event(const struct queue *q)
{
	return q->avail + AVAIL_RING + 2ull * q->size;
}

static uint8_t *avail_event(const struct queue *q)
{
	return q->used + USED_RING + (uint64_t)USED_ELEM_BYTES * q->size;
}

/* ThreadSanitizer of gcc knows no fences and warns of them. */
#ifdef __SANITIZE_THREAD__
#pragma GCC diagnostic ignored "-Wtsan"
#endif

/* Orders our last store before our next load, against the driver doing the reverse. */
static void full_fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

bool queue_size_valid(uint32_t size, uint16_t max)
{
	return is_power_of_two(size) && size <= max;
}

static int map_ring(const struct guest_mem *mem, uint64_t gpa, uint64_t bytes, uint64_t align,
		    uint8_t **ret)
{
	if (!is_aligned(gpa, align))
		return -EFAULT;
	*ret = guest_mem_span(mem, gpa, bytes);
	return *ret ? 0 : -EFAULT;
}

int queue_init(struct queue *q, const struct guest_mem *mem, const struct queue_setup *setup,
	       uint16_t max, uint64_t features)
{
	memset(q, 0, sizeof(*q));
	if (!queue_size_valid(setup->size, max))
		return -EINVAL;
	if (map_ring(mem, setup->desc, (uint64_t)QUEUE_DESC_BYTES * setup->size, DESC_ALIGN, &q->desc) ||
	    map_ring(mem, setup->avail, avail_bytes(setup->size), AVAIL_ALIGN, &q->avail) ||
	    map_ring(mem, setup->used, used_bytes(setup->size), USED_ALIGN, &q->used))
		return -EFAULT;
	q->mem = mem;
	q->size = (uint16_t)setup->size;
	q->event_idx = features & BIT_ULL(VIRTIO_RING_F_EVENT_IDX);
	q->indirect = features & BIT_ULL(VIRTIO_RING_F_INDIRECT_DESC);
	return 0;
}

static bool head_in_flight(const struct queue *q, uint16_t head)
{
	return q->heads[head / 64] >> (head % 64) & 1;
}

int queue_pop(struct queue *q, uint16_t *ret_head)
{
	uint16_t ready = (uint16_t)(guest_load_acquire16(q->avail + AVAIL_IDX) - q->next_avail);
	uint16_t head;

	if (ready == 0)
		return 0;
	/* Every entry stands for a descriptor of its own, so more cannot be out. */
	if ((uint32_t)ready + q->in_flight > q->size)
		return -EPROTO;
	head = guest_load16(q->avail + AVAIL_RING + 2ull * (q->next_avail & (q->size - 1)));
	if (head >= q->size || head_in_flight(q, head))
		return -EPROTO;
	q->heads[head / 64] |= BIT_ULL(head % 64);
	q->in_flight++;
	q->next_avail++;
	*ret_head = head;
	return 1;
}

void queue_put(struct queue *q, uint16_t head, uint32_t written)
{
	uint8_t *elem = q->used + USED_RING +
			(uint64_t)USED_ELEM_BYTES * (q->next_used & (q->size - 1));

	if (head >= q->size || !head_in_flight(q, head))
		return;
	q->heads[head / 64] &= ~BIT_ULL(head % 64);
	q->in_flight--;
	guest_store32(elem, head);
	guest_store32(elem + 4, written);
	q->next_used++;
}

void queue_publish(struct queue *q)
{
	q->published = q->next_used;
	guest_store_release16(q->used + USED_IDX, q->next_used);
}

bool queue_should_interrupt(struct queue *q)
{
	uint16_t old = q->signalled;

	if (q->published == old)
		return false;
	q->signalled = q->published;
	full_fence();
	if (q->event_idx)
		return vring_need_event(guest_load16(used_event(q)), q->published, old);
	return !(guest_load16(q->avail + AVAIL_FLAGS) & VRING_AVAIL_F_NO_INTERRUPT);
}

void queue_disable_kicks(struct queue *q)
{
	/* With the event index a kick comes once for the entry that was asked for. */
	if (!q->event_idx)
		guest_store16(q->used + USED_FLAGS, VRING_USED_F_NO_NOTIFY);
}

bool queue_enable_kicks(struct queue *q)
{
	if (q->event_idx)
		guest_store16(avail_event(q), q->next_avail);
	else
		guest_store16(q->used + USED_FLAGS, 0);
	full_fence();
	return guest_load_acquire16(q->avail + AVAIL_IDX) != q->next_avail;
}
