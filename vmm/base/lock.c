/*
 * Named locks. Threads: any. The order check keeps the levels that a thread
 * holds as bits of a thread-local word; a level may be held once per thread.
 */
#include "vmm/base/lock.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#ifdef NDEBUG
static void order_push(const struct lock *l)
{
	(void)l;
}

static void order_pop(const struct lock *l)
{
	(void)l;
}

uint64_t lock_order_violations(void)
{
	return 0;
}
#else
static _Thread_local uint32_t levels_held;
static _Atomic uint64_t violations;

static void order_push(const struct lock *l)
{
	if (levels_held >> l->level)
		atomic_fetch_add_explicit(&violations, 1, memory_order_relaxed);
	levels_held |= 1u << l->level;
}

static void order_pop(const struct lock *l)
{
	levels_held &= ~(1u << l->level);
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

void lock_init(struct lock *l, enum lock_level level, const char *name)
{
	pthread_mutex_init(&l->mutex, NULL);
	l->name = name;
	l->level = level;
	atomic_init(&l->waits, 0);
	atomic_init(&l->wait_ns, 0);
}

void lock_fini(struct lock *l)
{
	pthread_mutex_destroy(&l->mutex);
}

void lock_take(struct lock *l) TSA_UNCHECKED
{
	uint64_t start;

	order_push(l);
	if (pthread_mutex_trylock(&l->mutex) == 0)
		return;
	start = now_ns();
	pthread_mutex_lock(&l->mutex);
	atomic_fetch_add_explicit(&l->waits, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&l->wait_ns, now_ns() - start, memory_order_relaxed);
}

void lock_release(struct lock *l) TSA_UNCHECKED
{
	order_pop(l);
	pthread_mutex_unlock(&l->mutex);
}

void lock_cond_init(struct lock_cond *c, const char *name)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->cond, &attr);
	pthread_condattr_destroy(&attr);
	c->name = name;
}

void lock_cond_fini(struct lock_cond *c)
{
	pthread_cond_destroy(&c->cond);
}

void lock_cond_wait(struct lock_cond *c, struct lock *l)
{
	order_pop(l);
	pthread_cond_wait(&c->cond, &l->mutex);
	order_push(l);
}

int lock_cond_wait_for(struct lock_cond *c, struct lock *l, uint64_t ns)
{
	uint64_t until = now_ns() + ns;
	struct timespec ts = {
		.tv_sec = (time_t)(until / 1000000000ull),
		.tv_nsec = (long)(until % 1000000000ull),
	};
	int ret;

	order_pop(l);
	ret = pthread_cond_timedwait(&c->cond, &l->mutex, &ts);
	order_push(l);
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
