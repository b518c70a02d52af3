/*
 * Kernels and initrds that are fine, broken and hostile, and what becomes of
 * them.
 */
#include "tests/arch-x86/elf_image.h"

#include <stdio.h>

#include "vmm/loader.h"

#define FLOOR 0x100000ull
#define RAM (16 * MIB)

static struct guest_mem mem;

static int load(const struct elf_image *e, struct loader_elf *ret, struct error *err)
{
	int fd = elf_image_file(e);
	int code = loader_elf(&mem, fd, EM_X86_64, FLOOR, ret, err);

	close(fd);
	return code;
}

/* Broken ELF files: what is changed in a good one, and what is said of it. */

struct elf_case {
	const char *name;
	void (*change)(struct elf_image *e);
	int code;
	const char *text;
};

#define CHANGE(function, ...)                              \
	static void function(struct elf_image *e)          \
	{                                                  \
		__VA_ARGS__;                               \
	}

CHANGE(is_empty, e->size = 0)
CHANGE(is_one_byte, e->size = 1)
CHANGE(is_a_short_header, e->size = sizeof(Elf64_Ehdr) - 1)
CHANGE(has_no_magic, e->header.e_ident[0] = 'x')
CHANGE(is_32_bit, e->header.e_ident[EI_CLASS] = ELFCLASS32)
CHANGE(is_big_endian, e->header.e_ident[EI_DATA] = ELFDATA2MSB)
CHANGE(is_for_arm64, e->header.e_machine = EM_AARCH64)
CHANGE(is_an_object, e->header.e_type = ET_REL)
CHANGE(is_a_core, e->header.e_type = ET_CORE)
CHANGE(phentsize_is_0, e->header.e_phentsize = 0)
CHANGE(phentsize_is_32_bit, e->header.e_phentsize = sizeof(Elf32_Phdr))
CHANGE(phentsize_is_odd, e->header.e_phentsize = sizeof(Elf64_Phdr) + 1)
CHANGE(phnum_is_0, e->header.e_phnum = 0)
CHANGE(phnum_is_above_the_limit, e->header.e_phnum = LIMIT_ELF_PHDRS + 1)
CHANGE(phnum_is_extended, e->header.e_phnum = PN_XNUM)
CHANGE(phoff_is_past_the_end, e->header.e_phoff = e->size)
CHANGE(phoff_leaves_too_little, e->header.e_phoff = e->size - 3 * sizeof(Elf64_Phdr) + 1)
CHANGE(phoff_wraps, e->header.e_phoff = UINT64_MAX - 8)
CHANGE(filesz_is_above_memsz, e->text.p_memsz = e->text.p_filesz - 1)
CHANGE(offset_is_past_the_end, e->text.p_offset = e->size + 1)
CHANGE(offset_wraps, e->text.p_offset = UINT64_MAX - 16)
CHANGE(filesz_is_past_the_end, e->data.p_filesz = e->data.p_memsz = e->size)
CHANGE(filesz_is_one_too_many,
       e->text.p_filesz = e->size - e->text.p_offset + 1)
CHANGE(filesz_is_huge, e->text.p_filesz = e->text.p_memsz = UINT64_MAX)
CHANGE(file_ends_in_a_segment, e->size = offsetof(struct elf_image, data_bytes) + 8)
CHANGE(file_ends_in_the_headers, e->size = offsetof(struct elf_image, data) + 8)
CHANGE(paddr_is_0, e->text.p_paddr = 0)
CHANGE(paddr_is_below_the_floor, e->text.p_paddr = FLOOR - 1)
CHANGE(paddr_is_past_ram, e->text.p_paddr = RAM)
CHANGE(paddr_is_in_the_hole, e->text.p_paddr = 0xD0000000)
CHANGE(paddr_wraps, e->text.p_paddr = UINT64_MAX - 0x100)
CHANGE(memsz_is_one_too_many, e->text.p_memsz = RAM - ELF_TEXT + 1; e->data.p_memsz = 0;
       e->data.p_filesz = 0)
