/* What each spin mode asks of KVM on x86, and how what it gives is told. */
#include "tests/arch-x86/elf_image.h"

#include <linux/kvm_para.h>
#include <stdio.h>

#include "fake_kvm.h"
#include "host_tree.h"
#include "vm_rig.h"

#include "arch-x86/arch_vm.h"
#include "arch-x86/kvm_x86.h"
#include "vmm/spin_observe.h"
#include "vmm/vcpu.h"

static struct vm_rig rig;
static void put_parameter(const char *module, const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", module, name);
	assert_true(host_tree_put(path, value));
}

static int setup(void **state)
{
	static const struct fake_step wait[] = { FAKE_WAIT() };
	struct elf_image e;

	vm_rig_init(&rig, 2, 16);
	fake_kvm_set_default_script(wait, 1);
	elf_image_init(&e);
	elf_image_pvh(&e, ELF_TEXT, 4);
	rig.vm->kernel_fd = elf_image_file(&e);
	rig.vm->config.has_boot_source = true;
	rig.vm->config.serial.console = CONSOLE_NONE;
	rig.vm->spin.root = host_tree_new();
	return rig.vm->spin.root ? 0 : -1;
}

static int teardown(void **state)
{
	if (rig.vm->state.phase == VM_RUNNING || rig.vm->state.phase == VM_PAUSED)
		vm_rig_end(&rig);
	vm_rig_fini(&rig);
	host_tree_free();
	return fake_kvm_mismatches() ? -1 : 0;
}

static int start(enum spin_mode mode)
{
	rig.vm->config.spin.mode = mode;
	return vm_rig_start(&rig);
}

static const struct spin_control *control(const char *name)
{
	uint32_t i;

	for (i = 0; i < rig.vm->spin.control_count; i++) {
		if (!strcmp(rig.vm->spin.controls[i].name, name))
			return &rig.vm->spin.controls[i];
	}
	fail_msg("there is no control %s", name);
	return NULL;
}

static struct fake_cap_calls calls_of(unsigned capability)
{
	struct fake_cap_calls c;

	fake_kvm_get_cap_calls(capability, &c);
	return c;
}

/* The guest's KVM features (EAX) and hints (EDX). */
static struct cpuid_regs features(unsigned vcpu)
{
	static struct cpuid_table t;
	const struct kvm_cpuid_entry2 *e;

	assert_int_equal(vm_rig_pause(&rig), 0);
	t.count = CPUID_ENTRIES;
	assert_int_equal(kvm_ioctl_ptr(rig.vm->vcpus[vcpu]->fd, KVM_GET_CPUID2,
				       (struct kvm_cpuid2 *)&t), 0);
	e = cpuid_find(&t, KVM_CPUID_FEATURES, 0);
	assert_non_null(e);
	return (struct cpuid_regs){ .eax = e->eax, .edx = e->edx };
}

#define SPARES_SPINNING \
	(BIT(KVM_FEATURE_PV_UNHALT) | BIT(KVM_FEATURE_PV_TLB_FLUSH) | \
	 BIT(KVM_FEATURE_PV_SCHED_YIELD))

static void shared_leaves_exits_on_and_offers_pv_features(void **state)
{
	struct cpuid_regs r;

	assert_int_equal(start(SPIN_SHARED), 0);
	assert_int_equal(calls_of(KVM_CAP_X86_DISABLE_EXITS).calls, 0);
	r = features(1);
	assert_int_equal(r.eax & SPARES_SPINNING, SPARES_SPINNING);
	assert_int_equal(r.eax & BIT(KVM_FEATURE_STEAL_TIME), BIT(KVM_FEATURE_STEAL_TIME));
	assert_int_equal(r.edx, 0);
	assert_int_equal(control("hlt_exits")->granted, SPIN_YES);
	assert_int_equal(control("pv_unhalt")->granted, SPIN_YES);
}

static void dedicated_turns_exits_off_before_the_first_vcpu(void **state)
{
	struct cpuid_regs r;

	assert_int_equal(start(SPIN_DEDICATED), 0);
	assert_int_equal(calls_of(KVM_CAP_X86_DISABLE_EXITS).calls, 1);
	assert_int_equal(calls_of(KVM_CAP_X86_DISABLE_EXITS).refused, 0);
	assert_int_equal(calls_of(KVM_CAP_X86_DISABLE_EXITS).argument,
			 KVM_X86_DISABLE_EXITS_HLT | KVM_X86_DISABLE_EXITS_PAUSE);
	r = features(1);
	assert_int_equal(r.eax & SPARES_SPINNING, 0);
	assert_int_equal(r.edx, BIT(KVM_HINTS_REALTIME));
	assert_int_equal(control("pause_exits")->asked, false);
	assert_int_equal(control("pause_exits")->granted, SPIN_NO);
}

static void exits_that_kvm_does_not_offer_stay_and_are_told(void **state)
{
	fake_kvm_set_cap(KVM_CAP_X86_DISABLE_EXITS, KVM_X86_DISABLE_EXITS_PAUSE);
	assert_int_equal(start(SPIN_DEDICATED), 0);
	fake_kvm_set_cap(KVM_CAP_X86_DISABLE_EXITS, 0x0f);
	assert_int_equal(calls_of(KVM_CAP_X86_DISABLE_EXITS).refused, 0);
	assert_int_equal(calls_of(KVM_CAP_X86_DISABLE_EXITS).argument,
			 KVM_X86_DISABLE_EXITS_PAUSE);
	assert_int_equal(control("pause_exits")->granted, SPIN_NO);
	assert_int_equal(control("hlt_exits")->granted, SPIN_YES);
	assert_contains(control("hlt_exits")->why, "does not offer");
}

