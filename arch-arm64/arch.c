/*
 * The arm64 side of vmm/arch.h. Guests do not run on arm64 yet: a start ends
 * at arch_check_host(), with an error that says so. The rest is here so that
 * the daemon builds, is configured and answers on arm64 as it does on x86.
 *
 * Threads: per function, see vmm/arch.h. Locks: none.
 */
#include "vmm/arch.h"

#include <errno.h>

#include "arch-arm64/arch_vm.h"
#include "arch-arm64/layout.h"
#include "vmm/base/log.h"
#include "vmm/vcpu.h"
#include "vmm/vm.h"

int arch_not_supported(struct error *err)
{
	return error_set(err, -ENOTSUP, "running guests on arm64 is not supported yet");
}

int arch_check_host(struct vm *vm, struct error *err)
{
	return arch_not_supported(err);
}

void arch_mem_layout(uint64_t bytes, struct guest_mem_range *ranges, uint32_t *ret_count)
{
	ranges[0] = (struct guest_mem_range){ .gpa = LAYOUT_RAM, .size = bytes };
	*ret_count = 1;
}

int arch_vm_init(struct vm *vm, struct error *err)
{
	return arch_not_supported(err);
}

uint32_t arch_vcpu_id(const struct vm *vm, uint32_t index)
{
	return index;
}

void arch_vm_fini(struct vm *vm)
{
}

enum vcpu_exit_result arch_vcpu_exit(struct vcpu *v)
{
	log_error("vCPU %u: KVM_RUN ended for reason %u, which nothing serves", v->index,
		  v->run->exit_reason);
	vm_request_end(v->vm, VM_END_VCPU_FAILED);
	return VCPU_STOP;
}

void arch_vcpu_parked(struct vcpu *v)
{
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
	return error_set(err, -ENOTSUP, "the machine has no keyboard");
}

void arch_vcpu_describe(struct vcpu *v, char *text, size_t size)
{
	if (size)
		text[0] = '\0';
}
