/*
 * MC146818 real-time clock.
 *
 * The registers that make up the time are one small struct, published as a
 * whole: a reader takes a copy between two looks at a sequence number and
 * never waits for a lock. While the clock runs the time is the host's plus an
 * offset; while it is stopped (SET, or the divider in reset) the time is the
 * bytes that the guest sees and writes.
 *
 * Threads: any vCPU thread. Locks: r->lock (level DEVICE), for writes to the
 * time and to registers A and B only; reads take none.
 * Not here: alarms and periodic interrupts (register C stays zero), where the
 * century byte is announced (the FADT).
 */
#include "devices/rtc_cmos.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vmm/base/bits.h"
#include "vmm/base/lock.h"

enum rtc_port { RTC_PORT_INDEX = 0, RTC_PORT_DATA = 1 };

enum rtc_reg {
	RTC_REG_SECONDS = 0x00,
	RTC_REG_MINUTES = 0x02,
	RTC_REG_HOURS = 0x04,
	RTC_REG_DAY_OF_WEEK = 0x06, /* 1: Sunday */
	RTC_REG_DAY = 0x07,
	RTC_REG_MONTH = 0x08,
	RTC_REG_YEAR = 0x09,
	RTC_REG_A = 0x0a,
	RTC_REG_B = 0x0b,
	RTC_REG_C = 0x0c,
	RTC_REG_D = 0x0d,
	RTC_REG_CENTURY = 0x32,
};

#define RTC_A_UIP BIT(7)
#define RTC_A_DV_MASK 0x70u
#define RTC_A_DV_32KHZ 0x20u  /* higher values hold the divider in reset or test it */
#define RTC_A_DV_RESET 0x60u
#define RTC_A_RS_1024HZ 0x06u
#define RTC_B_SET BIT(7)
#define RTC_B_UIE BIT(4)
#define RTC_B_DM BIT(2)  /* binary, not BCD */
#define RTC_B_24H BIT(1)
#define RTC_D_VRT BIT(7)
#define RTC_HOURS_PM BIT(7)

#define RTC_BYTES 128u
#define NS_PER_SECOND 1000000000ll
#define SECONDS_PER_DAY 86400ll
#define UIP_NS 244000ll              /* UIP is set that long before an update */
#define DIVIDER_START_NS 500000000ll /* from the release of the divider to the first update */

/* The time as its registers; the order of enum rtc_field. */
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

/* What is published. */
struct rtc_time {
	int64_t offset_s; /* guest seconds = (host ns + phase_ns) / 1 s + offset_s */
	uint32_t phase_ns;
	uint8_t a; /* without UIP */
	uint8_t b;
	uint8_t stopped[FIELDS]; /* the bytes of a clock that does not run */
	uint8_t unused[2];
};

#define TIME_WORDS (sizeof(struct rtc_time) / sizeof(uint64_t))
_Static_assert(sizeof(struct rtc_time) % sizeof(uint64_t) == 0, "published in whole words");

struct rtc {
	/* constant after create */
	struct device dev;
	struct irq_line line; /* for alarms */
	struct rtc_clock clock;

	struct lock lock;
	/* under lock; the master copy of what is published */
	struct rtc_time time;

	/* atomic: written with the lock held, read by anyone; `sequence` is odd meanwhile */
	_Atomic uint32_t sequence;
	_Atomic uint64_t published[TIME_WORDS];
	/* atomic: any vCPU; the guest serialises pairs of index and data */
	_Atomic uint8_t index;
	_Atomic uint8_t memory[RTC_BYTES]; /* all but the registers of enum rtc_reg */
};

/* ---- publishing --------------------------------------------------------------------------- */

static void publish_locked(struct rtc *r) TSA_REQUIRES(r->lock)
{
	uint32_t sequence = atomic_load_explicit(&r->sequence, memory_order_relaxed);
	uint64_t words[TIME_WORDS];
	size_t i;

	memcpy(words, &r->time, sizeof(words));
	atomic_store_explicit(&r->sequence, sequence + 1, memory_order_relaxed);
	/* Releases: who sees a new word sees the odd number too. */
	for (i = 0; i < TIME_WORDS; i++)
		atomic_store_explicit(&r->published[i], words[i], memory_order_release);
	atomic_store_explicit(&r->sequence, sequence + 2, memory_order_release);
}

static struct rtc_time snapshot(struct rtc *r)
{
	uint64_t words[TIME_WORDS];
	struct rtc_time t;
	uint32_t before, after;
	size_t i;

