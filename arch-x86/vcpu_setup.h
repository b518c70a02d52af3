/*
 * First register state of a vCPU.
 *
 * The first vCPU starts where the boot protocol says; the others have their
 * CPUID and wait, as KVM creates them, for the guest's start-up IPI.
 * Threads: the vCPU's own, before its first KVM_RUN.
 */
#ifndef LULL_ARCH_X86_VCPU_SETUP_H
#define LULL_ARCH_X86_VCPU_SETUP_H

#include <linux/kvm.h>

#include "arch-x86/boot.h"

/* Registers of the first vCPU, on top of what KVM's reset state is. */
void vcpu_setup_sregs(struct kvm_sregs *s, enum boot_protocol protocol);
void vcpu_setup_regs(struct kvm_regs *r, const struct boot_start *start);

#endif
