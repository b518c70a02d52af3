/*
 * Field tables, the reading side: a json-c object becomes a struct.
 * Messages are worded as the clients of Firecracker's API know them.
 *
 * Threads: main. Locks: none. Not here: printing (fields_print.c).
 */
#include "api/fields.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/json_doc.h"
#include "vmm/limits.h"

#define SHOWN_TEXT 68 /* bytes of a client's text in a message */

struct reader {
	struct field_error *err;
	const struct json_place *end; /* of the outermost object */
	char path[128];               /* dotted name of the object being read */
};

static void append(struct field_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void append(struct field_error *err, const char *fmt, ...)
{
	size_t used = strlen(err->text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(err->text + used, sizeof(err->text) - used, fmt, args);
	va_end(args);
}

/* Starts the error of `name`, a field of the object being read; more may be appended. */
static struct field_error *blame(struct reader *r, enum field_fault fault, const char *name)
{
	struct field_error *err = r->err;
	char shown[SHOWN_TEXT];

	json_clip(shown, sizeof(shown), name, strlen(name));
	err->fault = fault;
	err->text[0] = '\0';
	snprintf(err->field, sizeof(err->field), "%s%s%.60s", r->path,
		 r->path[0] && name[0] ? "." : "", shown);
	return err;
}

/* Ends an error about a value with the name of its field. */
static int name_field(struct field_error *err)
{
	if (err->field[0])
		append(err, " in field `%s`", err->field);
	return -EINVAL;
}

static void describe(struct field_error *err, struct json_object *value)
{
	char shown[SHOWN_TEXT];

	switch (json_object_get_type(value)) {
	case json_type_null:
		append(err, "null");
		break;
	case json_type_boolean:
		append(err, "boolean `%s`", json_object_get_boolean(value) ? "true" : "false");
		break;
	case json_type_int:
		append(err, "integer `%s`", json_object_to_json_string(value));
		break;
	case json_type_double:
		append(err, "floating point `%s`", json_object_to_json_string(value));
		break;
	case json_type_string:
		json_clip(shown, sizeof(shown), json_object_get_string(value),
			  (size_t)json_object_get_string_len(value));
		append(err, "string \"%s\"", shown);
		break;
	case json_type_array:
		append(err, "sequence");
		break;
	case json_type_object:
		append(err, "map");
		break;
	}
}

static int wrong_type(struct reader *r, const char *name, struct json_object *value,
		      const char *expected)
{
	struct field_error *err = blame(r, FIELD_FAULT_TYPE, name);

	append(err, "invalid type: ");
	describe(err, value);
	append(err, ", expected %s", expected);
	return name_field(err);
}

static int out_of_range(struct reader *r, const char *name, struct json_object *value,
			const char *expected)
{
	struct field_error *err = blame(r, FIELD_FAULT_RANGE, name);

	append(err, "invalid value: ");
	describe(err, value);
	append(err, ", expected %s", expected);
	return name_field(err);
}

/* ", expected `a`", "`a` or `b`", "one of `a`, `b`, `c`": name number `i` of `count`. */
static void list_expected(struct field_error *err, size_t i, size_t count, const char *name)
{
	const char *lead = i > 0 ? (count == 2 ? " or " : ", ")
				 : (count > 2 ? ", expected one of " : ", expected ");

	append(err, "%s`%s`", lead, name);
}

static int unknown_field(struct reader *r, const struct field_table *t, const char *name)
{
	struct field_error *err = blame(r, FIELD_FAULT_UNKNOWN, name);
	size_t i, shown = 0, count = 0;
	char clipped[SHOWN_TEXT];

	json_clip(clipped, sizeof(clipped), name, strlen(name));
	append(err, "unknown field `%s`", clipped);
	for (i = 0; i < t->count; i++)
		count += t->fields[i].kind != FIELD_REFUSED;
	for (i = 0; i < t->count; i++) {
		if (t->fields[i].kind != FIELD_REFUSED)
			list_expected(err, shown++, count, t->fields[i].name);
	}
	if (count == 0)
		append(err, ", there are no fields");
	return -EINVAL;
}

static int missing_field(struct reader *r, const char *name)
{
	struct field_error *err = blame(r, FIELD_FAULT_MISSING, name);

	append(err, "missing field `%s`", name);
	if (r->end && !r->path[0])
		append(err, " at line %u column %u", r->end->line, r->end->column);
	return -EINVAL;
}

static int not_supported(struct reader *r, const struct field *f, const char *value)
{
	struct field_error *err = blame(r, FIELD_FAULT_REFUSED, f->name);

	append(err, "field `%s`", f->name);
	if (value)
		append(err, ": value `%s`", value);
	append(err, " is not supported by this version");
	return -EINVAL;
}

static int unknown_name(struct reader *r, const struct field *f, const char *text)
{
	struct field_error *err = blame(r, FIELD_FAULT_RANGE, f->name);
	size_t i, count = 0;
	char clipped[SHOWN_TEXT];

	json_clip(clipped, sizeof(clipped), text, strlen(text));
	append(err, "unknown variant `%s`", clipped);
	while (f->names[count].name)
		count++;
	for (i = 0; i < count; i++)
		list_expected(err, i, count, f->names[i].name);
	return name_field(err);
}

/* The entry of the field's names that `value` is; NULL with the error set. */
static const struct field_name *find_name(struct reader *r, const struct field *f,
					  struct json_object *value)
{
	const struct field_name *n;
	const char *text;

	if (!json_object_is_type(value, json_type_string)) {
		wrong_type(r, f->name, value, "a string");
		return NULL;
	}
	text = json_object_get_string(value);
	for (n = f->names; n->name; n++) {
		if (f->flags & FIELD_ANY_CASE ? !strcasecmp(text, n->name)
					      : !strcmp(text, n->name))
			break;
	}
	if (!n->name) {
		unknown_name(r, f, text);
		return NULL;
	}
	if (n->refused) {
		not_supported(r, f, n->name);
		return NULL;
	}
	return n;
}

static int read_number(struct reader *r, const struct field *f, struct json_object *value,
		       void *out)
{
	uint64_t number;
	uint32_t small;

	if (!json_object_is_type(value, json_type_int))
		return wrong_type(r, f->name, value, f->type);
	number = json_object_get_uint64(value);
	if (json_object_get_int64(value) < 0 || number > f->max)
		return out_of_range(r, f->name, value, f->type);
	small = (uint32_t)number;
	memcpy(out, f->kind == FIELD_U32 ? (void *)&small : (void *)&number, f->size);
	return 0;
}

static int read_bool(struct reader *r, const struct field *f, struct json_object *value,
		     void *out)
{
	if (!json_object_is_type(value, json_type_boolean))
		return wrong_type(r, f->name, value, "a boolean");
	*(bool *)out = json_object_get_boolean(value);
	return 0;
}

static int read_string(struct reader *r, const struct field *f, struct json_object *value,
		       void *out)
{
	struct field_error *err;
	size_t len;

	if (!json_object_is_type(value, json_type_string))
		return wrong_type(r, f->name, value, "a string");
	len = (size_t)json_object_get_string_len(value);
	if (len >= f->size) {
		err = blame(r, FIELD_FAULT_RANGE, f->name);
		append(err, "invalid length %zu, expected a string of at most %zu bytes", len,
		       f->size - 1);
		return name_field(err);
	}
	memcpy(out, json_object_get_string(value), len);
	((char *)out)[len] = '\0';
	return 0;
}

static int read_name(struct reader *r, const struct field *f, struct json_object *value,
		     void *out)
{
	const struct field_name *n = find_name(r, f, value);

	if (!n)
		return -EINVAL;
	if (out)
		memcpy(out, &n->value, f->size);
	return 0;
}

int fields_parse_mac(const char *text, uint8_t mac[6])
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *high, *low;
	int i;

	if (strlen(text) != 17)
		return -EINVAL;
	for (i = 0; i < 6; i++, text += 3) {
		high = strchr(digits, text[0]);
		low = strchr(digits, text[1]);
		if (!high || !low || text[2] != (i < 5 ? ':' : '\0'))
			return -EINVAL;
		mac[i] = (uint8_t)(((high - digits) & 15) << 4 | ((low - digits) & 15));
	}
	return 0;
}

static int read_mac(struct reader *r, const struct field *f, struct json_object *value, void *out)
{
	struct field_error *err;

	if (!json_object_is_type(value, json_type_string))
		return wrong_type(r, f->name, value, "a string");
	if (fields_parse_mac(json_object_get_string(value), out) < 0) {
		err = blame(r, FIELD_FAULT_RANGE, f->name);
		append(err, "The provided MAC address is invalid.");
		return name_field(err);
	}
	return 0;
}

static int read_cpus(struct reader *r, const struct field *f, struct json_object *value, void *out)
{
	struct json_object *cpu;
	struct field_error *err;
	size_t i, count;

	if (!json_object_is_type(value, json_type_array))
		return wrong_type(r, f->name, value, "a sequence");
	count = json_object_array_length(value);
	if (count == 0) {
		err = blame(r, FIELD_FAULT_RANGE, f->name);
		append(err, "invalid length 0, expected one CPU at least");
		return name_field(err);
	}
	CPU_ZERO((cpu_set_t *)out);
	for (i = 0; i < count; i++) {
		cpu = json_object_array_get_idx(value, i);
		if (!json_object_is_type(cpu, json_type_int))
			return wrong_type(r, f->name, cpu, "the number of a CPU");
		if (json_object_get_int64(cpu) < 0 ||
		    json_object_get_uint64(cpu) >= LIMIT_HOST_CPUS)
			return out_of_range(r, f->name, cpu, "the number of a CPU");
		CPU_SET(json_object_get_uint64(cpu), (cpu_set_t *)out);
	}
	return 0;
}

static int read_object(struct reader *r, const struct field_table *t, struct json_object *value,
		       enum fields_mode mode, char *out, uint64_t *ret_given);

/* Reads a part of the object with the path of names made longer meanwhile. */
static int read_part(struct reader *r, const struct field *f, struct json_object *value, void *out)
{
	size_t used = strlen(r->path);
	uint64_t given;
	int ret;

	snprintf(r->path + used, sizeof(r->path) - used, "%s%s", used ? "." : "", f->name);
	ret = read_object(r, f->table, value, FIELDS_WHOLE, out, &given);
	r->path[used] = '\0';
	return ret;
}

static int read_array(struct reader *r, const struct field *f, struct json_object *value,
		      char *base)
{
	struct field_error *err;
	size_t i, count;
	uint32_t stored;
	int ret = 0;

	if (!json_object_is_type(value, json_type_array))
		return wrong_type(r, f->name, value, "a sequence");
	count = json_object_array_length(value);
	if (count > f->capacity) {
		err = blame(r, FIELD_FAULT_RANGE, f->name);
		append(err, "invalid length %zu, expected at most %zu elements", count,
		       f->capacity);
		return name_field(err);
	}
	for (i = 0; ret == 0 && i < count; i++)
		ret = read_part(r, f, json_object_array_get_idx(value, i),
				base + f->offset + i * f->size);
	stored = (uint32_t)count;
	memcpy(base + f->count_offset, &stored, sizeof(stored));
	return ret;
}

static int read_refused(struct reader *r, const struct field *f, struct json_object *value)
{
	if (json_object_is_type(value, json_type_array) && json_object_array_length(value) == 0)
		return 0;
	return not_supported(r, f, NULL);
}

static int read_value(struct reader *r, const struct field *f, struct json_object *value,
		      char *base)
{
	switch (f->kind) {
	case FIELD_BOOL:
		return read_bool(r, f, value, base + f->offset);
	case FIELD_U32:
	case FIELD_U64:
		return read_number(r, f, value, base + f->offset);
	case FIELD_STRING:
		return read_string(r, f, value, base + f->offset);
	case FIELD_ENUM:
		return read_name(r, f, value, base + f->offset);
	case FIELD_CPUS:
		return read_cpus(r, f, value, base + f->offset);
	case FIELD_MAC:
		return read_mac(r, f, value, base + f->offset);
	case FIELD_OBJECT:
		return read_part(r, f, value, base + f->offset);
	case FIELD_ARRAY:
		return read_array(r, f, value, base);
	case FIELD_WORD:
		return read_name(r, f, value, NULL);
	case FIELD_REFUSED:
		return read_refused(r, f, value);
	}
	return -EINVAL;
}

static size_t find_field(const struct field_table *t, const char *key)
{
	size_t i = 0;

	while (i < t->count && strcmp(t->fields[i].name, key) != 0)
		i++;
	return i;
}

/* One member of an object: its value goes to its place, or an error comes out. */
static int read_member(struct reader *r, const struct field_table *t, enum fields_mode mode,
		       const char *key, struct json_object *value, char *out, uint64_t *given)
{
	size_t i = find_field(t, key);
	const struct field *f = &t->fields[i];
	int ret;

	if (i == t->count)
		return t->open ? 0 : unknown_field(r, t, key);
	if (!value && (mode == FIELDS_PARTIAL || !(f->flags & FIELD_REQUIRED)))
		return 0;
	ret = read_value(r, f, value, out);
	if (ret < 0)
		return ret;
	if (f->has)
		*(bool *)(out + f->has - 1) = true;
	*given |= UINT64_C(1) << i;
	return 0;
}

static int read_object(struct reader *r, const struct field_table *t, struct json_object *value,
		       enum fields_mode mode, char *out, uint64_t *ret_given)
{
	uint64_t given = 0;
	size_t i;
	int ret;

	if (!json_object_is_type(value, json_type_object))
		return wrong_type(r, "", value, t->name);
	if (mode == FIELDS_WHOLE && t->defaults)
		memcpy(out, t->defaults, t->size);
	else if (mode == FIELDS_WHOLE)
		memset(out, 0, t->size);
	json_object_object_foreach(value, key, member) {
		ret = read_member(r, t, mode, key, member, out, &given);
		if (ret < 0)
			return ret;
	}
	for (i = 0; mode == FIELDS_WHOLE && i < t->count; i++) {
		if (t->fields[i].flags & FIELD_REQUIRED && !(given >> i & 1))
			return missing_field(r, t->fields[i].name);
	}
	*ret_given = given;
	return 0;
}

int fields_read(const struct field_table *table, struct json_object *value,
		const struct json_place *end, enum fields_mode mode, void *out,
		uint64_t *ret_given, struct field_error *err)
{
	struct reader r = { .err = err, .end = end };
	uint64_t given;
	int ret;

	memset(err, 0, sizeof(*err));
	ret = read_object(&r, table, value, mode, out, &given);
	if (ret == 0 && ret_given)
		*ret_given = given;
	return ret;
}

/* A fault of the text itself, in the terms of a field error. */
static void take_fault(struct field_error *err, const struct json_fault *fault)
{
	static const enum field_fault kinds[] = {
		[JSON_FAULT_SYNTAX] = FIELD_FAULT_SYNTAX,
		[JSON_FAULT_LIMIT] = FIELD_FAULT_SYNTAX,
		[JSON_FAULT_DUPLICATE] = FIELD_FAULT_DUPLICATE,
		[JSON_FAULT_MEMORY] = FIELD_FAULT_MEMORY,
	};

	memset(err, 0, sizeof(*err));
	err->fault = kinds[fault->kind];
	snprintf(err->field, sizeof(err->field), "%s", fault->key);
	snprintf(err->text, sizeof(err->text), "%s", fault->text);
}

int fields_read_text(const struct field_table *table, const char *bytes, size_t len,
		     const struct json_limits *limits, enum fields_mode mode, void *out,
		     uint64_t *ret_given, struct field_error *err)
{
	struct json_object *value = NULL;
	struct json_fault fault;
	struct json_place end;
	int ret = json_doc_parse(bytes, len, limits, &value, &end, &fault);

	if (ret < 0) {
		take_fault(err, &fault);
		return ret;
	}
	ret = fields_read(table, value, &end, mode, out, ret_given, err);
	json_object_put(value);
	return ret;
}
