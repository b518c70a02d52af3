/*
 * RTC: the alarm. Times of day in every format, wildcards, day and month, and a
 * search for the next one that agrees with looking at every second.
 */
#include "tests/devices/rtc_test.h"

#include <stdlib.h>

#include "devices/rtc_cmos_calendar.h"
#include "devices/rtc_cmos_time.h"

#define DAY_SECONDS 86400ll

static void set_alarm(struct fixture *f, unsigned hour, unsigned min, unsigned sec)
{
	wr(f, HOUR_ALARM, hour);
	wr(f, MIN_ALARM, min);
	wr(f, SEC_ALARM, sec);
}

/* Seconds from now to the next interrupt, within a limit; -1. */
static int64_t next_edge(struct fixture *f, int64_t limit)
{
	int64_t start = f->now;
	struct rtc_cmos_wakeup next;

	rd(f, REG_C);
	spy_irq_edges(&f->irq);
	next = rtc_cmos_run_timer(f->rtc);
	if (next.wall_ns == RTC_CMOS_NEVER || next.wall_ns > start + limit * SECOND)
		return -1;
	f->now = next.wall_ns;
	rtc_cmos_run_timer(f->rtc);
	assert_int_equal(spy_irq_edges(&f->irq), 1);
	assert_int_equal(rd(f, REG_C) & (C_AF | C_IRQF), C_AF | C_IRQF);
	return (f->now - start) / SECOND;
}

static void alarm_comes_at_its_time(void **state)
{
	struct fixture *f = *state;

	set_alarm(f, 0x07, 0x30, 0x05); /* it is 23:59:58 */
	wr(f, REG_B, B_24H | B_AIE);
	assert_int_equal(next_edge(f, DAY_SECONDS), 2 + 7 * 3600 + 30 * 60 + 5);
	assert_string_equal(shown(f), "2024-03-01 07:30:05 6");
	assert_int_equal(next_edge(f, DAY_SECONDS), DAY_SECONDS);
}

static void alarm_sets_af_without_its_enable(void **state)
{
	struct fixture *f = *state;

	set_alarm(f, 0x00, 0x00, 0x00);
	f->now += 2 * SECOND - 1;
	assert_int_equal(rd(f, REG_C) & C_AF, 0);
	f->now += 1;
	assert_int_equal(rd(f, REG_C) & (C_AF | C_IRQF), C_AF);
	f->now += 3600 * SECOND;
	assert_int_equal(rd(f, REG_C) & C_AF, 0);
	assert_int_equal(f->irq.edges, 0);
}

static void wildcards_match_everything(void **state)
{
	static const struct {
		unsigned hour, min, sec;
		int64_t first, then;
	} rows[] = {
		{ 0xff, 0xff, 0xff, 1, 1 },	  { 0xff, 0xff, 0x10, 12, 60 },
		{ 0xc0, 0x20, 0x00, 1202, 3600 }, { 0x01, 0xc0, 0xff, 3602, 1 },
		{ 0xff, 0x59, 0xff, 1, 3541 },	  { 0x00, 0xff, 0x00, 2, 60 },
	};
	struct fixture *f = *state;
	size_t i;

	wr(f, REG_B, B_24H | B_AIE);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		f->now = LEAP_EVENING;
		set_alarm(f, rows[i].hour, rows[i].min, rows[i].sec);
		assert_int_equal(next_edge(f, DAY_SECONDS), rows[i].first);
		if (i != 4) /* 23:59:59 is the last of its hour */
			assert_int_equal(next_edge(f, DAY_SECONDS), rows[i].then);
	}
}

static void wildcards_begin_at_c0(void **state)
{
	struct fixture *f = *state;
	unsigned v;

	wr(f, REG_B, B_24H | B_AIE | B_BINARY);
	for (v = 0; v < 256; v++) {
		f->now = LEAP_EVENING;
		set_alarm(f, 0xff, 0xff, v);
		assert_int_equal(next_edge(f, DAY_SECONDS) >= 0, v < 60 || v >= 0xc0);
	}
}

