/*
 * MC146818 real-time clock with 128 bytes of CMOS memory: time of day from the
 * host's clock plus an offset that the guest may set, alarm, update and periodic
 * interrupts.
 */
#ifndef LULL_RTC_CMOS_H
#define LULL_RTC_CMOS_H

#include <stdint.h>

#include "vmm/base/error.h"
#include "vmm/bus.h"
#include "vmm/config.h"
#include "vmm/device.h"
#include "vmm/irq.h"

/* Indexes of the bytes that only firmware tables can announce. */
#define RTC_CMOS_CENTURY 0x32
#define RTC_CMOS_DAY_ALARM 0x7d /* day of the month; 0 or from 0xc0 on: any */
#define RTC_CMOS_MONTH_ALARM 0x7e

/* Where the time comes from, in nanoseconds. Any thread. */
struct rtc_clock {
	int64_t (*wall_ns)(void *arg); /* since 1970, UTC; may jump */
	int64_t (*monotonic_ns)(void *arg);
	void *arg;
};

/* `line` is copied; it gets one edge an interrupt. Main thread. */
struct device *rtc_cmos_create(const struct device_env *env, const struct rtc_config *config,
			       const struct irq_line *line, struct error *err);
/* The same with another clock than the host's, which its timer thread cannot wait for. */
struct device *rtc_cmos_create_with_clock(const struct device_env *env,
					  const struct rtc_config *config,
					  const struct irq_line *line,
					  const struct rtc_clock *clock, struct error *err);

/* 2 ports, byte accesses: index at 0, data at 1. */
extern const struct bus_ops rtc_cmos_bus_ops;

#define RTC_CMOS_NEVER INT64_MAX

/* When the timer has to run next, on each clock; RTC_CMOS_NEVER. */
struct rtc_cmos_wakeup {
	int64_t wall_ns;
	int64_t monotonic_ns;
};

/*
 * What the clock's thread does whenever it wakes: raises what is due. For that
 * thread; for tests, of a device that was not started.
 */
struct rtc_cmos_wakeup rtc_cmos_run_timer(struct device *d);

#endif
