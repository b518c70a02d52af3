/*
 * A driver without a guest: RAM of malloc'd regions around a hole, interrupt
 * lines and doorbells that only count, and short helpers that write registers,
 * descriptors and rings as a driver would, or as it never should.
 *
 * The device runs on its own thread, as it does in the daemon. rig_settle()
 * returns when that thread has served what was signalled before.
 */
#ifndef LULL_TEST_RING_RIG_H
#define LULL_TEST_RING_RIG_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "devices/virtio/device.h"
#include "vmm/device.h"
#include "vmm/guest_mem.h"
#include "vmm/metrics.h"

/* RAM: A and B adjoin, but are two regions; a hole; C. */
#define RAM_A 0x10000ull
#define RAM_A_END 0x50000ull
#define RAM_B RAM_A_END
#define RAM_B_END 0x60000ull
#define HOLE RAM_B_END
#define RAM_C 0x100000ull
#define RAM_C_END 0x110000ull

/* Where the helpers put rings, and where data may be */
#define RING_DESC(q) (RAM_A + 0x4000ull * (q))
#define RING_AVAIL(q) (RING_DESC(q) + 0x1000)
#define RING_USED(q) (RING_DESC(q) + 0x2000)
#define DATA (RAM_A + 0x10000ull)

/* Registers */
enum {
	R_MAGIC = 0x00,
	R_VERSION = 0x04,
	R_DEVICE_ID = 0x08,
	R_VENDOR_ID = 0x0c,
	R_DEVICE_FEATURES = 0x10,
	R_DEVICE_FEATURES_SEL = 0x14,
	R_DRIVER_FEATURES = 0x20,
	R_DRIVER_FEATURES_SEL = 0x24,
	R_QUEUE_SEL = 0x30,
	R_QUEUE_NUM_MAX = 0x34,
	R_QUEUE_NUM = 0x38,
	R_QUEUE_READY = 0x44,
	R_QUEUE_NOTIFY = 0x50,
	R_INTERRUPT_STATUS = 0x60,
	R_INTERRUPT_ACK = 0x64,
	R_STATUS = 0x70,
	R_DESC_LOW = 0x80,
	R_DESC_HIGH = 0x84,
	R_AVAIL_LOW = 0x90,
	R_AVAIL_HIGH = 0x94,
	R_USED_LOW = 0xa0,
	R_USED_HIGH = 0xa4,
	R_SHM_LEN_LOW = 0xb0,
	R_GENERATION = 0xfc,
	R_CONFIG = 0x100,
};

/* Status bits */
#define S_ACK 1u
#define S_DRIVER 2u
#define S_DRIVER_OK 4u
#define S_FEATURES_OK 8u
#define S_NEEDS_RESET 0x40u
#define S_FAILED 0x80u

/* Descriptor flags */
#define D_NEXT 1u
#define D_WRITE 2u
#define D_INDIRECT 4u

#define F_VERSION_1 (1ull << 32)
#define F_EVENT_IDX (1ull << 29)
#define F_INDIRECT (1ull << 28)

struct rig_queue {
	uint32_t size;
	uint16_t avail_idx;
	uint64_t desc;
	uint64_t avail;
	uint64_t used;
};

struct rig {
	struct guest_mem mem;
	struct device_env env;
	struct doorbells doorbells;
	struct irq_line irq;
	_Atomic uint32_t edges;
	struct device *d;
	struct virtio_device *v;
	struct rig_queue q[LIMIT_QUEUES];
};

/* Memory and environment, no device. Never fails: the test does. */
struct rig *rig_new(void);
/* Destroys the device too. */
void rig_free(struct rig *r);
/* Attaches and starts a device that was made with r->env. */
void rig_place(struct rig *r, struct device *d);

uint64_t rig_read(struct rig *r, uint64_t offset, unsigned width);
void rig_write(struct rig *r, uint64_t offset, unsigned width, uint64_t value);
uint32_t rd(struct rig *r, uint32_t reg);
void wr(struct rig *r, uint32_t reg, uint32_t value);

/* Up to FEATURES_OK; true if the device kept that bit. */
bool rig_negotiate(struct rig *r, uint64_t features);
/* Selects and describes a queue with the default addresses, and makes it ready. */
void rig_queue(struct rig *r, unsigned queue, uint32_t size);
/* Writes the addresses in r->q[queue] and makes the queue ready. */
void rig_queue_registers(struct rig *r, unsigned queue);
void rig_driver_ok(struct rig *r);
/* All of that for all queues of the device. */
void rig_boot(struct rig *r, uint64_t features, uint32_t size);
void rig_reset(struct rig *r);

uint8_t *rig_ram(struct rig *r, uint64_t gpa);
void put16(struct rig *r, uint64_t gpa, uint16_t v);
void put32(struct rig *r, uint64_t gpa, uint32_t v);
void put64(struct rig *r, uint64_t gpa, uint64_t v);
uint16_t get16(struct rig *r, uint64_t gpa);
uint32_t get32(struct rig *r, uint64_t gpa);

/* A descriptor of a table at `table`. */
void rig_desc_at(struct rig *r, uint64_t table, unsigned i, uint64_t addr, uint32_t len,
		 uint16_t flags, uint16_t next);
void rig_desc(struct rig *r, unsigned queue, unsigned i, uint64_t addr, uint32_t len,
	      uint16_t flags, uint16_t next);
/* Makes a head available and shows it. */
void rig_avail(struct rig *r, unsigned queue, uint16_t head);
void rig_avail_idx(struct rig *r, unsigned queue, uint16_t idx);
/* As the kernel's doorbell does. */
void rig_kick(struct rig *r, unsigned queue);
void rig_settle(struct rig *r);
/* Available, kicked, settled. */
void rig_submit(struct rig *r, unsigned queue, uint16_t head);

uint16_t rig_used_idx(struct rig *r, unsigned queue);
uint32_t rig_used_id(struct rig *r, unsigned queue, unsigned n);
uint32_t rig_used_len(struct rig *r, unsigned queue, unsigned n);
/* Waits up to 5 s until the used index is `idx`. */
void rig_wait_used(struct rig *r, unsigned queue, uint16_t idx);
uint16_t rig_avail_event(struct rig *r, unsigned queue);
void rig_set_used_event(struct rig *r, unsigned queue, uint16_t v);
bool rig_needs_reset(struct rig *r);
/* Runs fn(arg) on the device's thread. */
void rig_call(struct rig *r, void (*fn)(void *arg), void *arg);

#endif
