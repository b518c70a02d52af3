/*
 * The log: one line each, to stdout until a target file is set.
 *
 *	2026-11-30T20:15:01.123456789 [id:thread:LEVEL:file:line] text
 *
 * Writing never waits: the target is non-blocking, a line that does not fit is
 * dropped and counted. Each call site may write 10 lines in 5 s (the rest are
 * counted), so that no guest or client can flood the host through it;
 * log_always() is for the few life-cycle lines that are exempt.
 * Control bytes in a line are written as '?', so no text forges a second line.
 *
 * Threads: any. Lock: one of level LOG around a write.
 */
#ifndef LULL_BASE_LOG_H
#define LULL_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/error.h"

enum log_level {
	LOG_LEVEL_OFF,
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARN,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
	LOG_LEVEL_TRACE,
};

/* One per call site, made by the macros below. */
struct log_site {
	const char *file;
	int line;
	bool limited;               /* false: exempt from the limit */
	_Atomic uint64_t window_ns; /* start of the current 5 s window */
	_Atomic uint32_t count;     /* lines in it */
};

struct log_counters {
	uint64_t missed;       /* lines the target did not take */
	uint64_t rate_limited; /* lines over a site's limit */
};

/* Called once by main before other threads exist. `id` is copied, 64 bytes at most. */
void log_init(const char *id);

/*
 * Opens `path` (file or FIFO, created if missing, never waited for) as the
 * target. NULL goes back to stdout. Main thread.
 */
int log_set_target(const char *path, struct error *err);
void log_set_level(enum log_level level);
void log_set_format(bool show_level, bool show_origin);
/* Only lines from files whose path starts with `prefix`; "" for all. Main thread. */
void log_set_module(const char *prefix);

/* "off", "error", "warn"/"warning", "info", "debug", "trace", any case; -EINVAL otherwise. */
int log_level_parse(const char *text, enum log_level *ret_level);

void log_get_counters(struct log_counters *ret);

bool log_enabled(enum log_level level);
void log_write(enum log_level level, struct log_site *site, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define log_at(level, is_limited, ...)                                  \
	do {                                                            \
		static struct log_site log_site_ = {                    \
			.file = __FILE__,                               \
			.line = __LINE__,                               \
			.limited = is_limited,                          \
		};                                                      \
		if (log_enabled(level))                                 \
			log_write(level, &log_site_, __VA_ARGS__);      \
	} while (0)

#define log_error(...) log_at(LOG_LEVEL_ERROR, true, __VA_ARGS__)
#define log_warn(...) log_at(LOG_LEVEL_WARN, true, __VA_ARGS__)
#define log_info(...) log_at(LOG_LEVEL_INFO, true, __VA_ARGS__)
#define log_debug(...) log_at(LOG_LEVEL_DEBUG, true, __VA_ARGS__)
#define log_always(...) log_at(LOG_LEVEL_INFO, false, __VA_ARGS__)

#endif
