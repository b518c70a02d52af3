/*
 * The architecture contract: what arch-x86 and arch-arm64 each implement and
 * the core calls.
 */
#ifndef LULL_ARCH_H
#define LULL_ARCH_H

#include <stddef.h>
#include <stdint.h>

#include "vmm/base/error.h"
#include "vmm/guest_mem.h"

struct kvm_stats;
struct spin_checks;
struct vm;
struct vcpu;

enum vcpu_exit_result {
	VCPU_CONTINUE,
	VCPU_STOP, /* the VM ends; the reason has been reported */
	VCPU_PARK, /* the guest polls: vcpu_poll_park() comes next */
};

/* Main thread, while the VM is built, in this order. */

/* 0, or -ENOTSUP with the first capability that the host's KVM lacks. */
int arch_check_host(struct vm *vm, struct error *err);
/* Where `bytes` of RAM lie; LIMIT_MEM_REGIONS ranges at most. */
void arch_mem_layout(uint64_t bytes, struct guest_mem_range *ranges, uint32_t *ret_count);
/* vm->arch, the interrupt controllers and timers; KVM VM and memory exist, no vCPU does. */
int arch_vm_init(struct vm *vm, struct error *err);
/*
 * What the spin policy in vm->spin.mode implies: which instructions exit, what
 * the guest is offered. After arch_vm_init(), before the first vCPU. Cannot
 * fail: what KVM does not give is noted in vm->spin.
 */
void arch_spin_apply(struct vm *vm);
/* The id that KVM_CREATE_VCPU takes for the vCPU of this index (APIC id, MPIDR). */
uint32_t arch_vcpu_id(const struct vm *vm, uint32_t index);
/* Creates and places all devices; fills vm->bus and vm->devices. */
int arch_board_build(struct vm *vm, struct error *err);
/* Kernel, initrd, command line and firmware tables into guest memory. vCPUs exist. */
int arch_boot_load(struct vm *vm, struct error *err);
/* Frees vm->arch. Devices and vCPUs are gone. */
void arch_vm_fini(struct vm *vm);

/*
 * Exits of a vCPU so far, from its statistics, that KVM took for spinning (arm64:
 * WFE), or the most that can have been (x86, which counts all other kinds).
 */
uint64_t arch_spin_exits(const struct kvm_stats *s);
/* Adds what of this architecture lets KVM notice spinning, or keeps it from it. */
void arch_spin_check_host(const char *root, struct spin_checks *checks);

/* On the vCPU's own thread. */

/* First register state, CPUID and the like; once, before its first KVM_RUN. */
int arch_vcpu_setup(struct vcpu *v, struct error *err);
/* An exit reason that the core's table does not have. */
enum vcpu_exit_result arch_vcpu_exit(struct vcpu *v);
/*
 * Lets the next KVM_RUN sleep until an interrupt is due, as after HLT; a kick still
 * ends it. -ENOTSUP where that cannot be had.
 */
int arch_vcpu_halt(struct vcpu *v);
/* Takes that back, unless the vCPU has woken. */
void arch_vcpu_unhalt(struct vcpu *v);
/* The vCPU is about to be parked by a pause. */
void arch_vcpu_parked(struct vcpu *v);

/* Main thread, VM running: presses the keys or the button. -ENOTSUP if there is none. */
int arch_ctrl_alt_del(struct vm *vm, struct error *err);

/* Printable name of a register state for the report of a failed vCPU; "" if unknown. */
void arch_vcpu_describe(struct vcpu *v, char *text, size_t size);

#endif
