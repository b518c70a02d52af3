/*
 * Virtio over memory-mapped I/O.
 *
 * Threads: vCPU threads, many at once. Locks: the device's, but for the two
 * interrupt registers and the doorbell, which are one atomic each.
 * Not here: what a status means (device.c). A register takes aligned 32-bit
 * accesses alone: others read all ones and write nothing. Configuration space
 * takes any width; behind its end it reads 0, and no field of it is writable.
 * A queue in use cannot be stopped by itself: QueueReady is frozen from DRIVER_OK
 * to the next reset, like its size and addresses.
 */
#include "devices/virtio/mmio.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <stddef.h>
#include <string.h>

#include "devices/virtio/device.h"
#include "vmm/base/bits.h"
#include "vmm/base/fd.h"
#include "vmm/limits.h"

/* MMIO device registers, virtio 1.2 section 4.2.2 */
enum mmio_reg {
	REG_MAGIC_VALUE = 0x000,
	REG_VERSION = 0x004,
	REG_DEVICE_ID = 0x008,
	REG_VENDOR_ID = 0x00c,
	REG_DEVICE_FEATURES = 0x010,
	REG_DEVICE_FEATURES_SEL = 0x014,
	REG_DRIVER_FEATURES = 0x020,
	REG_DRIVER_FEATURES_SEL = 0x024,
	REG_QUEUE_SEL = 0x030,
	REG_QUEUE_NUM_MAX = 0x034,
	REG_QUEUE_NUM = 0x038,
	REG_QUEUE_READY = 0x044,
	REG_QUEUE_NOTIFY = 0x050,
	REG_INTERRUPT_STATUS = 0x060,
	REG_INTERRUPT_ACK = 0x064,
	REG_STATUS = 0x070,
	REG_QUEUE_DESC_LOW = 0x080,
	REG_QUEUE_DESC_HIGH = 0x084,
	REG_QUEUE_DRIVER_LOW = 0x090,
	REG_QUEUE_DRIVER_HIGH = 0x094,
	REG_QUEUE_DEVICE_LOW = 0x0a0,
	REG_QUEUE_DEVICE_HIGH = 0x0a4,
	REG_SHM_SEL = 0x0ac,
	REG_SHM_LEN_LOW = 0x0b0,
	REG_SHM_LEN_HIGH = 0x0b4,
	REG_SHM_BASE_LOW = 0x0b8,
	REG_SHM_BASE_HIGH = 0x0bc,
	REG_QUEUE_RESET = 0x0c0,
	REG_CONFIG_GENERATION = 0x0fc,
	REG_CONFIG = 0x100,
};

#define MAGIC_VALUE 0x74726976u /* "virt" */
#define VERSION 2u
#define VENDOR_ID 0x4c4c554cu /* "LULL" */
#define STATUS_VALID 0xffu

static bool is_register_access(uint64_t offset, unsigned width)
{
	return width == 4 && is_aligned(offset, 4);
}

/* The selected queue, or NULL: every access to a queue's registers goes through here. */
static struct queue_setup *selected_locked(struct virtio_device *v) TSA_REQUIRES(v->lock)
{
	return v->queue_sel < v->queue_count ? &v->setups[v->queue_sel] : NULL;
}

static uint64_t read_config(struct virtio_device *v, uint64_t offset, unsigned width)
{
	uint8_t bytes[8] = { 0 };
	unsigned i;

	lock_take(&v->lock);
	for (i = 0; i < width && i < sizeof(bytes); i++) {
		if (offset < VIRTIO_CONFIG_MAX && offset + i < VIRTIO_CONFIG_MAX)
			bytes[i] = v->config[offset + i];
	}
	lock_release(&v->lock);
	return load_le64(bytes);
}

static uint32_t features_word(uint64_t features, uint32_t sel)
{
	return sel < 2 ? (uint32_t)(features >> (32 * sel)) : 0;
}

