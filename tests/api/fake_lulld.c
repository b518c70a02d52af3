/*
 * A lulld without a machine, for `lullctl run`: the real control socket over
 * the fake machine. Started, it writes a line to its console and ends with the
 * status in $FAKE_STATUS, or goes on until it is stopped if there is none.
 * With $FAKE_HANG its start never ends, and the signals that $FAKE_HANG lists
 * ("2", "2 15") do not end it either.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/server.h"
#include "tests/fakes/fake_control.h"
#include "vmm/base/log.h"

struct fake {
	struct vm vm;
	struct event_loop *loop;
	struct event_source *timer;
	bool greeted;
	bool told; /* that the start hangs */
	int status;
};

static void look(void *arg)
{
	struct fake *f = arg;
	const char *status = getenv("FAKE_STATUS");

	event_source_arm(f->timer, 5000000);
	if (f->vm.phase == CONTROL_RUNNING && !f->greeted) {
		printf("guest has %u vCPUs and %u drives\n", f->vm.config.machine.vcpu_count,
		       f->vm.config.drive_count);
		fflush(stdout);
		f->greeted = true;
		f->status = status ? (int)strtol(status, NULL, 10) : 0;
		if (status)
			event_loop_stop(f->loop);
	}
	if (f->vm.hold && !f->told && fake_control_called(&f->vm, "start")) {
		printf("start hangs\n");
		fflush(stdout);
		f->told = true;
	}
	if (fake_control_called(&f->vm, "stop"))
		event_loop_stop(f->loop);
}

static const char *value_of(int argc, char **argv, const char *name)
{
	int i;

	for (i = 1; i + 1 < argc; i++) {
		if (!strcmp(argv[i], name))
			return argv[i + 1];
	}
	return NULL;
}

static void hang(struct vm *vm, const char *signals)
{
	char *next;
	long signo;

	vm->hold = true;
	while ((signo = strtol(signals, &next, 10)) > 0) {
		signal((int)signo, SIG_IGN);
		signals = next;
	}
}

int main(int argc, char **argv)
{
	static struct fake f;
	struct api_options options = {
		.socket_path = value_of(argc, argv, "--api-sock"),
		.identity = { "lull", "0" },
	};
	struct api_server *server;
	struct error err;

	signal(SIGPIPE, SIG_IGN);
	log_init("fake");
	if (!options.socket_path || log_set_target(value_of(argc, argv, "--log-path"), &err) < 0)
		return 3;
	fake_control_init(&f.vm);
	if (getenv("FAKE_HANG"))
		hang(&f.vm, getenv("FAKE_HANG"));
	f.loop = event_loop_new();
	f.vm.loop = f.loop;
	f.timer = event_loop_add_timer(f.loop, look, &f);
	server = api_server_new(f.loop, &f.vm, &options, &err);
	if (!server)
		return 4;
	look(&f);
	event_loop_run(f.loop);
	log_always("fake exiting. exit_code=%d", f.status);
	api_server_drain(server, 1000);
	api_server_free(server);
	event_loop_free(f.loop);
	return f.status;
}
