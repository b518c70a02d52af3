/*
 * vCPU threads and the run loop.
 *
 * Threads and locks: see vcpu.h. Not here: what an exit does (vcpu_exit.c,
 * arch), jobs and safepoints (vcpu_work.c), who asks for a pause or the end (vm.c).
 */
#include "vmm/vcpu.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/big_lock.h"
#include "vmm/base/bits.h"
#include "vmm/base/log.h"
#include "vmm/base/thread.h"
#include "vmm/vcpu_work.h"
#include "vmm/vm.h"

/* What a thread that sleeps serves; the others wait until it is awake. */
#define SERVED_ASLEEP (VCPU_REQ_WORK | VCPU_REQ_SAFEPOINT)

static _Thread_local struct vcpu *current;

struct vcpu *vcpu_current(void)
{
	return current;
}

/*
 * The kick does its work by interrupting KVM_RUN. One that comes just before it,
 * from the timer that bounds a parking, would be lost: immediate_exit stays.
 */
static void on_kick(int signo)
{
	struct vcpu *v = current;

	if (v && v->poll.is_bounded)
		__atomic_store_n(&v->run->immediate_exit, 1, __ATOMIC_SEQ_CST);
}

static void kick_signals(sigset_t *ret)
{
	sigemptyset(ret);
	sigaddset(ret, SIGRTMIN);
	sigaddset(ret, SIGUSR1);
}

