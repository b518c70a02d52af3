/*
 * RTC: the periodic interrupt. Every rate, and what becomes of ticks that the
 * guest, the timer's thread or a pause was too slow for.
 */
#include "tests/devices/rtc_test.h"

#include "vmm/limits.h"

static unsigned rate_hz(unsigned rate)
{
	return (rate <= 2 ? 512u : 65536u) >> rate;
}

/* A guest that answers each interrupt at once, for so long; how many there were. */
static unsigned count_for(struct fixture *f, int64_t ns)
{
	int64_t end = f->now + ns;
	unsigned ticks = 0;

	for (;;) {
		struct rtc_cmos_wakeup next = rtc_cmos_run_timer(f->rtc);

		if (spy_irq_edges(&f->irq)) {
			assert_int_equal(rd(f, REG_C) & (C_PF | C_IRQF), C_PF | C_IRQF);
			ticks++;
		} else if (next.monotonic_ns + f->jumped <= end) {
			f->now = next.monotonic_ns + f->jumped;
		} else {
			f->now = end;
			return ticks;
		}
	}
}

/* A guest that answers nothing for so long. */
static void sleep_for(struct fixture *f, int64_t ns)
{
	run_for(f, ns);
}

static void every_rate_ticks_exactly(void **state)
{
	struct fixture *f = *state;
	unsigned rate;

	for (rate = 1; rate <= 15; rate++) {
		wr(f, REG_B, B_24H);
		wr(f, REG_A, A_HZ(rate));
		rd(f, REG_C);
		wr(f, REG_B, B_24H | B_PIE);
		assert_int_equal(count_for(f, 5 * SECOND), 5 * rate_hz(rate));
	}
}

/* A period of 8192 Hz is no whole number of nanoseconds: rounding it would cost a tick here. */
static void ticks_do_not_drift(void **state)
{
	struct fixture *f = *state;

	rd(f, REG_C);
	wr(f, REG_A, A_HZ(3));
	wr(f, REG_B, B_24H | B_PIE);
	assert_int_equal(count_for(f, 50 * SECOND), 50 * 8192);
}

static void rate_zero_ticks_never(void **state)
{
	struct fixture *f = *state;

	rd(f, REG_C);
	wr(f, REG_A, A_HZ(0));
	wr(f, REG_B, B_24H | B_PIE);
	run_for(f, 10 * SECOND);
	assert_int_equal(spy_irq_edges(&f->irq), 0);
	assert_int_equal(rd(f, REG_C) & C_PF, 0);
}

static void tick_sets_pf_without_its_enable(void **state)
{
	struct fixture *f = *state;
	unsigned rate;

	for (rate = 1; rate <= 15; rate++) {
		wr(f, REG_A, A_HZ(rate));
		rd(f, REG_C);
		f->now += SECOND / rate_hz(rate) + 1;
		assert_int_equal(rd(f, REG_C) & (C_PF | C_IRQF), C_PF);
		f->now += SECOND / rate_hz(rate) / 1000;
		assert_int_equal(rd(f, REG_C) & C_PF, 0);
	}
}

static void ticks_follow_the_monotonic_clock(void **state)
{
	struct fixture *f = *state;

	rd(f, REG_C);
	wr(f, REG_A, A_HZ(10));
	wr(f, REG_B, B_24H | B_PIE);
	assert_int_equal(count_for(f, SECOND), 64);
	jump(f, 3600 * SECOND);
	assert_int_equal(count_for(f, SECOND), 64);
	jump(f, -7200 * SECOND);
	assert_int_equal(count_for(f, SECOND), 64);
}

/* The same rate written again does not begin a new period. */
static void writing_the_rate_again_keeps_the_phase(void **state)
{
	struct fixture *f = *state;
	unsigned i, ticks = 0;

	rd(f, REG_C);
	wr(f, REG_A, A_HZ(15));
	wr(f, REG_B, B_24H | B_PIE);
	for (i = 0; i < 100; i++) {
		wr(f, REG_A, A_HZ(15));
		ticks += count_for(f, SECOND / 10);
	}
	assert_int_equal(ticks, 20);
}

static void slew_raises_what_a_slow_guest_missed(void **state)
{
	struct fixture *f = *state;
	unsigned i, ticks = 0;

	rd(f, REG_C);
	wr(f, REG_B, B_24H | B_PIE);
	for (i = 0; i < 20; i++) {
		sleep_for(f, SECOND / 4);
		ticks += spy_irq_edges(&f->irq);
		rd(f, REG_C);
		ticks += count_for(f, SECOND / 4);
	}
	assert_int_equal(ticks, 10 * 1024);
}

static void discard_drops_what_a_slow_guest_missed(void **state)
{
	struct fixture *f = *state;

	rd(f, REG_C);
	wr(f, REG_B, B_24H | B_PIE);
	sleep_for(f, SECOND);
	assert_int_equal(spy_irq_edges(&f->irq), 1);
	assert_int_equal(rd(f, REG_C) & C_PF, C_PF);
	assert_int_equal(count_for(f, SECOND), 1024);
}

