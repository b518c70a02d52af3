/* A queue without a device. */
#include "tests/devices/virtio/queue_fixture.h"

#include <stdlib.h>
#include <string.h>

int queue_open(struct queue_fixture *f, uint32_t size, uint64_t features)
{
	struct rig_queue *q = &f->r->q[0];
	struct queue_setup setup;

	*q = (struct rig_queue){
		.size = size,
		.desc = RING_DESC(0),
		.avail = RING_AVAIL(0),
		.used = RING_USED(0),
	};
	memset(rig_ram(f->r, RING_DESC(0)), 0, 0x4000);
	setup = (struct queue_setup){
		.desc = q->desc,
		.avail = q->avail,
		.used = q->used,
		.size = size,
		.ready = true,
	};
	return queue_init(&f->q, &f->r->mem, &setup, LIMIT_QUEUE_SIZE, features);
}

int queue_setup_8(void **state)
{
	struct queue_fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->r = rig_new();
	*state = f;
	return queue_open(f, 8, F_INDIRECT);
}

int queue_teardown(void **state)
{
	struct queue_fixture *f = *state;

	rig_free(f->r);
	free(f);
	return 0;
}

void d(struct queue_fixture *f, unsigned i, uint64_t addr, uint32_t len, uint16_t flags,
       uint16_t next)
{
	rig_desc(f->r, 0, i, addr, len, flags, next);
}

int parse(struct queue_fixture *f, uint16_t head)
{
	return chain_parse(&f->c, &f->q, head);
}

uint16_t pop(struct queue_fixture *f)
{
	uint16_t head = 0xffff;

	assert_int_equal(queue_pop(&f->q, &head), 1);
	return head;
}
