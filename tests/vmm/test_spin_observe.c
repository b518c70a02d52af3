/* A VM's samples, checks and metrics over the fake KVM and this host's procfs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "fake_kvm.h"
#include "vm_rig.h"
#include "vmm/control.h"
#include "vmm/spin_observe.h"

static void a_sample_has_what_kvm_counts(void **state)
{
	const uint64_t hist[FAKE_HISTOGRAM] = { [10] = 4, [31] = 1 };
	struct vm_rig *r = *state;
	struct spin_sample s;

	assert_int_equal(vm_rig_start(r), 0);
	fake_kvm_set_stat(1, "exits", 100);
	fake_kvm_set_stat(1, "insn_emulation", 30); /* what fake_arch calls spinning */
	fake_kvm_set_stat(1, "halt_exits", 9);
	fake_kvm_set_stat(1, "directed_yield_attempted", 5);
	fake_kvm_set_stat(1, "directed_yield_successful", 2);
	fake_kvm_set_histogram(1, "halt_wait_hist", hist);
	assert_int_equal(control_vcpu_sample(r->vm, 1, &s), 0);
	assert_true(s.has_kvm);
	assert_int_equal(s.exits, 100);
	assert_int_equal(s.spin_exits, 30);
	assert_int_equal(s.halts, 9);
	assert_int_equal(s.yields * 10 + s.yields_good, 52);
	assert_int_equal(s.wait_hist[10] + s.wait_hist[31], 5);
}

static void a_sample_has_what_the_scheduler_says(void **state)
{
	struct vm_rig *r = *state;
	struct spin_sample s;

	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(control_vcpu_sample(r->vm, 0, &s), 0);
	assert_true(s.has_sched);
	assert_true(s.slices > 0);
	assert_int_equal(control_vcpu_sample(r->vm, VM_RIG_VCPUS, &s), -ENOENT);
}

static void a_kernel_without_statistics_runs_guests_too(void **state)
{
	struct vm_rig *r = *state;
	struct spin_sample s;

	fake_kvm_fail(KVM_GET_STATS_FD, 1, EINVAL);
	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(control_vcpu_sample(r->vm, 0, &s), 0);
	assert_false(s.has_kvm);
	assert_int_equal(s.exits, 0);
}

static void a_descriptor_that_breaks_is_no_statistics(void **state)
{
	struct vm_rig *r = *state;
	struct spin_sample s;

	assert_int_equal(vm_rig_start(r), 0);
	fake_kvm_fail(FAKE_PREAD, 1, EIO);
	assert_int_equal(control_vcpu_sample(r->vm, 0, &s), 0);
	assert_false(s.has_kvm);
	assert_int_equal(control_vcpu_sample(r->vm, 0, &s), 0);
	assert_true(s.has_kvm);
}

static void count_stat(void *arg, const char *name, const uint64_t *values, size_t count)
{
	uint64_t *sum = arg;

	if (!strcmp(name, "remote_tlb_flush"))
		*sum += values[0];
}

static void the_vms_own_statistics_are_told(void **state)
{
	struct vm_rig *r = *state;
	uint64_t flushes = 0;

	control_vm_stats(r->vm, count_stat, &flushes);
	assert_int_equal(flushes, 0); /* there is none yet */
	assert_int_equal(vm_rig_start(r), 0);
	fake_kvm_set_stat(FAKE_STATS_OF_VM, "remote_tlb_flush", 12);
	control_vm_stats(r->vm, count_stat, &flushes);
	assert_int_equal(flushes, 12);
}

static void checks_are_of_this_host(void **state)
{
	struct vm_rig *r = *state;
	struct spin_checks c;

	control_check_host(r->vm, &c);
	assert_int_equal(c.count, 2); /* without threads: the architecture and the kernel */
	assert_int_equal(vm_rig_start(r), 0);
	control_check_host(r->vm, &c);
	assert_true(c.count >= 4);
	assert_string_equal(c.rows[0].name, "fake_filter");
	assert_string_equal(c.rows[2].name, "scheduling_class");
	assert_int_equal(c.rows[2].status, SPIN_CHECK_OK);
}

/* The line of metrics now. */
static const char *line(struct vm_rig *r, struct buf *out)
{
	buf_fini(out);
	buf_init(out, 1u << 20);
	assert_int_equal(metrics_format(r->metrics, out), 0);
	return buf_text(out);
}

static void metrics_are_sums_and_brought_up_to_date(void **state)
{
	struct vm_rig *r = *state;
	struct buf out;

	buf_init(&out, 1u << 20);
	assert_int_equal(vm_rig_start(r), 0);
	fake_kvm_set_stat(0, "directed_yield_attempted", 5);
	fake_kvm_set_stat(3, "directed_yield_attempted", 6);
	assert_non_null(strstr(line(r, &out), "\"directed_yields\":11"));
	fake_kvm_set_stat(0, "directed_yield_attempted", 7);
	assert_non_null(strstr(line(r, &out), "\"directed_yields\":13"));
	vm_rig_end(r);
	assert_non_null(strstr(line(r, &out), "\"directed_yields\":13"));
	buf_fini(&out);
}

static void metrics_that_cannot_be_read_stay(void **state)
{
	struct vm_rig *r = *state;
	struct buf out;

	buf_init(&out, 1u << 20);
	assert_int_equal(vm_rig_start(r), 0);
	fake_kvm_set_stat(0, "exits", 5);
	assert_non_null(strstr(line(r, &out), "\"exits\":5"));
	fake_kvm_fail(FAKE_PREAD, 1, EIO);
	assert_non_null(strstr(line(r, &out), "\"exits\":5"));
	buf_fini(&out);
}

int main(void)
{
#define VM(name) cmocka_unit_test_setup_teardown(name, vm_rig_setup, vm_rig_teardown)
	static const struct CMUnitTest tests[] = {
		VM(a_sample_has_what_kvm_counts),
		VM(a_sample_has_what_the_scheduler_says),
		VM(a_kernel_without_statistics_runs_guests_too),
		VM(a_descriptor_that_breaks_is_no_statistics),
		VM(the_vms_own_statistics_are_told),
		VM(checks_are_of_this_host),
		VM(metrics_are_sums_and_brought_up_to_date),
		VM(metrics_that_cannot_be_read_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
