/*
 * The kernel's command line: what the client gave, or the default, with what
 * the machine has to tell added to it.
 *
 * Threads: main.
 */
#ifndef LULL_ARCH_X86_CMDLINE_H
#define LULL_ARCH_X86_CMDLINE_H

#include <stdint.h>

#include "arch-x86/board.h"
#include "vmm/base/error.h"
#include "vmm/config.h"

#define CMDLINE_DEFAULT                                                                  \
	"reboot=k panic=1 nomodule 8250.nr_uarts=0 i8042.noaux i8042.nomux i8042.dumbkbd " \
	"swiotlb=noforce"

struct cmdline_config {
	const char *boot_args;           /* NULL: the default */
	const struct drive_config *root; /* NULL: none is the root device */
	const struct board_slot *slots;  /* of the virtio devices */
	uint32_t slot_count;
};

/*
 * Writes arguments for init (after "--") last. -E2BIG, -EINVAL with text that
 * begins with "boot_args: ".
 */
int cmdline_build(const struct cmdline_config *c, char ret[LIMIT_CMDLINE], struct error *err);

#endif
