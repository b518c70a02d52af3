/*
 * CPUID policy. Threads: any, one table each. Locks: none.
 *
 * Hidden from guests: what KVM cannot give without help that we do not offer
 * (performance counters, tracing, SGX, memory encryption), what would make a
 * guest misbehave on a shared host (MWAIT, WAITPKG), hybrid cores, nested
 * virtualisation, and AMX, for which a VMM must ask the host's kernel first.
 * Not here: topology and cache leaves (cpuid_cache.c).
 */
#include "arch-x86/cpuid.h"

#include <errno.h>
#include <string.h>

#include "arch-x86/cpuid_cache.h"
#include "vmm/base/bits.h"

/* Leaf 1 */
#define ECX1_DTES64 BIT(2)
#define ECX1_MONITOR BIT(3)
#define ECX1_DS_CPL BIT(4)
#define ECX1_VMX BIT(5)
#define ECX1_PDCM BIT(15)
#define ECX1_X2APIC BIT(21)
#define ECX1_TSC_DEADLINE BIT(24)
#define ECX1_XSAVE BIT(26)
#define ECX1_HYPERVISOR BIT(31)
#define EDX1_DS BIT(21)
#define EDX1_HTT BIT(28)
/* Leaf 6 */
#define EAX6_ARAT BIT(2)
/* Leaf 7 */
#define EBX7_SGX BIT(2)
#define EBX7_INTEL_PT BIT(25)
#define ECX7_WAITPKG BIT(5)
#define ECX7_SGX_LC BIT(30)
#define EDX7_HYBRID BIT(15)
#define EDX7_ARCH_LBR BIT(19)
#define EDX7_AMX (BIT(22) | BIT(24) | BIT(25)) /* BF16, TILE, INT8 */
#define EAX7_1_AMX BIT(21)                     /* FP16 */
#define EDX7_1_AMX BIT(8)                      /* COMPLEX */
/* Leaf 0xD */
#define STATE_TILE_CONFIG 17
#define STATE_TILE_DATA 18
#define STATES_AMX (BIT(STATE_TILE_CONFIG) | BIT(STATE_TILE_DATA))
#define XSAVE_LEGACY_BYTES 576u /* FPU and SSE registers, and the header */
#define EAXD_1_XFD BIT(4)
/* Leaf 0x80000001 */
#define ECX81_CMP_LEGACY BIT(1)
#define ECX81_SVM BIT(2)
#define ECX81_IBS BIT(10)
#define ECX81_TOPOEXT BIT(22)
#define ECX81_PERFCTR_CORE BIT(23)
#define ECX81_PERFCTR_NB BIT(24)
#define ECX81_PERFCTR_LLC BIT(28)
#define ECX81_MWAITX BIT(29)
/* Leaf 0x80000007 */
#define EDX87_INVARIANT_TSC BIT(8)

#define KVM_LEAF_BASE 0x40000000u
#define KVM_LEAF_FEATURES 0x40000001u
#define KVM_LEAF_TIMING 0x40000010u
#define KVM_APIC_BUS_KHZ 1000000u /* KVM's local APIC timer counts nanoseconds */

/* Leaves of features that are hidden; a guest that asks anyway gets zeroes. */
static const uint32_t hidden_leaves[] = {
	0x5,        /* MONITOR/MWAIT */
	0xA,        /* performance counters */
	0x12,       /* SGX */
	0x14,       /* Intel PT */
	0x15, 0x16, /* TSC and bus frequency: told in the hypervisor's timing leaf */
	0x18,       /* TLBs */
	0x1A,       /* hybrid cores */
	0x1B,       /* PCONFIG */
	0x1C,       /* LBR */
	0x1D, 0x1E, /* AMX: tiles and their multiplier */
	0x23,       /* performance counters, extended */
	0x8000000A, /* SVM */
	0x8000001B, /* IBS */
	0x8000001F, /* memory encryption */
	0x80000020, /* QoS */
	0x80000022, /* performance counters, AMD */
	0x80000026, /* AMD's other topology leaf: 0xB and 0x8000001E tell it */
};

struct kvm_cpuid_entry2 *cpuid_find(struct cpuid_table *t, uint32_t function, uint32_t index)
{
	uint32_t i;

	for (i = 0; i < t->count; i++) {
		struct kvm_cpuid_entry2 *e = &t->entries[i];

		if (e->function != function)
			continue;
		if (!(e->flags & KVM_CPUID_FLAG_SIGNIFCANT_INDEX) || e->index == index)
			return e;
	}
	return NULL;
}

static const struct kvm_cpuid_entry2 *find_const(const struct cpuid_table *t, uint32_t function)
{
	uint32_t i;

	for (i = 0; i < t->count; i++)
		if (t->entries[i].function == function && t->entries[i].index == 0)
			return &t->entries[i];
	return NULL;
}

void cpuid_remove(struct cpuid_table *t, uint32_t function)
{
	uint32_t from, to = 0;

	for (from = 0; from < t->count; from++)
		if (t->entries[from].function != function)
			t->entries[to++] = t->entries[from];
	t->count = to;
}

