/*
 * A small bzImage that loads, for tests to break: set-up code of one sector
 * beyond the first, and 4 KiB of code.
 */
#ifndef LULL_TESTS_BZ_IMAGE_H
#define LULL_TESTS_BZ_IMAGE_H

#include <asm/bootparam.h>

#include "tests/arch-x86/arch_test.h"

#define BZ_SETUP_BYTES 1024u
#define BZ_CODE_BYTES 4096u
#define BZ_PREFERRED 0x1000000ull
#define BZ_INIT_BYTES 0x200000u

struct bz_image {
	uint8_t bytes[BZ_SETUP_BYTES + BZ_CODE_BYTES + 4096];
	size_t len;    /* of the bytes that are used */
	uint64_t size; /* of the file */
};

static inline struct setup_header *bz_header(struct bz_image *b)
{
	return (struct setup_header *)(b->bytes + 0x1F1);
}

static inline void bz_image_init(struct bz_image *b)
{
	struct setup_header *h = bz_header(b);

	memset(b, 0, sizeof(*b));
	memset(b->bytes + BZ_SETUP_BYTES, 0xC0, BZ_CODE_BYTES);
	h->setup_sects = 1;
	h->syssize = BZ_CODE_BYTES / 16;
	h->boot_flag = 0xAA55;
	h->jump = 0xEB | 0x6A << 8; /* to 0x26C, where the header ends */
	h->header = 0x53726448;
	h->version = 0x20F;
	h->loadflags = LOADED_HIGH;
	h->initrd_addr_max = 0x7FFFFFFF;
	h->kernel_alignment = 0x200000;
	h->relocatable_kernel = 1;
	h->min_alignment = 21;
	h->xloadflags = XLF_KERNEL_64;
	h->cmdline_size = 2047;
	h->payload_offset = 0x300;
	h->payload_length = 0x400;
	h->pref_address = BZ_PREFERRED;
	h->init_size = BZ_INIT_BYTES;
	b->len = BZ_SETUP_BYTES + BZ_CODE_BYTES;
	b->size = b->len;
}

static inline int bz_image_file(const struct bz_image *b)
{
	return test_file(b->bytes, b->len < b->size ? b->len : b->size, b->size);
}

#endif
