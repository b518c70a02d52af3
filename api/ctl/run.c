/*
 * `lullctl run`.
 *
 * With a terminal, lulld's standard input is a pipe from us: once the guest runs
 * we put the terminal into raw mode, look for Ctrl-A and pass everything else on.
 * Its output goes to our standard output directly. Until then a signal ends it
 * all; later it is one for the VM.
 *
 * Threads: main. Locks: none. Not here: requests (run_requests.c).
 */
#include "api/ctl/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "api/ctl/commands.h"
#include "api/ctl/http.h"
#include "api/ctl/run_requests.h"
#include "vmm/base/cleanup.h"
#include "vmm/base/fd.h"

#define SOCKET_WAIT_MS 5000
#define REQUEST_TIMEOUT_S 60
#define STOP_TIMEOUT_S 5
#define ABANDON_MS 2000 /* for lulld to end when asked, before it is killed */
#define TICK_MS 10
#define ESCAPE_KEY 1 /* Ctrl-A */
#define LOG_TAIL 4096

struct run {
	const struct run_options *o;
	char dir[64]; /* our own, "" if there is none */
	char socket[PATH_MAX];
	char log[PATH_MAX];
	struct ctl_server server; /* our lulld, and no other */
	pid_t pid;
	int pid_fd;
	int signal_fd;
	int input_fd; /* to lulld; -EBADF when it has our standard input itself */
	bool is_raw;
	bool escaped; /* Ctrl-A was the last key */
	struct termios saved;
};

static int make_places(struct run *r, struct error *err)
{
	const char *base = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	/* lulld would refuse it too, but who listens there would get our requests */
	if (r->o->socket && lstat(r->o->socket, &st) == 0)
		return error_set(err, -EEXIST, "%s exists already: another lulld may be using it",
				 r->o->socket);
	snprintf(r->dir, sizeof(r->dir), "%.40s/lull-XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(r->dir)) {
		snprintf(r->dir, sizeof(r->dir), "/tmp/lull-XXXXXX");
		if (!mkdtemp(r->dir)) {
			r->dir[0] = '\0';
			return error_set_errno(err, -errno, "cannot make a directory in /tmp");
		}
	}
	snprintf(r->socket, sizeof(r->socket), "%s%s", r->o->socket ? "" : r->dir,
		 r->o->socket ? r->o->socket : "/api.sock");
	snprintf(r->log, sizeof(r->log), "%s%s", r->o->log ? "" : r->dir,
		 r->o->log ? r->o->log : "/log");
	r->server = (struct ctl_server){
		.socket = r->socket,
		.timeout_s = REQUEST_TIMEOUT_S,
		.stop_fd = r->signal_fd,
	};
	return 0;
}

static void remove_places(struct run *r)
{
	if (!r->dir[0])
		return;
	if (!r->o->socket)
		unlink(r->socket);
	if (!r->o->log)
		unlink(r->log);
	rmdir(r->dir);
}

/* Beside our own program, else by PATH. */
static void find_lulld(const struct run *r, char *out, size_t size)
{
	ssize_t n;
	char *slash;

	if (r->o->lulld) {
		snprintf(out, size, "%s", r->o->lulld);
		return;
	}
	n = readlink("/proc/self/exe", out, size - 1);
	out[n > 0 ? n : 0] = '\0';
	slash = strrchr(out, '/');
	if (slash)
		snprintf(slash, size - (size_t)(slash - out), "/lulld");
	if (!slash || access(out, X_OK) != 0)
		snprintf(out, size, "lulld");
}

