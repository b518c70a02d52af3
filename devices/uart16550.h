/*
 * 16550A serial port: eight registers, a receive FIFO, one interrupt line, and
 * a console on the host behind it.
 */
#ifndef LULL_UART16550_H
#define LULL_UART16550_H

#include <stddef.h>
#include <stdint.h>

#include "vmm/base/error.h"
#include "vmm/bus.h"
#include "vmm/config.h"
#include "vmm/device.h"
#include "vmm/irq.h"

/* Opens the console. `line` is copied. Main thread. */
struct device *uart16550_create(const struct device_env *env, const struct serial_config *config,
				const struct irq_line *line, struct error *err);

/* Bytes from the host; returns how many were taken. Any thread. */
size_t uart16550_receive(struct device *d, const uint8_t *data, size_t n);

/* 8 ports, byte accesses. */
extern const struct bus_ops uart16550_bus_ops;

#endif
