/*
 * Time of the clock. Threads: any. Locks: none.
 *
 * The time base is the 32768 Hz one, whatever of the three register A names.
 * Not here: daylight saving (bit DSE is kept and does nothing).
 */
#include "devices/rtc_cmos_time.h"

#include <string.h>

#include "devices/rtc_cmos_calendar.h"
#include "devices/rtc_cmos_regs.h"

#define NS_PER_SECOND 1000000000ll
#define CYCLES_PER_SECOND 32768ll
#define UIP_NS 244000ll              /* UIP is set that long before an update */
#define DIVIDER_START_NS 500000000ll /* from the release of the divider to the first update */
#define YEARS 10000ll                /* that four digits can show */
#define ALARM_MONTHS 100             /* 29 February comes round within 8 years and a month */

/* ---- register formats --------------------------------------------------------------------- */

static uint8_t encode(uint8_t b, unsigned value)
{
	return (uint8_t)(b & RTC_B_DM ? value : (value / 10 % 10) << 4 | value % 10);
}

static unsigned decode(uint8_t b, uint8_t byte)
{
	return b & RTC_B_DM ? byte : (byte >> 4) * 10u + (byte & 0x0fu);
}

static uint8_t encode_hours(uint8_t b, unsigned hours)
{
	if (b & RTC_B_24H)
		return encode(b, hours);
	return encode(b, hours % 12 ? hours % 12 : 12) | (hours >= 12 ? RTC_HOURS_PM : 0);
}

static unsigned decode_hours(uint8_t b, uint8_t byte)
{
	if (b & RTC_B_24H)
		return decode(b, byte);
	return decode(b, byte & (uint8_t)~RTC_HOURS_PM) % 12 + (byte & RTC_HOURS_PM ? 12 : 0);
}

/* The registers at a number of seconds since 1970. */
static void encode_fields(uint8_t b, int64_t seconds, uint8_t fields[FIELDS])
{
	int64_t days = floor_div(seconds, SECONDS_PER_DAY);
	unsigned of_day = (unsigned)(seconds - days * SECONDS_PER_DAY);
	struct rtc_date date = rtc_date_from_days(days);
	unsigned year = (unsigned)(date.year - floor_div(date.year, YEARS) * YEARS);

	fields[FIELD_SECONDS] = encode(b, of_day % 60);
	fields[FIELD_MINUTES] = encode(b, of_day / 60 % 60);
	fields[FIELD_HOURS] = encode_hours(b, of_day / 3600);
	fields[FIELD_DAY_OF_WEEK] = encode(b, rtc_day_of_week(days));
	fields[FIELD_DAY] = encode(b, date.day);
	fields[FIELD_MONTH] = encode(b, date.month);
	fields[FIELD_YEAR] = encode(b, year % 100);
	fields[FIELD_CENTURY] = encode(b, year / 100);
}

/* The seconds since 1970 that the registers say; values out of range carry over. */
static int64_t decode_fields(uint8_t b, const uint8_t fields[FIELDS])
{
	int64_t year = decode(b, fields[FIELD_CENTURY]) * 100ll + decode(b, fields[FIELD_YEAR]);
	int64_t days = rtc_days_from_date(year, decode(b, fields[FIELD_MONTH]),
					  decode(b, fields[FIELD_DAY]));

	return days * SECONDS_PER_DAY + decode_hours(b, fields[FIELD_HOURS]) * 3600ll +
	       decode(b, fields[FIELD_MINUTES]) * 60ll + decode(b, fields[FIELD_SECONDS]);
}

/* ---- the running clock -------------------------------------------------------------------- */

static bool is_divider_held(const struct rtc_time *t)
{
	return (t->a & RTC_A_DV_MASK) > RTC_A_DV_32KHZ;
}

bool rtc_time_is_running(const struct rtc_time *t)
{
	return !(t->b & RTC_B_SET) && !is_divider_held(t);
}

/* Seconds of the divider: they begin where the guest's do. */
static int64_t divider_second(const struct rtc_time *t, int64_t wall_ns)
{
	return floor_div(wall_ns + t->phase_ns, NS_PER_SECOND);
}

static int64_t guest_seconds(const struct rtc_time *t, int64_t wall_ns)
{
	return divider_second(t, wall_ns) + t->offset_s;
}

/* Wall time at which a second of the divider begins. */
static int64_t second_begins(const struct rtc_time *t, int64_t second)
{
	return second * NS_PER_SECOND - t->phase_ns;
}

void rtc_time_show(const struct rtc_time *t, int64_t wall_ns, struct rtc_shown *ret)
{
	int64_t second = divider_second(t, wall_ns);

	ret->bytes[SHOWN_A] = t->a;
	if (rtc_time_is_running(t)) {
		encode_fields(t->b, second + t->offset_s, ret->bytes);
		ret->from_ns = second_begins(t, second);
		ret->valid_ns = NS_PER_SECOND;
		ret->uip_after_ns = NS_PER_SECOND - UIP_NS;
		return;
	}
	memcpy(ret->bytes, t->stopped, FIELDS);
	ret->from_ns = INT64_MIN;
	ret->valid_ns = UINT64_MAX;
	ret->uip_after_ns = UINT64_MAX;
}

