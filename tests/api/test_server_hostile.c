/* The control socket under clients that are large, slow, many, silent or gone. */
#include "tests/api/cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/api/live.h"

/* A body of `size` bytes: an object with white space in it. */
static int put_body(struct live *l, const char *path, size_t size, bool whole)
{
	char *body = malloc(size);
	int fd = live_connect(l), status;
	char head[128];

	memset(body, ' ', size);
	body[0] = '{';
	body[size - 1] = '}';
	snprintf(head, sizeof(head), "PUT %s HTTP/1.1\r\nContent-Length: %zu\r\n\r\n", path, size);
	live_say(fd, head);
	live_send(fd, body, whole ? size : 10);
	status = live_answer(fd, live_text, sizeof(live_text));
	if (status >= 400)
		assert_true(live_is_closed(fd));
	close(fd);
	free(body);
	return status;
}

static void body_ends_at_its_limit(void **state)
{
	assert_int_equal(put_body(*state, "/entropy", LIMIT_API_BODY, true), 204);
	assert_int_equal(put_body(*state, "/entropy", LIMIT_API_BODY + 1, true), 400);
	assert_non_null(strstr(live_text, "{\"error\":\"Request payload with size 51201 is larger than "
				       "the limit of 51200 allowed by server.\\nAll previous "
				       "unanswered requests will be dropped.\"}"));
}

static void large_body_is_answered_before_it_comes(void **state)
{
	uint64_t start = live_now_ms();

	assert_int_equal(put_body(*state, "/entropy", 1u << 20, false), 400);
	assert_true(live_now_ms() - start < LIVE_DEADLINE_MS);
}

static void large_body_is_answered_after_it_came(void **state)
{
	assert_int_equal(put_body(*state, "/entropy", 1u << 20, true), 400);
	assert_int_equal(put_body(*state, "/v1/serial", 1u << 20, true), 413);
	assert_non_null(strstr(live_text, "\"code\":\"body_too_large\""));
	assert_int_equal(live_ask_once(*state, GET_ROOT), 200);
}

static void large_body_behind_another_request_is_refused(void **state)
{
	int fd = live_connect(*state);

	live_say(fd, GET_ROOT "PUT /entropy HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n{");
	assert_int_equal(live_answer(fd, live_text, sizeof(live_text)), 200);
	assert_int_equal(live_answer(fd, live_text, sizeof(live_text)), 400);
	assert_true(live_is_closed(fd));
	close(fd);
}

static void body_limit_may_be_set(void **state)
{
	struct live *l = *state;

	l->options.max_body = 250;
	live_start(l);
	assert_int_equal(put_body(l, "/entropy", 250, true), 204);
	assert_int_equal(put_body(l, "/entropy", 260, false), 400);
	assert_non_null(strstr(live_text, "size 260 is larger than the limit of 250"));
}

static void ten_thousand_levels_are_an_ordinary_error(void **state)
{
	char request[20200];
	int n = snprintf(request, sizeof(request),
			 "PUT /entropy HTTP/1.1\r\nContent-Length: 20000\r\n\r\n");

	memset(request + n, '[', 10000);
	memset(request + n + 10000, ']', 10000);
	request[n + 20000] = '\0';
	assert_int_equal(live_ask_once(*state, request), 400);
	assert_non_null(strstr(live_text, "recursion limit exceeded"));
}

static void slow_requests_meet_a_deadline(void **state)
{
	static const char *const starts[] = { "G", "GET / HTTP/1.1\r\nA: b\r\n",
					      "PUT /entropy HTTP/1.1\r\nContent-Length: 9\r\n\r\n{" };
	size_t i;

	for (i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		uint64_t start = live_now_ms();
		int fd = live_connect(*state);

		live_say(fd, starts[i]);
		assert_true(live_is_closed(fd));
		assert_in_range(live_now_ms() - start, LIVE_DEADLINE_MS - 20, LIVE_DEADLINE_MS + 2000);
		close(fd);
	}
}

static void silent_connections_meet_the_deadline(void **state)
{
	uint64_t start = live_now_ms();
	int fd = live_connect(*state);

	assert_true(live_is_closed(fd));
	assert_in_range(live_now_ms() - start, LIVE_DEADLINE_MS - 20, LIVE_DEADLINE_MS + 2000);
	close(fd);
}

