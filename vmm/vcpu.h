/*
 * A vCPU: its thread, its run loop, its requests.
 *
 * Threads: vcpu_new/start/free on the main thread; vcpu_request() on any. The
 * vCPU's own thread is the only one that calls KVM on it.
 * Locks: v->lock (level VM) while the thread sleeps or is woken; none on the
 * path of an exit.
 *
 * A request sets its bit, then kvm_run.immediate_exit, then sends the kick, a
 * real-time signal; where the host has no queue entry left for one, SIGUSR1.
 * The vCPU looks for requests only where KVM_RUN returns -EINTR: it clears
 * immediate_exit first and takes the bits second, so that a request made in
 * between costs one more -EINTR and is never lost. An exit pays nothing for it.
 */
#ifndef LULL_VCPU_H
#define LULL_VCPU_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "vmm/arch.h"
#include "vmm/base/lock.h"
#include "vmm/bus.h"
#include "vmm/event_loop.h"
#include "vmm/kvm.h"
#include "vmm/metrics.h"
#include "vmm/vcpu_poll.h"

#define VCPU_EXIT_REASONS 64
#define VCPU_ALIGNMENT 64 /* of what different threads write: a cache line */

/* Request bits */
#define VCPU_REQ_PAUSE 1u
#define VCPU_REQ_STOP 2u
#define VCPU_REQ_WORK 4u      /* its queue of jobs is not empty */
#define VCPU_REQ_LOOK 16u     /* nothing: it only comes out of KVM_RUN */
#define VCPU_REQ_SAFEPOINT 8u /* somebody waits for all vCPUs to stand still */

/* Summed over vCPUs in the metrics; each counter has one writer. */
struct vcpu_metrics {
	metric exit_io_in;
	metric exit_io_out;
	metric exit_mmio_read;
	metric exit_mmio_write;
	metric failures;
	metric polls_parked;  /* times that it slept since its guest polled a register */
	metric polls_changed; /* times that it did not, as the register had just changed */
};

enum vcpu_state { VCPU_CREATED, VCPU_RUNNING, VCPU_PARKED, VCPU_STOPPED };

struct kvm_coalesced;
struct vcpu_job;

struct vcpu {
	/* constant while the thread runs */
	struct vm *vm;
	struct kvm_fd fd;
	struct kvm_run *run;
	size_t run_bytes;
	struct kvm_coalesced *coalesced; /* the VM's */
	const struct kvm_coalesced_mmio_ring *ring; /* its ring */
	/*
	 * What serves an exit: all that is the same for every exit of this vCPU is
	 * chosen where it changes, not looked up on each.
	 */
	enum vcpu_exit_result (*handle_exit)(struct vcpu *v);
	uint32_t index;
	uint32_t id; /* KVM's: APIC id or index of the MPIDR */
	char name[16]; /* "vcpu 3", of its thread and its locks */
	pthread_t thread;
	bool thread_started;

	/* its own thread's until it parks for the first time, then constant */
	int setup_code;
	struct error setup_error;

	/* its own thread only, but for the pointer in it */
	struct bus_lookup lookup __attribute__((aligned(VCPU_ALIGNMENT)));

	struct vcpu_poll poll; /* see vcpu_poll.h */

	/* written by its own thread, read by any: relaxed */
	struct vcpu_metrics metrics __attribute__((aligned(VCPU_ALIGNMENT)));
	_Atomic uint64_t exits[VCPU_EXIT_REASONS]; /* but I/O and MMIO: see vcpu_exits() */
	_Atomic uint64_t interrupted; /* KVM_RUN returned -EINTR */
	_Atomic int state;            /* enum vcpu_state */
	_Atomic pid_t tid;
	_Atomic bool is_asleep; /* or about to be: who makes a request wakes it */

	/* written by any thread */
	_Atomic uint32_t requests __attribute__((aligned(VCPU_ALIGNMENT)));
	_Atomic(struct vcpu_job *) jobs; /* newest first; see vcpu_work.c */

	/* its own thread's, one at a time */
	struct event_post parked_post;
	struct event_post stopped_post;

	struct lock lock;
	struct lock_cond wake;
	bool is_released TSA_GUARDED; /* may leave the next or present parking */
};

/* Blocks the kick signals in the calling (main) thread and installs their empty handler. */
int vcpu_signals_init(struct error *err);

/* Creates the KVM vCPU and maps its kvm_run. */
struct vcpu *vcpu_new(struct vm *vm, uint32_t index, struct error *err);
/* Its thread must have ended or never started; joins it. NULL allowed. */
struct vcpu *vcpu_free(struct vcpu *v);

/* Starts the thread, which sets the vCPU up and waits for vcpu_release(). */
int vcpu_start(struct vcpu *v, struct error *err);
/* Lets a parked vCPU run (again). */
void vcpu_release(struct vcpu *v);

/* Any thread. PAUSE is answered by vm_vcpu_parked(), STOP by vm_vcpu_stopped(). */
void vcpu_request(struct vcpu *v, uint32_t bits);

/* The vCPU whose thread this is; NULL on other threads. */
struct vcpu *vcpu_current(void);

/*
 * Its own thread, no lock held: sleeps until `*flag`, which is written with
 * v->lock held, and serves jobs and safepoints meanwhile.
 */
void vcpu_sleep_until(struct vcpu *v, const bool *flag);
/* Any thread, v->lock not held: sets `*flag` and wakes the vCPU that sleeps for it. */
void vcpu_wake(struct vcpu *v, bool *flag);

/* Exits to user space of one reason so far. Any thread. */
uint64_t vcpu_exits(const struct vcpu *v, uint32_t reason);
/* Name of an exit reason, "io", "mmio", ...; NULL if it has none. */
const char *vcpu_exit_name(uint32_t reason);

extern const struct metric_field vcpu_metric_fields[];

/* vcpu_exit.c: serves the exit in v->run; the second under the big lock. */
enum vcpu_exit_result vcpu_handle_exit(struct vcpu *v);
enum vcpu_exit_result vcpu_handle_exit_big_locked(struct vcpu *v);

#endif
