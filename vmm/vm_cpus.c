/*
 * The CPUs of a VM. Threads: main. Locks: none.
 */
#include "vmm/vm_cpus.h"

#include "vmm/host_cpu.h"
#include "vmm/vm.h"

/*
 * Of one CPU, the first that this process may run on, and only once: hosts whose
 * CPUs differ would otherwise give another answer now and then.
 */
static const struct topology_host *host_of(struct vm *vm)
{
	cpu_set_t allowed;
	unsigned cpu = 0;

	if (vm->host_is_known)
		return &vm->host;
	if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0)
		while (cpu + 1 < LIMIT_HOST_CPUS && !CPU_ISSET(cpu, &allowed))
			cpu++;
	host_cpu_caches(vm->host_cpus, cpu, &vm->host);
	vm->host_is_known = true;
	return &vm->host;
}

int vm_cpus_check(struct vm *vm, const struct topology_config *c, const struct machine_config *m,
		  struct error *err)
{
	struct topology t;

	return topology_build(&t, c, m, host_of(vm), err);
}

int vm_cpus_make(struct vm *vm, struct error *err)
{
	return topology_build(&vm->topology, &vm->config.topology, &vm->config.machine,
			      host_of(vm), err);
}

void vm_cpus_preview(struct vm *vm, struct topology *ret)
{
	/* what is configured has been checked */
	(void)topology_build(ret, &vm->config.topology, &vm->config.machine, host_of(vm), NULL);
}
