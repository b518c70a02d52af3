/*
 * ACPI sleep control, sleep status and reset registers (ACPI 6.4, 4.8.3.6 and
 * 4.8.3.7). Only S5 exists; any other sleep ends at once, as WAK_STS shows.
 *
 * Threads: any vCPU thread. Locks: none, each register is one atomic byte.
 * Not here: the tables that announce them (arch acpi.c), what a reset does.
 */
#include "devices/acpi_pm.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "vmm/base/bits.h"

enum acpi_pm_reg {
	ACPI_PM_REG_SLEEP_CONTROL = ACPI_PM_SLEEP_CONTROL,
	ACPI_PM_REG_SLEEP_STATUS = ACPI_PM_SLEEP_STATUS,
	ACPI_PM_REG_RESET = ACPI_PM_RESET,
};

#define ACPI_PM_SLP_TYP_SHIFT 2
#define ACPI_PM_SLP_TYP_MASK 0x1cu
#define ACPI_PM_SLP_EN BIT(5) /* reads as zero */
#define ACPI_PM_WAK_STS BIT(7)

struct acpi_pm {
	/* constant after create */
	struct device dev;
	/* atomic: any vCPU */
	_Atomic uint8_t sleep_type; /* in place */
	_Atomic uint8_t sleep_status;
};

static uint64_t acpi_pm_read(void *device, uint64_t offset, unsigned width)
{
	struct acpi_pm *p = device;

	switch ((enum acpi_pm_reg)offset) {
	case ACPI_PM_REG_SLEEP_CONTROL:
		return atomic_load(&p->sleep_type);
	case ACPI_PM_REG_SLEEP_STATUS:
		return atomic_load(&p->sleep_status);
	case ACPI_PM_REG_RESET:
		return 0;
	}
	return 0xff;
}

static enum bus_action write_control(struct acpi_pm *p, uint8_t value)
{
	atomic_store(&p->sleep_type, value & ACPI_PM_SLP_TYP_MASK);
	if (!(value & ACPI_PM_SLP_EN))
		return BUS_DONE;
	if ((value & ACPI_PM_SLP_TYP_MASK) >> ACPI_PM_SLP_TYP_SHIFT == ACPI_PM_SLP_TYP_S5)
		return BUS_GUEST_POWEROFF;
	atomic_fetch_or(&p->sleep_status, ACPI_PM_WAK_STS);
	return BUS_DONE;
}

static enum bus_action acpi_pm_write(void *device, uint64_t offset, unsigned width, uint64_t value)
{
	struct acpi_pm *p = device;

	switch ((enum acpi_pm_reg)offset) {
	case ACPI_PM_REG_SLEEP_CONTROL:
		return write_control(p, (uint8_t)value);
	case ACPI_PM_REG_SLEEP_STATUS: /* ones clear */
		atomic_fetch_and(&p->sleep_status, (uint8_t)~value);
		return BUS_DONE;
	case ACPI_PM_REG_RESET:
		return (uint8_t)value == ACPI_PM_RESET_VALUE ? BUS_GUEST_RESET : BUS_DONE;
	}
	return BUS_DONE;
}

static const char *acpi_pm_status(const struct device *d)
{
	return "active";
}

static void acpi_pm_destroy(struct device *d)
{
	free(d);
}

static const struct device_ops acpi_pm_device_ops = {
	.status = acpi_pm_status,
	.destroy = acpi_pm_destroy,
};

struct device *acpi_pm_create(const struct device_env *env, struct error *err)
{
	struct acpi_pm *p = calloc(1, sizeof(*p));

	if (!p) {
		error_set_errno(err, -ENOMEM, "acpi-pm: cannot be made");
		return NULL;
	}
	p->dev.ops = &acpi_pm_device_ops;
	p->dev.type = "acpi-pm";
	p->dev.gsi = -1;
	snprintf(p->dev.id, sizeof(p->dev.id), "acpi-pm");
	return &p->dev;
}

const struct bus_ops acpi_pm_bus_ops = {
	.read = acpi_pm_read,
	.write = acpi_pm_write,
};
