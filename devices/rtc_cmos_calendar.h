/*
 * The proleptic Gregorian calendar in days since 1970-01-01, and division that
 * rounds down. Pure functions; any thread.
 */
#ifndef LULL_RTC_CMOS_CALENDAR_H
#define LULL_RTC_CMOS_CALENDAR_H

#include <stdint.h>

#define SECONDS_PER_DAY 86400ll

struct rtc_date {
	int64_t year;
	unsigned month, day; /* from 1 on */
};

static inline int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* A month or day out of range carries over into the years and months beside. */
int64_t rtc_days_from_date(int64_t year, int64_t month, int64_t day);
struct rtc_date rtc_date_from_days(int64_t days);
/* 1: Sunday */
unsigned rtc_day_of_week(int64_t days);
/* `month` is 1 to 12. */
unsigned rtc_days_in_month(int64_t year, unsigned month);

#endif
