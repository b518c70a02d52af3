/*
 * Random register accesses of a clock, while its host clocks run on, jump, and
 * its timer is run late or in time.
 *
 * Promises: the guest reads back what it wrote; a clock that runs shows valid
 * digits, and time that does not go back; IRQF is what B lets through of the
 * flags; an interrupt has one edge, and its flag is in C until C is read; the
 * timer asks for a later time, and for none when nothing is enabled.
 *
 * Input: one byte for the policy, then steps of 3 bytes: what to do, two values.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "devices/rtc_cmos.h"
#include "vmm/base/log.h"

#define STEP_BYTES 3
#define MAX_STEPS 64
#define TIMER_RUNS 16
#define SECOND 1000000000ll
#define START (1700000000ll * SECOND)

enum { SEC = 0, MIN = 2, HOUR = 4, DOW = 6, DAY = 7, MONTH = 8, YEAR = 9, CENTURY = 0x32 };
enum { REG_A = 10, REG_B = 11, REG_C = 12, REG_D = 13 };

#define A_UIP 0x80
#define B_SET 0x80
#define B_ENABLES 0x70
#define B_UIE 0x10
#define B_BINARY 0x04
#define B_24H 0x02
#define C_IRQF 0x80

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct machine {
	struct device *rtc;
	int64_t wall_ns, monotonic_ns;
	uint8_t a, b, memory[128]; /* what was written */
	bool is_raised;            /* an edge came, and nothing since may have taken IRQF back */
	bool has_time;             /* `time` was shown, and nothing since may have set it */
	uint64_t time;
};

static void require(bool holds)
{
	if (!holds)
		__builtin_trap();
}

static int64_t wall_now(void *arg)
{
	return ((struct machine *)arg)->wall_ns;
}

static int64_t monotonic_now(void *arg)
{
	return ((struct machine *)arg)->monotonic_ns;
}

static int set_line(void *chip, uint32_t gsi, bool level)
{
	struct machine *m = chip;

	if (level) {
		require(!m->is_raised && (m->b & B_ENABLES));
		m->is_raised = true;
	}
	return 0;
}

static const struct irq_ops irq_ops = { .set = set_line };

static uint8_t rd(struct machine *m, unsigned index)
{
	uint64_t value;

	require(rtc_cmos_bus_ops.write(m->rtc, 0, 1, index) == BUS_DONE);
	value = rtc_cmos_bus_ops.read(m->rtc, 1, 1);
	require(value <= 0xff);
	return (uint8_t)value;
}

static bool is_time(unsigned index)
{
	return index == SEC || index == MIN || index == HOUR ||
	       (index >= DOW && index <= YEAR) || index == CENTURY;
}

static bool is_running(const struct machine *m)
{
	return !(m->b & B_SET) && (m->a & 0x70) <= 0x20;
}

static void write_register(struct machine *m, unsigned index, uint8_t value)
{
	require(rtc_cmos_bus_ops.write(m->rtc, 0, 1, index) == BUS_DONE);
	require(rtc_cmos_bus_ops.write(m->rtc, 1, 1, value) == BUS_DONE);
	if (index == REG_A)
		m->a = value & (uint8_t)~A_UIP;
	else if (index == REG_B)
		m->b = value & B_SET ? value & (uint8_t)~B_UIE : value;
	else
		m->memory[index] = value;
	if (index == REG_B)
		m->is_raised = false; /* IRQF may have fallen, and may rise again */
	if (index == REG_A || index == REG_B || is_time(index))
		m->has_time = false;
}

static void read_flags(struct machine *m)
{
	uint8_t c = rd(m, REG_C);

	require((c & 0x0f) == 0);
	require(!(c & C_IRQF) == !(c & m->b & B_ENABLES));
	require(!m->is_raised || (c & C_IRQF));
	m->is_raised = false;
	require(rd(m, REG_C) == 0);
}

static unsigned number(const struct machine *m, uint8_t byte)
{
	if (m->b & B_BINARY)
		return byte;
	require((byte & 0x0f) <= 9 && byte >> 4 <= 9);
	return (byte >> 4) * 10u + (byte & 0x0f);
}

static unsigned hours(const struct machine *m, uint8_t byte)
{
	unsigned hour;

	if (m->b & B_24H)
		return number(m, byte);
	hour = number(m, byte & 0x7f);
	require(hour >= 1 && hour <= 12);
	return hour % 12 + (byte & 0x80 ? 12 : 0);
}

