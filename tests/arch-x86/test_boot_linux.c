/*
 * bzImages that are fine, broken and hostile, and the zero page.
 */
#include "tests/arch-x86/bz_image.h"
#include "tests/arch-x86/elf_image.h"

#include "arch-x86/boot.h"
#include "arch-x86/boot_linux.h"
#include "arch-x86/layout.h"

#define RAM (64 * MIB)
#define RSDP 0xE0000

static struct guest_mem mem;

/* Boots it; `initrd_size` 0 for none. */
static int boot(const struct bz_image *b, const char *cmdline, uint64_t initrd_size,
		struct boot_start *ret, struct error *err)
{
	struct boot_input in = {
		.mem = &mem,
		.kernel_fd = bz_image_file(b),
		.initrd_fd = initrd_size ? test_file("initrd", 6, initrd_size) : -EBADF,
		.cmdline = cmdline,
		.rsdp = RSDP,
	};
	int code = boot_kernel(&in, ret, err);

	close(in.kernel_fd);
	if (in.initrd_fd >= 0)
		close(in.initrd_fd);
	return code;
}

static struct boot_params *zero_page(void)
{
	static struct boot_params p;

	assert_int_equal(guest_mem_copy_in(&mem, LAYOUT_ZERO_PAGE, &p, sizeof(p)), 0);
	return &p;
}

/* Broken files: what is changed in a good one, and what is said of it. */

struct bz_case {
	const char *name;
	void (*change)(struct bz_image *b, struct setup_header *h);
	int code;
	const char *text;
};

#define CHANGE(function, ...)                                                \
	static void function(struct bz_image *b, struct setup_header *h)     \
	{                                                                    \
		__VA_ARGS__;                                                 \
	}

CHANGE(is_empty, b->size = 0)
CHANGE(is_one_sector, b->size = 512)
CHANGE(ends_in_its_header, b->size = 0x1F1 + sizeof(*h) - 1)
CHANGE(is_zeroes, memset(b->bytes, 0, sizeof(b->bytes)))
CHANGE(is_text, memset(b->bytes, 'a', sizeof(b->bytes)))
CHANGE(is_noise, for (size_t i = 0; i < sizeof(b->bytes); i++) b->bytes[i] = (uint8_t)(i * 73 + 5))
CHANGE(has_no_boot_flag, h->boot_flag = 0)
CHANGE(has_no_magic, h->header = 0)
CHANGE(is_protocol_2_11, h->version = 0x20B)
CHANGE(is_protocol_0, h->version = 0)
CHANGE(has_a_short_header, h->jump = 0xEB | 0x30 << 8)
CHANGE(has_a_header_of_nothing, h->jump = 0xEB)
CHANGE(has_no_64_bit_entry, h->xloadflags = 0)
CHANGE(is_a_zimage, h->loadflags = 0)
CHANGE(setup_sects_is_255, h->setup_sects = 255)
CHANGE(setup_sects_is_all_there_is, h->setup_sects = (BZ_SETUP_BYTES + BZ_CODE_BYTES) / 512 - 1)
CHANGE(syssize_is_too_large, h->syssize = BZ_CODE_BYTES / 16 + 1)
CHANGE(syssize_is_huge, h->syssize = UINT32_MAX)
CHANGE(syssize_is_0, h->syssize = 0)
CHANGE(code_ends_before_the_entry, h->syssize = 0x200 / 16)
CHANGE(file_ends_in_the_code, b->size -= 17)
CHANGE(payload_is_past_the_end, h->payload_offset = BZ_CODE_BYTES + 1)
CHANGE(payload_is_one_too_long, h->payload_length = BZ_CODE_BYTES - 0x300 + 1)
CHANGE(payload_wraps, h->payload_offset = 16; h->payload_length = UINT32_MAX)
CHANGE(init_size_is_0, h->init_size = 0)
CHANGE(init_size_is_above_ram, h->init_size = RAM - BZ_PREFERRED + 1)
CHANGE(init_size_is_huge, h->init_size = UINT32_MAX)
CHANGE(alignment_is_0, h->kernel_alignment = 0)
CHANGE(alignment_is_odd, h->kernel_alignment = 3)
CHANGE(preferred_is_0, h->pref_address = 0)
CHANGE(preferred_is_low, h->pref_address = 0x10000; h->kernel_alignment = 0x1000)
CHANGE(preferred_is_unaligned, h->pref_address += 0x1000)
CHANGE(preferred_is_past_ram, h->pref_address = RAM)
CHANGE(preferred_is_above_1_gib, h->pref_address = 2 * GIB)
CHANGE(preferred_is_huge, h->pref_address = UINT64_MAX & ~0x1FFFFFull)
CHANGE(unrelocatable_preferred_is_0, h->relocatable_kernel = 0; h->pref_address = 0)
CHANGE(file_is_above_the_limit, b->size = LIMIT_KERNEL_BYTES + 1)

