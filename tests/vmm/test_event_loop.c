/*
 * The event loop: descriptors, timers, signals, calls from other threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/event_loop.h"

#define THREADS 4
#define POSTS 5000

struct fixture {
	struct event_loop *loop;
	unsigned calls;
	int order[64];
	int signo;
	struct event_source *source;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->loop = event_loop_new();
	*state = f;
	return f->loop ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	event_loop_free(f->loop);
	free(f);
	return 0;
}

/* A posted call that remembers its number. */
struct numbered {
	struct fixture *f;
	int number;
};

static void note_number(void *arg)
{
	struct numbered *n = arg;

	n->f->order[n->f->calls++] = n->number;
}

static void stop(void *arg)
{
	struct fixture *f = arg;

	f->calls++;
	event_loop_stop(f->loop);
}

static void posted_calls_run_in_the_order_of_posts(void **state)
{
	struct fixture *f = *state;
	struct numbered n[20];
	int i;

	for (i = 0; i < 20; i++) {
		n[i] = (struct numbered){ f, i };
		assert_int_equal(event_loop_post(f->loop, note_number, &n[i]), 0);
	}
	assert_int_equal(event_loop_post(f->loop, stop, f), 0);
	event_loop_run(f->loop);
	assert_int_equal(f->calls, 21);
	for (i = 0; i < 20; i++)
		assert_int_equal(f->order[i], i);
}

static void post_again(void *arg)
{
	struct fixture *f = arg;

	if (++f->calls == 10)
		event_loop_stop(f->loop);
	else
		event_loop_post(f->loop, post_again, f);
}

static void a_posted_call_may_post(void **state)
{
	struct fixture *f = *state;

	event_loop_post(f->loop, post_again, f);
	event_loop_run(f->loop);
	assert_int_equal(f->calls, 10);
}

/* A node in its owner's struct: posting it needs no memory and cannot fail. */
struct reposted {
	struct fixture *f;
	struct event_post node;
};

static void post_node_again(void *arg)
{
	struct reposted *r = arg;

	if (++r->f->calls == 10)
		event_loop_stop(r->f->loop);
	else
		event_loop_post_node(r->f->loop, &r->node, post_node_again, r);
}

static void a_node_is_free_again_when_its_call_runs(void **state)
{
	struct fixture *f = *state;
	struct reposted r = { .f = f };

	event_loop_post_node(f->loop, &r.node, post_node_again, &r);
	event_loop_run(f->loop);
	assert_int_equal(f->calls, 10);
}

static void nodes_and_posts_keep_one_order(void **state)
{
	struct fixture *f = *state;
	struct numbered n[10];
	struct event_post nodes[10];
	int i;

	for (i = 0; i < 10; i++) {
		n[i] = (struct numbered){ f, i };
		if (i % 2)
			event_loop_post(f->loop, note_number, &n[i]);
		else
			event_loop_post_node(f->loop, &nodes[i], note_number, &n[i]);
	}
	event_loop_post(f->loop, stop, f);
	event_loop_run(f->loop);
	for (i = 0; i < 10; i++)
		assert_int_equal(f->order[i], i);
}

/* The owner of a node drops what is posted before it frees it. */
static void dropped_posts_do_not_run(void **state)
{
	struct fixture *f = *state;
	struct numbered n = { f, 1 };
	struct event_post *node = malloc(sizeof(*node));

	event_loop_post_node(f->loop, node, note_number, &n);
	event_loop_post(f->loop, note_number, &n);
	event_loop_drop_posts(f->loop);
	free(node);
	event_loop_post(f->loop, stop, f);
	event_loop_run(f->loop);
	assert_int_equal(f->calls, 1);
}

/* Each thread's posts arrive complete and in that thread's order. */
struct poster {
	struct fixture *f;
	pthread_t thread;
	_Atomic int next;
	int seen;
	bool in_order;
};

static atomic_int posters_done;

static void take_post(void *arg)
{
	struct poster *p = arg;

	p->in_order = p->in_order && p->seen < atomic_load(&p->next);
	if (++p->seen == POSTS && atomic_fetch_add(&posters_done, 1) == THREADS - 1)
		event_loop_stop(p->f->loop);
}

