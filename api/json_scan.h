/*
 * Strict look over JSON text, before a parser sees it.
 *
 * json-c takes duplicate keys, NUL escapes, numbers that do not fit, overlong
 * UTF-8 and more without a word; this scan refuses all of it and bounds depth
 * and number of tokens, so that what follows may trust the text.
 *
 * Pure functions; any thread; no locks. Not here: what the text means (fields).
 */
#ifndef LULL_API_JSON_SCAN_H
#define LULL_API_JSON_SCAN_H

#include <stddef.h>

struct json_limits {
	unsigned depth;  /* objects and arrays inside one another */
	unsigned tokens; /* values and keys in all */
};

/* Where in the text: lines from 1, columns in bytes; column 0 is before the first byte. */
struct json_place {
	unsigned line;
	unsigned column;
};

enum json_fault_kind {
	JSON_FAULT_SYNTAX,
	JSON_FAULT_LIMIT,
	JSON_FAULT_DUPLICATE, /* `key` names the member */
	JSON_FAULT_MEMORY,
};

struct json_fault {
	enum json_fault_kind kind;
	struct json_place place;
	char key[72];
	char text[224]; /* with " at line L column C" at its end */
};

/* The one value that the text holds, without the white space around it. */
struct json_span {
	size_t start;
	size_t end;              /* one past its last byte */
	struct json_place place; /* of its last byte */
};

/*
 * Checks `len` bytes. 0 and the span of the value; -EINVAL for text that is no
 * JSON, -E2BIG for a limit, -EEXIST for a duplicate key, -ENOMEM; then `fault`
 * is filled.
 */
int json_scan(const char *bytes, size_t len, const struct json_limits *limits,
	      struct json_span *ret, struct json_fault *fault);

/* Length of the valid UTF-8 sequence at `p`, 1 to 4; 0 if there is none in `left` bytes. */
size_t json_utf8_length(const unsigned char *p, size_t left);

/*
 * Copies text for a message: at most `size` - 1 bytes, cut between characters
 * and marked with "..." where something is left out.
 */
void json_clip(char *out, size_t size, const char *text, size_t len);

#endif
