/*
 * RTC: register C and the interrupt. Flags, enables, IRQF, edges of IRQ 8,
 * updates and a wall clock that is set.
 */
#include "tests/devices/rtc_test.h"

static unsigned edges(struct fixture *f)
{
	assert_false(f->irq.level); /* each interrupt is a pulse */
	return spy_irq_edges(&f->irq);
}

static void update_sets_uf_without_an_interrupt(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(rd(f, REG_C) & C_UF, 0);
	run_for(f, SECOND - 1);
	assert_int_equal(rd(f, REG_C) & C_UF, 0);
	run_for(f, 1);
	assert_int_equal(rd(f, REG_C) & (C_UF | C_IRQF), C_UF);
	assert_int_equal(rd(f, REG_C) & C_UF, 0);
	assert_int_equal(edges(f), 0);
}

static void reading_c_clears_every_flag(void **state)
{
	struct fixture *f = *state;

	wr(f, SEC_ALARM, 0xff);
	wr(f, MIN_ALARM, 0xff);
	wr(f, HOUR_ALARM, 0xff);
	wr(f, REG_B, B_24H | B_UIE);
	run_for(f, SECOND);
	assert_int_equal(rd(f, REG_C), C_IRQF | C_PF | C_AF | C_UF);
	assert_int_equal(rd(f, REG_C), 0);
}

/* Nothing enabled: the timer wants never to be woken. */
static void quiet_clock_arms_no_timer(void **state)
{
	struct fixture *f = *state;
	struct rtc_cmos_wakeup next = rtc_cmos_run_timer(f->rtc);

	assert_true(next.wall_ns == RTC_CMOS_NEVER);
	assert_true(next.monotonic_ns == RTC_CMOS_NEVER);
	wr(f, REG_B, B_24H | B_UIE | B_AIE | B_PIE);
	wr(f, REG_B, B_24H);
	next = rtc_cmos_run_timer(f->rtc);
	assert_true(next.wall_ns == RTC_CMOS_NEVER);
	assert_true(next.monotonic_ns == RTC_CMOS_NEVER);
}

static void update_interrupts_each_second(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	wr(f, REG_B, B_24H | B_UIE);
	run_for(f, SECOND / 2);
	for (i = 0; i < 100; i++) {
		assert_int_equal(edges(f), 0);
		run_for(f, SECOND);
		assert_int_equal(edges(f), 1);
		assert_int_equal(rd(f, REG_C) & (C_IRQF | C_UF), C_IRQF | C_UF);
	}
}

static void unread_c_gives_no_second_edge(void **state)
{
	struct fixture *f = *state;

	wr(f, REG_B, B_24H | B_UIE);
	run_for(f, 10 * SECOND);
	assert_int_equal(edges(f), 1);
	assert_int_equal(rd(f, REG_C) & (C_IRQF | C_UF), C_IRQF | C_UF);
	run_for(f, SECOND);
	assert_int_equal(edges(f), 1);
}

/* A second flag under a standing IRQF is in C, and raises nothing. */
static void second_source_joins_a_standing_interrupt(void **state)
{
	struct fixture *f = *state;

	wr(f, REG_A, A_HZ(15));
	rd(f, REG_C);
	wr(f, REG_B, B_24H | B_UIE | B_PIE);
	run_for(f, SECOND / 2);
	assert_int_equal(edges(f), 1);
	run_for(f, SECOND);
	assert_int_equal(edges(f), 0);
	assert_int_equal(rd(f, REG_C), C_IRQF | C_PF | C_UF);
}

static void enabling_with_the_flag_set_interrupts(void **state)
{
	struct fixture *f = *state;

	run_for(f, SECOND);
	wr(f, REG_B, B_24H | B_UIE);
	rtc_cmos_run_timer(f->rtc);
	assert_int_equal(edges(f), 1);
	assert_int_equal(rd(f, REG_C) & (C_IRQF | C_UF), C_IRQF | C_UF);
	rtc_cmos_run_timer(f->rtc);
	assert_int_equal(edges(f), 0);
}

/* IRQF falls with the enable; the flag stays, and raises it again with the enable. */
static void irqf_follows_the_enables(void **state)
{
	struct fixture *f = *state;

	wr(f, REG_B, B_24H | B_UIE);
	run_for(f, SECOND);
	assert_int_equal(edges(f), 1);
	wr(f, REG_B, B_24H);
	wr(f, REG_B, B_24H | B_UIE);
	rtc_cmos_run_timer(f->rtc);
	assert_int_equal(edges(f), 1);
	wr(f, REG_B, B_24H);
	assert_int_equal(rd(f, REG_C) & (C_IRQF | C_UF), C_UF);
}

static void every_enable_lets_its_own_flag_through(void **state)
{
	static const unsigned bits[] = { B_PIE, B_AIE, B_UIE };
	struct fixture *f = *state;
	unsigned i;

	wr(f, SEC_ALARM, 0xff);
	wr(f, MIN_ALARM, 0xff);
	wr(f, HOUR_ALARM, 0xff);
	wr(f, REG_A, A_HZ(15));
	for (i = 0; i < 3; i++) {
		wr(f, REG_B, B_24H);
		rd(f, REG_C);
		wr(f, REG_B, B_24H | bits[i]);
		run_for(f, SECOND);
		assert_int_equal(edges(f), 1);
		assert_int_equal(rd(f, REG_C), C_IRQF | C_PF | C_AF | C_UF);
	}
}

