/*
 * i8042 keyboard controller with a keyboard and no second port: enough for
 * drivers to find one, to reset the machine, and for Ctrl-Alt-Del.
 */
#ifndef LULL_I8042_H
#define LULL_I8042_H

#include "vmm/base/error.h"
#include "vmm/bus.h"
#include "vmm/device.h"
#include "vmm/irq.h"

/* `line` is copied. Main thread. */
struct device *i8042_create(const struct device_env *env, const struct irq_line *line,
			    struct error *err);

/*
 * Types Ctrl-Alt-Del, pressed and released. -ENOSPC if the guest has not read
 * what was typed before, -EAGAIN if its keyboard is switched off. Any thread.
 */
int i8042_ctrl_alt_del(struct device *d);

/* 5 ports, byte accesses: data at 0, status and command at 4. */
extern const struct bus_ops i8042_bus_ops;

#endif
