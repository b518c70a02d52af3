/*
 * vCPU threads and the run loop.
 *
 * Threads and locks: see vcpu.h. Not here: what an exit does (vcpu_exit.c,
 * arch), who asks for a pause or the end (vm.c).
 */
#include "vmm/vcpu.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/log.h"
#include "vmm/base/thread.h"
#include "vmm/vm.h"

/* The kick does its work by interrupting KVM_RUN. */
static void on_kick(int signo)
{
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

struct vcpu *vcpu_new(struct vm *vm, uint32_t index, struct error *err)
{
	struct vcpu *v = calloc(1, sizeof(*v));
	int ret;

	if (!v) {
		error_set(err, -ENOMEM, "no memory for vCPU %u", index);
		return NULL;
	}
	v->vm = vm;
	v->index = index;
	v->id = arch_vcpu_id(vm, index);
	v->fd.fd = -EBADF;
	snprintf(v->name, sizeof(v->name), "vcpu %u", index);
	lock_init(&v->lock, LOCK_LEVEL_VM, "vcpu", v->name);
	lock_cond_init(&v->unparked, "vcpu unparked", v->name);
	lock_take(&v->lock);
	v->park = true;
	lock_release(&v->lock);
	ret = kvm_create_vcpu(vm->fd, v->id, &v->fd);
	if (ret < 0) {
		error_set_errno(err, ret, "vCPU %u: KVM_CREATE_VCPU", index);
		return vcpu_free(v);
	}
	ret = kvm_vcpu_mmap_size(vm->kvm);
	if (ret >= (int)sizeof(struct kvm_run)) {
		v->run_bytes = (size_t)ret;
		ret = kvm_map_run(v->fd, v->run_bytes, &v->run);
	} else if (ret >= 0) {
		ret = -EINVAL;
	}
	if (ret < 0) {
		error_set_errno(err, ret, "vCPU %u: cannot map its run page", index);
		return vcpu_free(v);
	}
	return v;
}

struct vcpu *vcpu_free(struct vcpu *v)
{
	if (!v)
		return NULL;
	if (v->thread_started)
		pthread_join(v->thread, NULL);
	kvm_unmap_run(v->fd, v->run, v->run_bytes);
	kvm_close(&v->fd);
	lock_cond_fini(&v->unparked);
	lock_fini(&v->lock);
	free(v);
	return NULL;
}

void vcpu_request(struct vcpu *v, uint32_t bits)
{
	pid_t tid = atomic_load_explicit(&v->tid, memory_order_acquire);

	/* The order matters: see the top of vcpu.h. */
	atomic_fetch_or(&v->requests, bits);
	__atomic_store_n(&v->run->immediate_exit, 1, __ATOMIC_SEQ_CST);
	if (tid)
		kick(tid);
	if (bits & VCPU_REQ_STOP)
		vcpu_release(v);
}

void vcpu_release(struct vcpu *v)
{
	int parked = VCPU_PARKED;

	/* Here, so that who is told of the release sees it, wherever the thread is. */
	atomic_compare_exchange_strong(&v->state, &parked, VCPU_RUNNING);
	lock_take(&v->lock);
	v->park = false;
	lock_cond_signal(&v->unparked);
	lock_release(&v->lock);
}

/* Stays parked until released, having told the VM. The release says that it runs. */
static void park(struct vcpu *v)
{
	atomic_store_explicit(&v->state, VCPU_PARKED, memory_order_release);
	vm_vcpu_parked(v);
	lock_take(&v->lock);
	while (v->park)
		lock_cond_wait(&v->unparked, &v->lock);
	v->park = true; /* for the next time */
	lock_release(&v->lock);
}

/* KVM_RUN said -EINTR: false if the vCPU shall leave its loop. */
static bool serve_requests(struct vcpu *v)
{
	uint32_t bits;

	__atomic_store_n(&v->run->immediate_exit, 0, __ATOMIC_SEQ_CST);
	bits = atomic_exchange(&v->requests, 0);
	metric_count(&v->interrupted);
	if (bits & VCPU_REQ_STOP)
		return false;
	if (bits & VCPU_REQ_PAUSE) {
		arch_vcpu_parked(v);
		park(v);
	}
	return true;
}

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

		if (ret == 0) {
			uint32_t reason = v->run->exit_reason;

			metric_count(&v->exits[reason & (VCPU_EXIT_REASONS - 1)]);
			if (vcpu_handle_exit(v) == VCPU_STOP)
				return;
		} else if (ret == -EINTR) {
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

	atomic_store_explicit(&v->tid, gettid(), memory_order_release);
	kick_signals(&kicks);
	pthread_sigmask(SIG_UNBLOCK, &kicks, NULL);

	bus_lookup_init(&v->lookup, &v->vm->bus);
	v->setup_code = arch_vcpu_setup(v, &v->setup_error);
	park(v);
	if (v->setup_code == 0 && !(atomic_load(&v->requests) & VCPU_REQ_STOP))
		run_loop(v);
	atomic_store_explicit(&v->state, VCPU_STOPPED, memory_order_release);
	vm_vcpu_stopped(v);
	return NULL;
}

int vcpu_start(struct vcpu *v, struct error *err)
{
	int ret = thread_start(&v->thread, v->name, thread_main, v);

	if (ret < 0)
		return error_set_errno(err, ret, "vCPU %u: cannot start its thread", v->index);
	v->thread_started = true;
	return 0;
}