#define BZ_CASE(function, code, text) { #function, function, code, text }

static const struct bz_case bz_cases[] = {
	BZ_CASE(is_empty, -ENODATA, "file is empty"),
	BZ_CASE(is_one_sector, -ENODATA, "too short"),
	BZ_CASE(ends_in_its_header, -ENODATA, "too short"),
	BZ_CASE(is_zeroes, -EINVAL, "neither an ELF file nor a bzImage"),
	BZ_CASE(is_text, -EINVAL, "neither an ELF file nor a bzImage"),
	BZ_CASE(is_noise, -EINVAL, "neither an ELF file nor a bzImage"),
	BZ_CASE(has_no_boot_flag, -EINVAL, "neither an ELF file nor a bzImage"),
	BZ_CASE(has_no_magic, -EINVAL, "neither an ELF file nor a bzImage"),
	BZ_CASE(is_protocol_2_11, -ENOTSUP, "boot protocol 2.11, need 2.12"),
	BZ_CASE(is_protocol_0, -ENOTSUP, "boot protocol 0.00"),
	BZ_CASE(has_a_short_header, -EINVAL, "shorter than its protocol"),
	BZ_CASE(has_a_header_of_nothing, -EINVAL, "shorter than its protocol"),
	BZ_CASE(has_no_64_bit_entry, -ENOTSUP, "no 64-bit entry"),
	BZ_CASE(is_a_zimage, -ENOTSUP, "zImage"),
	BZ_CASE(setup_sects_is_255, -ENODATA, "truncated"),
	BZ_CASE(setup_sects_is_all_there_is, -ENODATA, "truncated"),
	BZ_CASE(syssize_is_too_large, -ENODATA, "its header says 4112"),
	BZ_CASE(syssize_is_huge, -ENODATA, "truncated"),
	BZ_CASE(syssize_is_0, -EINVAL, "0 bytes of code"),
	BZ_CASE(code_ends_before_the_entry, -EINVAL, "512 bytes of code"),
	BZ_CASE(file_ends_in_the_code, -ENODATA, "truncated"),
	BZ_CASE(payload_is_past_the_end, -EINVAL, "payload"),
	BZ_CASE(payload_is_one_too_long, -EINVAL, "payload"),
	BZ_CASE(payload_wraps, -EINVAL, "payload"),
	BZ_CASE(init_size_is_0, -EINVAL, "init_size of 0"),
	BZ_CASE(init_size_is_above_ram, -EFAULT, "needs guest memory from 0x1000000"),
	BZ_CASE(init_size_is_huge, -EFAULT, "needs guest memory"),
	BZ_CASE(alignment_is_0, -EINVAL, "alignment of 0x0"),
	BZ_CASE(alignment_is_odd, -EINVAL, "alignment of 0x3"),
	BZ_CASE(preferred_is_0, -EINVAL, "preferred address of 0x0"),
	BZ_CASE(preferred_is_low, -EINVAL, "preferred address of 0x10000"),
	BZ_CASE(preferred_is_unaligned, -EINVAL, "preferred address"),
	BZ_CASE(preferred_is_past_ram, -EFAULT, "needs guest memory from 0x4000000"),
	BZ_CASE(preferred_is_above_1_gib, -EINVAL, "preferred address"),
	BZ_CASE(preferred_is_huge, -EINVAL, "preferred address"),
	BZ_CASE(unrelocatable_preferred_is_0, -EINVAL, "preferred address"),
	BZ_CASE(file_is_above_the_limit, -EFBIG, "too large"),
};