	do {
		before = atomic_load_explicit(&r->sequence, memory_order_acquire);
		for (i = 0; i < TIME_WORDS; i++)
			words[i] = atomic_load_explicit(&r->published[i], memory_order_acquire);
		after = atomic_load_explicit(&r->sequence, memory_order_relaxed);
	} while (before != after || (before & 1));
	memcpy(&t, words, sizeof(t));
	return t;
}

/* ---- the calendar ------------------------------------------------------------------------- */

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* Days since 1970-01-01 of a proleptic Gregorian date; March is the first month of a year. */
static int64_t days_from_date(int64_t year, int64_t month, int64_t day)
{
	int64_t months = (month + 9) % 12;
	int64_t y = year + floor_div(month - 3, 12);
	int64_t era = floor_div(y, 400);
	int64_t year_of_era = y - era * 400;

	return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
	       (153 * months + 2) / 5 + day - 1 - 719468;
}

struct date {
	int64_t year;
	unsigned month, day;
};

static struct date date_from_days(int64_t days)
{
	int64_t z = days + 719468;
	int64_t era = floor_div(z, 146097);
	int64_t d = z - era * 146097; /* day of the 400 years */
	int64_t y = (d - d / 1460 + d / 36524 - d / 146096) / 365;
	int64_t day_of_year = d - (y * 365 + y / 4 - y / 100);
	int64_t m = (day_of_year * 5 + 2) / 153;
	struct date date = {
		.year = era * 400 + y + (m >= 10),
		.month = (unsigned)(m < 10 ? m + 3 : m - 9),
		.day = (unsigned)(day_of_year - (153 * m + 2) / 5 + 1),
	};

	return date;
}

/* ---- register formats --------------------------------------------------------------------- */

static uint8_t encode(const struct rtc_time *t, unsigned value)
{
	return (uint8_t)(t->b & RTC_B_DM ? value : (value / 10 % 10) << 4 | value % 10);
}

static unsigned decode(const struct rtc_time *t, uint8_t byte)
{
	return t->b & RTC_B_DM ? byte : (byte >> 4) * 10u + (byte & 0x0fu);
}

static uint8_t encode_hours(const struct rtc_time *t, unsigned hours)
{
	if (t->b & RTC_B_24H)
		return encode(t, hours);
	return encode(t, hours % 12 ? hours % 12 : 12) | (hours >= 12 ? RTC_HOURS_PM : 0);
}

static unsigned decode_hours(const struct rtc_time *t, uint8_t byte)
{
	if (t->b & RTC_B_24H)
		return decode(t, byte);
	return decode(t, byte & (uint8_t)~RTC_HOURS_PM) % 12 + (byte & RTC_HOURS_PM ? 12 : 0);
}

/* The registers at a number of seconds since 1970. */
static uint8_t field_at(const struct rtc_time *t, int64_t seconds, enum rtc_field field)
{
	int64_t days = floor_div(seconds, SECONDS_PER_DAY);
	unsigned of_day = (unsigned)(seconds - days * SECONDS_PER_DAY);

	switch (field) {
	case FIELD_SECONDS:
		return encode(t, of_day % 60);
	case FIELD_MINUTES:
		return encode(t, of_day / 60 % 60);
	case FIELD_HOURS:
		return encode_hours(t, of_day / 3600);
	case FIELD_DAY_OF_WEEK: /* 1970-01-01 was a Thursday */
		return encode(t, (unsigned)(days + 4 - floor_div(days + 4, 7) * 7) + 1);
	case FIELD_DAY:
		return encode(t, date_from_days(days).day);
	case FIELD_MONTH:
		return encode(t, date_from_days(days).month);
	case FIELD_YEAR:
		return encode(t, (unsigned)(date_from_days(days).year % 100));
	case FIELD_CENTURY:
		return encode(t, (unsigned)(date_from_days(days).year / 100));
	case FIELDS:
		break;
	}
	return 0xff;
}

/* The seconds since 1970 that the registers say; values out of range carry over. */
static int64_t seconds_of(const struct rtc_time *t, const uint8_t fields[FIELDS])
{
	int64_t year = decode(t, fields[FIELD_CENTURY]) * 100ll + decode(t, fields[FIELD_YEAR]);
	int64_t days = days_from_date(year, decode(t, fields[FIELD_MONTH]),
				      decode(t, fields[FIELD_DAY]));

	return days * SECONDS_PER_DAY + decode_hours(t, fields[FIELD_HOURS]) * 3600ll +
	       decode(t, fields[FIELD_MINUTES]) * 60ll + decode(t, fields[FIELD_SECONDS]);
}

