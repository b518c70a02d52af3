/*
 * MC146818 real-time clock: its registers.
 *
 * What the registers show during one second of the clock is published with the
 * host time for which it is right, beside the state that it follows from. A
 * reader whose time lies there takes one byte; any other works it out from a
 * copy of the state, and publishes the new second if nobody holds the lock.
 * There are two copies: whoever publishes writes the one that is not in force,
 * so that no reader ever waits, not even for a writer that lost its CPU.
 *
 * While the clock runs the time is the host's plus an offset; while it is
 * stopped (SET, or the divider in reset) the time is the bytes that the guest
 * sees and writes.
 *
 * Flags of register C whose interrupt is not enabled are worked out when C is
 * read: an idle guest costs no wake-up. Flags that are enabled are set by the
 * timer thread, which raises the interrupt (rtc_cmos_thread.c).
 *
 * Threads: any vCPU thread. Locks: r->lock (level DEVICE), for writes to the
 * time, the alarm and registers A and B only; reads take none.
 */
#include "devices/rtc_cmos.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "devices/rtc_cmos_impl.h"

enum rtc_port { RTC_PORT_INDEX = 0, RTC_PORT_DATA = 1 };

#define NS_PER_SECOND 1000000000ll

/* What an index leads to: first what is shown by the time, SHOWN kinds of it. */
enum kind {
	KIND_MEMORY = 0,
	KIND_SHOWN = 1, /* FIELDS of them, in their order */
	KIND_A = KIND_SHOWN + SHOWN_A,
	KIND_C,
	KIND_B,
	KIND_D,
	KIND_ALARM, /* ALARMS of them */
};

static const uint8_t kinds[RTC_BYTES] = {
	[RTC_REG_SECONDS] = KIND_SHOWN + FIELD_SECONDS,
	[RTC_REG_MINUTES] = KIND_SHOWN + FIELD_MINUTES,
	[RTC_REG_HOURS] = KIND_SHOWN + FIELD_HOURS,
	[RTC_REG_DAY_OF_WEEK] = KIND_SHOWN + FIELD_DAY_OF_WEEK,
	[RTC_REG_DAY] = KIND_SHOWN + FIELD_DAY,
	[RTC_REG_MONTH] = KIND_SHOWN + FIELD_MONTH,
	[RTC_REG_YEAR] = KIND_SHOWN + FIELD_YEAR,
	[RTC_REG_CENTURY] = KIND_SHOWN + FIELD_CENTURY,
	[RTC_REG_A] = KIND_A,
	[RTC_REG_B] = KIND_B,
	[RTC_REG_C] = KIND_C,
	[RTC_REG_D] = KIND_D,
	[RTC_REG_SECONDS_ALARM] = KIND_ALARM + ALARM_SECONDS,
	[RTC_REG_MINUTES_ALARM] = KIND_ALARM + ALARM_MINUTES,
	[RTC_REG_HOURS_ALARM] = KIND_ALARM + ALARM_HOURS,
	[RTC_REG_DAY_ALARM] = KIND_ALARM + ALARM_DAY,
	[RTC_REG_MONTH_ALARM] = KIND_ALARM + ALARM_MONTH,
};

static int64_t wall_ns(struct rtc *r)
{
	return r->clock.wall_ns(r->clock.arg);
}

struct rtc_now rtc_read_clocks(struct rtc *r)
{
	return (struct rtc_now){ wall_ns(r), r->clock.monotonic_ns(r->clock.arg) };
}

/* ---- publishing --------------------------------------------------------------------------- */

/*
 * Into the copy that is not in force. All stores release: a reader that sees
 * one of them in its copy sees as well that the other copy is in force.
 */
static void publish_locked(struct rtc *r, int64_t now) TSA_REQUIRES(r->lock)
{
	uint32_t sequence = atomic_load_explicit(&r->sequence, memory_order_relaxed) + 1;
	struct rtc_copy *copy = &r->copies[sequence & 1];
	struct rtc_shown shown;
	uint64_t words[TIME_WORDS];
	size_t i;

	rtc_time_show(&r->time, now, &shown);
	memcpy(words, &r->time, sizeof(words));
	atomic_store_explicit(&copy->from_ns, shown.from_ns, memory_order_release);
	atomic_store_explicit(&copy->valid_ns, shown.valid_ns, memory_order_release);
	atomic_store_explicit(&copy->uip_after_ns, shown.uip_after_ns, memory_order_release);
	for (i = 0; i < SHOWN; i++)
		atomic_store_explicit(&copy->bytes[i], shown.bytes[i], memory_order_release);
	for (i = 0; i < TIME_WORDS; i++)
		atomic_store_explicit(&copy->time[i], words[i], memory_order_release);
	atomic_store_explicit(&r->sequence, sequence, memory_order_release);
}

