/*
 * The composition root: the only file that sees the core, the devices, the
 * architecture and the API together. Its steps are numbered in run().
 *
 * Threads: the main thread, "lull-main", which runs the event loop.
 * Locks: none.
 */
#include "vmm/main.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "api/config_file.h"
#include "api/server.h"
#include "devices/registry.h"
#include "vmm/base/big_lock.h"
#include "vmm/base/log.h"
#include "vmm/options.h"
#include "vmm/vcpu.h"
#include "vmm/vm.h"

#define EXIT_GENERIC 1
#define EXIT_BAD_CONFIG 152
#define EXIT_BAD_ARGUMENTS 153
#define EXIT_HANGUP 156

#define DRAIN_MS 1000 /* for replies that clients have not taken yet */

#define TEARDOWN_LIMIT_S 2
#define METRICS_PERIOD_NS (60ull * 1000000000ull)

/* Under the name "firecracker" the daemon answers with that identity, for its clients. */
static const struct api_identity identity_lull = {
	.app_name = "lull",
	.version = LULL_VERSION,
};
static const struct api_identity identity_firecracker = {
	.app_name = "Firecracker",
	.version = "1.15.0",
};

struct daemon {
	struct options options;
	const struct api_identity *identity;
	struct event_loop *loop;
	struct metrics *metrics;
	struct vm *vm;
	struct api_server *server;
	struct event_source *signals[4];
	struct event_source *metrics_timer;
	int signal;      /* that ended us; 0 if none */
	int exit_status; /* if not given by the end of the VM */
};

static const int handled_signals[] = { SIGTERM, SIGINT, SIGHUP };

static void on_vm_end(void *arg)
{
	struct daemon *d = arg;

	event_loop_stop(d->loop);
}

/* Ends as the signal would have ended us, so that whoever sent it sees it worked. */
static void end_by_signal(int signo)
{
	signal(signo, SIG_DFL);
	raise(signo);
}

static void on_signal(void *arg, int signo)
{
	struct daemon *d = arg;

	if (d->signal)
		end_by_signal(signo); /* asked a second time: at once */
	if (d->vm->state.phase == VM_STOPPING || d->vm->state.phase == VM_ENDED)
		return; /* the outcome is known; it is not the signal's */
	d->signal = signo;
	control_stop(d->vm, signo == SIGHUP ? "SIGHUP" : signo == SIGINT ? "SIGINT" : "SIGTERM");
}

static void on_metrics_timer(void *arg)
{
	struct daemon *d = arg;

	(void)metrics_flush(d->metrics, NULL);
	event_source_arm(d->metrics_timer, METRICS_PERIOD_NS);
}

static void on_started(void *arg, int code, const struct error *err)
{
	struct daemon *d = arg;

	if (code == 0 || code == -ECANCELED)
		return;
	log_error("cannot start the VM: %s", err->text);
	fprintf(stderr, "lulld: cannot start the VM: %s\n", err->text);
	d->exit_status = EXIT_GENERIC;
	vm_end(d->vm, VM_END_INTERNAL);
}

static int setup_log(struct daemon *d, struct error *err)
{
	const struct options *o = &d->options;
	struct logger_config logger = {
		.level = LOG_LEVEL_INFO,
		.show_level = o->show_level,
		.show_log_origin = o->show_log_origin,
	};

	if (!o->log_path && !o->level && !o->module && !o->show_level && !o->show_log_origin)
		return 0;
	if (o->level && log_level_parse(o->level, &logger.level) < 0)
		return error_set(err, -EINVAL, "--level: unknown level \"%s\"", o->level);
	if (o->log_path)
		snprintf(logger.log_path, sizeof(logger.log_path), "%s", o->log_path);
	if (o->module)
		snprintf(logger.module, sizeof(logger.module), "%s", o->module);
	return control_put_logger(d->vm, &logger, err);
}

static int setup_metrics(struct daemon *d, struct error *err)
{
	struct metrics_config config = { 0 };

	d->metrics_timer = event_loop_add_timer(d->loop, on_metrics_timer, d);
	if (!d->metrics_timer)
		return error_set(err, -ENOMEM, "no memory for the metrics timer");
	event_source_arm(d->metrics_timer, METRICS_PERIOD_NS);
	if (!d->options.metrics_path)
		return 0;
	snprintf(config.metrics_path, sizeof(config.metrics_path), "%s", d->options.metrics_path);
	return control_put_metrics(d->vm, &config, err);
}

static int setup_signals(struct daemon *d, struct error *err)
{
	size_t i;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a log that has reached its limit loses lines */
	for (i = 0; i < sizeof(handled_signals) / sizeof(handled_signals[0]); i++) {
		d->signals[i] = event_loop_add_signal(d->loop, handled_signals[i], on_signal, d);
		if (!d->signals[i])
			return error_set(err, -ENOMEM, "no memory for signal handlers");
	}
	return vcpu_signals_init(err);
}

static int setup_core(struct daemon *d, const struct kvm_ops *ops, struct error *err)
{
	const char *id = d->options.id ? d->options.id : "anonymous-instance";

	log_init(id);
	d->loop = event_loop_new();
	d->metrics = metrics_new();
	if (!d->loop || !d->metrics)
		return error_set(err, -ENOMEM, "no memory to start");
	d->vm = vm_new(id, d->loop, ops, &device_registry, d->metrics, err);
	if (!d->vm)
		return err->code;
	d->vm->on_end = on_vm_end;
	d->vm->on_end_arg = d;
	d->vm->config.boot_timer = d->options.boot_timer;
	return 0;
}

