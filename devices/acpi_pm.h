/*
 * The sleep and reset registers of ACPI's hardware-reduced model: how a guest
 * switches itself off or asks for a reset.
 */
#ifndef LULL_ACPI_PM_H
#define LULL_ACPI_PM_H

#include "vmm/base/error.h"
#include "vmm/bus.h"
#include "vmm/device.h"

/* What the firmware tables have to say. */
#define ACPI_PM_SLEEP_CONTROL 0
#define ACPI_PM_SLEEP_STATUS 1
#define ACPI_PM_RESET 2
#define ACPI_PM_SIZE 3
#define ACPI_PM_SLP_TYP_S5 5
#define ACPI_PM_RESET_VALUE 0x01

/* Main thread. */
struct device *acpi_pm_create(const struct device_env *env, struct error *err);

/* 3 registers of a byte. */
extern const struct bus_ops acpi_pm_bus_ops;

#endif
