/*
 * Device threads. Threads: made and joined on main; the loop runs on its own.
 * Locks: one of level LOG (a leaf) a thread, for the calls that are waited for.
 */
#include "vmm/device_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vmm/base/big_lock.h"
#include "vmm/base/lock.h"
#include "vmm/base/thread.h"
#include "vmm/limits.h"

struct device_thread {
	struct event_loop *loop;
	pthread_t thread;
	bool started;
	_Atomic pid_t tid;
	char id[LIMIT_ID + 1]; /* the name of what follows, too */
	struct lock lock;
	struct lock_cond call_done; /* one of the calls; several may be waited for */
};

static void *thread_main(void *arg)
{
	struct device_thread *t = arg;

	atomic_store_explicit(&t->tid, gettid(), memory_order_release);
	event_loop_run(t->loop);
	return NULL;
}

static void nothing(void *arg)
{
}

struct device_thread *device_thread_new(const char *id, struct error *err)
{
	struct device_thread *t = calloc(1, sizeof(*t));
	char name[LIMIT_ID + 8];
	int ret;

	if (!t) {
		error_set(err, -ENOMEM, "device %s: no memory for its thread", id);
		return NULL;
	}
	snprintf(t->id, sizeof(t->id), "%s", id);
	lock_init(&t->lock, LOCK_LEVEL_LOG, "device call", t->id);
	lock_cond_init(&t->call_done, "device call", t->id);
	t->loop = event_loop_new();
	if (!t->loop) {
		error_set(err, -ENOMEM, "device %s: no memory for its event loop", id);
		return device_thread_free(t);
	}
	if (big_lock_is_on())
		event_loop_set_big_lock(t->loop);
	snprintf(name, sizeof(name), "dev %s", id);
	ret = thread_start(&t->thread, name, thread_main, t);
	t->started = ret == 0;
	if (ret < 0) {
		error_set_errno(err, ret, "device %s: cannot start its thread", id);
		return device_thread_free(t);
	}
	/* Until it runs: its tid is asked for as soon as the VM is there. */
	(void)device_thread_call(t, nothing, NULL);
	return t;
}

struct device_thread *device_thread_free(struct device_thread *t)
{
	if (!t)
		return NULL;
	if (t->started) {
		event_loop_stop(t->loop);
		pthread_join(t->thread, NULL);
	}
	event_loop_free(t->loop);
	lock_cond_fini(&t->call_done);
	lock_fini(&t->lock);
	free(t);
	return NULL;
}

struct event_loop *device_thread_loop(struct device_thread *t)
{
	return t->loop;
}

pid_t device_thread_tid(const struct device_thread *t)
{
	return atomic_load_explicit(&t->tid, memory_order_acquire);
}

struct call {
	struct event_post post;
	struct device_thread *thread;
	event_fn fn;
	void *arg;
	bool done TSA_GUARDED;
};

/* The caller may take its frame away as soon as it can see `done`. */
static void run_call(void *arg)
{
	struct call *c = arg;
	struct device_thread *t = c->thread;

	c->fn(c->arg);
	lock_take(&t->lock);
	c->done = true;
	lock_cond_broadcast(&t->call_done);
	lock_release(&t->lock);
}

int device_thread_call_at(struct device_thread *t, event_fn fn, void *arg,
			  const struct lock_site *site)
{
	struct call c = { .thread = t, .fn = fn, .arg = arg };

	event_loop_post_node(t->loop, &c.post, run_call, &c);
	lock_take_at(&t->lock, site);
	while (!c.done)
		lock_cond_wait_at(&t->call_done, &t->lock, site);
	lock_release(&t->lock);
	return 0;
}
