/*
 * Errors that a person or a client will read.
 *
 * Inside, a function returns 0 or a negative errno and logs nothing. Where the
 * answer leaves the process (configuration, control socket, boot), its last
 * parameter is a `struct error *`: untouched on success, filled on failure.
 * Decide on the return value, never on the content of the error.
 */
#ifndef LULL_BASE_ERROR_H
#define LULL_BASE_ERROR_H

#include <stdarg.h>

#define ERROR_TEXT_MAX 512

struct error {
	int code;                  /* negative errno */
	const char *field;         /* static: the one to blame, "caches.l3.ways"; NULL: none */
	char text[ERROR_TEXT_MAX]; /* one line, no final newline */
};

/* Fills `err` (may be NULL) and returns `code`, a negative errno. */
int error_set(struct error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* As error_set(), with "<field>: " before the text. */
int error_set_field(struct error *err, int code, const char *field, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * As error_set(), with ": <meaning of code> (os error N)" after the text; without
 * the colon if the text is a whole sentence.
 */
int error_set_errno(struct error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* What stands between `what` went wrong and the reason: ": ", or " " behind a sentence. */
const char *error_separator(const char *what);

/* "<what>: <meaning of code> (os error N) <path>", for a file that a client named. */
int error_set_path(struct error *err, int code, const char *what, const char *path);

/* Puts text before what `err` already says; returns its code. */
int error_prefix(struct error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
