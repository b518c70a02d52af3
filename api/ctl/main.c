/*
 * lullctl: the command-line client of lulld.
 *
 * Exit status: 0 done, 1 an error, 2 wrong usage; for `run` that of the guest.
 * Threads: main. Locks: none.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctl/commands.h"
#include "api/ctl/run.h"

#define EXIT_USAGE 2
#define DEFAULT_SOCKET "/run/lulld.socket"

static void print_usage(FILE *out)
{
	const struct ctl_command *c;

	fprintf(out, "Usage: lullctl [--socket PATH] [--json] COMMAND\n\nCommands:\n");
	for (c = ctl_commands; c->name; c++)
		fprintf(out, "  %-10s %s\n", c->name, c->help);
	fprintf(out, "%s\n--socket is $LULL_SOCKET or " DEFAULT_SOCKET " if it is not given.\n",
		run_options_help);
}

static int wrong_usage(const char *text, const char *word)
{
	fprintf(stderr, "lullctl: %s%s\nTry \"lullctl --help\".\n", text, word);
	return EXIT_USAGE;
}

static int run_guest(int argc, char **argv)
{
	struct run_options *o = malloc(sizeof(*o));
	struct error err;
	int status;

	if (!o)
		return EXIT_FAILURE;
	if (run_options_parse(o, argc, argv, &err) < 0)
		status = wrong_usage(err.text, "");
	else
		status = ctl_run(o);
	free(o);
	return status;
}

static int run_command(struct ctl *ctl, const char *name)
{
	const struct ctl_command *c = ctl_commands;
	struct error err;
	int ret;

	while (c->name && strcmp(c->name, name) != 0)
		c++;
	if (!c->name)
		return wrong_usage("unknown command ", name);
	if (ctl->word_count > 0 && !c->takes_words)
		return wrong_usage("unknown or incomplete option ", ctl->words[0]);
	ret = c->run(ctl, &err);
	if (ret == 0)
		return EXIT_SUCCESS;
	if (ret == -EINVAL)
		return wrong_usage(err.text, "");
	fprintf(stderr, "lullctl: %s\n", err.text);
	return EXIT_FAILURE;
}

/*
 * Takes --json and --socket, before or behind the command's name. Other words
 * behind it are the command's; they move to the front of argv.
 */
static int take_words(struct ctl *ctl, int argc, char **argv, const char **ret_name)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			ctl->json = true;
		else if (!strcmp(argv[i], "--socket") && i + 1 < argc)
			ctl->server.socket = argv[++i];
		else if (*ret_name)
			argv[ctl->word_count++] = argv[i];
		else if (argv[i][0] == '-')
			return wrong_usage("unknown or incomplete option ", argv[i]);
		else
			*ret_name = argv[i];
	}
	ctl->words = (const char *const *)argv;
	return *ret_name ? 0 : wrong_usage("a command is missing", "");
}

int main(int argc, char **argv)
{
	const char *from_environment = getenv("LULL_SOCKET");
	struct ctl ctl = {
		.server = { .socket = from_environment ? from_environment : DEFAULT_SOCKET,
			    .timeout_s = CTL_TIMEOUT_S },
		.out = stdout,
	};
	const char *name = NULL;
	int status;

	if (argc > 1 && !strcmp(argv[1], "run"))
		return run_guest(argc - 1, argv + 1);
	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help"))) {
		print_usage(stdout);
		return EXIT_SUCCESS;
	}
	if (argc > 1 && !strcmp(argv[1], "--version")) {
		printf("lullctl v%s\n", LULL_VERSION);
		return EXIT_SUCCESS;
	}
	status = take_words(&ctl, argc, argv, &name);
	return status ? status : run_command(&ctl, name);
}
