/*
 * An architecture for tests of the core: RAM in one or two ranges, an interrupt
 * controller, one port that switches the machine off, and whatever else a test
 * builds. Its spinning is what KVM counts as insn_emulation. Tests set `fake_arch` before a start; fake_arch_reset() takes it back.
 */
#ifndef LULL_FAKE_ARCH_H
#define LULL_FAKE_ARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/arch.h"

/* A write of FAKE_POWER_OFF or FAKE_POWER_RESET ends the guest; a read gives 0x5a. */
#define FAKE_POWER_PORT 0x600
#define FAKE_POWER_OFF 0x34
#define FAKE_POWER_RESET 0x01
/* RAM at and above this address when there is more below than fits. */
#define FAKE_ARCH_LOW 0xc0000000ull
#define FAKE_ARCH_HIGH 0x100000000ull

struct fake_arch {
	/* adds devices and regions to the board; NULL: none */
	int (*build)(struct vm *vm, struct error *err);
	int load_code;        /* what arch_boot_load() returns */
	int setup_code;       /* what arch_vcpu_setup() of vCPU `setup_index` returns */
	uint32_t setup_index;
	_Atomic unsigned setups; /* calls of arch_vcpu_setup() */
	_Atomic unsigned parked; /* calls of arch_vcpu_parked() */
};

extern struct fake_arch fake_arch;

void fake_arch_reset(void);

#endif
