/*
 * A real server on a socket in a directory of its own, in a thread of its own;
 * the test is the client and speaks raw bytes.
 *
 * Threads: the loop's runs server and machine; the test's holds the sockets.
 * Locks: none: the test looks at the machine only when the loop stands still
 * or by live_on_loop().
 */
#ifndef LULL_TEST_LIVE_H
#define LULL_TEST_LIVE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/server.h"
#include "tests/fakes/fake_control.h"

#define LIVE_DEADLINE_MS 300

struct live {
	struct vm vm;
	struct event_loop *loop;
	struct api_server *server;
	struct api_options options;
	char dir[64];
	char path[96];
	pthread_t thread;
	bool running;
};

/* For cmocka: *state becomes a running struct live, known as Firecracker. */
int live_setup(void **state);
int live_teardown(void **state);

/* The same in parts. */
int live_setup_stopped(void **state);
void live_start(struct live *l);
void live_stop(struct live *l); /* the loop stands still, the server is there */

/* Runs `fn(arg)` on the loop and waits for it. */
void live_on_loop(struct live *l, event_fn fn, void *arg);

/* A connected, blocking socket with a 10 s limit on every call. */
int live_connect(const struct live *l);
void live_send(int fd, const char *bytes, size_t len);
void live_say(int fd, const char *text);
/* Reads until the end of the stream or the buffer; the text is NUL-terminated. */
size_t live_read_all(int fd, char *out, size_t size);
/* Reads one whole answer by its Content-Length; returns its status, 0 at the end of stream. */
int live_answer(int fd, char *out, size_t size);
/* Sends `request` and returns the status of the answer in `out`. */
int live_ask(int fd, const char *request, char *out, size_t size);
/* The same on a connection of its own; the answer is in live_text. */
int live_ask_once(const struct live *l, const char *request);
extern char live_text[70000];

#define GET_ROOT "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
#define PAUSE "PATCH /vm HTTP/1.1\r\nContent-Length: 18\r\n\r\n{\"state\":\"Paused\"}"

uint64_t live_now_ms(void);
void live_sleep_ms(long ms);

/* True if the server ends the stream within the limit. */
bool live_is_closed(int fd);

#endif
