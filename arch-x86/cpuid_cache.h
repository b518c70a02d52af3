/*
 * The CPUID leaves that tell topology and caches: 2, 4, 0xB, 0x1F, 0x80000005,
 * 0x80000006, 0x80000008, 0x8000001D, 0x8000001E. All from one model.
 * Internal to cpuid.c.
 */
#ifndef LULL_ARCH_X86_CPUID_CACHE_H
#define LULL_ARCH_X86_CPUID_CACHE_H

#include <stdint.h>

#include "arch-x86/cpuid.h"

/* -ENOSPC when the table is full. */
int cpuid_cache_build(struct cpuid_table *t, const struct topology *topology,
		      enum cpuid_vendor vendor, uint32_t index);

#endif
