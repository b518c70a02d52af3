/*
 * The x86 board. The only file here that knows devices.
 *
 * Threads: main. Locks: none.
 */
#include "arch-x86/board.h"

#include <errno.h>

#include "arch-x86/acpi.h"
#include "arch-x86/arch_vm.h"
#include "devices/acpi_pm.h"
#include "devices/boot_timer.h"
#include "devices/i8042.h"
#include "devices/rtc_cmos.h"
#include "devices/uart16550.h"
#include "devices/virtio/mmio.h"
#include "vmm/arch.h"
#include "vmm/base/bits.h"
#include "vmm/vcpu_poll.h"
#include "vmm/vm.h"

#define NO_GSI (-1)

/* What the tables tell the guest to write, and where, is what the device takes. */
_Static_assert(ACPI_S5_SLEEP_TYPE == ACPI_PM_SLP_TYP_S5, "sleep type of S5");
_Static_assert(ACPI_RESET_VALUE == ACPI_PM_RESET_VALUE, "reset value");
_Static_assert(ACPI_PM_SLEEP_CONTROL == 0 && ACPI_PM_SLEEP_STATUS == 1 && ACPI_PM_RESET == 2,
	       "register order");
_Static_assert(ACPI_RTC_CENTURY == RTC_CMOS_CENTURY &&
		       ACPI_RTC_DAY_ALARM == RTC_CMOS_DAY_ALARM &&
		       ACPI_RTC_MONTH_ALARM == RTC_CMOS_MONTH_ALARM,
	       "bytes of the clock");
_Static_assert(LIMIT_VIRTIO_DEVICES == LAYOUT_VIRTIO_MAX, "a line for each virtio device");

/* A device that is always there, or that the configuration switches on. */
struct board_row {
	enum bus_kind kind;
	uint64_t base;
	uint64_t size;
	uint8_t max_access;
	int32_t gsi;
	uint8_t coalesced; /* ports from the first on whose writes wait for the next exit */
	const struct bus_ops *ops;
	struct device *(*create)(struct vm *vm, const struct irq_line *line, struct error *err);
};

static struct device *create_serial(struct vm *vm, const struct irq_line *line, struct error *err)
{
	return uart16550_create(&vm->env, &vm->config.serial, line, err);
}

static struct device *create_i8042(struct vm *vm, const struct irq_line *line, struct error *err)
{
	struct device *d = i8042_create(&vm->env, line, err);

	vm->arch->board.keyboard = d;
	return d;
}

static struct device *create_rtc(struct vm *vm, const struct irq_line *line, struct error *err)
{
	return rtc_cmos_create(&vm->env, &vm->config.rtc, line, err);
}

static struct device *create_acpi_pm(struct vm *vm, const struct irq_line *line,
				     struct error *err)
{
	return acpi_pm_create(&vm->env, err);
}

static struct device *create_boot_timer(struct vm *vm, const struct irq_line *line,
					struct error *err)
{
	return boot_timer_create(&vm->env, err);
}

static const struct board_row rows[] = {
	{ BUS_PIO, LAYOUT_SERIAL_PORT, LAYOUT_SERIAL_PORTS, 1, LAYOUT_GSI_SERIAL, 0,
	  &uart16550_bus_ops, create_serial },
	{ BUS_PIO, LAYOUT_I8042_PORT, LAYOUT_I8042_PORTS, 1, LAYOUT_GSI_I8042, 0,
	  &i8042_bus_ops, create_i8042 },
	{ BUS_PIO, LAYOUT_RTC_PORT, LAYOUT_RTC_PORTS, 1, LAYOUT_GSI_RTC, 1, /* the index */
	  &rtc_cmos_bus_ops, create_rtc },
	{ BUS_PIO, LAYOUT_ACPI_PM_PORT, LAYOUT_ACPI_PM_PORTS, 1, NO_GSI, 0,
	  &acpi_pm_bus_ops, create_acpi_pm },
};

static const struct board_row boot_timer_row = {
	BUS_MMIO, LAYOUT_BOOT_TIMER, LAYOUT_BOOT_TIMER_BYTES, 8, NO_GSI, 0,
	&boot_timer_bus_ops, create_boot_timer,
};

int board_virtio_slot(uint32_t n, struct board_slot *ret, struct error *err)
{
	uint32_t gsi = LAYOUT_GSI_VIRTIO_FIRST + n;

	if (n >= LAYOUT_VIRTIO_MAX)
		return error_set(err, -ENOSPC,
				 "more than %d drives, network interfaces and entropy devices",
				 LAYOUT_VIRTIO_MAX);
	if (gsi >= LAYOUT_GSI_RTC)
		gsi++;
	ret->base = LAYOUT_VIRTIO + n * LAYOUT_VIRTIO_BYTES;
	ret->gsi = gsi;
	return 0;
}

/* Puts a new device on the bus and into the set, which owns it from here on. */
static int place(struct vm *vm, enum bus_kind kind, struct bus_region region, int32_t gsi,
		 struct device *d, struct error *err)
{
	int ret;

