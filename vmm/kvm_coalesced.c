/*
 * The ring of coalesced writes. Threads and locks: see kvm_coalesced.h.
 */
#include "vmm/kvm_coalesced.h"

#include <string.h>
#include <unistd.h>

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

static size_t ring_entries(void)
{
	return ((size_t)sysconf(_SC_PAGESIZE) - sizeof(struct kvm_coalesced_mmio_ring)) /
	       sizeof(struct kvm_coalesced_mmio);
}

void kvm_coalesced_attach(struct kvm_coalesced *c, struct kvm_fd kvm, struct kvm_fd vm,
			  struct kvm_run *run, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int at = kvm_check_extension(kvm, KVM_CAP_COALESCED_MMIO); /* page of the mapping */

	if (at <= 0 || ((size_t)at + 1) * page > bytes)
		return;
	c->ring = (struct kvm_coalesced_mmio_ring *)((char *)run + (size_t)at * page);
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

static void carry_out(const struct kvm_coalesced_mmio *e, struct bus_lookup *l)
{
	uint64_t value = 0;

	if (e->len > sizeof(e->data))
		return;
	memcpy(&value, e->data, e->len);
	(void)bus_write(l, e->pio ? BUS_PIO : BUS_MMIO, e->phys_addr, e->len, value);
}

/*
 * `first` is ours, `last` the kernel's, which fills an entry before it moves on
 * and reads `first` to see what is free.
 */
void kvm_coalesced_drain(struct kvm_coalesced *c, struct bus_lookup *l)
{
	struct kvm_coalesced_mmio_ring *ring = c->ring;
	size_t entries = ring_entries();
	uint32_t first, last;

	lock_take(&c->lock);
	first = ring->first;
	last = __atomic_load_n(&ring->last, __ATOMIC_ACQUIRE);
	while (first != last && first < entries && last < entries) {
		carry_out(&ring->coalesced_mmio[first], l);
		first = (first + 1) % (uint32_t)entries;
		__atomic_store_n(&ring->first, first, __ATOMIC_RELEASE);
	}
	lock_release(&c->lock);
}
