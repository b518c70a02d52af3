/*
 * The controller over the fake KVM and procfs files of the test's: what it
 * changes, what it says, and that a dry run changes nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include "fake_kvm.h"
#include "host_tree.h"
#include "vm_rig.h"
#include "vmm/control.h"
#include "vmm/spin_controller.h"
#include "vmm/vcpu.h"

#define SECOND UINT64_C(1000000000)

static struct vm *vm;
static uint64_t now, run_ns, delay_ns, spins; /* of each vCPU so far */

static int setup(void **state)
{
	struct vm_rig *r;

	if (vm_rig_setup(state) < 0)
		return -1;
	r = *state;
	vm = r->vm;
	vm->spin.root = host_tree_new();
	vm->config.spin.mode = SPIN_SHARED;
	vm->config.spin.period_ms = LIMIT_SPIN_PERIOD_MAX_MS; /* steps are the test's */
	host_tree_put("/sys/module/kvm/parameters/halt_poll_ns", "200000\n");
	now = SECOND;
	run_ns = delay_ns = spins = 0;
	return vm->spin.root ? 0 : -1;
}

static int teardown(void **state)
{
	host_tree_free();
	return vm_rig_teardown(state);
}

static void start(struct vm_rig *r, enum spin_controller_mode mode)
{
	vm->config.spin.controller = mode;
	assert_int_equal(vm_rig_start(r), 0);
}

static void put_counters(void)
{
	char path[64], text[96];
	uint32_t i;

	for (i = 0; i < vm->vcpu_count; i++) {
		snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat",
			 (int)atomic_load(&vm->vcpus[i]->tid));
		snprintf(text, sizeof(text), "%llu %llu 1\n", (unsigned long long)run_ns,
			 (unsigned long long)delay_ns);
		assert_true(host_tree_put(path, text));
		fake_kvm_set_stat((int)i, "insn_emulation", spins); /* fake_arch's spinning */
	}
}

/* Periods of a second, in each of which every vCPU runs, waits and spins this much. */
static void step(unsigned periods, uint64_t run_ms, uint64_t delay_ms, uint64_t spin_exits)
{
	if (vm->controller.last_ns == 0) {
		put_counters();
		spin_controller_step(vm, now);
	}
	while (periods--) {
		now += SECOND;
		run_ns += run_ms * 1000000;
		delay_ns += delay_ms * 1000000;
		spins += spin_exits;
		put_counters();
		spin_controller_step(vm, now);
	}
}

static void step_preempted(unsigned periods)
{
	step(periods, 500, 490, 5000);
}

static void step_contended(unsigned periods)
{
	step(periods, 990, 2, 5000);
}

static struct fake_cap_calls halt_poll_calls(void)
{
	struct fake_cap_calls c;

	fake_kvm_get_cap_calls(KVM_CAP_HALT_POLL, &c);
	return c;
}

static void a_preempted_holder_is_named_and_polling_ends(void **state)
{
	struct control_spin_controller c;

	start(*state, SPIN_CONTROLLER_ON);
	step_preempted(20);
	control_get_spin_controller(vm, &c);
	assert_int_equal(c.class, SPIN_PREEMPTED_HOLDER);
	assert_int_equal(c.periods, 20);
	assert_int_equal(halt_poll_calls().calls, 1);
	assert_int_equal(halt_poll_calls().argument, 0);
	assert_int_equal(vm->spin.halt_poll_ns, 0);
}

static void true_contention_is_named_and_leaves_polling(void **state)
{
	start(*state, SPIN_CONTROLLER_ON);
	step_contended(20);
	assert_int_equal(vm->controller.state.class, SPIN_TRUE_CONTENTION);
	assert_int_equal(vm->controller.advice, SPIN_ADVICE_LEAVE);
	assert_int_equal(halt_poll_calls().calls, 0);
	assert_int_equal(vm->spin.halt_poll_ns, 200000);
}

static void a_dry_run_says_the_same_and_changes_nothing(void **state)
{
	const struct spin_event *e;

	start(*state, SPIN_CONTROLLER_DRY_RUN);
	step_preempted(20);
	assert_int_equal(vm->controller.state.class, SPIN_PREEMPTED_HOLDER);
	assert_int_equal(vm->controller.event_count, 2);
	e = control_get_spin_event(vm, 1);
	assert_int_equal(e->kind, SPIN_EVENT_HALT_POLL);
	assert_true(e->dry_run);
	assert_int_equal(e->to_ns, 0);
	assert_int_equal(halt_poll_calls().calls, 0);
	assert_int_equal(vm->spin.halt_poll_ns, 200000);
	assert_int_equal(metric_read(&vm->observer.metrics.halt_poll_changes), 0);
}

static void off_is_no_timer_and_no_decision(void **state)
{
	start(*state, SPIN_CONTROLLER_OFF);
	assert_null(vm->controller.timer);
	assert_null(control_get_spin_event(vm, 0));
}

