/*
 * Work for a vCPU's own thread, from any thread, and points at which all stand
 * still.
 *
 * Each vCPU has a queue that any thread pushes to without a lock. Its thread
 * empties it where it serves requests: between two KVM_RUNs, or while it is
 * parked or waits for another vCPU. So a job may use KVM on the vCPU, and two
 * vCPUs that wait for one another both get on.
 *
 * Nothing here may be called with a lock held (a debug build counts it as a
 * violation of the order), but for vcpu_run_async().
 */
#ifndef LULL_VCPU_WORK_H
#define LULL_VCPU_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/lock.h"

struct vcpu;
struct vm;

/* Runs on the vCPU's thread, outside KVM_RUN. */
typedef void (*vcpu_job_fn)(struct vcpu *v, void *arg);
/* Runs on any thread, with all vCPUs outside KVM_RUN; they run no jobs until it is over. */
typedef void (*vm_safepoint_fn)(struct vm *vm, void *arg);

/* Lies in its owner's struct, so that asking cannot fail for want of memory. */
struct vcpu_job {
	struct vcpu_job *next;
	vcpu_job_fn fn;
	void *arg;
};

/*
 * Any thread, locks or not: has `fn(v, arg)` run, in the order of the calls. The
 * job is free again when `fn` begins. -ESRCH if the vCPU's thread has not been
 * started or has left: then it will not run. What is queued when the thread
 * leaves still runs.
 */
int vcpu_run_async(struct vcpu *v, struct vcpu_job *job, vcpu_job_fn fn, void *arg);

/*
 * Any thread but main, which waits for no vCPU: the same, and waits until it is
 * done. A vCPU's thread serves its own queue meanwhile; on the vCPU's own
 * thread it is a call. -ESRCH as above.
 */
int vcpu_run(struct vcpu *v, vcpu_job_fn fn, void *arg);

/* Of vcpu.c. */

/* Main thread: a new vCPU accepts no jobs, one whose thread is about to start does. */
void vcpu_work_init(struct vcpu *v);
void vcpu_work_open(struct vcpu *v);
/* The vCPU's thread: runs what is queued; the second accepts no more from then on. */
void vcpu_work_serve(struct vcpu *v);
void vcpu_work_close(struct vcpu *v);

/* ---- safepoints --------------------------------------------------------------------------- */

struct vm_safepoint {
	struct vm_safepoint *next;
	vm_safepoint_fn fn;
	void *arg;
};

/* In struct vm. */
struct vm_safepoints {
	struct lock lock; /* level VM */
	struct lock_cond changed;
	/* under lock */
	struct vm_safepoint *first, **last; /* asked for, oldest first */
	uint32_t vcpus;      /* that have a thread */
	uint32_t arrived;    /* that stand still */
	uint64_t generation; /* counts the times they were let go */
	bool is_running;     /* the calls are under way */
};

void vm_safepoints_init(struct vm_safepoints *s);
void vm_safepoints_fini(struct vm_safepoints *s);

/*
 * Any thread but main: runs `fn(vm, arg)` once no vCPU is inside KVM_RUN or an
 * exit, and waits for that. The caller's own exit, if it is a vCPU, is the one
 * exception. Calls at the same time run one after the other.
 */
void vm_safepoint(struct vm *vm, vm_safepoint_fn fn, void *arg);
/*
 * Any thread: the same without waiting. `s` is free again when `fn` begins, on the
 * thread of the vCPU that arrives last; or at once, on the caller's, if no vCPU
 * has a thread.
 */
void vm_safepoint_async(struct vm *vm, struct vm_safepoint *s, vm_safepoint_fn fn, void *arg);

/* Of vcpu.c: a vCPU takes part from the first to the last of these. */
void vm_safepoint_join(struct vm *vm);
/* The vCPU's thread: stands still if somebody waits for that. */
void vm_safepoint_arrive(struct vm *vm);
void vm_safepoint_leave(struct vm *vm);

#endif
