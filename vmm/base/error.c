/*
 * Error text. Threads: any; an error belongs to its caller. Locks: none.
 */
#include "vmm/base/error.h"

#include <stdio.h>
#include <string.h>

int error_set(struct error *err, int code, const char *fmt, ...)
{
	va_list args;

	if (!err)
		return code;
	err->code = code;
	err->field = NULL;
	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	return code;
}

int error_set_field(struct error *err, int code, const char *field, const char *fmt, ...)
{
	va_list args;
	size_t used;

	if (!err)
		return code;
	error_set(err, code, "%s: ", field);
	err->field = field;
	used = strlen(err->text);
	va_start(args, fmt);
	vsnprintf(err->text + used, sizeof(err->text) - used, fmt, args);
	va_end(args);
	return code;
}

const char *error_separator(const char *what)
{
	size_t len = strlen(what);

	return len > 0 && what[len - 1] == '.' ? " " : ": ";
}

int error_set_errno(struct error *err, int code, const char *fmt, ...)
{
	va_list args;
	char meaning[128];
	size_t used;

	if (!err)
		return code;
	err->code = code;
	err->field = NULL;
	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	used = strlen(err->text);
	snprintf(err->text + used, sizeof(err->text) - used, "%s%s (os error %d)",
		 error_separator(err->text), strerror_r(-code, meaning, sizeof(meaning)), -code);
	return code;
}

int error_set_path(struct error *err, int code, const char *what, const char *path)
{
	size_t used;

	if (!err)
		return code;
	error_set_errno(err, code, "%s", what);
	used = strlen(err->text);
	snprintf(err->text + used, sizeof(err->text) - used, " %s", path);
	return code;
}

int error_prefix(struct error *err, const char *fmt, ...)
{
	va_list args;
	char old[ERROR_TEXT_MAX];
	size_t used;

	if (!err)
		return 0;
	memcpy(old, err->text, sizeof(old));
	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	used = strlen(err->text);
	snprintf(err->text + used, sizeof(err->text) - used, "%s", old);
	return err->code;
}
