/*
 * Inside of the clock: shared by its registers (rtc_cmos.c) and its timer
 * thread (rtc_cmos_thread.c).
 */
#ifndef LULL_RTC_CMOS_IMPL_H
#define LULL_RTC_CMOS_IMPL_H

#include <stdatomic.h>

#include "devices/rtc_cmos_regs.h"
#include "devices/rtc_cmos_time.h"
#include "devices/rtc_cmos_timer.h"
#include "vmm/base/lock.h"
#include "vmm/device_thread.h"

#define TIME_WORDS (sizeof(struct rtc_time) / sizeof(uint64_t))
_Static_assert(sizeof(struct rtc_time) % sizeof(uint64_t) == 0, "published in whole words");

/* One of two copies of what is published: the state, and what it shows during one second. */
struct rtc_copy {
	_Atomic int64_t from_ns; /* these four: of struct rtc_shown */
	_Atomic uint64_t valid_ns, uip_after_ns;
	_Atomic uint8_t bytes[SHOWN];
	_Atomic uint64_t time[TIME_WORDS];
};

struct rtc {
	/* constant after create */
	struct device dev;
	struct irq_line line;
	struct rtc_clock clock;
	struct metrics *metrics;

	struct lock lock;
	/* under lock; the master copy of what is published */
	struct rtc_time time;

	/* atomic: written with the lock held, read by anyone; copy `sequence` & 1 is in force */
	_Atomic uint32_t sequence;
	struct rtc_copy copies[2];

	/* atomic: any vCPU; the guest serialises pairs of index and data */
	_Atomic uint8_t index;
	_Atomic uint8_t memory[RTC_BYTES]; /* all that time does not change, B, D and alarm too */
	/* atomic: any vCPU and the timer. IRQF here: the interrupt was raised */
	_Atomic uint8_t c;
	_Atomic int64_t seen_wall_ns, seen_monotonic_ns; /* flags up to here are in C or were read */
	atomic_bool awaits_read; /* who reads C pokes the timer */

	/* the device's thread, once it runs */
	struct rtc_timer timer;
	bool is_quiesced;
	int poke_fd; /* an eventfd; any thread signals it, from start to destroy */
	int wall_fd, monotonic_fd;
};

/* rtc_cmos.c; any thread, no lock */

struct rtc_now rtc_read_clocks(struct rtc *r);
/* The state as it was published last. Never waits for who publishes. */
struct rtc_time rtc_snapshot(struct rtc *r);

/* rtc_cmos_thread.c */

/* Any thread: has the timer look at the state again. */
void rtc_poke(struct rtc *r);
void rtc_thread_init(struct rtc *r);
int rtc_thread_start(struct device *d, struct error *err);
void rtc_thread_quiesce(struct device *d);
void rtc_thread_unquiesce(struct device *d);
void rtc_thread_fini(struct rtc *r);

#endif
