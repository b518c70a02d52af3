/*
 * JSON objects to typed structs and back, by tables of fields.
 *
 * A table lists the members that an object may have: name, kind, where the
 * value goes, its range. Reading tells apart an unknown key, a missing key, a
 * wrong type and a value out of range, and names the field; the same table
 * prints the struct. A `null` for a field that is not required counts as absent.
 *
 * Threads: main. Locks: none. Not here: relations between fields
 * (vmm/config.c), which resource has which fields (schema).
 */
#ifndef LULL_API_FIELDS_H
#define LULL_API_FIELDS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/json_scan.h"
#include "vmm/base/buf.h"

struct json_object;

enum field_kind {
	FIELD_BOOL,
	FIELD_U32,
	FIELD_U64,
	FIELD_STRING,   /* char array; its size is the cap */
	FIELD_ENUM,     /* by a table of names */
	FIELD_CPUS,     /* a list of CPUs of the host, not empty, into a cpu_set_t */
	FIELD_MAC,      /* "06:00:ac:10:00:02" into six bytes */
	FIELD_OBJECT,   /* a struct with a table of its own */
	FIELD_ARRAY,    /* an array of such structs and its count */
	FIELD_WORD,     /* a string of known values that is checked and not kept */
	FIELD_REFUSED,  /* known, but not supported: only null (or an empty list) is taken */
};

/* flags */
#define FIELD_REQUIRED 1u  /* must be there and not null */
#define FIELD_NULL 2u      /* printed as null when absent (else left out) */
#define FIELD_SILENT 4u    /* never printed */
#define FIELD_ANY_CASE 8u  /* names compare without case */
#define FIELD_ZERO_NONE 16u /* a number of 0 means absent */
#define FIELD_LIST 32u     /* printed as [] when absent */

struct field_name {
	const char *name; /* NULL ends the table */
	int value;
	bool refused; /* a value of the wire contract that this version cannot give */
};

struct field_table;

struct field {
	const char *name;
	enum field_kind kind;
	unsigned flags;
	size_t offset;
	size_t size;       /* of the member; of one element for FIELD_ARRAY */
	uint64_t max;      /* largest number */
	const char *type;  /* how a number's type is called in messages: "u8" */
	const struct field_name *names;
	const struct field_table *table; /* of FIELD_OBJECT and FIELD_ARRAY */
	size_t has;          /* 1 + offset of a bool that says "was given"; 0: none */
	size_t count_offset; /* FIELD_ARRAY: of a uint32_t */
	size_t capacity;     /* FIELD_ARRAY: elements */
};

struct field_table {
	const char *name; /* what messages call the object: "struct MachineConfig" */
	size_t size;      /* of the struct */
	const struct field *fields;
	size_t count;
	const void *defaults; /* a struct to start from; NULL: zeros */
	bool open;            /* unknown keys are passed over */
};

enum field_fault {
	FIELD_FAULT_SYNTAX, /* no JSON, or over a limit */
	FIELD_FAULT_DUPLICATE,
	FIELD_FAULT_UNKNOWN,
	FIELD_FAULT_MISSING,
	FIELD_FAULT_TYPE,
	FIELD_FAULT_RANGE,
	FIELD_FAULT_REFUSED, /* known, not supported by this version */
	FIELD_FAULT_MEMORY,
};

struct field_error {
	enum field_fault fault;
	char field[200]; /* dotted path: "rate_limiter.ops.size"; "" for the body itself */
	char text[512];
};

enum fields_mode {
	FIELDS_WHOLE,   /* starts from the defaults; required fields must be there */
	FIELDS_PARTIAL, /* changes what is given in `out` */
};

/*
 * Reads a JSON body into `out`, a struct of `table->size` bytes. *ret_given
 * (may be NULL) gets bit i for field i that was given and not null. 0 or
 * -EINVAL, -EEXIST, -E2BIG, -ENOMEM with `err` filled; then `out` is undefined.
 */
int fields_read_text(const struct field_table *table, const char *bytes, size_t len,
		     const struct json_limits *limits, enum fields_mode mode, void *out,
		     uint64_t *ret_given, struct field_error *err);

/* As fields_read_text() for a value that was parsed; `end` says where it ended, or NULL. */
int fields_read(const struct field_table *table, struct json_object *value,
		const struct json_place *end, enum fields_mode mode, void *out,
		uint64_t *ret_given, struct field_error *err);

/* Appends the struct as a JSON object; the caller checks buf_failed(). */
void fields_print(const struct field_table *table, const void *in, struct buf *out);

/* Appends a set as a JSON list; NULL as null. */
void fields_print_cpus(const cpu_set_t *cpus, struct buf *out);

/* Six bytes from "aa:bb:cc:dd:ee:ff"; -EINVAL. */
int fields_parse_mac(const char *text, uint8_t mac[6]);

