/*
 * The log. Threads: any write; log_set_*() on the main thread only.
 * Locks: log_lock (level LOG) around the target and its format.
 * Not here: the journal (stdout is connected to it), rotation (open a new target).
 */
#include "vmm/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/bits.h"
#include "vmm/base/cleanup.h"
#include "vmm/base/lock.h"
#include "vmm/base/ratelimit.h"

#define LOG_LINE_MAX 1024
#define LOG_SITE_LINES 10
#define LOG_SITE_WINDOW_NS (5ull * 1000000000ull)

static struct lock log_lock = LOCK_STATIC(LOCK_LEVEL_LOG, "log");
static int log_stdout = STDOUT_FILENO; /* or a description of our own of the same thing */
static int log_fd = STDOUT_FILENO;
static char log_id[65];
static char log_module[129];
static bool log_show_level;
static bool log_show_origin;
static _Atomic int log_threshold = LOG_LEVEL_INFO;
static _Atomic uint64_t log_missed;
static _Atomic uint64_t log_rate_limited;

static const char *const level_names[] = {
	[LOG_LEVEL_OFF] = "OFF",   [LOG_LEVEL_ERROR] = "ERROR", [LOG_LEVEL_WARN] = "WARN",
	[LOG_LEVEL_INFO] = "INFO", [LOG_LEVEL_DEBUG] = "DEBUG", [LOG_LEVEL_TRACE] = "TRACE",
};

/*
 * A pipe or terminal at standard output blocks its writers when nobody reads, and
 * its flags are shared with other processes: it is opened again, non-blocking.
 */
static int open_stdout(void)
{
	struct stat st;
	int fd;

	if (fstat(STDOUT_FILENO, &st) < 0 || !(S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)))
		return STDOUT_FILENO;
	fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? STDOUT_FILENO : fd;
}

void log_init(const char *id)
{
	snprintf(log_id, sizeof(log_id), "%s", id);
	if (log_stdout == STDOUT_FILENO)
		log_stdout = open_stdout();
	log_fd = log_stdout;
}

int log_set_target(const char *path, struct error *err)
{
	int fd = log_stdout, old;

	if (path) {
		fd = open(path, O_RDWR | O_NONBLOCK | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY,
			  0600);
		if (fd < 0)
			return error_set_errno(err, -errno, "Failed to open target file: %s", path);
	}
	lock_take(&log_lock);
	old = log_fd;
	log_fd = fd;
	lock_release(&log_lock);
	if (old != log_stdout)
		close(old);
	return 0;
}

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&log_threshold, level, memory_order_relaxed);
}

void log_set_format(bool show_level, bool show_origin)
{
	lock_take(&log_lock);
	log_show_level = show_level;
	log_show_origin = show_origin;
	lock_release(&log_lock);
}

void log_set_module(const char *prefix)
{
	lock_take(&log_lock);
	snprintf(log_module, sizeof(log_module), "%s", prefix);
	lock_release(&log_lock);
}

int log_level_parse(const char *text, enum log_level *ret_level)
{
	size_t i;

	if (!strcasecmp(text, "warning"))
		text = "warn";
	for (i = 0; i < ARRAY_SIZE(level_names); i++) {
		if (!strcasecmp(text, level_names[i])) {
			*ret_level = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

void log_get_counters(struct log_counters *ret)
{
	ret->missed = atomic_load_explicit(&log_missed, memory_order_relaxed);
	ret->rate_limited = atomic_load_explicit(&log_rate_limited, memory_order_relaxed);
}

bool log_enabled(enum log_level level)
{
	return (int)level <= atomic_load_explicit(&log_threshold, memory_order_relaxed);
}

/* Two threads that open a window together may both write: the limit is a bound on flooding. */
static bool site_allows(struct log_site *site)
{
	uint64_t now = ratelimit_now();
	uint64_t start = atomic_load_explicit(&site->window_ns, memory_order_relaxed);

	if (!site->limited)
		return true;
	if (start == 0 || now - start > LOG_SITE_WINDOW_NS) {
		atomic_store_explicit(&site->window_ns, now, memory_order_relaxed);
		atomic_store_explicit(&site->count, 0, memory_order_relaxed);
	}
	return atomic_fetch_add_explicit(&site->count, 1, memory_order_relaxed) < LOG_SITE_LINES;
}

static size_t format_head(char *line, size_t size, enum log_level level,
			  const struct log_site *site)
{
	char thread[17] = "";
	char origin[96] = "";
	struct timespec now;
	struct tm tm;
	int n;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	prctl(PR_GET_NAME, thread);
	if (log_show_origin)
		snprintf(origin, sizeof(origin), ":%s:%d", site->file, site->line);
	n = snprintf(line, size, "%04d-%02d-%02dT%02d:%02d:%02d.%09ld [%s:%s%s%s%s] ",
		     tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
		     tm.tm_sec, now.tv_nsec, log_id, thread, log_show_level ? ":" : "",
		     log_show_level ? level_names[level] : "", origin);
	return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

static void write_line_locked(enum log_level level, const struct log_site *site, const char *fmt,
			      va_list args) TSA_REQUIRES(log_lock)
	__attribute__((format(printf, 3, 0)));
static void write_line_locked(enum log_level level, const struct log_site *site, const char *fmt,
			      va_list args)
{
	char line[LOG_LINE_MAX];
	size_t used, i;
	ssize_t put;
	int n;

	used = format_head(line, sizeof(line) - 1, level, site);
	n = vsnprintf(line + used, sizeof(line) - 1 - used, fmt, args);
	if (n < 0)
		return;
	used += strlen(line + used);
	for (i = 0; i < used; i++) {
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	}
	line[used++] = '\n';
	do {
		put = write(log_fd, line, used);
	} while (put < 0 && errno == EINTR);
	if (put != (ssize_t)used)
		atomic_fetch_add_explicit(&log_missed, 1, memory_order_relaxed);
}

void log_write(enum log_level level, struct log_site *site, const char *fmt, ...)
{
	va_list args;

	if (!site_allows(site)) {
		atomic_fetch_add_explicit(&log_rate_limited, 1, memory_order_relaxed);
		return;
	}
	lock_take(&log_lock);
	if (!strncmp(site->file, log_module, strlen(log_module))) {
		va_start(args, fmt);
		write_line_locked(level, site, fmt, args);
		va_end(args);
	}
	lock_release(&log_lock);
}