static void a_kvm_that_refuses_is_told(void **state)
{
	fake_kvm_fail(KVM_ENABLE_CAP, 2, EPERM); /* the first is KVM_CAP_MAX_VCPU_ID */
	assert_int_equal(start(SPIN_DEDICATED), 0);
	assert_true(fake_kvm_failed());
	assert_int_equal(control("pause_exits")->granted, SPIN_YES);
	assert_contains(control("pause_exits")->why, "Operation not permitted");
}

static void what_cpuid_does_not_show_is_switched_off(void **state)
{
	assert_int_equal(start(SPIN_SHARED), 0);
	assert_int_equal(calls_of(KVM_CAP_ENFORCE_PV_FEATURE_CPUID).calls, 2); /* one a vCPU */
	assert_int_equal(calls_of(KVM_CAP_ENFORCE_PV_FEATURE_CPUID).refused, 0);
	assert_int_equal(control("pv_enforced")->granted, SPIN_YES);
}

static void an_old_kvm_does_without_that(void **state)
{
	fake_kvm_set_cap(KVM_CAP_ENFORCE_PV_FEATURE_CPUID, 0);
	assert_int_equal(start(SPIN_SHARED), 0);
	fake_kvm_set_cap(KVM_CAP_ENFORCE_PV_FEATURE_CPUID, 1);
	assert_int_equal(calls_of(KVM_CAP_ENFORCE_PV_FEATURE_CPUID).calls, 0);
	assert_int_equal(control("pv_enforced")->granted, SPIN_NO);
	assert_contains(control("pv_enforced")->why, "KVM_CAP_ENFORCE_PV_FEATURE_CPUID");
}

static void pause_exits_need_a_filter_of_intels(void **state)
{
	put_parameter("kvm_intel", "ple_gap", "0\n");
	assert_int_equal(start(SPIN_SHARED), 0);
	assert_int_equal(control("pause_exits")->asked, true);
	assert_int_equal(control("pause_exits")->granted, SPIN_NO);
	assert_string_equal(control("pause_exits")->why,
			    "kvm_intel has ple_gap=0: PAUSE is no exit on this host");
}

static void a_filter_of_intels_is_seen(void **state)
{
	put_parameter("kvm_intel", "ple_gap", "128\n");
	assert_int_equal(start(SPIN_SHARED), 0);
	assert_int_equal(control("pause_exits")->granted, SPIN_YES);
}

static void amds_filter_needs_both_of_its_numbers(void **state)
{
	put_parameter("kvm_amd", "pause_filter_count", "3000\n");
	put_parameter("kvm_amd", "pause_filter_thresh", "0\n");
	assert_int_equal(start(SPIN_SHARED), 0);
	assert_int_equal(control("pause_exits")->granted, SPIN_NO);
	vm_rig_end(&rig);
}

static void amds_filter_is_seen(void **state)
{
	put_parameter("kvm_amd", "pause_filter_count", "3000\n");
	put_parameter("kvm_amd", "pause_filter_thresh", "128\n");
	assert_int_equal(start(SPIN_SHARED), 0);
	assert_int_equal(control("pause_exits")->granted, SPIN_YES);
}

static void a_host_that_hides_its_parameters_is_not_known(void **state)
{
	assert_int_equal(start(SPIN_SHARED), 0);
	assert_int_equal(control("pause_exits")->granted, SPIN_UNKNOWN);
	assert_contains(control("pause_exits")->why, "cannot be read");
}

static void sample(struct spin_sample *s)
{
	fake_kvm_set_stat(0, "exits", 1000);
	fake_kvm_set_stat(0, "io_exits", 100);
	fake_kvm_set_stat(0, "halt_exits", 50);
	fake_kvm_set_stat(0, "irq_exits", 40);
	fake_kvm_set_stat(0, "insn_emulation", 10);
	fake_kvm_set_stat(0, "mmio_exits", 10);
	fake_kvm_set_stat(0, "pf_taken", 100);
	fake_kvm_set_stat(0, "irq_injections", 50);
	spin_sample_take(rig.vm, 0, s);
}

static void exits_that_nothing_else_explains_may_be_pauses(void **state)
{
	struct spin_sample s;

	assert_int_equal(start(SPIN_SHARED), 0);
	sample(&s);
	assert_int_equal(s.spin_exits, 1000 - 300 - 2 * 50);
	fake_kvm_set_stat(0, "pf_taken", 2000);
	spin_sample_take(rig.vm, 0, &s);
	assert_int_equal(s.spin_exits, 0);
}

static void the_filter_is_one_of_the_host_checks(void **state)
{
	struct spin_checks c;

	put_parameter("kvm_intel", "ple_gap", "0\n");
	spin_check_host(rig.vm, &c);
	assert_string_equal(c.rows[0].name, "pause_filter");
	assert_int_equal(c.rows[0].status, SPIN_CHECK_WARN);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(shared_leaves_exits_on_and_offers_pv_features),
		TEST(dedicated_turns_exits_off_before_the_first_vcpu),
		TEST(exits_that_kvm_does_not_offer_stay_and_are_told),
		TEST(a_kvm_that_refuses_is_told),
		TEST(what_cpuid_does_not_show_is_switched_off),
		TEST(an_old_kvm_does_without_that),
		TEST(pause_exits_need_a_filter_of_intels),
		TEST(a_filter_of_intels_is_seen),
		TEST(amds_filter_needs_both_of_its_numbers),
		TEST(amds_filter_is_seen),
		TEST(a_host_that_hides_its_parameters_is_not_known),
		TEST(exits_that_nothing_else_explains_may_be_pauses),
		TEST(the_filter_is_one_of_the_host_checks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
