/*
 * Jobs for vCPUs and safepoints over the fake KVM: on which thread and when
 * they run, and that whoever waits gets on, whatever the others wait for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "vm_rig.h"
#include "vmm/base/bits.h"
#include "vmm/vcpu.h"
#include "vmm/vcpu_work.h"

#define PATIENCE_MS 20000

static _Atomic bool gate;        /* who stands at it goes on once it is true */
static _Atomic unsigned at_gate; /* vCPUs that have come to one, inside KVM_RUN */
static _Atomic unsigned calls;   /* of count() and its like */

static bool wait_for(const _Atomic unsigned *value, unsigned wanted)
{
	int ms;

	for (ms = 0; ms < PATIENCE_MS && atomic_load(value) < wanted; ms++)
		usleep(1000);
	return atomic_load(value) >= wanted;
}

static void wait_at_gate(void)
{
	while (!atomic_load(&gate))
		usleep(100);
}

static void stand_at_gate(void *arg)
{
	atomic_fetch_add(&at_gate, 1);
	wait_at_gate();
}

/* A guest that halts; one that is deaf until the gate opens, and halts then. */
static const struct fake_step halted[] = { FAKE_WAIT() };
static const struct fake_step deaf[] = { FAKE_CALL(stand_at_gate, NULL), FAKE_WAIT() };

static int setup(void **state)
{
	int ret = vm_rig_setup(state);

	atomic_store(&gate, false);
	atomic_store(&at_gate, 0);
	atomic_store(&calls, 0);
	fake_kvm_set_default_script(halted, ARRAY_SIZE(halted));
	return ret;
}

static int teardown(void **state)
{
	atomic_store(&gate, true);
	return vm_rig_teardown(state);
}

/* Returns when so many vCPUs are deaf. */
static void start_deaf(struct vm_rig *r, unsigned vcpus)
{
	assert_int_equal(vm_rig_start(r), 0);
	assert_true(wait_for(&at_gate, vcpus));
}

static void count(struct vcpu *v, void *arg)
{
	atomic_fetch_add(&calls, 1);
}

/* ---- calls from a thread that is neither main nor a vCPU's -------------------------------- */

struct asked {
	pthread_t thread;
	struct vcpu *v;
	vcpu_job_fn job;
	struct vm *vm;
	vm_safepoint_fn safepoint;
	void *arg;
	int code;
	_Atomic unsigned is_over;
};

static void *ask(void *arg)
{
	struct asked *a = arg;

	if (a->job)
		a->code = vcpu_run(a->v, a->job, a->arg);
	else
		vm_safepoint(a->vm, a->safepoint, a->arg);
	atomic_store(&a->is_over, 1);
	return NULL;
}

static void begin(struct asked *a)
{
	a->is_over = 0;
	assert_int_equal(pthread_create(&a->thread, NULL, ask, a), 0);
}

static void end(struct asked *a)
{
	if (!wait_for(&a->is_over, 1))
		fail_msg("it waits for ever");
	pthread_join(a->thread, NULL);
}

static int run_job(struct vcpu *v, vcpu_job_fn fn, void *arg)
{
	struct asked a = { .v = v, .job = fn, .arg = arg };

	begin(&a);
	end(&a);
	return a.code;
}

static void run_safepoint(struct vm *vm, vm_safepoint_fn fn, void *arg)
{
	struct asked a = { .vm = vm, .safepoint = fn, .arg = arg };

	begin(&a);
	end(&a);
}

/* ---- jobs --------------------------------------------------------------------------------- */

struct seen {
	struct vcpu *v, *current;
	struct kvm_mp_state mp_state;
	int code;
};

static void look(struct vcpu *v, void *arg)
{
	struct seen *seen = arg;

	seen->v = v;
	seen->current = vcpu_current();
	seen->code = kvm_ioctl_ptr(v->fd, KVM_GET_MP_STATE, &seen->mp_state);
}

/* The fake counts it as a mismatch if the vCPU is inside KVM_RUN then. */
static void a_job_runs_on_the_vcpus_thread_and_may_use_kvm_on_it(void **state)
{
	struct vm_rig *r = *state;
	struct seen seen = { .code = -1 };

	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(run_job(r->vm->vcpus[1], look, &seen), 0);
	assert_ptr_equal(seen.v, r->vm->vcpus[1]);
	assert_ptr_equal(seen.current, r->vm->vcpus[1]);
	assert_int_equal(seen.code, 0);
	assert_null(vcpu_current());
}

static unsigned order[8];

static void note_order(struct vcpu *v, void *arg)
{
	order[atomic_load(&calls)] = *(unsigned *)arg;
	atomic_fetch_add(&calls, 1);
}

