/*
 * What the `lock` benchmark runs under callgrind, on one thread:
 *
 *	bench-lock KIND PAIRS	takes and releases a lock that nobody else wants
 *
 * KIND: "off" and "on" (ours, the profiler off and on), "bare" (ours without a
 * profiler), "mutex" (libc's).
 *
 * Threads: one. Locks: the one that is measured.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bits.h"
#include "vmm/base/lock.h"

static struct lock lock;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* One pair each: alike but for what is measured. */

__attribute__((noinline)) static void pair_mutex(void)
{
	pthread_mutex_lock(&mutex);
	__asm__ volatile("" : : : "memory");
	pthread_mutex_unlock(&mutex);
}

__attribute__((noinline)) static void pair_bare(void) TSA_UNCHECKED
{
	if (__builtin_expect(!lock_change(&lock, LOCK_FREE), 0))
		lock_wait(&lock, LOCK_SITE);
	__asm__ volatile("" : : : "memory");
	lock_release(&lock);
}

__attribute__((noinline)) static void pair_ours(void)
{
	lock_take(&lock);
	__asm__ volatile("" : : : "memory");
	lock_release(&lock);
}

static const struct {
	const char *name;
	void (*pair)(void);
	bool profiling;
} kinds[] = {
	{ "off", pair_ours, false },
	{ "on", pair_ours, true },
	{ "bare", pair_bare, false },
	{ "mutex", pair_mutex, false },
};

int main(int argc, char **argv)
{
	uint64_t pairs = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
	size_t k;

	for (k = 0; k < ARRAY_SIZE(kinds) && argc == 3 && strcmp(kinds[k].name, argv[1]); k++)
		;
	if (!pairs || k == ARRAY_SIZE(kinds)) {
		fprintf(stderr, "usage: bench-lock off|on|bare|mutex PAIRS\n");
		return 2;
	}
	lock_init(&lock, LOCK_LEVEL_DEVICE, "bench", "");
	lock_set_profiling(kinds[k].profiling);
	for (; pairs; pairs--)
		kinds[k].pair();
	lock_fini(&lock);
	return 0;
}
