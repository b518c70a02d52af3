/*
 * RTC: reading the time, its formats, UIP, the status registers, the memory.
 */
#include "tests/devices/rtc_test.h"

static unsigned bcd(unsigned v)
{
	return v / 10 << 4 | v % 10;
}

static bool is_clock_register(unsigned index)
{
	return index == SEC || index == MIN || index == HOUR ||
	       (index >= DOW && index <= REG_D) || index == CENTURY;
}

static void shows_the_host_time_in_bcd(void **state)
{
	assert_string_equal(shown(*state), "2024-02-29 23:59:58 5");
}

static void time_carries_over_a_leap_day(void **state)
{
	struct fixture *f = *state;

	f->now += 2 * SECOND;
	assert_string_equal(shown(f), "2024-03-01 00:00:00 6");
}

static void binary_mode_shows_plain_numbers(void **state)
{
	wr(*state, REG_B, B_24H | B_BINARY);
	assert_string_equal(shown(*state), "1418-02-1d 17:3b:3a 5");
}

/* 12-hour clocks go 12, 1 .. 11 with bit 7 for the afternoon. */
static void twelve_hour_mode_counts_from_twelve(void **state)
{
	struct fixture *f = *state;
	unsigned binary, hour;

	for (binary = 0; binary < 2; binary++) {
		wr(f, REG_B, binary ? B_BINARY : 0);
		for (hour = 0; hour < 24; hour++) {
			unsigned on_dial = hour % 12 ? hour % 12 : 12;

			f->now = hour * 3600 * SECOND;
			assert_int_equal(rd(f, HOUR), (binary ? on_dial : bcd(on_dial)) |
							      (hour >= 12 ? 0x80 : 0));
		}
	}
}

/* Steps of about 11 days and odd seconds, from 1970 to 2255, against libc. */
static void calendar_agrees_with_libc(void **state)
{
	struct fixture *f = *state;
	time_t t;

	for (t = 0; t < 9000000000ll; t += 949999) {
		struct tm tm;
		char expected[64];

		f->now = t * SECOND;
		gmtime_r(&t, &tm);
		strftime(expected, sizeof(expected), "%Y-%m-%d %H:%M:%S", &tm);
		snprintf(expected + strlen(expected), 16, " %d", tm.tm_wday + 1);
		assert_string_equal(shown(f), expected);
	}
}

static void every_second_of_an_hour_shows(void **state)
{
	struct fixture *f = *state;
	unsigned s;

	for (s = 0; s < 3600; s++) {
		f->now = s * SECOND + SECOND / 3;
		assert_int_equal(rd(f, SEC), bcd(s % 60));
		assert_int_equal(rd(f, MIN), bcd(s / 60));
	}
}

static void time_before_1970_shows(void **state)
{
	struct fixture *f = *state;

	f->now = -1;
	assert_string_equal(shown(f), "1969-12-31 23:59:59 4");
}

/* UIP covers exactly the last 244 us of a second. */
static void uip_precedes_the_update(void **state)
{
	struct fixture *f = *state;
	static const struct {
		int64_t ns;
		unsigned uip;
	} points[] = { { 0, 0 },	       { 500000000, 0 },     { 999755999, 0 },
		       { 999756000, 0x80 },    { 999999999, 0x80 },  { 1000000000, 0 } };
	size_t i;

	for (i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		f->now = LEAP_EVENING + points[i].ns;
		assert_int_equal(rd(f, REG_A), 0x26 | points[i].uip);
	}
}

static void stopped_clock_has_no_uip(void **state)
{
	struct fixture *f = *state;

	f->now = LEAP_EVENING + SECOND - 1;
	wr(f, REG_B, B_24H | B_SET);
	assert_int_equal(rd(f, REG_A), 0x26);
	wr(f, REG_B, B_24H);
	assert_int_equal(rd(f, REG_A), 0xa6);
	wr(f, REG_A, 0x76);
	assert_int_equal(rd(f, REG_A), 0x76);
}

static void register_a_keeps_all_but_uip(void **state)
{
	unsigned v;

	for (v = 0; v < 256; v++) {
		wr(*state, REG_A, v);
		assert_int_equal(rd(*state, REG_A), v & 0x7f);
	}
}