static void jobs_run_in_the_order_of_the_calls(void **state)
{
	static const unsigned numbers[] = { 3, 1, 4, 1, 5, 9, 2, 6 };
	struct vm_rig *r = *state;
	struct vcpu_job jobs[8];
	size_t i;

	FAKE_SCRIPT(0, deaf);
	start_deaf(r, 1);
	for (i = 0; i < ARRAY_SIZE(jobs); i++)
		assert_int_equal(vcpu_run_async(r->vm->vcpus[0], &jobs[i], note_order,
						(void *)(uintptr_t)&numbers[i]), 0);
	atomic_store(&gate, true);
	assert_true(wait_for(&calls, 8));
	assert_memory_equal(order, numbers, sizeof(order));
}

static void again(struct vcpu *v, void *arg)
{
	if (atomic_fetch_add(&calls, 1) < 4)
		(void)vcpu_run_async(v, arg, again, arg);
}

static void a_job_is_free_again_when_it_runs(void **state)
{
	struct vm_rig *r = *state;
	struct vcpu_job job;

	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(vcpu_run_async(r->vm->vcpus[0], &job, again, &job), 0);
	assert_true(wait_for(&calls, 5));
}

static void a_paused_vcpu_runs_its_jobs_and_stays_paused(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(vm_rig_pause(r), 0);
	assert_int_equal(run_job(r->vm->vcpus[2], count, NULL), 0);
	assert_int_equal(calls, 1);
	assert_int_equal(r->vm->vcpus[2]->state, VCPU_PARKED);
	assert_int_equal(fake_kvm_running(), 0);
	assert_int_equal(vm_rig_resume(r), 0);
}

static void a_job_for_a_vcpu_that_has_left_is_refused(void **state)
{
	struct vm_rig *r = *state;
	struct vcpu_job job;

	assert_int_equal(vm_rig_start(r), 0);
	vm_rig_end(r);
	assert_int_equal(vcpu_run_async(r->vm->vcpus[0], &job, count, NULL), -ESRCH);
	assert_int_equal(run_job(r->vm->vcpus[0], count, NULL), -ESRCH);
	assert_int_equal(calls, 0);
}

static void call_own(struct vcpu *v, void *arg)
{
	if (vcpu_run(v, count, NULL) == 0 && atomic_load(&calls) == 1)
		count(v, NULL);
}

static void on_the_vcpus_own_thread_it_is_a_call(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(run_job(r->vm->vcpus[0], call_own, NULL), 0);
	assert_int_equal(calls, 2);
}

/* ---- what is queued when the thread leaves ------------------------------------------------ */

static struct vcpu_job late_job;
static _Atomic(struct vcpu *) other;

static void queue_late(struct vcpu *v, void *arg)
{
	(void)vcpu_run_async(v, &late_job, *(vcpu_job_fn *)arg, NULL);
}

/*
 * vCPU 0 finds a job and the request to stop at once; the job queues `late`,
 * which is therefore in the queue when the vCPU has left its loop.
 */
static void end_with_late_job(struct vm_rig *r, vcpu_job_fn late, unsigned deaf_vcpus)
{
	struct vcpu_job job;

	FAKE_SCRIPT(0, deaf);
	start_deaf(r, deaf_vcpus);
	atomic_store(&other, r->vm->vcpus[1]);
	assert_int_equal(vcpu_run_async(r->vm->vcpus[0], &job, queue_late, &late), 0);
	vm_end(r->vm, VM_END_STOPPED);
	atomic_store(&gate, true);
	assert_int_equal(vm_rig_wait_end(r), VM_END_STOPPED);
}

static void what_is_queued_when_the_thread_leaves_still_runs(void **state)
{
	end_with_late_job(*state, count, 1);
	assert_int_equal(calls, 1);
}

/* Inside KVM_RUN until it is asked, so that it has not left by then. */
static void wait_for_question(void *arg)
{
	struct vcpu *v;

	atomic_fetch_add(&at_gate, 1);
	while (!(v = atomic_load(&other)) || !atomic_load(&v->jobs))
		usleep(100);
}

static void ask_other(struct vcpu *v, void *arg)
{
	if (vcpu_run(atomic_load(&other), count, NULL) == 0)
		count(v, NULL);
}

static void a_job_that_waits_while_its_vcpu_leaves_gets_its_answer(void **state)
{
	static const struct fake_step asked[] = { FAKE_CALL(wait_for_question, NULL),
						  FAKE_WAIT() };

	atomic_store(&other, NULL);
	FAKE_SCRIPT(1, asked);
	end_with_late_job(*state, ask_other, 2);
	assert_int_equal(calls, 2);
}

