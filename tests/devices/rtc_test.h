/*
 * What the clock tests share: a clock that stands where the test puts it, and
 * the registers of an RTC that reads it.
 */
#ifndef LULL_TESTS_RTC_TEST_H
#define LULL_TESTS_RTC_TEST_H

#include "tests/devices/device_test.h"

#include "devices/rtc_cmos.h"

#define SECOND 1000000000ll
/* 2024-02-29 23:59:58 UTC, a Thursday */
#define LEAP_EVENING (1709251198ll * SECOND)

enum { SEC = 0, MIN = 2, HOUR = 4, DOW = 6, DAY = 7, MONTH = 8, YEAR = 9, CENTURY = 0x32 };
enum { REG_A = 10, REG_B = 11, REG_C = 12, REG_D = 13 };

#define B_SET 0x80u
#define B_BINARY 0x04u
#define B_24H 0x02u

struct fixture {
	int64_t now;
	struct spy_irq irq;
	struct device *rtc;
};

static inline int64_t fixture_now(void *arg)
{
	return ((struct fixture *)arg)->now;
}

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct rtc_clock clock = { .now_ns = fixture_now, .arg = f };
	struct device_env env = { 0 };

	spy_irq_init(&f->irq);
	f->now = LEAP_EVENING;
	f->rtc = rtc_cmos_create_with_clock(&env, &f->irq.line, &clock, NULL);
	*state = f;
	return f->rtc ? 0 : -1;
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

#endif
