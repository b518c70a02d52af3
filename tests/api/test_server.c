/* The control socket: HTTP as clients speak it, well or badly. */
#include "tests/api/cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/api/live.h"

static void answers_carry_the_known_head(void **state)
{
	assert_int_equal(live_ask_once(*state, GET_ROOT), 200);
	assert_ptr_equal(strstr(live_text, "HTTP/1.1 200 OK\r\n"), live_text);
	assert_non_null(strstr(live_text, "\r\nServer: Firecracker API\r\n"));
	assert_non_null(strstr(live_text, "\r\nConnection: keep-alive\r\n"));
	assert_non_null(strstr(live_text, "\r\nContent-Type: application/json\r\n"));
	assert_non_null(strstr(live_text, "\"state\":\"Not started\""));
}

static void empty_answers_have_no_body_and_no_type(void **state)
{
	assert_int_equal(live_ask_once(*state, "PUT /entropy HTTP/1.1\r\nContent-Length: 3\r\n\r\n{}\n"), 204);
	assert_null(strcasestr(live_text, "content-type"));
	assert_null(strcasestr(live_text, "content-length"));
	assert_string_equal(strstr(live_text, "\r\n\r\n"), "\r\n\r\n");
}

static void deprecated_fields_are_told_in_a_header(void **state)
{
	assert_int_equal(live_ask_once(*state, "PATCH /machine-config HTTP/1.1\r\nContent-Length: 23\r\n\r\n"
				     "{\"cpu_template\":\"None\"}"), 204);
	assert_non_null(strstr(live_text, "\r\nDeprecation: true\r\n"));
}

static void connections_are_kept_alive(void **state)
{
	int fd = live_connect(*state);
	int i;

	for (i = 0; i < 20; i++)
		assert_int_equal(live_ask(fd, GET_ROOT, live_text, sizeof(live_text)), 200);
	close(fd);
}

static void clients_may_ask_for_a_close(void **state)
{
	int fd = live_connect(*state);

	assert_int_equal(live_ask(fd, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n", live_text,
				  sizeof(live_text)), 200);
	assert_non_null(strstr(live_text, "\r\nConnection: close\r\n"));
	assert_true(live_is_closed(fd));
	close(fd);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
	int fd = live_connect(*state);

	live_say(fd, "PUT /entropy HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}" GET_ROOT
		     "GET /version HTTP/1.1\r\n\r\nGET /nowhere HTTP/1.1\r\n\r\n");
	assert_int_equal(live_answer(fd, live_text, sizeof(live_text)), 204);
	assert_int_equal(live_answer(fd, live_text, sizeof(live_text)), 200);
	assert_non_null(strstr(live_text, "app_name"));
	assert_int_equal(live_answer(fd, live_text, sizeof(live_text)), 200);
	assert_non_null(strstr(live_text, "firecracker_version"));
	assert_int_equal(live_answer(fd, live_text, sizeof(live_text)), 400);
	close(fd);
}

static void pipelining_waits_for_slow_commands(void **state)
{
	struct live *l = *state;
	int fd;

	l->vm.phase = CONTROL_RUNNING;
	fd = live_connect(l);
	live_say(fd, PAUSE GET_ROOT);
	assert_int_equal(live_answer(fd, live_text, sizeof(live_text)), 204);
	assert_int_equal(live_answer(fd, live_text, sizeof(live_text)), 200);
	assert_non_null(strstr(live_text, "\"state\":\"Paused\""));
	close(fd);
}

static void absolute_targets_keep_the_connection(void **state)
{
	int fd = live_connect(*state);
	int i;

	for (i = 0; i < 3; i++)
		assert_int_equal(live_ask(fd, "GET http://localhost/machine-config HTTP/1.1\r\n"
					      "Host: localhost\r\n\r\n", live_text, sizeof(live_text)),
				 200);
	assert_int_equal(live_ask(fd, "GET http://other.host:80/version HTTP/1.1\r\n\r\n", live_text,
				  sizeof(live_text)), 200);
	assert_int_equal(live_ask(fd, GET_ROOT, live_text, sizeof(live_text)), 200);
	close(fd);
}

