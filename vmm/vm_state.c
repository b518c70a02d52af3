/*
 * Life cycle table. Threads: main. Locks: none.
 */
#include "vmm/vm_state.h"

#include "vmm/base/bits.h"

static const unsigned allowed[VM_PHASES] = {
	[VM_CONFIGURING] = BIT(VM_STARTING) | BIT(VM_ENDED),
	[VM_STARTING] = BIT(VM_CONFIGURING) | BIT(VM_RUNNING) | BIT(VM_STOPPING),
	[VM_RUNNING] = BIT(VM_PAUSING) | BIT(VM_STOPPING),
	[VM_PAUSING] = BIT(VM_PAUSED) | BIT(VM_STOPPING),
	[VM_PAUSED] = BIT(VM_RESUMING) | BIT(VM_STOPPING),
	[VM_RESUMING] = BIT(VM_RUNNING) | BIT(VM_STOPPING),
	[VM_STOPPING] = BIT(VM_ENDED),
	[VM_ENDED] = 0,
};

void vm_state_init(struct vm_state *s)
{
	s->phase = VM_CONFIGURING;
	s->reason = VM_END_NONE;
}

bool vm_state_move(struct vm_state *s, enum vm_phase to)
{
	if (!(allowed[s->phase] & BIT(to)))
		return false;
	s->phase = to;
	return true;
}

const char *vm_phase_name(enum vm_phase phase)
{
	static const char *const names[VM_PHASES] = {
		[VM_CONFIGURING] = "configuring", [VM_STARTING] = "starting",
		[VM_RUNNING] = "running",         [VM_PAUSING] = "pausing",
		[VM_PAUSED] = "paused",           [VM_RESUMING] = "resuming",
		[VM_STOPPING] = "stopping",       [VM_ENDED] = "ended",
	};

	return names[phase];
}

const char *vm_end_reason_name(enum vm_end_reason reason)
{
	static const char *const names[VM_END_REASONS] = {
		[VM_END_NONE] = "",
		[VM_END_GUEST_POWEROFF] = "guest-poweroff",
		[VM_END_GUEST_RESET] = "guest-reset",
		[VM_END_GUEST_TRIPLE_FAULT] = "guest-triple-fault",
		[VM_END_STOPPED] = "stopped",
		[VM_END_VCPU_FAILED] = "vcpu-failed",
		[VM_END_MEMORY_LOST] = "memory-lost",
		[VM_END_INTERNAL] = "internal-error",
	};

	return names[reason];
}

int vm_end_exit_status(enum vm_end_reason reason)
{
	return reason >= VM_END_VCPU_FAILED ? 1 : 0;
}