/* Bytes that the clock never shows match nothing: no digit of BCD, no hour of the dial. */
static void impossible_bytes_never_match(void **state)
{
	static const struct {
		unsigned b, hour, min, sec;
	} rows[] = {
		{ B_24H, 0xff, 0xff, 0x60 }, { B_24H, 0xff, 0xff, 0x0a }, { B_24H, 0x24, 0, 0 },
		{ 0, 0x00, 0, 0 },	     { 0, 0x13, 0, 0 },	          { 0, 0x80, 0, 0 },
		{ B_BINARY, 0x8d, 0, 0 },    { B_24H | B_BINARY, 24, 0, 0 },
	};
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		wr(f, REG_B, rows[i].b | B_AIE);
		set_alarm(f, rows[i].hour, rows[i].min, rows[i].sec);
		assert_int_equal(next_edge(f, 400 * DAY_SECONDS), -1);
	}
}

static void every_hour_matches_in_every_format(void **state)
{
	struct fixture *f = *state;
	unsigned format, hour;

	for (format = 0; format < 4; format++) {
		wr(f, REG_B, B_AIE | format << 1);
		for (hour = 0; hour < 24; hour++) {
			f->now = hour * 3600 * SECOND;
			set_alarm(f, rd(f, HOUR), 0, 0);
			f->now -= SECOND;
			assert_int_equal(next_edge(f, DAY_SECONDS), 1);
		}
	}
}

static void day_of_the_month_is_matched(void **state)
{
	struct fixture *f = *state;

	set_alarm(f, 0x12, 0x00, 0x00);
	wr(f, RTC_CMOS_DAY_ALARM, 0x31); /* April has none */
	wr(f, REG_B, B_24H | B_AIE);
	assert_true(next_edge(f, 70 * DAY_SECONDS) > 0);
	assert_string_equal(shown(f), "2024-03-31 12:00:00 1");
	assert_true(next_edge(f, 70 * DAY_SECONDS) > 0);
	assert_string_equal(shown(f), "2024-05-31 12:00:00 6");
}

static void month_is_matched(void **state)
{
	struct fixture *f = *state;

	set_alarm(f, 0x23, 0x59, 0x59);
	wr(f, RTC_CMOS_DAY_ALARM, 0x29);
	wr(f, RTC_CMOS_MONTH_ALARM, 0x02);
	wr(f, REG_B, B_24H | B_AIE);
	assert_int_equal(next_edge(f, DAY_SECONDS), 1); /* today is such a day */
	assert_true(next_edge(f, 1500 * DAY_SECONDS) > 0);
	assert_string_equal(shown(f), "2028-02-29 23:59:59 3");
}

/* 2100 is no leap year: eight years pass. */
static void leap_day_is_found_over_2100(void **state)
{
	struct fixture *f = *state;

	f->now = 3982000000ll * SECOND; /* in March 2096 */
	wr(f, RTC_CMOS_DAY_ALARM, 0x29);
	wr(f, RTC_CMOS_MONTH_ALARM, 0x02);
	wr(f, REG_B, B_24H | B_AIE);
	assert_true(next_edge(f, 3000 * DAY_SECONDS) > 0);
	assert_string_equal(shown(f), "2104-02-29 00:00:00 6");
}

/* 0 is what a guest that knows no such bytes leaves there. */
static void zero_and_wildcards_are_any_date(void **state)
{
	static const unsigned any[] = { 0x00, 0xc0, 0xff };
	struct fixture *f = *state;
	unsigned i;

	wr(f, REG_B, B_24H | B_AIE);
	for (i = 0; i < 9; i++) {
		f->now = LEAP_EVENING;
		wr(f, RTC_CMOS_DAY_ALARM, any[i % 3]);
		wr(f, RTC_CMOS_MONTH_ALARM, any[i / 3]);
		assert_int_equal(next_edge(f, DAY_SECONDS), 2);
	}
}

static void dates_that_do_not_exist_never_match(void **state)
{
	static const unsigned dates[][2] = { { 0x30, 0x02 }, { 0x31, 0x04 }, { 0x32, 0 },
					     { 0x01, 0x13 }, { 0x0a, 0 } };
	struct fixture *f = *state;
	unsigned i;

	wr(f, REG_B, B_24H | B_AIE);
	for (i = 0; i < 5; i++) {
		wr(f, RTC_CMOS_DAY_ALARM, dates[i][0]);
		wr(f, RTC_CMOS_MONTH_ALARM, dates[i][1]);
		assert_int_equal(next_edge(f, 4000 * DAY_SECONDS), -1);
	}
}

