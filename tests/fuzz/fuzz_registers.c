/*
 * Random port accesses, of any width, to a bus with the devices of a PC, with
 * input from the host and a clock that jumps in between. After each step what
 * the data sheets promise must hold.
 *
 * Input: steps of 4 bytes: what to do, where, two bytes of value.
 */
#include <stddef.h>
#include <stdint.h>

#include "devices/acpi_pm.h"
#include "devices/i8042.h"
#include "devices/rtc_cmos.h"
#include "devices/uart16550.h"
#include "vmm/base/log.h"

#define STEP_BYTES 4
#define MAX_STEPS 1024

#define PORT_RTC 0x70
#define PORT_KBC 0x60
#define PORT_UART 0x3f8
#define PORT_PM 0x600

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct machine {
	struct bus bus;
	struct bus_lookup lookup;
	struct device *uart, *kbc, *pm, *rtc;
	bool uart_level;
	int64_t now_ns;
};

static int set_line(void *chip, uint32_t gsi, bool level)
{
	struct machine *m = chip;

	if (gsi == 4)
		m->uart_level = level;
	return 0;
}

static const struct irq_ops irq_ops = { .set = set_line };

static int64_t clock_now(void *arg)
{
	return ((struct machine *)arg)->now_ns;
}

static void require(bool holds)
{
	if (!holds)
		__builtin_trap();
}

static void place(struct machine *m, uint64_t base, uint64_t ports, const struct bus_ops *ops,
		  struct device *d)
{
	const struct bus_region r = { .name = d->type, .base = base, .size = ports,
				      .min_access = 1, .max_access = 1, .ops = ops, .device = d };

	require(bus_add(&m->bus, BUS_PIO, &r, NULL) == 0);
}

static void build(struct machine *m)
{
	static const struct serial_config none = { .console = CONSOLE_NONE };
	static const struct rtc_config slew = { 0 };
	const struct irq_line serial = { .ops = &irq_ops, .chip = m, .gsi = 4 };
	const struct irq_line keyboard = { .ops = &irq_ops, .chip = m, .gsi = 1 };
	const struct irq_line alarm = { .ops = &irq_ops, .chip = m, .gsi = 8 };
	const struct rtc_clock clock = { .wall_ns = clock_now, .monotonic_ns = clock_now,
					 .arg = m };
	const struct device_env env = { 0 };

	bus_init(&m->bus);
	m->uart = uart16550_create(&env, &none, &serial, NULL);
	m->kbc = i8042_create(&env, &keyboard, NULL);
	m->pm = acpi_pm_create(&env, NULL);
	m->rtc = rtc_cmos_create_with_clock(&env, &slew, &alarm, &clock, NULL);
	require(m->uart && m->kbc && m->pm && m->rtc);
	place(m, PORT_UART, 8, &uart16550_bus_ops, m->uart);
	place(m, PORT_KBC, 5, &i8042_bus_ops, m->kbc);
	place(m, PORT_PM, ACPI_PM_SIZE, &acpi_pm_bus_ops, m->pm);
	place(m, PORT_RTC, 2, &rtc_cmos_bus_ops, m->rtc);
	bus_lookup_init(&m->lookup, &m->bus);
}

static void tear_down(struct machine *m)
{
	m->uart->ops->destroy(m->uart);
	m->kbc->ops->destroy(m->kbc);
	m->pm->ops->destroy(m->pm);
	m->rtc->ops->destroy(m->rtc);
}

static uint64_t port_of(uint8_t where)
{
	static const uint16_t bases[] = { PORT_UART, PORT_KBC, PORT_PM, PORT_RTC };

	/* one port beyond each device at times */
	return bases[where & 3] + (where >> 2) % 9u;
}

static void guest_access(struct machine *m, uint8_t what, uint64_t port, uint64_t value)
{
	unsigned width = 1u << (what >> 1 & 3);
	enum bus_action action;
	uint64_t got;

	/* mostly bytes: all else is refused by the bus */
	if (what & 0x18)
		width = 1;
	if (what & 1) {
		action = bus_write(&m->lookup, BUS_PIO, port, width, value);
		require(action == BUS_DONE || action == BUS_GUEST_RESET ||
			action == BUS_GUEST_POWEROFF);
		require(action != BUS_GUEST_POWEROFF || port == PORT_PM);
	} else {
		got = bus_read(&m->lookup, BUS_PIO, port, width);
		require(got <= 0xff || got == UINT64_MAX);
	}
}

static void host_access(struct machine *m, uint8_t where, const uint8_t value[2])
{
	switch (where & 3) {
	case 0:
		(void)uart16550_receive(m->uart, value, 2);
		break;
	case 1:
		(void)i8042_ctrl_alt_del(m->kbc);
		break;
	case 2: /* a step of a fraction of a second */
		m->now_ns += (value[0] << 8 | value[1]) * 100000ll;
		break;
	case 3: /* a step of up to 180 years, there or back */
		m->now_ns += ((int8_t)value[0] * 256ll + value[1]) * 86400ll * 2000000000ll;
		if (m->now_ns < -4000000000000000000ll || m->now_ns > 4000000000000000000ll)
			m->now_ns = 0;
		break;
	}
}

static uint8_t peek(struct machine *m, uint64_t port)
{
	return (uint8_t)bus_read(&m->lookup, BUS_PIO, port, 1);
}

/* Reads without side effects only. */
static void check(struct machine *m)
{
	require((peek(m, PORT_UART + 3) & 0x80) || (peek(m, PORT_UART + 1) & 0xf0) == 0);
	require((peek(m, PORT_UART + 4) & 0xe0) == 0);
	require((peek(m, PORT_KBC + 4) & 0x92) == 0x10);
	require((peek(m, PORT_PM) & ~0x1c) == 0);
	require((peek(m, PORT_PM + 1) & ~0x80) == 0);
}

/* With the side effect of an acknowledgement: at the end. */
static void check_uart_line(struct machine *m)
{
	bool level = m->uart_level;

	require((peek(m, PORT_UART + 5) & 0x60) == 0x60 || level);
	level = m->uart_level;
	require(level == !(peek(m, PORT_UART + 2) & 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct machine m = { .now_ns = 1700000000ll * 1000000000ll };
	size_t step, steps = size / STEP_BYTES;

	build(&m);
	for (step = 0; step < steps && step < MAX_STEPS; step++, data += STEP_BYTES) {
		uint64_t value = (uint64_t)(data[2] | data[3] << 8);

		if ((data[0] & 0xe0) == 0xe0)
			host_access(&m, data[1], data + 2);
		else
			guest_access(&m, data[0], port_of(data[1]), value);
		check(&m);
	}
	check_uart_line(&m);
	tear_down(&m);
	return 0;
}
