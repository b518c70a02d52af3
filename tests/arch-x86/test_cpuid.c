/*
 * CPUID over both makes of processor and 1 to 32 vCPUs: what must agree with
 * what, and what must not be shown.
 */
#include "tests/arch-x86/arch_test.h"

#include "arch-x86/cpuid.h"

#define INTEL_B 0x756E6547 /* "Genu" */
#define AMD_B 0x68747541   /* "Auth" */
#define HYGON_B 0x6F677948 /* "Hygo" */
#define KHZ 2450000

static struct cpuid_table table;
static struct topology topology;

static void put(uint32_t function, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	assert_int_equal(cpuid_put(&table, function, (struct cpuid_regs){ a, b, c, d }), 0);
}

/* All features there are, and the topology and caches of a large host. */
static void put_host(uint32_t vendor, uint32_t max)
{
	uint32_t i;

	memset(&table, 0, sizeof(table));
	put(0, max, vendor, 0, 0);
	put(1, 0x00830F10, 0x3F400800, UINT32_MAX, UINT32_MAX);
	put(2, 0x76036301, 0xF0B5FF, 0, 0xC30000);
	put(5, 0x40, 0x40, 3, 0x11142120);
	put(6, UINT32_MAX, 3, 9, 0);
	put(0xA, 0x07300404, 0, 0, 0x603);
	put(0x15, 2, 200, 25000000, 0);
	put(0x40000000, 0x40000001, 0x4B4D564B, 0x564B4D56, 0x4D);
	put(0x40000001, 0x01007EFB, 0, 0, 1);
	put(0x80000000, 0x80000021, vendor, 0, 0);
	put(0x80000001, 0, 0, UINT32_MAX, UINT32_MAX);
	put(0x80000005, 0xFF40FF40, 0xFF40FF40, 0x20080140, 0x20080140);
	put(0x80000006, 0x48006400, 0x68006400, 0x02006140, 0x00809140);
	put(0x80000007, 0, 0, 0, 0x100);
	put(0x80000008, 0x3030, 0x1000, 0x707F, 0);
	put(0x8000001E, 0x3F, 0x13F, 0x703, 0);
	put(0x8000001F, 0x1F, 0x33, 0xFF, 1);
	cpuid_put_sub(&table, 7, 0, (struct cpuid_regs){ 0, ~0u, ~0u, ~0u });
	for (i = 0; i < 4; i++) {
		cpuid_put_sub(&table, 4, i, (struct cpuid_regs){ 0xFC1FC143, 0x3C0003F, 0x7FF, 4 });
		cpuid_put_sub(&table, 0x8000001D, i, (struct cpuid_regs){ 0x7C163, 1, 2, 3 });
		cpuid_put_sub(&table, 0xB, i, (struct cpuid_regs){ 7, 128, 0x201, 0x3F });
		cpuid_put_sub(&table, 0x1F, i, (struct cpuid_regs){ 7, 128, 0x201, 0x3F });
	}
}

/* AVX, PKRU, the supervisor's CET and tiles, as a host with AMX has them. */
static void put_amx_states(void)
{
	cpuid_put_sub(&table, 0xD, 0, (struct cpuid_regs){ 0x60207, 0x2B00, 0x2B00, 0 });
	cpuid_put_sub(&table, 0xD, 1, (struct cpuid_regs){ 0x1F, 0x2B00, 0x800, 0 });
	cpuid_put_sub(&table, 0xD, 2, (struct cpuid_regs){ 0x100, 0x240, 0, 0 });
	cpuid_put_sub(&table, 0xD, 9, (struct cpuid_regs){ 8, 0xA80, 0, 0 });
	cpuid_put_sub(&table, 0xD, 11, (struct cpuid_regs){ 0xFFFF, 0, 1, 0 });
	cpuid_put_sub(&table, 0xD, 17, (struct cpuid_regs){ 0x40, 0xAC0, 2, 0 });
	cpuid_put_sub(&table, 0xD, 18, (struct cpuid_regs){ 0x2000, 0xB00, 6, 0 });
	cpuid_put_sub(&table, 0x1D, 1, (struct cpuid_regs){ 0x04002000, 0x80040, 0x10, 0 });
	cpuid_put_sub(&table, 0x1E, 0, (struct cpuid_regs){ 0, 0x4010, 0, 0 });
}