/* In the child: never returns. */
static void exec_lulld(const struct run *r, int input_fd)
{
	const struct run_options *o = r->o;
	char **args = calloc((size_t)o->rest_count + 12, sizeof(*args));
	char program[PATH_MAX];
	int n = 0, i;
	sigset_t none;

	find_lulld(r, program, sizeof(program));
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (input_fd >= 0)
		dup2(input_fd, STDIN_FILENO);
	if (!args)
		_exit(1);
	args[n++] = program;
	args[n++] = strdup("--api-sock");
	args[n++] = strdup(r->socket);
	args[n++] = strdup("--log-path");
	args[n++] = strdup(r->log);
	if (o->id) {
		args[n++] = strdup("--id");
		args[n++] = strdup(o->id);
	}
	if (o->level) {
		args[n++] = strdup("--level");
		args[n++] = strdup(o->level);
	}
	for (i = 0; i < o->rest_count; i++)
		args[n++] = o->rest[i];
	execvp(program, args);
	fprintf(stderr, "lullctl: cannot run %s: %s\n", program, strerror(errno));
	_exit(127);
}

static int start_lulld(struct run *r, struct error *err)
{
	bool lend = !r->o->no_console && isatty(STDIN_FILENO);
	int ends[2] = { -EBADF, -EBADF };

	if (lend && (pipe2(ends, O_CLOEXEC) < 0 || fd_set_nonblocking(ends[1], true) < 0))
		return error_set_errno(err, -errno, "cannot make a pipe");
	r->pid = fork();
	if (r->pid == 0)
		exec_lulld(r, ends[0]);
	if (ends[0] >= 0)
		close(ends[0]);
	r->input_fd = ends[1];
	if (r->pid < 0)
		return error_set_errno(err, -errno, "cannot start a process");
	r->server.pid = r->pid;
	r->pid_fd = (int)syscall(SYS_pidfd_open, r->pid, 0);
	if (r->pid_fd < 0)
		return error_set_errno(err, -errno, "cannot watch the process");
	return 0;
}

static int wait_for_socket(const struct run *r, struct error *err)
{
	struct pollfd p = { .fd = r->pid_fd, .events = POLLIN };
	int waited, ret;

	for (waited = 0; waited < SOCKET_WAIT_MS; waited += TICK_MS) {
		ret = ctl_probe(&r->server, err);
		if (ret != -ENOENT && ret != -ECONNREFUSED)
			return ret;
		if (poll(&p, 1, TICK_MS) > 0)
			return error_set(err, -ECHILD, "lulld ended before it had a control socket");
	}
	return error_set(err, -ETIMEDOUT, "lulld has no control socket after %d s",
			 SOCKET_WAIT_MS / 1000);
}

