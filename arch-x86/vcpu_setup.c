/*
 * First register state. Threads: the vCPU's own. Locks: none.
 * Not here: what lies in memory for it (boot_linux.c, boot_pvh.c).
 */
#include "arch-x86/vcpu_setup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch-x86/arch_vm.h"
#include "arch-x86/gdt.h"
#include "arch-x86/kvm_x86.h"
#include "arch-x86/layout.h"
#include "vmm/arch.h"
#include "vmm/base/bits.h"
#include "vmm/base/cleanup.h"
#include "vmm/base/log.h"
#include "vmm/vcpu.h"
#include "vmm/vm.h"

#define CR0_PE BIT(0)
#define CR0_ET BIT(4)
#define CR0_PG BIT(31)
#define CR4_PAE BIT(5)
#define EFER_LME BIT(8)
#define EFER_LMA BIT(10)
#define RFLAGS_ALWAYS_ONE BIT(1)

#define MSR_MISC_ENABLE 0x1A0
#define MISC_ENABLE_FAST_STRING BIT(0)
#define MSR_MTRR_DEF_TYPE 0x2FF
#define MTRR_ENABLED_WRITE_BACK 0x806 /* no ranges needed: all memory is write-back */
#define MSR_K7_HWCR 0xC0010015
#define HWCR_TSC_FREQ_SEL BIT(24)

/* Offsets in the local APIC's page */
#define APIC_LVT_LINT0 0x350
#define APIC_LVT_LINT1 0x360
#define APIC_MODE_NMI (4u << 8)
#define APIC_MODE_EXTINT (7u << 8)
#define APIC_MODE_MASK (7u << 8)
#define APIC_LVT_MASKED BIT(16)

static bool tsc_freq_sel(struct vcpu *v)
{
	struct kvm_x86_msrs m = { 0 };

	if (kvm_x86_msrs_add(&m, MSR_K7_HWCR, 0) < 0 || kvm_get_msrs(v->fd, &m) != 1)
		return false;
	return m.entries[0].data & HWCR_TSC_FREQ_SEL;
}

/* Also gives the states that this vCPU's XCR0 may have. */
static int setup_cpuid(struct vcpu *v, uint64_t *ret_states, struct error *err)
{
	const struct arch_vm *arch = v->vm->arch;
	struct cpuid_config config = {
		.topology = &v->vm->topology,
		.index = v->index,
		.tsc_deadline = arch->tsc_deadline,
		.pv_hidden = arch->pv_hidden,
		.pv_hints = arch->pv_hints,
	};
	_cleanup_free_ struct cpuid_table *t = malloc(sizeof(*t));
	int ret;

	if (!t)
		return error_set(err, -ENOMEM, "vCPU %u: no memory", v->index);
	*t = arch->supported;
	ret = kvm_get_tsc_khz(v->fd);
	config.tsc_khz = ret > 0 ? (uint32_t)ret : 0;
	if (cpuid_vendor(t) == CPUID_AMD)
		config.tsc_freq_sel = tsc_freq_sel(v);
	ret = cpuid_build(t, &config, err);
	if (ret < 0)
		return ret;
	ret = kvm_set_cpuid2(v->fd, t);
	if (ret < 0)
		return error_set_errno(err, ret, "vCPU %u: KVM_SET_CPUID2", v->index);
	ret = arch->enforce_pv ? kvm_enforce_pv_cpuid(v->fd) : 0;
	if (ret < 0)
		return error_set_errno(err, ret, "vCPU %u: KVM_CAP_ENFORCE_PV_FEATURE_CPUID",
				       v->index);
	*ret_states = cpuid_xsave_states(t);
	return 0;
}

static int setup_msrs(struct vcpu *v, struct error *err)
{
	struct kvm_x86_msrs old = { 0 }, m = { 0 };
	int ret;

	/* the other bits say which counters are missing; KVM has set them */
	ret = kvm_x86_msrs_add(&old, MSR_MISC_ENABLE, 0);
	if (ret == 0 && kvm_get_msrs(v->fd, &old) != 1)
		old.entries[0].data = 0;
	ret = ret ?: kvm_x86_msrs_add(&m, MSR_MISC_ENABLE,
				      old.entries[0].data | MISC_ENABLE_FAST_STRING);
	ret = ret ?: kvm_x86_msrs_add(&m, MSR_MTRR_DEF_TYPE, MTRR_ENABLED_WRITE_BACK);
	if (ret == 0)
		ret = kvm_set_msrs(v->fd, &m);
	if (ret < 0)
		return error_set_errno(err, ret, "vCPU %u: KVM_SET_MSRS", v->index);
	if ((uint32_t)ret != m.count)
		return error_set(err, -ENOTSUP, "vCPU %u: KVM does not take MSR 0x%x", v->index,
				 m.entries[ret].index);
	return 0;
}

