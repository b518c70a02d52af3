/*
 * The VM's life over the fake KVM: start and its failures, the end in each phase.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "fake_arch.h"
#include "fake_device.h"
#include "vm_rig.h"
#include "vmm/base/bits.h"
#include "vmm/vcpu.h"

#define NOWHERE 0x999

static const struct fake_step flood[] = { FAKE_OUT(NOWHERE, 1, 0), FAKE_LOOP(0, 0) };
static const struct fake_step poweroff[] = { FAKE_OUT(FAKE_POWER_PORT, 1, FAKE_POWER_OFF) };

static int build_a_device_that_does_not_start(struct vm *vm, struct error *err)
{
	int ret = fake_devices_build(vm, err);

	fake_devices[1]->start_code = -EIO;
	return ret;
}

static int build_nothing(struct vm *vm, struct error *err)
{
	return error_set(err, -ENOSPC, "the board is full");
}

/* Start */

static void nothing_of_kvm_is_touched_before_the_start(void **state)
{
	assert_int_equal(fake_kvm_calls(), 0);
	assert_int_equal(fake_kvm_open_objects(), 0);
}

static void a_start_answers_when_all_vcpus_are_set_up(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(r->vm->state.phase, VM_RUNNING);
	assert_int_equal(fake_arch.setups, VM_RIG_VCPUS);
	assert_int_equal(fake_devices[0]->started, 1);
}

static void a_second_start_is_refused_and_changes_nothing(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(vm_rig_start(r), -EBUSY);
	assert_non_null(strstr(r->err.text, "running"));
	assert_int_equal(r->vm->state.phase, VM_RUNNING);
}

static void a_start_during_a_start_is_refused(void **state)
{
	struct vm_rig *r = *state;

	vm_start(r->vm, vm_rig_done, r);
	vm_start(r->vm, vm_rig_done, r);
	assert_int_equal(r->answers, 1);
	assert_int_equal(r->code, -EBUSY);
	vm_rig_run_until(r, 2);
	assert_int_equal(r->code, 0);
}

static void memory_lies_below_and_above_the_hole(void **state)
{
	struct vm_rig *r = *state;
	struct kvm_userspace_memory_region slot;

	r->vm->config.machine.mem_size_mib = 5 * 1024;
	assert_int_equal(vm_rig_start(r), 0);
	assert_true(fake_kvm_get_slot(0, &slot));
	assert_int_equal(slot.guest_phys_addr, 0);
	assert_int_equal(slot.memory_size, FAKE_ARCH_LOW);
	assert_true(fake_kvm_get_slot(1, &slot));
	assert_int_equal(slot.guest_phys_addr, FAKE_ARCH_HIGH);
	assert_int_equal(slot.memory_size, 5 * GIB - FAKE_ARCH_LOW);
	assert_false(fake_kvm_get_slot(2, &slot));
}

static void more_memory_than_the_host_has_is_refused(void **state)
{
	struct vm_rig *r = *state;

	r->vm->config.machine.mem_size_mib = LIMIT_MEM_MIB;
	assert_int_equal(vm_rig_start(r), -ENOMEM);
	assert_non_null(strstr(r->err.text, "Invalid Memory Configuration"));
	assert_int_equal(r->vm->state.phase, VM_CONFIGURING);
}

/* Each leaves the VM as it was, so that the client mends it and starts again. */
static void failed_start(struct vm_rig *r, int code, const char *text)
{
	unsigned fds = vm_rig_open_fds();

	assert_int_equal(vm_rig_start(r), code);
	assert_non_null(strstr(r->err.text, text));
	assert_int_equal(r->vm->state.phase, VM_CONFIGURING);
	assert_int_equal(r->vm->vcpu_count, 0);
	assert_int_equal(r->vm->devices.count, 0);
	assert_int_equal(fake_kvm_open_objects(), 0);
	assert_int_equal(vm_rig_open_fds(), fds);
	fake_arch_reset();
	assert_int_equal(vm_rig_start(r), 0);
}

static void a_host_without_a_capability_fails_the_start(void **state)
{
	fake_kvm_set_cap(KVM_CAP_IMMEDIATE_EXIT, 0);
	assert_int_equal(vm_rig_start(*state), -ENOTSUP);
	fake_kvm_set_cap(KVM_CAP_IMMEDIATE_EXIT, 1);
	assert_int_equal(vm_rig_start(*state), 0);
}

static void a_board_that_cannot_be_built_fails_the_start(void **state)
{
	fake_arch.build = build_nothing;
	failed_start(*state, -ENOSPC, "the board is full");
}

static void a_device_that_does_not_start_fails_the_start(void **state)
{
	fake_arch.build = build_a_device_that_does_not_start;
	failed_start(*state, -EIO, "served-by-main");
	assert_int_equal(fake_devices_destroyed, 3);
}

static void a_kernel_that_cannot_be_loaded_fails_the_start(void **state)
{
	fake_arch.load_code = -EINVAL;
	failed_start(*state, -EINVAL, "the kernel cannot be loaded");
}

