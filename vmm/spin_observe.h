/*
 * What is seen of a VM's spinning from outside the guest: KVM's statistics and
 * the host's scheduler, vCPU by vCPU.
 *
 * Threads: main. Locks: none. Nothing here waits for a vCPU.
 */
#ifndef LULL_SPIN_OBSERVE_H
#define LULL_SPIN_OBSERVE_H

#include "vmm/base/error.h"
#include "vmm/kvm_stats.h"
#include "vmm/metrics.h"
#include "vmm/spin_report.h"

struct vm;

/* Sums over the vCPUs, brought up to date when a line of metrics is written. */
struct spin_metrics {
	metric run_ns;
	metric run_delay_ns;
	metric exits;
	metric spin_exits;
	metric halts;
	metric halt_polls;
	metric halt_polls_successful;
	metric halt_poll_wasted_ns;
	metric halt_wait_ns;
	metric directed_yields;
	metric directed_yields_successful;
	metric halt_poll_ns;      /* KVM's limit now */
	metric halt_poll_changes; /* by the controller */
	metric classifications;   /* changes of what the controller calls the VM's state */
};

struct spin_observer {
	struct kvm_stats vm;
	struct kvm_stats vcpus[LIMIT_VCPUS];
	struct spin_metrics metrics;
};

void spin_observer_init(struct spin_observer *o);

/*
 * Opens the statistics of the VM and its vCPUs, whose threads do not run yet. A
 * kernel without them is no error; -ENOMEM is.
 */
int spin_observe(struct vm *vm, struct error *err);
/* Before the vCPUs are freed. */
void spin_observe_end(struct vm *vm);

/* Reads everything about one vCPU anew; what cannot be read is 0. */
void spin_sample_take(struct vm *vm, uint32_t index, struct spin_sample *ret);

/* Adds the numbers of one to another's. */
void spin_sample_add(struct spin_sample *sum, const struct spin_sample *s);

/* All host checks there are. */
void spin_check_host(const struct vm *vm, struct spin_checks *ret);

#endif
