/*
 * The kernel's command line: what is added to a client's, and where.
 */
#include "tests/arch-x86/arch_test.h"

#include <stdio.h>

#include "arch-x86/cmdline.h"

static char line[LIMIT_CMDLINE];
static struct error err;

static int build(const char *args, const struct drive_config *root, uint32_t slots)
{
	static const struct board_slot slot[] = { { 0xC0001000, 5 }, { 0xC0002000, 6 } };
	struct cmdline_config c = {
		.boot_args = args,
		.root = root,
		.slots = slot,
		.slot_count = slots,
	};

	return cmdline_build(&c, line, &err);
}

static struct drive_config root_drive(bool read_only, const char *partuuid)
{
	struct drive_config d = { .is_root_device = true, .is_read_only = read_only };

	snprintf(d.partuuid, sizeof(d.partuuid), "%s", partuuid);
	return d;
}

static void without_arguments_there_are_defaults(void **state)
{
	assert_int_equal(build(NULL, NULL, 0), 0);
	assert_string_equal(line, "reboot=k panic=1 nomodule 8250.nr_uarts=0 i8042.noaux "
				  "i8042.nomux i8042.dumbkbd swiotlb=noforce pci=off");
}

static void arguments_take_the_place_of_the_defaults(void **state)
{
	assert_int_equal(build("console=ttyS0", NULL, 0), 0);
	assert_string_equal(line, "console=ttyS0 pci=off");
}

static void empty_arguments_are_no_defaults(void **state)
{
	assert_int_equal(build("", NULL, 0), 0);
	assert_string_equal(line, "pci=off");
}

static void pci_off_is_not_repeated(void **state)
{
	assert_int_equal(build("a pci=off b", NULL, 0), 0);
	assert_string_equal(line, "a pci=off b");
}

static void part_of_a_word_is_not_pci_off(void **state)
{
	assert_int_equal(build("x.pci=off pci=offline", NULL, 0), 0);
	assert_string_equal(line, "x.pci=off pci=offline pci=off");
}

static void quoted_words_are_one_word(void **state)
{
	assert_int_equal(build("a=\"b pci=off -- c\"", NULL, 0), 0);
	assert_string_equal(line, "a=\"b pci=off -- c\" pci=off");
}

static void root_drive_is_the_first_disk(void **state)
{
	struct drive_config d = root_drive(false, "");

	assert_int_equal(build("a", &d, 0), 0);
	assert_string_equal(line, "a pci=off root=/dev/vda rw");
}

static void read_only_root_drive_is_mounted_so(void **state)
{
	struct drive_config d = root_drive(true, "");

	assert_int_equal(build("a", &d, 0), 0);
	assert_string_equal(line, "a pci=off root=/dev/vda ro");
}

static void partition_of_the_root_drive_is_named(void **state)
{
	struct drive_config d = root_drive(false, "0eaa91a0-01");

	assert_int_equal(build("a", &d, 0), 0);
	assert_string_equal(line, "a pci=off root=PARTUUID=0eaa91a0-01 rw");
}

static void virtio_devices_are_announced(void **state)
{
	assert_int_equal(build("a", NULL, 2), 0);
	assert_string_equal(line, "a pci=off virtio_mmio.device=4K@0xc0001000:5 "
				  "virtio_mmio.device=4K@0xc0002000:6");
}

static void arguments_for_init_stay_last(void **state)
{
	struct drive_config d = root_drive(false, "");

	assert_int_equal(build("a -- pci=off b -- c", &d, 1), 0);
	assert_string_equal(line, "a pci=off root=/dev/vda rw virtio_mmio.device=4K@0xc0001000:5 "
				  "-- pci=off b -- c");
}

static void only_init_arguments_are_fine(void **state)
{
	assert_int_equal(build("-- single", NULL, 0), 0);
	assert_string_equal(line, "pci=off -- single");
}

static void surrounding_spaces_do_not_hurt(void **state)
{
	assert_int_equal(build("  a  ", NULL, 0), 0);
	assert_string_equal(line, "a pci=off");
}

static void line_may_be_as_long_as_the_kernel_takes(void **state)
{
	char args[LIMIT_CMDLINE];
	size_t room = LIMIT_CMDLINE - 1 - strlen(" pci=off");

	memset(args, 'x', sizeof(args));
	args[room] = '\0';
	assert_int_equal(build(args, NULL, 0), 0);
	assert_int_equal(strlen(line), LIMIT_CMDLINE - 1);
}

static void line_one_character_too_long_is_refused(void **state)
{
	char args[LIMIT_CMDLINE];
	size_t room = LIMIT_CMDLINE - 1 - strlen(" pci=off");

	memset(args, 'x', sizeof(args));
	args[room + 1] = '\0';
	memset(line, 'k', sizeof(line));
	assert_int_equal(build(args, NULL, 0), -E2BIG);
	assert_string_equal(err.text,
			    "boot_args: a command line of 2040 characters, and 8 that the machine adds, are more than 2047");
	assert_int_equal(line[0], 'k');
}

static void huge_arguments_are_refused(void **state)
{
	static char args[LIMIT_CMDLINE * 16];

	memset(args, 'x', sizeof(args) - 1);
	assert_int_equal(build(args, NULL, 2), -E2BIG);
	assert_begins(err.text, "boot_args: ");
}

static void newline_is_refused(void **state)
{
	assert_int_equal(build("a\nb", NULL, 0), -EINVAL);
	assert_begins(err.text, "boot_args: character 1 ");
}

static void percent_is_only_a_character(void **state)
{
	assert_int_equal(build("a=%s%n%d", NULL, 0), 0);
	assert_string_equal(line, "a=%s%n%d pci=off");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_arguments_there_are_defaults),
		cmocka_unit_test(arguments_take_the_place_of_the_defaults),
		cmocka_unit_test(empty_arguments_are_no_defaults),
		cmocka_unit_test(pci_off_is_not_repeated),
		cmocka_unit_test(part_of_a_word_is_not_pci_off),
		cmocka_unit_test(quoted_words_are_one_word),
		cmocka_unit_test(root_drive_is_the_first_disk),
		cmocka_unit_test(read_only_root_drive_is_mounted_so),
		cmocka_unit_test(partition_of_the_root_drive_is_named),
		cmocka_unit_test(virtio_devices_are_announced),
		cmocka_unit_test(arguments_for_init_stay_last),
		cmocka_unit_test(only_init_arguments_are_fine),
		cmocka_unit_test(surrounding_spaces_do_not_hurt),
		cmocka_unit_test(line_may_be_as_long_as_the_kernel_takes),
		cmocka_unit_test(line_one_character_too_long_is_refused),
		cmocka_unit_test(huge_arguments_are_refused),
		cmocka_unit_test(newline_is_refused),
		cmocka_unit_test(percent_is_only_a_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
