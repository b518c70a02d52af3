/*
 * The clock's timer. Threads: the clock's. Locks: none.
 */
#include "devices/rtc_cmos_timer.h"

#include "devices/rtc_cmos_regs.h"

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Updates and alarms follow the wall clock wherever it jumps: over some, or back. */
static void run_wall(struct rtc_timer *timer, const struct rtc_time *t, struct rtc_now now,
		     struct rtc_due *due)
{
	struct rtc_now from = { .wall_ns = timer->wall_ns, .monotonic_ns = now.monotonic_ns };

	if (timer->since_ns != t->since_ns)
		from.wall_ns = later(from.wall_ns, t->since_ns);
	timer->since_ns = t->since_ns;
	timer->wall_ns = now.wall_ns;
	if (!rtc_time_is_running(t) || !(t->b & (RTC_B_UIE | RTC_B_AIE)))
		return;
	due->flags |= rtc_time_flags_between(t, from, now) & t->b & (RTC_C_UF | RTC_C_AF);
	if (t->b & RTC_B_AIE)
		due->wall_ns = rtc_time_next_alarm(t, now.wall_ns);
	if (t->b & RTC_B_UIE)
		due->wall_ns = earlier(due->wall_ns, rtc_time_next_update(t, now.wall_ns));
}

/* Gives ticks up: all but the last `keep` that are due. Returns how many are left. */
static int64_t drop(struct rtc_timer *timer, int64_t ticks, int64_t keep, int shift)
{
	int64_t pending = ticks - (timer->cycle >> shift);

	if (pending <= keep)
		return pending;
	metric_add(&timer->counts.lost_ticks, (uint64_t)(pending - keep));
	timer->cycle = (ticks - keep) << shift;
	return keep;
}

/* One of `pending` ticks becomes an interrupt; returns how many are left. */
static int64_t raise_tick(struct rtc_timer *timer, int64_t pending, int shift, struct rtc_due *due)
{
	due->flags |= RTC_C_PF;
	timer->cycle = ((timer->cycle >> shift) + 1) << shift;
	metric_count(&timer->counts.ticks);
	if (pending > 1 || timer->awaits_read)
		metric_count(&timer->counts.late_ticks);
	return pending - 1;
}

static void run_periodic(struct rtc_timer *timer, const struct rtc_time *t, struct rtc_now now,
			 bool is_pf_unread, struct rtc_due *due)
{
	int64_t cycle = rtc_time_cycle(t, now.monotonic_ns);
	int shift = rtc_time_tick_shift(t);
	int64_t ticks, pending;

	if (timer->divider_ns != t->divider_ns)
		timer->cycle = 0;
	timer->divider_ns = t->divider_ns;
	timer->cycle = later(timer->cycle, t->periodic_from);
	if (!rtc_time_is_periodic(t)) {
		timer->cycle = cycle;
		timer->awaits_read = false;
		return;
	}
	ticks = cycle >> shift;
	pending = drop(timer, ticks, LIMIT_RTC_BACKLOG, shift);
	if (timer->policy == RTC_LOST_TICKS_DISCARD && !is_pf_unread)
		/* of those that the guest has kept waiting none is left; of late ones, one is */
		pending = drop(timer, ticks, !timer->awaits_read, shift);
	if (pending > 0 && !is_pf_unread)
		pending = raise_tick(timer, pending, shift, due);
	timer->awaits_read = pending > 0;
	if (pending <= 0)
		due->monotonic_ns = rtc_time_of_cycle(t, (ticks + 1) << shift);
}

struct rtc_due rtc_timer_run(struct rtc_timer *timer, const struct rtc_time *t,
			     struct rtc_now now, bool is_pf_unread)
{
	struct rtc_due due = { .wall_ns = RTC_NEVER, .monotonic_ns = RTC_NEVER };

	run_wall(timer, t, now, &due);
	run_periodic(timer, t, now, is_pf_unread, &due);
	due.awaits_read = timer->awaits_read;
	return due;
}
