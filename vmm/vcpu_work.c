/*
 * Jobs for vCPUs and safepoints. Threads: see vcpu_work.h.
 * Locks: that of the safepoints (level VM); a waiting caller's own (level VM) or,
 * if it is a vCPU, its v->lock. None is held while a job or a safepoint's
 * function runs.
 */
#include "vmm/vcpu_work.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "vmm/vcpu.h"
#include "vmm/vm.h"

/* In place of the newest job: no more are accepted. */
static struct vcpu_job closed;

void vcpu_work_init(struct vcpu *v)
{
	atomic_init(&v->jobs, &closed);
}

void vcpu_work_open(struct vcpu *v)
{
	atomic_store(&v->jobs, NULL);
}

int vcpu_run_async(struct vcpu *v, struct vcpu_job *job, vcpu_job_fn fn, void *arg)
{
	struct vcpu_job *newest = atomic_load_explicit(&v->jobs, memory_order_relaxed);

	job->fn = fn;
	job->arg = arg;
	do {
		if (newest == &closed)
			return -ESRCH;
		job->next = newest;
	} while (!atomic_compare_exchange_weak_explicit(&v->jobs, &newest, job,
							memory_order_release,
							memory_order_relaxed));
	vcpu_request(v, VCPU_REQ_WORK);
	return 0;
}