CHANGE(memsz_is_huge, e->text.p_memsz = UINT64_MAX)
CHANGE(memsz_wraps_to_the_floor, e->text.p_memsz = 0 - ELF_TEXT + FLOOR - 1)
CHANGE(segments_overlap, e->data.p_paddr = ELF_TEXT + 4095)
CHANGE(segments_are_the_same, e->data.p_paddr = ELF_TEXT)
CHANGE(segment_is_inside_another, e->text.p_memsz = 4 * MIB)
CHANGE(nothing_is_loaded, e->text.p_type = e->data.p_type = PT_NULL)
CHANGE(all_segments_are_empty, e->text.p_memsz = e->text.p_filesz = 0;
       e->data.p_memsz = e->data.p_filesz = 0)
CHANGE(entry_is_0, e->header.e_entry = 0)
CHANGE(entry_is_at_the_end, e->header.e_entry = ELF_DATA + 256)
CHANGE(entry_is_huge, e->header.e_entry = UINT64_MAX)
CHANGE(notes_are_past_the_end, e->note.p_filesz = 16; e->note.p_offset = e->size - 15)
CHANGE(notes_wrap, e->note.p_filesz = 16; e->note.p_offset = UINT64_MAX - 8)
CHANGE(notes_are_too_many, e->size = 1 * MIB; e->note.p_filesz = 64 * KIB + 1)
CHANGE(note_name_is_huge, elf_image_pvh(e, ELF_TEXT, 4); store_le32(e->notes, UINT32_MAX))
CHANGE(note_desc_is_huge, elf_image_pvh(e, ELF_TEXT, 4); store_le32(e->notes + 4, UINT32_MAX))
CHANGE(note_sizes_wrap_together, elf_image_pvh(e, ELF_TEXT, 4);
       store_le32(e->notes, 0xFFFFFFF0); store_le32(e->notes + 4, 0x10))
CHANGE(note_desc_is_one_too_long, elf_image_pvh(e, ELF_TEXT, 4); e->note.p_filesz -= 1)
CHANGE(pvh_note_is_empty, elf_image_pvh(e, ELF_TEXT, 0))
CHANGE(pvh_note_is_of_3_bytes, elf_image_pvh(e, ELF_TEXT, 3))
CHANGE(pvh_note_is_of_16_bytes, elf_image_note(e, "Xen", 18, e->data_bytes, 16, 4))
CHANGE(pvh_entry_is_above_4_gib, elf_image_pvh(e, 4 * GIB + ELF_TEXT, 8))
CHANGE(pvh_entry_is_not_loaded, elf_image_pvh(e, 0x1000, 4))
CHANGE(pvh_entry_is_at_the_end, elf_image_pvh(e, ELF_DATA + 256, 4))
CHANGE(file_is_above_the_limit, e->size = LIMIT_KERNEL_BYTES + 1)

#define ELF_CASE(function, code, text) { #function, function, code, text }

