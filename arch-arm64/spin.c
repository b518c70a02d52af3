/*
 * The spin policy of arm64. Threads: main. Locks: none.
 *
 * KVM has no control of a VM's WFI and WFE exits here: it lets both run free while a
 * vCPU is alone on its host CPU and traps WFE otherwise, anew at each load, unless
 * the host's command line says otherwise (kvm-arm.wfe_trap_policy, wfi_trap_policy).
 */
#include "vmm/arch.h"

#include "vmm/kvm.h"
#include "vmm/vm.h"

void arch_spin_apply(struct vm *vm)
{
	static const char why[] = "KVM decides anew whenever a vCPU is put on a host CPU";
	bool shared = vm->spin.mode == SPIN_SHARED;
	bool has_steal_time = kvm_check_extension(vm->kvm, KVM_CAP_STEAL_TIME) > 0;

	spin_note(&vm->spin, "wfe_exits", shared, SPIN_UNKNOWN, why);
	spin_note(&vm->spin, "wfi_exits", shared, SPIN_UNKNOWN, why);
	spin_note(&vm->spin, "pv_steal_time", true, SPIN_NO,
		  has_steal_time ? "this version does not offer it on arm64" :
				   "this host's KVM lacks KVM_CAP_STEAL_TIME");
}
