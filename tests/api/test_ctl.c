/* lullctl: its client against a real server, its options, `run` over a fake lulld. */
#include "tests/api/cmocka_all.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/ctl/commands.h"
#include "api/ctl/http.h"
#include "api/ctl/run.h"
#include "tests/api/live.h"

static struct error err;

static const struct ctl_server *at(const char *path)
{
	static struct ctl_server to;

	to = (struct ctl_server){ .socket = path, .timeout_s = 5 };
	return &to;
}

/* Runs a command; what it printed is in live_text. */
static int command(struct live *l, const char *name, bool json)
{
	const struct ctl_command *c = ctl_commands;
	struct ctl ctl = { .server = *at(l->path), .json = json };
	char *text = NULL;
	size_t size;
	int ret;

	ctl.out = open_memstream(&text, &size);
	while (strcmp(c->name, name) != 0)
		c++;
	ret = c->run(&ctl, &err);
	fclose(ctl.out);
	snprintf(live_text, sizeof(live_text), "%s", text);
	free(text);
	return ret;
}

static void status_shows_the_vm(void **state)
{
	assert_int_equal(command(*state, "status", false), 0);
	assert_non_null(strstr(live_text, "ID                   STATE"));
	assert_non_null(strstr(live_text, "anonymous-instance   configuring  -"));
	assert_int_equal(command(*state, "status", true), 0);
	assert_ptr_equal(strstr(live_text, "{\"id\":\"anonymous-instance\","), live_text);
}

static void tables_show_vcpus_and_devices(void **state)
{
	struct live *l = *state;

	l->vm.vcpu_count = 1;
	l->vm.vcpus[0] = (struct control_vcpu_info){ 0, 4712, "running", 18 };
	l->vm.device_count = 1;
	l->vm.devices[0] = (struct control_device_info){ "serial", "uart16550", "active", 0x3f8, 8,
							 4, 0 };
	live_start(l);
	assert_int_equal(command(l, "vcpus", false), 0);
	assert_non_null(strstr(live_text, "    0     4712 running            18  io 17, hlt 1\n"));
	assert_int_equal(command(l, "devices", false), 0);
	assert_non_null(strstr(live_text, "serial           uart16550        active              "
					  "0x3f8      0x8    4        -\n"));
}

static void config_shows_what_was_put(void **state)
{
	struct ctl_answer got;
	struct live *l = *state;

	assert_int_equal(ctl_ask(at(l->path), "PUT", "/drives/a", "{\"drive_id\":\"a\","
				 "\"is_root_device\":true,\"path_on_host\":\"/disk\"}", &got, &err), 0);
	buf_fini(&got.body);
	assert_int_equal(command(l, "config", false), 0);
	assert_non_null(strstr(live_text, "machine      1 vCPUs, 128 MiB, huge pages: None\n"));
	assert_non_null(strstr(live_text, "drive        a: /disk, root, Unsafe, Sync\n"));
}

static void pause_and_resume_reach_the_machine(void **state)
{
	struct live *l = *state;

	assert_int_equal(command(l, "pause", false), -EREMOTEIO);
	assert_non_null(strstr(err.text, "not possible while the VM is in state \"configuring\""));
	live_stop(l);
	l->vm.phase = CONTROL_RUNNING;
	l->server = api_server_free(l->server);
	live_start(l);
	assert_int_equal(command(l, "pause", false), 0);
	assert_int_equal(command(l, "resume", false), 0);
	assert_int_equal(command(l, "stop", false), 0);
	live_stop(l);
	assert_int_equal(fake_control_called(&l->vm, "stop"), 1);
}

static void errors_carry_the_text_of_the_server(void **state)
{
	struct ctl_answer got;
	struct live *l = *state;

	assert_int_equal(ctl_ask(at(l->path), "GET", "/nowhere", NULL, &got, &err), -EREMOTEIO);
	assert_string_equal(err.text, "Invalid request method and/or path: GET nowhere.");
	assert_int_equal(ctl_ask(at(l->path), "GET", "/%41", NULL, &got, &err), -EREMOTEIO);
	assert_ptr_equal(strstr(err.text, "Invalid URI"), err.text);
	assert_int_equal(ctl_ask(at(l->path), "get", "/", NULL, &got, &err), -EREMOTEIO);
	assert_string_equal(err.text, "get /: status 501");
}

