/*
 * The x86 side of vmm/arch.h: capabilities, memory layout, interrupt
 * controllers, exits and reports of this architecture.
 *
 * Threads: per function, see vmm/arch.h. Locks: none.
 * Not here: devices (board.c), booting (boot.c), registers (vcpu_setup.c).
 */
#include "vmm/arch.h"

#include <errno.h>
#include <linux/kvm_para.h>
#include <stdio.h>
#include <stdlib.h>

#include "arch-x86/arch_vm.h"
#include "arch-x86/kvm_x86.h"
#include "arch-x86/layout.h"
#include "vmm/base/bits.h"
#include "vmm/base/log.h"
#include "vmm/vcpu.h"
#include "vmm/vm.h"

#define XAPIC_IDS 255 /* ids from here on need the x2APIC format */

int arch_check_host(struct vm *vm, struct error *err)
{
	static const struct {
		int capability;
		const char *name;
	} required[] = {
		{ KVM_CAP_USER_MEMORY, "KVM_CAP_USER_MEMORY" },
		{ KVM_CAP_SET_TSS_ADDR, "KVM_CAP_SET_TSS_ADDR" },
		{ KVM_CAP_SET_IDENTITY_MAP_ADDR, "KVM_CAP_SET_IDENTITY_MAP_ADDR" },
		{ KVM_CAP_IRQCHIP, "KVM_CAP_IRQCHIP" },
		{ KVM_CAP_PIT2, "KVM_CAP_PIT2" },
		{ KVM_CAP_EXT_CPUID, "KVM_CAP_EXT_CPUID" },
		{ KVM_CAP_IOEVENTFD, "KVM_CAP_IOEVENTFD" },
		{ KVM_CAP_IMMEDIATE_EXIT, "KVM_CAP_IMMEDIATE_EXIT" },
	};
	uint32_t i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(required); i++) {
		ret = kvm_check_extension(vm->kvm, required[i].capability);
		if (ret < 0)
			return error_set_errno(err, ret, "KVM_CHECK_EXTENSION of %s",
					       required[i].name);
		if (ret == 0)
			return error_set(err, -ENOTSUP, "this host's KVM lacks %s",
					 required[i].name);
	}
	return 0;
}

void arch_mem_layout(uint64_t bytes, struct guest_mem_range *ranges, uint32_t *ret_count)
{
	uint64_t low = bytes < LAYOUT_LOW_RAM_END ? bytes : LAYOUT_LOW_RAM_END;

	ranges[0] = (struct guest_mem_range){ .gpa = 0, .size = low };
	*ret_count = 1;
	if (bytes > low) {
		ranges[1] = (struct guest_mem_range){
			.gpa = LAYOUT_HIGH_RAM,
			.size = bytes - low,
		};
		*ret_count = 2;
	}
}

/* The end of RAM must be addressable. */
static int check_memory(struct vm *vm, struct error *err)
{
	const struct guest_mem_region *last = &vm->mem.regions[vm->mem.count - 1];
	unsigned bits = cpuid_phys_bits(&vm->arch->supported);

	if (bits < 64 && last->gpa + last->size > 1ull << bits)
		return error_set(err, -EINVAL,
				 "mem_size_mib: the host has %u physical address bits, "
				 "guest memory would end at 0x%llx",
				 bits, (unsigned long long)(last->gpa + last->size));
	return 0;
}

static int check_vcpus(struct vm *vm, uint32_t max_id, struct error *err)
{
	int max_vcpus = kvm_check_extension(vm->fd, KVM_CAP_MAX_VCPUS);
	int max_ids = kvm_check_extension(vm->fd, KVM_CAP_MAX_VCPU_ID);

	if (max_vcpus > 0 && vm->config.machine.vcpu_count > (uint32_t)max_vcpus)
		return error_set(err, -EINVAL, "vcpu_count: this host's KVM runs at most %d",
				 max_vcpus);
	if (max_ids > 0 && max_id >= (uint32_t)max_ids)
		return error_set(err, -EINVAL, "vcpu_count: APIC id %u, this host's KVM ends at %d",
				 max_id, max_ids - 1);
	return 0;
}

static int enable_caps(struct vm *vm, uint32_t max_id, struct error *err)
{
	int ret;

	/* Saves the kernel a table for ids that will not come; older kernels have it not. */
	ret = kvm_enable_vm_cap(vm->fd, KVM_CAP_MAX_VCPU_ID, max_id + 1);
	if (ret < 0)
		log_debug("KVM_CAP_MAX_VCPU_ID is not taken: error %d", -ret);
	if (max_id < XAPIC_IDS)
		return 0;
	ret = kvm_enable_vm_cap(vm->fd, KVM_CAP_X2APIC_API,
				KVM_X2APIC_API_USE_32BIT_IDS |
					KVM_X2APIC_API_DISABLE_BROADCAST_QUIRK);
	if (ret < 0)
		return error_set_errno(err, ret, "APIC id %u needs KVM_CAP_X2APIC_API", max_id);
	return 0;
}

/*
 * AMD guests try the performance counters whatever CPUID says. There are none:
 * without this KVM would log each try on hosts that do not have them either.
 * Where it fails, the host's log is all that suffers.
 */
