/*
 * Named locks with levels, and what waiting for them costs.
 *
 * A lock is a word that a waiter sleeps on (futex). Taking and releasing one
 * that nobody else wants is two inline atomic operations, a tenth of what the
 * C library's mutex takes: on the path of an exit that was more than the rest.
 *
 * Levels are taken in ascending order only; a debug build checks each thread
 * and counts violations (lock_order_violations()), which the tests require to
 * be zero.
 *
 * The profiler: a wait is always charged to its lock and call site, for that
 * path sleeps anyway: the clock is read twice there and nowhere else. While
 * profiling is on, each lock also counts how often it was taken. Off, that
 * costs an uncontended take nothing; see lock_take_at().
 *
 * Clang's thread-safety analysis follows the annotations: a function that
 * needs an object's lock ends in _locked and says TSA_REQUIRES.
 */
#ifndef LULL_BASE_LOCK_H
#define LULL_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__clang__)
#define TSA_CAPABILITY(name) __attribute__((capability(name)))
#define TSA_REQUIRES(l) __attribute__((requires_capability(l)))
#define TSA_ACQUIRES(l) __attribute__((acquire_capability(l)))
#define TSA_TRIES(l) __attribute__((try_acquire_capability(true, l)))
#define TSA_RELEASES(l) __attribute__((release_capability(l)))
#define TSA_EXCLUDES(l) __attribute__((locks_excluded(l)))
#define TSA_GUARDED __attribute__((guarded_var))
#define TSA_UNCHECKED __attribute__((no_thread_safety_analysis))
#else
#define TSA_CAPABILITY(name)
#define TSA_REQUIRES(l)
#define TSA_ACQUIRES(l)
#define TSA_TRIES(l)
#define TSA_RELEASES(l)
#define TSA_EXCLUDES(l)
#define TSA_GUARDED
#define TSA_UNCHECKED
#endif

enum lock_level {
	LOCK_LEVEL_GLOBAL = 1, /* the big lock of --big-lock, and nothing else */
	LOCK_LEVEL_VM,
	LOCK_LEVEL_DEVICE_SET,
	LOCK_LEVEL_BUS,
	LOCK_LEVEL_DEVICE,
	LOCK_LEVEL_IRQ,
	LOCK_LEVEL_LOG,
};

/* A line of source that takes a lock or waits for a condition. */
struct lock_site {
	const char *file;
	uint32_t line;
};

#define LOCK_SITE                                                                   \
	({                                                                          \
		static const struct lock_site lock_site_ = { __FILE__, __LINE__ };  \
		&lock_site_;                                                        \
	})

struct lock_waits;

/* What the profiler knows of one lock or condition variable. */
struct lock_profile {
	const char *type;   /* static text, "uart16550" */
	const char *object; /* which one, "serial"; "" if there is one only */
	enum lock_level level; /* 0: a condition variable */
	/* under the registry's mutex */
	struct lock_profile *next, *previous; /* all of the process */
	uint64_t reset_takes;                 /* `takes` at the last reset */
	bool is_listed; /* with the lock held, or while it is made */
	/* written with the lock held (a condition's: the lock that goes with it), read by any */
	_Atomic uint64_t takes; /* while profiling was on */
	_Atomic(struct lock_waits *) waits; /* one a call site that waited, newest first */
};

enum lock_word { LOCK_FREE, LOCK_HELD, LOCK_WAITED_FOR, LOCK_PROFILED };

struct TSA_CAPABILITY("lock") lock {
	_Atomic uint32_t word; /* LOCK_FREE, LOCK_HELD, or held and LOCK_WAITED_FOR */
	struct lock_profile profile;
};

/* A condition variable that goes with one lock. */
struct lock_cond {
	_Atomic uint32_t sequence; /* of signals; waiters sleep on it */
	_Atomic uint32_t waiters;
	struct lock_profile profile;
};

/* For a lock that nobody makes; reports know it from its first wait on. */
#define LOCK_STATIC(level_, type_)                                                  \
	{                                                                           \
		.profile = { .type = type_, .object = "", .level = level_ },        \
	}

/* The texts are not copied; they outlive the lock. */
void lock_init(struct lock *l, enum lock_level level, const char *type, const char *object);
/* Forgets what was counted, too. */
void lock_fini(struct lock *l);

void lock_cond_init(struct lock_cond *c, const char *type, const char *object);
void lock_cond_fini(struct lock_cond *c);
void lock_cond_signal(struct lock_cond *c);
void lock_cond_broadcast(struct lock_cond *c);

