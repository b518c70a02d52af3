/*
 * Named locks with levels.
 *
 * Levels are taken in ascending order only; a debug build checks each thread
 * and counts violations (lock_order_violations()), which the tests require to
 * be zero. Every lock knows how often it had to be waited for and how long:
 * the uncontended path is one trylock and reads no clock.
 *
 * Clang's thread-safety analysis follows the annotations: a function that
 * needs an object's lock ends in _locked and says TSA_REQUIRES.
 */
#ifndef LULL_BASE_LOCK_H
#define LULL_BASE_LOCK_H

#include <pthread.h>
#include <stdint.h>

#if defined(__clang__)
#define TSA_CAPABILITY(name) __attribute__((capability(name)))
#define TSA_REQUIRES(l) __attribute__((requires_capability(l)))
#define TSA_ACQUIRES(l) __attribute__((acquire_capability(l)))
#define TSA_RELEASES(l) __attribute__((release_capability(l)))
#define TSA_EXCLUDES(l) __attribute__((locks_excluded(l)))
#define TSA_GUARDED __attribute__((guarded_var))
#define TSA_UNCHECKED __attribute__((no_thread_safety_analysis))
#else
#define TSA_CAPABILITY(name)
#define TSA_REQUIRES(l)
#define TSA_ACQUIRES(l)
#define TSA_RELEASES(l)
#define TSA_EXCLUDES(l)
#define TSA_GUARDED
#define TSA_UNCHECKED
#endif

enum lock_level {
	LOCK_LEVEL_VM = 1,
	LOCK_LEVEL_DEVICE_SET,
	LOCK_LEVEL_BUS,
	LOCK_LEVEL_DEVICE,
	LOCK_LEVEL_IRQ,
	LOCK_LEVEL_LOG,
};

struct TSA_CAPABILITY("lock") lock {
	pthread_mutex_t mutex;
	const char *name; /* static text, e.g. "uart16550" */
	enum lock_level level;
	/* written with the lock held, read by anyone */
	_Atomic uint64_t waits;
	_Atomic uint64_t wait_ns;
};

/* A condition variable that goes with one lock. */
struct lock_cond {
	pthread_cond_t cond;
	const char *name;
};

void lock_init(struct lock *l, enum lock_level level, const char *name);
void lock_fini(struct lock *l);
void lock_take(struct lock *l) TSA_ACQUIRES(*l);
void lock_release(struct lock *l) TSA_RELEASES(*l);

void lock_cond_init(struct lock_cond *c, const char *name);
void lock_cond_fini(struct lock_cond *c);
/* Waits for a signal; may wake without one. */
void lock_cond_wait(struct lock_cond *c, struct lock *l) TSA_REQUIRES(*l);
/* As lock_cond_wait(), for at most `ns` nanoseconds; -ETIMEDOUT when they passed. */
int lock_cond_wait_for(struct lock_cond *c, struct lock *l, uint64_t ns) TSA_REQUIRES(*l);
void lock_cond_signal(struct lock_cond *c);
void lock_cond_broadcast(struct lock_cond *c);

/* Locks taken out of level order so far, in this process (debug builds; else 0). */
uint64_t lock_order_violations(void);

#endif
