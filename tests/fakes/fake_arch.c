/*
 * The architecture of tests. Threads: as vmm/arch.h says. Locks: none.
 */
#include "fake_arch.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/kvm_stats.h"
#include "vmm/spin_host.h"
#include "vmm/vcpu.h"
#include "vmm/vm.h"

struct fake_arch fake_arch;

void fake_arch_reset(void)
{
	memset(&fake_arch, 0, sizeof(fake_arch));
}

int arch_check_host(struct vm *vm, struct error *err)
{
	if (kvm_check_extension(vm->kvm, KVM_CAP_IMMEDIATE_EXIT) <= 0)
		return error_set(err, -ENOTSUP, "no KVM_CAP_IMMEDIATE_EXIT");
	return 0;
}

void arch_mem_layout(uint64_t bytes, struct guest_mem_range *ranges, uint32_t *ret_count)
{
	uint64_t low = bytes < FAKE_ARCH_LOW ? bytes : FAKE_ARCH_LOW;

	ranges[0] = (struct guest_mem_range){ .gpa = 0, .size = low };
	ranges[1] = (struct guest_mem_range){ .gpa = FAKE_ARCH_HIGH, .size = bytes - low };
	*ret_count = bytes > low ? 2 : 1;
}

int arch_vm_init(struct vm *vm, struct error *err)
{
	int ret = kvm_create_irqchip(vm->fd);

	return ret < 0 ? error_set_errno(err, ret, "KVM_CREATE_IRQCHIP") : 0;
}

void arch_spin_apply(struct vm *vm)
{
	spin_note(&vm->spin, "fake_exits", true, SPIN_YES, NULL);
}

uint64_t arch_spin_exits(const struct kvm_stats *s)
{
	return kvm_stats_value(s, "insn_emulation");
}

void arch_spin_check_host(const char *root, struct spin_checks *checks)
{
	spin_check_add(checks, "fake_filter", SPIN_CHECK_OK, "there is one");
}

uint32_t arch_vcpu_id(const struct vm *vm, uint32_t index)
{
	return index;
}

static uint64_t power_read(void *device, uint64_t offset, unsigned width)
{
	return 0x5a;
}

static enum bus_action power_write(void *device, uint64_t offset, unsigned width, uint64_t value)
{
	if (value == FAKE_POWER_OFF)
		return BUS_GUEST_POWEROFF;
	return value == FAKE_POWER_RESET ? BUS_GUEST_RESET : BUS_DONE;
}

static const struct bus_ops power_ops = { .read = power_read, .write = power_write };

int arch_board_build(struct vm *vm, struct error *err)
{
	static const struct bus_region power = {
		.name = "power",
		.base = FAKE_POWER_PORT,
		.size = 4,
		.min_access = 1,
		.max_access = 4,
		.ops = &power_ops,
	};
	int ret = bus_add(&vm->bus, BUS_PIO, &power, err);

	return ret < 0 || !fake_arch.build ? ret : fake_arch.build(vm, err);
}

int arch_boot_load(struct vm *vm, struct error *err)
{
	if (fake_arch.load_code < 0)
		return error_set(err, fake_arch.load_code, "the kernel cannot be loaded");
	return 0;
}

void arch_vm_fini(struct vm *vm)
{
}

int arch_vcpu_setup(struct vcpu *v, struct error *err)
{
	atomic_fetch_add(&fake_arch.setups, 1);
	if (fake_arch.setup_code < 0 && v->index == fake_arch.setup_index)
		return error_set(err, fake_arch.setup_code, "vCPU %u cannot be set up", v->index);
	return 0;
}

enum vcpu_exit_result arch_vcpu_exit(struct vcpu *v)
{
	vm_request_end(v->vm, VM_END_VCPU_FAILED);
	return VCPU_STOP;
}

void arch_vcpu_parked(struct vcpu *v)
{
	atomic_fetch_add(&fake_arch.parked, 1);
}

int arch_vcpu_halt(struct vcpu *v)
{
	return -ENOTSUP;
}

void arch_vcpu_unhalt(struct vcpu *v)
{
}

int arch_ctrl_alt_del(struct vm *vm, struct error *err)
{
	return error_set(err, -ENOTSUP, "this machine has no keyboard");
}

void arch_vcpu_describe(struct vcpu *v, char *text, size_t size)
{
	if (size)
		text[0] = '\0';
}