/* Lets a running clock show `fields`; its divider goes on as it was. */
static void set_fields(struct rtc_time *t, int64_t wall_ns, const uint8_t fields[FIELDS])
{
	t->offset_s = decode_fields(t->b, fields) - divider_second(t, wall_ns);
}

void rtc_time_write_field(struct rtc_time *t, struct rtc_now now, enum rtc_field field,
			  uint8_t byte)
{
	uint8_t fields[FIELDS];

	t->since_ns = now.wall_ns;
	if (!rtc_time_is_running(t)) {
		t->stopped[field] = byte;
		return;
	}
	encode_fields(t->b, guest_seconds(t, now.wall_ns), fields);
	fields[field] = byte;
	set_fields(t, now.wall_ns, fields);
}

void rtc_time_write_alarm(struct rtc_time *t, struct rtc_now now, enum rtc_alarm at, uint8_t byte)
{
	t->since_ns = now.wall_ns;
	t->alarm[at] = byte;
}

/* The divider leaves reset: the next update is half a second away. */
static void start_divider(struct rtc_time *t, struct rtc_now now)
{
	int64_t fraction = now.wall_ns - floor_div(now.wall_ns, NS_PER_SECOND) * NS_PER_SECOND;

	t->phase_ns = (uint32_t)((NS_PER_SECOND + DIVIDER_START_NS - fraction) % NS_PER_SECOND);
	t->divider_ns = now.monotonic_ns;
	t->periodic_from = 0;
}

/*
 * A clock that stops keeps the bytes it shows, in the format it had; one that
 * starts takes its time from the bytes, in the format it has then.
 */
void rtc_time_write_control(struct rtc_time *t, struct rtc_now now, uint8_t a, uint8_t b)
{
	struct rtc_time old = *t;

	t->since_ns = now.wall_ns;
	t->a = a;
	t->b = b;
	if (is_divider_held(&old) && !is_divider_held(t))
		start_divider(t, now);
	else if (rtc_time_is_periodic(t) && !rtc_time_is_periodic(&old))
		t->periodic_from = rtc_time_cycle(t, now.monotonic_ns);
	if (rtc_time_is_running(&old) && !rtc_time_is_running(t))
		encode_fields(old.b, guest_seconds(&old, now.wall_ns), t->stopped);
	else if (!rtc_time_is_running(&old) && rtc_time_is_running(t))
		set_fields(t, now.wall_ns, t->stopped);
}

void rtc_time_init(struct rtc_time *t, struct rtc_now now)
{
	*t = (struct rtc_time){
		.divider_ns = now.monotonic_ns,
		.since_ns = now.wall_ns,
		.a = RTC_A_DV_32KHZ | RTC_A_RS_1024HZ,
		.b = RTC_B_24H,
	};
}

/* ---- the alarm ---------------------------------------------------------------------------- */

#define ANY (-1)
#define NONE (-2)

/* What a byte of the alarm stands for: a number below `end`, ANY, or NONE that the clock shows. */
static int alarm_number(uint8_t b, uint8_t byte, unsigned end)
{
	unsigned value = decode(b, byte);

	if (byte >= RTC_ALARM_ANY)
		return ANY;
	return value < end && encode(b, value) == byte ? (int)value : NONE;
}

static int alarm_hour(uint8_t b, uint8_t byte)
{
	unsigned value = decode_hours(b, byte);

	if (byte >= RTC_ALARM_ANY)
		return ANY;
	return value < 24 && encode_hours(b, value) == byte ? (int)value : NONE;
}

/* Days and months count from 1; their 0 is what who knows no such alarm leaves there. */
static int alarm_date(uint8_t b, uint8_t byte, unsigned end)
{
	return byte ? alarm_number(b, byte, end) : ANY;
}

static bool fits(int wanted, int number)
{
	return wanted == ANY || wanted == number;
}

/* The first number from `from` on, below `end`, that a part of the alarm matches; NONE. */
static int first_from(int wanted, int from, int end)
{
	int first = wanted > from ? wanted : from;

	return first < end && fits(wanted, first) ? first : NONE;
}

/* The first second of a day, from `from` on, at which the clock shows the alarm's time; NONE. */
static int first_of_day(const struct rtc_time *t, int from)
{
	int hour = alarm_hour(t->b, t->alarm[ALARM_HOURS]);
	int minute = alarm_number(t->b, t->alarm[ALARM_MINUTES], 60);
	int second = alarm_number(t->b, t->alarm[ALARM_SECONDS], 60);
	int h = from / 3600, m = from / 60 % 60;
	int later;

	if (hour == NONE || minute == NONE || second == NONE)
		return NONE;
	later = first_from(second, from % 60, 60);
	if (fits(hour, h) && fits(minute, m) && later != NONE)
		return h * 3600 + m * 60 + later;
	second = first_from(second, 0, 60);
	later = first_from(minute, m + 1, 60);
	if (fits(hour, h) && later != NONE)
		return h * 3600 + later * 60 + second;
	minute = first_from(minute, 0, 60);
	later = first_from(hour, h + 1, 24);
	return later == NONE ? NONE : later * 3600 + minute * 60 + second;
}

