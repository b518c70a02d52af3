/*
 * What the clock tests share: host clocks that stand where the test puts them,
 * the registers of an RTC that reads them, and its timer, run by hand.
 */
#ifndef LULL_TESTS_RTC_TEST_H
#define LULL_TESTS_RTC_TEST_H

#include "tests/devices/device_test.h"

#include "devices/rtc_cmos.h"

#define SECOND 1000000000ll
/* 2024-02-29 23:59:58 UTC, a Thursday */
#define LEAP_EVENING (1709251198ll * SECOND)

enum { SEC = 0, MIN = 2, HOUR = 4, DOW = 6, DAY = 7, MONTH = 8, YEAR = 9, CENTURY = 0x32 };
enum { SEC_ALARM = 1, MIN_ALARM = 3, HOUR_ALARM = 5 };
enum { REG_A = 10, REG_B = 11, REG_C = 12, REG_D = 13 };

#define A_HZ(rate) (0x20u | (rate)) /* 6: 1024 Hz */
#define B_SET 0x80u
#define B_PIE 0x40u
#define B_AIE 0x20u
#define B_UIE 0x10u
#define B_BINARY 0x04u
#define B_24H 0x02u
#define C_IRQF 0x80u
#define C_PF 0x40u
#define C_AF 0x20u
#define C_UF 0x10u

struct fixture {
	int64_t now;    /* wall clock */
	int64_t jumped; /* of that, what the monotonic clock has not seen */
	struct spy_irq irq;
	struct device *rtc;
};

static inline int64_t fixture_wall(void *arg)
{
	return ((struct fixture *)arg)->now;
}

static inline int64_t fixture_monotonic(void *arg)
{
	struct fixture *f = arg;

	return f->now - f->jumped;
}

static inline int setup_policy(void **state, enum rtc_lost_ticks policy)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct rtc_clock clock = {
		.wall_ns = fixture_wall,
		.monotonic_ns = fixture_monotonic,
		.arg = f,
	};
	struct rtc_config config = { .lost_ticks = policy };
	struct device_env env = { 0 };

	spy_irq_init(&f->irq);
	f->now = LEAP_EVENING;
	f->rtc = rtc_cmos_create_with_clock(&env, &config, &f->irq.line, &clock, NULL);
	*state = f;
	return f->rtc ? 0 : -1;
}

static inline int setup(void **state)
{
	return setup_policy(state, RTC_LOST_TICKS_SLEW);
}

static inline int setup_discard(void **state)
{
	return setup_policy(state, RTC_LOST_TICKS_DISCARD);
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	f->rtc->ops->destroy(f->rtc);
	free(f);
	return 0;
}

static inline unsigned rd(struct fixture *f, unsigned index)
{
	rtc_cmos_bus_ops.write(f->rtc, 0, 1, index);
	return (unsigned)rtc_cmos_bus_ops.read(f->rtc, 1, 1);
}

static inline void wr(struct fixture *f, unsigned index, unsigned value)
{
	rtc_cmos_bus_ops.write(f->rtc, 0, 1, index);
	assert_int_equal(rtc_cmos_bus_ops.write(f->rtc, 1, 1, value), BUS_DONE);
}

/* The host's clock is set; no time passes. */
static inline void jump(struct fixture *f, int64_t ns)
{
	f->now += ns;
	f->jumped += ns;
}

/* Runs the timer as its thread would until `end`: whenever it asks for that. */
static inline void run_until(struct fixture *f, int64_t end)
{
	for (;;) {
		struct rtc_cmos_wakeup next = rtc_cmos_run_timer(f->rtc);
		int64_t at = next.wall_ns;

		if (next.monotonic_ns != RTC_CMOS_NEVER && next.monotonic_ns + f->jumped < at)
			at = next.monotonic_ns + f->jumped;
		if (at > end)
			break;
		f->now = at > f->now ? at : f->now;
	}
	f->now = end;
}

static inline void run_for(struct fixture *f, int64_t ns)
{
	run_until(f, f->now + ns);
}

/* The time as text, in the format the registers have, e.g. "2024-02-29 23:59:58 5" in BCD. */
static inline const char *shown(struct fixture *f)
{
	static char text[64];

	snprintf(text, sizeof(text), "%02x%02x-%02x-%02x %02x:%02x:%02x %x", rd(f, CENTURY),
		 rd(f, YEAR), rd(f, MONTH), rd(f, DAY), rd(f, HOUR), rd(f, MIN), rd(f, SEC),
		 rd(f, DOW));
	return text;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define T_DISCARD(name) cmocka_unit_test_setup_teardown(name, setup_discard, teardown)

#endif
