/*
 * The spin policy of x86. Threads: main. Locks: none.
 *
 * shared: PAUSE and HLT are exits, so that KVM can run somebody else; the guest
 * is offered what spares it spinning: PV unhalt, TLB flush, yield, IPIs, steal
 * time. dedicated: neither exits, and the real-time hint tells the guest not to
 * use those. MWAIT is hidden in both: shared guests would do without PV TLB
 * flush and yield if they saw it.
 */
#include "vmm/arch.h"

#include <linux/kvm_para.h>
#include <stdio.h>
#include <string.h>

#include "arch-x86/arch_vm.h"
#include "arch-x86/kvm_x86.h"
#include "vmm/base/bits.h"
#include "vmm/host_file.h"
#include "vmm/kvm_stats.h"
#include "vmm/spin_host.h"
#include "vmm/vm.h"

/* Does this host's processor end a spin of PAUSEs by an exit? `why` has SPIN_WHY bytes. */
static enum spin_granted pause_filter(const char *root, char *why)
{
	int64_t gap, count, threshold;

	if (host_file_number(root, "/sys/module/kvm_intel/parameters/ple_gap", &gap) == 0) {
		snprintf(why, SPIN_WHY, "kvm_intel has ple_gap=%lld%s", (long long)gap,
			 gap > 0 ? "" : ": PAUSE is no exit on this host");
		return gap > 0 ? SPIN_YES : SPIN_NO;
	}
	if (host_file_number(root, "/sys/module/kvm_amd/parameters/pause_filter_count",
			     &count) == 0 &&
	    host_file_number(root, "/sys/module/kvm_amd/parameters/pause_filter_thresh",
			     &threshold) == 0) {
		bool on = count > 0 && threshold > 0;

		snprintf(why, SPIN_WHY, "kvm_amd has pause_filter_count=%lld "
					"pause_filter_thresh=%lld%s",
			 (long long)count, (long long)threshold,
			 on ? "" : ": PAUSE is no exit on this host");
		return on ? SPIN_YES : SPIN_NO;
	}
	snprintf(why, SPIN_WHY, "the parameters of kvm_intel or kvm_amd cannot be read");
	return SPIN_UNKNOWN;
}

void arch_spin_check_host(const char *root, struct spin_checks *checks)
{
	static const enum spin_check_status statuses[] = {
		[SPIN_NO] = SPIN_CHECK_WARN,
		[SPIN_YES] = SPIN_CHECK_OK,
		[SPIN_UNKNOWN] = SPIN_CHECK_UNKNOWN,
	};
	char why[SPIN_WHY];
	enum spin_granted filter = pause_filter(root, why);

	spin_check_add(checks, "pause_filter", statuses[filter], "%s", why);
}

/*
 * x86 has no counter of PAUSE exits. What is left of all exits, when the kinds that
 * are counted are taken off, is PAUSEs and what else is not counted: above all
 * writes of MSRs. An interrupt brings two of those, its end and the next deadline,
 * unless the local APIC is in hardware; they are taken off too.
 */
uint64_t arch_spin_exits(const struct kvm_stats *s)
{
	static const char *const known[] = {
		"io_exits",   "halt_exits", "irq_exits", "irq_window_exits", "nmi_window_exits",
		"hypercalls", "insn_emulation", /* MMIO is among these */ "pf_taken",
	};
	uint64_t left = kvm_stats_value(s, "exits");
	uint64_t off = 2 * kvm_stats_value(s, "irq_injections");
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		off += kvm_stats_value(s, known[i]);
	return left > off ? left - off : 0;
}