/* The first day from `days` on that has the alarm's date; RTC_NEVER. */
static int64_t first_day(const struct rtc_time *t, int64_t days)
{
	struct rtc_date date = rtc_date_from_days(days);
	int day = alarm_date(t->b, t->alarm[ALARM_DAY], 32);
	int month = alarm_date(t->b, t->alarm[ALARM_MONTH], 13);
	unsigned n;

	for (n = 0; n < ALARM_MONTHS && day != NONE && month != NONE; n++) {
		int end = (int)rtc_days_in_month(date.year, date.month) + 1;
		int found = fits(month, (int)date.month) ? first_from(day, (int)date.day, end) :
							   NONE;

		if (found != NONE)
			return rtc_days_from_date(date.year, date.month, found);
		date.year += date.month == 12;
		date.month = date.month % 12 + 1;
		date.day = 1;
	}
	return RTC_NEVER;
}

/* The first guest second after `after` that the alarm matches; RTC_NEVER. */
static int64_t alarm_after(const struct rtc_time *t, int64_t after)
{
	int64_t today = floor_div(after + 1, SECONDS_PER_DAY);
	int later_today = first_of_day(t, (int)(after + 1 - today * SECONDS_PER_DAY));
	int at = first_of_day(t, 0);
	int64_t day;

	if (at == NONE)
		return RTC_NEVER;
	day = first_day(t, today + (later_today == NONE));
	if (day == today)
		at = later_today;
	return day == RTC_NEVER ? RTC_NEVER : day * SECONDS_PER_DAY + at;
}

/* ---- what comes due ----------------------------------------------------------------------- */

int64_t rtc_time_next_update(const struct rtc_time *t, int64_t wall_ns)
{
	return second_begins(t, divider_second(t, wall_ns) + 1);
}

int64_t rtc_time_next_alarm(const struct rtc_time *t, int64_t wall_ns)
{
	int64_t at = alarm_after(t, guest_seconds(t, wall_ns));

	return at == RTC_NEVER ? RTC_NEVER : second_begins(t, at - t->offset_s);
}

int64_t rtc_time_cycle(const struct rtc_time *t, int64_t monotonic_ns)
{
	int64_t ns = monotonic_ns - t->divider_ns;

	if (ns < 0)
		return 0;
	return ns / NS_PER_SECOND * CYCLES_PER_SECOND +
	       ns % NS_PER_SECOND * CYCLES_PER_SECOND / NS_PER_SECOND;
}

int64_t rtc_time_of_cycle(const struct rtc_time *t, int64_t cycle)
{
	int64_t part = cycle % CYCLES_PER_SECOND * NS_PER_SECOND;

	return t->divider_ns + cycle / CYCLES_PER_SECOND * NS_PER_SECOND +
	       (part + CYCLES_PER_SECOND - 1) / CYCLES_PER_SECOND;
}

/* Rates 1 and 2 are 256 and 128 Hz, the others 8192 Hz (3) and down to 2 Hz (15). */
int rtc_time_tick_shift(const struct rtc_time *t)
{
	int rate = t->a & RTC_A_RS_MASK;

	if (!rate || is_divider_held(t))
		return -1;
	return rate <= 2 ? rate + 6 : rate - 1;
}

bool rtc_time_is_periodic(const struct rtc_time *t)
{
	return (t->b & RTC_B_PIE) && rtc_time_tick_shift(t) >= 0;
}

static bool is_updated(const struct rtc_time *t, int64_t from_ns, int64_t to_ns)
{
	return rtc_time_is_running(t) && from_ns < to_ns &&
	       divider_second(t, from_ns) < divider_second(t, to_ns);
}

static bool is_ticked(const struct rtc_time *t, int64_t from_ns, int64_t to_ns)
{
	int shift = rtc_time_tick_shift(t);

	return shift >= 0 && rtc_time_cycle(t, from_ns) >> shift < rtc_time_cycle(t, to_ns) >> shift;
}

uint8_t rtc_time_flags_between(const struct rtc_time *t, struct rtc_now from, struct rtc_now to)
{
	uint8_t flags = 0;

	if (is_ticked(t, from.monotonic_ns, to.monotonic_ns))
		flags |= RTC_C_PF;
	if (!is_updated(t, from.wall_ns, to.wall_ns))
		return flags;
	flags |= RTC_C_UF;
	if (alarm_after(t, guest_seconds(t, from.wall_ns)) <= guest_seconds(t, to.wall_ns))
		flags |= RTC_C_AF;
	return flags;
}
