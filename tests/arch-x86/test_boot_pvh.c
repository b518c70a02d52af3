/*
 * ELF kernels: by PVH where they say so, else by the 64-bit protocol.
 */
#include "tests/arch-x86/elf_image.h"

#include <asm/bootparam.h>

#include "arch-x86/boot.h"
#include "arch-x86/layout.h"

#define RAM (64 * MIB)
#define RSDP 0xE0000

static struct guest_mem mem;

static int boot(const struct elf_image *e, uint64_t initrd_size, struct boot_start *ret,
		struct error *err)
{
	struct boot_input in = {
		.mem = &mem,
		.kernel_fd = elf_image_file(e),
		.initrd_fd = initrd_size ? test_file("initrd", 6, initrd_size) : -EBADF,
		.cmdline = "quiet",
		.rsdp = RSDP,
	};
	int code = boot_kernel(&in, ret, err);

	close(in.kernel_fd);
	if (in.initrd_fd >= 0)
		close(in.initrd_fd);
	return code;
}

static void boot_pvh(uint64_t initrd_size, struct boot_start *ret)
{
	struct elf_image e;
	struct error err;

	elf_image_init(&e);
	elf_image_pvh(&e, ELF_TEXT + 8, 4);
	assert_int_equal(boot(&e, initrd_size, ret, &err), 0);
}

static uint32_t u32(uint64_t gpa)
{
	return (uint32_t)test_u64(&mem, gpa);
}

static void note_chooses_pvh(void **state)
{
	struct boot_start start;

	boot_pvh(0, &start);
	assert_int_equal(start.protocol, BOOT_PVH);
	assert_int_equal(start.entry, ELF_TEXT + 8);
	assert_int_equal(start.info, LAYOUT_PVH_START_INFO);
}

static void start_info_is_version_1(void **state)
{
	struct boot_start start;

	boot_pvh(0, &start);
	assert_int_equal(u32(start.info), 0x336EC578);
	assert_int_equal(u32(start.info + 4), 1);
	assert_int_equal(test_u64(&mem, start.info + 24), LAYOUT_CMDLINE);
	assert_int_equal(test_u64(&mem, start.info + 32), RSDP);
	assert_int_equal(test_byte(&mem, LAYOUT_CMDLINE), 'q');
	assert_int_equal(test_byte(&mem, LAYOUT_CMDLINE + 5), 0);
}

static void start_info_has_the_memory_map(void **state)
{
	struct boot_start start;
	uint64_t map;

	boot_pvh(0, &start);
	map = test_u64(&mem, start.info + 40);
	assert_int_equal(map, LAYOUT_PVH_MEMMAP);
	assert_int_equal(u32(start.info + 48), 3);
	assert_int_equal(test_u64(&mem, map + 8), LAYOUT_EBDA);
	assert_int_equal(u32(map + 24 + 16), 2);
	assert_int_equal(test_u64(&mem, map + 48), 0x100000);
	assert_int_equal(u32(map + 48 + 16), 1);
	assert_int_equal(u32(map + 48 + 20), 0);
}

static void initrd_is_the_only_module(void **state)
{
	struct boot_start start;
	uint64_t modules;

	boot_pvh(5000, &start);
	modules = test_u64(&mem, start.info + 16);
	assert_int_equal(u32(start.info + 12), 1);
	assert_int_equal(test_u64(&mem, modules), RAM - 8192);
	assert_int_equal(test_u64(&mem, modules + 8), 5000);
	assert_int_equal(test_u64(&mem, modules + 16), 0);
}

static void without_an_initrd_there_is_no_module(void **state)
{
	struct boot_start start;

	boot_pvh(0, &start);
	assert_int_equal(u32(start.info + 12), 0);
	assert_int_equal(test_u64(&mem, start.info + 16), 0);
}

static void gdt_has_32_bit_code(void **state)
{
	struct boot_start start;

	boot_pvh(0, &start);
	assert_int_equal(test_u64(&mem, LAYOUT_GDT + 0x10), 0x00CF9B000000FFFF);
}

static void initrd_that_meets_the_kernel_is_refused(void **state)
{
	struct boot_start start;
	struct elf_image e;
	struct error err;

	elf_image_init(&e);
	elf_image_pvh(&e, ELF_TEXT, 4);
	e.data.p_memsz = RAM - ELF_DATA - 4096;
	assert_int_equal(boot(&e, 4096, &start, &err), 0);
	assert_int_equal(boot(&e, 4097, &start, &err), -EFBIG);
	assert_begins(err.text, "Error with initrd initialization: initrd: ");
}

static void without_the_note_it_is_the_64_bit_protocol(void **state)
{
	struct boot_start start;
	struct boot_params p;
	struct elf_image e;
	struct error err;

	elf_image_init(&e);
	assert_int_equal(boot(&e, 4096, &start, &err), 0);
	assert_int_equal(start.protocol, BOOT_LINUX64);
	assert_int_equal(start.entry, ELF_TEXT + 16);
	assert_int_equal(guest_mem_copy_in(&mem, start.info, &p, sizeof(p)), 0);
	assert_int_equal(p.hdr.boot_flag, 0xAA55);
	assert_int_equal(p.hdr.header, 0x53726448);
	assert_int_equal(p.hdr.type_of_loader, 0xFF);
	assert_int_equal(p.hdr.ramdisk_image, RAM - 4096);
	assert_int_equal(p.e820_entries, 3);
}

static void kernel_that_would_overwrite_low_memory_is_refused(void **state)
{
	struct boot_start start;
	struct elf_image e;
	struct error err;

	elf_image_init(&e);
	e.text.p_paddr = LAYOUT_ZERO_PAGE;
	assert_int_equal(boot(&e, 0, &start, &err), -EFAULT);
	assert_begins(err.text, KERNEL_ERROR "kernel: ");
}

static void kernel_above_1_gib_needs_pvh(void **state)
{
	struct boot_start start;
	struct elf_image e;
	struct error err;

	guest_mem_fini(&mem);
	test_mem_init(&mem, 2 * GIB, 0);
	elf_image_init(&e);
	e.data.p_paddr = GIB;
	assert_int_equal(boot(&e, 0, &start, &err), -EFAULT);
	assert_contains(err.text, "above 1 GiB");
	elf_image_pvh(&e, ELF_TEXT, 4);
	assert_int_equal(boot(&e, 0, &start, &err), 0);
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(note_chooses_pvh),
		TEST(start_info_is_version_1),
		TEST(start_info_has_the_memory_map),
		TEST(initrd_is_the_only_module),
		TEST(without_an_initrd_there_is_no_module),
		TEST(gdt_has_32_bit_code),
		TEST(initrd_that_meets_the_kernel_is_refused),
		TEST(without_the_note_it_is_the_64_bit_protocol),
		TEST(kernel_that_would_overwrite_low_memory_is_refused),
		TEST(kernel_above_1_gib_needs_pvh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