static void a_vcpu_that_cannot_be_set_up_fails_the_start(void **state)
{
	fake_arch.setup_code = -EINVAL;
	fake_arch.setup_index = 2;
	failed_start(*state, -EINVAL, "vCPU 2 cannot be set up");
}

static void a_start_may_fail_many_times(void **state)
{
	struct vm_rig *r = *state;
	unsigned fds = vm_rig_open_fds();
	int i;

	fake_arch.setup_code = -EINVAL;
	for (i = 0; i < 100; i++)
		assert_int_equal(vm_rig_start(r), -EINVAL);
	assert_int_equal(vm_rig_open_fds(), fds);
	assert_int_equal(fake_devices_destroyed, 300);
	fake_arch.setup_code = 0;
	assert_int_equal(vm_rig_start(r), 0);
}

/* A failed start has given the files of drives and networks away: it opens them again. */
static void configured_files_are_opened_again_after_a_failed_start(void **state)
{
	struct vm_rig *r = *state;

	r->vm->config.drive_count = 2;
	r->vm->config.net_count = 1;
	fake_arch.load_code = -EINVAL;
	assert_int_equal(vm_rig_start(r), -EINVAL);
	assert_int_equal(r->backends_open, 3);
	assert_non_null(r->vm->drive_backends[1]);
	assert_non_null(r->vm->net_backends[0]);
}

static void a_file_that_is_gone_fails_the_next_start(void **state)
{
	struct vm_rig *r = *state;

	r->vm->config.drive_count = 1;
	r->open_code = -ENOENT;
	assert_int_equal(vm_rig_start(r), -ENOENT);
	assert_int_equal(r->vm->state.phase, VM_CONFIGURING);
	assert_int_equal(fake_kvm_calls(), 0);
	r->open_code = 0;
	assert_int_equal(vm_rig_start(r), 0);
}

/*
 * Every call of the start fails once: the k-th, for all k. Nothing is left
 * behind, and the same VM starts when it does not fail any more.
 */
static bool start_with_fault(uint64_t k, int error)
{
	struct vm_rig r;
	unsigned fds = vm_rig_open_fds();
	bool happened;

	vm_rig_init(&r, VM_RIG_VCPUS, 16);
	fake_kvm_fail(FAKE_ANY, k, error);
	if (vm_rig_start(&r) < 0) {
		assert_int_equal(r.vm->state.phase, VM_CONFIGURING);
		assert_int_equal(fake_kvm_open_objects(), 0);
		assert_int_equal(vm_rig_start(&r), 0);
	}
	happened = fake_kvm_failed();
	vm_rig_end(&r);
	vm_rig_fini(&r);
	assert_int_equal(fake_kvm_open_objects(), 0);
	assert_int_equal(vm_rig_open_fds(), fds);
	return happened;
}

static void a_fault_at_any_call_of_the_start_leaves_nothing_behind(void **state)
{
	static const int errors[] = { ENOMEM, EMFILE, EPERM };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		uint64_t k = 1;

		while (start_with_fault(k, errors[i]))
			k++;
		assert_true(k > 3 * VM_RIG_VCPUS); /* it was a sweep, not a miss */
	}
}

/* End */

static void the_end_in_configuring_is_immediate(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(vm_rig_end(r), VM_END_STOPPED);
	assert_int_equal(r->vm->state.phase, VM_ENDED);
}

static void the_end_during_the_start_answers_the_starter(void **state)
{
	struct vm_rig *r = *state;

	vm_start(r->vm, vm_rig_done, r);
	assert_int_equal(vm_rig_end(r), VM_END_STOPPED);
	assert_int_equal(r->answers, 1);
	assert_int_equal(r->code, -ECANCELED);
}

static void the_end_while_running_stops_every_kind_of_guest(void **state)
{
	static const struct fake_step busy[] = { FAKE_SPIN() };
	struct vm_rig *r = *state;

	FAKE_SCRIPT(1, busy);
	FAKE_SCRIPT(2, flood);
	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(vm_rig_end(r), VM_END_STOPPED);
	assert_int_equal(fake_kvm_running(), 0);
}

static void the_end_during_a_pause_answers_the_pausers(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(vm_rig_start(r), 0);
	vm_pause(r->vm, vm_rig_done, r);
	vm_pause(r->vm, vm_rig_done, r);
	assert_int_equal(vm_rig_end(r), VM_END_STOPPED);
	assert_int_equal(r->answers, 3);
	assert_int_equal(r->code, -ECANCELED);
	assert_non_null(strstr(r->err.text, "stopped"));
}

static void the_end_while_devices_are_quiescing_is_fine(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(vm_rig_start(r), 0);
	fake_devices[2]->dawdle_us = 50000;
	vm_pause(r->vm, vm_rig_done, r);
	vm_rig_run_for(r, 20);
	assert_int_equal(r->vm->state.phase, VM_PAUSING);
	assert_int_equal(vm_rig_end(r), VM_END_STOPPED);
	assert_int_equal(r->code, -ECANCELED);
}