static void build(uint32_t vendor, uint32_t vcpus, bool smt, uint32_t index)
{
	struct cpuid_config c = {
		.topology = &topology,
		.index = index,
		.tsc_deadline = true,
		.tsc_khz = KHZ,
	};
	struct error err;

	topology_init(&topology, vcpus, smt);
	put_host(vendor, 0x20);
	assert_int_equal(cpuid_build(&table, &c, &err), 0);
}

static const struct kvm_cpuid_entry2 *leaf(uint32_t function, uint32_t index)
{
	static const struct kvm_cpuid_entry2 none;
	const struct kvm_cpuid_entry2 *e = cpuid_find(&table, function, index);

	return e ? e : &none;
}

/* Calls `check` for every make, vCPU count, SMT setting and vCPU. */
static void for_all(void (*check)(uint32_t vendor, uint32_t id))
{
	static const uint32_t vendors[] = { INTEL_B, AMD_B };
	uint32_t v, n, smt, i;

	for (v = 0; v < 2; v++)
		for (n = 1; n <= LIMIT_VCPUS; n++)
			for (smt = 0; smt < 2; smt++)
				for (i = 0; i < n; i++) {
					build(vendors[v], n, smt, i);
					check(vendors[v], topology_apic_id(&topology, i));
				}
}

static void check_ids(uint32_t vendor, uint32_t id)
{
	uint32_t i;

	assert_int_equal(leaf(1, 0)->ebx >> 24, id);
	for (i = 0; i < 3; i++)
		assert_int_equal(leaf(0xB, i)->edx, id);
	if (vendor == AMD_B)
		assert_int_equal(leaf(0x8000001E, 0)->eax, id);
	else
		for (i = 0; i < 3; i++)
			assert_int_equal(leaf(0x1F, i)->edx, id);
}

static void id_is_the_same_in_every_leaf(void **state)
{
	for_all(check_ids);
}

static void check_leaf_b(uint32_t vendor, uint32_t id)
{
	assert_int_equal(leaf(0xB, 0)->eax, topology_shift(&topology, TOPOLOGY_CORE));
	assert_int_equal(leaf(0xB, 0)->ebx, topology.threads);
	assert_int_equal(leaf(0xB, 0)->ecx, 0x100);
	assert_int_equal(leaf(0xB, 1)->eax, topology_shift(&topology, TOPOLOGY_SOCKET));
	assert_int_equal(leaf(0xB, 1)->ebx, topology_cpu_count(&topology));
	assert_int_equal(leaf(0xB, 1)->ecx, 0x201);
	assert_int_equal(leaf(0xB, 2)->eax, 0);
	assert_int_equal(leaf(0xB, 2)->ebx, 0);
	assert_int_equal(leaf(0xB, 2)->ecx, 2);
	assert_true(id >> leaf(0xB, 1)->eax == 0);
}

static void leaf_b_tells_threads_and_cores(void **state)
{
	for_all(check_leaf_b);
}

static void check_htt(uint32_t vendor, uint32_t id)
{
	uint32_t cpus = topology_cpu_count(&topology);

	assert_int_equal(leaf(1, 0)->edx >> 28 & 1, cpus > 1);
	assert_int_equal(leaf(1, 0)->ebx >> 16 & 0xFF, topology_ids_in(&topology, TOPOLOGY_SOCKET));
	assert_int_equal(leaf(1, 0)->ebx >> 8 & 0xFF, 8);
	if (vendor == AMD_B)
		assert_int_equal(leaf(0x80000001, 0)->ecx >> 1 & 1, cpus > 1);
}

static void leaf_1_counts_ids_of_the_socket(void **state)
{
	for_all(check_htt);
}

/* Which CPUs share a cache: those whose ids agree above the field of the sharers. */
static void check_sharing(const struct kvm_cpuid_entry2 *e, uint32_t cpus)
{
	uint32_t ids = (e->eax >> 14 & 0xFFF) + 1, shared = 0, i;

	assert_true(is_power_of_two(ids));
	for (i = 0; i < topology_cpu_count(&topology); i++)
		shared += topology_apic_id(&topology, i) / ids == 0;
	assert_int_equal(shared, cpus);
}

static void check_caches(uint32_t vendor, uint32_t id)
{
	uint32_t function = vendor == AMD_B ? 0x8000001D : 4, i;

	for (i = 0; i < 3; i++)
		check_sharing(leaf(function, i), topology.threads);
	check_sharing(leaf(function, 3), topology.threads * topology.cores);
	assert_int_equal(leaf(function, 3)->eax & 0xFF, 0x63); /* unified, level 3 */
	assert_non_null(cpuid_find(&table, function, 4));
	assert_int_equal(leaf(function, 4)->eax, 0);
	assert_int_equal(leaf(function, 4)->ebx, 0);
}