static const struct elf_case elf_cases[] = {
	ELF_CASE(is_empty, -ENODATA, "file is empty"),
	ELF_CASE(is_one_byte, -ENODATA, "too short"),
	ELF_CASE(is_a_short_header, -ENODATA, "too short"),
	ELF_CASE(has_no_magic, -EINVAL, "not an ELF file"),
	ELF_CASE(is_32_bit, -EINVAL, "not a 64-bit"),
	ELF_CASE(is_big_endian, -EINVAL, "little-endian"),
	ELF_CASE(is_for_arm64, -EINVAL, "for machine 183"),
	ELF_CASE(is_an_object, -EINVAL, "no executable"),
	ELF_CASE(is_a_core, -EINVAL, "no executable"),
	ELF_CASE(phentsize_is_0, -EINVAL, "program headers of 0 bytes"),
	ELF_CASE(phentsize_is_32_bit, -EINVAL, "program headers of 32 bytes"),
	ELF_CASE(phentsize_is_odd, -EINVAL, "program headers of 57 bytes"),
	ELF_CASE(phnum_is_0, -EINVAL, "0 ELF program headers"),
	ELF_CASE(phnum_is_above_the_limit, -EINVAL, "129 ELF program headers"),
	ELF_CASE(phnum_is_extended, -EINVAL, "65535 ELF program headers"),
	ELF_CASE(phoff_is_past_the_end, -ENODATA, "truncated"),
	ELF_CASE(phoff_leaves_too_little, -ENODATA, "truncated"),
	ELF_CASE(phoff_wraps, -ENODATA, "truncated"),
	ELF_CASE(filesz_is_above_memsz, -EINVAL, "larger in the file"),
	ELF_CASE(offset_is_past_the_end, -ENODATA, "segment 0 lies beyond"),
	ELF_CASE(offset_wraps, -ENODATA, "segment 0 lies beyond"),
	ELF_CASE(filesz_is_past_the_end, -ENODATA, "segment 1 lies beyond"),
	ELF_CASE(filesz_is_one_too_many, -ENODATA, "segment 0 lies beyond"),
	ELF_CASE(filesz_is_huge, -ENODATA, "segment 0 lies beyond"),
	ELF_CASE(file_ends_in_a_segment, -ENODATA, "segment 1 lies beyond"),
	ELF_CASE(file_ends_in_the_headers, -ENODATA, "truncated"),
	ELF_CASE(paddr_is_0, -EFAULT, "segment 0 at 0x0"),
	ELF_CASE(paddr_is_below_the_floor, -EFAULT, "does not fit into guest memory"),
	ELF_CASE(paddr_is_past_ram, -EFAULT, "does not fit into guest memory"),
	ELF_CASE(paddr_is_in_the_hole, -EFAULT, "does not fit into guest memory"),
	ELF_CASE(paddr_wraps, -EFAULT, "does not fit into guest memory"),
	ELF_CASE(memsz_is_one_too_many, -EFAULT, "does not fit into guest memory"),
	ELF_CASE(memsz_is_huge, -EFAULT, "does not fit into guest memory"),
	ELF_CASE(memsz_wraps_to_the_floor, -EFAULT, "does not fit into guest memory"),
	ELF_CASE(segments_overlap, -EINVAL, "segments 0 and 1 overlap"),
	ELF_CASE(segments_are_the_same, -EINVAL, "segments 0 and 1 overlap"),
	ELF_CASE(segment_is_inside_another, -EINVAL, "segments 0 and 1 overlap"),
	ELF_CASE(nothing_is_loaded, -EINVAL, "nothing to load"),
	ELF_CASE(all_segments_are_empty, -EINVAL, "nothing to load"),
	ELF_CASE(entry_is_0, -EINVAL, "entry 0x0 is outside"),
	ELF_CASE(entry_is_at_the_end, -EINVAL, "is outside"),
	ELF_CASE(entry_is_huge, -EINVAL, "is outside"),
	ELF_CASE(pvh_note_is_empty, -EINVAL, "PVH note of 0 bytes"),
	ELF_CASE(pvh_note_is_of_3_bytes, -EINVAL, "PVH note of 3 bytes"),
	ELF_CASE(pvh_note_is_of_16_bytes, -EINVAL, "PVH note of 16 bytes"),
	ELF_CASE(pvh_entry_is_above_4_gib, -EINVAL, "above 4 GiB"),
	ELF_CASE(pvh_entry_is_not_loaded, -EINVAL, "PVH entry 0x1000 is outside"),
	ELF_CASE(pvh_entry_is_at_the_end, -EINVAL, "is outside"),
	ELF_CASE(file_is_above_the_limit, -EFBIG, "too large"),
};

static void broken_elf_is_refused(void **state)
{
	const struct elf_case *c = *state;
	struct loader_elf ret = { .entry = 42 };
	struct error err = { 0 };
	struct elf_image e;

	elf_image_init(&e);
	c->change(&e);
	assert_int_equal(load(&e, &ret, &err), c->code);
	assert_begins(err.text, "kernel: ");
	assert_contains(err.text, c->text);
	assert_int_equal(ret.entry, 42);
}

