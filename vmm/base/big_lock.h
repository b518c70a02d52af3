/*
 * One lock around every exit and every call-back of a device: what lull is
 * built to do without. `--big-lock` turns it on, as the benchmarks' baseline.
 *
 * It comes before all other locks in their order, and is given up wherever a
 * thread that holds it waits for a condition.
 *
 * Threads: turned on by main before there are others; taken by vCPU threads
 * and device threads.
 */
#ifndef LULL_BASE_BIG_LOCK_H
#define LULL_BASE_BIG_LOCK_H

#include <stdbool.h>

/* Once, before any other thread exists. It stays on. */
void big_lock_enable(void);
bool big_lock_is_on(void);

/* The lock must be on, and not be held by this thread. */
void big_lock_take(void);
void big_lock_release(void);

/* Gives it up if this thread holds it; true if so. For lock.c. */
bool big_lock_yield(void);

#endif
