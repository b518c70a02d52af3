/*
 * The fake KVM: capabilities, and the requests to a VM that every architecture
 * has: memory slots, interrupt lines, ioeventfds, irqfds. Not here: zones of
 * coalesced writes (fake_kvm_ring.c).
 */
#include "fake_kvm_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static struct {
	int cap;
	int value;
} caps[] = {
	{ KVM_CAP_IRQCHIP, 1 },
	{ KVM_CAP_HLT, 1 },
	{ KVM_CAP_USER_MEMORY, 1 },
	{ KVM_CAP_SET_TSS_ADDR, 1 },
	{ KVM_CAP_EXT_CPUID, 1 },
	{ KVM_CAP_NR_VCPUS, 2 },
	{ KVM_CAP_NR_MEMSLOTS, 32764 },
	{ KVM_CAP_MP_STATE, 1 },
	{ KVM_CAP_COALESCED_MMIO, 2 },
	{ KVM_CAP_COALESCED_PIO, 1 },
	{ KVM_CAP_SYNC_MMU, 1 },
	{ KVM_CAP_DESTROY_MEMORY_REGION_WORKS, 1 },
	{ KVM_CAP_JOIN_MEMORY_REGIONS_WORKS, 1 },
	{ KVM_CAP_USER_NMI, 1 },
	{ KVM_CAP_SET_GUEST_DEBUG, 1 },
	{ KVM_CAP_IRQ_ROUTING, 4096 },
	{ KVM_CAP_IRQFD, 1 },
	{ KVM_CAP_IRQFD_RESAMPLE, 1 },
	{ KVM_CAP_PIT2, 1 },
	{ KVM_CAP_PIT_STATE2, 1 },
	{ KVM_CAP_SET_BOOT_CPU_ID, 1 },
	{ KVM_CAP_IOEVENTFD, 1 },
	{ KVM_CAP_IOEVENTFD_ANY_LENGTH, 1 },
	{ KVM_CAP_IOEVENTFD_NO_LENGTH, 1 },
	{ KVM_CAP_SET_IDENTITY_MAP_ADDR, 1 },
	{ KVM_CAP_ADJUST_CLOCK, 0x0e },
	{ KVM_CAP_VCPU_EVENTS, 1 },
	{ KVM_CAP_DEBUGREGS, 1 },
	{ KVM_CAP_XSAVE, 1 },
	{ KVM_CAP_XSAVE2, 4096 },
	{ KVM_CAP_XCRS, 1 },
	{ KVM_CAP_ENABLE_CAP, 1 },
	{ KVM_CAP_ENABLE_CAP_VM, 1 },
	{ KVM_CAP_CHECK_EXTENSION_VM, 1 },
	{ KVM_CAP_TSC_CONTROL, 1 },
	{ KVM_CAP_GET_TSC_KHZ, 1 },
	{ KVM_CAP_TSC_DEADLINE_TIMER, 1 },
	{ KVM_CAP_MAX_VCPUS, 1024 },
	{ KVM_CAP_MAX_VCPU_ID, 4096 },
	{ KVM_CAP_KVMCLOCK_CTRL, 1 },
	{ KVM_CAP_SIGNAL_MSI, 1 },
	{ KVM_CAP_READONLY_MEM, 1 },
	{ KVM_CAP_SPLIT_IRQCHIP, 1 },
	{ KVM_CAP_X2APIC_API, 3 },
	{ KVM_CAP_IMMEDIATE_EXIT, 1 },
	{ KVM_CAP_X86_DISABLE_EXITS, 0x0f },
	{ KVM_CAP_GET_MSR_FEATURES, 1 },
	{ KVM_CAP_HALT_POLL, 1 },
	{ KVM_CAP_ENFORCE_PV_FEATURE_CPUID, 1 },
	{ KVM_CAP_BINARY_STATS_FD, 1 },
	{ KVM_CAP_STEAL_TIME, 1 },
	{ KVM_CAP_X86_USER_SPACE_MSR, 1 },
	{ KVM_CAP_X86_MSR_FILTER, 1 },
	{ KVM_CAP_MULTI_ADDRESS_SPACE, 2 },
};

int fake_check_extension(int cap)
{
	size_t i;

	for (i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		if (caps[i].cap == cap)
			return caps[i].value;
	}
	return 0;
}

void fake_kvm_set_cap(int capability, int value)
{
	size_t i;

	for (i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		if (caps[i].cap == capability)
			caps[i].value = value;
	}
}

static bool slots_overlap(const struct kvm_userspace_memory_region *a,
			  const struct kvm_userspace_memory_region *b)
{
	return a->memory_size && a->guest_phys_addr < b->guest_phys_addr + b->memory_size &&
	       b->guest_phys_addr < a->guest_phys_addr + a->memory_size;
}

static int set_slot_locked(struct fake_vm *vm, const struct kvm_userspace_memory_region *r)
{
	unsigned i;

	if (r->slot >= FAKE_SLOTS || r->flags & ~(KVM_MEM_LOG_DIRTY_PAGES | KVM_MEM_READONLY) ||
	    (r->guest_phys_addr | r->memory_size | r->userspace_addr) & 4095 ||
	    r->guest_phys_addr + r->memory_size < r->guest_phys_addr)
		return -EINVAL;
	if (!r->memory_size && !vm->slots[r->slot].memory_size)
		return -EINVAL;
	if (r->memory_size && vm->slots[r->slot].memory_size &&
	    vm->slots[r->slot].memory_size != r->memory_size)
		return -EINVAL;
	for (i = 0; r->memory_size && i < FAKE_SLOTS; i++) {
		if (i != r->slot && slots_overlap(&vm->slots[i], r))
			return -EEXIST;
	}
	vm->slots[r->slot] = *r;
	return 0;
}