int vcpu_signals_init(struct error *err)
{
	struct sigaction action = { .sa_handler = on_kick };
	sigset_t set;

	kick_signals(&set);
	if (sigaction(SIGRTMIN, &action, NULL) < 0 || sigaction(SIGUSR1, &action, NULL) < 0 ||
	    pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
		return error_set(err, -EINVAL, "cannot set up the vCPU kick signals");
	return 0;
}

/*
 * A real-time signal takes an entry of a queue that all processes of the user
 * share (RLIMIT_SIGPENDING) and can be refused; a standard one needs none.
 */
static void kick(pid_t tid)
{
	if (tgkill(getpid(), tid, SIGRTMIN) < 0 && errno == EAGAIN)
		(void)tgkill(getpid(), tid, SIGUSR1);
}

/* Maps kvm_run, and finds the ring of coalesced writes behind it. */
static int map_run(struct vcpu *v, struct error *err)
{
	int ret = kvm_vcpu_mmap_size(v->vm->kvm);

	if (ret >= (int)sizeof(struct kvm_run)) {
		v->run_bytes = (size_t)ret;
		ret = kvm_map_run(v->fd, v->run_bytes, &v->run);
	} else if (ret >= 0) {
		ret = -EINVAL;
	}
	if (ret < 0)
		return error_set_errno(err, ret, "vCPU %u: cannot map its run page", v->index);
	if (v->index == 0)
		kvm_coalesced_attach(v->coalesced, v->vm->kvm, v->vm->fd, v->run, v->run_bytes);
	return 0;
}

struct vcpu *vcpu_new(struct vm *vm, uint32_t index, struct error *err)
{
	struct vcpu *v = aligned_alloc(VCPU_ALIGNMENT, sizeof(*v));
	int ret;

	if (!v) {
		error_set(err, -ENOMEM, "no memory for vCPU %u", index);
		return NULL;
	}
	memset(v, 0, sizeof(*v));
	v->vm = vm;
	v->index = index;
	v->id = arch_vcpu_id(vm, index);
	v->fd.fd = -EBADF;
	v->coalesced = &vm->coalesced;
	v->ring = v->coalesced->ring;
	v->handle_exit = big_lock_is_on()	? vcpu_handle_exit_big_locked :
			 vm->config.spin.park_polls	? vcpu_handle_exit_polled :
						  vcpu_handle_exit;
	snprintf(v->name, sizeof(v->name), "vcpu %u", index);
	lock_init(&v->lock, LOCK_LEVEL_VM, "vcpu", v->name);
	lock_cond_init(&v->wake, "vcpu asleep", v->name);
	vcpu_work_init(v);
	ret = bus_lookup_init(&v->lookup, &vm->bus);
	if (ret == 0)
		ret = kvm_create_vcpu(vm->fd, v->id, &v->fd);
	if (ret < 0) {
		error_set_errno(err, ret, "vCPU %u: KVM_CREATE_VCPU", index);
		return vcpu_free(v);
	}
	return map_run(v, err) < 0 ? vcpu_free(v) : v;
}

struct vcpu *vcpu_free(struct vcpu *v)
{
	if (!v)
		return NULL;
	if (v->thread_started)
		pthread_join(v->thread, NULL);
	if (v->index == 0)
		kvm_coalesced_detach(v->coalesced);
	kvm_unmap_run(v->fd, v->run, v->run_bytes);
	kvm_close(&v->fd);
	lock_cond_fini(&v->wake);
	lock_fini(&v->lock);
	free(v);
	return NULL;
}

/* ---- asking ------------------------------------------------------------------------------- */

void vcpu_request(struct vcpu *v, uint32_t bits)
{
	pid_t tid = atomic_load_explicit(&v->tid, memory_order_acquire);
	uint32_t old = atomic_fetch_or(&v->requests, bits);

	if ((old & bits) == bits)
		return; /* whoever set them sees to it that they are taken */
	/* The order matters: see the top of vcpu.h. */
	__atomic_store_n(&v->run->immediate_exit, 1, __ATOMIC_SEQ_CST);
	if (tid)
		kick(tid);
	/* Either we see that it sleeps, or it sees the bits before it does. */
	if (atomic_load(&v->is_asleep)) {
		lock_take(&v->lock);
		lock_cond_signal(&v->wake);
		lock_release(&v->lock);
	}
	if (bits & VCPU_REQ_STOP)
		vcpu_release(v);
}

void vcpu_wake(struct vcpu *v, bool *flag)
{
	lock_take(&v->lock);
	*flag = true;
	lock_cond_signal(&v->wake);
	lock_release(&v->lock);
}

void vcpu_release(struct vcpu *v)
{
	int parked = VCPU_PARKED;

	/* Here, so that who is told of the release sees it, wherever the thread is. */
	atomic_compare_exchange_strong(&v->state, &parked, VCPU_RUNNING);
	vcpu_wake(v, &v->is_released);
}

/* ---- serving ------------------------------------------------------------------------------ */

/* The safepoint first: a job may wait for a vCPU that stands still until we do. */
static void serve_work(struct vcpu *v, uint32_t bits)
{
	if (bits & VCPU_REQ_SAFEPOINT)
		vm_safepoint_arrive(v->vm);
	if (bits & VCPU_REQ_WORK)
		vcpu_work_serve(v);
}

/* As where KVM_RUN was interrupted, but for what concerns a running vCPU only. */
static void serve_asleep(struct vcpu *v)
{
	bus_lookup_serve(&v->lookup);
	serve_work(v, atomic_fetch_and(&v->requests, ~SERVED_ASLEEP) & SERVED_ASLEEP);
}

void vcpu_sleep_until(struct vcpu *v, const bool *flag)
{
	lock_expect_none();
	lock_take(&v->lock);
	while (!*flag) {
		atomic_store(&v->is_asleep, true);
		if (!(atomic_load(&v->requests) & SERVED_ASLEEP))
			lock_cond_wait(&v->wake, &v->lock);
		atomic_store(&v->is_asleep, false);
		lock_release(&v->lock);
		serve_asleep(v);
		lock_take(&v->lock);
	}
	lock_release(&v->lock);
}

/* Stays parked until released, having told the VM. The release says that it runs. */
static void park(struct vcpu *v)
{
	atomic_store_explicit(&v->state, VCPU_PARKED, memory_order_release);
	vm_vcpu_parked(v);
	vcpu_sleep_until(v, &v->is_released);
	lock_take(&v->lock);
	v->is_released = false; /* for the next time */
	lock_release(&v->lock);
}

/* KVM_RUN said -EINTR: false if the vCPU shall leave its loop. */
static bool serve_requests(struct vcpu *v)
{
	uint32_t bits;

	/* This order: a request that comes later shows itself again. */
	__atomic_store_n(&v->run->immediate_exit, 0, __ATOMIC_SEQ_CST);
	bus_lookup_serve(&v->lookup);
	bits = atomic_exchange(&v->requests, 0);
	metric_count(&v->interrupted);
	if (kvm_coalesced_is_pending(v->ring))
		kvm_coalesced_drain(v->coalesced, &v->lookup);
	serve_work(v, bits);
	if (bits & VCPU_REQ_STOP)
		return false;
	if (bits & VCPU_REQ_PAUSE) {
		arch_vcpu_parked(v);
		park(v);
	}
	return true;
}

/* ---- the run loop -------------------------------------------------------------------------- */

static void report_failure(struct vcpu *v, int code)
{
	char text[512];

	metric_count(&v->metrics.failures);
	arch_vcpu_describe(v, text, sizeof(text));
	log_error("vCPU %u: KVM_RUN failed: error %d; %s", v->index, -code, text);
}

static void run_loop(struct vcpu *v)
{
	for (;;) {
		int ret = kvm_vcpu_run(v->fd);

		while (__builtin_expect(ret == 0, 1)) {
			enum vcpu_exit_result result = v->handle_exit(v);

			if (__builtin_expect(result == VCPU_STOP, 0))
				return;
			ret = result == VCPU_CONTINUE ? kvm_vcpu_run(v->fd) : vcpu_poll_park(v);
		}
		if (ret == -EINTR) {
			if (!serve_requests(v))
				return;
		} else if (ret != -EAGAIN) {
			report_failure(v, ret);
			vm_request_end(v->vm, ret == -EFAULT ? VM_END_MEMORY_LOST :
							       VM_END_VCPU_FAILED);
			return;
		}
	}
}

static void *thread_main(void *arg)
{
	struct vcpu *v = arg;
	sigset_t kicks;

	current = v;
	atomic_store_explicit(&v->tid, gettid(), memory_order_release);
	kick_signals(&kicks);
	pthread_sigmask(SIG_UNBLOCK, &kicks, NULL);

	vm_safepoint_arrive(v->vm); /* one may have been asked for before we could be */
	bus_lookup_serve(&v->lookup);
	v->setup_code = arch_vcpu_setup(v, &v->setup_error);
	park(v);
	if (v->setup_code == 0 && !(atomic_load(&v->requests) & VCPU_REQ_STOP))
		run_loop(v);
	vcpu_poll_fini(v);
	vcpu_work_close(v);
	vm_safepoint_leave(v->vm);
	atomic_store_explicit(&v->state, VCPU_STOPPED, memory_order_release);
	vm_vcpu_stopped(v);
	return NULL;
}

int vcpu_start(struct vcpu *v, struct error *err)
{
	int ret;

	v->ring = v->coalesced->ring;
	vcpu_work_open(v);
	vm_safepoint_join(v->vm);
	ret = thread_start(&v->thread, v->name, thread_main, v);
	if (ret < 0) {
		vm_safepoint_leave(v->vm);
		vcpu_work_close(v);
		return error_set_errno(err, ret, "vCPU %u: cannot start its thread", v->index);
	}
	v->thread_started = true;
	return 0;
}