static void cache_leaf_tells_who_shares_and_ends(void **state)
{
	for_all(check_caches);
}

static void check_intel(uint32_t vendor, uint32_t id)
{
	if (vendor != INTEL_B)
		return;
	assert_int_equal((leaf(4, 0)->eax >> 26) + 1, topology_ids_in(&topology, TOPOLOGY_SOCKET) /
							      topology_ids_in(&topology,
									      TOPOLOGY_CORE));
	assert_int_equal(leaf(0x1F, 0)->eax, leaf(0xB, 0)->eax);
	assert_int_equal(leaf(0x1F, 1)->eax, leaf(0xB, 1)->eax);
	assert_int_equal(leaf(0x1F, 1)->ebx, leaf(0xB, 1)->ebx);
	assert_int_equal(leaf(0x1F, 2)->ecx, 2);
	assert_int_equal(leaf(2, 0)->eax, 0xFF01);
	assert_null(cpuid_find(&table, 0x8000001D, 4));
}

static void intel_counts_cores_in_leaf_4(void **state)
{
	for_all(check_intel);
}

static void check_amd(uint32_t vendor, uint32_t id)
{
	const struct kvm_cpuid_entry2 *e;

	if (vendor != AMD_B)
		return;
	e = leaf(0x80000008, 0);
	assert_int_equal((e->ecx & 0xFF) + 1, topology_cpu_count(&topology));
	assert_int_equal(e->ecx >> 12 & 0xF, topology_shift(&topology, TOPOLOGY_SOCKET));
	e = leaf(0x8000001E, 0);
	assert_int_equal(e->ebx & 0xFF, id >> topology_shift(&topology, TOPOLOGY_CORE));
	assert_int_equal((e->ebx >> 8 & 0xFF) + 1, topology.threads);
	assert_int_equal(e->ecx, 0);
	assert_int_equal(leaf(0x80000001, 0)->ecx >> 22 & 1, 1);
	assert_int_equal(leaf(2, 0)->eax, 0);
}

static void amd_counts_cores_in_its_own_leaves(void **state)
{
	for_all(check_amd);
}

static void check_ranges(uint32_t vendor, uint32_t id)
{
	assert_true(leaf(0, 0)->eax >= 0xB);
	assert_true(leaf(0x80000000, 0)->eax >= (vendor == AMD_B ? 0x8000001E : 0x80000008));
	assert_true(table.count <= CPUID_ENTRIES);
}

static void largest_leaves_cover_what_is_told(void **state)
{
	for_all(check_ranges);
}

static uint64_t size_of(const struct kvm_cpuid_entry2 *e)
{
	return ((e->ebx >> 22) + 1ull) * ((e->ebx >> 12 & 0x3FF) + 1) * ((e->ebx & 0xFFF) + 1) *
	       (e->ecx + 1ull);
}

static void cache_sizes_are_the_models(void **state)
{
	static const uint32_t functions[] = { 4, 0x8000001D };
	uint32_t v, i;

	for (v = 0; v < 2; v++) {
		build(v ? AMD_B : INTEL_B, 4, false, 0);
		for (i = 0; i < TOPOLOGY_CACHES; i++)
			assert_int_equal(size_of(leaf(functions[v], i)),
					 topology.caches[i].geometry.size_kib * KIB);
	}
}

static void old_cache_leaves_tell_the_same_sizes(void **state)
{
	build(AMD_B, 4, false, 0);
	assert_int_equal(leaf(0x80000005, 0)->ecx >> 24, topology.caches[TOPOLOGY_L1D].geometry.size_kib);
	assert_int_equal(leaf(0x80000005, 0)->edx >> 24, topology.caches[TOPOLOGY_L1I].geometry.size_kib);
	assert_int_equal(leaf(0x80000006, 0)->ecx >> 16, topology.caches[TOPOLOGY_L2].geometry.size_kib);
	assert_int_equal((leaf(0x80000006, 0)->edx >> 18) * 512,
			 topology.caches[TOPOLOGY_L3].geometry.size_kib);
	assert_int_equal(leaf(0x80000006, 0)->edx >> 12 & 0xF, 8); /* 16 ways */
	assert_int_equal(leaf(0x80000005, 0)->eax, 0xFF40FF40);    /* TLBs stay */
	build(INTEL_B, 4, false, 0);
	assert_int_equal(leaf(0x80000006, 0)->ecx, topology.caches[TOPOLOGY_L2].geometry.size_kib << 16 |
							   8 << 12 | 64);
	assert_int_equal(leaf(0x80000006, 0)->edx, 0);
}