/* ---- vCPUs that wait for one another ------------------------------------------------------ */

/* Begins when both do, so that each waits for one that waits for it. */
static void ask_back(struct vcpu *v, void *arg)
{
	struct vcpu *peer = arg;

	atomic_fetch_add(&calls, 1);
	if (wait_for(&calls, 2) && vcpu_run(peer, count, NULL) == 0)
		count(v, NULL);
}

static void two_vcpus_that_ask_each_other_get_their_answers(void **state)
{
	struct vm_rig *r = *state;
	struct asked a, b;

	assert_int_equal(vm_rig_start(r), 0);
	a = (struct asked){ .v = r->vm->vcpus[0], .job = ask_back, .arg = r->vm->vcpus[1] };
	b = (struct asked){ .v = r->vm->vcpus[1], .job = ask_back, .arg = r->vm->vcpus[0] };
	begin(&a);
	begin(&b);
	end(&a);
	end(&b);
	assert_int_equal(a.code, 0);
	assert_int_equal(b.code, 0);
	assert_int_equal(calls, 6);
}

static void ask_back_while_asked(struct vcpu *v, void *arg)
{
	if (vcpu_run(arg, count, NULL) == 0)
		count(v, NULL);
}

static void ask_and_be_asked(struct vcpu *v, void *arg)
{
	struct vcpu *peer = v->vm->vcpus[1];

	if (vcpu_run(peer, ask_back_while_asked, v) == 0)
		count(v, NULL);
}

static void a_vcpu_that_is_asked_may_ask_the_one_that_waits(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(run_job(r->vm->vcpus[0], ask_and_be_asked, NULL), 0);
	assert_int_equal(calls, 3);
}

/* ---- safepoints --------------------------------------------------------------------------- */

static void count_if_all_are_outside(struct vm *vm, void *arg)
{
	if (fake_kvm_running() == 0)
		atomic_fetch_add(&calls, 1);
}

static void a_safepoint_finds_no_vcpu_in_kvm(void **state)
{
	static const struct fake_step busy[] = { FAKE_SPIN() };
	static const struct fake_step exits[] = { FAKE_OUT(0x999, 1, 0), FAKE_LOOP(0, 0) };
	struct vm_rig *r = *state;

	FAKE_SCRIPT(1, busy);
	FAKE_SCRIPT(2, exits);
	assert_int_equal(vm_rig_start(r), 0);
	run_safepoint(r->vm, count_if_all_are_outside, NULL);
	run_safepoint(r->vm, count_if_all_are_outside, NULL);
	assert_int_equal(calls, 2);
}

static void a_paused_vm_has_safepoints_too(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(vm_rig_pause(r), 0);
	run_safepoint(r->vm, count_if_all_are_outside, NULL);
	assert_int_equal(calls, 1);
	assert_int_equal(r->vm->vcpus[0]->state, VCPU_PARKED);
}

static void without_vcpus_a_safepoint_is_a_call(void **state)
{
	struct vm_rig *r = *state;
	struct vm_safepoint s;

	vm_safepoint_async(r->vm, &s, count_if_all_are_outside, NULL);
	assert_int_equal(calls, 1);
	assert_int_equal(vm_rig_start(r), 0);
	vm_rig_end(r);
	run_safepoint(r->vm, count_if_all_are_outside, NULL);
	assert_int_equal(calls, 2);
}

static void nest(struct vm *vm, void *arg)
{
	vm_safepoint(vm, count_if_all_are_outside, NULL);
	if (atomic_load(&calls) == 1)
		count_if_all_are_outside(vm, NULL);
}

static void a_safepoint_inside_another_is_a_call(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(vm_rig_start(r), 0);
	run_safepoint(r->vm, nest, NULL);
	assert_int_equal(calls, 2);
}

static void make_safepoint(struct vcpu *v, void *arg)
{
	vm_safepoint(v->vm, count_if_all_are_outside, NULL);
}

static void all_vcpus_may_ask_for_safepoints_at_once(void **state)
{
	struct vm_rig *r = *state;
	struct vcpu_job jobs[VM_RIG_VCPUS];
	int i;

	assert_int_equal(vm_rig_start(r), 0);
	for (i = 0; i < VM_RIG_VCPUS; i++)
		assert_int_equal(vcpu_run_async(r->vm->vcpus[i], &jobs[i], make_safepoint, NULL),
				 0);
	assert_true(wait_for(&calls, VM_RIG_VCPUS));
}

