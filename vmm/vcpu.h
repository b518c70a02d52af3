/*
 * A vCPU: its thread, its run loop, its requests.
 *
 * Threads: vcpu_new/start/free on the main thread; vcpu_request() on any. The
 * vCPU's own thread is the only one that calls KVM on it.
 * Locks: v->lock (level VM) around parking only; none on the path of an exit.
 *
 * A request sets its bit, then kvm_run.immediate_exit, then sends the kick, a
 * real-time signal; where the host has no queue entry left for one, SIGUSR1. The vCPU looks for requests only where KVM_RUN returns -EINTR: it
 * clears immediate_exit first and takes the bits second, so that a request
 * made in between costs one more -EINTR and is never lost.
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

#define VCPU_EXIT_REASONS 64

/* Request bits */
#define VCPU_REQ_PAUSE 1u
#define VCPU_REQ_STOP 2u

/* Summed over vCPUs in the metrics; each counter has one writer. */
struct vcpu_metrics {
	metric exit_io_in;
	metric exit_io_out;
	metric exit_mmio_read;
	metric exit_mmio_write;
	metric failures;
};

enum vcpu_state { VCPU_CREATED, VCPU_RUNNING, VCPU_PARKED, VCPU_STOPPED };

struct vcpu {
	/* constant after vcpu_new() */
	struct vm *vm;
	uint32_t index;
	char name[16]; /* "vcpu 3", of its thread and its locks */
	uint32_t id; /* KVM's: APIC id or index of the MPIDR */
	struct kvm_fd fd;
	struct kvm_run *run;
	size_t run_bytes;
	pthread_t thread;
	bool thread_started;

	/* its own thread only */
	struct bus_lookup lookup;

	/* its own thread's until it parks for the first time, then constant */
	int setup_code;
	struct error setup_error;

	/* written by its own thread, read by any: relaxed */
	_Atomic uint64_t exits[VCPU_EXIT_REASONS];
	_Atomic uint64_t interrupted; /* KVM_RUN returned -EINTR */
	struct vcpu_metrics metrics;
	_Atomic int state;            /* enum vcpu_state */
	_Atomic pid_t tid;

	/* written by any thread */
	_Atomic uint32_t requests;

	/* its own thread's, one at a time */
	struct event_post parked_post;
	struct event_post stopped_post;

	struct lock lock;
	struct lock_cond unparked;
	bool park TSA_GUARDED; /* stay parked */
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

/* Name of an exit reason, "io", "mmio", ...; NULL if it has none. */
const char *vcpu_exit_name(uint32_t reason);

extern const struct metric_field vcpu_metric_fields[];

/* vcpu_exit.c: serves the exit in v->run. */
enum vcpu_exit_result vcpu_handle_exit(struct vcpu *v);

#endif