static void broken_notes_count_as_none(void **state)
{
	static void (*const changes[])(struct elf_image *) = {
		notes_are_past_the_end, notes_wrap, notes_are_too_many, note_name_is_huge,
		note_desc_is_huge, note_sizes_wrap_together, note_desc_is_one_too_long,
	};
	struct loader_elf ret;
	struct error err;
	struct elf_image e;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(changes); i++) {
		elf_image_init(&e);
		changes[i](&e);
		assert_int_equal(load(&e, &ret, &err), 0);
		assert_false(ret.has_pvh_entry);
		assert_int_equal(ret.entry, ELF_TEXT + 16);
	}
}

static void elf_is_loaded_at_its_physical_addresses(void **state)
{
	struct loader_elf ret;
	struct error err;
	struct elf_image e;

	elf_image_init(&e);
	assert_int_equal(load(&e, &ret, &err), 0);
	assert_int_equal(ret.entry, ELF_TEXT + 16);
	assert_int_equal(ret.low, ELF_TEXT);
	assert_int_equal(ret.high, ELF_DATA + 256);
	assert_false(ret.has_pvh_entry);
	assert_int_equal(test_byte(&mem, ELF_TEXT + 255), 0x90);
	assert_int_equal(test_byte(&mem, ELF_TEXT + 256), 0);
	assert_int_equal(test_byte(&mem, ELF_DATA), 0xDA);
}

static void segment_may_end_with_ram(void **state)
{
	struct loader_elf ret;
	struct error err;
	struct elf_image e;

	elf_image_init(&e);
	e.data.p_paddr = RAM - e.data.p_memsz;
	assert_int_equal(load(&e, &ret, &err), 0);
	assert_int_equal(ret.high, RAM);
	assert_int_equal(test_byte(&mem, RAM - 1), 0xDA);
}

static void neighbouring_segments_do_not_overlap(void **state)
{
	struct loader_elf ret;
	struct error err;
	struct elf_image e;

	elf_image_init(&e);
	e.data.p_paddr = ELF_TEXT + e.text.p_memsz;
	assert_int_equal(load(&e, &ret, &err), 0);
}

static void pvh_note_of_4_bytes_is_found(void **state)
{
	struct loader_elf ret;
	struct error err;
	struct elf_image e;

	elf_image_init(&e);
	elf_image_pvh(&e, ELF_TEXT + 32, 4);
	assert_int_equal(load(&e, &ret, &err), 0);
	assert_true(ret.has_pvh_entry);
	assert_int_equal(ret.pvh_entry, ELF_TEXT + 32);
}

static void pvh_note_of_8_bytes_is_found(void **state)
{
	struct loader_elf ret;
	struct error err;
	struct elf_image e;

	elf_image_init(&e);
	elf_image_pvh(&e, ELF_DATA, 8);
	assert_int_equal(load(&e, &ret, &err), 0);
	assert_int_equal(ret.pvh_entry, ELF_DATA);
}

static void pvh_note_is_found_among_others(void **state)
{
	struct loader_elf ret;
	struct error err;
	struct elf_image e;

	elf_image_init(&e);
	elf_image_note(&e, "GNU", 3, "0123456789", 10, 4);
	elf_image_note(&e, "Linux", 18, "", 0, 4);
	elf_image_note(&e, "Xen", 17, "abcd", 4, 4);
	elf_image_pvh(&e, ELF_TEXT, 4);
	assert_int_equal(load(&e, &ret, &err), 0);
	assert_int_equal(ret.pvh_entry, ELF_TEXT);
}

static void notes_may_be_aligned_to_8_bytes(void **state)
{
	uint8_t desc[8] = { 0 };
	struct loader_elf ret;
	struct error err;
	struct elf_image e;

	store_le32(desc, ELF_TEXT);
	elf_image_init(&e);
	elf_image_note(&e, "GNU", 5, "0123456789ab", 12, 8);
	elf_image_note(&e, "Xen", 18, desc, 4, 8);
	assert_int_equal(load(&e, &ret, &err), 0);
	assert_int_equal(ret.pvh_entry, ELF_TEXT);
}

