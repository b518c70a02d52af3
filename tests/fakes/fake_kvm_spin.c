/*
 * The fake KVM: capabilities that are switched on, with the order and the values
 * that the kernel asks for.
 */
#include "fake_kvm_impl.h"

#include <errno.h>
#include <limits.h>

static int enable_cap(const struct fake_vm *vm, const struct kvm_enable_cap *cap)
{
	uint64_t value = cap->args[0];
	int offered = fake_check_extension((int)cap->cap);

	if (!offered || cap->flags)
		return -EINVAL;
	switch (cap->cap) {
	case KVM_CAP_X86_DISABLE_EXITS:
		/* as kernels since 6.14: not once there is a vCPU, and no unknown bits */
		return vm->vcpu_count || value & ~(uint64_t)offered ? -EINVAL : 0;
	case KVM_CAP_HALT_POLL:
		return value > UINT_MAX ? -EINVAL : 0;
	case KVM_CAP_ENFORCE_PV_FEATURE_CPUID:
		return -EINVAL; /* of a vCPU */
	default:
		return 0;
	}
}

static int note_locked(const struct kvm_enable_cap *cap, int ret)
{
	struct fake_cap_calls *c = cap->cap < FAKE_CAPS ? &fake.caps[cap->cap] : NULL;

	if (!c)
		return ret;
	c->calls++;
	if (ret < 0)
		c->refused++;
	else
		c->argument = cap->args[0];
	return ret;
}

int fake_enable_cap_locked(struct fake_vm *vm, const struct kvm_enable_cap *cap)
{
	return note_locked(cap, enable_cap(vm, cap));
}

int fake_enable_vcpu_cap_locked(struct fake_vcpu *v, const struct kvm_enable_cap *cap)
{
	bool known = cap->cap == KVM_CAP_ENFORCE_PV_FEATURE_CPUID && !cap->flags &&
		     fake_check_extension((int)cap->cap);

	return note_locked(cap, known ? 0 : -EINVAL);
}

void fake_kvm_get_cap_calls(unsigned capability, struct fake_cap_calls *ret)
{
	pthread_mutex_lock(&fake.lock);
	*ret = fake.caps[capability];
	pthread_mutex_unlock(&fake.lock);
}
