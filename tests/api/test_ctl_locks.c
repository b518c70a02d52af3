/* `lullctl locks` against a real server, and which commands take words. */
#include "tests/api/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/ctl/commands.h"
#include "tests/api/live.h"
#include "vmm/base/lock.h"

#define WORDS(...) ((const char *[]){ __VA_ARGS__, NULL })
#define NONE ((const char *[]){ NULL })

static struct error err;
static struct lock tool;
static struct lock_cond done;

/* A lock, and a condition that somebody has waited for. */
static int setup(void **state)
{
	lock_init(&tool, LOCK_LEVEL_DEVICE, "tool", "a-rather-long-name");
	lock_cond_init(&done, "done", "");
	lock_take(&tool);
	while (lock_cond_wait_for(&done, &tool, 2000000) == 0)
		;
	lock_release(&tool);
	return live_setup(state);
}

static int teardown(void **state)
{
	int ret = live_teardown(state);

	lock_set_profiling(false);
	lock_cond_fini(&done);
	lock_fini(&tool);
	lock_report_reset();
	return ret;
}

/* What it printed is in live_text. */
static int locks(struct live *l, const char *const *words, bool json)
{
	const struct ctl_command *c = ctl_commands;
	struct ctl ctl = { .server = { .socket = l->path, .timeout_s = 5 }, .json = json };
	char *text = NULL;
	size_t size;
	int ret;

	for (ctl.words = words; words[ctl.word_count]; ctl.word_count++)
		;
	ctl.out = open_memstream(&text, &size);
	while (strcmp(c->name, "locks") != 0)
		c++;
	ret = c->run(&ctl, &err);
	fclose(ctl.out);
	snprintf(live_text, sizeof(live_text), "%s", text);
	free(text);
	return ret;
}

/* The line of live_text that starts with `word`. */
static const char *line_of(const char *word)
{
	static char line[256];
	char want[64];
	const char *begin;

	snprintf(want, sizeof(want), "\n%s ", word);
	begin = strstr(live_text, want);
	if (!begin)
		fail_msg("no line of %s in %s", word, live_text);
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(begin + 1, "\n"), begin + 1);
	return line;
}

static void conditions_are_a_table_with_aligned_columns(void **state)
{
	const char *row;

	assert_int_equal(locks(*state, NONE, false), 0);
	assert_ptr_equal(strstr(live_text, "LOCK TYPE  OBJECT  CALL SITE "), live_text);
	assert_non_null(strstr(live_text, "\n\nCONDITION TYPE  OBJECT  CALL SITE "));
	row = line_of("done");
	assert_ptr_equal(strstr(row, "done            -       tests/api/test_ctl_locks.c:"), row);
	assert_non_null(strstr(row, " ms "));
	assert_int_equal(strlen(row), strlen(line_of("CONDITION TYPE")));
	assert_null(strstr(live_text, "TAKES"));
}

static void the_answer_can_be_had_as_it_is(void **state)
{
	assert_int_equal(locks(*state, NONE, true), 0);
	assert_ptr_equal(strstr(live_text, "{\"profiling\":false,"), live_text);
}

static void takes_are_a_table_once_some_are_counted(void **state)
{
	struct live *l = *state;

	assert_int_equal(locks(l, WORDS("--profile", "on"), false), 0);
	assert_string_equal(live_text, "");
	lock_take(&tool);
	lock_release(&tool);
	assert_int_equal(locks(l, WORDS("--profile", "off"), false), 0);
	assert_false(lock_is_profiling());
	assert_int_equal(locks(l, NONE, false), 0);
	assert_string_equal(line_of("tool"),
			    "tool       a-rather-long-name  device                1");
}

static void a_reset_starts_from_zero(void **state)
{
	struct live *l = *state;

	assert_int_equal(locks(l, WORDS("--reset"), false), 0);
	assert_int_equal(locks(l, NONE, false), 0);
	assert_null(strstr(live_text, "\ndone "));
	assert_int_equal(locks(l, WORDS("--reset", "--profile", "on"), false), 0);
	assert_true(lock_is_profiling());
}

static void wrong_words_are_named(void **state)
{
	struct live *l = *state;

	assert_int_equal(locks(l, WORDS("--profile"), false), -EINVAL);
	assert_string_equal(err.text, "locks: unknown or incomplete option --profile");
	assert_int_equal(locks(l, WORDS("--profile", "maybe"), false), -EINVAL);
	assert_string_equal(err.text, "locks: --profile is on or off, not \"maybe\"");
	assert_int_equal(locks(l, WORDS("--reset", "now"), false), -EINVAL);
	assert_string_equal(err.text, "locks: unknown or incomplete option now");
}

/* The exit status of lullctl itself; its name is put before the words. */
static int lullctl(const char **words)
{
	int status;
	pid_t pid;

	words[0] = getenv("LULLCTL");
	if (!words[0])
		skip();
	pid = fork();
	if (pid == 0) {
		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
		execv(words[0], (char *const *)(uintptr_t)words);
		_exit(99);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void words_go_to_the_commands_that_take_them(void **state)
{
	struct live *l = *state;

	assert_int_equal(lullctl(WORDS("", "locks", "--profile", "on", "--socket", l->path,
				       "--reset")), 0);
	assert_true(lock_is_profiling());
	assert_int_equal(lullctl(WORDS("", "locks", "--profile")), 2);
	assert_int_equal(lullctl(WORDS("", "status", "--reset")), 2);
	assert_int_equal(lullctl(WORDS("", "status", "locks")), 2);
	assert_int_equal(lullctl(WORDS("", "--reset", "locks")), 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(conditions_are_a_table_with_aligned_columns),
		TEST(the_answer_can_be_had_as_it_is),
		TEST(takes_are_a_table_once_some_are_counted),
		TEST(a_reset_starts_from_zero),
		TEST(wrong_words_are_named),
		TEST(words_go_to_the_commands_that_take_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