static void *post_many(void *arg)
{
	struct poster *p = arg;
	int i;

	for (i = 0; i < POSTS; i++) {
		atomic_store(&p->next, i + 1);
		event_loop_post(p->f->loop, take_post, p);
	}
	return NULL;
}

static void no_post_of_many_threads_is_lost(void **state)
{
	struct fixture *f = *state;
	struct poster p[THREADS];
	int i;

	atomic_store(&posters_done, 0);
	for (i = 0; i < THREADS; i++) {
		p[i] = (struct poster){ .f = f, .in_order = true };
		pthread_create(&p[i].thread, NULL, post_many, &p[i]);
	}
	event_loop_run(f->loop);
	for (i = 0; i < THREADS; i++) {
		pthread_join(p[i].thread, NULL);
		assert_int_equal(p[i].seen, POSTS);
		assert_true(p[i].in_order);
	}
}

static void *stop_later(void *arg)
{
	usleep(20000);
	event_loop_stop(arg);
	return NULL;
}

static void another_thread_may_stop_it(void **state)
{
	struct fixture *f = *state;
	pthread_t thread;

	pthread_create(&thread, NULL, stop_later, f->loop);
	event_loop_run(f->loop);
	pthread_join(thread, NULL);
}

static void a_stop_before_the_run_is_kept(void **state)
{
	struct fixture *f = *state;

	event_loop_stop(f->loop);
	event_loop_run(f->loop);
}

static void it_may_run_again_after_a_stop(void **state)
{
	struct fixture *f = *state;
	int i;

	for (i = 0; i < 3; i++) {
		event_loop_post(f->loop, stop, f);
		event_loop_run(f->loop);
	}
	assert_int_equal(f->calls, 3);
}

static void posts_that_never_ran_are_dropped_with_it(void **state)
{
	struct fixture f = { .loop = event_loop_new() };
	struct numbered n = { &f, 1 };

	event_loop_post(f.loop, note_number, &n);
	event_loop_post(f.loop, note_number, &n);
	event_loop_free(f.loop);
	assert_int_equal(f.calls, 0);
}

static void on_readable(void *arg, int fd, unsigned events)
{
	struct fixture *f = arg;
	char c;

	assert_int_equal(events, EVENT_READABLE);
	assert_int_equal(read(fd, &c, 1), 1);
	if (++f->calls == 3)
		event_loop_stop(f->loop);
}