static void large_body_still_gets_its_refusal(void **state)
{
	struct ctl_answer got;
	struct live *l = *state;
	char *body = malloc(LIMIT_API_BODY * 20 + 1);

	memset(body, ' ', LIMIT_API_BODY * 20);
	body[LIMIT_API_BODY * 20] = '\0';
	assert_int_equal(ctl_ask(at(l->path), "PUT", "/entropy", body, &got, &err), -EREMOTEIO);
	assert_ptr_equal(strstr(err.text, "Request payload with size 1024000"), err.text);
	free(body);
}

static void nobody_there_is_an_error(void **state)
{
	struct ctl_answer got;

	assert_int_equal(ctl_ask(at("/nonexistent/s"), "GET", "/", NULL, &got, &err), -ENOENT);
	assert_string_equal(err.text, "cannot connect to /nonexistent/s: No such file or directory (os error 2)");
}

static struct run_options options;

/* Parses up to eight words. */
static int parse(const char *a, const char *b, const char *c, const char *d, const char *e,
		 const char *f)
{
	static char words[8][256];
	const char *given[] = { "run", a, b, c, d, e, f };
	static char *argv[9];
	int argc = 0, i;

	for (i = 0; i < 7 && given[i]; i++) {
		snprintf(words[i], sizeof(words[i]), "%s", given[i]);
		argv[argc++] = words[i];
	}
	argv[argc] = NULL;
	return run_options_parse(&options, argc, argv, &err);
}

static void run_needs_a_kernel(void **state)
{
	assert_int_equal(parse("--cpus", "2", NULL, NULL, NULL, NULL), -EINVAL);
	assert_string_equal(err.text, "run: --kernel is missing");
	assert_int_equal(parse("--kernel", "k", NULL, NULL, NULL, NULL), 0);
	assert_int_equal(options.cpus, 1);
	assert_int_equal(options.memory_mib, 128);
}

static void drives_are_read_with_their_words(void **state)
{
	assert_int_equal(parse("--kernel", "k", "--drive", "/a,ro,id=sys,engine=async,cache=unsafe",
			       "--drive", "/b"), 0);
	assert_int_equal(options.drive_count, 2);
	assert_string_equal(options.drives[0].path_on_host, "/a");
	assert_string_equal(options.drives[0].drive_id, "sys");
	assert_true(options.drives[0].is_read_only && options.drives[0].is_root_device);
	assert_int_equal(options.drives[0].io_engine, DRIVE_IO_ASYNC);
	assert_int_equal(options.drives[0].cache_type, DRIVE_CACHE_UNSAFE);
	assert_string_equal(options.drives[1].drive_id, "drive1");
	assert_false(options.drives[1].is_root_device);
}

static void marked_root_stays_the_root(void **state)
{
	assert_int_equal(parse("--kernel", "k", "--drive", "/a", "--drive", "/b,root"), 0);
	assert_false(options.drives[0].is_root_device);
	assert_true(options.drives[1].is_root_device);
	assert_int_equal(parse("--kernel", "k", "--initrd", "i", "--drive", "/a"), 0);
	assert_false(options.drives[0].is_root_device);
}

static void networks_are_read_with_their_words(void **state)
{
	assert_int_equal(parse("--kernel", "k", "--net", "tap0,mac=06:00:00:00:00:01,id=eth0",
			       "--net", "tap1"), 0);
	assert_string_equal(options.nets[0].host_dev_name, "tap0");
	assert_string_equal(options.nets[0].iface_id, "eth0");
	assert_int_equal(options.nets[0].guest_mac[5], 1);
	assert_string_equal(options.nets[1].iface_id, "net1");
}

static void sizes_take_units(void **state)
{
	static const char *const bad[] = { "0", "-1", "", "x", "1T", "1GG", "2000000",
					   "99999999999999999999" };
	size_t i;

	assert_int_equal(parse("--kernel", "k", "--memory", "2G", NULL, NULL), 0);
	assert_int_equal(options.memory_mib, 2048);
	assert_int_equal(parse("--kernel", "k", "--memory", "300M", NULL, NULL), 0);
	assert_int_equal(options.memory_mib, 300);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse("--kernel", "k", "--memory", bad[i], NULL, NULL), -EINVAL);
}

static void wrong_words_are_named(void **state)
{
	assert_int_equal(parse("--kernel", "k", "--cpus", "33", NULL, NULL), -EINVAL);
	assert_string_equal(err.text, "--cpus: \"33\" is not a number from 1 to 32");
	assert_int_equal(parse("--kernel", "k", "--drive", "/a,fast", NULL, NULL), -EINVAL);
	assert_string_equal(err.text, "--drive: unknown \"fast\"");
	assert_int_equal(parse("--kernel", "k", "--net", "t,mac=x", NULL, NULL), -EINVAL);
	assert_string_equal(err.text, "--net: \"x\" is no MAC address");
	assert_int_equal(parse("--kernel", "k", "--what", NULL, NULL, NULL), -EINVAL);
	assert_int_equal(parse("--kernel", "k", "stray", NULL, NULL, NULL), -EINVAL);
	assert_int_equal(parse("--kernel", "k", "--", "--boot-timer", NULL, NULL), 0);
	assert_string_equal(options.rest[0], "--boot-timer");
}

