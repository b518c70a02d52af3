/*
 * Topology and caches as a guest decodes them from the CPUID leaves of all its
 * vCPUs: it must come to the units and the groups of the model, for both makes.
 */
#include "tests/arch-x86/arch_test.h"

#include "arch-x86/cpuid.h"
#include "vmm/config.h"

#define GIVEN(v) { .value = (v), .given = true }

static const uint32_t vendors[] = { 0x756E6547 /* "Genu" */, 0x68747541 /* "Auth" */ };
#define INTEL 0
#define AMD 1

static struct cpuid_table tables[LIMIT_VCPUS];
static struct topology t;
static int make;

static void put_host(struct cpuid_table *table)
{
	memset(table, 0, sizeof(*table));
	(void)cpuid_put(table, 0, (struct cpuid_regs){ 0x20, vendors[make], 0, 0 });
	(void)cpuid_put(table, 1, (struct cpuid_regs){ 0x00A00F10, 0, 0, 0 });
	(void)cpuid_put(table, 0x80000000, (struct cpuid_regs){ .eax = 0x80000020 });
	(void)cpuid_put(table, 0x80000001, (struct cpuid_regs){ 0 });
	(void)cpuid_put(table, 0x80000008, (struct cpuid_regs){ 0x3030, 0, 0xF0FF, 0 });
}

static void build(const struct topology_config *asked, uint32_t vcpus, bool smt)
{
	const struct machine_config m = { .vcpu_count = vcpus, .smt = smt, .mem_size_mib = 256 };
	static const struct topology_host unknown;
	struct error err = { .text = "" };
	uint32_t i;

	if (topology_build(&t, asked, &m, &unknown, &err) < 0)
		fail_msg("%s", err.text);
	for (i = 0; i < vcpus; i++) {
		const struct cpuid_config c = { .topology = &t, .index = i };

		put_host(&tables[i]);
		assert_int_equal(cpuid_build(&tables[i], &c, &err), 0);
	}
}

static struct cpuid_regs leaf(uint32_t cpu, uint32_t function, uint32_t index)
{
	const struct kvm_cpuid_entry2 *e = cpuid_find(&tables[cpu], function, index);

	return e ? (struct cpuid_regs){ e->eax, e->ebx, e->ecx, e->edx } :
		   (struct cpuid_regs){ 0 };
}

/* As Linux walks leaf 0x1F, or 0xB: the shift at which a level ends, and its id. */
struct decoded {
	uint32_t id, smt_shift, core_shift, package_shift;
	bool has_die;
};

static void decode(uint32_t cpu, struct decoded *d)
{
	uint32_t function = leaf(cpu, 0, 0).eax >= 0x1F && leaf(cpu, 0x1F, 0).ebx ? 0x1F : 0xB;
	struct cpuid_regs r = leaf(cpu, function, 0);
	uint32_t sub;

	memset(d, 0, sizeof(*d));
	d->id = r.edx;
	d->smt_shift = d->core_shift = r.eax;
	for (sub = 0; r.ecx >> 8; sub++, r = leaf(cpu, function, sub)) {
		assert_int_equal(r.edx, d->id);
		assert_int_equal(r.ecx & 0xFF, sub);
		if (r.ecx >> 8 == 2)
			d->core_shift = r.eax;
		d->has_die |= r.ecx >> 8 == 5;
		d->package_shift = r.eax;
	}
	assert_non_null(cpuid_find(&tables[cpu], function, sub)); /* an explicit end */
	assert_int_equal(r.eax | r.ebx, 0);
}