static void lapic_set(struct kvm_lapic_state *s, unsigned offset, uint32_t mode)
{
	uint32_t old = load_le32(s->regs + offset);

	store_le32(s->regs + offset, (old & ~(APIC_MODE_MASK | APIC_LVT_MASKED)) | mode);
}

/*
 * The PIC's interrupts come in at LINT0, non-maskable ones at LINT1. Of the first
 * vCPU only: the guest's INIT masks what the others' pins were set to.
 */
static int setup_lapic(struct vcpu *v, struct error *err)
{
	struct kvm_lapic_state s;
	int ret = kvm_get_lapic(v->fd, &s);

	if (ret < 0)
		return error_set_errno(err, ret, "vCPU %u: KVM_GET_LAPIC", v->index);
	lapic_set(&s, APIC_LVT_LINT0, APIC_MODE_EXTINT);
	lapic_set(&s, APIC_LVT_LINT1, APIC_MODE_NMI);
	ret = kvm_set_lapic(v->fd, &s);
	if (ret < 0)
		return error_set_errno(err, ret, "vCPU %u: KVM_SET_LAPIC", v->index);
	return 0;
}

/*
 * All states that the guest may have, where a processor begins with 1 (x87).
 * Needed for hosts that are themselves emulated by QEMU without KVM: it does not
 * intercept a nested guest's XSETBV, so KVM does not see it and goes on telling
 * the size of state 1 in leaf 0xD, at which Linux warns and does without XSAVE.
 * Such a host looks like any other, hence always. A guest can notice: XGETBV and
 * leaf 0xD's EBX show all states before its first XSETBV, as after a firmware
 * that has switched them on; whoever writes XCR0 before use sees no difference.
 */
static void setup_xcr0(struct vcpu *v, uint64_t states)
{
	int ret = states ? kvm_set_xcr0(v->fd, states) : 0;

	if (ret < 0) /* what KVM has, the one that every guest begins with, is fine too */
		log_debug("vCPU %u: KVM_SET_XCRS: error %d", v->index, -ret);
}

void vcpu_setup_sregs(struct kvm_sregs *s, enum boot_protocol protocol)
{
	bool long_mode = protocol == BOOT_LINUX64;

	s->cs = gdt_code(long_mode);
	s->ds = s->es = s->fs = s->gs = s->ss = gdt_data();
	s->tr = gdt_tss();
	s->gdt.base = LAYOUT_GDT;
	s->gdt.limit = GDT_ENTRIES * 8 - 1;
	s->idt.base = 0;
	s->idt.limit = 0;
	s->cr0 = CR0_PE | CR0_ET;
	s->cr4 = 0;
	s->efer = 0;
	if (long_mode) {
		s->cr0 |= CR0_PG;
		s->cr3 = LAYOUT_PML4;
		s->cr4 = CR4_PAE;
		s->efer = EFER_LME | EFER_LMA;
	}
}

void vcpu_setup_regs(struct kvm_regs *r, const struct boot_start *start)
{
	memset(r, 0, sizeof(*r));
	r->rip = start->entry;
	r->rflags = RFLAGS_ALWAYS_ONE;
	if (start->protocol == BOOT_PVH) {
		r->rbx = start->info;
	} else {
		r->rsi = start->info;
		r->rsp = r->rbp = LAYOUT_STACK;
	}
}

static int setup_start(struct vcpu *v, struct error *err)
{
	const struct boot_start *start = &v->vm->arch->start;
	struct kvm_sregs sregs;
	struct kvm_regs regs;
	int ret = kvm_get_sregs(v->fd, &sregs);

	if (ret < 0)
		return error_set_errno(err, ret, "vCPU %u: KVM_GET_SREGS", v->index);
	vcpu_setup_sregs(&sregs, start->protocol);
	ret = kvm_set_sregs(v->fd, &sregs);
	if (ret < 0)
		return error_set_errno(err, ret, "vCPU %u: KVM_SET_SREGS", v->index);
	vcpu_setup_regs(&regs, start);
	ret = kvm_set_regs(v->fd, &regs);
	if (ret < 0)
		return error_set_errno(err, ret, "vCPU %u: KVM_SET_REGS", v->index);
	return 0;
}

int arch_vcpu_setup(struct vcpu *v, struct error *err)
{
	uint64_t states = 0;
	int ret = setup_cpuid(v, &states, err);

	if (ret == 0)
		ret = setup_msrs(v, err);
	if (ret == 0)
		setup_xcr0(v, states);
	if (ret < 0 || v->index > 0)
		return ret;
	ret = setup_lapic(v, err);
	return ret ?: setup_start(v, err);
}