/* A job in the background may not touch the terminal: it would be stopped. */
static bool owns_terminal(void)
{
	return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void make_raw(struct run *r)
{
	struct termios raw;

	if (r->input_fd < 0 || !owns_terminal() || tcgetattr(STDIN_FILENO, &r->saved) < 0)
		return;
	raw = r->saved;
	cfmakeraw(&raw);
	raw.c_oflag = r->saved.c_oflag; /* "\n" of messages still starts a line */
	r->is_raw = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

static void make_cooked(struct run *r)
{
	if (r->is_raw && owns_terminal())
		tcsetattr(STDIN_FILENO, TCSANOW, &r->saved);
	r->is_raw = false;
}

static void stop_vm(const struct run *r)
{
	struct ctl ctl = { .server = r->server, .out = stdout };
	const struct ctl_command *c = ctl_commands;
	struct error err;

	ctl.server.timeout_s = STOP_TIMEOUT_S;
	while (c->name && strcmp(c->name, "stop") != 0)
		c++;
	if (!c->name || c->run(&ctl, &err) < 0)
		kill(r->pid, SIGTERM);
}

/* One key; true if it is for the guest. */
static bool take_key(struct run *r, char key)
{
	bool was_escaped = r->escaped;

	r->escaped = !was_escaped && key == ESCAPE_KEY;
	if (was_escaped && (key == 'x' || key == 'X')) {
		stop_vm(r);
		return false;
	}
	return !r->escaped;
}

/* From the terminal to lulld; a guest that takes nothing loses what is typed. */
static void pass_input(struct run *r)
{
	char keys[256], out[256];
	ssize_t got = read(STDIN_FILENO, keys, sizeof(keys)), i;
	size_t n = 0;

	if (got <= 0) {
		close(r->input_fd);
		r->input_fd = -EBADF;
		return;
	}
	for (i = 0; i < got; i++) {
		if (take_key(r, keys[i]))
			out[n++] = keys[i];
	}
	if (n > 0 && write(r->input_fd, out, n) < 0 && errno == EPIPE) {
		close(r->input_fd);
		r->input_fd = -EBADF;
	}
}

/* A signal for us is one for the VM. */
static void pass_signal(const struct run *r)
{
	struct signalfd_siginfo info;

	if (read(r->signal_fd, &info, sizeof(info)) == sizeof(info))
		kill(r->pid, (int)info.ssi_signo);
}

/* Serves terminal and signals until lulld has ended; its wait status. */
static int wait_for_end(struct run *r)
{
	struct pollfd p[3] = {
		{ .fd = r->pid_fd, .events = POLLIN },
		{ .fd = r->signal_fd, .events = POLLIN },
		{ .fd = STDIN_FILENO, .events = POLLIN },
	};
	int status = 0;

	while (!(p[0].revents & POLLIN)) {
		p[2].fd = r->input_fd >= 0 ? STDIN_FILENO : -1;
		if (poll(p, 3, -1) < 0)
			continue;
		if (p[1].revents & POLLIN)
			pass_signal(r);
		if (p[2].revents)
			pass_input(r);
	}
	while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* The last lines of lulld's log, where the reason is. */
static void show_log(const struct run *r)
{
	_cleanup_close_ int fd = open(r->log, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char tail[LOG_TAIL + 1];
	uint64_t size = 0;
	ssize_t got;

	if (fd < 0 || fd_size(fd, &size) < 0)
		return;
	got = pread(fd, tail, LOG_TAIL, size > LOG_TAIL ? (off_t)(size - LOG_TAIL) : 0);
	if (got > 0)
		fprintf(stderr, "%.*s", (int)got, tail);
}

static int report(const struct run *r, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	show_log(r);
	if (WIFSIGNALED(status))
		fprintf(stderr, "lullctl: lulld was ended by signal %d (%s)\n", WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	else
		fprintf(stderr, "lullctl: lulld ended with status %d\n", WEXITSTATUS(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int open_signals(struct run *r, struct error *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	return r->signal_fd < 0 ? error_set_errno(err, -errno, "cannot watch signals") : 0;
}

/* Ends a lulld that could not be set up, whatever it is busy with. */
static void abandon(const struct run *r)
{
	int status = 0, waited = 0;
	pid_t ended;

	if (r->pid <= 0)
		return;
	kill(r->pid, SIGTERM);
	while ((ended = waitpid(r->pid, &status, WNOHANG)) == 0 && waited < ABANDON_MS) {
		poll(NULL, 0, TICK_MS);
		waited += TICK_MS;
	}
	if (ended == 0) {
		kill(r->pid, SIGKILL);
		waitpid(r->pid, &status, 0);
	}
	if (!WIFSIGNALED(status))
		show_log(r);
}

/* Everything until the guest runs; a signal ends it at any time. */
static int set_up(struct run *r, struct error *err)
{
	int ret = start_lulld(r, err);

	if (ret == 0)
		ret = wait_for_socket(r, err);
	if (ret == 0)
		ret = run_requests_send(r->o, &r->server, err);
	if (ret == -ECANCELED)
		error_set(err, ret, "given up: a signal came");
	return ret;
}

static int fail(struct run *r, const struct error *err)
{
	fprintf(stderr, "lullctl: %s\n", err->text);
	remove_places(r);
	return 1;
}

int ctl_run(const struct run_options *o)
{
	struct run r = { .o = o, .pid_fd = -EBADF, .signal_fd = -EBADF, .input_fd = -EBADF };
	struct error err;
	int status;

	if (open_signals(&r, &err) < 0 || make_places(&r, &err) < 0)
		return fail(&r, &err);
	if (set_up(&r, &err) < 0) {
		abandon(&r);
		return fail(&r, &err);
	}
	make_raw(&r);
	status = wait_for_end(&r);
	make_cooked(&r);
	status = report(&r, status);
	remove_places(&r);
	return status;
}
