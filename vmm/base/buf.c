/*
 * Bounded byte buffer. Threads: the owner's. Locks: none.
 */
#include "vmm/base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_init(struct buf *b, size_t max)
{
	memset(b, 0, sizeof(*b));
	b->max = max;
}

void buf_fini(struct buf *b)
{
	free(b->data);
	buf_init(b, b->max);
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->data)
		b->data[0] = '\0';
}

const char *buf_text(const struct buf *b)
{
	return b->data ? b->data : "";
}

static int buf_fail(struct buf *b, int code)
{
	b->failed = true;
	return code;
}

static int buf_reserve(struct buf *b, size_t n)
{
	size_t need, capacity;
	char *data;

	if (n > b->max || b->len > b->max - n)
		return buf_fail(b, -ENOSPC);
	need = b->len + n + 1;
	if (need <= b->capacity)
		return 0;
	capacity = b->capacity ? b->capacity : 64;
	while (capacity < need)
		capacity *= 2;
	data = realloc(b->data, capacity);
	if (!data)
		return buf_fail(b, -ENOMEM);
	b->data = data;
	b->capacity = capacity;
	return 0;
}

int buf_append(struct buf *b, const void *data, size_t n)
{
	int ret = buf_reserve(b, n);

	if (ret < 0)
		return ret;
	if (n)
		memcpy(b->data + b->len, data, n);
	b->len += n;
	b->data[b->len] = '\0';
	return 0;
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list args, again;
	int n, ret;

	va_start(args, fmt);
	va_copy(again, args);
	n = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	ret = n < 0 ? buf_fail(b, -EINVAL) : buf_reserve(b, (size_t)n);
	if (ret == 0) {
		vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
	return ret;
}

static int append_escaped(struct buf *b, unsigned char c)
{
	switch (c) {
	case '"':
		return buf_append(b, "\\\"", 2);
	case '\\':
		return buf_append(b, "\\\\", 2);
	case '\n':
		return buf_append(b, "\\n", 2);
	case '\t':
		return buf_append(b, "\\t", 2);
	default:
		if (c < 0x20 || c == 0x7f)
			return buf_printf(b, "\\u%04x", c);
		return buf_append(b, &c, 1);
	}
}

int buf_append_json_string(struct buf *b, const char *text)
{
	int ret = buf_append(b, "\"", 1);

	for (; ret == 0 && *text; text++)
		ret = append_escaped(b, (unsigned char)*text);
	return ret == 0 ? buf_append(b, "\"", 1) : ret;
}