static void a_descriptor_is_watched_until_it_is_empty(void **state)
{
	struct fixture *f = *state;
	int pipe_fds[2];

	assert_int_equal(pipe(pipe_fds), 0);
	f->source = event_loop_add_fd(f->loop, pipe_fds[0], EVENT_READABLE, on_readable, f);
	assert_int_equal(write(pipe_fds[1], "abc", 3), 3);
	event_loop_run(f->loop);
	assert_int_equal(f->calls, 3);
	event_source_free(f->source);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static void on_writable(void *arg, int fd, unsigned events)
{
	struct fixture *f = arg;

	assert_int_equal(events, EVENT_WRITABLE);
	event_source_enable(f->source, false);
	stop(f);
}

static void a_descriptor_with_room_is_writable(void **state)
{
	struct fixture *f = *state;
	int fd = fd_eventfd_new();

	f->source = event_loop_add_fd(f->loop, fd, EVENT_WRITABLE, on_writable, f);
	event_loop_run(f->loop);
	assert_int_equal(f->calls, 1);
	event_source_free(f->source);
	close(fd);
}

static void a_disabled_source_is_silent(void **state)
{
	struct fixture *f = *state;
	int fd = fd_eventfd_new();
	struct event_source *timer = event_loop_add_timer(f->loop, stop, f);

	f->source = event_loop_add_fd(f->loop, fd, EVENT_WRITABLE, on_writable, f);
	event_source_enable(f->source, false);
	event_source_arm(timer, 5000000);
	event_loop_run(f->loop);
	assert_int_equal(f->calls, 1); /* the timer's */
	event_source_enable(f->source, true);
	event_loop_run(f->loop);
	assert_int_equal(f->calls, 2);
	event_source_free(f->source);
	event_source_free(timer);
	close(fd);
}

static void free_itself(void *arg)
{
	struct fixture *f = arg;

	f->source = event_source_free(f->source);
	stop(f);
}

static void a_source_may_free_itself_in_its_call_back(void **state)
{
	struct fixture *f = *state;

	f->source = event_loop_add_timer(f->loop, free_itself, f);
	event_source_arm(f->source, 0);
	event_loop_run(f->loop);
	assert_null(f->source);
}

static void a_timer_fires_once_and_can_be_armed_again(void **state)
{
	struct fixture *f = *state;

	f->source = event_loop_add_timer(f->loop, stop, f);
	event_source_arm(f->source, 1000);
	event_loop_run(f->loop);
	event_source_arm(f->source, 1000);
	event_loop_run(f->loop);
	assert_int_equal(f->calls, 2);
	event_source_free(f->source);
}

static void a_disarmed_timer_does_not_fire(void **state)
{
	struct fixture *f = *state;
	struct event_source *other = event_loop_add_timer(f->loop, stop, f);
	struct numbered n = { f, 7 };

	f->source = event_loop_add_timer(f->loop, note_number, &n);
	event_source_arm(f->source, 1000000);
	event_source_disarm(f->source);
	event_source_arm(other, 10000000);
	event_loop_run(f->loop);
	assert_int_equal(f->calls, 1);
	event_source_free(f->source);
	event_source_free(other);
}

static void on_signal(void *arg, int signo)
{
	struct fixture *f = arg;

	f->signo = signo;
	event_loop_stop(f->loop);
}

static void a_signal_is_given_on_the_loop(void **state)
{
	struct fixture *f = *state;

	f->source = event_loop_add_signal(f->loop, SIGUSR1, on_signal, f);
	raise(SIGUSR1);
	event_loop_run(f->loop);
	assert_int_equal(f->signo, SIGUSR1);
	event_source_free(f->source);
}

static void free_of_null_is_fine(void **state)
{
	assert_null(event_loop_free(NULL));
	assert_null(event_source_free(NULL));
}

static void sources_that_are_left_go_with_the_loop(void **state)
{
	struct event_loop *loop = event_loop_new();
	int fd = fd_eventfd_new();

	assert_non_null(event_loop_add_fd(loop, fd, EVENT_READABLE, on_readable, NULL));
	assert_non_null(event_loop_add_timer(loop, stop, NULL));
	event_loop_free(loop);
	close(fd);
}

int main(void)
{
#define WITH_LOOP(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_LOOP(posted_calls_run_in_the_order_of_posts),
		WITH_LOOP(a_posted_call_may_post),
		WITH_LOOP(a_node_is_free_again_when_its_call_runs),
		WITH_LOOP(nodes_and_posts_keep_one_order),
		WITH_LOOP(dropped_posts_do_not_run),
		WITH_LOOP(no_post_of_many_threads_is_lost),
		WITH_LOOP(another_thread_may_stop_it),
		WITH_LOOP(a_stop_before_the_run_is_kept),
		WITH_LOOP(it_may_run_again_after_a_stop),
		cmocka_unit_test(posts_that_never_ran_are_dropped_with_it),
		WITH_LOOP(a_descriptor_is_watched_until_it_is_empty),
		WITH_LOOP(a_descriptor_with_room_is_writable),
		WITH_LOOP(a_disabled_source_is_silent),
		WITH_LOOP(a_source_may_free_itself_in_its_call_back),
		WITH_LOOP(a_timer_fires_once_and_can_be_armed_again),
		WITH_LOOP(a_disarmed_timer_does_not_fire),
		WITH_LOOP(a_signal_is_given_on_the_loop),
		cmocka_unit_test(free_of_null_is_fine),
		cmocka_unit_test(sources_that_are_left_go_with_the_loop),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