static void silent_connections_delay_others_by_the_deadline_at_most(void **state)
{
	int fds[LIMIT_API_CONNECTIONS], i;
	uint64_t start;

	for (i = 0; i < LIMIT_API_CONNECTIONS; i++)
		fds[i] = live_connect(*state);
	start = live_now_ms();
	assert_int_equal(live_ask_once(*state, GET_ROOT), 200);
	assert_true(live_now_ms() - start < LIVE_DEADLINE_MS + 2000);
	for (i = 0; i < LIMIT_API_CONNECTIONS; i++)
		close(fds[i]);
}

static void dripping_bytes_do_not_move_the_deadline(void **state)
{
	int fd = live_connect(*state);
	uint64_t start = live_now_ms();

	live_say(fd, "GET / HTTP/1.1\r\n");
	while (live_now_ms() - start < 2000 && send(fd, "a", 1, MSG_NOSIGNAL) == 1)
		live_sleep_ms(20);
	assert_in_range(live_now_ms() - start, LIVE_DEADLINE_MS - 50, 1900);
	close(fd);
}

static void pipelined_leftovers_have_a_deadline(void **state)
{
	int fd = live_connect(*state);

	live_say(fd, GET_ROOT "GET / HT");
	assert_int_equal(live_answer(fd, live_text, sizeof(live_text)), 200);
	assert_true(live_is_closed(fd));
	close(fd);
}

static void kept_connections_outlive_the_deadline(void **state)
{
	int fd = live_connect(*state);

	assert_int_equal(live_ask(fd, GET_ROOT, live_text, sizeof(live_text)), 200);
	live_sleep_ms(2 * LIVE_DEADLINE_MS);
	assert_int_equal(live_ask(fd, GET_ROOT, live_text, sizeof(live_text)), 200);
	close(fd);
}

static void idle_connections_end(void **state)
{
	struct live *l = *state;
	int fd;

	l->options.idle_ms = 200;
	live_start(l);
	fd = live_connect(l);
	assert_int_equal(live_ask(fd, GET_ROOT, live_text, sizeof(live_text)), 200);
	assert_true(live_is_closed(fd));
	close(fd);
}

static void slow_commands_have_no_deadline(void **state)
{
	struct live *l = *state;
	int fd;

	l->vm.phase = CONTROL_RUNNING;
	l->vm.hold = true;
	fd = live_connect(l);
	live_say(fd, PAUSE);
	live_sleep_ms(2 * LIVE_DEADLINE_MS);
	live_on_loop(l, (event_fn)fake_control_release, &l->vm);
	assert_int_equal(live_answer(fd, live_text, sizeof(live_text)), 204);
	close(fd);
}

