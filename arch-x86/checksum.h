/*
 * The checksum of firmware tables. Pure; any thread.
 */
#ifndef LULL_ARCH_X86_CHECKSUM_H
#define LULL_ARCH_X86_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* What makes these bytes add up to 0 when it takes the place of one that is 0. */
static inline uint8_t table_checksum(const uint8_t *p, size_t n)
{
	uint8_t sum = 0;

	while (n--)
		sum = (uint8_t)(sum + *p++);
	return (uint8_t)-sum;
}

#endif
