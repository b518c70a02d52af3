/*
 * A real server and raw clients. Threads: as in the header. Locks: none.
 */
#include "tests/api/live.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tests/api/cmocka_all.h"
#include "vmm/base/ratelimit.h"

char live_text[70000];

/*
 * evhttp closes a socket a moment before it takes it out of its epoll set, which
 * does no harm. Clients are threads of the same process here: one that was given
 * the number meanwhile looks like a race to ThreadSanitizer.
 */
const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
	return "race:^epoll_ctl$\n";
}

int live_setup_stopped(void **state)
{
	struct live *l = calloc(1, sizeof(*l));

	if (!l)
		return -1;
	signal(SIGPIPE, SIG_IGN);
	snprintf(l->dir, sizeof(l->dir), "/tmp/lull-api-XXXXXX");
	if (!mkdtemp(l->dir))
		return -1;
	snprintf(l->path, sizeof(l->path), "%s/api.sock", l->dir);
	fake_control_init(&l->vm);
	l->loop = event_loop_new();
	l->vm.loop = l->loop;
	l->options = (struct api_options){
		.socket_path = l->path,
		.identity = { "Firecracker", "1.15.0" },
		.deadline_ms = LIVE_DEADLINE_MS,
	};
	*state = l;
	return l->loop ? 0 : -1;
}

static void *run_loop(void *arg)
{
	struct live *l = arg;

	event_loop_run(l->loop);
	return NULL;
}

static void run_thread(struct live *l)
{
	l->running = pthread_create(&l->thread, NULL, run_loop, l) == 0;
	assert_true(l->running);
}

void live_start(struct live *l)
{
	struct error err;

	l->server = api_server_new(l->loop, &l->vm, &l->options, &err);
	if (!l->server)
		fail_msg("%s", err.text);
	run_thread(l);
}

void live_stop(struct live *l)
{
	if (!l->running)
		return;
	event_loop_stop(l->loop);
	pthread_join(l->thread, NULL);
	l->running = false;
}

int live_setup(void **state)
{
	if (live_setup_stopped(state) < 0)
		return -1;
	live_start(*state);
	return 0;
}

int live_teardown(void **state)
{
	struct live *l = *state;

	live_stop(l);
	l->server = api_server_free(l->server);
	l->loop = event_loop_free(l->loop);
	unlink(l->path);
	rmdir(l->dir);
	free(l);
	return 0;
}

struct turn {
	event_fn fn;
	void *arg;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool done;
};

static void take_turn(void *arg)
{
	struct turn *t = arg;

	t->fn(t->arg);
	pthread_mutex_lock(&t->mutex);
	t->done = true;
	pthread_cond_signal(&t->cond);
	pthread_mutex_unlock(&t->mutex);
}

void live_on_loop(struct live *l, event_fn fn, void *arg)
{
	struct turn t = { fn, arg, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false };

	assert_int_equal(event_loop_post(l->loop, take_turn, &t), 0);
	pthread_mutex_lock(&t.mutex);
	while (!t.done)
		pthread_cond_wait(&t.cond, &t.mutex);
	pthread_mutex_unlock(&t.mutex);
}

int live_connect(const struct live *l)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct timeval limit = { .tv_sec = 10 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(name.sun_path, sizeof(name.sun_path), "%s", l->path);
	assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	return fd;
}

void live_send(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t put = send(fd, bytes, len, MSG_NOSIGNAL);

		if (put <= 0)
			return; /* the server has had enough: the answer tells */
		bytes += put;
		len -= (size_t)put;
	}
}

void live_say(int fd, const char *text)
{
	live_send(fd, text, strlen(text));
}

size_t live_read_all(int fd, char *out, size_t size)
{
	size_t used = 0;
	ssize_t got;

	while (used + 1 < size && (got = recv(fd, out + used, size - 1 - used, 0)) > 0)
		used += (size_t)got;
	out[used] = '\0';
	return used;
}

static size_t length_of(const char *head)
{
	const char *line = strcasestr(head, "\r\nContent-Length: ");

	return line ? strtoul(line + 18, NULL, 10) : 0;
}

/* Byte by byte, so that nothing of the next answer is taken. */
int live_answer(int fd, char *out, size_t size)
{
	size_t used = 0, need = size - 1;

	while (used < need) {
		if (recv(fd, out + used, 1, 0) != 1)
			return 0;
		out[++used] = '\0';
		if (need == size - 1 && used >= 4 && !strcmp(out + used - 4, "\r\n\r\n"))
			need = used + length_of(out);
	}
	return (int)strtol(out + 9, NULL, 10);
}

int live_ask(int fd, const char *request, char *out, size_t size)
{
	live_say(fd, request);
	return live_answer(fd, out, size);
}

bool live_is_closed(int fd)
{
	char rest[4096];
	ssize_t got;

	do {
		got = recv(fd, rest, sizeof(rest), 0);
	} while (got > 0);
	return got == 0 || errno == ECONNRESET;
}

int live_ask_once(const struct live *l, const char *request)
{
	int fd = live_connect(l);
	int status = live_ask(fd, request, live_text, sizeof(live_text));

	close(fd);
	return status;
}

uint64_t live_now_ms(void)
{
	return ratelimit_now() / 1000000;
}

void live_sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}
