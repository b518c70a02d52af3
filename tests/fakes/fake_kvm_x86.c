/*
 * The fake KVM's x86 part: CPUID tables of two hosts, MSRs, and registers that
 * are kept as they were set.
 */
#include "fake_kvm_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KHZ 2450000

struct leaf {
	uint32_t function, index, indexed, eax, ebx, ecx, edx;
};

/* Four characters of a CPUID string. */
#define CHARS(a, b, c, d) \
	((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

static const struct leaf intel[] = {
	{ 0x0, 0, 0, 0x16, CHARS('G', 'e', 'n', 'u'), CHARS('n', 't', 'e', 'l'),
	  CHARS('i', 'n', 'e', 'I') },
	{ 0x1, 0, 0, 0x00050654, 0x00200800, 0xf6fa3203, 0x0f8bfbff },
	{ 0x2, 0, 0, 0x76036301, 0x00f0b5ff, 0, 0x00c30000 },
	{ 0x4, 0, 1, 0x1c004121, 0x01c0003f, 0x3f, 0 },
	{ 0x4, 1, 1, 0x1c004122, 0x01c0003f, 0x3f, 0 },
	{ 0x4, 2, 1, 0x1c004143, 0x03c0003f, 0x3ff, 0 },
	{ 0x4, 3, 1, 0x1c03c163, 0x0280003f, 0x6fff, 4 },
	{ 0x6, 0, 0, 0x4, 0, 0, 0 },
	{ 0x7, 0, 1, 0, 0x019c07a9, 0x00400004, 0xac000400 },
	{ 0xa, 0, 0, 0x07300402, 0, 0, 0x603 },
	{ 0xb, 0, 1, 1, 2, 0x100, 0 },
	{ 0xb, 1, 1, 5, 32, 0x201, 0 },
	{ 0xd, 0, 1, 0x7, 0x340, 0x340, 0 },
	{ 0xd, 1, 1, 0xf, 0x340, 0, 0 },
	{ 0xd, 2, 1, 0x100, 0x240, 0, 0 },
	{ 0x15, 0, 0, 2, 196, 25000000, 0 },
	{ 0x16, 0, 0, 2450, 3500, 100, 0 },
	{ 0x40000000, 0, 0, 0x40000001, CHARS('K', 'V', 'M', 'K'), CHARS('V', 'M', 'K', 'V'),
	  CHARS('M', 0, 0, 0) },
	{ 0x40000001, 0, 0, 0x01007afb, 0, 0, 0 },
	{ 0x80000000, 0, 0, 0x80000008, 0, 0, 0 },
	{ 0x80000001, 0, 0, 0, 0, 0x121, 0x2c100800 },
	{ 0x80000002, 0, 0, CHARS('F', 'a', 'k', 'e'), CHARS(' ', 'X', 'e', 'o'),
	  CHARS('n', 0, 0, 0), 0 },
	{ 0x80000003, 0, 0, 0, 0, 0, 0 },
	{ 0x80000004, 0, 0, 0, 0, 0, 0 },
	{ 0x80000006, 0, 0, 0, 0, 0x01006040, 0 },
	{ 0x80000007, 0, 0, 0, 0, 0, 0x100 },
	{ 0x80000008, 0, 0, 0x302e, 0, 0, 0 },
};

static const struct leaf amd[] = {
	{ 0x0, 0, 0, 0x10, CHARS('A', 'u', 't', 'h'), CHARS('c', 'A', 'M', 'D'),
	  CHARS('e', 'n', 't', 'i') },
	{ 0x1, 0, 0, 0x00830f10, 0x00200800, 0xf6f83203, 0x078bfbff },
	{ 0x5, 0, 0, 0, 0, 0, 0 },
	{ 0x6, 0, 0, 0x4, 0, 0, 0 },
	{ 0x7, 0, 1, 0, 0x219c03a9, 0x00400004, 0 },
	{ 0xb, 0, 1, 1, 2, 0x100, 0 },
	{ 0xb, 1, 1, 5, 32, 0x201, 0 },
	{ 0xd, 0, 1, 0x7, 0x340, 0x340, 0 },
	{ 0xd, 1, 1, 0xf, 0x340, 0, 0 },
	{ 0xd, 2, 1, 0x100, 0x240, 0, 0 },
	{ 0x40000000, 0, 0, 0x40000001, CHARS('K', 'V', 'M', 'K'), CHARS('V', 'M', 'K', 'V'),
	  CHARS('M', 0, 0, 0) },
	{ 0x40000001, 0, 0, 0x01007afb, 0, 0, 0 },
	{ 0x80000000, 0, 0, 0x80000021, CHARS('A', 'u', 't', 'h'), CHARS('c', 'A', 'M', 'D'),
	  CHARS('e', 'n', 't', 'i') },
	{ 0x80000001, 0, 0, 0x00830f10, 0, 0x004003f3, 0x2fd3fbff },
	{ 0x80000002, 0, 0, CHARS('F', 'a', 'k', 'e'), CHARS(' ', 'E', 'P', 'Y'),
	  CHARS('C', 0, 0, 0), 0 },
	{ 0x80000003, 0, 0, 0, 0, 0, 0 },
	{ 0x80000004, 0, 0, 0, 0, 0, 0 },
	{ 0x80000005, 0, 0, 0xff40ff40, 0xff40ff40, 0x20080140, 0x20080140 },
	{ 0x80000006, 0, 0, 0x48006400, 0x68006400, 0x02006140, 0x00809140 },
	{ 0x80000007, 0, 0, 0, 0, 0, 0x100 },
	{ 0x80000008, 0, 0, 0x3030, 0x1000, 0x5007, 0 },
	{ 0x8000000a, 0, 0, 1, 8, 0, 0x9 },
	{ 0x80000019, 0, 0, 0xf040f040, 0, 0, 0 },
	{ 0x8000001a, 0, 0, 0x6, 0, 0, 0 },
	{ 0x8000001d, 0, 1, 0x4121, 0x01c0003f, 0x3f, 0 },
	{ 0x8000001d, 1, 1, 0x4122, 0x01c0003f, 0x3f, 0 },
	{ 0x8000001d, 2, 1, 0x4143, 0x01c0003f, 0x3ff, 2 },
	{ 0x8000001d, 3, 1, 0x1c163, 0x03c0003f, 0x3fff, 1 },
	{ 0x8000001e, 0, 0, 0, 0x100, 0, 0 },
	{ 0x80000021, 0, 0, 0x44, 0, 0, 0 },
};

/* State that is kept as one block: a GET gives what the last SET took. */
static const struct {
	unsigned long get, set;
	bool of_vm;
} states[] = {
	{ KVM_GET_REGS, KVM_SET_REGS },
	{ KVM_GET_SREGS, KVM_SET_SREGS },
	{ KVM_GET_FPU, KVM_SET_FPU },
	{ KVM_GET_LAPIC, KVM_SET_LAPIC },
	{ KVM_GET_XSAVE, KVM_SET_XSAVE },
	{ KVM_GET_XCRS, KVM_SET_XCRS },
	{ KVM_GET_VCPU_EVENTS, KVM_SET_VCPU_EVENTS },
	{ KVM_GET_DEBUGREGS, KVM_SET_DEBUGREGS },
	{ KVM_GET_MP_STATE, KVM_SET_MP_STATE },
	{ KVM_GET_CLOCK, KVM_SET_CLOCK, true },
	{ KVM_GET_PIT2, KVM_SET_PIT2, true },
};

static const uint32_t msr_indices[] = {
	0x10,       0x174,      0x175,      0x176,      0x1a0,      0x277,      0x2ff,
	0x3a,       0x3b,       0x6e0,      0x4b564d00, 0x4b564d01, 0xc0000080, 0xc0000081,
	0xc0000082, 0xc0000083, 0xc0000084, 0xc0000102, 0xc0000103, 0xc0010015,
};

static int get_cpuid(struct kvm_cpuid2 *ret)
{
	const struct leaf *leaves = fake.vendor == FAKE_AMD ? amd : intel;
	uint32_t count = fake.vendor == FAKE_AMD ? sizeof(amd) / sizeof(amd[0]) :
						   sizeof(intel) / sizeof(intel[0]);
	uint32_t i;

	if (ret->nent < count)
		return -E2BIG;
	ret->nent = count;
	for (i = 0; i < count; i++) {
		const struct leaf *l = &leaves[i];

		ret->entries[i] = (struct kvm_cpuid_entry2){
			.function = l->function,
			.index = l->index,
			.flags = l->indexed ? KVM_CPUID_FLAG_SIGNIFCANT_INDEX : 0,
			.eax = l->eax,
			.ebx = l->ebx,
			.ecx = l->ecx,
			.edx = l->edx,
		};
	}
	return 0;
}

static int get_msr_list(struct kvm_msr_list *ret)
{
	uint32_t count = sizeof(msr_indices) / sizeof(msr_indices[0]);
	bool fits = ret->nmsrs >= count;

	ret->nmsrs = count;
	if (fits)
		memcpy(ret->indices, msr_indices, sizeof(msr_indices));
	return fits ? 0 : -E2BIG;
}

int fake_arch_system(unsigned long request, void *arg)
{
	switch (request) {
	case KVM_GET_SUPPORTED_CPUID:
		return get_cpuid(arg);
	case KVM_GET_MSR_INDEX_LIST:
		return get_msr_list(arg);
	default:
		return -ENOTTY;
	}
}

/* What a vCPU has after its reset, where a zero is not it. */
static void reset_values(const struct fake_vcpu *v, unsigned long request, void *arg)
{
	if (request == KVM_GET_SREGS) {
		struct kvm_sregs *s = arg;

		s->cr0 = 0x60000010;
		s->cs = (struct kvm_segment){ .base = 0xffff0000, .limit = 0xffff,
					      .selector = 0xf000, .type = 0xb, .present = 1,
					      .s = 1 };
		s->apic_base = v->index ? 0xfee00800 : 0xfee00900;
	} else if (request == KVM_GET_REGS) {
		((struct kvm_regs *)arg)->rip = 0xfff0;
		((struct kvm_regs *)arg)->rflags = 2;
	} else if (request == KVM_GET_MP_STATE && v->index) {
		((struct kvm_mp_state *)arg)->mp_state = KVM_MP_STATE_UNINITIALIZED;
	} else if (request == KVM_GET_LAPIC) {
		uint32_t id = v->id << 24, version = 0x50014, masked = 0x10000;
		char *regs = ((struct kvm_lapic_state *)arg)->regs;
		unsigned at;

		memcpy(regs + 0x20, &id, sizeof(id));
		memcpy(regs + 0x30, &version, sizeof(version));
		for (at = 0x320; at <= 0x370; at += 0x10)
			memcpy(regs + at, &masked, sizeof(masked));
	}
}

/* `v` is NULL for the states of a VM. */
static int state_ioctl(void **blocks, const struct fake_vcpu *v, unsigned long request, void *arg)
{
	size_t size = _IOC_SIZE(request), i;

	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (states[i].of_vm != !v ||
		    (states[i].get != request && states[i].set != request))
			continue;
		if (!blocks[i]) {
			blocks[i] = calloc(1, size);
			if (!blocks[i])
				return -ENOMEM;
			if (v)
				reset_values(v, states[i].get, blocks[i]);
		}
		if (states[i].set == request)
			memcpy(blocks[i], arg, size);
		else
			memcpy(arg, blocks[i], size);
		return 0;
	}
	return -ENOTTY;
}

static int check_routing(const struct fake_vm *vm, const struct kvm_irq_routing *r)
{
	uint32_t i;

	if (!vm->irqchip || r->flags)
		return -EINVAL;
	for (i = 0; i < r->nr; i++) {
		if (r->entries[i].gsi >= 4096)
			return -EINVAL;
	}
	return 0;
}

/* A range without a bitmap denies all; one with reads or writes says for which. */
static int check_msr_filter(const struct kvm_msr_filter *f)
{
	size_t i;

	if (f->flags & ~(uint32_t)KVM_MSR_FILTER_DEFAULT_DENY)
		return -EINVAL;
	for (i = 0; i < KVM_MSR_FILTER_MAX_RANGES; i++) {
		const struct kvm_msr_filter_range *r = &f->ranges[i];

		if (!r->nmsrs)
			continue;
		if (!r->bitmap || !r->flags || r->nmsrs > 0x600 * 8 ||
		    r->flags & ~(uint32_t)(KVM_MSR_FILTER_READ | KVM_MSR_FILTER_WRITE))
			return -EINVAL;
	}
	return 0;
}

int fake_arch_vm_locked(struct fake_vm *vm, unsigned long request, void *arg)
{
	switch (request) {
	case KVM_SET_TSS_ADDR:
	case KVM_SET_BOOT_CPU_ID:
		return 0;
	case KVM_SET_IDENTITY_MAP_ADDR:
		return vm->vcpu_count ? -EINVAL : 0;
	case KVM_CREATE_PIT2:
		if (!vm->irqchip)
			return -ENOENT;
		if (vm->pit)
			return -EEXIST;
		vm->pit = true;
		return 0;
	case KVM_X86_SET_MSR_FILTER:
		return check_msr_filter(arg);
	case KVM_SET_GSI_ROUTING:
		return check_routing(vm, arg);
	default:
		return state_ioctl(vm->states, NULL, request, arg);
	}
}

static struct kvm_msr_entry *find_msr(struct fake_vcpu *v, uint32_t index)
{
	unsigned i;

	for (i = 0; i < v->msr_count; i++) {
		if (v->msrs[i].index == index)
			return &v->msrs[i];
	}
	if (v->msr_count == FAKE_MSRS)
		return NULL;
	v->msrs[v->msr_count] = (struct kvm_msr_entry){ .index = index };
	return &v->msrs[v->msr_count++];
}

static int msrs_ioctl(struct fake_vcpu *v, struct kvm_msrs *m, bool set)
{
	uint32_t i;

	for (i = 0; i < m->nmsrs; i++) {
		struct kvm_msr_entry *e = find_msr(v, m->entries[i].index);

		if (!e)
			break;
		if (set)
			e->data = m->entries[i].data;
		else
			m->entries[i].data = e->data;
	}
	return (int)i;
}

static int set_cpuid(struct fake_vcpu *v, const struct kvm_cpuid2 *c)
{
	size_t size = sizeof(*c) + c->nent * sizeof(c->entries[0]);

	if (c->nent > 256)
		return -E2BIG;
	free(v->cpuid);
	v->cpuid = malloc(size);
	if (!v->cpuid)
		return -ENOMEM;
	memcpy(v->cpuid, c, size);
	return 0;
}

static int get_cpuid2(const struct fake_vcpu *v, struct kvm_cpuid2 *ret)
{
	uint32_t count = v->cpuid ? v->cpuid->nent : 0;
	bool fits = ret->nent >= count;

	ret->nent = count;
	if (fits && count)
		memcpy(ret->entries, v->cpuid->entries, count * sizeof(ret->entries[0]));
	return fits ? 0 : -E2BIG;
}

/* Halted as after HLT, or taken out of it; the next KVM_RUN sees to it. */
static int set_mp_state(struct fake_vcpu *v, struct kvm_mp_state *s)
{
	uint64_t ignored;

	while (read(v->wake_fd, &ignored, sizeof(ignored)) > 0)
		;
	v->halted = s->mp_state == KVM_MP_STATE_HALTED;
	return state_ioctl(v->states, v, KVM_SET_MP_STATE, s);
}

static int get_mp_state(struct fake_vcpu *v, struct kvm_mp_state *s)
{
	int ret = state_ioctl(v->states, v, KVM_GET_MP_STATE, s);

	if (s->mp_state == KVM_MP_STATE_HALTED && !v->halted)
		s->mp_state = KVM_MP_STATE_RUNNABLE;
	return ret;
}

int fake_arch_vcpu_locked(struct fake_vcpu *v, unsigned long request, void *arg)
{
	switch (request) {
	case KVM_SET_MP_STATE:
		return set_mp_state(v, arg);
	case KVM_GET_MP_STATE:
		return get_mp_state(v, arg);
	case KVM_ENABLE_CAP:
		return fake_enable_vcpu_cap_locked(v, arg);
	case KVM_SET_CPUID2:
		return set_cpuid(v, arg);
	case KVM_GET_CPUID2:
		return get_cpuid2(v, arg);
	case KVM_SET_MSRS:
		return msrs_ioctl(v, arg, true);
	case KVM_GET_MSRS:
		return msrs_ioctl(v, arg, false);
	case KVM_GET_TSC_KHZ:
		return KHZ;
	case KVM_SET_TSC_KHZ:
	case KVM_NMI:
	case KVM_SET_SIGNAL_MASK:
		return 0;
	case KVM_KVMCLOCK_CTRL:
		return -EINVAL; /* the guest has switched no clock on */
	default:
		return state_ioctl(v->states, v, request, arg);
	}
}

static void free_states(void **blocks)
{
	size_t i;

	for (i = 0; i < FAKE_STATES; i++)
		free(blocks[i]);
}

void fake_arch_vm_fini(struct fake_vm *vm)
{
	free_states(vm->states);
}

void fake_arch_vcpu_fini(struct fake_vcpu *v)
{
	free(v->cpuid);
	free_states(v->states);
}
