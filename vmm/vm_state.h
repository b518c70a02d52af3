/*
 * The life cycle: one table of transitions, and what holds in each state.
 *
 *	CONFIGURING -> STARTING -> RUNNING <-> PAUSING -> PAUSED -> RESUMING -> RUNNING
 *	     ^            |            \          |          |
 *	     `- (failed) -'             `-------> STOPPING <-'  -> ENDED
 *
 * (1) CONFIGURING: nothing of KVM exists; host files of the configuration are open.
 * (2) STARTING: the VM is being built on the main thread; no vCPU has run.
 * (3) RUNNING: vCPUs run or are about to; devices serve their queues.
 * (4) PAUSING: vCPUs are asked to park; then devices are asked to quiesce.
 * (5) PAUSED: no vCPU is in KVM_RUN, no device thread touches guest memory.
 * (6) RESUMING: devices are asked to serve again; then vCPUs are let go.
 * (7) STOPPING: vCPUs are asked to leave; none has begun a new KVM_RUN once it saw that.
 * (8) ENDED: every vCPU has left its loop for good. The reason does not change.
 *
 * Main thread only.
 */
#ifndef LULL_VM_STATE_H
#define LULL_VM_STATE_H

#include <stdbool.h>

enum vm_phase {
	VM_CONFIGURING,
	VM_STARTING,
	VM_RUNNING,
	VM_PAUSING,
	VM_PAUSED,
	VM_RESUMING,
	VM_STOPPING,
	VM_ENDED,
	VM_PHASES,
};

enum vm_end_reason {
	VM_END_NONE,
	VM_END_GUEST_POWEROFF,
	VM_END_GUEST_RESET,
	VM_END_GUEST_TRIPLE_FAULT,
	VM_END_STOPPED,         /* a client or a signal asked */
	VM_END_VCPU_FAILED,     /* KVM could not run a vCPU */
	VM_END_MEMORY_LOST,     /* memory behind guest RAM is gone */
	VM_END_INTERNAL,
	VM_END_REASONS,
};

struct vm_state {
	enum vm_phase phase;
	enum vm_end_reason reason;
};

void vm_state_init(struct vm_state *s);
/* False, and no change, if the table does not have that transition. */
bool vm_state_move(struct vm_state *s, enum vm_phase to);
const char *vm_phase_name(enum vm_phase phase);
const char *vm_end_reason_name(enum vm_end_reason reason);
/* Exit status of the process: 0 where the guest or a client ended the VM, else 1. */
int vm_end_exit_status(enum vm_end_reason reason);

#endif