static void broken_bzimage_is_refused(void **state)
{
	const struct bz_case *c = *state;
	struct boot_start start = { .entry = 42 };
	struct error err = { 0 };
	struct bz_image b;

	bz_image_init(&b);
	c->change(&b, bz_header(&b));
	assert_int_equal(boot(&b, "", 0, &start, &err), c->code);
	assert_begins(err.text, KERNEL_ERROR "kernel: ");
	assert_contains(err.text, c->text);
	assert_int_equal(start.entry, 42);
}

static void bzimage_is_loaded_at_its_preferred_address(void **state)
{
	struct boot_start start;
	struct error err;
	struct bz_image b;

	bz_image_init(&b);
	assert_int_equal(boot(&b, "", 0, &start, &err), 0);
	assert_int_equal(start.protocol, BOOT_LINUX64);
	assert_int_equal(start.entry, BZ_PREFERRED + 0x200);
	assert_int_equal(start.info, LAYOUT_ZERO_PAGE);
	assert_int_equal(test_byte(&mem, BZ_PREFERRED), 0xC0);
	assert_int_equal(test_byte(&mem, BZ_PREFERRED + BZ_CODE_BYTES - 1), 0xC0);
}

static void unrelocatable_kernel_is_loaded_at_1_mib(void **state)
{
	struct boot_start start;
	struct error err;
	struct bz_image b;

	bz_image_init(&b);
	bz_header(&b)->relocatable_kernel = 0;
	assert_int_equal(boot(&b, "", 0, &start, &err), 0);
	assert_int_equal(start.entry, LAYOUT_KERNEL + 0x200);
	assert_int_equal(test_byte(&mem, LAYOUT_KERNEL), 0xC0);
}

static void setup_sects_of_0_means_4(void **state)
{
	struct boot_start start;
	struct error err;
	struct bz_image b;

	bz_image_init(&b);
	bz_header(&b)->setup_sects = 0;
	bz_header(&b)->syssize = (BZ_CODE_BYTES - 3 * 512) / 16;
	b.bytes[5 * 512] = 0x42;
	assert_int_equal(boot(&b, "", 0, &start, &err), 0);
	assert_int_equal(test_byte(&mem, BZ_PREFERRED), 0x42);
}

static void init_size_may_reach_the_end_of_ram(void **state)
{
	struct boot_start start;
	struct error err;
	struct bz_image b;

	bz_image_init(&b);
	bz_header(&b)->init_size = RAM - BZ_PREFERRED;
	assert_int_equal(boot(&b, "", 0, &start, &err), 0);
}

static void signature_behind_the_code_is_not_loaded(void **state)
{
	struct boot_start start;
	struct error err;
	struct bz_image b;

	bz_image_init(&b);
	memset(b.bytes + b.len, 0x51, 100);
	b.len += 100;
	b.size = b.len;
	assert_int_equal(boot(&b, "", 0, &start, &err), 0);
	assert_int_equal(test_byte(&mem, BZ_PREFERRED + BZ_CODE_BYTES), 0);
}

static void code_may_be_shorter_than_its_last_unit(void **state)
{
	struct boot_start start;
	struct error err;
	struct bz_image b;

	bz_image_init(&b);
	b.size -= 15;
	assert_int_equal(boot(&b, "", 0, &start, &err), 0);
}

