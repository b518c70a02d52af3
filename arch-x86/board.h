/*
 * The board: which devices the machine has and where each one sits. The
 * firmware tables and the command line are written from these rows.
 *
 * Threads: main.
 */
#ifndef LULL_ARCH_X86_BOARD_H
#define LULL_ARCH_X86_BOARD_H

#include <stdint.h>

#include "arch-x86/layout.h"
#include "vmm/base/error.h"

struct device;
struct vm;

/* Where one virtio-mmio device sits. */
struct board_slot {
	uint64_t base; /* LAYOUT_VIRTIO_BYTES long */
	uint32_t gsi;
};

struct board {
	struct board_slot virtio[LAYOUT_VIRTIO_MAX];
	uint32_t virtio_count;
	struct device *keyboard; /* the device set owns it */
};

/* Address and line of the n-th virtio device. -ENOSPC if there is no line left. */
int board_virtio_slot(uint32_t n, struct board_slot *ret, struct error *err);

/* Ctrl, Alt and Del are pressed on the keyboard controller. */
int board_ctrl_alt_del(struct vm *vm, struct error *err);

#endif