static void missing_third_level_is_told_as_missing(void **state)
{
	struct cpuid_config c = { .topology = &topology };
	struct error err;

	topology_init(&topology, 4, false);
	topology.caches[TOPOLOGY_L3].geometry.size_kib = 0;
	put_host(AMD_B, 0x10);
	assert_int_equal(cpuid_build(&table, &c, &err), 0);
	assert_int_equal(leaf(0x80000006, 0)->edx, 0);
	assert_int_equal(leaf(0x8000001D, 3)->eax, 0);
	assert_null(cpuid_find(&table, 0x8000001D, 4));
}

static void dies_are_told_in_leaf_1f(void **state)
{
	struct cpuid_config c = { .topology = &topology, .index = 5 };
	struct error err;

	topology_init(&topology, 4, false);
	topology.dies = 2;
	topology.cores = 3;
	put_host(INTEL_B, 0xB);
	assert_int_equal(cpuid_build(&table, &c, &err), 0);
	assert_int_equal(leaf(0, 0)->eax, 0x1F);
	assert_int_equal(leaf(0x1F, 1)->eax, 2);
	assert_int_equal(leaf(0x1F, 1)->ebx, 3);
	assert_int_equal(leaf(0x1F, 2)->ecx, 0x502);
	assert_int_equal(leaf(0x1F, 2)->eax, 3);
	assert_int_equal(leaf(0x1F, 3)->ecx, 3);
	assert_int_equal(leaf(0x1F, 3)->edx, 6);
	assert_int_equal(leaf(0xB, 1)->eax, 3);
	assert_int_equal((leaf(4, 3)->eax >> 14 & 0xFFF) + 1, 4);
}

static void small_host_gets_the_leaves_it_lacks(void **state)
{
	struct cpuid_config c = { .topology = &topology };
	struct error err;

	topology_init(&topology, 2, false);
	put_host(AMD_B, 5);
	cpuid_remove(&table, 0x80000000);
	assert_int_equal(cpuid_build(&table, &c, &err), 0);
	assert_int_equal(leaf(0, 0)->eax, 0xB);
	assert_int_equal(leaf(0x80000000, 0)->eax, 0x8000001E);
}

static void mwait_and_virtualisation_are_hidden(void **state)
{
	build(INTEL_B, 2, false, 0);
	assert_int_equal(leaf(1, 0)->ecx & (BIT(3) | BIT(5) | BIT(15)), 0);
	assert_int_equal(leaf(7, 0)->ecx & (BIT(5) | BIT(30)), 0);
	assert_int_equal(leaf(7, 0)->ebx & (BIT(2) | BIT(25)), 0);
	assert_int_equal(leaf(7, 0)->edx & (BIT(15) | BIT(19)), 0);
	assert_null(cpuid_find(&table, 5, 0));
	build(AMD_B, 2, false, 0);
	assert_int_equal(leaf(0x80000001, 0)->ecx & (BIT(2) | BIT(10) | BIT(29)), 0);
	assert_null(cpuid_find(&table, 0x8000001F, 0));
}

static void amx_is_hidden(void **state)
{
	struct cpuid_config c = { .topology = &topology };
	struct error err;

	topology_init(&topology, 1, false);
	put_host(INTEL_B, 0x20);
	cpuid_put_sub(&table, 7, 1, (struct cpuid_regs){ ~0u, 0, 0, ~0u });
	put_amx_states();
	assert_int_equal(cpuid_build(&table, &c, &err), 0);
	assert_int_equal(leaf(7, 0)->edx & (BIT(22) | BIT(24) | BIT(25)), 0);
	assert_int_equal(leaf(7, 1)->eax, ~BIT(21));
	assert_int_equal(leaf(7, 1)->edx, ~BIT(8));
	assert_null(cpuid_find(&table, 0x1D, 1));
	assert_null(cpuid_find(&table, 0x1E, 0));
	assert_null(cpuid_find(&table, 0xD, 17));
	assert_null(cpuid_find(&table, 0xD, 18));
}

