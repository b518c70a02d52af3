/*
 * What the x86 side keeps of a VM (vm->arch). Made by arch_vm_init(), filled
 * while the VM is built on the main thread, constant while vCPUs run.
 */
#ifndef LULL_ARCH_X86_ARCH_VM_H
#define LULL_ARCH_X86_ARCH_VM_H

#include <stdbool.h>

#include "arch-x86/board.h"
#include "arch-x86/boot.h"
#include "arch-x86/cpuid.h"

struct arch_vm {
	struct cpuid_table supported; /* what KVM can give this VM's vCPUs */
	bool tsc_deadline;            /* KVM has that timer mode */
	uint32_t pv_hidden;           /* KVM_FEATURE_* bits that guests are not shown */
	uint32_t pv_hints;            /* KVM_HINTS_* bits */
	bool enforce_pv;              /* what is not shown shall not work either */
	struct board board;
	struct boot_start start; /* where the first vCPU begins */
};

#endif