static void empty_notes_end(void **state)
{
	struct loader_elf ret;
	struct error err;
	struct elf_image e;

	elf_image_init(&e);
	e.note.p_filesz = 12 * 21 + 3; /* all zero: 21 notes of nothing, and a rest */
	assert_int_equal(load(&e, &ret, &err), 0);
	assert_false(ret.has_pvh_entry);
}

static void entry_does_not_matter_beside_a_pvh_note(void **state)
{
	struct loader_elf ret;
	struct error err;
	struct elf_image e;

	elf_image_init(&e);
	elf_image_pvh(&e, ELF_TEXT, 4);
	e.header.e_entry = 0;
	assert_int_equal(load(&e, &ret, &err), 0);
}

static void directory_is_no_kernel(void **state)
{
	struct loader_elf ret;
	struct error err;
	int fd = open("/", O_RDONLY | O_DIRECTORY);

	assert_false(loader_is_elf(fd));
	assert_int_equal(loader_elf(&mem, fd, EM_X86_64, FLOOR, &ret, &err), -EINVAL);
	assert_begins(err.text, "kernel: cannot be sized");
	close(fd);
}

static void elf_is_known_by_its_magic(void **state)
{
	int elf = test_file("\177ELF", 4, 4), shorter = test_file("\177EL", 3, 3);
	int other = test_file("MZ\0\0\0\0", 6, 6), empty = test_file("", 0, 0);

	assert_true(loader_is_elf(elf));
	assert_false(loader_is_elf(shorter));
	assert_false(loader_is_elf(other));
	assert_false(loader_is_elf(empty));
	close(elf);
	close(shorter);
	close(other);
	close(empty);
}

/* Initrds */

static int initrd(uint64_t size, uint64_t floor, uint64_t ceiling, uint64_t *ret_gpa)
{
	struct error err = { 0 };
	uint64_t ret_size = 0;
	int fd = test_file("initrd", 6, size);
	int code = loader_initrd(&mem, fd, floor, ceiling, ret_gpa, &ret_size, &err);

	close(fd);
	if (code < 0)
		assert_begins(err.text, "initrd: ");
	else
		assert_int_equal(ret_size, size);
	return code;
}

static void initrd_lies_as_high_as_it_can(void **state)
{
	uint64_t gpa;

	assert_int_equal(initrd(5000, 2 * MIB, 4 * GIB, &gpa), 0);
	assert_int_equal(gpa, RAM - 2 * 4096);
	assert_int_equal(test_byte(&mem, gpa), 'i');
}

static void initrd_stays_below_its_ceiling(void **state)
{
	uint64_t gpa;

	assert_int_equal(initrd(4096, 2 * MIB, 8 * MIB + 5, &gpa), 0);
	assert_int_equal(gpa, 8 * MIB - 4096);
}

static void initrd_may_fill_all_that_is_free(void **state)
{
	uint64_t gpa;

	assert_int_equal(initrd(RAM - 2 * MIB, 2 * MIB, RAM, &gpa), 0);
	assert_int_equal(gpa, 2 * MIB);
}

static void initrd_one_byte_too_large_is_refused(void **state)
{
	uint64_t gpa;

	assert_int_equal(initrd(RAM - 2 * MIB + 1, 2 * MIB, RAM, &gpa), -EFBIG);
}

static void initrd_larger_than_ram_is_refused(void **state)
{
	uint64_t gpa;

	assert_int_equal(initrd(1ull << 40, 2 * MIB, 4 * GIB, &gpa), -EFBIG);
}

static void empty_initrd_is_refused(void **state)
{
	uint64_t gpa;

	assert_int_equal(initrd(0, 2 * MIB, RAM, &gpa), -ENODATA);
}

