/*
 * The VM: what it owns, and the order in which that is made and unmade.
 *
 * Built on the main thread by vm_start() in numbered steps, unmade in reverse
 * by vm_free(); safe at any point of construction.
 */
#ifndef LULL_VM_H
#define LULL_VM_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/bus.h"
#include "vmm/config.h"
#include "vmm/control.h"
#include "vmm/device.h"
#include "vmm/device_set.h"
#include "vmm/doorbell.h"
#include "vmm/event_loop.h"
#include "vmm/guest_mem.h"
#include "vmm/irq.h"
#include "vmm/kvm.h"
#include "vmm/kvm_coalesced.h"
#include "vmm/metrics.h"
#include "vmm/spin.h"
#include "vmm/spin_controller.h"
#include "vmm/spin_observe.h"
#include "vmm/topology.h"
#include "vmm/vcpu_work.h"
#include "vmm/vm_state.h"

struct arch_vm;
struct patch_job;
struct vcpu;

/* A client that is answered when a phase has been reached. */
struct vm_waiter {
	control_done_fn done;
	void *arg;
	enum vm_phase target; /* VM_RUNNING or VM_PAUSED */
};

#define VM_IRQ_LINES 24

/* Edges of one line, 64 bytes apart: each is counted by another device's thread. */
struct vm_irq_count {
	metric triggers;
	char unused[64 - sizeof(metric)];
};

#define VM_PAUSE_LIMIT_MS 30000
#define VM_END_LIMIT_MS 3000
#define VM_WAITERS (LIMIT_API_CONNECTIONS + 2)

struct vm {
	/* given at creation, constant */
	const char *id;
	struct event_loop *loop;
	const struct kvm_ops *kvm_ops;
	const struct device_classes *classes;
	struct metrics *metrics;
	void (*on_end)(void *arg); /* the VM has ended; main decides what follows */
	void *on_end_arg;

	/* main thread only */
	struct vm_config config;
	const char *host_cpus; /* HOST_CPU_ROOT; tests have a folder of their own */
	struct topology_host host;
	bool host_is_known; /* its caches are read when they are first asked for */
	void *drive_backends[LIMIT_DRIVES]; /* opened when configured, same index */
	void *net_backends[LIMIT_NETS];
	int kernel_fd;
	int initrd_fd;
	struct vm_state state;
	uint64_t started_ns; /* monotonic, when vCPUs were first let go; 0 before */
	uint64_t ended_ns;
	struct event_post ended_post;
	struct patch_job *patch_jobs; /* updates of drives under way (control.c) */
	uint32_t vcpus_parked;  /* that have answered the start or pause under way */
	uint32_t vcpus_started; /* whose threads exist */
	uint32_t vcpus_stopped; /* whose threads have left their loop */
	struct error start_error;
	struct event_source *deadline; /* of the pause or end under way */
	struct vm_waiter waiters[VM_WAITERS]; /* who is answered at the end of it */
	uint32_t waiter_count;

	/* made by vm_start(), constant while vCPUs run */
	struct topology topology;
	struct kvm_fd kvm;
	struct kvm_fd fd;
	struct guest_mem mem;
	struct doorbells doorbells;
	struct device_env env;
	struct bus bus;
	struct kvm_coalesced coalesced;
	struct device_set devices;
	struct arch_vm *arch;
	struct spin spin; /* main thread only, these three */
	struct spin_observer observer;
	struct spin_controller controller;
	struct vcpu *vcpus[LIMIT_VCPUS];
	uint32_t vcpu_count;

	/* any thread */
	struct vm_safepoints safepoints;
	struct vm_irq_count irq_counts[VM_IRQ_LINES];
	struct event_post end_post; /* by whoever set end_reason */
	_Atomic int end_reason; /* enum vm_end_reason asked for by a vCPU; the first wins */
};

/*
 * `ops`, `classes`, `metrics` and `loop` outlive the VM. `id` is not copied.
 * Nothing of KVM is touched before the start.
 */
struct vm *vm_new(const char *id, struct event_loop *loop, const struct kvm_ops *ops,
		  const struct device_classes *classes, struct metrics *metrics,
		  struct error *err);
/* vCPUs must have stopped (vm_state VM_ENDED or never started). NULL allowed. */
struct vm *vm_free(struct vm *vm);

/* vm_lines.c. The doorbells of a VM, which is the table's `vm`. */
extern const struct doorbell_ops vm_doorbell_ops;
/* A line on this VM's interrupt controllers. */
void vm_irq_line_init(struct vm *vm, struct irq_line *line, uint32_t gsi);

/*
 * Builds the VM and starts its vCPUs; phase CONFIGURING. `done` is called on
 * the main thread when they run, or when everything that was made has been
 * unmade again and the VM is back in CONFIGURING.
 */
void vm_start(struct vm *vm, control_done_fn done, void *arg);
/*
 * Phases RUNNING to RESUMING; a second pauser is answered with the first. After
 * VM_PAUSE_LIMIT_MS clients are told that it failed: storage that hangs can hold
 * a vCPU or a device for as long as it likes. The pause itself goes on.
 */
void vm_pause(struct vm *vm, control_done_fn done, void *arg);
void vm_resume(struct vm *vm, control_done_fn done, void *arg);
/*
 * Main thread, any phase: on_end follows once every vCPU has left, or after
 * VM_END_LIMIT_MS with the phase still STOPPING.
 */
void vm_end(struct vm *vm, enum vm_end_reason reason);

/* Any thread: the guest or a vCPU asks for the end. The first reason wins. */
void vm_request_end(struct vm *vm, enum vm_end_reason reason);

/* From vCPU threads: what was asked of it is done. */
void vm_vcpu_parked(struct vcpu *v);
void vm_vcpu_stopped(struct vcpu *v);

/* control.c: answers and frees updates that the end of the VM has overtaken. */
void control_drop_patches(struct vm *vm);

#endif