static void zero_page_keeps_the_header(void **state)
{
	struct boot_start start;
	struct error err;
	struct bz_image b;
	struct boot_params *p;

	bz_image_init(&b);
	bz_header(&b)->hardware_subarch = 0x12345678;
	assert_int_equal(boot(&b, "", 0, &start, &err), 0);
	p = zero_page();
	assert_int_equal(p->hdr.hardware_subarch, 0x12345678);
	assert_int_equal(p->hdr.version, 0x20F);
	assert_int_equal(p->hdr.init_size, BZ_INIT_BYTES);
	assert_int_equal(p->hdr.type_of_loader, 0xFF);
	assert_int_equal(p->sentinel, 0);
	assert_int_equal(p->acpi_rsdp_addr, RSDP);
	assert_int_equal(p->hdr.code32_start, BZ_PREFERRED);
}

static void bytes_behind_the_files_header_are_not_taken(void **state)
{
	struct boot_start start;
	struct error err;
	struct bz_image b;

	bz_image_init(&b);
	bz_header(&b)->jump = 0xEB | 0x62 << 8; /* to 0x264: without handover and kernel_info */
	bz_header(&b)->handover_offset = bz_header(&b)->kernel_info_offset = ~0u;
	assert_int_equal(boot(&b, "", 0, &start, &err), 0);
	assert_int_equal(zero_page()->hdr.handover_offset, 0);
	assert_int_equal(zero_page()->hdr.kernel_info_offset, 0);
	assert_int_equal(zero_page()->hdr.init_size, BZ_INIT_BYTES);
}

static void zero_page_has_the_memory_map(void **state)
{
	struct boot_start start;
	struct error err;
	struct bz_image b;
	struct boot_params *p;

	bz_image_init(&b);
	assert_int_equal(boot(&b, "", 0, &start, &err), 0);
	p = zero_page();
	assert_int_equal(p->e820_entries, 3);
	assert_int_equal(p->e820_table[0].size, LAYOUT_EBDA);
	assert_int_equal(p->e820_table[1].type, 2);
	assert_int_equal(p->e820_table[2].addr, 0x100000);
	assert_int_equal(p->e820_table[2].addr + p->e820_table[2].size, RAM);
}

static void command_line_is_where_the_header_says(void **state)
{
	struct boot_start start;
	struct error err;
	struct bz_image b;
	char text[8];

	bz_image_init(&b);
	assert_int_equal(boot(&b, "a=b c", 0, &start, &err), 0);
	assert_int_equal(guest_mem_copy_in(&mem, zero_page()->hdr.cmd_line_ptr, text, 6), 0);
	assert_string_equal(text, "a=b c");
}

static void command_line_longer_than_the_kernel_takes_is_refused(void **state)
{
	struct boot_start start;
	struct error err;
	struct bz_image b;

	bz_image_init(&b);
	bz_header(&b)->cmdline_size = 4;
	assert_int_equal(boot(&b, "abcd", 0, &start, &err), 0);
	assert_int_equal(boot(&b, "abcde", 0, &start, &err), -E2BIG);
	assert_contains(err.text, "boot_args: the command line has 5 characters");
}

static void initrd_is_told_in_the_header(void **state)
{
	struct boot_start start;
	struct error err;
	struct bz_image b;

	bz_image_init(&b);
	assert_int_equal(boot(&b, "", 5000, &start, &err), 0);
	assert_int_equal(zero_page()->hdr.ramdisk_image, RAM - 8192);
	assert_int_equal(zero_page()->hdr.ramdisk_size, 5000);
	assert_int_equal(test_byte(&mem, RAM - 8192), 'i');
}