/* Runs a list that has the newest first, oldest first. */
static void run_jobs(struct vcpu *v, struct vcpu_job *newest)
{
	struct vcpu_job *oldest = NULL;

	while (newest) {
		struct vcpu_job *next = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	while (oldest) {
		struct vcpu_job *job = oldest;

		oldest = job->next;
		job->fn(v, job->arg);
	}
}

void vcpu_work_serve(struct vcpu *v)
{
	/* One of the last jobs waits for another vCPU: the queue stays closed. */
	if (atomic_load_explicit(&v->jobs, memory_order_relaxed) == &closed)
		return;
	run_jobs(v, atomic_exchange_explicit(&v->jobs, NULL, memory_order_acquire));
}

void vcpu_work_close(struct vcpu *v)
{
	run_jobs(v, atomic_exchange_explicit(&v->jobs, &closed, memory_order_acquire));
}

/* ---- waiting for a job -------------------------------------------------------------------- */

struct call {
	struct vcpu_job job;
	vcpu_job_fn fn;
	void *arg;
	struct vcpu *waiter; /* whose thread waits; NULL: another thread, by what follows */
	struct lock lock;
	struct lock_cond is_over;
	bool done; /* under waiter->lock or `lock` */
};

static void run_call(struct vcpu *v, void *arg)
{
	struct call *c = arg;

	c->fn(v, c->arg);
	if (c->waiter) {
		vcpu_wake(c->waiter, &c->done);
		return;
	}
	lock_take(&c->lock);
	c->done = true;
	lock_cond_signal(&c->is_over);
	lock_release(&c->lock);
}

static int run_and_wait(struct vcpu *v, struct call *c)
{
	int ret;

	lock_init(&c->lock, LOCK_LEVEL_VM, "vcpu call", v->name);
	lock_cond_init(&c->is_over, "vcpu call", v->name);
	ret = vcpu_run_async(v, &c->job, run_call, c);
	lock_take(&c->lock);
	while (ret == 0 && !c->done)
		lock_cond_wait(&c->is_over, &c->lock);
	lock_release(&c->lock);
	lock_cond_fini(&c->is_over);
	lock_fini(&c->lock);
	return ret;
}

int vcpu_run(struct vcpu *v, vcpu_job_fn fn, void *arg)
{
	struct call c = { .fn = fn, .arg = arg, .waiter = vcpu_current() };
	int ret;

	lock_expect_none();
	if (c.waiter == v) {
		fn(v, arg);
		return 0;
	}
	if (!c.waiter)
		return run_and_wait(v, &c);
	ret = vcpu_run_async(v, &c.job, run_call, &c);
	if (ret == 0)
		vcpu_sleep_until(c.waiter, &c.done);
	return ret;
}

/* ---- safepoints --------------------------------------------------------------------------- */

/* This thread runs safepoints' functions now. */
static _Thread_local bool is_runner;

void vm_safepoints_init(struct vm_safepoints *s)
{
	*s = (struct vm_safepoints){ .last = &s->first };
	lock_init(&s->lock, LOCK_LEVEL_VM, "safepoint", "");
	lock_cond_init(&s->changed, "safepoint", "");
}

void vm_safepoints_fini(struct vm_safepoints *s)
{
	lock_cond_fini(&s->changed);
	lock_fini(&s->lock);
}

/* All vCPUs stand still. The lock is given up around each function. */
static void run_all_locked(struct vm *vm) TSA_REQUIRES(vm->safepoints.lock)
{
	struct vm_safepoints *s = &vm->safepoints;

	s->is_running = true;
	is_runner = true;
	while (s->first) {
		struct vm_safepoint *p = s->first;
		vm_safepoint_fn fn = p->fn;
		void *arg = p->arg;

		s->first = p->next;
		if (!s->first)
			s->last = &s->first;
		lock_release(&vm->safepoints.lock);
		fn(vm, arg);
		lock_take(&vm->safepoints.lock);
	}
	is_runner = false;
	s->is_running = false;
	s->arrived = 0;
	s->generation++;
	lock_cond_broadcast(&s->changed);
}

/* The last to arrive runs what was asked for; the others wait for it. */
static void stand_still_locked(struct vm *vm) TSA_REQUIRES(vm->safepoints.lock)
{
	struct vm_safepoints *s = &vm->safepoints;
	uint64_t generation = s->generation;

	if (!s->first && !s->is_running)
		return; /* what we were asked for has been done */
	s->arrived++;
	if (s->arrived == s->vcpus && !s->is_running) /* it is if we have just been started */
		run_all_locked(vm);
	else
		while (s->generation == generation)
			lock_cond_wait(&s->changed, &vm->safepoints.lock);
}

void vm_safepoint_arrive(struct vm *vm)
{
	lock_expect_none();
	lock_take(&vm->safepoints.lock);
	stand_still_locked(vm);
	lock_release(&vm->safepoints.lock);
}

void vm_safepoint_join(struct vm *vm)
{
	lock_take(&vm->safepoints.lock);
	vm->safepoints.vcpus++;
	lock_release(&vm->safepoints.lock);
}

void vm_safepoint_leave(struct vm *vm)
{
	struct vm_safepoints *s = &vm->safepoints;

	lock_take(&vm->safepoints.lock);
	s->vcpus--;
	if (s->first && s->arrived == s->vcpus && !s->is_running)
		run_all_locked(vm);
	lock_release(&vm->safepoints.lock);
}

void vm_safepoint_async(struct vm *vm, struct vm_safepoint *p, vm_safepoint_fn fn, void *arg)
{
	struct vm_safepoints *s = &vm->safepoints;
	uint32_t i;

	*p = (struct vm_safepoint){ .fn = fn, .arg = arg };
	lock_expect_none();
	lock_take(&vm->safepoints.lock);
	*s->last = p;
	s->last = &p->next;
	if (s->vcpus == 0 && !s->is_running)
		run_all_locked(vm);
	lock_release(&vm->safepoints.lock);
	for (i = 0; i < vm->vcpu_count; i++)
		vcpu_request(vm->vcpus[i], VCPU_REQ_SAFEPOINT);
}

struct safepoint_call {
	struct vm_safepoint safepoint;
	vm_safepoint_fn fn;
	void *arg;
	bool done; /* under the safepoints' lock */
};

static void run_safepoint_call(struct vm *vm, void *arg)
{
	struct vm_safepoints *s = &vm->safepoints;
	struct safepoint_call *c = arg;

	c->fn(vm, c->arg);
	lock_take(&vm->safepoints.lock);
	c->done = true;
	lock_cond_broadcast(&s->changed);
	lock_release(&vm->safepoints.lock);
}

void vm_safepoint(struct vm *vm, vm_safepoint_fn fn, void *arg)
{
	struct safepoint_call c = { .fn = fn, .arg = arg };
	struct vm_safepoints *s = &vm->safepoints;

	if (is_runner) { /* from inside another: they stand still already */
		fn(vm, arg);
		return;
	}
	vm_safepoint_async(vm, &c.safepoint, run_safepoint_call, &c);
	lock_take(&vm->safepoints.lock);
	while (!c.done) {
		if (vcpu_current() && s->first)
			stand_still_locked(vm);
		else
			lock_cond_wait(&s->changed, &vm->safepoints.lock);
	}
	lock_release(&vm->safepoints.lock);
}
