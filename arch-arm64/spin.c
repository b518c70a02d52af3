/*
 * The spin policy of arm64. Threads: main. Locks: none.
 *
 * KVM has no control of a VM's WFI and WFE exits here: it lets both run free while a
 * vCPU is alone on its host CPU and traps WFE otherwise, anew at each load, unless
 * the host's command line says otherwise (kvm-arm.wfe_trap_policy, wfi_trap_policy).
 */
#include "vmm/arch.h"

#include <string.h>

#include "vmm/host_file.h"
#include "vmm/kvm.h"
#include "vmm/kvm_stats.h"
#include "vmm/spin_host.h"
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

uint64_t arch_spin_exits(const struct kvm_stats *s)
{
	return kvm_stats_value(s, "wfe_exit_stat");
}

void arch_spin_check_host(const char *root, struct spin_checks *checks)
{
	char line[2048];

	if (host_file_read(root, "/proc/cmdline", line, sizeof(line)) < 0)
		spin_check_add(checks, "wfe_trap", SPIN_CHECK_UNKNOWN,
			       "the host's command line cannot be read");
	else if (strstr(line, "kvm-arm.wfe_trap_policy=notrap"))
		spin_check_add(checks, "wfe_trap", SPIN_CHECK_WARN,
			       "kvm-arm.wfe_trap_policy=notrap: WFE is no exit on this host");
	else
		spin_check_add(checks, "wfe_trap", SPIN_CHECK_OK,
			       "WFE is an exit where a vCPU shares its host CPU");
}
