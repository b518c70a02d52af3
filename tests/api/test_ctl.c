/* lullctl: its client against a real server, its options, `run` over a fake lulld. */
#include "tests/api/cmocka_all.h"

#include <errno.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/ctl/commands.h"
#include "api/ctl/http.h"
#include "api/ctl/run.h"
#include "tests/api/live.h"

static struct error err;

/* Runs a command; what it printed is in live_text. */
static int command(struct live *l, const char *name, bool json)
{
	const struct ctl_command *c = ctl_commands;
	struct ctl ctl = { .socket = l->path, .json = json };
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

	assert_int_equal(ctl_ask(l->path, 5, "PUT", "/drives/a", "{\"drive_id\":\"a\","
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

	assert_int_equal(ctl_ask(l->path, 5, "GET", "/nowhere", NULL, &got, &err), -EREMOTEIO);
	assert_string_equal(err.text, "Invalid request method and/or path: GET nowhere.");
	assert_int_equal(ctl_ask(l->path, 5, "GET", "/%41", NULL, &got, &err), -EREMOTEIO);
	assert_ptr_equal(strstr(err.text, "Invalid URI"), err.text);
	assert_int_equal(ctl_ask(l->path, 5, "get", "/", NULL, &got, &err), -EREMOTEIO);
	assert_string_equal(err.text, "get /: status 501");
}

static void large_body_still_gets_its_refusal(void **state)
{
	struct ctl_answer got;
	struct live *l = *state;
	char *body = malloc(LIMIT_API_BODY * 20 + 1);

	memset(body, ' ', LIMIT_API_BODY * 20);
	body[LIMIT_API_BODY * 20] = '\0';
	assert_int_equal(ctl_ask(l->path, 5, "PUT", "/entropy", body, &got, &err), -EREMOTEIO);
	assert_ptr_equal(strstr(err.text, "Request payload with size 1024000"), err.text);
	free(body);
}

static void nobody_there_is_an_error(void **state)
{
	struct ctl_answer got;

	assert_int_equal(ctl_ask("/nonexistent/s", 5, "GET", "/", NULL, &got, &err), -ENOENT);
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

/* `lullctl run` in a process with a terminal of its own; what it shows is in live_text. */
static int run_on_terminal(const char *keys)
{
	size_t used = 0;
	ssize_t got;
	int master, status;
	pid_t pid = forkpty(&master, NULL, NULL, NULL);

	if (pid == 0)
		_exit(ctl_run(&options));
	while (used + 1 < sizeof(live_text) &&
	       (got = read(master, live_text + used, sizeof(live_text) - 1 - used)) > 0) {
		used += (size_t)got;
		live_text[used] = '\0';
		if (keys && strstr(live_text, "guest has")) {
			assert_int_equal(write(master, keys, strlen(keys)), strlen(keys));
			keys = NULL;
		}
	}
	close(master);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void prepare_run(const char *status)
{
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