	d->base = region.base;
	d->size = region.size;
	d->gsi = gsi;
	ret = device_set_add(&vm->devices, d, err);
	if (ret < 0)
		return ret;
	d->watch.wake = vcpu_poll_wake;
	d->watch.arg = vm;
	region.name = d->type;
	region.device = d;
	region.watch = &d->watch;
	return bus_add(&vm->bus, kind, &region, err);
}

static int coalesce(struct vm *vm, enum bus_kind kind, uint64_t address, uint32_t bytes,
		    struct error *err)
{
	int ret = kvm_coalesced_add(&vm->coalesced, kind, address, bytes);

	if (ret < 0)
		return error_set_errno(err, ret, "port 0x%llx: KVM_REGISTER_COALESCED_MMIO",
				       (unsigned long long)address);
	return 0;
}

static int place_row(struct vm *vm, const struct board_row *row, struct error *err)
{
	struct bus_region region = {
		.base = row->base,
		.size = row->size,
		.min_access = 1,
		.max_access = row->max_access,
		.ops = row->ops,
	};
	struct irq_line line;
	struct device *d;
	int ret;

	vm_irq_line_init(vm, &line, row->gsi == NO_GSI ? 0 : (uint32_t)row->gsi);
	d = row->create(vm, &line, err);
	if (!d)
		return err->code;
	ret = place(vm, row->kind, region, row->gsi, d, err);
	if (ret == 0 && row->coalesced)
		ret = coalesce(vm, row->kind, row->base, row->coalesced, err);
	return ret;
}

/* Gives a virtio device its registers and its line. Owns `d`. */
static int place_virtio(struct vm *vm, struct device *d, struct error *err)
{
	struct board *board = &vm->arch->board;
	struct bus_region region = {
		.size = LAYOUT_VIRTIO_BYTES,
		.min_access = 1,
		.max_access = 8,
		.ops = &virtio_mmio_bus_ops,
	};
	struct board_slot slot;
	struct irq_line line;
	int ret;

	ret = board_virtio_slot(board->virtio_count, &slot, err);
	if (ret == 0) {
		vm_irq_line_init(vm, &line, slot.gsi);
		ret = virtio_mmio_attach(d, &vm->env, slot.base, &line, err);
	}
	if (ret < 0) {
		d->ops->destroy(d);
		return ret;
	}
	board->virtio[board->virtio_count++] = slot;
	region.base = slot.base;
	return place(vm, BUS_MMIO, region, (int32_t)slot.gsi, d, err);
}

static int place_class(struct vm *vm, const struct device_class *class, const void *config,
		       void **backend, struct error *err)
{
	void *taken = NULL;
	struct device *d;

	if (backend) {
		taken = *backend;
		*backend = NULL;
	}
	d = class->create(&vm->env, config, taken, err);
	if (!d)
		return err->code;
	return place_virtio(vm, d, err);
}

/* Drives in order, but the root drive first, so that it is /dev/vda. */
static int place_drives(struct vm *vm, struct error *err)
{
	uint32_t root_pass, i;
	int ret;

	for (root_pass = 0; root_pass < 2; root_pass++) {
		for (i = 0; i < vm->config.drive_count; i++) {
			const struct drive_config *c = &vm->config.drives[i];

			if (c->is_root_device == (root_pass == 1))
				continue;
			ret = place_class(vm, vm->classes->block, c, &vm->drive_backends[i],
					  err);
			if (ret < 0)
				return ret;
		}
	}
	return 0;
}

int arch_board_build(struct vm *vm, struct error *err)
{
	uint32_t i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		ret = place_row(vm, &rows[i], err);
		if (ret < 0)
			return ret;
	}
	/* What guests write to for the delay of it; nobody answers. */
	ret = coalesce(vm, BUS_PIO, LAYOUT_DELAY_PORT, 1, err);
	if (ret < 0)
		return ret;
	if (vm->config.boot_timer) {
		ret = place_row(vm, &boot_timer_row, err);
		if (ret < 0)
			return ret;
	}
	ret = place_drives(vm, err);
	if (ret < 0)
		return ret;
	for (i = 0; i < vm->config.net_count; i++) {
		ret = place_class(vm, vm->classes->net, &vm->config.nets[i], &vm->net_backends[i],
				  err);
		if (ret < 0)
			return ret;
	}
	if (!vm->config.has_entropy)
		return 0;
	return place_class(vm, vm->classes->entropy, &vm->config.entropy, NULL, err);
}

int board_ctrl_alt_del(struct vm *vm, struct error *err)
{
	struct device *keyboard = vm->arch ? vm->arch->board.keyboard : NULL;
	int ret;

	if (!keyboard)
		return error_set(err, -ENOTSUP, "the machine has no keyboard");
	ret = i8042_ctrl_alt_del(keyboard);
	if (ret < 0)
		return error_set_errno(err, ret, "the keyboard does not take Ctrl-Alt-Del");
	return 0;
}
