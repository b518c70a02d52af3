/*
 * Event loop over libevent. Threads: the loop's own; post and stop from any.
 * Locks: none. Posted calls form a lock-free stack that the loop takes whole
 * and turns round; the eventfd is signalled by whoever finds the stack empty.
 */
#include "vmm/event_loop.h"

#include <errno.h>
#include <event2/event.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/big_lock.h"
#include "vmm/base/fd.h"

struct event_loop {
	/* constant after event_loop_new() */
	struct event_base *base;
	int wake_fd;
	struct event_source *wake;
	bool big_lock;

	/* its thread only */
	struct event_source *sources;

	/* any thread */
	_Atomic(struct event_post *) posted; /* newest first */
	atomic_bool stop;
};

struct event_source {
	struct event_loop *loop;
	struct event_source *next;
	struct event_source **link; /* what points at us */
	struct event *event;
	union {
		event_fd_fn fd;
		event_fn timer;
		event_signal_fn signal;
	} fn;
	void *arg;
};

static void run_posted(struct event_loop *loop)
{
	struct event_post *p = atomic_exchange_explicit(&loop->posted, NULL, memory_order_acquire);
	struct event_post *oldest = NULL;

	while (p) {
		struct event_post *next = p->next;

		p->next = oldest;
		oldest = p;
		p = next;
	}
	while (oldest) {
		event_fn fn = oldest->fn;
		void *arg = oldest->arg;

		p = oldest;
		oldest = p->next;
		if (p->on_heap)
			free(p);
		fn(arg); /* from here on the node may be posted again */
	}
}

static void on_wake(void *arg, int fd, unsigned events)
{
	struct event_loop *loop = arg;

	fd_eventfd_drain(fd);
	run_posted(loop);
	if (atomic_load_explicit(&loop->stop, memory_order_acquire))
		event_base_loopbreak(loop->base);
}

struct event_loop *event_loop_new(void)
{
	struct event_loop *loop = calloc(1, sizeof(*loop));
	struct event_config *config = event_config_new();

	if (!loop || !config)
		goto undo;
	event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV | EVENT_BASE_FLAG_NOLOCK);
	loop->base = event_base_new_with_config(config);
	loop->wake_fd = fd_eventfd_new();
	if (!loop->base || loop->wake_fd < 0)
		goto undo;
	loop->wake = event_loop_add_fd(loop, loop->wake_fd, EVENT_READABLE, on_wake, loop);
	if (!loop->wake)
		goto undo;
	event_config_free(config);
	return loop;

undo:
	if (config)
		event_config_free(config);
	return event_loop_free(loop);
}

void event_loop_set_big_lock(struct event_loop *loop)
{
	loop->big_lock = true;
}

void event_loop_drop_posts(struct event_loop *loop)
{
	struct event_post *p = atomic_exchange(&loop->posted, NULL);

	while (p) {
		struct event_post *next = p->next;

		if (p->on_heap)
			free(p);
		p = next;
	}
}

struct event_loop *event_loop_free(struct event_loop *loop)
{
	if (!loop)
		return NULL;
	while (loop->sources)
		event_source_free(loop->sources);
	event_loop_drop_posts(loop);
	if (loop->base)
		event_base_free(loop->base);
	if (loop->wake_fd > 0)
		close(loop->wake_fd);
	free(loop);
	return NULL;
}

void event_loop_run(struct event_loop *loop)
{
	if (!atomic_load_explicit(&loop->stop, memory_order_acquire))
		event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY);
	atomic_store_explicit(&loop->stop, false, memory_order_relaxed);
}

void event_loop_stop(struct event_loop *loop)
{
	atomic_store_explicit(&loop->stop, true, memory_order_release);
	fd_eventfd_signal(loop->wake_fd);
}

static void push(struct event_loop *loop, struct event_post *p)
{
	struct event_post *old = atomic_load_explicit(&loop->posted, memory_order_relaxed);

	do {
		p->next = old;
	} while (!atomic_compare_exchange_weak_explicit(&loop->posted, &old, p,
							memory_order_release,
							memory_order_relaxed));
	if (!old)
		fd_eventfd_signal(loop->wake_fd);
}