static int setup_api(struct daemon *d, struct error *err)
{
	const struct api_options options = {
		.socket_path = d->options.api_sock ? d->options.api_sock : "/run/lulld.socket",
		.identity = *d->identity,
		.metrics = d->metrics,
		.max_body = d->options.max_payload,
	};

	if (d->options.no_api)
		return 0;
	d->server = api_server_new(d->loop, d->vm, &options, err);
	return d->server ? 0 : err->code;
}

/* Storage that hangs cannot be waited for; the guest's fate is in the log already. */
static void on_teardown_limit(int signo)
{
	static const char text[] = "lulld: a device does not let go: ending without it\n";

	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(EXIT_GENERIC);
}

static void teardown(struct daemon *d)
{
	size_t i;

	signal(SIGALRM, on_teardown_limit);
	alarm(TEARDOWN_LIMIT_S);
	d->server = api_server_free(d->server);
	for (i = 0; i < sizeof(d->signals) / sizeof(d->signals[0]); i++)
		event_source_free(d->signals[i]);
	event_source_free(d->metrics_timer);
	if (d->metrics)
		(void)metrics_flush(d->metrics, NULL);
	/* vCPUs that have not left use all of the rest; it goes with the process. */
	if (d->vm && d->vm->state.phase == VM_STOPPING)
		return;
	d->vm = vm_free(d->vm);
	d->metrics = metrics_free(d->metrics);
	d->loop = event_loop_free(d->loop);
	alarm(0);
}

/* A launcher may have closed them; no file of ours shall take their numbers. */
static int open_standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int fail(struct daemon *d, int status, const struct error *err)
{
	log_error("%s", err->text);
	fprintf(stderr, "Error: %s\n", err->text);
	teardown(d);
	return status;
}

static int run(struct daemon *d, const struct kvm_ops *ops)
{
	struct error err = { 0 };
	const char *reason;
	int status;

	/* 1: the core, with nothing of KVM yet */
	if (setup_core(d, ops, &err) < 0)
		return fail(d, EXIT_GENERIC, &err);
	/* 2: where to report */
	if (setup_log(d, &err) < 0 || setup_metrics(d, &err) < 0)
		return fail(d, EXIT_BAD_CONFIG, &err);
	log_always("Running %s v%s", d->identity->app_name, d->identity->version);
	if (big_lock_is_on())
		log_warn("--big-lock: this is a baseline for benchmarks, and slower on purpose");
	/* 3: signals, before any other thread */
	if (setup_signals(d, &err) < 0)
		return fail(d, EXIT_GENERIC, &err);
	/* 4: the control socket */
	if (setup_api(d, &err) < 0)
		return fail(d, EXIT_GENERIC, &err);
	/* 5: a configuration from a file starts at once */
	if (d->options.config_file) {
		if (api_load_config_file(d->vm, d->options.config_file, &err) < 0)
			return fail(d, EXIT_BAD_CONFIG, &err);
		control_start(d->vm, on_started, d);
	}
	/* 6: serve until the VM has ended */
	event_loop_run(d->loop);
	if (d->server)
		api_server_drain(d->server, DRAIN_MS);
	/* 7: all vCPUs have left; devices, memory and files follow */
	reason = vm_end_reason_name(d->vm->state.reason);
	status = d->exit_status ? d->exit_status : vm_end_exit_status(d->vm->state.reason);
	if (d->signal == SIGHUP)
		status = EXIT_HANGUP;
	if (d->signal && d->signal != SIGHUP)
		log_always("%s exiting by signal %d. reason=%s", d->identity->app_name, d->signal,
			   reason);
	else
		log_always("%s exiting %s. exit_code=%d reason=%s", d->identity->app_name,
			   status == 0 ? "successfully" : "with an error", status, reason);
	teardown(d);
	if (d->signal && d->signal != SIGHUP)
		end_by_signal(d->signal);
	return status;
}

int lulld_main(int argc, char **argv, const struct kvm_ops *ops)
{
	static struct daemon d;
	struct error err = { 0 };
	const char *name = argc > 0 && argv[0] ? argv[0] : "lulld";
	const char *slash = strrchr(name, '/');

	name = slash ? slash + 1 : name;
	if (open_standard_fds() < 0)
		return EXIT_GENERIC;
	d.identity = strcmp(name, "firecracker") ? &identity_lull : &identity_firecracker;
	if (options_parse(&d.options, argc, argv, &err) < 0) {
		fprintf(stderr, "Error: %s\n", err.text);
		return EXIT_BAD_ARGUMENTS;
	}
	if (d.options.help) {
		options_usage(name);
		return 0;
	}
	if (d.options.version) {
		printf("%s v%s\n", d.identity == &identity_lull ? "lulld" : "Firecracker",
		       d.identity->version);
		return 0;
	}
	if (d.options.big_lock)
		big_lock_enable();
	prctl(PR_SET_NAME, d.identity == &identity_lull ? "lull-main" : "firecracker");
	return run(&d, ops);
}
