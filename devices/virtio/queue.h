/*
 * One split virtqueue, as its device sees it: a cursor over the rings that the
 * driver laid out in guest memory.
 *
 * What the driver wrote into the transport's registers is a queue_setup. When
 * the device is activated it is checked once and becomes a struct queue, which
 * never looks at the registers again: size and addresses are frozen, and both
 * positions are private, so that nothing the guest scribbles moves them.
 *
 * Threads: filled by queue_init() on the vCPU thread that activates, then the
 * device's thread only. Locks: none.
 */
#ifndef LULL_VIRTIO_QUEUE_H
#define LULL_VIRTIO_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/guest_mem.h"
#include "vmm/limits.h"

#define QUEUE_DESC_BYTES 16u /* of a descriptor, in any table */

/* The driver's wish, unchecked. */
struct queue_setup {
	uint64_t desc;
	uint64_t avail;
	uint64_t used;
	uint32_t size;
	bool ready;
};

struct queue {
	/* constant while the device is active */
	const struct guest_mem *mem;
	uint8_t *desc;
	uint8_t *avail;
	uint8_t *used;
	uint16_t size; /* 0: the driver does not use this queue */
	bool event_idx;
	bool indirect;

	uint16_t next_avail; /* next entry of the available ring to take */
	uint16_t next_used;  /* next entry of the used ring to fill */
	uint16_t published;  /* used entries the driver may see */
	uint16_t signalled;  /* used index at the last decision to interrupt */
	uint16_t in_flight;  /* heads taken and not given back */
	uint64_t heads[(LIMIT_QUEUE_SIZE + 63) / 64]; /* which those are */
};

/* True if `size` may be written to QueueNum of a queue of at most `max`. */
bool queue_size_valid(uint32_t size, uint16_t max);

/*
 * Checks `setup` and makes `q` of it. `features` are the negotiated ones.
 * -EINVAL for a bad size, -EFAULT for an address that is not aligned or a ring
 * that does not lie in one piece of RAM.
 */
int queue_init(struct queue *q, const struct guest_mem *mem, const struct queue_setup *setup,
	       uint16_t max, uint64_t features);

/*
 * Takes the next available head. 1 and the head; 0 if there is none; -EPROTO if
 * the ring contradicts itself: index too far ahead, head out of range or still
 * in flight. Nothing is taken then, and the queue must not be used further.
 */
int queue_pop(struct queue *q, uint16_t *ret_head);

/* Puts a head that was taken into the used ring, not yet visible to the driver. */
void queue_put(struct queue *q, uint16_t head, uint32_t written);
/* Shows the driver all entries that were put. */
void queue_publish(struct queue *q);

/* True if the driver wants an interrupt for what was published since the last call. */
bool queue_should_interrupt(struct queue *q);

/* Tells the driver that kicks are not needed, as far as the ring can say so. */
void queue_disable_kicks(struct queue *q);
/* Asks for a kick for the next entry. True if one has come meanwhile. */
bool queue_enable_kicks(struct queue *q);

#endif
