/*
 * Bytes from a client: the JSON scan, json-c behind it, the field tables.
 *
 * Promises: what the scan takes, json-c takes too; a struct that was read
 * prints as JSON that reads back and prints the same.
 *
 * Input: one byte that chooses the table, then the body.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/fields.h"
#include "api/json_doc.h"
#include "api/schema.h"

#include <json-c/json.h>

#define TEXT_MAX (1u << 22)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct json_limits limits = { LIMIT_JSON_DEPTH, LIMIT_JSON_TOKENS };

static const struct field_table *const tables[] = {
	&machine_table, &boot_source_table, &drive_table,  &drive_patch_table, &net_table,
	&net_patch_table, &entropy_table,   &serial_table, &console_table,     &logger_table,
	&metrics_table, &action_table,      &vm_table,     &vm_v1_table, &config_document_table,
};

static void require(int holds)
{
	if (!holds)
		__builtin_trap();
}

static void check_scan(const char *text, size_t len)
{
	struct json_object *value;
	struct json_fault fault;
	struct json_span span;
	struct json_place end;

	if (json_scan(text, len, &limits, &span, &fault) < 0) {
		require(fault.text[0] != '\0');
		return;
	}
	require(span.start < span.end && span.end <= len);
	require(json_doc_parse(text, len, &limits, &value, &end, &fault) == 0);
	json_object_put(value);
}

static void print(const struct field_table *t, const void *value, struct buf *out)
{
	buf_init(out, TEXT_MAX);
	fields_print(t, value, out);
	require(!buf_failed(out));
}

static void check_fields(const struct field_table *t, const char *text, size_t len)
{
	void *value = calloc(1, t->size);
	struct field_error err;
	struct buf first, second;

	if (!value)
		return;
	if (fields_read_text(t, text, len, &limits, FIELDS_WHOLE, value, NULL, &err) < 0) {
		require(err.text[0] != '\0');
		free(value);
		return;
	}
	print(t, value, &first);
	require(fields_read_text(t, first.data, first.len, &limits, FIELDS_WHOLE, value, NULL,
				 &err) == 0);
	print(t, value, &second);
	require(first.len == second.len && !memcmp(first.data, second.data, first.len));
	buf_fini(&first);
	buf_fini(&second);
	free(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size < 1)
		return 0;
	text = malloc(size); /* of its exact size, so that one byte too far is seen */
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	check_scan(text, size - 1);
	check_fields(tables[data[0] % (sizeof(tables) / sizeof(tables[0]))], text, size - 1);
	free(text);
	return 0;
}