static void deny_counters(struct vm *vm)
{
	static const struct kvm_x86_msr_range counters[] = {
		{ .first = 0xC0010000, .count = 8 },  /* four events, four counters */
		{ .first = 0xC0010200, .count = 12 }, /* six of both, PERFCTR_CORE */
	};
	int ret;

	if (cpuid_vendor(&vm->arch->supported) != CPUID_AMD ||
	    kvm_check_extension(vm->kvm, KVM_CAP_X86_MSR_FILTER) <= 0)
		return;
	ret = kvm_deny_msrs(vm->fd, counters, ARRAY_SIZE(counters));
	if (ret < 0)
		log_debug("KVM_X86_SET_MSR_FILTER is not taken: error %d", -ret);
}

static int create_chips(struct vm *vm, struct error *err)
{
	int ret;

	ret = kvm_set_identity_map_addr(vm->fd, LAYOUT_KVM_IDENTITY_MAP);
	if (ret < 0)
		return error_set_errno(err, ret, "KVM_SET_IDENTITY_MAP_ADDR");
	ret = kvm_set_tss_addr(vm->fd, LAYOUT_KVM_TSS);
	if (ret < 0)
		return error_set_errno(err, ret, "KVM_SET_TSS_ADDR");
	ret = kvm_create_irqchip(vm->fd);
	if (ret < 0)
		return error_set_errno(err, ret, "KVM_CREATE_IRQCHIP");
	ret = kvm_create_pit2(vm->fd);
	if (ret < 0)
		return error_set_errno(err, ret, "KVM_CREATE_PIT2");
	return 0;
}

int arch_vm_init(struct vm *vm, struct error *err)
{
	struct arch_vm *arch = calloc(1, sizeof(*arch));
	uint32_t max_id;
	int ret;

	if (!arch)
		return error_set(err, -ENOMEM, "no memory for the VM");
	vm->arch = arch;
	max_id = topology_max_apic_id(&vm->topology);
	ret = kvm_get_supported_cpuid(vm->kvm, &arch->supported);
	if (ret < 0)
		return error_set_errno(err, ret, "KVM_GET_SUPPORTED_CPUID");
	arch->tsc_deadline = kvm_check_extension(vm->kvm, KVM_CAP_TSC_DEADLINE_TIMER) > 0;
	ret = check_memory(vm, err);
	if (ret == 0)
		ret = check_vcpus(vm, max_id, err);
	if (ret == 0)
		ret = enable_caps(vm, max_id, err);
	if (ret == 0)
		ret = create_chips(vm, err);
	if (ret == 0)
		deny_counters(vm);
	return ret;
}

uint32_t arch_vcpu_id(const struct vm *vm, uint32_t index)
{
	return topology_apic_id(&vm->topology, index);
}

void arch_vm_fini(struct vm *vm)
{
	free(vm->arch);
	vm->arch = NULL;
}

enum vcpu_exit_result arch_vcpu_exit(struct vcpu *v)
{
	switch (v->run->exit_reason) {
	case KVM_EXIT_X86_RDMSR:
	case KVM_EXIT_X86_WRMSR:
		v->run->msr.error = 1; /* the guest gets its #GP */
		return VCPU_CONTINUE;
	case KVM_EXIT_HYPERCALL:
		v->run->hypercall.ret = (uint64_t)-KVM_ENOSYS;
		return VCPU_CONTINUE;
	default:
		log_error("vCPU %u: KVM_RUN ended for reason %u, which nothing serves", v->index,
			  v->run->exit_reason);
		vm_request_end(v->vm, VM_END_VCPU_FAILED);
		return VCPU_STOP;
	}
}

void arch_vcpu_parked(struct vcpu *v)
{
	int ret = kvm_kvmclock_ctrl(v->fd);

	/* -EINVAL: the guest has no clock of KVM's */
	if (ret < 0 && ret != -EINVAL)
		log_debug("vCPU %u: KVM_KVMCLOCK_CTRL: error %d", v->index, -ret);
}

int arch_vcpu_halt(struct vcpu *v)
{
	return kvm_set_mp_state(v->fd, KVM_MP_STATE_HALTED);
}

/* An interrupt has made it runnable already, or another vCPU has reset it. */
void arch_vcpu_unhalt(struct vcpu *v)
{
	uint32_t state;

	if (kvm_get_mp_state(v->fd, &state) < 0 || state != KVM_MP_STATE_HALTED)
		return;
	if (kvm_set_mp_state(v->fd, KVM_MP_STATE_RUNNABLE) < 0)
		log_error("vCPU %u: cannot be woken", v->index);
}

int arch_ctrl_alt_del(struct vm *vm, struct error *err)
{
	return board_ctrl_alt_del(vm, err);
}

void arch_vcpu_describe(struct vcpu *v, char *text, size_t size)
{
	struct kvm_regs r;
	struct kvm_sregs s;

	if (size == 0)
		return;
	text[0] = '\0';
	if (kvm_get_regs(v->fd, &r) < 0 || kvm_get_sregs(v->fd, &s) < 0)
		return;
	snprintf(text, size,
		 "RIP %04x:%016llx RSP %04x:%016llx RFLAGS %08llx CR0 %08llx CR2 %016llx "
		 "CR3 %016llx CR4 %08llx EFER %08llx",
		 s.cs.selector, (unsigned long long)r.rip, s.ss.selector,
		 (unsigned long long)r.rsp, (unsigned long long)r.rflags,
		 (unsigned long long)s.cr0, (unsigned long long)s.cr2, (unsigned long long)s.cr3,
		 (unsigned long long)s.cr4, (unsigned long long)s.efer);
}
