/*
 * Named locks and their order. Threads: any. The order check keeps the levels
 * that a thread holds as bits of a thread-local word; a level may be held once
 * per thread.
 *
 * Not here: what the profiler counts (lock_profile.c), the big lock (big_lock.c).
 */
#include "vmm/base/lock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/big_lock.h"
#include "vmm/base/lock_profile.h"

#ifdef NDEBUG
uint64_t lock_order_violations(void)
{
	return 0;
}
#else
static _Thread_local uint32_t levels_held;
static _Atomic uint64_t violations;

void lock_order_push(const struct lock *l)
{
	if (levels_held >> l->profile.level)
		atomic_fetch_add_explicit(&violations, 1, memory_order_relaxed);
	levels_held |= 1u << l->profile.level;
}

void lock_order_pop(const struct lock *l)
{
	levels_held &= ~(1u << l->profile.level);
}

void lock_expect_none(void)
{
	if (levels_held & ~(1u << LOCK_LEVEL_GLOBAL))
		atomic_fetch_add_explicit(&violations, 1, memory_order_relaxed);
}

uint64_t lock_order_violations(void)
{
	return atomic_load_explicit(&violations, memory_order_relaxed);
}
#endif

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* Sleeps while the word has that value; `until` is of the monotonic clock, NULL for ever. */
static int futex_wait(const _Atomic uint32_t *word, uint32_t value, const struct timespec *until)
{
	long ret;

	do {
		ret = syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, until, NULL,
			      FUTEX_BITSET_MATCH_ANY);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

static void futex_wake(const _Atomic uint32_t *word, int waiters)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, waiters);
}

/* Who has slept cannot know whether others do: the word says so until all have woken. */
static void take_or_sleep(struct lock *l)
{
	while (atomic_exchange_explicit(&l->word, LOCK_WAITED_FOR, memory_order_acquire) !=
	       LOCK_FREE)
		(void)futex_wait(&l->word, LOCK_WAITED_FOR, NULL);
}

void lock_release_waited_for(struct lock *l)
{
	atomic_store_explicit(&l->word, LOCK_FREE, memory_order_release);
	futex_wake(&l->word, 1);
}

void lock_init(struct lock *l, enum lock_level level, const char *type, const char *object)
{
	atomic_init(&l->word, LOCK_FREE);
	lock_profile_add(&l->profile, level, type, object);
}

void lock_fini(struct lock *l)
{
	lock_profile_remove(&l->profile);
}

void lock_wait(struct lock *l, const struct lock_site *site) TSA_UNCHECKED
{
	uint64_t start = now_ns();

	take_or_sleep(l);
	lock_profile_charge(&l->profile, site, now_ns() - start);
	if (lock_is_profiling())
		atomic_fetch_add_explicit(&l->profile.takes, 1, memory_order_relaxed);
}

void lock_cond_init(struct lock_cond *c, const char *type, const char *object)
{
	atomic_init(&c->sequence, 0);
	atomic_init(&c->waiters, 0);
	lock_profile_add(&c->profile, 0, type, object);
}

void lock_cond_fini(struct lock_cond *c)
{
	lock_profile_remove(&c->profile);
}

/* Without the profiler and the order check. */
static void let_go(struct lock *l)
{
	if (atomic_fetch_sub_explicit(&l->word, 1, memory_order_release) != LOCK_HELD)
		lock_release_waited_for(l);
}

static void take_again(struct lock *l)
{
	if (!lock_change(l, LOCK_FREE))
		take_or_sleep(l);
}

/*
 * A signal that comes after the lock was let go changes the sequence, so that
 * the wait does not begin. A wait gives the big lock up too, which comes before
 * the others in the order and so is taken again before them.
 */
static int wait_until(struct lock_cond *c, struct lock *l, const struct timespec *until)
{
	uint32_t sequence = atomic_load(&c->sequence);
	bool had_big_lock = big_lock_yield();
	int ret;

	atomic_fetch_add(&c->waiters, 1);
	lock_order_pop(l);
	let_go(l);
	ret = futex_wait(&c->sequence, sequence, until);
	if (had_big_lock)
		big_lock_take();
	take_again(l);
	lock_order_push(l);
	atomic_fetch_sub(&c->waiters, 1);
	return ret;
}

void lock_cond_wait_at(struct lock_cond *c, struct lock *l, const struct lock_site *site)
{
	uint64_t start = now_ns();

	wait_until(c, l, NULL);
	lock_profile_charge(&c->profile, site, now_ns() - start);
}

int lock_cond_wait_for_at(struct lock_cond *c, struct lock *l, uint64_t ns,
			  const struct lock_site *site)
{
	uint64_t start = now_ns(), until = start + ns;
	struct timespec ts = {
		.tv_sec = (time_t)(until / 1000000000ull),
		.tv_nsec = (long)(until % 1000000000ull),
	};
	int ret = wait_until(c, l, &ts);

	lock_profile_charge(&c->profile, site, now_ns() - start);
	return ret == -ETIMEDOUT ? -ETIMEDOUT : 0;
}

static void wake(struct lock_cond *c, int waiters)
{
	atomic_fetch_add(&c->sequence, 1);
	if (atomic_load(&c->waiters))
		futex_wake(&c->sequence, waiters);
}

void lock_cond_signal(struct lock_cond *c)
{
	wake(c, 1);
}

void lock_cond_broadcast(struct lock_cond *c)
{
	wake(c, INT_MAX);
}
