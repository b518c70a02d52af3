/*
 * Field tables, the printing side: a struct becomes JSON text.
 * Threads: main. Locks: none. Not here: reading (fields.c).
 */
#include "api/fields.h"

#include <inttypes.h>
#include <string.h>

static uint64_t number_at(const struct field *f, const char *p)
{
	uint32_t small;
	uint64_t number;

	if (f->kind == FIELD_U32) {
		memcpy(&small, p, sizeof(small));
		return small;
	}
	memcpy(&number, p, sizeof(number));
	return number;
}

static bool is_absent(const struct field *f, const char *base)
{
	if (f->has)
		return !*(const bool *)(base + f->has - 1);
	switch (f->kind) {
	case FIELD_STRING:
		return base[f->offset] == '\0' && !(f->flags & FIELD_REQUIRED);
	case FIELD_U32:
	case FIELD_U64:
		return f->flags & FIELD_ZERO_NONE && number_at(f, base + f->offset) == 0;
	case FIELD_WORD:
	case FIELD_REFUSED:
		return true;
	case FIELD_BOOL:
	case FIELD_ENUM:
	case FIELD_CPUS:
	case FIELD_MAC:
	case FIELD_OBJECT:
	case FIELD_ARRAY:
		break;
	}
	return false;
}

static const char *name_of(const struct field *f, const char *p)
{
	const struct field_name *n;
	int value;

	memcpy(&value, p, sizeof(value));
	for (n = f->names; n->name; n++) {
		if (n->value == value)
			return n->name;
	}
	return "";
}

static void print_array(const struct field *f, const char *base, struct buf *out)
{
	uint32_t count, i;

	memcpy(&count, base + f->count_offset, sizeof(count));
	buf_append(out, "[", 1);
	for (i = 0; i < count; i++) {
		if (i > 0)
			buf_append(out, ",", 1);
		fields_print(f->table, base + f->offset + i * f->size, out);
	}
	buf_append(out, "]", 1);
}

void fields_print_cpus(const cpu_set_t *cpus, struct buf *out)
{
	const char *lead = "[";
	unsigned cpu;

	if (!cpus) {
		buf_printf(out, "null");
		return;
	}
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, cpus))
			continue;
		buf_printf(out, "%s%u", lead, cpu);
		lead = ",";
	}
	buf_printf(out, "%s", lead[0] == '[' ? "[]" : "]");
}

static void print_value(const struct field *f, const char *base, struct buf *out)
{
	const char *p = base + f->offset;
	const uint8_t *mac = (const uint8_t *)p;

	switch (f->kind) {
	case FIELD_BOOL:
		buf_printf(out, "%s", *(const bool *)p ? "true" : "false");
		break;
	case FIELD_U32:
	case FIELD_U64:
		buf_printf(out, "%" PRIu64, number_at(f, p));
		break;
	case FIELD_STRING:
		buf_append_json_string(out, p);
		break;
	case FIELD_ENUM:
		buf_append_json_string(out, name_of(f, p));
		break;
	case FIELD_CPUS:
		fields_print_cpus((const cpu_set_t *)p, out);
		break;
	case FIELD_MAC:
		buf_printf(out, "\"%02x:%02x:%02x:%02x:%02x:%02x\"", mac[0], mac[1], mac[2],
			   mac[3], mac[4], mac[5]);
		break;
	case FIELD_OBJECT:
		fields_print(f->table, p, out);
		break;
	case FIELD_ARRAY:
		print_array(f, base, out);
		break;
	case FIELD_WORD:
	case FIELD_REFUSED:
		break;
	}
}

void fields_print(const struct field_table *table, const void *in, struct buf *out)
{
	const char *base = in;
	const char *lead = "{";
	const struct field *f;
	bool absent;

	for (f = table->fields; f < table->fields + table->count; f++) {
		absent = is_absent(f, base);
		if (f->flags & FIELD_SILENT || (absent && !(f->flags & (FIELD_NULL | FIELD_LIST))))
			continue;
		buf_printf(out, "%s\"%s\":", lead, f->name);
		lead = ",";
		if (!absent)
			print_value(f, base, out);
		else
			buf_printf(out, "%s", f->flags & FIELD_LIST ? "[]" : "null");
	}
	buf_printf(out, "%s", lead[0] == '{' ? "{}" : "}");
}