/* The host slept, or its clock was set, past the alarm: it comes at once. */
static void alarm_that_was_jumped_over_comes_late(void **state)
{
	struct fixture *f = *state;

	set_alarm(f, 0x00, 0x30, 0x00);
	wr(f, REG_B, B_24H | B_AIE);
	rtc_cmos_run_timer(f->rtc);
	jump(f, 3600 * SECOND);
	rtc_cmos_run_timer(f->rtc);
	assert_int_equal(spy_irq_edges(&f->irq), 1);
	assert_int_equal(rd(f, REG_C) & C_AF, C_AF);
	jump(f, -2400 * SECOND); /* 00:19:58 */
	assert_int_equal(next_edge(f, DAY_SECONDS), 602);
}

static void setting_the_time_moves_the_alarm(void **state)
{
	struct fixture *f = *state;

	set_alarm(f, 0x12, 0x00, 0x00);
	wr(f, REG_B, B_24H | B_AIE);
	rtc_cmos_run_timer(f->rtc);
	wr(f, REG_B, B_24H | B_AIE | B_SET);
	wr(f, HOUR, 0x11);
	wr(f, REG_B, B_24H | B_AIE);
	assert_int_equal(next_edge(f, DAY_SECONDS), 2);
}

/* Where the time is set to the alarm's nothing has been updated to it. */
static void time_set_to_the_alarm_is_no_match(void **state)
{
	struct fixture *f = *state;

	set_alarm(f, 0x12, 0x00, 0x00);
	wr(f, REG_B, B_24H | B_AIE | B_SET);
	wr(f, HOUR, 0x12);
	wr(f, MIN, 0x00);
	wr(f, SEC, 0x00);
	wr(f, REG_B, B_24H | B_AIE);
	assert_int_equal(next_edge(f, DAY_SECONDS), DAY_SECONDS);
}

static bool is_shown(const struct rtc_time *t, int64_t second)
{
	struct rtc_shown s;
	const uint8_t *a = t->alarm;

	rtc_time_show(t, second * SECOND, &s);
	return (a[ALARM_SECONDS] >= 0xc0 || a[ALARM_SECONDS] == s.bytes[FIELD_SECONDS]) &&
	       (a[ALARM_MINUTES] >= 0xc0 || a[ALARM_MINUTES] == s.bytes[FIELD_MINUTES]) &&
	       (a[ALARM_HOURS] >= 0xc0 || a[ALARM_HOURS] == s.bytes[FIELD_HOURS]) &&
	       (!a[ALARM_DAY] || a[ALARM_DAY] >= 0xc0 || a[ALARM_DAY] == s.bytes[FIELD_DAY]);
}

static uint8_t random_byte(unsigned limit, bool binary)
{
	unsigned v = (unsigned)random() % limit;

	if (random() % 2)
		return 0xff;
	return (uint8_t)(binary ? v : v / 10 << 4 | v % 10);
}

static void next_alarm_is_what_looking_at_every_second_finds(void **state)
{
	unsigned i;

	srandom(1);
	for (i = 0; i < 60; i++) {
		bool binary = random() % 2;
		struct rtc_time t = { .a = 0x26, .b = random() % 2 * B_24H | binary * B_BINARY };
		int64_t from = 1700000000 + random() % 10000000, at = from, found;

		t.alarm[ALARM_SECONDS] = random_byte(60, binary);
		t.alarm[ALARM_MINUTES] = random_byte(60, binary);
		t.alarm[ALARM_HOURS] = random_byte(t.b & B_24H ? 24 : 13, binary);
		t.alarm[ALARM_DAY] = random_byte(4, binary);
		found = rtc_time_next_alarm(&t, from * SECOND);
		for (at++; at < from + 3 * DAY_SECONDS && !is_shown(&t, at); at++)
			;
		if (at < from + 3 * DAY_SECONDS || (found != RTC_NEVER && found / SECOND < at))
			assert_int_equal(found / SECOND, at);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(alarm_comes_at_its_time),
		T(alarm_sets_af_without_its_enable),
		T(wildcards_match_everything),
		T(wildcards_begin_at_c0),
		T(impossible_bytes_never_match),
		T(every_hour_matches_in_every_format),
		T(day_of_the_month_is_matched),
		T(month_is_matched),
		T(leap_day_is_found_over_2100),
		T(zero_and_wildcards_are_any_date),
		T(dates_that_do_not_exist_never_match),
		T(alarm_that_was_jumped_over_comes_late),
		T(setting_the_time_moves_the_alarm),
		T(time_set_to_the_alarm_is_no_match),
		T(next_alarm_is_what_looking_at_every_second_finds),
	};

	log_init("test");
	return cmocka_run_group_tests_name("rtc_cmos_alarm", tests, NULL, NULL);
}