/* What was read of the copy in force at `sequence`, by loads that acquire, is of one piece. */
static bool is_in_force(struct rtc *r, uint32_t sequence)
{
	return atomic_load_explicit(&r->sequence, memory_order_relaxed) == sequence;
}

struct rtc_time rtc_snapshot(struct rtc *r)
{
	uint64_t words[TIME_WORDS];
	struct rtc_time t;
	uint32_t sequence;
	size_t i;

	do {
		struct rtc_copy *copy;

		sequence = atomic_load_explicit(&r->sequence, memory_order_acquire);
		copy = &r->copies[sequence & 1];
		for (i = 0; i < TIME_WORDS; i++)
			words[i] = atomic_load_explicit(&copy->time[i], memory_order_acquire);
	} while (!is_in_force(r, sequence));
	memcpy(&t, words, sizeof(t));
	return t;
}

/* ---- reads -------------------------------------------------------------------------------- */

static uint8_t pick(const struct rtc_shown *shown, unsigned which, int64_t now)
{
	uint64_t elapsed = (uint64_t)now - (uint64_t)shown->from_ns;
	bool is_updating = which == SHOWN_A && elapsed >= shown->uip_after_ns;

	return shown->bytes[which] | (is_updating ? RTC_A_UIP : 0);
}

/* The second that was published is over, or the clock was set. */
static __attribute__((noinline)) uint8_t read_next_second(struct rtc *r, unsigned which,
							  int64_t now)
{
	struct rtc_time t = rtc_snapshot(r);
	struct rtc_shown shown;

	rtc_time_show(&t, now, &shown);
	if (lock_try(&r->lock)) {
		publish_locked(r, now);
		lock_release(&r->lock);
	}
	return pick(&shown, which, now);
}

static uint8_t read_shown(struct rtc *r, size_t which)
{
	int64_t now = wall_ns(r);
	uint32_t sequence = atomic_load_explicit(&r->sequence, memory_order_acquire);
	struct rtc_copy *copy = &r->copies[sequence & 1];
	uint8_t byte = atomic_load_explicit(&copy->bytes[which], memory_order_acquire);
	/* wraps, and is large, before that second */
	uint64_t elapsed = (uint64_t)now - (uint64_t)atomic_load_explicit(&copy->from_ns,
									  memory_order_acquire);

	if (which == SHOWN_A &&
	    elapsed >= atomic_load_explicit(&copy->uip_after_ns, memory_order_acquire))
		byte |= RTC_A_UIP;
	if (__builtin_expect(elapsed < atomic_load_explicit(&copy->valid_ns,
							    memory_order_acquire) &&
				     is_in_force(r, sequence), 1))
		return byte;
	return read_next_second(r, which, now);
}

/*
 * The flags that came due since C was read or settled last. Whoever moves the
 * marks has the flags between to itself.
 */
static uint8_t take_flags(struct rtc *r, const struct rtc_time *t, struct rtc_now now)
{
	struct rtc_now from = {
		atomic_exchange(&r->seen_wall_ns, now.wall_ns),
		atomic_exchange(&r->seen_monotonic_ns, now.monotonic_ns),
	};

	return rtc_time_flags_between(t, from, now);
}

/* Not inline, as read_next_second(): what is read often shall need no room for either. */
static __attribute__((noinline)) uint8_t read_c(struct rtc *r)
{
	struct rtc_time t = rtc_snapshot(r);
	uint8_t flags = take_flags(r, &t, rtc_read_clocks(r)) & (uint8_t)~t.b;

	flags |= atomic_exchange(&r->c, 0);
	flags &= RTC_C_FLAGS;
	if (flags & t.b)
		flags |= RTC_C_IRQF;
	/* Ordered after the exchange; see rtc_cmos_run_timer(). */
	if (atomic_load(&r->awaits_read) && atomic_exchange(&r->awaits_read, false))
		rtc_poke(r);
	return flags;
}

