/*
 * Where the first vCPU starts, per protocol.
 */
#include "tests/arch-x86/arch_test.h"

#include "arch-x86/layout.h"
#include "arch-x86/vcpu_setup.h"

static void linux_starts_in_long_mode(void **state)
{
	struct kvm_sregs s = { .cr8 = 3 };

	vcpu_setup_sregs(&s, BOOT_LINUX64);
	assert_int_equal(s.cr0, 0x80000011);
	assert_int_equal(s.cr3, LAYOUT_PML4);
	assert_int_equal(s.cr4, 0x20);
	assert_int_equal(s.efer, 0x500);
	assert_int_equal(s.cs.l, 1);
	assert_int_equal(s.cs.db, 0);
	assert_int_equal(s.cr8, 3); /* what is not ours stays */
}

static void pvh_starts_in_protected_mode_without_paging(void **state)
{
	struct kvm_sregs s = { .cr4 = 0x20, .efer = 0x500 };

	vcpu_setup_sregs(&s, BOOT_PVH);
	assert_int_equal(s.cr0, 0x11);
	assert_int_equal(s.cr4, 0);
	assert_int_equal(s.efer, 0);
	assert_int_equal(s.cs.l, 0);
	assert_int_equal(s.cs.db, 1);
	assert_int_equal(s.cs.limit, 0xFFFFFFFF);
	assert_int_equal(s.tr.limit, 0x67);
	assert_int_equal(s.tr.type, 0xB);
}

static void selectors_are_those_of_the_boot_protocol(void **state)
{
	struct kvm_sregs s = { 0 };

	vcpu_setup_sregs(&s, BOOT_LINUX64);
	assert_int_equal(s.cs.selector, 0x10);
	assert_int_equal(s.ds.selector, 0x18);
	assert_int_equal(s.ss.selector, 0x18);
	assert_int_equal(s.es.selector, 0x18);
	assert_int_equal(s.gdt.base, LAYOUT_GDT);
	assert_int_equal(s.gdt.limit, 47);
	assert_true(LAYOUT_GDT + s.gdt.limit < LAYOUT_PVH_START_INFO);
}

static void linux_finds_its_zero_page_in_rsi(void **state)
{
	struct boot_start start = { BOOT_LINUX64, 0x1000200, LAYOUT_ZERO_PAGE };
	struct kvm_regs r;

	memset(&r, 0xFF, sizeof(r));
	vcpu_setup_regs(&r, &start);
	assert_int_equal(r.rip, 0x1000200);
	assert_int_equal(r.rsi, LAYOUT_ZERO_PAGE);
	assert_int_equal(r.rsp, LAYOUT_STACK);
	assert_int_equal(r.rflags, 2);
	assert_int_equal(r.rbx, 0);
}

static void pvh_finds_its_start_info_in_rbx(void **state)
{
	struct boot_start start = { BOOT_PVH, 0x1000000, LAYOUT_PVH_START_INFO };
	struct kvm_regs r;

	memset(&r, 0xFF, sizeof(r));
	vcpu_setup_regs(&r, &start);
	assert_int_equal(r.rip, 0x1000000);
	assert_int_equal(r.rbx, LAYOUT_PVH_START_INFO);
	assert_int_equal(r.rflags, 2);
	assert_int_equal(r.rsi, 0);
}

static void low_memory_is_laid_out_without_overlap(void **state)
{
	assert_true(LAYOUT_GDT + 48 <= LAYOUT_PVH_START_INFO);
	assert_true(LAYOUT_PVH_START_INFO + 56 <= LAYOUT_PVH_MODULES);
	assert_true(LAYOUT_PVH_MODULES + 32 <= LAYOUT_ZERO_PAGE);
	assert_true(LAYOUT_ZERO_PAGE + 4096 <= LAYOUT_STACK);
	assert_true(LAYOUT_STACK <= LAYOUT_PML4);
	assert_true(LAYOUT_PD + 4096 <= LAYOUT_CMDLINE);
	assert_true(LAYOUT_CMDLINE + LIMIT_CMDLINE <= LAYOUT_EBDA);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(linux_starts_in_long_mode),
		cmocka_unit_test(pvh_starts_in_protected_mode_without_paging),
		cmocka_unit_test(selectors_are_those_of_the_boot_protocol),
		cmocka_unit_test(linux_finds_its_zero_page_in_rsi),
		cmocka_unit_test(pvh_finds_its_start_info_in_rbx),
		cmocka_unit_test(low_memory_is_laid_out_without_overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