/* SET going to one clears UIE. */
static void register_b_keeps_its_bits(void **state)
{
	unsigned v;

	for (v = 0; v < 256; v++) {
		wr(*state, REG_B, v);
		assert_int_equal(rd(*state, REG_B), v & B_SET ? v & 0xef : v);
	}
}

/* D says that the battery is good. */
static void registers_c_and_d_are_read_only(void **state)
{
	unsigned v;

	for (v = 0; v < 256; v++) {
		wr(*state, REG_C, v);
		wr(*state, REG_D, v);
		assert_int_equal(rd(*state, REG_C), 0);
		assert_int_equal(rd(*state, REG_D), 0x80);
	}
}

static void memory_keeps_every_byte(void **state)
{
	unsigned i, v;

	for (v = 0; v < 256; v += 51) {
		for (i = 0; i < 128; i++) {
			if (!is_clock_register(i))
				wr(*state, i, (i ^ v) & 0xff);
		}
		for (i = 0; i < 128; i++) {
			if (!is_clock_register(i))
				assert_int_equal(rd(*state, i), (i ^ v) & 0xff);
		}
	}
}

/* The top bit of the index is the NMI mask, not part of it. */
static void index_wraps_at_128(void **state)
{
	unsigned i;

	for (i = 0; i < 128; i++)
		assert_int_equal(rd(*state, i | 0x80), rd(*state, i));
	wr(*state, 0x40 | 0x80, 0x5a);
	assert_int_equal(rd(*state, 0x40), 0x5a);
}

static void index_stays_and_cannot_be_read(void **state)
{
	struct fixture *f = *state;

	wr(f, 0x40, 1);
	rtc_cmos_bus_ops.write(f->rtc, 1, 1, 2);
	assert_int_equal(rtc_cmos_bus_ops.read(f->rtc, 1, 1), 2);
	assert_int_equal(rtc_cmos_bus_ops.read(f->rtc, 0, 1), 0xff);
}

/* The published second is not the one that is asked for, on either side. */
static void clock_that_is_set_back_shows_the_earlier_time(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(rd(f, SEC), 0x58);
	f->now -= 10 * SECOND;
	assert_string_equal(shown(f), "2024-02-29 23:59:48 5");
	f->now += 10 * SECOND;
	assert_string_equal(shown(f), "2024-02-29 23:59:58 5");
}

static void pause_of_years_shows_the_right_time(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(rd(f, YEAR), 0x24);
	f->now += 1461 * 86400ll * SECOND;
	assert_string_equal(shown(f), "2028-02-29 23:59:58 3");
}

static void host_clock_is_the_default(void **state)
{
	struct fixture *f = *state;
	struct rtc_config config = { 0 };
	struct device_env env = { 0 };
	struct device *own = f->rtc;
	time_t now = time(NULL);
	struct tm tm;

	f->rtc = rtc_cmos_create(&env, &config, &f->irq.line, NULL);
	gmtime_r(&now, &tm);
	assert_int_equal(rd(f, CENTURY), bcd((unsigned)tm.tm_year / 100 + 19));
	assert_int_equal(rd(f, YEAR), bcd((unsigned)tm.tm_year % 100));
	f->rtc->ops->destroy(f->rtc);
	f->rtc = own;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(shows_the_host_time_in_bcd),
		T(time_carries_over_a_leap_day),
		T(binary_mode_shows_plain_numbers),
		T(twelve_hour_mode_counts_from_twelve),
		T(calendar_agrees_with_libc),
		T(every_second_of_an_hour_shows),
		T(time_before_1970_shows),
		T(uip_precedes_the_update),
		T(stopped_clock_has_no_uip),
		T(register_a_keeps_all_but_uip),
		T(register_b_keeps_its_bits),
		T(registers_c_and_d_are_read_only),
		T(memory_keeps_every_byte),
		T(index_wraps_at_128),
		T(index_stays_and_cannot_be_read),
		T(clock_that_is_set_back_shows_the_earlier_time),
		T(pause_of_years_shows_the_right_time),
		T(host_clock_is_the_default),
	};

	log_init("test");
	return cmocka_run_group_tests_name("rtc_cmos", tests, NULL, NULL);
}