static uint64_t rtc_read(void *device, uint64_t offset, unsigned width)
{
	struct rtc *r = device;
	size_t index, which;

	if (offset != RTC_PORT_DATA)
		return 0xff; /* the index register cannot be read */
	index = atomic_load_explicit(&r->index, memory_order_relaxed);
	which = (size_t)kinds[index] - KIND_SHOWN;
	if (__builtin_expect(which < SHOWN, 1))
		return read_shown(r, which);
	if (which == KIND_C - KIND_SHOWN)
		return read_c(r);
	return atomic_load_explicit(&r->memory[index], memory_order_relaxed);
}

/* ---- writes ------------------------------------------------------------------------------- */

/*
 * Puts into C what came due under the old state. Of the periodic interrupt the
 * timer counts each tick, so that it is left to it while it is enabled.
 */
static void settle_locked(struct rtc *r, struct rtc_now now) TSA_REQUIRES(r->lock)
{
	uint8_t flags = take_flags(r, &r->time, now);

	if (r->time.b & RTC_B_PIE)
		flags &= (uint8_t)~RTC_C_PF;
	atomic_fetch_or(&r->c, flags);
}

/* IRQF falls as soon as nothing that is set is enabled; only the timer raises it. */
static void lower_irqf_locked(struct rtc *r) TSA_REQUIRES(r->lock)
{
	uint8_t c = atomic_load(&r->c);

	while ((c & RTC_C_IRQF) && !(c & r->time.b & RTC_B_ENABLES)) {
		if (atomic_compare_exchange_weak(&r->c, &c, c & (uint8_t)~RTC_C_IRQF))
			return;
	}
}

/* Setting the time ends the update interrupt. */
static uint8_t allowed_b(uint8_t value)
{
	return value & RTC_B_SET ? value & (uint8_t)~RTC_B_UIE : value;
}

/* Returns the interrupts that were enabled before or are now. */
static uint8_t write_state_locked(struct rtc *r, uint8_t index, uint8_t value)
	TSA_REQUIRES(r->lock)
{
	struct rtc_now now = rtc_read_clocks(r);
	struct rtc_time *t = &r->time;
	uint8_t kind = kinds[index];
	uint8_t enables = t->b;

	settle_locked(r, now);
	if (kind == KIND_A)
		rtc_time_write_control(t, now, value & (uint8_t)~RTC_A_UIP, t->b);
	else if (kind == KIND_B)
		rtc_time_write_control(t, now, t->a, allowed_b(value));
	else if (kind >= KIND_ALARM)
		rtc_time_write_alarm(t, now, (enum rtc_alarm)(kind - KIND_ALARM), value);
	else
		rtc_time_write_field(t, now, (enum rtc_field)(kind - KIND_SHOWN), value);
	if (kind >= KIND_ALARM)
		atomic_store_explicit(&r->memory[index], value, memory_order_relaxed);
	atomic_store_explicit(&r->memory[RTC_REG_B], t->b, memory_order_relaxed);
	publish_locked(r, now.wall_ns);
	lower_irqf_locked(r);
	return (enables | t->b) & RTC_B_ENABLES;
}

static void write_state(struct rtc *r, uint8_t index, uint8_t value)
{
	uint8_t enables;

	lock_take(&r->lock);
	enables = write_state_locked(r, index, value);
	lock_release(&r->lock);
	if (enables)
		rtc_poke(r);
}

/* Not inline: the index is written much more often, and needs no stack. */
static __attribute__((noinline)) enum bus_action write_data(struct rtc *r, uint8_t value)
{
	uint8_t index = atomic_load_explicit(&r->index, memory_order_relaxed);

	switch (kinds[index]) {
	case KIND_MEMORY:
		atomic_store_explicit(&r->memory[index], value, memory_order_relaxed);
		break;
	case KIND_C:
	case KIND_D:
		break;
	default:
		write_state(r, index, value);
		break;
	}
	return BUS_DONE;
}

static enum bus_action rtc_write(void *device, uint64_t offset, unsigned width, uint64_t value)
{
	struct rtc *r = device;