static void remove_sub(struct cpuid_table *t, uint32_t function, uint32_t index)
{
	uint32_t from, to = 0;

	for (from = 0; from < t->count; from++)
		if (t->entries[from].function != function || t->entries[from].index != index)
			t->entries[to++] = t->entries[from];
	t->count = to;
}

static int append(struct cpuid_table *t, uint32_t function, uint32_t index, uint32_t flags,
		  struct cpuid_regs r)
{
	if (t->count >= CPUID_ENTRIES)
		return -ENOSPC;
	t->entries[t->count++] = (struct kvm_cpuid_entry2){
		.function = function,
		.index = index,
		.flags = flags,
		.eax = r.eax,
		.ebx = r.ebx,
		.ecx = r.ecx,
		.edx = r.edx,
	};
	return 0;
}

int cpuid_put(struct cpuid_table *t, uint32_t function, struct cpuid_regs r)
{
	cpuid_remove(t, function);
	return append(t, function, 0, 0, r);
}

int cpuid_put_sub(struct cpuid_table *t, uint32_t function, uint32_t index, struct cpuid_regs r)
{
	return append(t, function, index, KVM_CPUID_FLAG_SIGNIFCANT_INDEX, r);
}

enum cpuid_vendor cpuid_vendor(const struct cpuid_table *t)
{
	const struct kvm_cpuid_entry2 *e = find_const(t, 0);

	if (e && (e->ebx == 0x68747541 /* "Auth" enticAMD */ ||
		  e->ebx == 0x6F677948 /* "Hygo" nGenuine */))
		return CPUID_AMD;
	return CPUID_INTEL;
}

unsigned cpuid_phys_bits(const struct cpuid_table *t)
{
	const struct kvm_cpuid_entry2 *e = find_const(t, 0x80000008);

	return e && (e->eax & 0xFF) ? e->eax & 0xFF : 36;
}

uint64_t cpuid_xsave_states(const struct cpuid_table *t)
{
	const struct kvm_cpuid_entry2 *features = find_const(t, 1);
	const struct kvm_cpuid_entry2 *states = find_const(t, 0xD);

	if (!features || !(features->ecx & ECX1_XSAVE) || !states)
		return 0;
	return states->eax | (uint64_t)states->edx << 32;
}

/* Family as Linux counts it: base family, plus the extended one if the base is 15. */
static uint32_t family(struct cpuid_table *t)
{
	const struct kvm_cpuid_entry2 *e = cpuid_find(t, 1, 0);
	uint32_t base = e ? e->eax >> 8 & 0xF : 0;

	return base == 0xF ? base + (e->eax >> 20 & 0xFF) : base;
}

/* The largest leaves: at least as far as topology and caches are told. */
static int set_ranges(struct cpuid_table *t, const struct topology *topology,
		      enum cpuid_vendor vendor)
{
	struct kvm_cpuid_entry2 *e = cpuid_find(t, 0, 0);
	uint32_t need = vendor == CPUID_INTEL && topology->dies > 1 ? 0x1F : 0xB;
	int ret;

	if (!e)
		return -ENODATA;
	if (e->eax < need)
		e->eax = need;
	e = cpuid_find(t, 0x80000000, 0);
	if (!e) {
		ret = cpuid_put(t, 0x80000000, (struct cpuid_regs){ .eax = 0x80000008 });
		if (ret < 0)
			return ret;
		e = cpuid_find(t, 0x80000000, 0);
	}
	need = vendor == CPUID_AMD ? 0x8000001E : 0x80000008;
	if (e->eax < need)
		e->eax = need;
	return 0;
}

static void set_leaf1(struct cpuid_table *t, const struct cpuid_config *c)
{
	struct kvm_cpuid_entry2 *e = cpuid_find(t, 1, 0);
	uint32_t ids = topology_ids_in(c->topology, TOPOLOGY_SOCKET);
	uint32_t id = topology_apic_id(c->topology, c->index);

	if (!e)
		return;
	/* a line of 64 bytes, in units of 8 */
	e->ebx = (e->ebx & 0xFF) | 8 << 8 | (ids & 0xFF) << 16 | (id & 0xFF) << 24;
	e->ecx &= ~(ECX1_DTES64 | ECX1_MONITOR | ECX1_DS_CPL | ECX1_VMX | ECX1_PDCM |
		    ECX1_TSC_DEADLINE);
	e->ecx |= ECX1_X2APIC | ECX1_HYPERVISOR;
	if (c->tsc_deadline)
		e->ecx |= ECX1_TSC_DEADLINE;
	e->edx &= ~(EDX1_DS | EDX1_HTT);
	if (topology_cpus_in(c->topology, TOPOLOGY_SOCKET) > 1)
		e->edx |= EDX1_HTT;
}

