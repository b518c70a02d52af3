/*
 * Device threads. Threads: made and joined on main; the loop runs on its own.
 * Locks: one of level LOG (a leaf) per call that is waited for, on the caller's stack.
 */
#include "vmm/device_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vmm/base/lock.h"
#include "vmm/base/thread.h"
#include "vmm/limits.h"

struct device_thread {
	struct event_loop *loop;
	pthread_t thread;
	bool started;
	_Atomic pid_t tid;
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

	if (t)
		t->loop = event_loop_new();
	if (!t || !t->loop) {
		error_set(err, -ENOMEM, "device %s: no memory for its event loop", id);
		return device_thread_free(t);
	}
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
	event_fn fn;
	void *arg;
	struct lock lock;
	struct lock_cond done_cond;
	bool done TSA_GUARDED;
};

static void run_call(void *arg)
{
	struct call *c = arg;

	c->fn(c->arg);
	lock_take(&c->lock);
	c->done = true;
	lock_cond_signal(&c->done_cond);
	lock_release(&c->lock);
}

int device_thread_call(struct device_thread *t, event_fn fn, void *arg)
{
	struct call c = { .fn = fn, .arg = arg };

	lock_init(&c.lock, LOCK_LEVEL_LOG, "device call", "");
	lock_cond_init(&c.done_cond, "device call", "");
	event_loop_post_node(t->loop, &c.post, run_call, &c);
	lock_take(&c.lock);
	while (!c.done)
		lock_cond_wait(&c.done_cond, &c.lock);
	lock_release(&c.lock);
	lock_cond_fini(&c.done_cond);
	lock_fini(&c.lock);
	return 0;
}