	if (offset != RTC_PORT_INDEX)
		return write_data(r, (uint8_t)value);
	/* Bit 7 masks NMIs, which we have none of. */
	atomic_store_explicit(&r->index, value & (RTC_BYTES - 1), memory_order_relaxed);
	return BUS_DONE;
}

/*
 * What the time shows changes with it: at the end of the second, and register A
 * 244 us before. A sleep that is too long by a writer's change of the clock is no
 * harm: it is bounded, and that writer is the guest.
 */
static uint64_t rtc_rests(void *device, uint64_t offset)
{
	struct rtc *r = device;
	size_t which = (size_t)kinds[atomic_load_explicit(&r->index, memory_order_relaxed)] -
		       KIND_SHOWN;
	struct rtc_time t;
	struct rtc_shown shown;
	uint64_t elapsed;
	int64_t now;

	if (offset != RTC_PORT_DATA || which >= SHOWN)
		return 0;
	now = wall_ns(r);
	t = rtc_snapshot(r);
	rtc_time_show(&t, now, &shown);
	elapsed = (uint64_t)now - (uint64_t)shown.from_ns;
	if (which == SHOWN_A && elapsed < shown.uip_after_ns)
		return shown.uip_after_ns - elapsed;
	return elapsed < shown.valid_ns ? shown.valid_ns - elapsed : 0;
}

const struct bus_ops rtc_cmos_bus_ops = {
	.read = rtc_read,
	.write = rtc_write,
	.rests = rtc_rests,
};

/* ---- host side ---------------------------------------------------------------------------- */

static int64_t read_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * NS_PER_SECOND + ts.tv_nsec;
}

static int64_t host_wall_ns(void *arg)
{
	return read_clock(CLOCK_REALTIME);
}

static int64_t host_monotonic_ns(void *arg)
{
	return read_clock(CLOCK_MONOTONIC);
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
	rtc_thread_fini(r);
	if (r->metrics)
		metrics_remove_group(r->metrics, &r->timer.counts);
	lock_fini(&r->lock);
	free(r);
}

static const struct device_ops rtc_device_ops = {
	.start = rtc_thread_start,
	.quiesce = rtc_thread_quiesce,
	.unquiesce = rtc_thread_unquiesce,
	.status = rtc_status,
	.destroy = rtc_destroy,
};

static const struct metric_field rtc_fields[] = {
	METRIC(struct rtc_counts, ticks),
	METRIC(struct rtc_counts, late_ticks),
	METRIC(struct rtc_counts, lost_ticks),
	{ 0 },
};

static void init_registers(struct rtc *r)
{
	struct rtc_now now = rtc_read_clocks(r);

	lock_take(&r->lock);
	rtc_time_init(&r->time, now);
	publish_locked(r, now.wall_ns);
	atomic_init(&r->memory[RTC_REG_B], r->time.b);
	lock_release(&r->lock);
	atomic_init(&r->memory[RTC_REG_D], RTC_D_VRT);
	atomic_init(&r->seen_wall_ns, now.wall_ns);
	atomic_init(&r->seen_monotonic_ns, now.monotonic_ns);
	r->timer.wall_ns = now.wall_ns;
}

struct device *rtc_cmos_create_with_clock(const struct device_env *env,
					  const struct rtc_config *config,
					  const struct irq_line *line,
					  const struct rtc_clock *clock, struct error *err)
{
	struct rtc *r = calloc(1, sizeof(*r));
	int ret;

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
	r->timer.policy = config->lost_ticks;
	lock_init(&r->lock, LOCK_LEVEL_DEVICE, "rtc-cmos", r->dev.id);
	rtc_thread_init(r);
	init_registers(r);
	if (!env->metrics)
		return &r->dev;
	ret = metrics_add_group(env->metrics, "rtc", rtc_fields, &r->timer.counts);
	if (ret < 0) {
		error_set_errno(err, ret, "rtc: metrics");
		rtc_destroy(&r->dev);
		return NULL;
	}
	r->metrics = env->metrics;
	return &r->dev;
}

struct device *rtc_cmos_create(const struct device_env *env, const struct rtc_config *config,
			       const struct irq_line *line, struct error *err)
{
	const struct rtc_clock host = {
		.wall_ns = host_wall_ns,
		.monotonic_ns = host_monotonic_ns,
	};

	return rtc_cmos_create_with_clock(env, config, line, &host, err);
}
