/*
 * MC146818 real-time clock with 128 bytes of CMOS memory: time of day from the
 * host's clock plus an offset that the guest may set.
 */
#ifndef LULL_RTC_CMOS_H
#define LULL_RTC_CMOS_H

#include <stdint.h>

#include "vmm/base/error.h"
#include "vmm/bus.h"
#include "vmm/device.h"
#include "vmm/irq.h"

/* Where the time comes from; nanoseconds since 1970, UTC. Any thread. */
struct rtc_clock {
	int64_t (*now_ns)(void *arg);
	void *arg;
};

/* `line` is copied; it stays quiet until alarms exist. Main thread. */
struct device *rtc_cmos_create(const struct device_env *env, const struct irq_line *line,
			       struct error *err);
/* The same with another clock than the host's. */
struct device *rtc_cmos_create_with_clock(const struct device_env *env,
					  const struct irq_line *line,
					  const struct rtc_clock *clock, struct error *err);

/* 2 ports, byte accesses: index at 0, data at 1. */
extern const struct bus_ops rtc_cmos_bus_ops;

#endif