/* While C is unread nothing can interrupt: the timer sleeps until it is read. */
static void unread_tick_disarms_the_timer(void **state)
{
	struct fixture *f = *state;
	struct rtc_cmos_wakeup next;

	rd(f, REG_C);
	wr(f, REG_B, B_24H | B_PIE);
	sleep_for(f, SECOND / 512);
	next = rtc_cmos_run_timer(f->rtc);
	assert_true(next.monotonic_ns == RTC_CMOS_NEVER);
	rd(f, REG_C);
	next = rtc_cmos_run_timer(f->rtc);
	assert_true(next.monotonic_ns != RTC_CMOS_NEVER);
}

/* The thread woke late, the guest was quick. */
static void late_timer_loses_nothing_with_slew(void **state)
{
	struct fixture *f = *state;

	rd(f, REG_C);
	wr(f, REG_B, B_24H | B_PIE);
	f->now += SECOND;
	assert_int_equal(count_for(f, SECOND), 2048);
}

static void late_timer_raises_one_tick_with_discard(void **state)
{
	struct fixture *f = *state;

	rd(f, REG_C);
	wr(f, REG_B, B_24H | B_PIE);
	f->now += SECOND;
	assert_int_equal(count_for(f, SECOND), 1025);
}

static unsigned count_backlog_of(struct fixture *f, unsigned ticks)
{
	wr(f, REG_B, B_24H);
	wr(f, REG_A, A_HZ(3));
	rd(f, REG_C);
	wr(f, REG_B, B_24H | B_PIE);
	f->now += ticks * SECOND / 8192 + 1;
	ticks = 0;
	for (rtc_cmos_run_timer(f->rtc); spy_irq_edges(&f->irq); ticks++) {
		rd(f, REG_C);
		rtc_cmos_run_timer(f->rtc);
	}
	return ticks;
}

static void backlog_is_kept_up_to_its_limit(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(count_backlog_of(f, LIMIT_RTC_BACKLOG), LIMIT_RTC_BACKLOG);
	assert_int_equal(count_backlog_of(f, LIMIT_RTC_BACKLOG + 1), LIMIT_RTC_BACKLOG);
	assert_int_equal(count_backlog_of(f, 100 * LIMIT_RTC_BACKLOG), LIMIT_RTC_BACKLOG);
}

/* A second was missed at 64 Hz: it is owed at whatever rate follows. */
static void backlog_is_time_when_the_rate_changes(void **state)
{
	struct fixture *f = *state;
	unsigned ticks;

	rd(f, REG_C);
	wr(f, REG_A, A_HZ(10));
	wr(f, REG_B, B_24H | B_PIE);
	f->now += SECOND;
	rtc_cmos_run_timer(f->rtc);
	wr(f, REG_A, A_HZ(6));
	ticks = spy_irq_edges(&f->irq) * 16;
	rd(f, REG_C);
	ticks += count_for(f, SECOND);
	assert_int_equal(ticks, 2 * 1024);
}

static void disabling_forgets_the_backlog(void **state)
{
	struct fixture *f = *state;

	rd(f, REG_C);
	wr(f, REG_B, B_24H | B_PIE);
	f->now += SECOND;
	rtc_cmos_run_timer(f->rtc);
	wr(f, REG_B, B_24H);
	rd(f, REG_C);
	wr(f, REG_B, B_24H | B_PIE);
	spy_irq_edges(&f->irq);
	assert_int_equal(count_for(f, SECOND), 1024);
}

/* A tick that C shows already was not one of the enabled ones. */
static void enabling_counts_from_then_on(void **state)
{
	struct fixture *f = *state;

	f->now += SECOND;
	rd(f, REG_C);
	wr(f, REG_B, B_24H | B_PIE);
	assert_int_equal(count_for(f, SECOND), 1024);
}

static void divider_reset_begins_a_period(void **state)
{
	struct fixture *f = *state;

	wr(f, REG_B, B_24H | B_PIE);
	f->now += SECOND / 3;
	wr(f, REG_A, 0x6f);
	f->now += SECOND;
	wr(f, REG_A, A_HZ(15));
	rd(f, REG_C);
	run_for(f, SECOND / 2 - 1);
	assert_int_equal(spy_irq_edges(&f->irq), 0);
	run_for(f, 1);
	rtc_cmos_run_timer(f->rtc);
	assert_int_equal(spy_irq_edges(&f->irq), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_rate_ticks_exactly),
		T(ticks_do_not_drift),
		T(rate_zero_ticks_never),
		T(tick_sets_pf_without_its_enable),
		T(ticks_follow_the_monotonic_clock),
		T(writing_the_rate_again_keeps_the_phase),
		T(slew_raises_what_a_slow_guest_missed),
		T_DISCARD(discard_drops_what_a_slow_guest_missed),
		T(unread_tick_disarms_the_timer),
		T_DISCARD(unread_tick_disarms_the_timer),
		T(late_timer_loses_nothing_with_slew),
		T_DISCARD(late_timer_raises_one_tick_with_discard),
		T(backlog_is_kept_up_to_its_limit),
		T(backlog_is_time_when_the_rate_changes),
		T(disabling_forgets_the_backlog),
		T(enabling_counts_from_then_on),
		T(divider_reset_begins_a_period),
	};

	log_init("test");
	return cmocka_run_group_tests_name("rtc_cmos_periodic", tests, NULL, NULL);
}