static void the_end_while_paused_lets_no_vcpu_run_again(void **state)
{
	struct vm_rig *r = *state;
	uint64_t exits;

	fake_kvm_set_default_script(flood, ARRAY_SIZE(flood));
	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(vm_rig_pause(r), 0);
	exits = vm_rig_exits(r);
	assert_int_equal(vm_rig_end(r), VM_END_STOPPED);
	assert_int_equal(vm_rig_exits(r), exits);
}

static void the_end_during_a_resume_answers_the_resumer(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(vm_rig_pause(r), 0);
	vm_resume(r->vm, vm_rig_done, r);
	assert_int_equal(vm_rig_end(r), VM_END_STOPPED);
	assert_int_equal(r->code, -ECANCELED);
}

static void a_second_end_changes_nothing(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(vm_rig_start(r), 0);
	vm_end(r->vm, VM_END_STOPPED);
	vm_end(r->vm, VM_END_INTERNAL);
	assert_int_equal(vm_rig_wait_end(r), VM_END_STOPPED);
	vm_end(r->vm, VM_END_INTERNAL);
	assert_int_equal(r->vm->state.reason, VM_END_STOPPED);
}

static void nothing_is_taken_after_the_end(void **state)
{
	struct vm_rig *r = *state;

	vm_rig_end(r);
	assert_int_equal(vm_rig_start(r), -EBUSY);
	assert_int_equal(vm_rig_pause(r), -EBUSY);
	assert_int_equal(vm_rig_resume(r), -EBUSY);
}

static void the_guest_ends_the_vm_from_any_vcpu(void **state)
{
	struct vm_rig *r = *state;

	fake_kvm_set_default_script(flood, ARRAY_SIZE(flood));
	FAKE_SCRIPT(3, poweroff);
	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(vm_rig_wait_end(r), VM_END_GUEST_POWEROFF);
	assert_int_equal(fake_kvm_running(), 0);
}

/* All at once, several ways: one reason, one end. */
static void the_first_of_many_reasons_is_the_reason(void **state)
{
	static const struct fake_step fault[] = { FAKE_SHUTDOWN() };
	struct vm_rig *r = *state;
	enum vm_end_reason reason;

	fake_kvm_set_default_script(fault, 1);
	FAKE_SCRIPT(0, poweroff);
	assert_int_equal(vm_rig_start(r), 0);
	reason = vm_rig_wait_end(r);
	assert_true(reason == VM_END_GUEST_POWEROFF || reason == VM_END_GUEST_TRIPLE_FAULT);
	assert_int_equal(reason, atomic_load(&r->vm->end_reason));
}

/* Either comes first: the guest ends, or all vCPUs park before it does. */
static void a_pause_and_the_end_of_the_guest_may_race(void **state)
{
	struct vm_rig *r = *state;
	int i;

	for (i = 0; i < VM_RIG_VCPUS; i++)
		FAKE_SCRIPT(i, poweroff);
	assert_int_equal(vm_rig_start(r), 0);
	if (vm_rig_pause(r) == 0)
		assert_int_equal(vm_rig_resume(r), 0);
	else
		assert_int_equal(r->code, -ECANCELED);
	assert_int_equal(vm_rig_wait_end(r), VM_END_GUEST_POWEROFF);
}

int main(void)
{
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, vm_rig_setup, vm_rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(nothing_of_kvm_is_touched_before_the_start),
		WITH_RIG(a_start_answers_when_all_vcpus_are_set_up),
		WITH_RIG(a_second_start_is_refused_and_changes_nothing),
		WITH_RIG(a_start_during_a_start_is_refused),
		WITH_RIG(memory_lies_below_and_above_the_hole),
		WITH_RIG(more_memory_than_the_host_has_is_refused),
		WITH_RIG(a_host_without_a_capability_fails_the_start),
		WITH_RIG(a_board_that_cannot_be_built_fails_the_start),
		WITH_RIG(a_device_that_does_not_start_fails_the_start),
		WITH_RIG(a_kernel_that_cannot_be_loaded_fails_the_start),
		WITH_RIG(a_vcpu_that_cannot_be_set_up_fails_the_start),
		WITH_RIG(a_start_may_fail_many_times),
		WITH_RIG(configured_files_are_opened_again_after_a_failed_start),
		WITH_RIG(a_file_that_is_gone_fails_the_next_start),
		cmocka_unit_test(a_fault_at_any_call_of_the_start_leaves_nothing_behind),
		WITH_RIG(the_end_in_configuring_is_immediate),
		WITH_RIG(the_end_during_the_start_answers_the_starter),
		WITH_RIG(the_end_while_running_stops_every_kind_of_guest),
		WITH_RIG(the_end_during_a_pause_answers_the_pausers),
		WITH_RIG(the_end_while_devices_are_quiescing_is_fine),
		WITH_RIG(the_end_while_paused_lets_no_vcpu_run_again),
		WITH_RIG(the_end_during_a_resume_answers_the_resumer),
		WITH_RIG(a_second_end_changes_nothing),
		WITH_RIG(nothing_is_taken_after_the_end),
		WITH_RIG(the_guest_ends_the_vm_from_any_vcpu),
		WITH_RIG(the_first_of_many_reasons_is_the_reason),
		WITH_RIG(a_pause_and_the_end_of_the_guest_may_race),
	};

	alarm(240);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