static void expect_continue_is_answered(void **state)
{
	int fd = live_connect(*state);

	live_say(fd, "PUT /entropy HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
	assert_int_equal(live_answer(fd, live_text, sizeof(live_text)), 100);
	live_say(fd, "{}");
	assert_int_equal(live_answer(fd, live_text, sizeof(live_text)), 204);
	close(fd);
}

static void requests_may_come_in_single_bytes(void **state)
{
	static const char request[] = "PUT /entropy HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";
	int fd = live_connect(*state);
	size_t i;

	for (i = 0; request[i]; i++)
		live_send(fd, request + i, 1);
	assert_int_equal(live_answer(fd, live_text, sizeof(live_text)), 204);
	close(fd);
}

static void half_closed_clients_get_their_answer(void **state)
{
	int fd = live_connect(*state);

	live_say(fd, GET_ROOT);
	shutdown(fd, SHUT_WR);
	assert_int_equal(live_answer(fd, live_text, sizeof(live_text)), 200);
	assert_true(live_is_closed(fd));
	close(fd);
}

static void old_http_is_served_and_closed(void **state)
{
	int fd = live_connect(*state);

	assert_int_equal(live_ask(fd, "GET / HTTP/1.0\r\n\r\n", live_text, 200), 200);
	close(fd);
	fd = live_connect(*state);
	live_say(fd, "GET / HTTP/1.0\r\n\r\n");
	assert_true(live_is_closed(fd));
	close(fd);
}

/* Each is answered by 400 or 501, or not at all, and then the stream ends. */
static void refused_as_http(struct live *l, const char *request)
{
	int fd = live_connect(l);
	int status = live_ask(fd, request, live_text, sizeof(live_text));

	if (status != 0 && status != 400 && status != 501)
		fail_msg("status %d for %s", status, request);
	assert_true(live_is_closed(fd));
	close(fd);
}

static void strange_versions_are_refused(void **state)
{
	refused_as_http(*state, "GET / HTTP/9.9\r\n\r\n");
	refused_as_http(*state, "GET / HTTP/-1.300\r\n\r\n");
	refused_as_http(*state, "GET / HTTP/1.2\r\n\r\n");
	refused_as_http(*state, "GET /\r\n\r\n");
	refused_as_http(*state, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
}

static void transfer_encoding_is_refused(void **state)
{
	static const char chunked[] = "PUT /entropy HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
				      "2\r\n{}\r\n0\r\n\r\n";

	assert_int_equal(live_ask_once(*state, chunked), 400);
	assert_non_null(strstr(live_text, "{\"error\":\"Transfer-Encoding is not supported."));
	refused_as_http(*state, "PUT /entropy HTTP/1.1\r\nTransfer-Encoding: identity\r\n"
				"Content-Length: 2\r\n\r\n{}");
	refused_as_http(*state, "PUT /entropy HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
				"2\r\n{}\r\n0\r\n\r\n");
}

static void content_length_comes_once_and_plain(void **state)
{
	refused_as_http(*state, "PUT /entropy HTTP/1.1\r\nContent-Length: 2\r\n"
				"Content-Length: 2\r\n\r\n{}");
	refused_as_http(*state, "PUT /entropy HTTP/1.1\r\nContent-Length: 2\r\n"
				"Content-Length: 30\r\n\r\n{}");
	refused_as_http(*state, "PUT /entropy HTTP/1.1\r\nContent-Length: +2\r\n\r\n{}");
	refused_as_http(*state, "PUT /entropy HTTP/1.1\r\nContent-Length: -2\r\n\r\n{}");
	refused_as_http(*state, "PUT /entropy HTTP/1.1\r\nContent-Length: 0x2\r\n\r\n{}");
}

static void strange_headers_are_refused(void **state)
{
	refused_as_http(*state, "GET / HTTP/1.1\r\nHost : x\r\n\r\n");
	refused_as_http(*state, "GET / HTTP/1.1\r\n: x\r\n\r\n");
	refused_as_http(*state, "GET / HTTP/1.1\r\nno colon\r\n\r\n");
	refused_as_http(*state, "GET / HTTP/1.1\r\nA: \x01\r\n\r\n");
}

static void header_count_and_size_are_bounded(void **state)
{
	char request[32768];
	size_t used = 0, i;

	used += (size_t)snprintf(request, sizeof(request), "GET / HTTP/1.1\r\n");
	for (i = 0; i < LIMIT_API_HEADER_COUNT; i++)
		used += (size_t)snprintf(request + used, sizeof(request) - used, "a%zu:b\r\n", i);
	snprintf(request + used, sizeof(request) - used, "\r\n");
	assert_int_equal(live_ask_once(*state, request), 200);
	snprintf(request + used, sizeof(request) - used, "c:d\r\n\r\n");
	refused_as_http(*state, request);
	snprintf(request, sizeof(request), "GET / HTTP/1.1\r\na: %0*d\r\n\r\n",
		 LIMIT_API_HEADERS, 0);
	refused_as_http(*state, request);
}

static void targets_are_bounded_and_never_decoded(void **state)
{
	char request[1024];

	refused_as_http(*state, "GET /machine%2dconfig HTTP/1.1\r\n\r\n");
	refused_as_http(*state, "GET /%00 HTTP/1.1\r\n\r\n");
	refused_as_http(*state, "GET /a b HTTP/1.1\r\n\r\n");
	refused_as_http(*state, "GET /\xc3\xa4 HTTP/1.1\r\n\r\n");
	snprintf(request, sizeof(request), "GET /%0*d HTTP/1.1\r\n\r\n", LIMIT_API_URI, 0);
	refused_as_http(*state, request);
	snprintf(request, sizeof(request), "GET /version/%0*d HTTP/1.1\r\n\r\n",
		 LIMIT_API_URI - 9, 0);
	assert_int_equal(live_ask_once(*state, request), 200);
}

static void foreign_methods_get_an_answer(void **state)
{
	static const char *const methods[] = { "POST", "DELETE", "OPTIONS", "TRACE", "HEAD" };
	char request[64];
	size_t i;

	for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		snprintf(request, sizeof(request), "%s /drives/a HTTP/1.1\r\n\r\n", methods[i]);
		assert_int_equal(live_ask_once(*state, request), 400);
	}
	refused_as_http(*state, "get / HTTP/1.1\r\n\r\n");
	refused_as_http(*state, "FETCH / HTTP/1.1\r\n\r\n");
	refused_as_http(*state, "\x16\x03\x01\x02\r\n\r\n");
	assert_int_equal(live_ask_once(*state, GET_ROOT), 200);
}

static void v1_speaks_in_statuses(void **state)
{
	assert_int_equal(live_ask_once(*state, "GET /v1/nothing HTTP/1.1\r\n\r\n"), 404);
	assert_int_equal(live_ask_once(*state, "DELETE /v1/vm HTTP/1.1\r\n\r\n"), 405);
	assert_non_null(strstr(live_text, "\r\nAllow: GET, PATCH\r\n"));
	assert_int_equal(live_ask_once(*state, "PATCH /v1/vm HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"), 422);
}

static void existing_paths_are_left_alone(void **state)
{
	struct live *l = *state;
	struct api_options options = l->options;
	struct error err;
	char want[256];

	assert_null(api_server_new(l->loop, &l->vm, &options, &err));
	snprintf(want, sizeof(want), "Failed to open the API socket at: %s. Check that it is not "
				     "already used.", l->path);
	assert_string_equal(err.text, want);
	assert_int_equal(err.code, -EADDRINUSE);
	assert_int_equal(live_ask_once(l, GET_ROOT), 200);
}

static void long_paths_are_refused(void **state)
{
	struct live *l = *state;
	char path[200];
	struct error err;

	snprintf(path, sizeof(path), "/tmp/%0103d", 0);
	l->options.socket_path = path;
	assert_null(api_server_new(l->loop, &l->vm, &l->options, &err));
	assert_int_equal(err.code, -ENAMETOOLONG);
	assert_non_null(strstr(err.text, "has 108 bytes, the most is 107"));
	l->options.socket_path = "/nonexistent/dir/api.sock";
	assert_null(api_server_new(l->loop, &l->vm, &l->options, &err));
	assert_non_null(strstr(err.text, "Failed to bind and run the HTTP server: No such file"));
}

static void socket_goes_with_the_server(void **state)
{
	struct live *l = *state;
	struct stat st;

	assert_int_equal(stat(l->path, &st), 0);
	live_stop(l);
	l->server = api_server_free(l->server);
	assert_int_equal(stat(l->path, &st), -1);
}

static void foreign_file_at_the_path_stays(void **state)
{
	struct live *l = *state;
	FILE *f;

	live_stop(l);
	unlink(l->path);
	f = fopen(l->path, "we");
	assert_non_null(f);
	fclose(f);
	l->server = api_server_free(l->server);
	assert_int_equal(access(l->path, F_OK), 0);
}

static void own_name_shows_in_the_head(void **state)
{
	struct live *l = *state;

	l->options.identity = (struct api_identity){ "lull", "0.1.0" };
	live_start(l);
	assert_int_equal(live_ask_once(l, GET_ROOT), 200);
	assert_non_null(strstr(live_text, "\r\nServer: lull\r\n"));
}

static void metrics_follow_the_server(void **state)
{
	struct metrics *m = metrics_new();
	struct live *l = *state;
	struct buf out;

	buf_init(&out, 65536);
	l->options.metrics = m;
	live_start(l);
	assert_int_equal(live_ask_once(l, GET_ROOT), 200);
	live_stop(l);
	l->server = api_server_free(l->server);
	assert_int_equal(metrics_format(m, &out), 0);
	assert_non_null(strstr(buf_text(&out), "\"get_api_requests\":{\"instance_info_count\":1,"));
	buf_fini(&out);
	metrics_free(m);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, live_setup, live_teardown)
#define TEST_STOPPED(name) cmocka_unit_test_setup_teardown(name, live_setup_stopped, live_teardown)
	const struct CMUnitTest tests[] = {
		TEST(answers_carry_the_known_head),
		TEST(empty_answers_have_no_body_and_no_type),
		TEST(deprecated_fields_are_told_in_a_header),
		TEST(connections_are_kept_alive),
		TEST(clients_may_ask_for_a_close),
		TEST(pipelined_requests_are_answered_in_order),
		TEST(pipelining_waits_for_slow_commands),
		TEST(absolute_targets_keep_the_connection),
		TEST(expect_continue_is_answered),
		TEST(requests_may_come_in_single_bytes),
		TEST(half_closed_clients_get_their_answer),
		TEST(old_http_is_served_and_closed),
		TEST(strange_versions_are_refused),
		TEST(transfer_encoding_is_refused),
		TEST(content_length_comes_once_and_plain),
		TEST(strange_headers_are_refused),
		TEST(header_count_and_size_are_bounded),
		TEST(targets_are_bounded_and_never_decoded),
		TEST(foreign_methods_get_an_answer),
		TEST(v1_speaks_in_statuses),
		TEST(existing_paths_are_left_alone),
		TEST_STOPPED(long_paths_are_refused),
		TEST(socket_goes_with_the_server),
		TEST(foreign_file_at_the_path_stays),
		TEST_STOPPED(own_name_shows_in_the_head),
		TEST_STOPPED(metrics_follow_the_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
