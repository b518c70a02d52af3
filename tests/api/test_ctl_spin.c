/* `lullctl spin` against a real server. */
#include "tests/api/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/ctl/commands.h"
#include "tests/api/live.h"

static struct error err;

/* What it printed is in live_text. */
static int spin(const struct live *l, bool json)
{
	const struct ctl_command *c = ctl_commands;
	struct ctl ctl = { .server = { .socket = l->path, .timeout_s = 5 }, .json = json };
	char *text = NULL;
	size_t size;
	int ret;

	ctl.out = open_memstream(&text, &size);
	while (strcmp(c->name, "spin") != 0)
		c++;
	ret = c->run(&ctl, &err);
	fclose(ctl.out);
	snprintf(live_text, sizeof(live_text), "%s", text);
	free(text);
	return ret;
}

static void before_the_start_there_are_dashes(void **state)
{
	assert_int_equal(spin(*state, false), 0);
	assert_non_null(strstr(live_text, "mode        -, asked for auto: -\n"));
	assert_non_null(strstr(live_text, "halt poll   up to - ns\n"));
	assert_non_null(strstr(live_text, "controller  off, class -, advice -\n"));
}

static void start_spinning(void *arg)
{
	static const struct spin_control controls[] = {
		{ "pause_exits", true, SPIN_NO, "no filter" },
		{ "x", false, SPIN_UNKNOWN, "" },
	};
	struct live *l = arg;

	l->vm.spin = (struct control_spin_info){ SPIN_SHARED, "because", controls, 2, 7 };
	l->vm.controller = (struct control_spin_controller){
		.class = SPIN_TRUE_CONTENTION, .advice = SPIN_ADVICE_LEAVE, .periods = 1,
	};
	l->vm.checks = (struct spin_checks){ .count = 1, .rows = {
		{ "cpu_quota", SPIN_CHECK_WARN, "there is one" } } };
	l->vm.spin_event_count = 1;
	l->vm.spin_events[0] = (struct spin_event){
		.number = 1, .uptime_ms = 12, .kind = SPIN_EVENT_HALT_POLL, .from_ns = 3,
		.to_ns = 0, .why = "so",
	};
}

static void a_running_vm_is_a_page_of_tables(void **state)
{
	live_on_loop(*state, start_spinning, *state);
	assert_int_equal(spin(*state, false), 0);
	assert_non_null(strstr(live_text, "mode        shared, asked for auto: because\n"));
	assert_non_null(strstr(live_text, "class true_contention, advice none_helps\n"));
	assert_non_null(strstr(live_text, "\npause_exits  true   false    no filter\n"));
	assert_non_null(strstr(live_text, "\nx            false  unknown  -\n"));
	assert_non_null(strstr(live_text, "\ncpu_quota  warning  there is one\n"));
	assert_non_null(strstr(live_text, "\n    12 ms  halt_poll_ns: 3 -> 0: so\n"));
}

static void the_answer_can_be_had_as_it_is(void **state)
{
	assert_int_equal(spin(*state, true), 0);
	assert_ptr_equal(strstr(live_text, "{\"mode\":"), live_text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, live_setup, live_teardown)
	static const struct CMUnitTest tests[] = {
		TEST(before_the_start_there_are_dashes),
		TEST(a_running_vm_is_a_page_of_tables),
		TEST(the_answer_can_be_had_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