static void xsave_area_shrinks_without_amx(void **state)
{
	struct cpuid_config c = { .topology = &topology };
	struct error err;

	topology_init(&topology, 1, false);
	put_host(INTEL_B, 0x20);
	put_amx_states();
	assert_int_equal(cpuid_build(&table, &c, &err), 0);
	assert_int_equal(cpuid_xsave_states(&table), 0x207);
	assert_int_equal(leaf(0xD, 0)->ecx, 0xA88);
	assert_int_equal(leaf(0xD, 0)->ebx, 0xA88);
	assert_int_equal(leaf(0xD, 1)->eax, 0xF);
	assert_int_equal(leaf(0xD, 9)->ebx, 0xA80); /* the others stay */
}

static void counters_are_hidden(void **state)
{
	build(INTEL_B, 2, false, 0);
	assert_null(cpuid_find(&table, 0xA, 0));
	assert_int_equal(leaf(1, 0)->edx & BIT(21), 0);
	build(AMD_B, 2, false, 0);
	assert_int_equal(leaf(0x80000001, 0)->ecx & (BIT(23) | BIT(24) | BIT(28)), 0);
}

static void power_leaf_keeps_the_constant_timer_alone(void **state)
{
	build(INTEL_B, 2, false, 0);
	assert_int_equal(leaf(6, 0)->eax, 4);
	assert_int_equal(leaf(6, 0)->ecx, 0);
}

static void hypervisor_and_x2apic_are_shown(void **state)
{
	build(INTEL_B, 2, false, 0);
	assert_int_equal(leaf(1, 0)->ecx & (BIT(31) | BIT(21)), BIT(31) | BIT(21));
}

static void tsc_deadline_follows_kvm(void **state)
{
	struct cpuid_config c = { .topology = &topology };
	struct error err;

	build(INTEL_B, 1, false, 0);
	assert_int_equal(leaf(1, 0)->ecx & BIT(24), BIT(24));
	put_host(INTEL_B, 0x16);
	assert_int_equal(cpuid_build(&table, &c, &err), 0);
	assert_int_equal(leaf(1, 0)->ecx & BIT(24), 0);
}

static void kvm_features_stay_without_the_realtime_hint(void **state)
{
	build(AMD_B, 2, false, 0);
	assert_int_equal(leaf(0x40000001, 0)->eax, 0x01007EFB);
	assert_int_equal(leaf(0x40000001, 0)->edx, 0);
}

static void the_spin_policy_hides_features_and_hints(void **state)
{
	struct cpuid_config c = { .topology = &topology, .pv_hidden = BIT(7) | BIT(9),
				  .pv_hints = BIT(0) };
	struct error err;

	topology_init(&topology, 2, false);
	put_host(AMD_B, 0x16);
	assert_int_equal(cpuid_build(&table, &c, &err), 0);
	assert_int_equal(leaf(0x40000001, 0)->eax, 0x01007EFB & ~0x280);
	assert_int_equal(leaf(0x40000001, 0)->edx, 1);
}

static void frequencies_are_in_the_timing_leaf(void **state)
{
	build(AMD_B, 2, false, 0);
	assert_int_equal(leaf(0x40000000, 0)->eax, 0x40000010);
	assert_int_equal(leaf(0x40000010, 0)->eax, KHZ);
	assert_int_equal(leaf(0x40000010, 0)->ebx, 1000000);
	assert_null(cpuid_find(&table, 0x15, 0));
}

static void timing_leaf_is_left_out_when_unknown(void **state)
{
	struct cpuid_config c = { .topology = &topology };
	struct error err;

	topology_init(&topology, 1, false);
	put_host(INTEL_B, 0x16);
	assert_int_equal(cpuid_build(&table, &c, &err), 0);
	assert_int_equal(leaf(0x40000000, 0)->eax, 0x40000001);
	assert_null(cpuid_find(&table, 0x40000010, 0));
}

static uint32_t invariant_tsc(uint32_t vendor, uint32_t signature, bool freq_sel)
{
	struct cpuid_config c = { .topology = &topology, .tsc_freq_sel = freq_sel };
	struct error err;

	topology_init(&topology, 1, false);
	put_host(vendor, 0x16);
	cpuid_find(&table, 1, 0)->eax = signature;
	assert_int_equal(cpuid_build(&table, &c, &err), 0);
	return leaf(0x80000007, 0)->edx >> 8 & 1;
}

static void invariant_tsc_is_shown_where_no_guest_complains(void **state)
{
	assert_int_equal(invariant_tsc(INTEL_B, 0x50654, false), 1);
	assert_int_equal(invariant_tsc(AMD_B, 0x830F10, false), 0); /* family 17h */
	assert_int_equal(invariant_tsc(AMD_B, 0x830F10, true), 1);
	assert_int_equal(invariant_tsc(AMD_B, 0x60FB1, false), 1); /* family 0Fh */
}