static void two_hundred_clients_are_served_in_turn(void **state)
{
	int fds[200];
	size_t i;

	for (i = 0; i < 100; i++) {
		fds[i] = live_connect(*state);
		live_say(fds[i], "GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
	}
	for (i = 0; i < 100; i++) {
		assert_int_equal(live_answer(fds[i], live_text, sizeof(live_text)), 200);
		close(fds[i]);
		fds[100 + i] = live_connect(*state);
		live_say(fds[100 + i], GET_ROOT);
	}
	for (i = 100; i < 200; i++) {
		assert_int_equal(live_answer(fds[i], live_text, sizeof(live_text)), 200);
		close(fds[i]);
	}
}

/* Fills all places with clients whose pauses are not answered. */
static void hang_clients(struct live *l, int fds[LIMIT_API_CONNECTIONS])
{
	int i;

	l->vm.phase = CONTROL_RUNNING;
	l->vm.hold = true;
	for (i = 0; i < LIMIT_API_CONNECTIONS; i++) {
		fds[i] = live_connect(l);
		live_say(fds[i], PAUSE);
	}
	live_sleep_ms(50);
}

static void eleventh_client_waits_while_ten_are_busy(void **state)
{
	int fds[LIMIT_API_CONNECTIONS], i, fd;
	struct live *l = *state;

	hang_clients(l, fds);
	fd = live_connect(l);
	live_say(fd, GET_ROOT);
	live_sleep_ms(50);
	assert_int_equal(recv(fd, live_text, 1, MSG_DONTWAIT), -1);
	live_on_loop(l, (event_fn)fake_control_release, &l->vm);
	assert_int_equal(live_answer(fd, live_text, sizeof(live_text)), 200);
	for (i = 0; i < LIMIT_API_CONNECTIONS; i++)
		close(fds[i]);
	close(fd);
}

static void longest_idle_connection_gives_its_place(void **state)
{
	int fds[LIMIT_API_CONNECTIONS], i;

	for (i = 0; i < LIMIT_API_CONNECTIONS; i++) {
		fds[i] = live_connect(*state);
		assert_int_equal(live_ask(fds[i], GET_ROOT, live_text, sizeof(live_text)), 200);
	}
	assert_int_equal(live_ask(fds[0], GET_ROOT, live_text, sizeof(live_text)), 200);
	assert_int_equal(live_ask_once(*state, GET_ROOT), 200);
	assert_true(live_is_closed(fds[1]));
	for (i = 0; i < LIMIT_API_CONNECTIONS; i++) {
		if (i != 1)
			assert_int_equal(live_ask(fds[i], GET_ROOT, live_text, sizeof(live_text)),
					 200);
		close(fds[i]);
	}
}

/* Half a request is no idleness: its deadline is what ends it. */
static void connections_with_half_a_request_keep_their_place(void **state)
{
	int fds[LIMIT_API_CONNECTIONS], i, fd;

	for (i = 0; i < LIMIT_API_CONNECTIONS; i++) {
		fds[i] = live_connect(*state);
		assert_int_equal(live_ask(fds[i], GET_ROOT, live_text, sizeof(live_text)), 200);
		live_say(fds[i], "GET / HT");
	}
	live_sleep_ms(20);
	fd = live_connect(*state);
	live_say(fds[0], "TP/1.1\r\n\r\n");
	assert_int_equal(live_answer(fds[0], live_text, sizeof(live_text)), 200);
	assert_int_equal(live_ask(fd, GET_ROOT, live_text, sizeof(live_text)), 200);
	for (i = 0; i < LIMIT_API_CONNECTIONS; i++)
		close(fds[i]);
	close(fd);
}

static void silent_clients_lose_their_place_when_they_leave(void **state)
{
	int fds[LIMIT_API_CONNECTIONS], round, i;

	for (round = 0; round < 5; round++) {
		for (i = 0; i < LIMIT_API_CONNECTIONS; i++)
			fds[i] = live_connect(*state);
		for (i = 0; i < LIMIT_API_CONNECTIONS; i++)
			close(fds[i]);
	}
	assert_int_equal(live_ask_once(*state, GET_ROOT), 200);
}

/* How much of a flood of requests the server takes from a client that reads nothing. */
static size_t flood(int fd)
{
	size_t taken = 0;
	ssize_t put = 0;
	uint64_t start = live_now_ms();

	while (live_now_ms() - start < 1000 && taken < (64u << 20)) {
		put = send(fd, GET_ROOT, sizeof(GET_ROOT) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (put > 0)
			taken += (size_t)put;
		else if (errno == EAGAIN)
			live_sleep_ms(1);
		else
			break;
	}
	return taken;
}

static size_t resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	char line[128] = "";
	char *next = line;

	if (f && fgets(line, sizeof(line), f))
		strtoul(line, &next, 10);
	if (f)
		fclose(f);
	return strtoul(next, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

static void clients_that_never_read_cost_little(void **state)
{
	size_t before = resident_bytes();
	int fd = live_connect(*state);

	assert_true(flood(fd) < (8u << 20));
	assert_true(resident_bytes() < before + (16u << 20));
	assert_int_equal(live_ask_once(*state, GET_ROOT), 200);
	close(fd);
}

static void clients_that_never_read_are_closed(void **state)
{
	int fd = live_connect(*state);
	size_t total = 0;
	ssize_t got;

	flood(fd);
	while ((got = recv(fd, live_text, sizeof(live_text), 0)) > 0)
		total += (size_t)got;
	assert_true(total > 0);
	assert_true(got == 0 || errno == ECONNRESET);
	close(fd);
}

static void client_may_leave_while_a_command_runs(void **state)
{
	struct live *l = *state;
	int fd;

	l->vm.phase = CONTROL_RUNNING;
	l->vm.hold = true;
	fd = live_connect(l);
	live_say(fd, PAUSE);
	live_sleep_ms(50);
	close(fd);
	live_sleep_ms(50);
	live_on_loop(l, (event_fn)fake_control_release, &l->vm);
	assert_int_equal(live_ask_once(l, GET_ROOT), 200);
	assert_non_null(strstr(live_text, "\"state\":\"Paused\""));
}

static void ten_clients_may_leave_while_commands_run(void **state)
{
	int fds[LIMIT_API_CONNECTIONS], i;
	struct live *l = *state;

	hang_clients(l, fds);
	for (i = 0; i < LIMIT_API_CONNECTIONS; i++)
		close(fds[i]);
	live_on_loop(l, (event_fn)fake_control_release, &l->vm);
	for (i = 0; i < LIMIT_API_CONNECTIONS; i++)
		assert_int_equal(live_ask_once(l, GET_ROOT), 200);
}

static void clients_that_left_give_their_places_before_the_answer(void **state)
{
	int fds[LIMIT_API_CONNECTIONS], i;
	struct live *l = *state;

	hang_clients(l, fds);
	for (i = 0; i < LIMIT_API_CONNECTIONS; i++)
		close(fds[i]);
	for (i = 0; i < LIMIT_API_CONNECTIONS; i++)
		assert_int_equal(live_ask_once(l, GET_ROOT), 200);
	live_stop(l);
	assert_int_equal(l->vm.waiting_count, LIMIT_API_CONNECTIONS);
	fake_control_release(&l->vm);
}

/* A client that sends no more has not left. */
static void half_closed_clients_get_the_answer_of_a_slow_command(void **state)
{
	struct live *l = *state;
	int fd;

	l->vm.phase = CONTROL_RUNNING;
	l->vm.hold = true;
	fd = live_connect(l);
	live_say(fd, PAUSE);
	shutdown(fd, SHUT_WR);
	live_sleep_ms(100);
	live_on_loop(l, (event_fn)fake_control_release, &l->vm);
	assert_int_equal(live_answer(fd, live_text, sizeof(live_text)), 204);
	close(fd);
}

/* They are that many at most; the next clients that leave keep their places. */
static void calls_without_clients_are_bounded(void **state)
{
	struct live *l = *state;
	int fd, i;

	l->vm.phase = CONTROL_RUNNING;
	l->vm.hold = true;
	for (i = 0; i < LIMIT_API_ORPHANS + LIMIT_API_CONNECTIONS; i++) {
		fd = live_connect(l);
		live_say(fd, PAUSE);
		close(fd);
	}
	fd = live_connect(l);
	live_say(fd, GET_ROOT);
	live_sleep_ms(100);
	assert_int_equal(recv(fd, live_text, 1, MSG_DONTWAIT), -1);
	live_on_loop(l, (event_fn)fake_control_release, &l->vm);
	assert_int_equal(live_answer(fd, live_text, sizeof(live_text)), 200);
	close(fd);
}

static void server_may_end_while_a_command_runs(void **state)
{
	struct live *l = *state;
	int fd;

	l->vm.phase = CONTROL_RUNNING;
	l->vm.hold = true;
	fd = live_connect(l);
	live_say(fd, PAUSE);
	live_sleep_ms(50);
	live_stop(l);
	assert_int_equal(l->vm.waiting_count, 1);
	l->server = api_server_free(l->server);
	fake_control_release(&l->vm);
	assert_true(live_is_closed(fd));
	close(fd);
}

static void replies_are_taken_before_the_end(void **state)
{
	struct live *l = *state;
	int fd = live_connect(l);

	live_say(fd, "PATCH /v1/vm HTTP/1.1\r\nContent-Length: 19\r\n\r\n{\"state\":\"Stopped\"}");
	live_sleep_ms(50);
	live_stop(l);
	api_server_drain(l->server, 1000);
	l->server = api_server_free(l->server);
	assert_int_equal(live_answer(fd, live_text, sizeof(live_text)), 204);
	assert_string_equal(l->vm.stop_reason, "asked by a client");
	close(fd);
}

/* libevent once wrote such a name past the end of its buffer. */
static void long_peer_names_do_no_harm(void **state)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX }, server = { .sun_family = AF_UNIX };
	struct live *l = *state;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(name.sun_path + 1, 'x', 100);
	assert_int_equal(bind(fd, (struct sockaddr *)&name,
			      offsetof(struct sockaddr_un, sun_path) + 101), 0);
	snprintf(server.sun_path, sizeof(server.sun_path), "%s", l->path);
	assert_int_equal(connect(fd, (struct sockaddr *)&server, sizeof(server)), 0);
	assert_int_equal(live_ask(fd, GET_ROOT, live_text, sizeof(live_text)), 200);
	close(fd);
}

static void broken_streams_leave_the_server_well(void **state)
{
	static const char *const parts[] = { "", "G", "GET / HTTP/1.1\r\n",
					     "PUT /entropy HTTP/1.1\r\nContent-Length: 5\r\n\r\n{}",
					     GET_ROOT, GET_ROOT GET_ROOT "GET" };
	size_t i;
	int fd;

	for (i = 0; i < 60; i++) {
		fd = live_connect(*state);
		live_say(fd, parts[i % (sizeof(parts) / sizeof(parts[0]))]);
		close(fd);
	}
	assert_int_equal(live_ask_once(*state, GET_ROOT), 200);
}

/* The client gets the last descriptor; accept() fails until the limit is raised again. */
static void exhausted_descriptors_only_delay(void **state)
{
	struct rlimit old, low;
	int fd, probe = dup(0);

	close(probe);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = (rlim_t)probe + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	fd = live_connect(*state);
	live_say(fd, GET_ROOT);
	live_sleep_ms(50);
	assert_int_equal(recv(fd, live_text, 1, MSG_DONTWAIT), -1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(live_answer(fd, live_text, sizeof(live_text)), 200);
	close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, live_setup, live_teardown)
#define TEST_STOPPED(name) cmocka_unit_test_setup_teardown(name, live_setup_stopped, live_teardown)
	const struct CMUnitTest tests[] = {
		TEST(body_ends_at_its_limit),
		TEST(large_body_is_answered_before_it_comes),
		TEST(large_body_is_answered_after_it_came),
		TEST(large_body_behind_another_request_is_refused),
		TEST_STOPPED(body_limit_may_be_set),
		TEST(ten_thousand_levels_are_an_ordinary_error),
		TEST(slow_requests_meet_a_deadline),
		TEST(silent_connections_meet_the_deadline),
		TEST(silent_connections_delay_others_by_the_deadline_at_most),
		TEST(dripping_bytes_do_not_move_the_deadline),
		TEST(pipelined_leftovers_have_a_deadline),
		TEST(kept_connections_outlive_the_deadline),
		TEST_STOPPED(idle_connections_end),
		TEST(slow_commands_have_no_deadline),
		TEST(two_hundred_clients_are_served_in_turn),
		TEST(eleventh_client_waits_while_ten_are_busy),
		TEST(longest_idle_connection_gives_its_place),
		TEST(connections_with_half_a_request_keep_their_place),
		TEST(silent_clients_lose_their_place_when_they_leave),
		TEST(clients_that_never_read_cost_little),
		TEST(clients_that_never_read_are_closed),
		TEST(client_may_leave_while_a_command_runs),
		TEST(ten_clients_may_leave_while_commands_run),
		TEST(clients_that_left_give_their_places_before_the_answer),
		TEST(half_closed_clients_get_the_answer_of_a_slow_command),
		TEST(calls_without_clients_are_bounded),
		TEST(server_may_end_while_a_command_runs),
		TEST(replies_are_taken_before_the_end),
		TEST(long_peer_names_do_no_harm),
		TEST(broken_streams_leave_the_server_well),
		TEST(exhausted_descriptors_only_delay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
