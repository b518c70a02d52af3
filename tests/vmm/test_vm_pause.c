/*
 * Pause and resume over the fake KVM: what holds when they answer, who is
 * answered, and for how long they may take.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "fake_arch.h"
#include "fake_device.h"
#include "vm_rig.h"
#include "vmm/base/bits.h"

#define NOWHERE 0x999
#define STORM 10000

static const struct fake_step flood[] = { FAKE_OUT(NOWHERE, 1, 0), FAKE_LOOP(0, 0) };

static void a_paused_vm_has_no_vcpu_in_kvm(void **state)
{
	struct vm_rig *r = *state;
	uint64_t exits;

	fake_kvm_set_default_script(flood, ARRAY_SIZE(flood));
	assert_int_equal(vm_rig_start(r), 0);
	vm_rig_run_for(r, 10);
	assert_int_equal(vm_rig_pause(r), 0);
	assert_int_equal(r->vm->state.phase, VM_PAUSED);
	assert_int_equal(fake_kvm_running(), 0);
	exits = vm_rig_exits(r);
	assert_true(exits > 0);
	vm_rig_run_for(r, 30);
	assert_int_equal(vm_rig_exits(r), exits);
	assert_int_equal(vm_rig_resume(r), 0);
	vm_rig_run_for(r, 10);
	assert_true(vm_rig_exits(r) > exits);
}

static void devices_stop_after_the_vcpus_and_start_before_them(void **state)
{
	struct vm_rig *r = *state;
	size_t i;
	int round;

	fake_kvm_set_default_script(flood, ARRAY_SIZE(flood));
	assert_int_equal(vm_rig_start(r), 0);
	for (round = 0; round < 50; round++) {
		assert_int_equal(vm_rig_pause(r), 0);
		assert_int_equal(vm_rig_resume(r), 0);
	}
	for (i = 0; i < FAKE_DEVICES; i++) {
		assert_int_equal(fake_devices[i]->quiesced, 50);
		assert_int_equal(fake_devices[i]->unquiesced, 50);
		assert_int_equal(fake_devices[i]->ran_beside_vcpus, 0);
	}
}

static void pause_and_resume_are_idempotent(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(vm_rig_resume(r), 0);
	assert_int_equal(vm_rig_pause(r), 0);
	assert_int_equal(vm_rig_pause(r), 0);
	assert_int_equal(fake_devices[0]->quiesced, 1);
	assert_int_equal(vm_rig_resume(r), 0);
	assert_int_equal(vm_rig_resume(r), 0);
	assert_int_equal(r->vm->state.phase, VM_RUNNING);
}

static void two_pausers_are_both_answered_when_it_is_paused(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(vm_rig_start(r), 0);
	vm_pause(r->vm, vm_rig_done, r);
	vm_pause(r->vm, vm_rig_done, r);
	assert_int_equal(r->answers, 1); /* the start's */
	vm_rig_run_until(r, 3);
	assert_int_equal(r->code, 0);
	assert_int_equal(r->vm->state.phase, VM_PAUSED);
	assert_int_equal(fake_devices[0]->quiesced, 1);
}

/* Who asks for a phase is answered when it was so, also if another asks for the other. */
struct client {
	struct vm_rig *r;
	enum vm_phase wants, saw;
	int code;
};

static void see_phase(void *arg, int code, const struct error *err)
{
	struct client *c = arg;

	c->saw = c->r->vm->state.phase;
	c->code = code;
	vm_rig_done(c->r, code, err);
}

static void pauses_and_resumes_that_cross_are_all_served(void **state)
{
	struct vm_rig *r = *state;
	struct client c[6];
	int i;

	assert_int_equal(vm_rig_start(r), 0);
	for (i = 0; i < 6; i++) {
		c[i] = (struct client){ r, i % 2 ? VM_RUNNING : VM_PAUSED, VM_PHASES, 1 };
		(i % 2 ? vm_resume : vm_pause)(r->vm, see_phase, &c[i]);
	}
	vm_rig_run_until(r, 7);
	for (i = 0; i < 6; i++) {
		assert_int_equal(c[i].code, 0);
		assert_int_equal(c[i].saw, c[i].wants);
	}
}

static void more_waiters_than_there_is_room_for_are_refused(void **state)
{
	struct vm_rig *r = *state;
	unsigned i;

	assert_int_equal(vm_rig_start(r), 0);
	for (i = 0; i < VM_WAITERS; i++)
		vm_pause(r->vm, vm_rig_done, r);
	assert_int_equal(r->answers, 1);
	vm_pause(r->vm, vm_rig_done, r);
	assert_int_equal(r->answers, 2);
	assert_int_equal(r->code, -EBUSY);
	vm_rig_run_until(r, 2 + VM_WAITERS);
	assert_int_equal(r->code, 0);
}

static void pause_and_resume_before_the_start_are_refused(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(vm_rig_pause(r), -EBUSY);
	assert_int_equal(vm_rig_resume(r), -EBUSY);
	assert_int_equal(r->vm->state.phase, VM_CONFIGURING);
}

static void a_pause_of_a_halted_and_of_a_busy_guest_is_answered(void **state)
{
	static const struct fake_step busy[] = { FAKE_SPIN() };
	struct vm_rig *r = *state;

	FAKE_SCRIPT(1, busy);
	FAKE_SCRIPT(2, flood);
	assert_int_equal(vm_rig_start(r), 0);
	vm_rig_run_for(r, 5);
	assert_int_equal(vm_rig_pause(r), 0);
	assert_int_equal(fake_kvm_running(), 0);
	assert_int_equal(fake_arch.parked, VM_RIG_VCPUS);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* 10,000 cycles against four floods of exits, each bounded. */
static void a_storm_of_pauses_ends_in_bounded_time(void **state)
{
	struct vm_rig *r = *state;
	uint64_t longest = 0;
	int i;

	fake_kvm_set_default_script(flood, ARRAY_SIZE(flood));
	assert_int_equal(vm_rig_start(r), 0);
	for (i = 0; i < STORM; i++) {
		uint64_t begin = now_ms(), took;

		assert_int_equal(vm_rig_pause(r), 0);
		assert_int_equal(fake_kvm_running(), 0);
		assert_int_equal(vm_rig_resume(r), 0);
		took = now_ms() - begin;
		longest = took > longest ? took : longest;
	}
	assert_true(longest < 5000);
	assert_int_equal(fake_devices[0]->quiesced, STORM);
	assert_int_equal(fake_arch.parked, STORM * VM_RIG_VCPUS);
}

int main(void)
{
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, vm_rig_setup, vm_rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(a_paused_vm_has_no_vcpu_in_kvm),
		WITH_RIG(devices_stop_after_the_vcpus_and_start_before_them),
		WITH_RIG(pause_and_resume_are_idempotent),
		WITH_RIG(two_pausers_are_both_answered_when_it_is_paused),
		WITH_RIG(pauses_and_resumes_that_cross_are_all_served),
		WITH_RIG(more_waiters_than_there_is_room_for_are_refused),
		WITH_RIG(pause_and_resume_before_the_start_are_refused),
		WITH_RIG(a_pause_of_a_halted_and_of_a_busy_guest_is_answered),
		WITH_RIG(a_storm_of_pauses_ends_in_bounded_time),
	};

	alarm(240);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
