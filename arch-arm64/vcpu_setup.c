/*
 * First register state on arm64: not yet.
 *
 * Threads: the vCPU's own. Locks: none.
 */
#include "arch-arm64/arch_vm.h"
#include "vmm/arch.h"

int arch_vcpu_setup(struct vcpu *v, struct error *err)
{
	return arch_not_supported(err);
}
