/*
 * KVM's statistics of a VM or a vCPU, from a descriptor that describes itself:
 * a header, a list of names, a block of values. Found by name, because what a
 * kernel counts changes from one to the next.
 *
 * Whatever the descriptor holds is checked before it is believed: an odd header
 * is an error, never an overrun.
 *
 * Threads: one at a time; the main thread, for us. The vCPU may be running: KVM
 * reads its counters without stopping it. Only kvm_stats_open() must come before
 * a vCPU's thread runs, since it would wait for KVM_RUN to return.
 * Locks: none.
 */
#ifndef LULL_KVM_STATS_H
#define LULL_KVM_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/kvm.h"
#include "vmm/limits.h"

struct kvm_stat {
	char name[LIMIT_KVM_STAT_NAME]; /* "halt_exits" */
	uint32_t flags;       /* KVM_STATS_*: type, unit, base */
	int16_t exponent;     /* of that base: the unit is scaled by it */
	uint32_t first;       /* index of its first value */
	uint32_t count;       /* of values: more than one for a histogram */
	uint32_t bucket_size; /* of a linear histogram */
};

struct kvm_stats {
	struct kvm_fd fd; /* closed: there are none */
	struct kvm_stat *stats; /* NULL until the first read */
	uint32_t count;
	uint32_t data_offset;  /* of the values, in the file */
	uint32_t value_count;  /* in the block */
	uint64_t *values;      /* of the last read */
};

/* Nothing is open. */
void kvm_stats_init(struct kvm_stats *s);
/* `of` is a VM or a vCPU; 0 or a negative errno. What the descriptor holds is read later. */
int kvm_stats_open(struct kvm_stats *s, struct kvm_fd of) KVM_RESULT;
void kvm_stats_close(struct kvm_stats *s);

/*
 * Takes all values anew. -EBADF if nothing is open, -EPROTO if the descriptor is
 * none of KVM's, -E2BIG if it holds more than we take; then nothing is found.
 */
int kvm_stats_read(struct kvm_stats *s) KVM_RESULT;

/* NULL if this kernel has no such statistic. */
const struct kvm_stat *kvm_stats_find(const struct kvm_stats *s, const char *name);
/* The first value of that name as last read; 0 if there is none. */
uint64_t kvm_stats_value(const struct kvm_stats *s, const char *name);

#endif