static void note_exit(struct vm *vm, const char *name, uint32_t bit, int offered, int refused)
{
	bool asked = vm->spin.mode == SPIN_SHARED;
	char why[SPIN_WHY] = "";
	enum spin_granted granted;

	if (!asked && refused < 0) {
		granted = SPIN_YES;
		snprintf(why, sizeof(why), "KVM refused KVM_CAP_X86_DISABLE_EXITS: %s",
			 strerrordesc_np(-refused) ?: "unknown error");
	} else if (!asked) {
		granted = (uint32_t)offered & bit ? SPIN_NO : SPIN_YES;
		if (granted == SPIN_YES)
			snprintf(why, sizeof(why), "KVM_CAP_X86_DISABLE_EXITS of this host does "
						   "not offer it");
	} else {
		granted = bit == KVM_X86_DISABLE_EXITS_PAUSE ? pause_filter(vm->spin.root, why) :
							       SPIN_YES;
	}
	spin_note(&vm->spin, name, asked, granted, why);
}

static void set_exits(struct vm *vm)
{
	const uint32_t both = KVM_X86_DISABLE_EXITS_HLT | KVM_X86_DISABLE_EXITS_PAUSE;
	int offered = kvm_check_extension(vm->fd, KVM_CAP_X86_DISABLE_EXITS), ret = 0;

	if (offered < 0)
		offered = 0;
	if (vm->spin.mode == SPIN_DEDICATED && ((uint32_t)offered & both))
		ret = kvm_disable_exits(vm->fd, (uint32_t)offered & both);
	note_exit(vm, "pause_exits", KVM_X86_DISABLE_EXITS_PAUSE, offered, ret);
	note_exit(vm, "hlt_exits", KVM_X86_DISABLE_EXITS_HLT, offered, ret);
}

static const struct {
	const char *name;
	uint32_t bit;
	bool dedicated; /* useful there as well */
} pv_features[] = {
	{ "pv_steal_time", BIT(KVM_FEATURE_STEAL_TIME), true },
	{ "pv_unhalt", BIT(KVM_FEATURE_PV_UNHALT), false },
	{ "pv_tlb_flush", BIT(KVM_FEATURE_PV_TLB_FLUSH), false },
	{ "pv_sched_yield", BIT(KVM_FEATURE_PV_SCHED_YIELD), false },
	{ "pv_send_ipi", BIT(KVM_FEATURE_PV_SEND_IPI), true },
	{ "pv_eoi", BIT(KVM_FEATURE_PV_EOI), true },
	{ "pv_poll_control", BIT(KVM_FEATURE_POLL_CONTROL), true },
};

static void set_pv_features(struct vm *vm)
{
	const struct kvm_cpuid_entry2 *e = cpuid_find(&vm->arch->supported, KVM_CPUID_FEATURES, 0);
	bool dedicated = vm->spin.mode == SPIN_DEDICATED;
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(pv_features); i++) {
		bool asked = !dedicated || pv_features[i].dedicated;
		bool has = e && (e->eax & pv_features[i].bit);

		if (!asked)
			vm->arch->pv_hidden |= pv_features[i].bit;
		spin_note(&vm->spin, pv_features[i].name, asked, asked && has ? SPIN_YES : SPIN_NO,
			  asked && !has ? "this host's KVM does not offer it" : NULL);
	}
	if (dedicated && e)
		vm->arch->pv_hints = BIT(KVM_HINTS_REALTIME);
	spin_note(&vm->spin, "realtime_hint", dedicated, dedicated && e ? SPIN_YES : SPIN_NO,
		  dedicated && !e ? "KVM shows this guest no leaf of its own" : NULL);
}

void arch_spin_apply(struct vm *vm)
{
	set_exits(vm);
	set_pv_features(vm);
	spin_note(&vm->spin, "mwait", false, SPIN_NO, NULL);
	vm->arch->enforce_pv =
		kvm_check_extension(vm->kvm, KVM_CAP_ENFORCE_PV_FEATURE_CPUID) > 0;
	spin_note(&vm->spin, "pv_enforced", true, vm->arch->enforce_pv ? SPIN_YES : SPIN_NO,
		  vm->arch->enforce_pv ? NULL :
					 "this host's KVM lacks KVM_CAP_ENFORCE_PV_FEATURE_CPUID: "
					 "PV features work that CPUID does not show");
}
