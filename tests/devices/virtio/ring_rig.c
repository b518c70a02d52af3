/*
 * The rig. Its RAM is of malloc'd regions, so that a sanitizer sees a byte too
 * far; doorbells are remembered by the device itself.
 */
#include "tests/devices/virtio/ring_rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "devices/virtio/mmio.h"
#include "vmm/base/bits.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/device_thread.h"

#define GPA 0xc0001000ull

static int count_edge(void *chip, uint32_t gsi, bool level)
{
	struct rig *r = chip;

	if (level)
		atomic_fetch_add(&r->edges, 1);
	return 0;
}

static int no_assign(void *vm, enum bus_kind kind, uint64_t address, unsigned width,
		     uint64_t value, int fd, bool on)
{
	return 0;
}

static const struct irq_ops irq_ops = { .set = count_edge };
static const struct doorbell_ops doorbell_ops = { .assign = no_assign };

static void add_ram(struct rig *r, uint64_t gpa, uint64_t end)
{
	struct guest_mem_region *region = &r->mem.regions[r->mem.count++];

	region->gpa = gpa;
	region->size = end - gpa;
	region->hva = calloc(1, region->size);
	region->fd = -EBADF;
	assert_non_null(region->hva);
}

struct rig *rig_new(void)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	log_set_level(LOG_LEVEL_OFF);
	add_ram(r, RAM_A, RAM_A_END);
	add_ram(r, RAM_B, RAM_B_END);
	add_ram(r, RAM_C, RAM_C_END);
	r->doorbells.ops = &doorbell_ops;
	r->irq.ops = &irq_ops;
	r->irq.chip = r;
	r->env.mem = &r->mem;
	r->env.doorbells = &r->doorbells;
	r->env.metrics = metrics_new();
	assert_non_null(r->env.metrics);
	return r;
}

void rig_free(struct rig *r)
{
	uint32_t i;

	if (r->d)
		r->d->ops->destroy(r->d);
	metrics_free(r->env.metrics);
	for (i = 0; i < r->mem.count; i++)
		free(r->mem.regions[i].hva);
	free(r);
}

void rig_place(struct rig *r, struct device *d)
{
	struct error err;

	assert_non_null(d);
	r->d = d;
	r->v = virtio_of(d);
	assert_int_equal(virtio_mmio_attach(d, &r->env, GPA, &r->irq, &err), 0);
	assert_int_equal(d->ops->start(d, &err), 0);
}

uint64_t rig_read(struct rig *r, uint64_t offset, unsigned width)
{
	return virtio_mmio_bus_ops.read(r->d, offset, width);
}

void rig_write(struct rig *r, uint64_t offset, unsigned width, uint64_t value)
{
	assert_int_equal(virtio_mmio_bus_ops.write(r->d, offset, width, value), BUS_DONE);
}

uint32_t rd(struct rig *r, uint32_t reg)
{
	return (uint32_t)rig_read(r, reg, 4);
}

void wr(struct rig *r, uint32_t reg, uint32_t value)
{
	rig_write(r, reg, 4, value);
}

bool rig_negotiate(struct rig *r, uint64_t features)
{
	wr(r, R_STATUS, S_ACK);
	wr(r, R_STATUS, S_ACK | S_DRIVER);
	wr(r, R_DRIVER_FEATURES_SEL, 0);
	wr(r, R_DRIVER_FEATURES, (uint32_t)features);
	wr(r, R_DRIVER_FEATURES_SEL, 1);
	wr(r, R_DRIVER_FEATURES, (uint32_t)(features >> 32));
	wr(r, R_STATUS, S_ACK | S_DRIVER | S_FEATURES_OK);
	return rd(r, R_STATUS) & S_FEATURES_OK;
}

void rig_queue_registers(struct rig *r, unsigned queue)
{
	const struct rig_queue *q = &r->q[queue];

	wr(r, R_QUEUE_SEL, queue);
	wr(r, R_QUEUE_NUM, q->size);
	wr(r, R_DESC_LOW, (uint32_t)q->desc);
	wr(r, R_DESC_HIGH, (uint32_t)(q->desc >> 32));
	wr(r, R_AVAIL_LOW, (uint32_t)q->avail);
	wr(r, R_AVAIL_HIGH, (uint32_t)(q->avail >> 32));
	wr(r, R_USED_LOW, (uint32_t)q->used);
	wr(r, R_USED_HIGH, (uint32_t)(q->used >> 32));
	wr(r, R_QUEUE_READY, 1);
}

void rig_queue(struct rig *r, unsigned queue, uint32_t size)
{
	r->q[queue] = (struct rig_queue){
		.size = size,
		.desc = RING_DESC(queue),
		.avail = RING_AVAIL(queue),
		.used = RING_USED(queue),
	};
	memset(rig_ram(r, RING_DESC(queue)), 0, 0x4000);
	rig_queue_registers(r, queue);
}

