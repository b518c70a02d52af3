/*
 * What the clock's timer does at a given time: which flags it raises and when
 * it wants to run next. The thread around it is rtc_cmos_thread.c.
 *
 * The timer raises the flags that are enabled; the others are worked out when
 * register C is read. Of the periodic interrupt it counts the ticks: one that
 * comes due before the guest has read PF waits for that (policy `slew`) or is
 * dropped (`discard`).
 *
 * Threads: the clock's, or one that does its work (tests). No clock is read here.
 */
#ifndef LULL_RTC_CMOS_TIMER_H
#define LULL_RTC_CMOS_TIMER_H

#include "devices/rtc_cmos_time.h"
#include "vmm/config.h"
#include "vmm/metrics.h"

struct rtc_counts {
	metric ticks;      /* of the periodic interrupt that were raised */
	metric late_ticks; /* of them, those raised after the next was due */
	metric lost_ticks; /* dropped by the policy, or beyond LIMIT_RTC_BACKLOG */
};

struct rtc_timer {
	enum rtc_lost_ticks policy;
	int64_t wall_ns;    /* updates and alarms up to here were seen to */
	int64_t since_ns;   /* the last that was taken over from the time */
	int64_t divider_ns; /* what the cycle counts from */
	int64_t cycle;      /* ticks up to here were raised or dropped */
	bool awaits_read;   /* a tick waits for C to be read */
	struct rtc_counts counts;
};

struct rtc_due {
	uint8_t flags;    /* to be set in C */
	bool awaits_read; /* has to run again once C has been read */
	/* when it has to run again in any case, on each clock; RTC_NEVER */
	int64_t wall_ns, monotonic_ns;
};

/* `is_pf_unread`: PF is set in C. */
struct rtc_due rtc_timer_run(struct rtc_timer *timer, const struct rtc_time *t,
			     struct rtc_now now, bool is_pf_unread);

#endif
