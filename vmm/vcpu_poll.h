/*
 * Parking of vCPUs that poll a register.
 *
 * A guest that reads one register over and over, with the same result and
 * nothing else in between, spins where KVM cannot see it: each read is an exit.
 * After VCPU_POLL_READS of them the vCPU is halted inside KVM (its MP state, as
 * by HLT), for a bounded time. It goes on when an interrupt is due, when the
 * device says that a register has changed (bus_watch_changed()), or when the
 * bound is over, whichever is first; the bound doubles while nothing changes.
 * The guest sees one slow read. With interrupts disabled the last two wake it.
 *
 * Only registers whose device says how long they can rest are parked on
 * (bus_ops.rests).
 *
 * Threads: the vCPU's; bus_watch_changed() on any. Locks: none.
 */
#ifndef LULL_VCPU_POLL_H
#define LULL_VCPU_POLL_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "vmm/arch.h"
#include "vmm/bus.h"

#define VCPU_POLL_READS 8             /* alike, before the vCPU is parked */
#define VCPU_POLL_GAP_NS 100000ull    /* between two of them at most, on average */
#define VCPU_POLL_FIRST_NS 50000ull   /* the first bound */
#define VCPU_POLL_LONGEST_NS 1000000ull /* the last */

struct vcpu;

/* Of one vCPU; its own thread's. */
struct vcpu_poll {
	uint64_t address; /* of the last read */
	uint64_t value;   /* that it gave */
	uint64_t since_ns; /* monotonic, of the first of those that are alike */
	uint64_t bound_ns; /* of the next parking; 0: the first */
	uint64_t generation; /* of the region's watch, before the last read */
	struct bus_watch *watch; /* of the region, once it was looked up */
	uint32_t alike;   /* reads */
	uint8_t kind;     /* enum bus_kind */
	uint8_t width;
	bool has_timer;
	volatile bool is_bounded; /* its timer may still come: for the handler of the signal */
	timer_t timer; /* kicks the thread when the bound is over */
};

/*
 * After an exit was handled: true if the vCPU is to be parked now, by
 * vcpu_poll_park().
 */
bool vcpu_poll_is_due(struct vcpu *v);
/* Parks it; what KVM_RUN returned to end that: as kvm_vcpu_run(). */
int vcpu_poll_park(struct vcpu *v);
/* When the thread ends. */
void vcpu_poll_fini(struct vcpu *v);

/* As vcpu_handle_exit(), with the look for a guest that polls. */
enum vcpu_exit_result vcpu_handle_exit_polled(struct vcpu *v);

/* Of struct bus_watch: wakes the vCPUs whose bits are set. `arg` is the VM. */
void vcpu_poll_wake(void *arg, uint64_t vcpus);

#endif
