/*
 * Checks of HTTP requests. Threads: any. Locks: none.
 * Not here: parsing (the HTTP library), answers (respond).
 */
#include "api/http_checks.h"

#include <string.h>
#include <strings.h>

#include "vmm/limits.h"

#define LENGTH_DIGITS 18 /* more would not fit 64 bits, and nothing is that large */

/* Paths are compared byte by byte and never decoded, so an escape can name nothing. */
const char *http_check_target(const char *target)
{
	size_t i;

	for (i = 0; target[i]; i++) {
		if (target[i] <= 0x20 || target[i] >= 0x7f || target[i] == '%')
			return "Invalid URI: only printable ASCII without escapes is understood.";
	}
	if (i > LIMIT_API_URI)
		return "Invalid URI: too long.";
	if (target[0] != '/' && strncmp(target, "http://", 7) != 0)
		return "Invalid URI: not an absolute path.";
	return NULL;
}

static bool is_name(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_";

	return name[0] && name[strspn(name, allowed)] == '\0';
}

static bool is_value(const char *value)
{
	for (; *value; value++) {
		if (((unsigned char)*value < 0x20 && *value != '\t') || *value == 0x7f)
			return false;
	}
	return true;
}

static bool is_length(const char *value)
{
	size_t n = strspn(value, "0123456789");

	return n > 0 && n <= LENGTH_DIGITS && value[n] == '\0';
}

const char *http_check_header(struct http_headers *seen, const char *name, const char *value)
{
	if (++seen->count > LIMIT_API_HEADER_COUNT)
		return "Too many headers.";
	if (!is_name(name) || !is_value(value))
		return "Invalid header.";
	if (!strcasecmp(name, "Transfer-Encoding"))
		return "Transfer-Encoding is not supported.";
	if (strcasecmp(name, "Content-Length") != 0)
		return NULL;
	if (++seen->lengths > 1)
		return "More than one Content-Length.";
	return is_length(value) ? NULL : "Invalid Content-Length.";
}

/* "Content-Length: 123" in `len` bytes without the end of the line. */
static bool read_length(const char *line, size_t len, uint64_t *ret)
{
	static const char name[] = "content-length:";
	size_t i = sizeof(name) - 1, digits = 0;
	uint64_t length = 0;

	if (len < i || strncasecmp(line, name, i) != 0)
		return false;
	while (i < len && (line[i] == ' ' || line[i] == '\t'))
		i++;
	for (; i < len && line[i] >= '0' && line[i] <= '9'; i++, digits++)
		length = digits < LENGTH_DIGITS ? length * 10 + (uint64_t)(line[i] - '0') : UINT64_MAX;
	*ret = length;
	return digits > 0;
}

static bool names_v1(const char *line, size_t len)
{
	const char *path = memchr(line, ' ', len);
	size_t left = path ? len - (size_t)(path - line) : 0;

	return left >= 5 && !memcmp(path, " /v1/", 5);
}

void http_scan_head(const char *bytes, size_t len, struct http_head *ret)
{
	const char *end;
	size_t n;

	memset(ret, 0, sizeof(*ret));
	while (len > 0 && !ret->complete) {
		end = memchr(bytes, '\n', len);
		if (!end)
			break;
		n = (size_t)(end - bytes);
		if (n > 0 && end[-1] == '\r')
			n--;
		ret->complete = n == 0;
		ret->is_v1 = ret->is_v1 || names_v1(bytes, n);
		if (read_length(bytes, n, &ret->length))
			ret->has_length = true;
		len -= (size_t)(end + 1 - bytes);
		bytes = end + 1;
	}
}