/* ---- the running clock -------------------------------------------------------------------- */

static bool is_running(const struct rtc_time *t)
{
	return !(t->b & RTC_B_SET) && (t->a & RTC_A_DV_MASK) <= RTC_A_DV_32KHZ;
}

static int64_t host_ns(struct rtc *r)
{
	return r->clock.now_ns(r->clock.arg);
}

/* Host time on the guest's divider: its seconds begin where the guest's do. */
static int64_t divider_ns(const struct rtc_time *t, int64_t now)
{
	return now + t->phase_ns;
}

static int64_t guest_seconds(const struct rtc_time *t, int64_t now)
{
	return floor_div(divider_ns(t, now), NS_PER_SECOND) + t->offset_s;
}

/* The registers of a running clock. */
static void read_fields(const struct rtc_time *t, int64_t now, uint8_t fields[FIELDS])
{
	int64_t seconds = guest_seconds(t, now);
	unsigned i;

	for (i = 0; i < FIELDS; i++)
		fields[i] = field_at(t, seconds, (enum rtc_field)i);
}

/* Lets a running clock show `fields`; its divider goes on as it was. */
static void set_fields(struct rtc_time *t, int64_t now, const uint8_t fields[FIELDS])
{
	t->offset_s = 0;
	t->offset_s = seconds_of(t, fields) - guest_seconds(t, now);
}

/* The divider leaves reset: the next update is half a second away. */
static void start_divider(struct rtc_time *t, int64_t now)
{
	int64_t fraction = now - floor_div(now, NS_PER_SECOND) * NS_PER_SECOND;

	t->phase_ns = (uint32_t)((NS_PER_SECOND + DIVIDER_START_NS - fraction) % NS_PER_SECOND);
}

static bool is_divider_reset(const struct rtc_time *t)
{
	return (t->a & RTC_A_DV_MASK) >= RTC_A_DV_RESET;
}

/*
 * A clock that stops keeps the bytes it shows, in the format it had; one that
 * starts takes its time from the bytes, in the format it has then.
 */
static void write_control_locked(struct rtc *r, uint8_t a, uint8_t b) TSA_REQUIRES(r->lock)
{
	struct rtc_time *t = &r->time;
	struct rtc_time old = *t;
	int64_t now = host_ns(r);

	t->a = a;
	t->b = b;
	if (is_divider_reset(&old) && !is_divider_reset(t))
		start_divider(t, now);
	if (is_running(&old) && !is_running(t))
		read_fields(&old, now, t->stopped);
	else if (!is_running(&old) && is_running(t))
		set_fields(t, now, t->stopped);
}

static void write_field_locked(struct rtc *r, enum rtc_field field, uint8_t byte)
	TSA_REQUIRES(r->lock)
{
	struct rtc_time *t = &r->time;
	int64_t now = host_ns(r);
	uint8_t fields[FIELDS];

	if (!is_running(t)) {
		t->stopped[field] = byte;
		return;
	}
	read_fields(t, now, fields);
	fields[field] = byte;
	set_fields(t, now, fields);
}

/* ---- registers ---------------------------------------------------------------------------- */

static bool field_of(uint8_t index, enum rtc_field *ret_field)
{
	static const uint8_t fields[RTC_BYTES] = {
		[RTC_REG_SECONDS] = FIELD_SECONDS + 1,
		[RTC_REG_MINUTES] = FIELD_MINUTES + 1,
		[RTC_REG_HOURS] = FIELD_HOURS + 1,
		[RTC_REG_DAY_OF_WEEK] = FIELD_DAY_OF_WEEK + 1,
		[RTC_REG_DAY] = FIELD_DAY + 1,
		[RTC_REG_MONTH] = FIELD_MONTH + 1,
		[RTC_REG_YEAR] = FIELD_YEAR + 1,
		[RTC_REG_CENTURY] = FIELD_CENTURY + 1,
	};

	if (!fields[index])
		return false;
	*ret_field = (enum rtc_field)(fields[index] - 1);
	return true;
}

static uint8_t read_a(struct rtc *r, const struct rtc_time *t)
{
	int64_t divider;

	if (!is_running(t))
		return t->a;
	divider = divider_ns(t, host_ns(r));
	divider -= floor_div(divider, NS_PER_SECOND) * NS_PER_SECOND;
	return t->a | (divider >= NS_PER_SECOND - UIP_NS ? RTC_A_UIP : 0);
}