static void events_carry_their_inputs(void **state)
{
	const struct spin_event *e;

	start(*state, SPIN_CONTROLLER_ON);
	step_preempted(SPIN_CONFIRM);
	e = control_get_spin_event(vm, 0);
	assert_int_equal(e->number, 1);
	assert_int_equal(e->kind, SPIN_EVENT_CLASS);
	assert_int_equal(e->from_class, SPIN_NORMAL);
	assert_int_equal(e->to_class, SPIN_PREEMPTED_HOLDER);
	assert_int_equal(e->inputs.wall_ns, SECOND);
	assert_int_equal(e->inputs.vcpus, VM_RIG_VCPUS);
	assert_int_equal(e->inputs.run_ns, VM_RIG_VCPUS * SECOND / 2);
	assert_int_equal(e->inputs.max_delay_ns, 490000000);
	assert_int_equal(e->inputs.spin_exits, VM_RIG_VCPUS * 5000);
	e = control_get_spin_event(vm, 1);
	assert_int_equal(e->from_ns, 200000);
	assert_int_equal(e->to_ns, 0);
	assert_null(control_get_spin_event(vm, 2));
}

static void a_steady_load_makes_one_change_of_each_kind(void **state)
{
	start(*state, SPIN_CONTROLLER_ON);
	step_preempted(100);
	assert_int_equal(vm->controller.event_count, 2);
	assert_int_equal(halt_poll_calls().calls, 1);
	assert_int_equal(metric_read(&vm->observer.metrics.halt_poll_changes), 1);
	assert_int_equal(metric_read(&vm->observer.metrics.classifications), 1);
}

static void the_ring_keeps_the_last_events(void **state)
{
	unsigned i;

	start(*state, SPIN_CONTROLLER_DRY_RUN);
	for (i = 0; i < LIMIT_SPIN_EVENTS; i++) {
		step_contended(SPIN_CONFIRM);
		step(SPIN_CONFIRM, 0, 0, 0);
	}
	assert_int_equal(vm->controller.event_count, 2 * LIMIT_SPIN_EVENTS);
	assert_int_equal(control_get_spin_event(vm, 0)->number, LIMIT_SPIN_EVENTS + 1);
	assert_int_equal(control_get_spin_event(vm, LIMIT_SPIN_EVENTS - 1)->number,
			 2 * LIMIT_SPIN_EVENTS);
	assert_null(control_get_spin_event(vm, LIMIT_SPIN_EVENTS));
}

static void a_kvm_that_refuses_is_asked_once(void **state)
{
	const struct spin_event *e;

	start(*state, SPIN_CONTROLLER_ON);
	fake_kvm_set_cap(KVM_CAP_HALT_POLL, 0);
	step_preempted(100);
	fake_kvm_set_cap(KVM_CAP_HALT_POLL, 1);
	assert_int_equal(halt_poll_calls().calls, 1);
	e = control_get_spin_event(vm, 1);
	assert_int_equal(e->code, -EINVAL);
	assert_int_equal(vm->spin.halt_poll_ns, 200000);
	assert_int_equal(vm->controller.state.halt_poll_ns, 200000);
	assert_int_equal(vm->controller.event_count, 2);
}

static void what_cannot_be_read_is_no_idleness(void **state)
{
	struct control_spin_controller c;

	start(*state, SPIN_CONTROLLER_ON);
	step_contended(5);
	fake_kvm_fail(FAKE_PREAD, 1, EIO);
	step_contended(1);
	control_get_spin_controller(vm, &c);
	assert_int_equal(c.periods, 5);
	assert_int_equal(c.blind, 1);
	step_contended(1); /* has nothing to compare with */
	step_contended(1);
	control_get_spin_controller(vm, &c);
	assert_int_equal(c.periods, 6);
	assert_int_equal(c.blind, 2);
	assert_int_equal(c.class, SPIN_TRUE_CONTENTION);
}

static void a_pause_is_no_period(void **state)
{
	struct vm_rig *r = *state;

	start(r, SPIN_CONTROLLER_ON);
	step_preempted(2);
	assert_int_equal(vm_rig_pause(r), 0);
	spin_controller_step(vm, now + 100 * SECOND);
	assert_int_equal(vm->controller.periods, 2);
	assert_int_equal(vm_rig_resume(r), 0);
	assert_int_equal(vm->controller.last_ns, 0);
	step_preempted(1);
	assert_int_equal(vm->controller.periods, 3);
	assert_int_equal(vm->controller.state.class, SPIN_PREEMPTED_HOLDER);
}

static void the_timer_runs_once_a_period(void **state)
{
	struct vm_rig *r = *state;

	vm->spin.root = ""; /* this host */
	vm->config.spin.period_ms = LIMIT_SPIN_PERIOD_MIN_MS;
	start(r, SPIN_CONTROLLER_ON);
	vm_rig_run_for(r, 1000);
	assert_true(vm->controller.periods >= 1);
	assert_true(vm->controller.periods <= 10);
}

static void events_outlive_the_guest(void **state)
{
	struct vm_rig *r = *state;

	start(r, SPIN_CONTROLLER_ON);
	step_preempted(5);
	vm_rig_end(r);
	assert_non_null(control_get_spin_event(vm, 0)); /* kept until the VM is freed */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(a_preempted_holder_is_named_and_polling_ends),
		TEST(true_contention_is_named_and_leaves_polling),
		TEST(a_dry_run_says_the_same_and_changes_nothing),
		TEST(off_is_no_timer_and_no_decision),
		TEST(events_carry_their_inputs),
		TEST(a_steady_load_makes_one_change_of_each_kind),
		TEST(the_ring_keeps_the_last_events),
		TEST(a_kvm_that_refuses_is_asked_once),
		TEST(what_cannot_be_read_is_no_idleness),
		TEST(a_pause_is_no_period),
		TEST(the_timer_runs_once_a_period),
		TEST(events_outlive_the_guest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
