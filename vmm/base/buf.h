/*
 * A growing byte buffer that cannot be made without a maximum.
 *
 * Owned by one thread at a time. After a failed append the buffer keeps what
 * it had and remembers the failure, so that a series of appends may be checked
 * once, with buf_failed(), at its end.
 */
#ifndef LULL_BASE_BUF_H
#define LULL_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data; /* NUL-terminated once anything was appended; else NULL */
	size_t len; /* bytes, the final NUL not counted */
	size_t capacity;
	size_t max; /* most bytes it may hold */
	bool failed;
};

void buf_init(struct buf *b, size_t max);
void buf_fini(struct buf *b);
void buf_clear(struct buf *b);

/* -ENOSPC past the maximum, -ENOMEM without memory; nothing is appended then. */
int buf_append(struct buf *b, const void *data, size_t n);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends `text` as a JSON string with its quotes; control bytes are escaped. */
int buf_append_json_string(struct buf *b, const char *text);

static inline bool buf_failed(const struct buf *b)
{
	return b->failed;
}

/* The text so far; "" when empty. */
const char *buf_text(const struct buf *b);

#endif
