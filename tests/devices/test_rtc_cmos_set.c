/*
 * RTC: setting the time, stopping and starting the clock, and reads that run
 * beside writes.
 */
#include "tests/devices/rtc_test.h"

#include <pthread.h>
#include <stdatomic.h>

/* 2031-12-09 07:08:05, in BCD */
static void write_date(struct fixture *f)
{
	wr(f, CENTURY, 0x20);
	wr(f, YEAR, 0x31);
	wr(f, MONTH, 0x12);
	wr(f, DAY, 0x09);
	wr(f, HOUR, 0x07);
	wr(f, MIN, 0x08);
	wr(f, SEC, 0x05);
}

static void set_freezes_the_time(void **state)
{
	struct fixture *f = *state;

	wr(f, REG_B, B_24H | B_SET);
	f->now += 1000 * SECOND;
	assert_string_equal(shown(f), "2024-02-29 23:59:58 5");
}

static void set_time_runs_on_after_set_is_cleared(void **state)
{
	struct fixture *f = *state;

	wr(f, REG_B, B_24H | B_SET);
	write_date(f);
	wr(f, REG_B, B_24H);
	assert_string_equal(shown(f), "2031-12-09 07:08:05 3");
	f->now += 3600 * SECOND;
	assert_string_equal(shown(f), "2031-12-09 08:08:05 3");
}

/* Clearing SET does not touch the divider: seconds still begin where they did. */
static void set_keeps_the_phase_of_the_second(void **state)
{
	struct fixture *f = *state;

	f->now = LEAP_EVENING + SECOND * 3 / 4;
	wr(f, REG_B, B_24H | B_SET);
	write_date(f);
	wr(f, REG_B, B_24H);
	f->now += SECOND / 4 - 1;
	assert_int_equal(rd(f, SEC), 0x05);
	f->now += 1;
	assert_int_equal(rd(f, SEC), 0x06);
}

/* As Linux does it: SET, divider reset, time, SET off, divider on. */
static void first_update_is_half_a_second_after_divider_reset(void **state)
{
	struct fixture *f = *state;

	f->now += 123456789;
	wr(f, REG_B, B_24H | B_SET);
	wr(f, REG_A, 0x76);
	write_date(f);
	wr(f, REG_B, B_24H);
	f->now += 5 * SECOND;
	assert_string_equal(shown(f), "2031-12-09 07:08:05 5");
	wr(f, REG_A, 0x26);
	f->now += SECOND / 2 - 1;
	assert_int_equal(rd(f, SEC), 0x05);
	assert_int_equal(rd(f, REG_A), 0xa6);
	f->now += 1;
	assert_string_equal(shown(f), "2031-12-09 07:08:06 3");
}

static void divider_reset_stops_the_clock(void **state)
{
	struct fixture *f = *state;
	unsigned dv;

	for (dv = 0; dv < 8; dv++) {
		wr(f, REG_A, 0x26);
		f->now = LEAP_EVENING;
		wr(f, REG_B, B_24H | B_SET);
		write_date(f);
		wr(f, REG_B, B_24H);
		wr(f, REG_A, dv << 4 | 6);
		f->now += 60 * SECOND;
		assert_int_equal(rd(f, MIN), dv <= 2 ? 0x09 : 0x08);
	}
}

/* All 60 and 24 and 31 values go in and come out, in all four formats. */
static void every_field_value_survives_a_round_trip(void **state)
{
	struct fixture *f = *state;
	unsigned format, v;

	for (format = 0; format < 4; format++) {
		wr(f, REG_B, B_SET | format << 1);
		wr(f, MONTH, 0x01);
		for (v = 0; v < 60; v++) {
			unsigned raw = format & 2 ? v : v / 10 << 4 | v % 10;

			wr(f, REG_B, B_SET | format << 1);
			wr(f, SEC, raw);
			wr(f, MIN, raw);
			if (v >= 1 && v <= 31)
				wr(f, DAY, raw);
			wr(f, REG_B, format << 1);
			assert_int_equal(rd(f, SEC), raw);
			assert_int_equal(rd(f, MIN), raw);
		}
	}
}

static void twelve_hour_times_survive_a_round_trip(void **state)
{
	struct fixture *f = *state;
	unsigned pm, h;

	for (pm = 0; pm < 2; pm++) {
		for (h = 1; h <= 12; h++) {
			wr(f, REG_B, B_SET | B_BINARY);
			wr(f, SEC, 0);
			wr(f, MIN, 0);
			wr(f, HOUR, h | pm << 7);
			wr(f, REG_B, B_BINARY);
			assert_int_equal(rd(f, HOUR), h | pm << 7);
			wr(f, REG_B, B_BINARY | B_24H);
			assert_int_equal(rd(f, HOUR), h % 12 + pm * 12);
		}
	}
}