static uint32_t read_register_locked(struct virtio_device *v, enum mmio_reg reg)
	TSA_REQUIRES(v->lock)
{
	const struct queue_setup *q = selected_locked(v);

	switch (reg) {
	case REG_MAGIC_VALUE:
		return MAGIC_VALUE;
	case REG_VERSION:
		return VERSION;
	case REG_DEVICE_ID:
		return v->virtio_id;
	case REG_VENDOR_ID:
		return VENDOR_ID;
	case REG_DEVICE_FEATURES:
		return features_word(v->offered, v->device_features_sel);
	case REG_QUEUE_NUM_MAX:
		return q ? LIMIT_QUEUE_SIZE : 0;
	case REG_QUEUE_READY:
		return q && q->ready;
	case REG_INTERRUPT_STATUS:
		return atomic_load(&v->interrupts);
	case REG_STATUS:
		return virtio_device_get_status(v);
	case REG_SHM_LEN_LOW:
	case REG_SHM_LEN_HIGH:
	case REG_SHM_BASE_LOW:
	case REG_SHM_BASE_HIGH:
		return UINT32_MAX; /* no shared memory region exists */
	case REG_CONFIG_GENERATION:
		return atomic_load(&v->generation);
	case REG_DEVICE_FEATURES_SEL:
	case REG_DRIVER_FEATURES:
	case REG_DRIVER_FEATURES_SEL:
	case REG_QUEUE_SEL:
	case REG_QUEUE_NUM:
	case REG_QUEUE_NOTIFY:
	case REG_INTERRUPT_ACK:
	case REG_QUEUE_DESC_LOW:
	case REG_QUEUE_DESC_HIGH:
	case REG_QUEUE_DRIVER_LOW:
	case REG_QUEUE_DRIVER_HIGH:
	case REG_QUEUE_DEVICE_LOW:
	case REG_QUEUE_DEVICE_HIGH:
	case REG_SHM_SEL:
	case REG_QUEUE_RESET:
	case REG_CONFIG:
		return 0; /* write-only, or not offered */
	}
	return 0; /* reserved */
}

static uint64_t mmio_read(void *device, uint64_t offset, unsigned width)
{
	struct virtio_device *v = virtio_of(device);
	uint32_t value;

	if (offset >= REG_CONFIG)
		return read_config(v, offset - REG_CONFIG, width);
	if (!is_register_access(offset, width))
		return UINT64_MAX;
	if (offset == REG_INTERRUPT_STATUS)
		return atomic_load(&v->interrupts);
	lock_take(&v->lock);
	value = read_register_locked(v, (enum mmio_reg)offset);
	lock_release(&v->lock);
	return value;
}

static void write_driver_features_locked(struct virtio_device *v, uint32_t value)
	TSA_REQUIRES(v->lock)
{
	unsigned shift = 32 * v->driver_features_sel;

	if (v->driver_features_sel >= 2 ||
	    (atomic_load(&v->status) & VIRTIO_CONFIG_S_FEATURES_OK))
		return;
	v->accepted &= ~((uint64_t)UINT32_MAX << shift);
	v->accepted |= (uint64_t)value << shift;
}

static void set_low(uint64_t *address, uint32_t value)
{
	*address = (*address & ~(uint64_t)UINT32_MAX) | value;
}

static void set_high(uint64_t *address, uint32_t value)
{
	*address = (*address & UINT32_MAX) | (uint64_t)value << 32;
}

/* The registers of the selected queue; they are writable while it is not ready. */
static void write_queue_locked(struct virtio_device *v, enum mmio_reg reg, uint32_t value)
	TSA_REQUIRES(v->lock)
{
	struct queue_setup *q = selected_locked(v);

	if (!q || !virtio_device_configurable_locked(v))
		return;
	if (reg == REG_QUEUE_READY) {
		q->ready = value == 1 && queue_size_valid(q->size, LIMIT_QUEUE_SIZE);
		return;
	}
	if (q->ready)
		return;
	if (reg == REG_QUEUE_NUM && queue_size_valid(value, LIMIT_QUEUE_SIZE))
		q->size = value;
	else if (reg == REG_QUEUE_DESC_LOW)
		set_low(&q->desc, value);
	else if (reg == REG_QUEUE_DESC_HIGH)
		set_high(&q->desc, value);
	else if (reg == REG_QUEUE_DRIVER_LOW)
		set_low(&q->avail, value);
	else if (reg == REG_QUEUE_DRIVER_HIGH)
		set_high(&q->avail, value);
	else if (reg == REG_QUEUE_DEVICE_LOW)
		set_low(&q->used, value);
	else if (reg == REG_QUEUE_DEVICE_HIGH)
		set_high(&q->used, value);
}