static void set_leaves_6_7(struct cpuid_table *t)
{
	struct kvm_cpuid_entry2 *e = cpuid_find(t, 6, 0);

	if (e) {
		e->eax &= EAX6_ARAT; /* no turbo, no power limits, no energy bias */
		e->ebx = e->ecx = e->edx = 0;
	}
	e = cpuid_find(t, 7, 0);
	if (e) {
		e->ebx &= ~(EBX7_SGX | EBX7_INTEL_PT);
		e->ecx &= ~(ECX7_WAITPKG | ECX7_SGX_LC);
		e->edx &= ~(EDX7_HYBRID | EDX7_ARCH_LBR | EDX7_AMX);
	}
	e = cpuid_find(t, 7, 1);
	if (e) {
		e->eax &= ~EAX7_1_AMX;
		e->edx &= ~EDX7_1_AMX;
	}
}

/* Bytes of an XSAVE area with the states that subleaves 2 and on describe. */
static uint32_t xsave_bytes(const struct cpuid_table *t)
{
	uint32_t bytes = XSAVE_LEGACY_BYTES, i;

	for (i = 0; i < t->count; i++) {
		const struct kvm_cpuid_entry2 *e = &t->entries[i];

		/* a supervisor state has no place of its own, so EBX is 0 */
		if (e->function == 0xD && e->index > 1 && e->ebx && e->ebx + e->eax > bytes)
			bytes = e->ebx + e->eax;
	}
	return bytes;
}

/*
 * KVM has no tile data for a process that did not ask for it, but before Linux
 * 6.4 it reports the tile configuration all the same: a guest that believes it
 * faults at its XSETBV. The area then shrinks to what the other states need;
 * EBX, for what is switched on, is KVM's to keep while the guest runs.
 */
static void hide_amx_states(struct cpuid_table *t)
{
	struct kvm_cpuid_entry2 *e = cpuid_find(t, 0xD, 1);

	if (e)
		e->eax &= ~EAXD_1_XFD; /* no other state can be off by it */
	remove_sub(t, 0xD, STATE_TILE_CONFIG);
	remove_sub(t, 0xD, STATE_TILE_DATA);
	e = cpuid_find(t, 0xD, 0);
	if (!e || !(e->eax & STATES_AMX))
		return;
	e->eax &= ~STATES_AMX;
	e->ecx = xsave_bytes(t);
	if (e->ebx > e->ecx)
		e->ebx = e->ecx;
}

static void set_extended(struct cpuid_table *t, const struct cpuid_config *c,
			 enum cpuid_vendor vendor)
{
	struct kvm_cpuid_entry2 *e = cpuid_find(t, 0x80000001, 0);

	if (e && vendor == CPUID_AMD) {
		e->ecx &= ~(ECX81_SVM | ECX81_IBS | ECX81_PERFCTR_CORE | ECX81_PERFCTR_NB |
			    ECX81_PERFCTR_LLC | ECX81_MWAITX | ECX81_CMP_LEGACY);
		e->ecx |= ECX81_TOPOEXT;
		if (topology_cpus_in(c->topology, TOPOLOGY_SOCKET) > 1)
			e->ecx |= ECX81_CMP_LEGACY;
	}
	/*
	 * AMD guests call an invariant TSC a firmware bug if HWCR does not say
	 * that it counts at the P0 frequency. So it is shown only where KVM says
	 * that of its own accord; HWCR is never written, since a KVM that does
	 * not know the bit logs each try as an error of the host's.
	 */
	e = cpuid_find(t, 0x80000007, 0);
	if (e && vendor == CPUID_AMD && family(t) >= 0x10 && !c->tsc_freq_sel)
		e->edx &= ~EDX87_INVARIANT_TSC;
}

/* The hypervisor's own leaves: KVM's features as the spin policy has them, and frequencies. */
static int set_hypervisor(struct cpuid_table *t, const struct cpuid_config *c)
{
	struct kvm_cpuid_entry2 *e = cpuid_find(t, KVM_LEAF_FEATURES, 0);

	if (e) {
		e->eax &= ~c->pv_hidden;
		e->edx = c->pv_hints;
	}
	e = cpuid_find(t, KVM_LEAF_BASE, 0);
	if (!e || !c->tsc_khz)
		return 0;
	if (e->eax < KVM_LEAF_TIMING)
		e->eax = KVM_LEAF_TIMING;
	return cpuid_put(t, KVM_LEAF_TIMING,
			 (struct cpuid_regs){ .eax = c->tsc_khz, .ebx = KVM_APIC_BUS_KHZ });
}

int cpuid_build(struct cpuid_table *t, const struct cpuid_config *c, struct error *err)
{
	enum cpuid_vendor vendor = cpuid_vendor(t);
	uint32_t i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(hidden_leaves); i++)
		cpuid_remove(t, hidden_leaves[i]);
	ret = set_ranges(t, c->topology, vendor);
	if (ret == -ENODATA)
		return error_set(err, ret, "CPUID: KVM reports no leaf 0");
	if (ret < 0)
		return error_set(err, ret, "CPUID: more than %d entries", CPUID_ENTRIES);
	set_leaf1(t, c);
	set_leaves_6_7(t);
	hide_amx_states(t);
	set_extended(t, c, vendor);
	ret = set_hypervisor(t, c);
	if (ret == 0)
		ret = cpuid_cache_build(t, c->topology, vendor, c->index);
	if (ret < 0)
		return error_set(err, ret, "CPUID: more than %d entries", CPUID_ENTRIES);
	return 0;
}