/* The time as a number that grows with it. */
static void read_time(struct machine *m)
{
	static const unsigned limits[] = { 99, 99, 12, 31, 23, 59, 59 };
	unsigned parts[7] = {
		number(m, rd(m, CENTURY)), number(m, rd(m, YEAR)), number(m, rd(m, MONTH)),
		number(m, rd(m, DAY)),	   hours(m, rd(m, HOUR)),  number(m, rd(m, MIN)),
		number(m, rd(m, SEC)),
	};
	unsigned day = number(m, rd(m, DOW));
	uint64_t time = 0;
	size_t i;

	require(day >= 1 && day <= 7 && parts[2] >= 1 && parts[3] >= 1);
	for (i = 0; i < 7; i++) {
		require(parts[i] <= limits[i]);
		time = time * 100 + parts[i];
	}
	require(!m->has_time || time >= m->time || parts[0] == 0);
	m->time = time;
	m->has_time = true;
}

static void read_register(struct machine *m, unsigned index)
{
	if (index == REG_C)
		read_flags(m);
	else if (index == REG_A)
		require((rd(m, REG_A) & (is_running(m) ? 0x7f : 0xff)) == m->a);
	else if (index == REG_B)
		require(rd(m, REG_B) == m->b);
	else if (index == REG_D)
		require(rd(m, REG_D) == 0x80);
	else if (!is_time(index))
		require(rd(m, index) == m->memory[index]);
	else if (is_running(m))
		read_time(m);
	else
		(void)rd(m, index);
}

static struct rtc_cmos_wakeup run_timer(struct machine *m)
{
	struct rtc_cmos_wakeup next = rtc_cmos_run_timer(m->rtc);

	require(next.wall_ns > m->wall_ns && next.monotonic_ns > m->monotonic_ns);
	require((m->b & B_ENABLES) || (next.wall_ns == RTC_CMOS_NEVER &&
				       next.monotonic_ns == RTC_CMOS_NEVER));
	return next;
}

static void pass(struct machine *m, int64_t ns)
{
	m->wall_ns += ns;
	m->monotonic_ns += ns;
}

/* The timer runs whenever it asks for that, for some times. */
static void run_in_time(struct machine *m, unsigned runs)
{
	while (runs--) {
		struct rtc_cmos_wakeup next = run_timer(m);
		int64_t ns = SECOND;

		if (next.wall_ns != RTC_CMOS_NEVER && next.wall_ns - m->wall_ns < ns)
			ns = next.wall_ns - m->wall_ns;
		if (next.monotonic_ns != RTC_CMOS_NEVER && next.monotonic_ns - m->monotonic_ns < ns)
			ns = next.monotonic_ns - m->monotonic_ns;
		pass(m, ns);
	}
}

static void set_clock(struct machine *m, int64_t ns)
{
	m->wall_ns += ns;
	if (m->wall_ns < -4000000000 * SECOND || m->wall_ns > 8000000000 * SECOND)
		m->wall_ns = START;
	m->has_time = false;
}

static void step(struct machine *m, const uint8_t *data)
{
	int64_t n = data[1] << 8 | data[2];

	switch (data[0] & 7) {
	case 0:
	case 1:
		read_register(m, data[1] & 0x7f);
		break;
	case 2:
	case 3:
		write_register(m, data[1] & 0x7f, data[2]);
		break;
	case 4: /* up to 16 s or, at times, 2 years */
		pass(m, n * (data[0] & 8 ? SECOND * 1000 : SECOND / 4096));
		break;
	case 5: /* up to a day, or 60 years, there or back */
		set_clock(m, (int16_t)n * (data[0] & 8 ? SECOND * 60000 : SECOND * 2 / 3));
		break;
	case 6:
		run_timer(m);
		break;
	case 7:
		run_in_time(m, data[1] % TIMER_RUNS);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct machine m = { .wall_ns = START, .a = 0x26, .b = B_24H };
	const struct irq_line line = { .ops = &irq_ops, .chip = &m, .gsi = 8 };
	const struct rtc_clock clock = { .wall_ns = wall_now, .monotonic_ns = monotonic_now,
					 .arg = &m };
	const struct device_env env = { 0 };
	struct rtc_config config;
	size_t i;

	if (size < 1)
		return 0;
	config.lost_ticks = data[0] & 1 ? RTC_LOST_TICKS_DISCARD : RTC_LOST_TICKS_SLEW;
	m.rtc = rtc_cmos_create_with_clock(&env, &config, &line, &clock, NULL);
	require(m.rtc != NULL);
	for (i = 0; i < MAX_STEPS && (i + 1) * STEP_BYTES < size; i++)
		step(&m, data + 1 + i * STEP_BYTES);
	read_flags(&m);
	m.rtc->ops->destroy(m.rtc);
	return 0;
}
