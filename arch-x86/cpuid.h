/*
 * CPUID of the guest: from what KVM supports on this host to what one vCPU
 * answers. Features come from KVM; topology and caches come from the model
 * (vmm/topology.h), never from the host.
 *
 * Works on a table of its own; touches no KVM. Threads: any, one table each.
 */
#ifndef LULL_ARCH_X86_CPUID_H
#define LULL_ARCH_X86_CPUID_H

#include <linux/kvm.h>
#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/error.h"
#include "vmm/topology.h"

#define CPUID_ENTRIES 256 /* KVM's own bound for SET_CPUID2 */

/* Begins as struct kvm_cpuid2. */
struct cpuid_table {
	uint32_t count;
	uint32_t padding;
	struct kvm_cpuid_entry2 entries[CPUID_ENTRIES];
};

enum cpuid_vendor { CPUID_INTEL, CPUID_AMD };

/* What cpuid_build() must know besides the table. */
struct cpuid_config {
	const struct topology *topology;
	uint32_t index;     /* of the vCPU */
	bool tsc_deadline;  /* the local APIC has that timer mode */
	bool tsc_freq_sel;  /* AMD: HWCR.TscFreqSel reads as one */
	uint32_t tsc_khz;   /* of the guest's TSC; 0: unknown */
	uint32_t pv_hidden; /* KVM_FEATURE_* of KVM's that are not shown, one bit each */
	uint32_t pv_hints;  /* KVM_HINTS_*, one bit each */
};

/* Registers of one leaf. */
struct cpuid_regs {
	uint32_t eax, ebx, ecx, edx;
};

/* Turns what KVM supports into what vCPU `c->index` answers. -ENOSPC when the table is full. */
int cpuid_build(struct cpuid_table *t, const struct cpuid_config *c, struct error *err);

/* Vendor of the processor that the table describes; compatible makes count as one of the two. */
enum cpuid_vendor cpuid_vendor(const struct cpuid_table *t);
/* Physical address bits of a guest; 36 if the table does not say. */
unsigned cpuid_phys_bits(const struct cpuid_table *t);

/* The XCR0 bits that a guest may set; 0 without XSAVE. */
uint64_t cpuid_xsave_states(const struct cpuid_table *t);

struct kvm_cpuid_entry2 *cpuid_find(struct cpuid_table *t, uint32_t function, uint32_t index);
/* Takes all subleaves of a leaf out. */
void cpuid_remove(struct cpuid_table *t, uint32_t function);
/* Adds a leaf without subleaves, in place of what was there. */
int cpuid_put(struct cpuid_table *t, uint32_t function, struct cpuid_regs r);
/* Adds one subleaf of a leaf that has been taken out before. */
int cpuid_put_sub(struct cpuid_table *t, uint32_t function, uint32_t index, struct cpuid_regs r);

#endif