static void set_stops_updates(void **state)
{
	struct fixture *f = *state;

	wr(f, REG_A, A_HZ(0));
	wr(f, REG_B, B_24H | B_UIE | B_SET);
	assert_int_equal(rd(f, REG_B), B_24H | B_SET);
	rd(f, REG_C);
	run_for(f, 10 * SECOND);
	assert_int_equal(rd(f, REG_C), 0);
	wr(f, REG_B, B_24H | B_UIE);
	run_for(f, SECOND - 1);
	assert_int_equal(rd(f, REG_C), 0);
	run_for(f, 1);
	assert_int_equal(rd(f, REG_C), C_IRQF | C_UF);
	assert_int_equal(edges(f), 1);
}

static void update_before_set_is_not_forgotten(void **state)
{
	struct fixture *f = *state;

	run_for(f, SECOND);
	wr(f, REG_B, B_24H | B_SET);
	run_for(f, SECOND);
	assert_int_equal(rd(f, REG_C) & C_UF, C_UF);
	run_for(f, SECOND);
	assert_int_equal(rd(f, REG_C) & C_UF, 0);
}

/* The divider in reset stops updates and ticks; the first update comes after 500 ms. */
static void divider_reset_stops_every_source(void **state)
{
	struct fixture *f = *state;

	wr(f, REG_B, B_24H | B_UIE | B_PIE);
	wr(f, REG_A, 0x66);
	rd(f, REG_C);
	run_for(f, 10 * SECOND);
	assert_int_equal(edges(f), 0);
	assert_int_equal(rd(f, REG_C), 0);
	f->now += 123456789;
	wr(f, REG_A, A_HZ(0));
	run_for(f, SECOND / 2 - 1);
	assert_int_equal(edges(f), 0);
	run_for(f, 1);
	assert_int_equal(edges(f), 1);
	assert_int_equal(rd(f, REG_C), C_IRQF | C_UF);
}

/* Writing a register of a running clock loses no update that came due just before. */
static void write_keeps_an_update_that_is_due(void **state)
{
	struct fixture *f = *state;

	wr(f, REG_B, B_24H | B_UIE);
	rtc_cmos_run_timer(f->rtc);
	f->now += SECOND + 5;
	wr(f, SEC_ALARM, 0x10);
	rtc_cmos_run_timer(f->rtc);
	assert_int_equal(edges(f), 1);
	assert_int_equal(rd(f, REG_C) & (C_IRQF | C_UF), C_IRQF | C_UF);
	rtc_cmos_run_timer(f->rtc);
	assert_int_equal(edges(f), 0);
}

static void updates_go_on_after_the_host_clock_is_set(void **state)
{
	static const int64_t jumps[] = { 3600 * SECOND, -7200 * SECOND, SECOND / 4, -SECOND / 4 };
	struct fixture *f = *state;
	unsigned i;

	wr(f, REG_B, B_24H | B_UIE);
	for (i = 0; i < 4; i++) {
		run_for(f, SECOND * 3 / 2);
		rd(f, REG_C);
		jump(f, jumps[i]);
		rtc_cmos_run_timer(f->rtc);
		rd(f, REG_C);
		edges(f);
		run_for(f, SECOND);
		assert_int_equal(edges(f), 1);
	}
}

/* Also where an enable was written at a time that lies ahead again. */
static void clock_set_back_gives_no_update_of_its_own(void **state)
{
	struct fixture *f = *state;

	f->now += SECOND / 2;
	wr(f, REG_B, B_24H | B_UIE);
	jump(f, -60 * SECOND);
	rd(f, REG_C);
	rtc_cmos_run_timer(f->rtc);
	assert_int_equal(edges(f), 0);
	run_for(f, SECOND / 2);
	assert_int_equal(edges(f), 1);
}

static void lazy_flags_survive_a_clock_that_is_set_back(void **state)
{
	struct fixture *f = *state;

	rd(f, REG_C);
	jump(f, -3600 * SECOND);
	assert_int_equal(rd(f, REG_C) & C_UF, 0);
	f->now += SECOND;
	assert_int_equal(rd(f, REG_C) & C_UF, C_UF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(update_sets_uf_without_an_interrupt),
		T(reading_c_clears_every_flag),
		T(quiet_clock_arms_no_timer),
		T(update_interrupts_each_second),
		T(unread_c_gives_no_second_edge),
		T(second_source_joins_a_standing_interrupt),
		T(enabling_with_the_flag_set_interrupts),
		T(irqf_follows_the_enables),
		T(every_enable_lets_its_own_flag_through),
		T(set_stops_updates),
		T(update_before_set_is_not_forgotten),
		T(divider_reset_stops_every_source),
		T(write_keeps_an_update_that_is_due),
		T(updates_go_on_after_the_host_clock_is_set),
		T(clock_set_back_gives_no_update_of_its_own),
		T(lazy_flags_survive_a_clock_that_is_set_back),
	};

	log_init("test");
	return cmocka_run_group_tests_name("rtc_cmos_irq", tests, NULL, NULL);
}
