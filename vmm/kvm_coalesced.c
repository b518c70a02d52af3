/*
 * The ring of coalesced writes. Threads and locks: see kvm_coalesced.h.
 */
#include "vmm/kvm_coalesced.h"

#include <string.h>
#include <unistd.h>

#include "vmm/base/bits.h"

/* Of VMs whose KVM has no ring. It is only read. */
static struct kvm_coalesced_mmio_ring empty;

void kvm_coalesced_init(struct kvm_coalesced *c)
{
	memset(c, 0, sizeof(*c));
	c->ring = &empty;
	lock_init(&c->lock, LOCK_LEVEL_BUS, "coalesced writes", "");
}

void kvm_coalesced_fini(struct kvm_coalesced *c)
{
	lock_fini(&c->lock);
}

void kvm_coalesced_attach(struct kvm_coalesced *c, struct kvm_fd kvm, struct kvm_fd vm,
			  struct kvm_run *run, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int at = kvm_check_extension(kvm, KVM_CAP_COALESCED_MMIO); /* page of the mapping */

	if (at <= 0 || ((size_t)at + 1) * page > bytes)
		return;
	c->ring = (struct kvm_coalesced_mmio_ring *)((char *)run + (size_t)at * page);
	c->entries = (uint32_t)((page - sizeof(*c->ring)) / sizeof(c->ring->coalesced_mmio[0]));
	c->vm = vm;
	c->has_mmio = true;
	c->has_pio = kvm_check_extension(kvm, KVM_CAP_COALESCED_PIO) > 0;
}

void kvm_coalesced_detach(struct kvm_coalesced *c)
{
	c->ring = &empty;
	c->has_mmio = false;
	c->has_pio = false;
}

int kvm_coalesced_add(struct kvm_coalesced *c, enum bus_kind kind, uint64_t address,
		      uint32_t bytes)
{
	if (kind == BUS_PIO ? !c->has_pio : !c->has_mmio)
		return 0;
	return kvm_coalesced_zone(c->vm, kind == BUS_PIO, address, bytes, true);
}

/* All but single bytes to a port. */
static __attribute__((noinline)) void carry_out_any(const struct kvm_coalesced_mmio *e,
						    struct bus_lookup *l)
{
	uint64_t value;

	memcpy(&value, e->data, sizeof(value));
	(void)bus_write(l, e->pio ? BUS_PIO : BUS_MMIO, e->phys_addr, e->len,
			value & mask_of_bytes(e->len));
}

static inline void carry_out(const struct kvm_coalesced_mmio *e, struct bus_lookup *l)
{
	if (__builtin_expect(e->len == 1 && e->pio, 1))
		(void)bus_write(l, BUS_PIO, e->phys_addr, 1, e->data[0]);
	else
		carry_out_any(e, l);
}

/*
 * `first` is ours, `last` the kernel's, which fills an entry before it moves on
 * and reads `first` to see what is free.
 */
void kvm_coalesced_drain(struct kvm_coalesced *c, struct bus_lookup *l)
{
	struct kvm_coalesced_mmio_ring *ring = c->ring;
	uint32_t entries = c->entries, first, last;

	lock_take(&c->lock);
	first = ring->first;
	last = __atomic_load_n(&ring->last, __ATOMIC_ACQUIRE);
	if (last >= entries)
		last = first; /* KVM's word on it is checked */
	while (first != last && first < entries) {
		carry_out(&ring->coalesced_mmio[first], l);
		first = first + 1 == entries ? 0 : first + 1;
		__atomic_store_n(&ring->first, first, __ATOMIC_RELEASE);
	}
	lock_release(&c->lock);
}
