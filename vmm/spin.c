/*
 * The spin policy. Threads: main. Locks: none.
 * Not here: exits and PV features (arch-x86/spin.c, arch-arm64/spin.c), what is
 * observed and changed while the guest runs (spin_controller.c).
 */
#include "vmm/spin.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "vmm/base/log.h"
#include "vmm/host_file.h"
#include "vmm/kvm.h"
#include "vmm/vm.h"

/* Host CPUs beyond one a vCPU that a set which is the VM's own may have, for other threads. */
#define SPARE_CPUS 1

void spin_init(struct spin *s)
{
	*s = (struct spin){ .root = "", .mode = SPIN_AUTO, .halt_poll_ns = -1 };
}

/*
 * A wrong "dedicated" starves whoever shares the host CPUs, so it takes more than
 * enough CPUs: they must look like ones that somebody has set apart for this VM.
 */
enum spin_mode spin_choose(enum spin_mode asked, const struct spin_cpus *c, char *why)
{
	if (asked != SPIN_AUTO) {
		snprintf(why, SPIN_WHY, "asked for; %u vCPUs may use %u of %u host CPUs", c->vcpus,
			 c->allowed, c->online);
		return asked;
	}
	if (!c->allowed) {
		snprintf(why, SPIN_WHY, "the host does not say which CPUs may be used");
		return SPIN_SHARED;
	}
	if (c->allowed < c->vcpus) {
		snprintf(why, SPIN_WHY, "%u host CPUs cannot hold %u vCPUs", c->allowed, c->vcpus);
		return SPIN_SHARED;
	}
	if (c->allowed >= c->online || c->allowed > c->vcpus + SPARE_CPUS) {
		snprintf(why, SPIN_WHY,
			 "no host CPUs are set apart: %u vCPUs may use %u of %u, with others",
			 c->vcpus, c->allowed, c->online);
		return SPIN_SHARED;
	}
	snprintf(why, SPIN_WHY, "%u of %u host CPUs are set apart for %u vCPUs", c->allowed,
		 c->online, c->vcpus);
	return SPIN_DEDICATED;
}

uint32_t spin_host_cpus(uint32_t *cpus, uint32_t room)
{
	uint32_t n = 0, cpu;
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return 0;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		if (n < room)
			cpus[n] = cpu;
		n++;
	}
	return n;
}

static struct spin_cpus host_cpus(const struct vm *vm)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	struct spin_cpus c = {
		.vcpus = vm->config.machine.vcpu_count,
		.allowed = spin_host_cpus(NULL, 0),
		.online = online > 0 ? (uint32_t)online : 1,
	};

	return c;
}

void spin_note(struct spin *s, const char *name, bool asked, enum spin_granted granted,
	       const char *why)
{
	struct spin_control *c;

	if (s->control_count == SPIN_CONTROLS)
		return;
	c = &s->controls[s->control_count++];
	c->name = name;
	c->asked = asked;
	c->granted = granted;
	snprintf(c->why, sizeof(c->why), "%s", why ? why : "");
}

int spin_set_halt_poll(struct vm *vm, uint32_t ns)
{
	int ret = kvm_set_halt_poll(vm->fd, ns);

	if (ret == 0)
		vm->spin.halt_poll_ns = ns;
	return ret;
}

int spin_begin(struct vm *vm, struct error *err)
{
	const struct spin_config *config = &vm->config.spin;
	const struct spin_cpus cpus = host_cpus(vm);
	struct spin *s = &vm->spin;
	int64_t ns;
	int ret;

	s->control_count = 0;
	s->mode = spin_choose(config->mode, &cpus, s->why);
	if (s->mode == SPIN_DEDICATED && cpus.allowed < cpus.vcpus)
		log_warn("spin: dedicated was asked for, but %u vCPUs have %u host CPUs",
			 cpus.vcpus, cpus.allowed);
	log_info("spin: %s: %s", s->mode == SPIN_DEDICATED ? "dedicated" : "shared", s->why);
	s->halt_poll_ns = -1;
	if (config->has_halt_poll_ns) {
		ret = spin_set_halt_poll(vm, config->halt_poll_ns);
		return ret < 0 ? error_set_errno(err, ret, "halt_poll_ns: KVM_CAP_HALT_POLL") : 0;
	}
	if (host_file_number(s->root, "/sys/module/kvm/parameters/halt_poll_ns", &ns) == 0)
		s->halt_poll_ns = ns;
	return 0;
}