/* The kind that goes with the C type of a member; any other type does not compile. */
#define FIELD_MEMBER(type, member) (((type *)0)->member)
#define FIELD_KIND_BOOL(type, member) _Generic(FIELD_MEMBER(type, member), bool: FIELD_BOOL)
#define FIELD_KIND_U32(type, member) _Generic(FIELD_MEMBER(type, member), uint32_t: FIELD_U32)
#define FIELD_KIND_U64(type, member) _Generic(FIELD_MEMBER(type, member), uint64_t: FIELD_U64)
#define FIELD_KIND_STRING(type, member)                                       \
	_Generic(&FIELD_MEMBER(type, member),                                 \
		 char (*)[sizeof(FIELD_MEMBER(type, member))]: FIELD_STRING)
#define FIELD_KIND_MAC(type, member) \
	_Generic(&FIELD_MEMBER(type, member), uint8_t (*)[6]: FIELD_MAC)
#define FIELD_KIND_CPUS(type, member) _Generic(FIELD_MEMBER(type, member), cpu_set_t: FIELD_CPUS)
#define FIELD_KIND_OF(type, member, want, kind) _Generic(FIELD_MEMBER(type, member), want: kind)

#define FIELD_COMMON(key, member_kind, struct_type, member)                       \
	.name = key, .kind = member_kind, .offset = offsetof(struct_type, member), \
	.size = sizeof(FIELD_MEMBER(struct_type, member))

#define F_BOOL(key, struct_type, member, ...) \
	{ FIELD_COMMON(key, FIELD_KIND_BOOL(struct_type, member), struct_type, member), \
	  __VA_ARGS__ }
/* numbers from 0 to `largest`, called `type_name` in messages */
#define F_U32(key, struct_type, member, largest, type_name, ...)                        \
	{ FIELD_COMMON(key, FIELD_KIND_U32(struct_type, member), struct_type, member),  \
	  .max = largest, .type = type_name, __VA_ARGS__ }
#define F_U64(key, struct_type, member, type_name, ...)                                 \
	{ FIELD_COMMON(key, FIELD_KIND_U64(struct_type, member), struct_type, member),  \
	  .max = UINT64_MAX, .type = type_name, __VA_ARGS__ }
#define F_STRING(key, struct_type, member, ...)                                           \
	{ FIELD_COMMON(key, FIELD_KIND_STRING(struct_type, member), struct_type, member), \
	  __VA_ARGS__ }
#define F_MAC(key, struct_type, member, ...)                                            \
	{ FIELD_COMMON(key, FIELD_KIND_MAC(struct_type, member), struct_type, member),  \
	  __VA_ARGS__ }
#define F_CPUS(key, struct_type, member, ...)                                           \
	{ FIELD_COMMON(key, FIELD_KIND_CPUS(struct_type, member), struct_type, member), \
	  __VA_ARGS__ }
#define F_ENUM(key, struct_type, member, enum_type, name_table, ...)                       \
	{ FIELD_COMMON(key, FIELD_KIND_OF(struct_type, member, enum_type, FIELD_ENUM),     \
		       struct_type, member), .names = name_table, __VA_ARGS__ }
#define F_OBJECT(key, struct_type, member, member_type, member_table, ...)                 \
	{ FIELD_COMMON(key, FIELD_KIND_OF(struct_type, member, member_type, FIELD_OBJECT), \
		       struct_type, member), .table = &(member_table), __VA_ARGS__ }
#define F_ARRAY(key, struct_type, member, count_member, member_type, member_table, ...)      \
	{ .name = key,                                                                       \
	  .kind = _Generic(FIELD_MEMBER(struct_type, member[0]), member_type: FIELD_ARRAY),  \
	  .offset = offsetof(struct_type, member),                                           \
	  .size = sizeof(FIELD_MEMBER(struct_type, member[0])),                              \
	  .count_offset = _Generic(FIELD_MEMBER(struct_type, count_member),                  \
				   uint32_t: offsetof(struct_type, count_member)),           \
	  .capacity = sizeof(FIELD_MEMBER(struct_type, member)) /                            \
		      sizeof(FIELD_MEMBER(struct_type, member[0])),                          \
	  .table = &(member_table), __VA_ARGS__ }
#define F_WORD(key, name_table) \
	{ .name = key, .kind = FIELD_WORD, .flags = FIELD_SILENT, .names = name_table }
/* `print`: FIELD_NULL, FIELD_LIST or FIELD_SILENT, how it is shown */
#define F_REFUSED(key, print) { .name = key, .kind = FIELD_REFUSED, .flags = print }
#define F_HAS(struct_type, member)                       \
	.has = _Generic(FIELD_MEMBER(struct_type, member), \
			bool: offsetof(struct_type, member) + 1)

#define FIELD_TABLE(object_name, struct_type, field_array, ...)                    \
	{ .name = object_name, .size = sizeof(struct_type), .fields = field_array, \
	  .count = sizeof(field_array) / sizeof((field_array)[0]), __VA_ARGS__ }

#endif
