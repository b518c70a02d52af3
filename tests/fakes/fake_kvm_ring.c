/*
 * The fake KVM's coalesced writes: zones, and the ring of a VM, which every
 * vCPU of it has as the third page of its mapping.
 *
 * As the kernel: a write that lies wholly in a zone is put in the ring and is
 * no exit, unless the ring is full; a read is always an exit. A string write
 * goes to the ring item by item. If not even the first fits, all of it is one
 * exit; if a later one does not, the rest is lost.
 *
 * Locks: fake.lock, for the producer's side. The consumer is who drains the
 * ring: `first` is loaded with acquire, `last` stored with release.
 */
#include "fake_kvm_impl.h"

#include <errno.h>
#include <string.h>
#include <sys/shm.h>
#include <unistd.h>

#define RING_ENTRIES \
	((FAKE_PAGE - sizeof(struct kvm_coalesced_mmio_ring)) / sizeof(struct kvm_coalesced_mmio))

int fake_ring_init(struct fake_vm *vm)
{
	vm->ring_shm = shmget(IPC_PRIVATE, FAKE_PAGE, 0600);
	if (vm->ring_shm < 0)
		return -errno;
	vm->ring = shmat(vm->ring_shm, NULL, 0);
	(void)shmctl(vm->ring_shm, IPC_RMID, NULL); /* goes with its last mapping */
	return vm->ring == (void *)-1 ? -ENOMEM : 0;
}

void fake_ring_fini(struct fake_vm *vm)
{
	shmdt(vm->ring);
}

static bool inside(const struct kvm_coalesced_mmio_zone *zone, uint64_t address, uint32_t bytes)
{
	return address + bytes >= address && address >= zone->addr &&
	       address + bytes <= zone->addr + zone->size;
}

static int add_zone_locked(struct fake_vm *vm, const struct kvm_coalesced_mmio_zone *zone)
{
	if (vm->zone_count == FAKE_ZONES)
		return -ENOSPC;
	vm->zones[vm->zone_count++] = *zone;
	return 0;
}

/* All that the range lies in; none is no error. */
static int remove_zones_locked(struct fake_vm *vm, const struct kvm_coalesced_mmio_zone *zone)
{
	unsigned i, kept = 0;

	for (i = 0; i < vm->zone_count; i++) {
		if (vm->zones[i].pio != zone->pio || !inside(&vm->zones[i], zone->addr, zone->size))
			vm->zones[kept++] = vm->zones[i];
	}
	vm->zone_count = kept;
	return 0;
}

int fake_zone_locked(struct fake_vm *vm, const struct kvm_coalesced_mmio_zone *zone, bool on)
{
	if (!fake_check_extension(KVM_CAP_COALESCED_MMIO))
		return -ENOTTY;
	if (zone->pio > 1)
		return -EINVAL;
	if (zone->pio && !fake_check_extension(KVM_CAP_COALESCED_PIO)) {
		/* A kernel that knows no such ports takes them for memory, and says nothing. */
		fake_mismatch_locked("coalesced zone of port 0x%llx without the capability",
				     (unsigned long long)zone->addr);
		return -EINVAL;
	}
	return on ? add_zone_locked(vm, zone) : remove_zones_locked(vm, zone);
}

static bool in_a_zone_locked(const struct fake_vm *vm, bool pio, uint64_t address, uint32_t width)
{
	unsigned i;

	for (i = 0; i < vm->zone_count; i++) {
		if (vm->zones[i].pio == pio && inside(&vm->zones[i], address, width))
			return true;
	}
	return false;
}

/* False if the ring is full, or its consumer has spoilt it. */
static bool put_locked(struct kvm_coalesced_mmio_ring *ring, bool pio, uint64_t address,
		       const void *data, uint32_t width)
{
	uint32_t first = __atomic_load_n(&ring->first, __ATOMIC_ACQUIRE);
	uint32_t last = __atomic_load_n(&ring->last, __ATOMIC_RELAXED);
	struct kvm_coalesced_mmio *entry;

	if (last >= RING_ENTRIES || (last + 1) % RING_ENTRIES == first)
		return false;
	entry = &ring->coalesced_mmio[last];
	entry->phys_addr = address;
	entry->len = width;
	entry->pio = pio;
	memcpy(entry->data, data, width);
	__atomic_store_n(&ring->last, (uint32_t)((last + 1) % RING_ENTRIES), __ATOMIC_RELEASE);
	return true;
}

bool fake_coalesce_locked(struct fake_vcpu *v, bool pio, uint64_t address, const void *data,
			  uint32_t width, uint32_t items)
{
	struct fake_totals *totals = &fake.totals[v->index];
	const uint8_t *item = data;
	uint32_t put = 0;

	if (!in_a_zone_locked(v->vm, pio, address, width))
		return false;
	while (put < items && put_locked(v->vm->ring, pio, address, item, width)) {
		item += width;
		put++;
	}
	atomic_fetch_add(&totals->coalesced, put);
	atomic_fetch_add(&totals->ring_full, put < items);
	return put > 0;
}
