/*
 * Named locks and their order. Threads: any. The order check keeps the levels
 * that a thread holds as bits of a thread-local word; a level may be held once
 * per thread.
 *
 * Not here: what the profiler counts (lock_profile.c), the big lock (big_lock.c).
 */
#include "vmm/base/lock.h"

#include <errno.h>
#include <time.h>

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

void lock_init(struct lock *l, enum lock_level level, const char *type, const char *object)
{
	pthread_mutex_init(&l->mutex, NULL);
	lock_profile_add(&l->profile, level, type, object);
}

void lock_fini(struct lock *l)
{
	lock_profile_remove(&l->profile);
	pthread_mutex_destroy(&l->mutex);
}

void lock_wait(struct lock *l, const struct lock_site *site) TSA_UNCHECKED
{
	uint64_t start = now_ns();

	pthread_mutex_lock(&l->mutex);
	lock_profile_charge(&l->profile, site, now_ns() - start);
	if (lock_is_profiling())
		atomic_fetch_add_explicit(&l->profile.takes, 1, memory_order_relaxed);
}

void lock_cond_init(struct lock_cond *c, const char *type, const char *object)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->cond, &attr);
	pthread_condattr_destroy(&attr);
	lock_profile_add(&c->profile, 0, type, object);
}

void lock_cond_fini(struct lock_cond *c)
{
	lock_profile_remove(&c->profile);
	pthread_cond_destroy(&c->cond);
}

/*
 * A wait gives the big lock up too. It comes before the others in the order, so
 * they are let go of once more where it is taken again.
 */
static int wait_until(struct lock_cond *c, struct lock *l, const struct timespec *until)
{
	bool had_big_lock = big_lock_yield();
	int ret;

	lock_order_pop(l);
	ret = until ? pthread_cond_timedwait(&c->cond, &l->mutex, until) :
		      pthread_cond_wait(&c->cond, &l->mutex);
	if (had_big_lock) {
		pthread_mutex_unlock(&l->mutex);
		big_lock_take();
		pthread_mutex_lock(&l->mutex);
	}
	lock_order_push(l);
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
	return ret == ETIMEDOUT ? -ETIMEDOUT : 0;
}

void lock_cond_signal(struct lock_cond *c)
{
	pthread_cond_signal(&c->cond);
}

void lock_cond_broadcast(struct lock_cond *c)
{
	pthread_cond_broadcast(&c->cond);
}
