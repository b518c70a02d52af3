/*
 * Strict JSON scan: a recursive descent over the bytes that builds nothing but
 * a stack of the keys of the objects that are open. Recursion is bounded by
 * the depth limit.
 *
 * Threads: any. Locks: none. Not here: values (json-c makes those afterwards).
 */
#include "api/json_scan.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 64 /* characters; no number of ours needs more */

/* A key, as it stands between its quotes, and a hash of what it means. */
struct scan_key {
	size_t start;
	size_t end;
	uint64_t hash;
};

struct scan {
	const unsigned char *p;
	size_t len;
	size_t pos;
	const struct json_limits *limits;
	unsigned depth;
	unsigned tokens;
	struct scan_key *keys;
	size_t key_count;
	size_t key_capacity;
	struct json_fault *fault;
};

size_t json_utf8_length(const unsigned char *p, size_t left)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t c;
	size_t n, i;

	if (left == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 0;
	if (n == 0 || n > left || p[0] > 0xf4)
		return 0;
	c = p[0] & (0x7f >> n);
	for (i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? 0 : n;
}

void json_clip(char *out, size_t size, const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t used = 0, n;

	while (used < len) {
		n = json_utf8_length(p + used, len - used);
		if (n == 0 || used + n > size - 4)
			break;
		used += n;
	}
	memcpy(out, text, used);
	snprintf(out + used, size - used, "%s", used < len ? "..." : "");
}

static struct json_place place_of(const struct scan *s, size_t bytes)
{
	struct json_place place = { 1, 0 };
	size_t i;

	for (i = 0; i < bytes; i++) {
		place.column++;
		if (s->p[i] == '\n' && i + 1 < bytes) {
			place.line++;
			place.column = 0;
		}
	}
	return place;
}

/* Words the fault; at the end of the text it lies behind the last byte, else on the current. */
static int fail(struct scan *s, int code, enum json_fault_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static int fail(struct scan *s, int code, enum json_fault_kind kind, const char *fmt, ...)
{
	struct json_fault *f = s->fault;
	va_list args;
	size_t used;

	f->kind = kind;
	f->place = place_of(s, s->pos < s->len ? s->pos + 1 : s->len);
	va_start(args, fmt);
	vsnprintf(f->text, sizeof(f->text) - 48, fmt, args);
	va_end(args);
	used = strlen(f->text);
	snprintf(f->text + used, sizeof(f->text) - used, " at line %u column %u", f->place.line,
		 f->place.column);
	return code;
}

static int fail_syntax(struct scan *s, const char *what)
{
	return fail(s, -EINVAL, JSON_FAULT_SYNTAX, "%s", what);
}

/* A byte that is not there or not the right one. */
static int fail_here(struct scan *s, const char *at_end, const char *at_byte)
{
	return fail_syntax(s, s->pos >= s->len ? at_end : at_byte);
}

static int peek(const struct scan *s)
{
	return s->pos < s->len ? s->p[s->pos] : -1;
}

static void skip_space(struct scan *s)
{
	while (s->pos < s->len && strchr(" \t\r\n", s->p[s->pos]) && s->p[s->pos])
		s->pos++;
}

static int count_token(struct scan *s)
{
	if (++s->tokens <= s->limits->tokens)
		return 0;
	return fail(s, -E2BIG, JSON_FAULT_LIMIT, "more than %u values and keys",
		    s->limits->tokens);
}

static int hex_digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Four hex digits at `p`; -1 if they are not that. */
static int32_t hex4(const unsigned char *p, size_t left)
{
	int32_t v = 0;
	int i, d;

	if (left < 4)
		return -1;
	for (i = 0; i < 4; i++) {
		d = hex_digit(p[i]);
		if (d < 0)
			return -1;
		v = v << 4 | d;
	}
	return v;
}

/* Behind "\u": one unit, or a pair of surrogates. NUL has no place in our strings. */
static int scan_unicode_escape(struct scan *s)
{
	int32_t unit = hex4(s->p + s->pos, s->len - s->pos), low;

	if (unit < 0)
		return fail_here(s, "EOF while parsing a string", "invalid escape");
	if (unit == 0)
		return fail_syntax(s, "NUL character in a string");
	s->pos += 4;
	if (unit < 0xd800 || unit > 0xdfff)
		return 0;
	if (unit > 0xdbff)
		return fail_syntax(s, "lone trailing surrogate in hex escape");
	if (s->len - s->pos < 6 || s->p[s->pos] != '\\' || s->p[s->pos + 1] != 'u')
		return fail_syntax(s, "lone leading surrogate in hex escape");
	low = hex4(s->p + s->pos + 2, 4);
	if (low < 0xdc00 || low > 0xdfff)
		return fail_syntax(s, "lone leading surrogate in hex escape");
	s->pos += 6;
	return 0;
}

static int scan_escape(struct scan *s)
{
	int c;

	s->pos++;
	c = peek(s);
	if (c < 0)
		return fail_syntax(s, "EOF while parsing a string");
	if (c == 'u') {
		s->pos++;
		return scan_unicode_escape(s);
	}
	if (!c || !strchr("\"\\/bfnrt", c))
		return fail_syntax(s, "invalid escape");
	s->pos++;
	return 0;
}

/* At the opening quote. `start` and `end` enclose what stands between the quotes. */
static int scan_string(struct scan *s, size_t *start, size_t *end)
{
	size_t n;
	int ret;

	*start = ++s->pos;
	for (;;) {
		if (s->pos >= s->len)
			return fail_syntax(s, "EOF while parsing a string");
		if (s->p[s->pos] == '"')
			break;
		if (s->p[s->pos] < 0x20)
			return fail_syntax(s, "control character (\\u0000-\\u001F) found while "
					      "parsing a string");
		if (s->p[s->pos] == '\\') {
			ret = scan_escape(s);
			if (ret < 0)
				return ret;
			continue;
		}
		n = json_utf8_length(s->p + s->pos, s->len - s->pos);
		if (n == 0)
			return fail_syntax(s, "invalid unicode code point");
		s->pos += n;
	}
	*end = s->pos++;
	return 0;
}

/* The next UTF-16 unit or UTF-8 byte of a key that was scanned, escapes undone. */
static uint32_t key_next(const struct scan *s, size_t *pos)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const unsigned char *p = s->p + *pos;
	const char *found;
	uint32_t unit;

	if (p[0] != '\\') {
		*pos += 1;
		return p[0];
	}
	if (p[1] == 'u') {
		*pos += 6;
		unit = (uint32_t)hex4(p + 2, 4);
		/* beyond ASCII it is kept apart from bytes: see key_hash() */
		return unit < 0x80 ? unit : unit | 0x10000;
	}
	*pos += 2;
	found = strchr(from, p[1]);
	return found ? (uint32_t)to[found - from] : p[1];
}

/*
 * Keys of ours are ASCII, and those compare equal however they are escaped. A
 * key beyond ASCII that is written once as bytes and once as escapes is two
 * keys here; no field has such a name, so both are refused as unknown.
 */
static uint64_t key_hash(const struct scan *s, const struct scan_key *k)
{
	uint64_t hash = 14695981039346656037ull;
	size_t pos = k->start;

	while (pos < k->end)
		hash = (hash ^ key_next(s, &pos)) * 1099511628211ull;
	return hash;
}

static bool key_equal(const struct scan *s, const struct scan_key *a, const struct scan_key *b)
{
	size_t i = a->start, j = b->start;

	if (a->hash != b->hash)
		return false;
	while (i < a->end && j < b->end) {
		if (key_next(s, &i) != key_next(s, &j))
			return false;
	}
	return i == a->end && j == b->end;
}

static int fail_duplicate(struct scan *s, const struct scan_key *k)
{
	json_clip(s->fault->key, sizeof(s->fault->key), (const char *)s->p + k->start,
		  k->end - k->start);
	s->pos = k->end;
	return fail(s, -EEXIST, JSON_FAULT_DUPLICATE, "duplicate field `%s`", s->fault->key);
}

/* Adds a key to the object whose keys begin at `first`. */
static int push_key(struct scan *s, size_t first, struct scan_key k)
{
	size_t i, capacity;
	void *grown;

	k.hash = key_hash(s, &k);
	for (i = first; i < s->key_count; i++) {
		if (key_equal(s, &s->keys[i], &k))
			return fail_duplicate(s, &k);
	}
	if (s->key_count == s->key_capacity) {
		capacity = s->key_capacity ? s->key_capacity * 2 : 32;
		grown = realloc(s->keys, capacity * sizeof(*s->keys));
		if (!grown)
			return fail(s, -ENOMEM, JSON_FAULT_MEMORY, "out of memory");
		s->keys = grown;
		s->key_capacity = capacity;
	}
	s->keys[s->key_count++] = k;
	return 0;
}

static void skip_digits(struct scan *s)
{
	while (peek(s) >= '0' && peek(s) <= '9')
		s->pos++;
}

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

/* "." digits and "e" digits; false when there is none, so that the number is an integer. */
static int scan_fraction(struct scan *s, bool *ret_is_float)
{
	*ret_is_float = false;
	if (peek(s) == '.') {
		s->pos++;
		*ret_is_float = true;
		if (!is_digit(peek(s)))
			return fail_here(s, "EOF while parsing a value", "invalid number");
		skip_digits(s);
	}
	if (peek(s) == 'e' || peek(s) == 'E') {
		s->pos++;
		*ret_is_float = true;
		if (peek(s) == '+' || peek(s) == '-')
			s->pos++;
		if (!is_digit(peek(s)))
			return fail_here(s, "EOF while parsing a value", "invalid number");
		skip_digits(s);
	}
	return 0;
}

/* An integer that json-c would clamp, or a float that it would make infinite. */
static int check_number_range(struct scan *s, size_t start, bool is_float)
{
	char text[NUMBER_MAX + 1];
	size_t len = s->pos - start;

	s->pos--; /* the fault lies on the last digit */
	if (len > NUMBER_MAX)
		return fail_syntax(s, "number out of range");
	memcpy(text, s->p + start, len);
	text[len] = '\0';
	errno = 0;
	if (is_float) {
		if (!isfinite(strtod(text, NULL)))
			return fail_syntax(s, "number out of range");
	} else {
		if (text[0] == '-')
			strtoll(text, NULL, 10);
		else
			strtoull(text, NULL, 10);
		if (errno == ERANGE)
			return fail(s, -EINVAL, JSON_FAULT_SYNTAX,
				    "invalid type: number `%s`, expected a 64-bit integer", text);
	}
	s->pos++;
	return 0;
}

static int scan_number(struct scan *s)
{
	size_t start = s->pos;
	bool is_float;
	int ret;

	if (peek(s) == '-')
		s->pos++;
	if (!is_digit(peek(s)))
		return fail_here(s, "EOF while parsing a value", "invalid number");
	if (peek(s) == '0') {
		s->pos++;
		if (is_digit(peek(s)))
			return fail_syntax(s, "invalid number");
	}
	skip_digits(s);
	ret = scan_fraction(s, &is_float);
	return ret < 0 ? ret : check_number_range(s, start, is_float);
}

static int scan_word(struct scan *s, const char *word)
{
	for (; *word; word++, s->pos++) {
		if (peek(s) != *word)
			return fail_here(s, "EOF while parsing a value", "expected ident");
	}
	return 0;
}

static int scan_value(struct scan *s);

static int enter(struct scan *s)
{
	if (++s->depth > s->limits->depth)
		return fail(s, -E2BIG, JSON_FAULT_LIMIT, "recursion limit exceeded");
	s->pos++;
	skip_space(s);
	return 0;
}

/* After an element: 1 for another one, 0 at the end of the container. */
static int next_element(struct scan *s, int close, const char *at_end, const char *at_byte)
{
	skip_space(s);
	if (peek(s) == close) {
		s->pos++;
		s->depth--;
		return 0;
	}
	if (peek(s) != ',')
		return fail_here(s, at_end, at_byte);
	s->pos++;
	skip_space(s);
	if (peek(s) == close)
		return fail_syntax(s, "trailing comma");
	return 1;
}

static int scan_member(struct scan *s, size_t first_key)
{
	struct scan_key key = { 0 };
	int ret;

	if (peek(s) != '"')
		return fail_here(s, "EOF while parsing an object", "key must be a string");
	ret = count_token(s);
	if (ret == 0)
		ret = scan_string(s, &key.start, &key.end);
	if (ret == 0)
		ret = push_key(s, first_key, key);
	if (ret < 0)
		return ret;
	skip_space(s);
	if (peek(s) != ':')
		return fail_here(s, "EOF while parsing an object", "expected `:`");
	s->pos++;
	skip_space(s);
	return scan_value(s);
}

static int scan_object(struct scan *s)
{
	size_t first_key = s->key_count;
	int ret = enter(s);

	if (ret < 0)
		return ret;
	if (peek(s) == '}') {
		s->pos++;
		s->depth--;
		return 0;
	}
	do {
		ret = scan_member(s, first_key);
		if (ret == 0)
			ret = next_element(s, '}', "EOF while parsing an object",
					   "expected `,` or `}`");
	} while (ret > 0);
	s->key_count = first_key;
	return ret;
}

static int scan_array(struct scan *s)
{
	int ret = enter(s);

	if (ret < 0)
		return ret;
	if (peek(s) == ']') {
		s->pos++;
		s->depth--;
		return 0;
	}
	do {
		ret = peek(s) < 0 ? fail_syntax(s, "EOF while parsing a list") : scan_value(s);
		if (ret == 0)
			ret = next_element(s, ']', "EOF while parsing a list",
					   "expected `,` or `]`");
	} while (ret > 0);
	return ret;
}

static int scan_value(struct scan *s)
{
	size_t start, end;
	int ret = count_token(s);

	if (ret < 0)
		return ret;
	switch (peek(s)) {
	case '{':
		return scan_object(s);
	case '[':
		return scan_array(s);
	case '"':
		return scan_string(s, &start, &end);
	case 't':
		return scan_word(s, "true");
	case 'f':
		return scan_word(s, "false");
	case 'n':
		return scan_word(s, "null");
	default:
		if (peek(s) == '-' || is_digit(peek(s)))
			return scan_number(s);
		return fail_here(s, "EOF while parsing a value", "expected value");
	}
}

int json_scan(const char *bytes, size_t len, const struct json_limits *limits,
	      struct json_span *ret, struct json_fault *fault)
{
	struct scan s = {
		.p = (const unsigned char *)bytes,
		.len = len,
		.limits = limits,
		.fault = fault,
	};
	struct json_span span;
	int code;

	memset(fault, 0, sizeof(*fault));
	skip_space(&s);
	span.start = s.pos;
	code = scan_value(&s);
	if (code == 0) {
		span.end = s.pos;
		span.place = place_of(&s, s.pos);
		skip_space(&s);
		if (s.pos < s.len)
			code = fail_syntax(&s, "trailing characters");
	}
	free(s.keys);
	if (code == 0)
		*ret = span;
	return code;
}
