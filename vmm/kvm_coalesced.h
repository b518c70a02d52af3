/*
 * Coalesced writes: the kernel notes a guest's writes to registers that only
 * select or that nobody needs at once (the index of the clock, the delay port)
 * in a ring that it shares with us, without an exit. They are carried out
 * before the next exit of any vCPU is handled, so no guest can tell.
 *
 * There is one ring a VM, and any vCPU may be the one that finds it filled.
 *
 * Threads: made on the main thread before vCPUs run; drained on vCPU threads.
 * Locks: c->lock (level BUS) while the ring is drained. A register whose writes
 * are coalesced takes no lock to be written, and has no bus_action.
 */
#ifndef LULL_KVM_COALESCED_H
#define LULL_KVM_COALESCED_H

#include <linux/kvm.h>
#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/lock.h"
#include "vmm/bus.h"
#include "vmm/kvm.h"

struct kvm_coalesced {
	/* constant while vCPUs run; an empty ring of our own where KVM has none */
	struct kvm_coalesced_mmio_ring *ring;
	uint32_t entries; /* that it holds */
	bool has_pio, has_mmio;
	struct kvm_fd vm;

	struct lock lock;
};

void kvm_coalesced_init(struct kvm_coalesced *c);
void kvm_coalesced_fini(struct kvm_coalesced *c);

/*
 * Finds the ring in the mapping of a vCPU, `bytes` long. Without one nothing is
 * coalesced, and every write is an exit.
 */
void kvm_coalesced_attach(struct kvm_coalesced *c, struct kvm_fd kvm, struct kvm_fd vm,
			  struct kvm_run *run, size_t bytes);
/* Before the mapping goes away. */
void kvm_coalesced_detach(struct kvm_coalesced *c);
/* Has writes to `bytes` bytes at `address` coalesced, where KVM can. 0 or a negative errno. */
int kvm_coalesced_add(struct kvm_coalesced *c, enum bus_kind kind, uint64_t address,
		      uint32_t bytes);

/* A vCPU's thread, before an exit is handled. */
static inline bool kvm_coalesced_is_pending(const struct kvm_coalesced_mmio_ring *ring)
{
	return __atomic_load_n(&ring->first, __ATOMIC_RELAXED) !=
	       __atomic_load_n(&ring->last, __ATOMIC_RELAXED);
}

/* Carries out what the ring holds. When it returns, that has been done, by whomever. */
void kvm_coalesced_drain(struct kvm_coalesced *c, struct bus_lookup *l);

#endif
