/*
 * The arm64 board: no device has a place on it yet.
 *
 * Threads: main. Locks: none.
 */
#include "arch-arm64/arch_vm.h"
#include "vmm/arch.h"

int arch_board_build(struct vm *vm, struct error *err)
{
	return arch_not_supported(err);
}