static void another_process_at_the_socket_is_told(void **state)
{
	struct live *l = *state;
	struct ctl_server to = *at(l->path);

	to.pid = getpid();
	assert_int_equal(ctl_probe(&to, &err), 0);
	to.pid = getpid() + 1;
	assert_int_equal(ctl_probe(&to, &err), -EPERM);
	assert_non_null(strstr(err.text, "another process ("));
}

static void waiting_for_an_answer_can_be_stopped(void **state)
{
	struct live *l = *state;
	struct ctl_server to = *at(l->path);
	const struct itimerspec soon = { .it_value.tv_nsec = 50000000 };
	struct ctl_answer got;
	uint64_t start = live_now_ms();

	l->vm.phase = CONTROL_RUNNING;
	l->vm.hold = true;
	to.stop_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	assert_int_equal(timerfd_settime(to.stop_fd, 0, &soon, NULL), 0);
	assert_int_equal(ctl_ask(&to, "PATCH", "/vm", "{\"state\":\"Paused\"}", &got, &err),
			 -ECANCELED);
	assert_true(live_now_ms() - start < 3000);
	live_on_loop(l, (event_fn)fake_control_release, &l->vm);
	close(to.stop_fd);
}

/* What to do to `lullctl run` once it shows `when`. */
struct act {
	const char *when;
	const char *keys; /* typed */
	int signo;        /* sent to it alone */
};

static void do_act(const struct act *a, int master, pid_t pid)
{
	if (a->keys)
		assert_int_equal(write(master, a->keys, strlen(a->keys)), strlen(a->keys));
	if (a->signo)
		kill(pid, a->signo);
}

/*
 * `run()` in a process with a terminal of its own, until nobody has that terminal
 * open any more; what it shows is in live_text.
 */
