/*
 * ACPI machine language. Threads: any. Locks: none.
 */
#include "arch-x86/aml.h"

#include <string.h>

#include "vmm/base/bits.h"

enum aml_op {
	AML_NAME = 0x08,
	AML_BYTE = 0x0A,
	AML_WORD = 0x0B,
	AML_DWORD = 0x0C,
	AML_STRING = 0x0D,
	AML_QWORD = 0x0E,
	AML_SCOPE = 0x10,
	AML_BUFFER = 0x11,
	AML_PACKAGE = 0x12,
	AML_EXTENDED = 0x5B,
	AML_EXT_DEVICE = 0x82,
};

/* Resource descriptors (ACPI 6.x, 6.4) */
enum { RES_IO = 0x47, RES_END = 0x79, RES_MEMORY32_FIXED = 0x86, RES_INTERRUPT = 0x89 };
#define RES_IO_DECODE_16 0x01
#define RES_MEMORY_WRITABLE 0x01
#define RES_INTERRUPT_CONSUMER 0x01
#define RES_INTERRUPT_EDGE 0x02

static void put(struct buf *b, const void *bytes, size_t n)
{
	(void)buf_append(b, bytes, n); /* remembered by the buffer */
}

static void put_byte(struct buf *b, uint8_t byte)
{
	put(b, &byte, 1);
}

/* The length of a block stands before it and counts itself: 1, 2 or 3 bytes. */
void aml_end(struct buf *b, size_t begin)
{
	uint8_t head[3];
	size_t len, n;

	if (buf_failed(b))
		return;
	len = b->len - begin;
	n = len + 1 <= 0x3F ? 1 : len + 2 <= 0xFFF ? 2 : 3;
	len += n;
	head[0] = n == 1 ? (uint8_t)len : (uint8_t)((n - 1) << 6 | (len & 0xF));
	head[1] = (uint8_t)(len >> 4);
	head[2] = (uint8_t)(len >> 12);
	put(b, head, n);
	if (buf_failed(b))
		return;
	memmove(b->data + begin + n, b->data + begin, b->len - begin - n);
	memcpy(b->data + begin, head, n);
}

size_t aml_scope(struct buf *b, const char *name)
{
	size_t begin;

	put_byte(b, AML_SCOPE);
	begin = b->len;
	put(b, name, strlen(name));
	return begin;
}

size_t aml_device(struct buf *b, const char *name)
{
	size_t begin;

	put_byte(b, AML_EXTENDED);
	put_byte(b, AML_EXT_DEVICE);
	begin = b->len;
	put(b, name, strlen(name));
	return begin;
}

static void put_integer(struct buf *b, uint64_t value)
{
	uint8_t bytes[9];
	size_t n;

	if (value <= 1) {
		put_byte(b, (uint8_t)value); /* ZeroOp, OneOp */
		return;
	}
	store_le64(bytes + 1, value);
	if (value <= UINT8_MAX) {
		bytes[0] = AML_BYTE;
		n = 1;
	} else if (value <= UINT16_MAX) {
		bytes[0] = AML_WORD;
		n = 2;
	} else if (value <= UINT32_MAX) {
		bytes[0] = AML_DWORD;
		n = 4;
	} else {
		bytes[0] = AML_QWORD;
		n = 8;
	}
	put(b, bytes, n + 1);
}

static void put_name(struct buf *b, const char *name)
{
	put_byte(b, AML_NAME);
	put(b, name, strlen(name));
}

void aml_name_integer(struct buf *b, const char *name, uint64_t value)
{
	put_name(b, name);
	put_integer(b, value);
}

void aml_name_string(struct buf *b, const char *name, const char *text)
{
	put_name(b, name);
	put_byte(b, AML_STRING);
	put(b, text, strlen(text) + 1);
}

static uint32_t hex_digit(char c)
{
	return c <= '9' ? (uint32_t)(c - '0') : (uint32_t)(c - 'A') + 10;
}

/* Three letters of five bits each and four hexadecimal digits, high byte first. */
static uint32_t eisa_id(const char *id)
{
	uint32_t letters = (uint32_t)(id[0] & 0x1F) << 10 | (uint32_t)(id[1] & 0x1F) << 5 |
			   (uint32_t)(id[2] & 0x1F);
	uint32_t digits = hex_digit(id[3]) << 12 | hex_digit(id[4]) << 8 | hex_digit(id[5]) << 4 |
			  hex_digit(id[6]);

	return __builtin_bswap32(letters << 16 | digits);
}

void aml_name_eisa_id(struct buf *b, const char *name, const char *id)
{
	aml_name_integer(b, name, eisa_id(id));
}

void aml_name_package(struct buf *b, const char *name, const uint64_t *values, uint8_t count)
{
	size_t begin;
	uint8_t i;

	put_name(b, name);
	put_byte(b, AML_PACKAGE);
	begin = b->len;
	put_byte(b, count);
	for (i = 0; i < count; i++)
		put_integer(b, values[i]);
	aml_end(b, begin);
}

static void put_resource(struct aml_resources *r, const uint8_t *bytes, size_t n)
{
	if (n > sizeof(r->bytes) - r->len) {
		r->failed = 1;
		return;
	}
	memcpy(r->bytes + r->len, bytes, n);
	r->len += n;
}

void aml_resource_ports(struct aml_resources *r, uint16_t port, uint8_t count)
{
	uint8_t d[8] = { RES_IO, RES_IO_DECODE_16, 0, 0, 0, 0, 1, count };

	store_le16(d + 2, port); /* lowest and highest base */
	store_le16(d + 4, port);
	put_resource(r, d, sizeof(d));
}

void aml_resource_memory(struct aml_resources *r, uint32_t base, uint32_t size)
{
	uint8_t d[12] = { RES_MEMORY32_FIXED, sizeof(d) - 3, 0, RES_MEMORY_WRITABLE };

	store_le32(d + 4, base);
	store_le32(d + 8, size);
	put_resource(r, d, sizeof(d));
}

void aml_resource_interrupt(struct aml_resources *r, uint32_t gsi)
{
	uint8_t d[9] = { RES_INTERRUPT, sizeof(d) - 3, 0,
			 RES_INTERRUPT_CONSUMER | RES_INTERRUPT_EDGE, 1 };

	store_le32(d + 5, gsi);
	put_resource(r, d, sizeof(d));
}

void aml_name_resources(struct buf *b, struct aml_resources *r)
{
	/* a checksum of 0 is not looked at */
	static const uint8_t end[] = { RES_END, 0 };
	size_t begin;

	put_resource(r, end, sizeof(end));
	if (r->failed) {
		b->failed = true;
		return;
	}
	put_name(b, "_CRS");
	put_byte(b, AML_BUFFER);
	begin = b->len;
	put_integer(b, r->len);
	put(b, r->bytes, r->len);
	aml_end(b, begin);
}
