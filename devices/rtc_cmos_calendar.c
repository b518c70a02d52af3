/*
 * The calendar. Threads: any. Locks: none.
 *
 * Years are counted from March on, so that the leap day comes last; 400 years
 * have 146097 days.
 */
#include "devices/rtc_cmos_calendar.h"

#include <stdbool.h>

#define DAYS_TO_1970 719468 /* from 0000-03-01 */
#define DAYS_IN_ERA 146097

int64_t rtc_days_from_date(int64_t year, int64_t month, int64_t day)
{
	int64_t months = (month + 9) % 12;
	int64_t y = year + floor_div(month - 3, 12);
	int64_t era = floor_div(y, 400);
	int64_t year_of_era = y - era * 400;

	return era * DAYS_IN_ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
	       (153 * months + 2) / 5 + day - 1 - DAYS_TO_1970;
}

struct rtc_date rtc_date_from_days(int64_t days)
{
	int64_t z = days + DAYS_TO_1970;
	int64_t era = floor_div(z, DAYS_IN_ERA);
	int64_t d = z - era * DAYS_IN_ERA;
	int64_t y = (d - d / 1460 + d / 36524 - d / 146096) / 365;
	int64_t day_of_year = d - (y * 365 + y / 4 - y / 100);
	int64_t m = (day_of_year * 5 + 2) / 153;
	struct rtc_date date = {
		.year = era * 400 + y + (m >= 10),
		.month = (unsigned)(m < 10 ? m + 3 : m - 9),
		.day = (unsigned)(day_of_year - (153 * m + 2) / 5 + 1),
	};

	return date;
}

unsigned rtc_day_of_week(int64_t days)
{
	/* 1970-01-01 was a Thursday */
	return (unsigned)(days + 4 - floor_div(days + 4, 7) * 7) + 1;
}

unsigned rtc_days_in_month(int64_t year, unsigned month)
{
	static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (month == 2 && is_leap);
}
