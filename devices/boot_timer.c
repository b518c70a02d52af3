/*
 * Boot timer: BOOT_TIMER_MAGIC at offset 0 logs how long the guest took, once.
 *
 * Threads: any vCPU thread. Locks: none but the log's.
 * Not here: metrics of the start itself (the VM's).
 */
#include "devices/boot_timer.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "vmm/base/log.h"

enum boot_timer_reg { BOOT_TIMER_REG_DONE = 0 };

struct boot_timer {
	/* constant after create */
	struct device dev;
	uint64_t start_us;
	uint64_t start_cpu_us;
	/* atomic: the first writer wins */
	atomic_bool done;
};

static uint64_t now_us(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000ull + (uint64_t)ts.tv_nsec / 1000ull;
}

static uint64_t boot_timer_read(void *device, uint64_t offset, unsigned width)
{
	return 0;
}

static enum bus_action boot_timer_write(void *device, uint64_t offset, unsigned width,
					uint64_t value)
{
	struct boot_timer *b = device;
	unsigned long long us, cpu_us;

	if (offset != BOOT_TIMER_REG_DONE || (uint8_t)value != BOOT_TIMER_MAGIC ||
	    atomic_exchange(&b->done, true))
		return BUS_DONE;
	us = now_us(CLOCK_MONOTONIC) - b->start_us;
	cpu_us = now_us(CLOCK_PROCESS_CPUTIME_ID) - b->start_cpu_us;
	log_always("Guest-boot-time = %6llu us %llu ms, %6llu CPU us %llu CPU ms", us, us / 1000,
		   cpu_us, cpu_us / 1000);
	return BUS_DONE;
}

static const char *boot_timer_status(const struct device *d)
{
	return "active";
}

static void boot_timer_destroy(struct device *d)
{
	free(d);
}

static const struct device_ops boot_timer_device_ops = {
	.status = boot_timer_status,
	.destroy = boot_timer_destroy,
};

struct device *boot_timer_create(const struct device_env *env, struct error *err)
{
	struct boot_timer *b = calloc(1, sizeof(*b));

	if (!b) {
		error_set_errno(err, -ENOMEM, "boot timer: cannot be made");
		return NULL;
	}
	b->dev.ops = &boot_timer_device_ops;
	b->dev.type = "boot-timer";
	b->dev.gsi = -1;
	snprintf(b->dev.id, sizeof(b->dev.id), "boot-timer");
	b->start_us = now_us(CLOCK_MONOTONIC);
	b->start_cpu_us = now_us(CLOCK_PROCESS_CPUTIME_ID);
	return &b->dev;
}

const struct bus_ops boot_timer_bus_ops = {
	.read = boot_timer_read,
	.write = boot_timer_write,
};