static void makes_are_told_apart(void **state)
{
	put_host(INTEL_B, 0xB);
	assert_int_equal(cpuid_vendor(&table), CPUID_INTEL);
	put_host(AMD_B, 0xB);
	assert_int_equal(cpuid_vendor(&table), CPUID_AMD);
	put_host(HYGON_B, 0xB);
	assert_int_equal(cpuid_vendor(&table), CPUID_AMD);
}

static void physical_bits_have_a_default(void **state)
{
	put_host(INTEL_B, 0xB);
	assert_int_equal(cpuid_phys_bits(&table), 0x30);
	cpuid_remove(&table, 0x80000008);
	assert_int_equal(cpuid_phys_bits(&table), 36);
}

static void xsave_states_come_from_leaf_d(void **state)
{
	put_host(INTEL_B, 0xD);
	assert_int_equal(cpuid_xsave_states(&table), 0);
	put(0xD, 0x207, 0x340, 0xA88, 0x40000000);
	assert_int_equal(cpuid_xsave_states(&table), 0x4000000000000207);
	cpuid_find(&table, 1, 0)->ecx = 0;
	assert_int_equal(cpuid_xsave_states(&table), 0);
}

static void full_table_is_an_error(void **state)
{
	struct cpuid_config c = { .topology = &topology };
	struct error err;
	uint32_t i;

	topology_init(&topology, 1, false);
	memset(&table, 0, sizeof(table));
	put(0, 0xB, AMD_B, 0, 0);
	for (i = 0; table.count < CPUID_ENTRIES; i++)
		assert_int_equal(cpuid_put_sub(&table, 0x77, i, (struct cpuid_regs){ 0 }), 0);
	assert_int_equal(cpuid_put_sub(&table, 0x77, i, (struct cpuid_regs){ 0 }), -ENOSPC);
	assert_int_equal(cpuid_build(&table, &c, &err), -ENOSPC);
	assert_int_equal(table.count, CPUID_ENTRIES);
}

static void empty_table_is_an_error(void **state)
{
	struct cpuid_config c = { .topology = &topology };
	struct error err;

	topology_init(&topology, 1, false);
	memset(&table, 0, sizeof(table));
	assert_int_equal(cpuid_build(&table, &c, &err), -ENODATA);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(id_is_the_same_in_every_leaf),
		cmocka_unit_test(leaf_b_tells_threads_and_cores),
		cmocka_unit_test(leaf_1_counts_ids_of_the_socket),
		cmocka_unit_test(cache_leaf_tells_who_shares_and_ends),
		cmocka_unit_test(intel_counts_cores_in_leaf_4),
		cmocka_unit_test(amd_counts_cores_in_its_own_leaves),
		cmocka_unit_test(largest_leaves_cover_what_is_told),
		cmocka_unit_test(cache_sizes_are_the_models),
		cmocka_unit_test(old_cache_leaves_tell_the_same_sizes),
		cmocka_unit_test(missing_third_level_is_told_as_missing),
		cmocka_unit_test(dies_are_told_in_leaf_1f),
		cmocka_unit_test(small_host_gets_the_leaves_it_lacks),
		cmocka_unit_test(mwait_and_virtualisation_are_hidden),
		cmocka_unit_test(amx_is_hidden),
		cmocka_unit_test(xsave_area_shrinks_without_amx),
		cmocka_unit_test(counters_are_hidden),
		cmocka_unit_test(power_leaf_keeps_the_constant_timer_alone),
		cmocka_unit_test(hypervisor_and_x2apic_are_shown),
		cmocka_unit_test(tsc_deadline_follows_kvm),
		cmocka_unit_test(kvm_features_stay_without_the_realtime_hint),
		cmocka_unit_test(the_spin_policy_hides_features_and_hints),
		cmocka_unit_test(frequencies_are_in_the_timing_leaf),
		cmocka_unit_test(timing_leaf_is_left_out_when_unknown),
		cmocka_unit_test(invariant_tsc_is_shown_where_no_guest_complains),
		cmocka_unit_test(makes_are_told_apart),
		cmocka_unit_test(physical_bits_have_a_default),
		cmocka_unit_test(xsave_states_come_from_leaf_d),
		cmocka_unit_test(full_table_is_an_error),
		cmocka_unit_test(empty_table_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