static void check_units(uint32_t cpu)
{
	struct decoded d;
	uint32_t ecx;

	decode(cpu, &d);
	assert_int_equal(d.id, topology_apic_id(&t, cpu));
	assert_int_equal(leaf(cpu, 1, 0).ebx >> 24, d.id);
	assert_int_equal(d.id >> d.package_shift, topology_unit_of(&t, TOPOLOGY_SOCKET, cpu));
	assert_int_equal(d.id & ((1u << d.smt_shift) - 1), topology_unit_of(&t, TOPOLOGY_THREAD, cpu));
	if (make == INTEL) {
		assert_int_equal(d.has_die, t.dies > 1);
		assert_int_equal(d.id >> d.core_shift, cpu / topology_cpus_in(&t, TOPOLOGY_DIE) / t.dies
						       << (d.package_shift - d.core_shift) |
					       topology_unit_of(&t, TOPOLOGY_DIE, cpu));
		return;
	}
	ecx = leaf(cpu, 0x8000001E, 0).ecx;
	assert_int_equal((ecx >> 8 & 7) + 1, t.dies);
	assert_int_equal(leaf(cpu, 0x8000001E, 0).eax, d.id);
	assert_int_equal(leaf(cpu, 0x80000008, 0).ecx >> 12 & 0xF, d.package_shift);
}

/* AMD: the node's id names one die of the whole system. */
static void check_node_ids(uint32_t a, uint32_t b)
{
	bool one_die = a / topology_cpus_in(&t, TOPOLOGY_DIE) ==
		       b / topology_cpus_in(&t, TOPOLOGY_DIE);

	if (make == AMD)
		assert_int_equal((leaf(a, 0x8000001E, 0).ecx & 0xFF) ==
					 (leaf(b, 0x8000001E, 0).ecx & 0xFF),
				 one_die);
}

/* Whether a guest finds that two CPUs share the n-th cache. */
static bool share(uint32_t a, uint32_t b, uint32_t n)
{
	struct cpuid_regs r = leaf(a, make == AMD ? 0x8000001D : 4, n);
	uint32_t ids = (r.eax >> 14 & 0xFFF) + 1;

	assert_true(is_power_of_two(ids));
	return topology_apic_id(&t, a) / ids == topology_apic_id(&t, b) / ids;
}

static void check_caches(uint32_t a, uint32_t b)
{
	uint32_t n;

	for (n = 0; n < TOPOLOGY_CACHES; n++) {
		uint32_t cpus = topology_cpus_in(&t, t.caches[n].shared_by);

		assert_int_equal(share(a, b, n), a / cpus == b / cpus);
	}
	assert_int_equal(leaf(a, make == AMD ? 0x8000001D : 4, n).eax, 0);
}

static void check_all(const struct topology_config *asked, uint32_t vcpus, bool smt)
{
	uint32_t a, b;

	for (make = INTEL; make <= AMD; make++) {
		build(asked, vcpus, smt);
		for (a = 0; a < vcpus; a++) {
			check_units(a);
			for (b = 0; b < vcpus; b++) {
				check_node_ids(a, b);
				check_caches(a, b);
			}
		}
	}
}

static const uint32_t counts[] = { 1, 2, 3, 5, 6, 7, 12, 16 };

static void guests_find_the_units_of_one_die(void **state)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		check_all(&(const struct topology_config){ 0 }, counts[i], false);
		if (counts[i] % 2 == 0)
			check_all(&(const struct topology_config){ 0 }, counts[i], true);
	}
}

static void guests_find_sockets_and_dies(void **state)
{
	static const uint32_t units[][2] = { { 2, 1 }, { 1, 2 }, { 2, 2 }, { 3, 1 }, { 1, 3 },
					     { 2, 3 }, { 4, 4 }, { 1, 8 }, { 3, 3 } };
	struct topology_config asked = { 0 };
	uint32_t i, cores, threads;

	for (i = 0; i < ARRAY_SIZE(units); i++)
		for (cores = 1; cores <= 3; cores++)
			for (threads = 1; threads <= 3; threads++) {
				uint32_t vcpus = units[i][0] * units[i][1] * cores * threads;

				if (vcpus > LIMIT_VCPUS)
					continue;
				asked.sockets = (struct config_number)GIVEN(units[i][0]);
				asked.dies = (struct config_number)GIVEN(units[i][1]);
				asked.threads = (struct config_number)GIVEN(threads);
				check_all(&asked, vcpus, threads > 1);
			}
}