static uint8_t read_data(struct rtc *r)
{
	uint8_t index = atomic_load_explicit(&r->index, memory_order_relaxed);
	struct rtc_time t = snapshot(r);
	enum rtc_field field;

	if (field_of(index, &field))
		return is_running(&t) ? field_at(&t, guest_seconds(&t, host_ns(r)), field) :
					t.stopped[field];
	switch (index) {
	case RTC_REG_A:
		return read_a(r, &t);
	case RTC_REG_B:
		return t.b;
	case RTC_REG_C:
		return 0;
	case RTC_REG_D:
		return RTC_D_VRT;
	default:
		return atomic_load_explicit(&r->memory[index], memory_order_relaxed);
	}
}

static void write_data_locked(struct rtc *r, uint8_t index, uint8_t value) TSA_REQUIRES(r->lock)
{
	enum rtc_field field;

	if (field_of(index, &field))
		write_field_locked(r, field, value);
	else if (index == RTC_REG_A)
		write_control_locked(r, value & (uint8_t)~RTC_A_UIP, r->time.b);
	else /* setting the time ends the update interrupt */
		write_control_locked(r, r->time.a,
				     value & RTC_B_SET ? value & (uint8_t)~RTC_B_UIE : value);
	publish_locked(r);
}

static void write_data(struct rtc *r, uint8_t value)
{
	uint8_t index = atomic_load_explicit(&r->index, memory_order_relaxed);
	enum rtc_field field;

	if (index == RTC_REG_C || index == RTC_REG_D)
		return;
	if (!field_of(index, &field) && index != RTC_REG_A && index != RTC_REG_B) {
		atomic_store_explicit(&r->memory[index], value, memory_order_relaxed);
		return;
	}
	lock_take(&r->lock);
	write_data_locked(r, index, value);
	lock_release(&r->lock);
}

static uint64_t rtc_read(void *device, uint64_t offset, unsigned width)
{
	/* The index register cannot be read. */
	return offset == RTC_PORT_DATA ? read_data(device) : 0xff;
}

static enum bus_action rtc_write(void *device, uint64_t offset, unsigned width, uint64_t value)
{
	struct rtc *r = device;

	/* Bit 7 of the index masks NMIs, which we have none of. */
	if (offset == RTC_PORT_INDEX)
		atomic_store_explicit(&r->index, value & (RTC_BYTES - 1), memory_order_relaxed);
	else
		write_data(r, (uint8_t)value);
	return BUS_DONE;
}

/* ---- host side ---------------------------------------------------------------------------- */

static int64_t host_now_ns(void *arg)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * NS_PER_SECOND + ts.tv_nsec;
}

static const char *rtc_status(const struct device *d)
{
	return "active";
}

static void rtc_destroy(struct device *d)
{
	struct rtc *r = (struct rtc *)d;

	if (!r)
		return;
	lock_fini(&r->lock);
	free(r);
}

static const struct device_ops rtc_device_ops = {
	.status = rtc_status,
	.destroy = rtc_destroy,
};

struct device *rtc_cmos_create_with_clock(const struct device_env *env,
					  const struct irq_line *line,
					  const struct rtc_clock *clock, struct error *err)
{
	struct rtc *r = calloc(1, sizeof(*r));

	if (!r) {
		error_set_errno(err, -ENOMEM, "rtc: cannot be made");
		return NULL;
	}
	r->dev.ops = &rtc_device_ops;
	r->dev.type = "rtc-cmos";
	r->dev.gsi = -1;
	snprintf(r->dev.id, sizeof(r->dev.id), "rtc");
	r->line = *line;
	r->clock = *clock;
	lock_init(&r->lock, LOCK_LEVEL_DEVICE, "rtc-cmos", r->dev.id);
	lock_take(&r->lock);
	r->time.a = RTC_A_DV_32KHZ | RTC_A_RS_1024HZ;
	r->time.b = RTC_B_24H;
	publish_locked(r);
	lock_release(&r->lock);
	return &r->dev;
}

struct device *rtc_cmos_create(const struct device_env *env, const struct irq_line *line,
			       struct error *err)
{
	const struct rtc_clock host = { .now_ns = host_now_ns };

	return rtc_cmos_create_with_clock(env, line, &host, err);
}

const struct bus_ops rtc_cmos_bus_ops = {
	.read = rtc_read,
	.write = rtc_write,
};
