/*
 * KVM requests that only x86 has; the rules of vmm/kvm.h apply.
 */
#ifndef LULL_ARCH_X86_KVM_X86_H
#define LULL_ARCH_X86_KVM_X86_H

#include <stdint.h>

#include "arch-x86/cpuid.h"
#include "vmm/kvm.h"

#define KVM_X86_MSRS 16

struct kvm_x86_msrs {
	uint32_t count;
	struct kvm_msr_entry entries[KVM_X86_MSRS];
};

struct kvm_x86_msr_range {
	uint32_t first;
	uint32_t count; /* KVM_X86_MSR_RANGE_MAX at most */
};

#define KVM_X86_MSR_RANGE_MAX 64

/* System */
/* Fills `t` up to its capacity; -E2BIG if that is too small. */
int kvm_get_supported_cpuid(struct kvm_fd kvm, struct cpuid_table *t) KVM_RESULT;

/* VM */
int kvm_set_tss_addr(struct kvm_fd vm, uint64_t gpa) KVM_RESULT;
int kvm_set_identity_map_addr(struct kvm_fd vm, uint64_t gpa) KVM_RESULT;
/* A PIT whose speaker port is a stub. */
int kvm_create_pit2(struct kvm_fd vm) KVM_RESULT;

/* Reads and writes of these MSRs are faults for the guest; all others as before. */
int kvm_deny_msrs(struct kvm_fd vm, const struct kvm_x86_msr_range *ranges,
		  uint32_t count) KVM_RESULT;

/*
 * Instructions that are no exits from now on, KVM_X86_DISABLE_EXITS_*, for good.
 * Before the first vCPU; bits that KVM_CAP_X86_DISABLE_EXITS does not offer are
 * -EINVAL on some kernels and passed over in silence on others.
 */
int kvm_disable_exits(struct kvm_fd vm, uint32_t exits) KVM_RESULT;

/* vCPU */
/* PV features that CPUID does not show do not work either. */
int kvm_enforce_pv_cpuid(struct kvm_fd vcpu) KVM_RESULT;
int kvm_set_cpuid2(struct kvm_fd vcpu, const struct cpuid_table *t) KVM_RESULT;
/* Appends to the list; -ENOSPC past its end. */
int kvm_x86_msrs_add(struct kvm_x86_msrs *m, uint32_t index, uint64_t value) KVM_RESULT;
/* How many, from the first, KVM took or gave. */
int kvm_set_msrs(struct kvm_fd vcpu, const struct kvm_x86_msrs *m) KVM_RESULT;
int kvm_get_msrs(struct kvm_fd vcpu, struct kvm_x86_msrs *m) KVM_RESULT;
int kvm_get_lapic(struct kvm_fd vcpu, struct kvm_lapic_state *s) KVM_RESULT;
int kvm_set_lapic(struct kvm_fd vcpu, const struct kvm_lapic_state *s) KVM_RESULT;
int kvm_get_regs(struct kvm_fd vcpu, struct kvm_regs *regs) KVM_RESULT;
int kvm_set_regs(struct kvm_fd vcpu, const struct kvm_regs *regs) KVM_RESULT;
int kvm_get_sregs(struct kvm_fd vcpu, struct kvm_sregs *sregs) KVM_RESULT;
int kvm_set_sregs(struct kvm_fd vcpu, const struct kvm_sregs *sregs) KVM_RESULT;
/* KVM_MP_STATE_*: runnable, halted, waiting for its start, ... */
int kvm_get_mp_state(struct kvm_fd vcpu, uint32_t *ret) KVM_RESULT;
int kvm_set_mp_state(struct kvm_fd vcpu, uint32_t state) KVM_RESULT;
/* Extended control register 0: which states XSAVE manages. */
int kvm_set_xcr0(struct kvm_fd vcpu, uint64_t xcr0) KVM_RESULT;
/* Frequency of the guest's TSC in kHz. */
int kvm_get_tsc_khz(struct kvm_fd vcpu) KVM_RESULT;
/* Tells the guest's clock watchdog that the vCPU was stopped on purpose. */
int kvm_kvmclock_ctrl(struct kvm_fd vcpu) KVM_RESULT;

#endif
