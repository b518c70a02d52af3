/*
 * A byte that a guest writes when it is up; the time since the VM was made is
 * then logged.
 */
#ifndef LULL_BOOT_TIMER_H
#define LULL_BOOT_TIMER_H

#include "vmm/base/error.h"
#include "vmm/bus.h"
#include "vmm/device.h"

#define BOOT_TIMER_MAGIC 123

/* Time counts from here. Main thread. */
struct device *boot_timer_create(const struct device_env *env, struct error *err);

/* One byte at offset 0. */
extern const struct bus_ops boot_timer_bus_ops;

#endif
