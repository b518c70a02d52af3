/*
 * What the clock's registers make of the time: the bytes they show, how writes
 * set them, when its flags come due. No clock is read here.
 *
 * Two host clocks count: the wall clock moves the time of day, updates and
 * alarms, and may jump; the monotonic one moves the periodic interrupt. Both
 * in nanoseconds. Pure functions; any thread.
 */
#ifndef LULL_RTC_CMOS_TIME_H
#define LULL_RTC_CMOS_TIME_H

#include <stdbool.h>
#include <stdint.h>

#define RTC_NEVER INT64_MAX

struct rtc_now {
	int64_t wall_ns; /* since 1970, UTC */
	int64_t monotonic_ns;
};

/* The time as its registers. */
enum rtc_field {
	FIELD_SECONDS,
	FIELD_MINUTES,
	FIELD_HOURS,
	FIELD_DAY_OF_WEEK,
	FIELD_DAY,
	FIELD_MONTH,
	FIELD_YEAR,
	FIELD_CENTURY,
	FIELDS
};

enum rtc_alarm { ALARM_SECONDS, ALARM_MINUTES, ALARM_HOURS, ALARM_DAY, ALARM_MONTH, ALARMS };

/* The state of the clock. While it runs it changes by writes only. */
struct rtc_time {
	int64_t offset_s;      /* guest seconds = (wall ns + phase_ns) / 1 s + offset_s */
	int64_t divider_ns;    /* monotonic time at which the divider left reset */
	int64_t since_ns;      /* wall time: updates and alarms up to here are in C */
	int64_t periodic_from; /* cycle of the divider: the same of enabled ticks */
	uint32_t phase_ns;
	uint8_t a; /* without UIP */
	uint8_t b;
	uint8_t stopped[FIELDS]; /* the bytes of a clock that does not run */
	uint8_t alarm[ALARMS];
	uint8_t unused[5];
};

/* What the time registers and register A show, in order of enum rtc_field. */
#define SHOWN_A FIELDS
#define SHOWN (FIELDS + 1)

struct rtc_shown {
	int64_t from_ns;       /* wall time from which on the bytes are right */
	uint64_t valid_ns;     /* for so long */
	uint64_t uip_after_ns; /* UIP is set in A after so long */
	uint8_t bytes[SHOWN];
};

/* Running, in BCD and 24 hours, as firmware leaves it. */
void rtc_time_init(struct rtc_time *t, struct rtc_now now);

/* Neither SET nor a divider in reset stops it. */
bool rtc_time_is_running(const struct rtc_time *t);
void rtc_time_show(const struct rtc_time *t, int64_t wall_ns, struct rtc_shown *ret);

/*
 * Writes. Of what came due before, nothing is forgotten but what the caller
 * forgets: it has put rtc_time_flags_between() into C.
 */
void rtc_time_write_field(struct rtc_time *t, struct rtc_now now, enum rtc_field field,
			  uint8_t byte);
void rtc_time_write_alarm(struct rtc_time *t, struct rtc_now now, enum rtc_alarm at,
			  uint8_t byte);
void rtc_time_write_control(struct rtc_time *t, struct rtc_now now, uint8_t a, uint8_t b);

/* The flags of C that came due after `from` and not after `to`, enabled or not. */
uint8_t rtc_time_flags_between(const struct rtc_time *t, struct rtc_now from, struct rtc_now to);

/* Wall time of the first update after `wall_ns`; the clock runs. */
int64_t rtc_time_next_update(const struct rtc_time *t, int64_t wall_ns);
/* The same of the alarm; RTC_NEVER if its bytes match no time. */
int64_t rtc_time_next_alarm(const struct rtc_time *t, int64_t wall_ns);

/* Cycles of the 32768 Hz divider since it left reset, and the time of one. */
int64_t rtc_time_cycle(const struct rtc_time *t, int64_t monotonic_ns);
int64_t rtc_time_of_cycle(const struct rtc_time *t, int64_t cycle);
/* A periodic tick is 2^shift cycles; -1: there are none. */
int rtc_time_tick_shift(const struct rtc_time *t);
/* There are ticks, and they interrupt. */
bool rtc_time_is_periodic(const struct rtc_time *t);

#endif