/* Any thread. Take the lock; only in ascending order of levels. */
#define lock_take(l) lock_take_at((l), LOCK_SITE)
static inline void lock_take_at(struct lock *l, const struct lock_site *site) TSA_ACQUIRES(*l);
/* The same if nobody holds it; never waits. False: it is not held. */
static inline bool lock_try(struct lock *l) TSA_TRIES(*l);
static inline void lock_release(struct lock *l) TSA_RELEASES(*l);

/* Waits for a signal; may wake without one. The lock is held before and after. */
#define lock_cond_wait(c, l) lock_cond_wait_at((c), (l), LOCK_SITE)
void lock_cond_wait_at(struct lock_cond *c, struct lock *l, const struct lock_site *site)
	TSA_REQUIRES(*l);
/* As lock_cond_wait(), for at most `ns` nanoseconds; -ETIMEDOUT when they passed. */
#define lock_cond_wait_for(c, l, ns) lock_cond_wait_for_at((c), (l), (ns), LOCK_SITE)
int lock_cond_wait_for_at(struct lock_cond *c, struct lock *l, uint64_t ns,
			  const struct lock_site *site) TSA_REQUIRES(*l);

/* Locks taken out of level order so far, in this process (debug builds; else 0). */
uint64_t lock_order_violations(void);

/* ---- the profiler's report; any thread, none of whose locks it takes ---------------------- */

#define LOCK_REPORT_OBJECT 80 /* bytes of an object's name, with its NUL */

/* The waits at one call site for one lock or condition. */
struct lock_report_wait {
	const char *type;
	char object[LOCK_REPORT_OBJECT];
	const char *file;
	uint32_t line;
	bool is_condition;
	enum lock_level level; /* of a lock */
	uint64_t count;
	uint64_t wait_ns; /* all of them together */
	uint64_t max_ns;
};

struct lock_report_lock {
	const char *type;
	char object[LOCK_REPORT_OBJECT];
	enum lock_level level;
	uint64_t takes;
};

/*
 * Up to `max` call sites that waited, longest wait first. The rest is left out;
 * the number of all that there are is returned.
 */
size_t lock_report_waits(struct lock_report_wait *rows, size_t max);
/* Up to `max` locks, oldest first; returns how many there are. */
size_t lock_report_locks(struct lock_report_lock *rows, size_t max);
/* Reports count from now on. */
void lock_report_reset(void);

void lock_set_profiling(bool on);
bool lock_is_profiling(void);
const char *lock_level_name(enum lock_level level);

/* ---- inline ------------------------------------------------------------------------------- */

/*
 * What a take expects in the word: LOCK_FREE, or, while profiling, a value that
 * is never there, so that every take goes the way on which it is counted.
 */
extern _Atomic uint32_t lock_expected;

/* The lock is held: waits for it, and charges the wait. */
void lock_wait(struct lock *l, const struct lock_site *site);
/* Somebody sleeps: lets go of the lock and wakes one. */
void lock_release_waited_for(struct lock *l);

/*
 * The caller is about to wait for other threads and should hold no lock but the
 * big one, which a wait gives up; a debug build counts a violation if it does.
 */
#ifdef NDEBUG
static inline void lock_expect_none(void)
{
}

static inline void lock_order_push(const struct lock *l)
{
}

static inline void lock_order_pop(const struct lock *l)
{
}
#else
void lock_expect_none(void);
void lock_order_push(const struct lock *l);
void lock_order_pop(const struct lock *l);
#endif

/* From the expected word to LOCK_HELD. */
static inline bool lock_change(struct lock *l, uint32_t expected)
{
	return atomic_compare_exchange_strong_explicit(&l->word, &expected, LOCK_HELD,
						       memory_order_acquire,
						       memory_order_relaxed);
}

static inline void lock_take_at(struct lock *l, const struct lock_site *site) TSA_UNCHECKED
{
	lock_order_push(l);
	/* A load instead of a constant: all that the profiler costs while it is off. */
	if (lock_change(l, atomic_load_explicit(&lock_expected, memory_order_relaxed)))
		return;
	if (__builtin_expect(lock_change(l, LOCK_FREE), 1))
		atomic_fetch_add_explicit(&l->profile.takes, 1, memory_order_relaxed);
	else
		lock_wait(l, site);
}

static inline bool lock_try(struct lock *l) TSA_UNCHECKED
{
	if (!lock_change(l, LOCK_FREE))
		return false;
	lock_order_push(l);
	if (atomic_load_explicit(&lock_expected, memory_order_relaxed) != LOCK_FREE)
		atomic_fetch_add_explicit(&l->profile.takes, 1, memory_order_relaxed);
	return true;
}

static inline void lock_release(struct lock *l) TSA_UNCHECKED
{
	lock_order_pop(l);
	if (__builtin_expect(atomic_fetch_sub_explicit(&l->word, 1, memory_order_release) !=
			     LOCK_HELD, 0))
		lock_release_waited_for(l);
}

#endif