void *fake_ram_locked(const struct fake_vm *vm, uint64_t gpa, uint64_t len)
{
	unsigned i;

	for (i = 0; i < FAKE_SLOTS; i++) {
		const struct kvm_userspace_memory_region *s = &vm->slots[i];

		if (gpa >= s->guest_phys_addr && gpa - s->guest_phys_addr < s->memory_size &&
		    len <= s->memory_size - (gpa - s->guest_phys_addr))
			return (void *)(uintptr_t)(s->userspace_addr + gpa - s->guest_phys_addr);
	}
	return NULL;
}

static int irq_line_locked(struct fake_vm *vm, const struct kvm_irq_level *line)
{
	struct fake_line *l;

	if (!vm->irqchip)
		return -ENXIO;
	if (line->irq >= FAKE_GSIS)
		return -EINVAL;
	l = &vm->lines[line->irq];
	if (line->level && !l->level) {
		l->pending = true;
		fake.edges[line->irq]++;
		fake_wake_vcpus_locked(vm);
	}
	l->level = line->level;
	return 0;
}

static bool same_bell(const struct kvm_ioeventfd *a, const struct kvm_ioeventfd *b)
{
	unsigned match = KVM_IOEVENTFD_FLAG_DATAMATCH, pio = KVM_IOEVENTFD_FLAG_PIO;

	return a->addr == b->addr && a->len == b->len && (a->flags & pio) == (b->flags & pio) &&
	       (!(a->flags & match) || !(b->flags & match) || a->datamatch == b->datamatch);
}

static void count_ioeventfd_locked(void)
{
	unsigned i;

	for (i = 0; i < FAKE_VCPUS; i++) {
		if (atomic_load(&fake.totals[i].runs)) {
			fake.ioeventfd_calls.after_run++;
			return;
		}
	}
	fake.ioeventfd_calls.before_run++;
}

static int ioeventfd_locked(struct fake_vm *vm, const struct kvm_ioeventfd *e)
{
	struct fake_bell *free_bell = NULL, *found = NULL;
	unsigned i;

	count_ioeventfd_locked();
	if ((e->len & (e->len - 1)) || e->len > 8 || e->addr + e->len < e->addr ||
	    (!e->len && e->flags & KVM_IOEVENTFD_FLAG_DATAMATCH))
		return -EINVAL;
	for (i = 0; i < FAKE_BELLS; i++) {
		if (!vm->bells[i].used)
			free_bell = &vm->bells[i];
		else if (same_bell(&vm->bells[i].spec, e))
			found = &vm->bells[i];
	}
	if (e->flags & KVM_IOEVENTFD_FLAG_DEASSIGN) {
		if (!found)
			return -ENOENT;
		close(found->fd);
		found->used = false;
		return 0;
	}
	if (found || !free_bell)
		return found ? -EEXIST : -ENOSPC;
	free_bell->fd = fcntl(e->fd, F_DUPFD_CLOEXEC, 0);
	if (free_bell->fd < 0)
		return -EBADF;
	free_bell->used = true;
	free_bell->spec = *e;
	return 0;
}

static int irqfd_locked(struct fake_vm *vm, const struct kvm_irqfd *e)
{
	unsigned i;

	if (!vm->irqchip || e->gsi >= FAKE_GSIS)
		return -EINVAL;
	for (i = 0; i < FAKE_IRQFDS; i++) {
		struct fake_irqfd *f = &vm->irqfds[i];

		if (e->flags & KVM_IRQFD_FLAG_DEASSIGN) {
			if (f->used && f->gsi == e->gsi)
				close(f->fd);
			f->used = f->used && f->gsi != e->gsi;
		} else if (!f->used) {
			f->fd = fcntl((int)e->fd, F_DUPFD_CLOEXEC, 0);
			f->gsi = e->gsi;
			f->used = f->fd >= 0;
			return f->used ? 0 : -EBADF;
		}
	}
	return e->flags & KVM_IRQFD_FLAG_DEASSIGN ? 0 : -ENOSPC;
}

int fake_vm_ioctl_locked(struct fake_vm *vm, unsigned long request, void *arg)
{
	switch (request) {
	case KVM_CHECK_EXTENSION:
		return fake_check_extension((int)(intptr_t)arg);
	case KVM_ENABLE_CAP:
		return fake_enable_cap_locked(vm, arg);
	case KVM_SET_USER_MEMORY_REGION:
		return set_slot_locked(vm, arg);
	case KVM_CREATE_IRQCHIP:
		if (vm->irqchip)
			return -EEXIST;
		if (vm->vcpu_count)
			return -EINVAL;
		vm->irqchip = true;
		return 0;
	case KVM_IRQ_LINE:
		return irq_line_locked(vm, arg);
	case KVM_IRQFD:
		return irqfd_locked(vm, arg);
	case KVM_IOEVENTFD:
		return ioeventfd_locked(vm, arg);
	case KVM_REGISTER_COALESCED_MMIO:
	case KVM_UNREGISTER_COALESCED_MMIO:
		return fake_zone_locked(vm, arg, request == KVM_REGISTER_COALESCED_MMIO);
	case KVM_CREATE_VCPU:
		return fake_new_vcpu_locked(vm, (uint32_t)(uintptr_t)arg);
	default:
		return fake_arch_vm_locked(vm, request, arg);
	}
}
