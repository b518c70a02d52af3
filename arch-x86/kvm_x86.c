/*
 * KVM requests of x86. Threads: see vmm/kvm.h. Locks: none.
 */
#include "arch-x86/kvm_x86.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* The kernel's structs end in an array; ours have room for one. */
_Static_assert(offsetof(struct cpuid_table, entries) == sizeof(struct kvm_cpuid2),
	       "struct cpuid_table begins as struct kvm_cpuid2");
_Static_assert(offsetof(struct kvm_x86_msrs, entries) == sizeof(struct kvm_msrs),
	       "struct kvm_x86_msrs begins as struct kvm_msrs");

int kvm_get_supported_cpuid(struct kvm_fd kvm, struct cpuid_table *t)
{
	t->count = CPUID_ENTRIES;
	return kvm_ioctl_ptr(kvm, KVM_GET_SUPPORTED_CPUID, (struct kvm_cpuid2 *)t);
}

int kvm_set_tss_addr(struct kvm_fd vm, uint64_t gpa)
{
	return kvm_ioctl_val(vm, KVM_SET_TSS_ADDR, gpa);
}

int kvm_set_identity_map_addr(struct kvm_fd vm, uint64_t gpa)
{
	return kvm_ioctl_ptr(vm, KVM_SET_IDENTITY_MAP_ADDR, &gpa);
}

int kvm_create_pit2(struct kvm_fd vm)
{
	struct kvm_pit_config config = { .flags = KVM_PIT_SPEAKER_DUMMY };

	return kvm_ioctl_ptr(vm, KVM_CREATE_PIT2, &config);
}

int kvm_deny_msrs(struct kvm_fd vm, const struct kvm_x86_msr_range *ranges, uint32_t count)
{
	/* a cleared bit denies; all ranges are denied whole, so they share one map */
	uint8_t bitmap[KVM_X86_MSR_RANGE_MAX / 8] = { 0 };
	struct kvm_msr_filter filter = { .flags = KVM_MSR_FILTER_DEFAULT_ALLOW };
	uint32_t i;

	if (count > KVM_MSR_FILTER_MAX_RANGES)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		if (ranges[i].count > KVM_X86_MSR_RANGE_MAX)
			return -EINVAL;
		filter.ranges[i] = (struct kvm_msr_filter_range){
			.flags = KVM_MSR_FILTER_READ | KVM_MSR_FILTER_WRITE,
			.base = ranges[i].first,
			.nmsrs = ranges[i].count,
			.bitmap = bitmap,
		};
	}
	return kvm_ioctl_ptr(vm, KVM_X86_SET_MSR_FILTER, &filter);
}

int kvm_disable_exits(struct kvm_fd vm, uint32_t exits)
{
	return kvm_enable_vm_cap(vm, KVM_CAP_X86_DISABLE_EXITS, exits);
}

int kvm_enforce_pv_cpuid(struct kvm_fd vcpu)
{
	struct kvm_enable_cap cap = { .cap = KVM_CAP_ENFORCE_PV_FEATURE_CPUID, .args = { 1 } };

	return kvm_ioctl_ptr(vcpu, KVM_ENABLE_CAP, &cap);
}

int kvm_set_cpuid2(struct kvm_fd vcpu, const struct cpuid_table *t)
{
	return kvm_ioctl_ptr(vcpu, KVM_SET_CPUID2, (const struct kvm_cpuid2 *)t);
}

int kvm_x86_msrs_add(struct kvm_x86_msrs *m, uint32_t index, uint64_t value)
{
	if (m->count >= KVM_X86_MSRS)
		return -ENOSPC;
	m->entries[m->count++] = (struct kvm_msr_entry){ .index = index, .data = value };
	return 0;
}

int kvm_set_msrs(struct kvm_fd vcpu, const struct kvm_x86_msrs *m)
{
	return kvm_ioctl_ptr(vcpu, KVM_SET_MSRS, (const struct kvm_msrs *)m);
}

int kvm_get_msrs(struct kvm_fd vcpu, struct kvm_x86_msrs *m)
{
	return kvm_ioctl_ptr(vcpu, KVM_GET_MSRS, (struct kvm_msrs *)m);
}

int kvm_get_lapic(struct kvm_fd vcpu, struct kvm_lapic_state *s)
{
	return kvm_ioctl_ptr(vcpu, KVM_GET_LAPIC, s);
}

int kvm_set_lapic(struct kvm_fd vcpu, const struct kvm_lapic_state *s)
{
	return kvm_ioctl_ptr(vcpu, KVM_SET_LAPIC, s);
}

int kvm_get_regs(struct kvm_fd vcpu, struct kvm_regs *regs)
{
	return kvm_ioctl_ptr(vcpu, KVM_GET_REGS, regs);
}

int kvm_set_regs(struct kvm_fd vcpu, const struct kvm_regs *regs)
{
	return kvm_ioctl_ptr(vcpu, KVM_SET_REGS, regs);
}

int kvm_get_sregs(struct kvm_fd vcpu, struct kvm_sregs *sregs)
{
	return kvm_ioctl_ptr(vcpu, KVM_GET_SREGS, sregs);
}

int kvm_set_sregs(struct kvm_fd vcpu, const struct kvm_sregs *sregs)
{
	return kvm_ioctl_ptr(vcpu, KVM_SET_SREGS, sregs);
}

int kvm_set_xcr0(struct kvm_fd vcpu, uint64_t xcr0)
{
	struct kvm_xcrs xcrs = { .nr_xcrs = 1, .xcrs[0] = { .xcr = 0, .value = xcr0 } };

	return kvm_ioctl_ptr(vcpu, KVM_SET_XCRS, &xcrs);
}

int kvm_get_tsc_khz(struct kvm_fd vcpu)
{
	return kvm_ioctl_val(vcpu, KVM_GET_TSC_KHZ, 0);
}

int kvm_kvmclock_ctrl(struct kvm_fd vcpu)
{
	return kvm_ioctl_val(vcpu, KVM_KVMCLOCK_CTRL, 0);
}

int kvm_get_mp_state(struct kvm_fd vcpu, uint32_t *ret)
{
	struct kvm_mp_state s = { 0 };
	int code = kvm_ioctl_ptr(vcpu, KVM_GET_MP_STATE, &s);

	*ret = s.mp_state;
	return code;
}

int kvm_set_mp_state(struct kvm_fd vcpu, uint32_t state)
{
	struct kvm_mp_state s = { .mp_state = state };

	return kvm_ioctl_ptr(vcpu, KVM_SET_MP_STATE, &s);
}