void rig_driver_ok(struct rig *r)
{
	wr(r, R_STATUS, S_ACK | S_DRIVER | S_FEATURES_OK | S_DRIVER_OK);
	rig_settle(r);
}

void rig_boot(struct rig *r, uint64_t features, uint32_t size)
{
	unsigned i;

	assert_true(rig_negotiate(r, features));
	for (i = 0; i < r->v->queue_count; i++)
		rig_queue(r, i, size);
	rig_driver_ok(r);
	assert_false(rig_needs_reset(r));
}

void rig_reset(struct rig *r)
{
	wr(r, R_STATUS, 0);
	assert_int_equal(rd(r, R_STATUS), 0);
}

uint8_t *rig_ram(struct rig *r, uint64_t gpa)
{
	uint8_t *p = guest_mem_span(&r->mem, gpa, 1);

	assert_non_null(p);
	return p;
}

void put16(struct rig *r, uint64_t gpa, uint16_t v)
{
	store_le16(rig_ram(r, gpa), v);
}

void put32(struct rig *r, uint64_t gpa, uint32_t v)
{
	store_le32(rig_ram(r, gpa), v);
}

void put64(struct rig *r, uint64_t gpa, uint64_t v)
{
	store_le64(rig_ram(r, gpa), v);
}

uint16_t get16(struct rig *r, uint64_t gpa)
{
	return load_le16(rig_ram(r, gpa));
}

uint32_t get32(struct rig *r, uint64_t gpa)
{
	return load_le32(rig_ram(r, gpa));
}

void rig_desc_at(struct rig *r, uint64_t table, unsigned i, uint64_t addr, uint32_t len,
		 uint16_t flags, uint16_t next)
{
	uint64_t at = table + 16ull * i;

	put64(r, at, addr);
	put32(r, at + 8, len);
	put16(r, at + 12, flags);
	put16(r, at + 14, next);
}

void rig_desc(struct rig *r, unsigned queue, unsigned i, uint64_t addr, uint32_t len,
	      uint16_t flags, uint16_t next)
{
	rig_desc_at(r, r->q[queue].desc, i, addr, len, flags, next);
}

void rig_avail_idx(struct rig *r, unsigned queue, uint16_t idx)
{
	r->q[queue].avail_idx = idx;
	guest_store_release16(rig_ram(r, r->q[queue].avail + 2), idx);
}

void rig_avail(struct rig *r, unsigned queue, uint16_t head)
{
	struct rig_queue *q = &r->q[queue];

	put16(r, q->avail + 4 + 2ull * (q->avail_idx & (q->size - 1)), head);
	rig_avail_idx(r, queue, (uint16_t)(q->avail_idx + 1));
}

void rig_kick(struct rig *r, unsigned queue)
{
	fd_eventfd_signal(r->v->doorbells[queue].fd);
}

void rig_call(struct rig *r, void (*fn)(void *arg), void *arg)
{
	assert_int_equal(device_thread_call(r->d->thread, fn, arg), 0);
}

static void nothing(void *arg)
{
}

/*
 * A call and a kick may be served in either order in one turn of the loop; so
 * the second call comes after the kick, and the third after what that signalled.
 */
void rig_settle(struct rig *r)
{
	unsigned i;

	for (i = 0; i < 4; i++)
		rig_call(r, nothing, NULL);
}

void rig_submit(struct rig *r, unsigned queue, uint16_t head)
{
	rig_avail(r, queue, head);
	rig_kick(r, queue);
	rig_settle(r);
}

uint16_t rig_used_idx(struct rig *r, unsigned queue)
{
	return guest_load_acquire16(rig_ram(r, r->q[queue].used + 2));
}

static uint64_t used_elem(struct rig *r, unsigned queue, unsigned n)
{
	return r->q[queue].used + 4 + 8ull * (n & (r->q[queue].size - 1));
}

uint32_t rig_used_id(struct rig *r, unsigned queue, unsigned n)
{
	return get32(r, used_elem(r, queue, n));
}

uint32_t rig_used_len(struct rig *r, unsigned queue, unsigned n)
{
	return get32(r, used_elem(r, queue, n) + 4);
}

void rig_wait_used(struct rig *r, unsigned queue, uint16_t idx)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	int i;

	for (i = 0; i < 5000 && rig_used_idx(r, queue) != idx; i++)
		nanosleep(&ms, NULL);
	assert_int_equal(rig_used_idx(r, queue), idx);
}

uint16_t rig_avail_event(struct rig *r, unsigned queue)
{
	return get16(r, r->q[queue].used + 4 + 8ull * r->q[queue].size);
}

void rig_set_used_event(struct rig *r, unsigned queue, uint16_t v)
{
	put16(r, r->q[queue].avail + 4 + 2ull * r->q[queue].size, v);
}

bool rig_needs_reset(struct rig *r)
{
	return rd(r, R_STATUS) & S_NEEDS_RESET;
}
