/*
 * A small writer of ACPI machine language (ACPI specification 6.x, chapter
 * 20): what a table of devices needs, and no more. Everything is appended to a
 * buffer; a failed append shows in buf_failed() at the end.
 *
 * Threads: any, one buffer each.
 */
#ifndef LULL_ARCH_X86_AML_H
#define LULL_ARCH_X86_AML_H

#include <stddef.h>
#include <stdint.h>

#include "vmm/base/buf.h"

/* A block begins, and ends at aml_end() with the value that was returned. */
size_t aml_scope(struct buf *b, const char *name);
size_t aml_device(struct buf *b, const char *name);
void aml_end(struct buf *b, size_t begin);

/*
 * Named values. A name has four characters, after a backslash if it is to be
 * found from the root.
 */
void aml_name_integer(struct buf *b, const char *name, uint64_t value);
void aml_name_string(struct buf *b, const char *name, const char *text);
/* `id` is of the form "PNP0501". */
void aml_name_eisa_id(struct buf *b, const char *name, const char *id);
/* A package of integers. */
void aml_name_package(struct buf *b, const char *name, const uint64_t *values, uint8_t count);

/* Resources of a device, collected before they are named. */
struct aml_resources {
	uint8_t bytes[96];
	size_t len;
	int failed; /* something did not fit */
};

void aml_resource_ports(struct aml_resources *r, uint16_t port, uint8_t count);
void aml_resource_memory(struct aml_resources *r, uint32_t base, uint32_t size);
/* An edge-triggered, active-high line that is not shared. */
void aml_resource_interrupt(struct aml_resources *r, uint32_t gsi);
/* Names them _CRS. */
void aml_name_resources(struct buf *b, struct aml_resources *r);

#endif
