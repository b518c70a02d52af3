/*
 * Booting on arm64: not yet.
 *
 * Threads: main. Locks: none.
 */
#include "arch-arm64/arch_vm.h"
#include "vmm/arch.h"

int arch_boot_load(struct vm *vm, struct error *err)
{
	return arch_not_supported(err);
}