static void write_register_locked(struct virtio_device *v, enum mmio_reg reg, uint32_t value)
	TSA_REQUIRES(v->lock)
{
	switch (reg) {
	case REG_DEVICE_FEATURES_SEL:
		v->device_features_sel = value;
		return;
	case REG_DRIVER_FEATURES:
		write_driver_features_locked(v, value);
		return;
	case REG_DRIVER_FEATURES_SEL:
		v->driver_features_sel = value;
		return;
	case REG_QUEUE_SEL:
		v->queue_sel = value;
		return;
	case REG_QUEUE_NUM:
	case REG_QUEUE_READY:
	case REG_QUEUE_DESC_LOW:
	case REG_QUEUE_DESC_HIGH:
	case REG_QUEUE_DRIVER_LOW:
	case REG_QUEUE_DRIVER_HIGH:
	case REG_QUEUE_DEVICE_LOW:
	case REG_QUEUE_DEVICE_HIGH:
		write_queue_locked(v, reg, value);
		return;
	case REG_QUEUE_NOTIFY:
	case REG_INTERRUPT_ACK:
	case REG_STATUS:
		return; /* served without the lock */
	case REG_MAGIC_VALUE:
	case REG_VERSION:
	case REG_DEVICE_ID:
	case REG_VENDOR_ID:
	case REG_DEVICE_FEATURES:
	case REG_QUEUE_NUM_MAX:
	case REG_INTERRUPT_STATUS:
	case REG_SHM_SEL:
	case REG_SHM_LEN_LOW:
	case REG_SHM_LEN_HIGH:
	case REG_SHM_BASE_LOW:
	case REG_SHM_BASE_HIGH:
	case REG_QUEUE_RESET:
	case REG_CONFIG_GENERATION:
	case REG_CONFIG:
		return; /* read-only, or not offered */
	}
}

static enum bus_action mmio_write(void *device, uint64_t offset, unsigned width, uint64_t value)
{
	struct virtio_device *v = virtio_of(device);
	uint32_t word = (uint32_t)value;

	if (offset >= REG_CONFIG || !is_register_access(offset, width))
		return BUS_DONE;
	if (offset == REG_INTERRUPT_ACK) {
		atomic_fetch_and(&v->interrupts, ~word);
	} else if (offset == REG_QUEUE_NOTIFY) {
		/* Only where the doorbell does not catch the write in the kernel. */
		if (word < v->queue_count && v->doorbells[word].fd >= 0)
			fd_eventfd_signal(v->doorbells[word].fd);
	} else if (offset == REG_STATUS) {
		virtio_device_set_status(v, word & ~STATUS_VALID ? UINT32_MAX : word);
	} else {
		lock_take(&v->lock);
		if (!v->resetting)
			write_register_locked(v, (enum mmio_reg)offset, word);
		lock_release(&v->lock);
	}
	return BUS_DONE;
}

int virtio_mmio_attach(struct device *d, const struct device_env *env, uint64_t gpa,
		       const struct irq_line *line, struct error *err)
{
	struct virtio_device *v = virtio_of(d);
	unsigned i;
	int ret;

	v->irq = *line;
	for (i = 0; i < v->queue_count; i++) {
		ret = doorbell_init(&v->doorbells[i], env->doorbells, BUS_MMIO,
				    gpa + REG_QUEUE_NOTIFY, 4, i, err);
		if (ret < 0)
			goto undo_doorbells;
	}
	return 0;

undo_doorbells:
	while (i--)
		doorbell_fini(&v->doorbells[i]);
	return ret;
}

/* What the device's own thread changes; it says so. */
static uint64_t mmio_rests(void *device, uint64_t offset)
{
	switch (offset) {
	case REG_STATUS:
	case REG_INTERRUPT_STATUS:
	case REG_CONFIG_GENERATION:
		return UINT64_MAX;
	default:
		return 0;
	}
}

const struct bus_ops virtio_mmio_bus_ops = {
	.read = mmio_read,
	.write = mmio_write,
	.rests = mmio_rests,
};