static int on_terminal(int (*run)(void), const struct act *a)
{
	size_t used = 0;
	ssize_t got;
	int master, status;
	pid_t pid = forkpty(&master, NULL, NULL, NULL);

	if (pid == 0)
		_exit(run());
	while (used + 1 < sizeof(live_text) &&
	       (got = read(master, live_text + used, sizeof(live_text) - 1 - used)) > 0) {
		used += (size_t)got;
		live_text[used] = '\0';
		if (a && strstr(live_text, a->when)) {
			do_act(a, master, pid);
			a = NULL;
		}
	}
	close(master);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run_guest(void)
{
	return ctl_run(&options);
}

static int run_on_terminal(const char *keys)
{
	const struct act a = { .when = "guest has", .keys = keys };

	return on_terminal(run_guest, keys ? &a : NULL);
}

static void prepare_run(const char *status)
{
	unsetenv("FAKE_HANG");
	assert_int_equal(parse("--kernel", "k", "--cpus", "2", "--drive", "/d"), 0);
	options.lulld = getenv("FAKE_LULLD");
	if (!options.lulld)
		skip();
	if (status)
		setenv("FAKE_STATUS", status, 1);
	else
		unsetenv("FAKE_STATUS");
}

static void run_shows_the_console_and_ends_well(void **state)
{
	prepare_run("0");
	assert_int_equal(run_on_terminal(NULL), 0);
	assert_non_null(strstr(live_text, "guest has 2 vCPUs and 1 drives"));
	assert_null(strstr(live_text, "lullctl:"));
}

static void run_returns_the_status_and_shows_the_log(void **state)
{
	prepare_run("152");
	assert_int_equal(run_on_terminal(NULL), 152);
	assert_non_null(strstr(live_text, "fake exiting. exit_code=152"));
	assert_non_null(strstr(live_text, "lullctl: lulld ended with status 152"));
}

static void escape_key_ends_the_vm(void **state)
{
	prepare_run(NULL);
	assert_int_equal(run_on_terminal("ab\x01\x01\x01x"), 0);
}

static void refused_configuration_ends_the_run(void **state)
{
	prepare_run("0");
	options.cmdline = "a\tb";
	assert_int_equal(run_on_terminal(NULL), 1);
	assert_non_null(strstr(live_text, "lullctl: Boot source error: The kernel command line is "
					  "invalid"));
}

static void missing_daemon_ends_the_run(void **state)
{
	prepare_run("0");
	options.lulld = "/nonexistent/lulld";
	assert_int_equal(run_on_terminal(NULL), 1);
	assert_non_null(strstr(live_text, "cannot run /nonexistent/lulld"));
}

/* Nothing is asked of the lulld that has the socket: it is another VM's. */
static void run_leaves_another_daemon_alone(void **state)
{
	struct live *l = *state;

	prepare_run("0");
	options.socket = l->path;
	assert_int_equal(run_on_terminal(NULL), 1);
	assert_non_null(strstr(live_text, "exists already: another lulld may be using it"));
	live_stop(l);
	assert_int_equal(l->vm.call_count, 0);
	assert_int_equal(access(l->path, F_OK), 0);
}

/* `signals` do not end the daemon, whose start hangs. */
static void run_is_given_up(const char *signals, const struct act *a)
{
	uint64_t start = live_now_ms();

	prepare_run("0");
	setenv("FAKE_HANG", signals, 1);
	assert_int_equal(on_terminal(run_guest, a), 1);
	assert_non_null(strstr(live_text, "lullctl: given up: a signal came"));
	assert_true(live_now_ms() - start < 10000);
}

/* That a key makes a signal shows that the terminal is not raw yet. */
static void interrupt_key_ends_a_start_that_hangs(void **state)
{
	run_is_given_up("2", &(struct act){ .when = "start hangs", .keys = "\x03" });
}

static void signal_ends_a_start_that_hangs(void **state)
{
	run_is_given_up("2", &(struct act){ .when = "start hangs", .signo = SIGTERM });
}

static void daemon_that_ignores_signals_is_killed(void **state)
{
	run_is_given_up("2 15", &(struct act){ .when = "start hangs", .signo = SIGHUP });
}

/* The terminal's first process stays in the foreground; `lullctl run` is another job. */
static int run_in_background(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		setpgid(0, 0);
		_exit(ctl_run(&options));
	}
	waitpid(pid, &status, WUNTRACED);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static void run_in_the_background_leaves_the_terminal_alone(void **state)
{
	prepare_run("0");
	assert_int_equal(on_terminal(run_in_background, NULL), 0);
	assert_non_null(strstr(live_text, "guest has 2 vCPUs"));
}

/* A kernel without pidfd_open(). */
static int run_without_pidfd(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { 4, filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return 77;
	return ctl_run(&options);
}

static void missing_pidfd_is_an_error_and_no_hang(void **state)
{
	int status;

	prepare_run(NULL);
	status = on_terminal(run_without_pidfd, NULL);
	if (status == 77)
		skip();
	assert_int_equal(status, 1);
	assert_non_null(strstr(live_text, "cannot watch the process: Function not implemented"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, live_setup, live_teardown)
	const struct CMUnitTest tests[] = {
		TEST(status_shows_the_vm),
		cmocka_unit_test_setup_teardown(tables_show_vcpus_and_devices, live_setup_stopped,
						live_teardown),
		TEST(config_shows_what_was_put),
		TEST(pause_and_resume_reach_the_machine),
		TEST(errors_carry_the_text_of_the_server),
		TEST(large_body_still_gets_its_refusal),
		cmocka_unit_test(nobody_there_is_an_error),
		cmocka_unit_test(run_needs_a_kernel),
		cmocka_unit_test(drives_are_read_with_their_words),
		cmocka_unit_test(marked_root_stays_the_root),
		cmocka_unit_test(networks_are_read_with_their_words),
		cmocka_unit_test(sizes_take_units),
		cmocka_unit_test(wrong_words_are_named),
		cmocka_unit_test(run_shows_the_console_and_ends_well),
		cmocka_unit_test(run_returns_the_status_and_shows_the_log),
		cmocka_unit_test(escape_key_ends_the_vm),
		cmocka_unit_test(refused_configuration_ends_the_run),
		cmocka_unit_test(missing_daemon_ends_the_run),
		TEST(another_process_at_the_socket_is_told),
		TEST(waiting_for_an_answer_can_be_stopped),
		TEST(run_leaves_another_daemon_alone),
		cmocka_unit_test(interrupt_key_ends_a_start_that_hangs),
		cmocka_unit_test(signal_ends_a_start_that_hangs),
		cmocka_unit_test(daemon_that_ignores_signals_is_killed),
		cmocka_unit_test(run_in_the_background_leaves_the_terminal_alone),
		cmocka_unit_test(missing_pidfd_is_an_error_and_no_hang),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