int event_loop_post(struct event_loop *loop, event_fn fn, void *arg)
{
	struct event_post *p = malloc(sizeof(*p));

	if (!p)
		return -ENOMEM;
	*p = (struct event_post){ .fn = fn, .arg = arg, .on_heap = true };
	push(loop, p);
	return 0;
}

void event_loop_post_node(struct event_loop *loop, struct event_post *node, event_fn fn,
			  void *arg)
{
	*node = (struct event_post){ .fn = fn, .arg = arg };
	push(loop, node);
}

struct event_base *event_loop_base(struct event_loop *loop)
{
	return loop->base;
}

static struct event_source *source_new(struct event_loop *loop, void *arg)
{
	struct event_source *source = calloc(1, sizeof(*source));

	if (!source)
		return NULL;
	source->loop = loop;
	source->arg = arg;
	source->next = loop->sources;
	source->link = &loop->sources;
	if (source->next)
		source->next->link = &source->next;
	loop->sources = source;
	return source;
}

/* Takes the libevent object over; frees the source if there is none or it cannot be added. */
static struct event_source *source_begin(struct event_source *source, struct event *event,
					 bool add)
{
	source->event = event;
	if (!event || (add && event_add(event, NULL) < 0))
		return event_source_free(source);
	return source;
}

/* Around each call-back, which may free its source. Posted calls come by on_wake(). */

static struct event_loop *begin(const struct event_source *source)
{
	if (source->loop->big_lock)
		big_lock_take();
	return source->loop;
}

static void end(const struct event_loop *loop)
{
	if (loop->big_lock)
		big_lock_release();
}

static void on_fd(evutil_socket_t fd, short what, void *arg)
{
	struct event_source *source = arg;
	unsigned events = (what & EV_READ ? EVENT_READABLE : 0) |
			  (what & EV_WRITE ? EVENT_WRITABLE : 0);
	struct event_loop *loop = begin(source);

	source->fn.fd(source->arg, fd, events);
	end(loop);
}

struct event_source *event_loop_add_fd(struct event_loop *loop, int fd, unsigned events,
				       event_fd_fn fn, void *arg)
{
	struct event_source *source = source_new(loop, arg);
	short what = EV_PERSIST;

	if (!source)
		return NULL;
	if (events & EVENT_READABLE)
		what |= EV_READ;
	if (events & EVENT_WRITABLE)
		what |= EV_WRITE;
	source->fn.fd = fn;
	return source_begin(source, event_new(loop->base, fd, what, on_fd, source), true);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct event_source *source = arg;
	struct event_loop *loop = begin(source);

	source->fn.timer(source->arg);
	end(loop);
}

struct event_source *event_loop_add_timer(struct event_loop *loop, event_fn fn, void *arg)
{
	struct event_source *source = source_new(loop, arg);

	if (!source)
		return NULL;
	source->fn.timer = fn;
	return source_begin(source, evtimer_new(loop->base, on_timer, source), false);
}

static void on_signal(evutil_socket_t signo, short what, void *arg)
{
	struct event_source *source = arg;
	struct event_loop *loop = begin(source);

	source->fn.signal(source->arg, signo);
	end(loop);
}

struct event_source *event_loop_add_signal(struct event_loop *loop, int signo, event_signal_fn fn,
					   void *arg)
{
	struct event_source *source = source_new(loop, arg);

	if (!source)
		return NULL;
	source->fn.signal = fn;
	return source_begin(source, evsignal_new(loop->base, signo, on_signal, source), true);
}

void event_source_enable(struct event_source *source, bool on)
{
	if (on)
		event_add(source->event, NULL);
	else
		event_del(source->event);
}

void event_source_arm(struct event_source *source, uint64_t ns)
{
	uint64_t us = (ns + 999) / 1000;
	struct timeval tv = {
		.tv_sec = (time_t)(us / 1000000),
		.tv_usec = (suseconds_t)(us % 1000000),
	};

	event_add(source->event, &tv);
}

void event_source_disarm(struct event_source *source)
{
	event_del(source->event);
}

struct event_source *event_source_free(struct event_source *source)
{
	if (!source)
		return NULL;
	if (source->event)
		event_free(source->event);
	*source->link = source->next;
	if (source->next)
		source->next->link = source->link;
	free(source);
	return NULL;
}
