/*
 * Bits, alignment, checked arithmetic and little-endian access to bytes.
 * Pure functions; any thread.
 */
#ifndef LULL_BASE_BITS_H
#define LULL_BASE_BITS_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BIT(n) (1u << (n))
#define BIT_ULL(n) (1ull << (n))

#define KIB (1024ull)
#define MIB (1024ull * KIB)
#define GIB (1024ull * MIB)

static inline bool is_power_of_two(uint64_t v)
{
	return v && !(v & (v - 1));
}

/* The lowest `bytes` bytes, 1 to 8, as a mask. */
static inline uint64_t mask_of_bytes(unsigned bytes)
{
	return UINT64_MAX >> ((64 - 8 * bytes) & 63);
}

/* `align` is a power of two. */
static inline uint64_t align_down(uint64_t v, uint64_t align)
{
	return v & ~(align - 1);
}

/* `align` is a power of two and v + align does not wrap. */
static inline uint64_t align_up(uint64_t v, uint64_t align)
{
	return (v + align - 1) & ~(align - 1);
}

static inline bool is_aligned(uint64_t v, uint64_t align)
{
	return !(v & (align - 1));
}

/* The smallest n with 2^n >= v; 0 for v <= 1. */
static inline unsigned ceil_log2(uint32_t v)
{
	unsigned n = 0;

	while (n < 32 && (1ull << n) < v)
		n++;
	return n;
}

/* True if [addr, addr + len) lies inside [base, base + size), wrap included. */
static inline bool range_inside(uint64_t addr, uint64_t len, uint64_t base, uint64_t size)
{
	return addr >= base && addr - base <= size && len <= size - (addr - base);
}

/* True if the two ranges share a byte; neither may wrap. */
static inline bool ranges_overlap(uint64_t a, uint64_t a_len, uint64_t b, uint64_t b_len)
{
	return a < b + b_len && b < a + a_len;
}

static inline uint16_t load_le16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return le16toh(v);
}

static inline uint32_t load_le32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static inline uint64_t load_le64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

static inline void store_le16(void *p, uint16_t v)
{
	v = htole16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void store_le32(void *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void store_le64(void *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

#endif