static void a_vcpu_that_leaves_holds_no_safepoint_up(void **state)
{
	struct vm_rig *r = *state;
	struct vm_safepoint s;

	FAKE_SCRIPT(3, deaf);
	start_deaf(r, 1);
	vm_end(r->vm, VM_END_STOPPED); /* all leave but the one that is deaf */
	vm_safepoint_async(r->vm, &s, count_if_all_are_outside, NULL);
	usleep(5000);
	assert_int_equal(calls, 0);
	atomic_store(&gate, true);
	assert_int_equal(vm_rig_wait_end(r), VM_END_STOPPED);
	assert_int_equal(calls, 1);
}

static bool has_arrived(struct vm *vm, uint32_t vcpus)
{
	uint32_t arrived = 0;
	int ms;

	for (ms = 0; ms < PATIENCE_MS && arrived < vcpus; ms++) {
		lock_take(&vm->safepoints.lock);
		arrived = vm->safepoints.arrived;
		lock_release(&vm->safepoints.lock);
		usleep(1000);
	}
	return arrived >= vcpus;
}

/* vCPU 0 finds both at once; the others stand still already and answer no job. */
static void a_job_that_asks_another_vcpu_may_come_with_a_safepoint(void **state)
{
	struct vm_rig *r = *state;
	struct vm_safepoint s;
	struct vcpu_job job;

	FAKE_SCRIPT(0, deaf);
	start_deaf(r, 1);
	atomic_store(&other, r->vm->vcpus[1]);
	assert_int_equal(vcpu_run_async(r->vm->vcpus[0], &job, ask_other, NULL), 0);
	vm_safepoint_async(r->vm, &s, count_if_all_are_outside, NULL);
	assert_true(has_arrived(r->vm, VM_RIG_VCPUS - 1));
	atomic_store(&gate, true);
	if (!wait_for(&calls, 3))
		fail_msg("a vCPU waits for one that stands still for it");
}

/* ---- a vCPU that is started while others stand still -------------------------------------- */

static _Atomic unsigned overlaps, inside;

static void stay_a_while(struct vm *vm, void *arg)
{
	if (atomic_fetch_add(&inside, 1))
		atomic_fetch_add(&overlaps, 1);
	if (atomic_fetch_add(&calls, 1) == 0)
		wait_at_gate();
	atomic_fetch_sub(&inside, 1);
}

static void *arrive(void *arg)
{
	vm_safepoint_arrive(arg);
	vm_safepoint_leave(arg);
	return NULL;
}

static void a_vcpu_that_joins_waits_for_the_calls_under_way(void **state)
{
	struct vm_rig *r = *state;
	struct vm_safepoint first, second;
	pthread_t threads[2];

	vm_safepoint_join(r->vm);
	vm_safepoint_async(r->vm, &first, stay_a_while, NULL);
	vm_safepoint_async(r->vm, &second, stay_a_while, NULL);
	assert_int_equal(pthread_create(&threads[0], NULL, arrive, r->vm), 0);
	assert_true(wait_for(&calls, 1));
	vm_safepoint_join(r->vm);
	assert_int_equal(pthread_create(&threads[1], NULL, arrive, r->vm), 0);
	assert_true(has_arrived(r->vm, 2));
	assert_int_equal(calls, 1);
	atomic_store(&gate, true);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	assert_int_equal(calls, 2);
	assert_int_equal(overlaps, 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_job_runs_on_the_vcpus_thread_and_may_use_kvm_on_it),
		TEST(jobs_run_in_the_order_of_the_calls),
		TEST(a_job_is_free_again_when_it_runs),
		TEST(a_paused_vcpu_runs_its_jobs_and_stays_paused),
		TEST(a_job_for_a_vcpu_that_has_left_is_refused),
		TEST(on_the_vcpus_own_thread_it_is_a_call),
		TEST(what_is_queued_when_the_thread_leaves_still_runs),
		TEST(a_job_that_waits_while_its_vcpu_leaves_gets_its_answer),
		TEST(two_vcpus_that_ask_each_other_get_their_answers),
		TEST(a_vcpu_that_is_asked_may_ask_the_one_that_waits),
		TEST(a_safepoint_finds_no_vcpu_in_kvm),
		TEST(a_paused_vm_has_safepoints_too),
		TEST(without_vcpus_a_safepoint_is_a_call),
		TEST(a_safepoint_inside_another_is_a_call),
		TEST(all_vcpus_may_ask_for_safepoints_at_once),
		TEST(a_vcpu_that_leaves_holds_no_safepoint_up),
		TEST(a_job_that_asks_another_vcpu_may_come_with_a_safepoint),
		TEST(a_vcpu_that_joins_waits_for_the_calls_under_way),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
