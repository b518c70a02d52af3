/*
 * The virtio-mmio transport, version 2: a device's registers as a page of
 * memory-mapped I/O and one interrupt line.
 */
#ifndef LULL_VIRTIO_MMIO_H
#define LULL_VIRTIO_MMIO_H

#include <stdint.h>

#include "vmm/base/error.h"
#include "vmm/bus.h"
#include "vmm/device.h"
#include "vmm/irq.h"

#define VIRTIO_MMIO_SIZE 0x1000u

/*
 * Places `d`, a virtio device, at `gpa` with its interrupt on `line`, and makes
 * its doorbells. Main thread, before it is started. On failure it has none.
 */
int virtio_mmio_attach(struct device *d, const struct device_env *env, uint64_t gpa,
		       const struct irq_line *line, struct error *err);

/* For a region of VIRTIO_MMIO_SIZE, widths 1 to 8; its device is the struct device. */
extern const struct bus_ops virtio_mmio_bus_ops;

#endif