static void initrd_needs_room_above_the_floor(void **state)
{
	uint64_t gpa;

	assert_int_equal(initrd(1, RAM, RAM, &gpa), -EFBIG);
	assert_int_equal(initrd(1, RAM + 4096, RAM, &gpa), -EFBIG);
	assert_int_equal(initrd(1, 2 * MIB, 0, &gpa), -EFBIG);
	assert_int_equal(initrd(1, UINT64_MAX, UINT64_MAX, &gpa), -EFBIG);
}

static void initrd_does_not_go_below_an_unaligned_floor(void **state)
{
	uint64_t gpa;

	assert_int_equal(initrd(4096, 2 * MIB + 1, 2 * MIB + 4096, &gpa), -EFBIG);
}

static void directory_is_no_initrd(void **state)
{
	int fd = open("/", O_RDONLY | O_DIRECTORY);
	uint64_t gpa, size;
	struct error err;

	assert_true(loader_initrd(&mem, fd, FLOOR, RAM, &gpa, &size, &err) < 0);
	assert_begins(err.text, "initrd: cannot be sized");
	close(fd);
}

/* Command lines */

static void printable_command_line_is_accepted(void **state)
{
	struct error err;

	assert_int_equal(loader_check_cmdline("", 0, &err), 0);
	assert_int_equal(loader_check_cmdline("console=ttyS0 a=\"b c\" %s%n ~", 0, &err), 0);
}

static void command_line_ends_at_its_limit(void **state)
{
	char line[LIMIT_CMDLINE + 1];
	struct error err;

	memset(line, 'x', sizeof(line));
	line[LIMIT_CMDLINE - 1] = '\0';
	assert_int_equal(loader_check_cmdline(line, 48, &err), 0);
	line[LIMIT_CMDLINE - 1] = 'x';
	line[LIMIT_CMDLINE] = '\0';
	assert_int_equal(loader_check_cmdline(line, 48, &err), -E2BIG);
	assert_contains(err.text, "2000 characters, and 48 that the machine adds, are more than 2047");
}

static void control_characters_are_refused(void **state)
{
	static const char *const lines[] = { "a\nb", "a\tb", "\x7F", "caf\xC3\xA9", "\x01" };
	struct error err;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		assert_int_equal(loader_check_cmdline(lines[i], 0, &err), -EINVAL);
		assert_begins(err.text, "boot_args: character ");
	}
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

static int run_elf_cases(void)
{
	struct CMUnitTest tests[ARRAY_SIZE(elf_cases)];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(elf_cases); i++)
		tests[i] = CASE_TEST(broken_elf_is_refused, &elf_cases[i]);
	return cmocka_run_group_tests_name("broken ELF files", tests, fresh_memory, free_memory);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(broken_notes_count_as_none),
		TEST(elf_is_loaded_at_its_physical_addresses),
		TEST(segment_may_end_with_ram),
		TEST(neighbouring_segments_do_not_overlap),
		TEST(pvh_note_of_4_bytes_is_found),
		TEST(pvh_note_of_8_bytes_is_found),
		TEST(pvh_note_is_found_among_others),
		TEST(notes_may_be_aligned_to_8_bytes),
		TEST(empty_notes_end),
		TEST(entry_does_not_matter_beside_a_pvh_note),
		TEST(directory_is_no_kernel),
		TEST(elf_is_known_by_its_magic),
		TEST(initrd_lies_as_high_as_it_can),
		TEST(initrd_stays_below_its_ceiling),
		TEST(initrd_may_fill_all_that_is_free),
		TEST(initrd_one_byte_too_large_is_refused),
		TEST(initrd_larger_than_ram_is_refused),
		TEST(empty_initrd_is_refused),
		TEST(initrd_needs_room_above_the_floor),
		TEST(initrd_does_not_go_below_an_unaligned_floor),
		TEST(directory_is_no_initrd),
		TEST(printable_command_line_is_accepted),
		TEST(command_line_ends_at_its_limit),
		TEST(control_characters_are_refused),
	};

	return run_elf_cases() + cmocka_run_group_tests(tests, NULL, NULL);
}