static void guests_find_who_shares_each_cache(void **state)
{
	struct topology_config asked = { .sockets = GIVEN(2), .dies = GIVEN(2) };
	struct topology_cache_config *caches = asked.caches.of;
	int l2, l3;

	for (l2 = TOPOLOGY_CORE; l2 <= TOPOLOGY_SOCKET; l2++)
		for (l3 = l2; l3 <= TOPOLOGY_SOCKET; l3++) {
			caches[TOPOLOGY_L2].shared_by = (enum topology_level)l2;
			caches[TOPOLOGY_L3].shared_by = (enum topology_level)l3;
			caches[TOPOLOGY_L2].has_shared_by = caches[TOPOLOGY_L3].has_shared_by = true;
			check_all(&asked, 12, false);
			check_all(&asked, 24, true);
		}
}

static void guests_find_a_narrowed_third_level(void **state)
{
	static const int32_t groups[] = { 0, 0, 0, 0, 4, 4, 4, 4 };
	const struct cpuid_config c = { .topology = &t };
	struct error err;

	for (make = INTEL; make <= AMD; make++) {
		build(&(const struct topology_config){ 0 }, 8, false);
		assert_true(share(0, 7, 3));
		assert_true(topology_narrow_l3(&t, groups));
		put_host(&tables[0]);
		assert_int_equal(cpuid_build(&tables[0], &c, &err), 0);
		assert_true(share(0, 3, 3));
		assert_false(share(0, 4, 3));
	}
}

static void geometry_is_the_same_in_all_leaves(void **state)
{
	const struct topology_config asked = {
		.caches.of = {
			[TOPOLOGY_L1D] = { .size_kib = GIVEN(48), .ways = GIVEN(12) },
			[TOPOLOGY_L2] = { .size_kib = GIVEN(1280), .ways = GIVEN(10) },
			[TOPOLOGY_L3] = { .size_kib = GIVEN(1792), .ways = GIVEN(28) },
		},
	};

	make = AMD;
	build(&asked, 2, false);
	assert_int_equal(leaf(0, 0x80000005, 0).ecx, 48 << 24 | 12 << 16 | 1 << 8 | 64);
	assert_int_equal(leaf(0, 0x80000006, 0).ecx, 1280 << 16 | 9 << 12 | 1 << 8 | 64);
	assert_int_equal(leaf(0, 0x80000006, 0).edx, 3 << 18 | 9 << 12 | 1 << 8 | 64);
	assert_int_equal(leaf(0, 0x8000001D, 2).ebx, 9 << 22 | 63);
	assert_int_equal(leaf(0, 0x8000001D, 2).ecx, 2047);
	make = INTEL;
	build(&asked, 2, false);
	assert_int_equal(leaf(0, 0x80000006, 0).ecx, 1280 << 16 | 7 << 12 | 64);
	assert_int_equal(leaf(0, 4, 3).ebx, 27 << 22 | 63);
	assert_int_equal(leaf(0, 4, 3).ecx, 1023);
}

static void caches_that_are_off_leave_no_gap(void **state)
{
	const struct topology_config asked = { .caches.of[TOPOLOGY_L2].has_enabled = true };

	for (make = INTEL; make <= AMD; make++) {
		build(&asked, 2, false);
		assert_int_equal(leaf(0, make == AMD ? 0x8000001D : 4, 2).eax & 0xFF, 0x63);
		assert_int_equal(leaf(0, make == AMD ? 0x8000001D : 4, 3).eax, 0);
		assert_int_equal(leaf(0, 0x80000006, 0).ecx, 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(guests_find_the_units_of_one_die),
		cmocka_unit_test(guests_find_sockets_and_dies),
		cmocka_unit_test(guests_find_who_shares_each_cache),
		cmocka_unit_test(guests_find_a_narrowed_third_level),
		cmocka_unit_test(geometry_is_the_same_in_all_leaves),
		cmocka_unit_test(caches_that_are_off_leave_no_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