static void initrd_stays_below_what_the_kernel_reaches(void **state)
{
	struct boot_start start;
	struct error err;
	struct bz_image b;

	bz_image_init(&b);
	bz_header(&b)->initrd_addr_max = 48 * MIB - 1;
	assert_int_equal(boot(&b, "", 4096, &start, &err), 0);
	assert_int_equal(zero_page()->hdr.ramdisk_image, 48 * MIB - 4096);
}

static void initrd_stays_above_the_kernel(void **state)
{
	uint64_t end = BZ_PREFERRED + BZ_INIT_BYTES;
	struct boot_start start;
	struct error err;
	struct bz_image b;

	bz_image_init(&b);
	bz_header(&b)->initrd_addr_max = (uint32_t)end + 8191;
	assert_int_equal(boot(&b, "", 8192, &start, &err), 0);
	assert_int_equal(boot(&b, "", 8193, &start, &err), -EFBIG);
	assert_begins(err.text, "Error with initrd initialization: initrd: ");
}

static void first_gib_is_mapped_to_itself(void **state)
{
	struct boot_start start;
	struct error err;
	struct bz_image b;
	uint64_t i;

	bz_image_init(&b);
	assert_int_equal(boot(&b, "", 0, &start, &err), 0);
	assert_int_equal(test_u64(&mem, LAYOUT_PML4), LAYOUT_PDPT | 3);
	assert_int_equal(test_u64(&mem, LAYOUT_PML4 + 8), 0);
	assert_int_equal(test_u64(&mem, LAYOUT_PDPT), LAYOUT_PD | 3);
	for (i = 0; i < 512; i++)
		assert_int_equal(test_u64(&mem, LAYOUT_PD + i * 8), i * 2 * MIB | 0x83);
}

static void gdt_has_64_bit_code(void **state)
{
	struct boot_start start;
	struct error err;
	struct bz_image b;

	bz_image_init(&b);
	assert_int_equal(boot(&b, "", 0, &start, &err), 0);
	assert_int_equal(test_u64(&mem, LAYOUT_GDT), 0);
	assert_int_equal(test_u64(&mem, LAYOUT_GDT + 0x10), 0x00AF9B000000FFFF);
	assert_int_equal(test_u64(&mem, LAYOUT_GDT + 0x18), 0x00CF93000000FFFF);
	assert_int_equal(test_u64(&mem, LAYOUT_GDT + 0x20), 0x00008B0000000067);
}

static int fresh_memory(void **state)
{
	test_mem_init(&mem, RAM, 0);
	return 0;
}

static int free_memory(void **state)
{
	guest_mem_fini(&mem);
	return 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fresh_memory, free_memory)

static int run_bz_cases(void)
{
	struct CMUnitTest tests[ARRAY_SIZE(bz_cases)];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bz_cases); i++)
		tests[i] = CASE_TEST(broken_bzimage_is_refused, &bz_cases[i]);
	return cmocka_run_group_tests_name("broken bzImages", tests, fresh_memory, free_memory);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(bzimage_is_loaded_at_its_preferred_address),
		TEST(unrelocatable_kernel_is_loaded_at_1_mib),
		TEST(setup_sects_of_0_means_4),
		TEST(init_size_may_reach_the_end_of_ram),
		TEST(signature_behind_the_code_is_not_loaded),
		TEST(code_may_be_shorter_than_its_last_unit),
		TEST(zero_page_keeps_the_header),
		TEST(bytes_behind_the_files_header_are_not_taken),
		TEST(zero_page_has_the_memory_map),
		TEST(command_line_is_where_the_header_says),
		TEST(command_line_longer_than_the_kernel_takes_is_refused),
		TEST(initrd_is_told_in_the_header),
		TEST(initrd_stays_below_what_the_kernel_reaches),
		TEST(initrd_stays_above_the_kernel),
		TEST(first_gib_is_mapped_to_itself),
		TEST(gdt_has_64_bit_code),
	};

	return run_bz_cases() + cmocka_run_group_tests(tests, NULL, NULL);
}
