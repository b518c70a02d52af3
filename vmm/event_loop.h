/*
 * An event loop: descriptors, timers, signals and calls posted from other
 * threads. The only file of ours (with api/server.c) that knows libevent.
 *
 * Threads: a loop belongs to the thread that runs it; everything here is
 * called on that thread, except event_loop_post() and event_loop_stop(),
 * which any thread may call.
 * Locks: none; posted calls go through a lock-free list and an eventfd. Under
 * --big-lock the call-backs of a device's loop run with the big lock held.
 */
#ifndef LULL_EVENT_LOOP_H
#define LULL_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct event_loop;
struct event_source;

#define EVENT_READABLE 1u
#define EVENT_WRITABLE 2u

typedef void (*event_fd_fn)(void *arg, int fd, unsigned events);
typedef void (*event_fn)(void *arg);
typedef void (*event_signal_fn)(void *arg, int signo);

/* A posted call that lies in its owner's struct, so that posting it cannot fail. */
struct event_post {
	struct event_post *next;
	event_fn fn;
	void *arg;
	bool on_heap; /* by event_loop_post() */
};

struct event_loop *event_loop_new(void);
/* NULL allowed. Sources that are left are freed with it; posted calls are dropped. */
struct event_loop *event_loop_free(struct event_loop *loop);

/* Before it runs: each call-back, posted ones as well, is to hold the big lock, which is on. */
void event_loop_set_big_lock(struct event_loop *loop);

/* Runs until event_loop_stop(). */
void event_loop_run(struct event_loop *loop);
/* Any thread; event_loop_run() returns soon, also when called before it. */
void event_loop_stop(struct event_loop *loop);

/*
 * Watches `fd` for EVENT_READABLE and/or EVENT_WRITABLE, level-triggered, until
 * the source is freed. The descriptor stays the caller's. NULL without memory.
 */
struct event_source *event_loop_add_fd(struct event_loop *loop, int fd, unsigned events,
				       event_fd_fn fn, void *arg);
/* A timer that is not armed yet. */
struct event_source *event_loop_add_timer(struct event_loop *loop, event_fn fn, void *arg);
struct event_source *event_loop_add_signal(struct event_loop *loop, int signo, event_signal_fn fn,
					   void *arg);

/* Stops and starts the watching of a descriptor without freeing it. */
void event_source_enable(struct event_source *source, bool on);
/* Arms a timer to fire once in `ns` nanoseconds, replacing an earlier time. */
void event_source_arm(struct event_source *source, uint64_t ns);
void event_source_disarm(struct event_source *source);
/* NULL allowed. The call-back does not run again. */
struct event_source *event_source_free(struct event_source *source);

/*
 * Any thread: has `fn(arg)` called on the loop's thread, in the order of posts.
 * -ENOMEM, or 0.
 */
int event_loop_post(struct event_loop *loop, event_fn fn, void *arg);

/*
 * Any thread: the same with a node of the caller's, which is free again when `fn`
 * begins to run, and must not be posted a second time before.
 */
void event_loop_post_node(struct event_loop *loop, struct event_post *node, event_fn fn,
			  void *arg);

/* The loop's thread: forgets all posted calls, whose owners are about to be freed. */
void event_loop_drop_posts(struct event_loop *loop);

/* For api/server.c, which runs evhttp on the main loop. */
struct event_base *event_loop_base(struct event_loop *loop);

#endif