static void format_of_a_running_clock_can_change(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	f->now += SECOND / 2;
	for (i = 0; i < 16; i++)
		wr(f, REG_B, i & 6);
	wr(f, REG_B, B_24H);
	assert_string_equal(shown(f), "2024-02-29 23:59:58 5");
}

/* The bytes of a stopped clock are the guest's, whatever B says of their format. */
static void bytes_of_a_stopped_clock_stay_as_written(void **state)
{
	struct fixture *f = *state;
	unsigned v;

	wr(f, REG_B, B_24H | B_SET);
	for (v = 0; v < 256; v++) {
		wr(f, HOUR, v);
		wr(f, DOW, v ^ 0x55);
		wr(f, REG_B, B_SET | (v & 6));
		assert_int_equal(rd(f, HOUR), v);
		assert_int_equal(rd(f, DOW), v ^ 0x55);
	}
}

static void field_can_be_set_while_running(void **state)
{
	struct fixture *f = *state;

	f->now += SECOND / 2;
	wr(f, HOUR, 0x07);
	assert_string_equal(shown(f), "2024-02-29 07:59:58 5");
	f->now += SECOND / 2;
	assert_int_equal(rd(f, SEC), 0x59);
	wr(f, CENTURY, 0x19);
	wr(f, YEAR, 0x99);
	assert_int_equal(rd(f, YEAR), 0x99);
	assert_int_equal(rd(f, CENTURY), 0x19);
}

/* Nonsense in any field neither hangs nor overflows, and reads back something. */
static void nonsense_dates_are_survived(void **state)
{
	static const unsigned fields[] = { SEC, MIN, HOUR, DOW, DAY, MONTH, YEAR, CENTURY };
	struct fixture *f = *state;
	unsigned format, i, v;

	for (format = 0; format < 4; format++) {
		for (i = 0; i < 8; i++) {
			for (v = 0; v < 256; v++) {
				wr(f, REG_B, B_SET | format << 1);
				wr(f, fields[i], v);
				wr(f, REG_B, format << 1);
				assert_true(rd(f, fields[i]) <= 0xff);
			}
		}
	}
}

/* Writing B leaves a running clock alone, even on the edge of a second. */
static void control_writes_do_not_lose_time(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	for (i = 0; i < 10000; i++) {
		f->now += SECOND / 100;
		wr(f, REG_B, B_24H | (i & 0x70));
		wr(f, REG_A, 0x20 | (i & 15));
	}
	assert_string_equal(shown(f), "2024-03-01 00:01:38 6");
}

struct race {
	struct fixture *f;
	atomic_bool stop;
};

static void *set_two_times(void *arg)
{
	struct race *r = arg;
	unsigned i;

	for (i = 0; i < 3000; i++) {
		wr(r->f, REG_B, B_24H | B_SET);
		wr(r->f, REG_B, B_24H);
	}
	atomic_store(&r->stop, true);
	return NULL;
}

/* A second vCPU reads the ports directly: the index is the century's all along. */
static void reads_beside_writes_see_whole_states(void **state)
{
	struct race r = { .f = *state };
	pthread_t writer;

	/* The register that both use is B, so that the shared index does not matter. */
	wr(r.f, REG_B, B_24H);
	pthread_create(&writer, NULL, set_two_times, &r);
	while (!atomic_load(&r.stop)) {
		unsigned b = (unsigned)rtc_cmos_bus_ops.read(r.f->rtc, 1, 1);

		assert_true(b == B_24H || b == (B_24H | B_SET));
	}
	pthread_join(writer, NULL);
	assert_string_equal(shown(r.f), "2024-02-29 23:59:58 5");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(set_freezes_the_time),
		T(set_time_runs_on_after_set_is_cleared),
		T(set_keeps_the_phase_of_the_second),
		T(first_update_is_half_a_second_after_divider_reset),
		T(divider_reset_stops_the_clock),
		T(every_field_value_survives_a_round_trip),
		T(twelve_hour_times_survive_a_round_trip),
		T(format_of_a_running_clock_can_change),
		T(bytes_of_a_stopped_clock_stay_as_written),
		T(field_can_be_set_while_running),
		T(nonsense_dates_are_survived),
		T(control_writes_do_not_lose_time),
		T(reads_beside_writes_see_whole_states),
	};

	log_init("test");
	return cmocka_run_group_tests_name("rtc_cmos_set", tests, NULL, NULL);
}
