/*
 * What the arm64 side can say so far.
 */
#ifndef LULL_ARCH_ARM64_ARCH_VM_H
#define LULL_ARCH_ARM64_ARCH_VM_H

#include "vmm/base/error.h"

/* The error of everything that arm64 cannot do yet: -ENOTSUP. */
int arch_not_supported(struct error *err);

#endif
