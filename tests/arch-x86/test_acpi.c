/*
 * ACPI tables: checksums, what points at what, and that ACPICA's disassembler
 * reads them.
 */
#include "tests/arch-x86/arch_test.h"

#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

#include "arch-x86/acpi.h"
#include "arch-x86/layout.h"
#include "vmm/config.h"

extern char **environ;

static struct topology topology;
static struct board_slot slots[LIMIT_VIRTIO_DEVICES + 1];
static struct acpi_image image;

static int build(uint32_t vcpus, bool smt, uint32_t slot_count)
{
	struct acpi_config c = { .topology = &topology, .slots = slots, .slot_count = slot_count };
	struct error err;
	uint32_t i;

	for (i = 0; i < slot_count; i++)
		slots[i] = (struct board_slot){ LAYOUT_VIRTIO + i * LAYOUT_VIRTIO_BYTES, 5 + i };
	topology_init(&topology, vcpus, smt);
	acpi_image_fini(&image);
	return acpi_image_init(&image, &c, &err);
}

/* Two sockets of two dies, RAM on both sides of the hole. */
static void build_numa(enum topology_level node)
{
	static const struct guest_mem_range ram[] = { { 0, 3 * GIB }, { 4 * GIB, 1 * GIB } };
	const struct topology_config asked = {
		.sockets = { 2, true }, .dies = { 2, true }, .numa.node = node, .has_numa = true,
	};
	const struct machine_config m = { .vcpu_count = 12, .mem_size_mib = 4096 };
	static const struct topology_host unknown;
	struct acpi_config c = { .topology = &topology, .ram = ram, .ram_count = 2 };
	struct error err;

	assert_int_equal(topology_build(&topology, &asked, &m, &unknown, &err), 0);
	acpi_image_fini(&image);
	assert_int_equal(acpi_image_init(&image, &c, &err), 0);
}

static int free_image(void **state)
{
	acpi_image_fini(&image);
	return 0;
}

static const uint8_t *table(enum acpi_table t)
{
	return (const uint8_t *)image.bytes.data + image.tables[t].offset;
}

static uint64_t gpa(enum acpi_table t)
{
	return LAYOUT_ACPI + image.tables[t].offset;
}

static bool has(enum acpi_table t, const void *bytes, size_t n)
{
	return memmem(table(t), image.tables[t].size, bytes, n) != NULL;
}

static void checksums_are_right_for_all_vcpu_counts(void **state)
{
	uint32_t n, t;

	for (n = 1; n <= LIMIT_VCPUS; n++) {
		assert_int_equal(build(n, n % 2 == 0, n % LIMIT_VIRTIO_DEVICES), 0);
		assert_int_equal(test_sum(table(ACPI_RSDP), 20), 0);
		for (t = 0; t < ACPI_TABLES; t++)
			assert_int_equal(test_sum(table(t), image.tables[t].size), 0);
	}
}

static void headers_tell_signature_and_length(void **state)
{
	static const char *const signatures[] = { "RSD ", "DSDT", "FACP", "APIC", "SRAT",
						 "SLIT", "XSDT" };
	uint32_t t;

	build_numa(TOPOLOGY_DIE);
	for (t = 0; t < ACPI_TABLES; t++) {
		assert_memory_equal(table(t), signatures[t], 4);
		if (t != ACPI_RSDP)
			assert_int_equal(load_le32(table(t) + 4), image.tables[t].size);
	}
}

static void tables_point_at_each_other(void **state)
{
	assert_int_equal(build(2, false, 3), 0);
	assert_int_equal(load_le64(table(ACPI_RSDP) + 24), gpa(ACPI_XSDT));
	assert_int_equal(load_le32(table(ACPI_RSDP) + 16), 0);
	assert_int_equal(image.tables[ACPI_XSDT].size, 36 + 2 * 8);
	assert_int_equal(load_le64(table(ACPI_XSDT) + 36), gpa(ACPI_FADT));
	assert_int_equal(load_le64(table(ACPI_XSDT) + 44), gpa(ACPI_MADT));
	assert_int_equal(load_le64(table(ACPI_FADT) + 140), gpa(ACPI_DSDT));
	assert_int_equal(load_le32(table(ACPI_FADT) + 40), 0);
}

static void fadt_is_hardware_reduced(void **state)
{
	const uint8_t *f;

	assert_int_equal(build(1, false, 0), 0);
	f = table(ACPI_FADT);
	assert_int_equal(image.tables[ACPI_FADT].size, 276);
	assert_int_equal(f[8], 6);
	assert_int_equal(load_le32(f + 112) & (BIT(20) | BIT(10)), BIT(20) | BIT(10));
	assert_int_equal(load_le16(f + 46), 0); /* no SCI */
	assert_int_equal(load_le32(f + 56), 0); /* no event block */
	assert_int_equal(load_le32(f + 76), 0); /* no timer */
}

/* FADT offsets 106 to 108: the clock's bytes (ACPI 6.4, 5.2.9). */
static void fadt_tells_where_the_clock_has_century_and_date_of_the_alarm(void **state)
{
	static const uint8_t indexes[] = { 0x7d, 0x7e, 0x32 };

	assert_int_equal(build(1, false, 0), 0);
	assert_memory_equal(table(ACPI_FADT) + 106, indexes, 3);
}

static void fadt_has_sleep_and_reset_ports(void **state)
{
	static const uint8_t io_byte[] = { 1, 8, 0, 1 };
	static const struct {
		uint32_t offset, port;
	} registers[] = { { 244, 0x600 }, { 256, 0x601 }, { 116, 0x602 } };
	size_t i;

	assert_int_equal(build(1, false, 0), 0);
	for (i = 0; i < ARRAY_SIZE(registers); i++) {
		const uint8_t *r = table(ACPI_FADT) + registers[i].offset;

		assert_memory_equal(r, io_byte, 4);
		assert_int_equal(load_le64(r + 4), registers[i].port);
	}
	assert_int_equal(table(ACPI_FADT)[128], ACPI_RESET_VALUE);
}

static void fadt_tells_which_legacy_devices_there_are(void **state)
{
	uint16_t boot;

	assert_int_equal(build(1, false, 0), 0);
	boot = load_le16(table(ACPI_FADT) + 109);
	assert_int_equal(boot & BIT(1), BIT(1)); /* 8042 */
	assert_int_equal(boot & BIT(2), BIT(2)); /* no VGA */
	assert_int_equal(boot & BIT(5), 0);      /* an RTC */
	assert_int_equal(table(ACPI_FADT)[108], 0x32);
}

static void madt_has_the_topologys_ids(void **state)
{
	uint32_t n, i;

	for (n = 1; n <= LIMIT_VCPUS; n++) {
		assert_int_equal(build(n, n % 4 == 2, 0), 0);
		for (i = 0; i < n; i++) {
			const uint8_t *e = table(ACPI_MADT) + 44 + i * 8;

			assert_int_equal(e[0], 0);
			assert_int_equal(e[1], 8);
			assert_int_equal(e[2], i);
			assert_int_equal(e[3], topology_apic_id(&topology, i));
			assert_int_equal(load_le32(e + 4), 1);
		}
		assert_int_equal(image.tables[ACPI_MADT].size, 44 + n * 8 + 12 + 6);
	}
}

static void madt_has_the_ioapic_and_no_pic(void **state)
{
	const uint8_t *e;

	assert_int_equal(build(1, false, 0), 0);
	assert_int_equal(load_le32(table(ACPI_MADT) + 36), 0xFEE00000);
	assert_int_equal(load_le32(table(ACPI_MADT) + 40), 0);
	e = table(ACPI_MADT) + 44 + 8;
	assert_int_equal(e[0], 1);
	assert_int_equal(load_le32(e + 4), 0xFEC00000);
	assert_int_equal(load_le32(e + 8), 0);
}

static void without_nodes_there_is_no_srat(void **state)
{
	assert_int_equal(build(4, false, 0), 0);
	assert_int_equal(image.tables[ACPI_SRAT].size, 0);
	assert_int_equal(image.tables[ACPI_SLIT].size, 0);
}

static void xsdt_lists_the_tables_of_a_numa_machine(void **state)
{
	build_numa(TOPOLOGY_DIE);
	assert_int_equal(image.tables[ACPI_XSDT].size, 36 + 4 * 8);
	assert_int_equal(load_le64(table(ACPI_XSDT) + 52), gpa(ACPI_SRAT));
	assert_int_equal(load_le64(table(ACPI_XSDT) + 60), gpa(ACPI_SLIT));
	assert_int_equal(test_sum(table(ACPI_SRAT), image.tables[ACPI_SRAT].size), 0);
	assert_int_equal(test_sum(table(ACPI_SLIT), image.tables[ACPI_SLIT].size), 0);
}

static void srat_puts_each_processor_on_its_node(void **state)
{
	uint32_t i;

	build_numa(TOPOLOGY_DIE);
	assert_int_equal(load_le32(table(ACPI_SRAT) + 36), 1);
	for (i = 0; i < 12; i++) {
		const uint8_t *e = table(ACPI_SRAT) + 48 + i * 16;

		assert_int_equal(e[0], 0);
		assert_int_equal(e[1], 16);
		assert_int_equal(e[2], i / 3);
		assert_int_equal(e[3], topology_apic_id(&topology, i));
		assert_int_equal(load_le32(e + 4), 1);
	}
}

static void memory_entry_is(uint32_t at, uint32_t node, uint64_t base, uint64_t size)
{
	const uint8_t *e = table(ACPI_SRAT) + 48 + 12 * 16 + at * 40;

	assert_int_equal(e[0], 1);
	assert_int_equal(e[1], 40);
	assert_int_equal(load_le32(e + 2), node);
	assert_int_equal(load_le64(e + 8), base);
	assert_int_equal(load_le64(e + 16), size);
	assert_int_equal(load_le32(e + 28), 1);
}

static void srat_gives_all_memory_to_nodes(void **state)
{
	uint32_t i;

	build_numa(TOPOLOGY_SOCKET);
	memory_entry_is(0, 0, 0, 2 * GIB);
	memory_entry_is(1, 1, 2 * GIB, 1 * GIB); /* the second node lies around the hole */
	memory_entry_is(2, 1, 4 * GIB, 1 * GIB);
	assert_int_equal(image.tables[ACPI_SRAT].size, 48 + 12 * 16 + 3 * 40);
	build_numa(TOPOLOGY_DIE);
	for (i = 0; i < 4; i++)
		memory_entry_is(i, i, i < 3 ? i * GIB : 4 * GIB, 1 * GIB);
}

static void slit_is_nearest_to_itself_and_then_to_the_socket(void **state)
{
	static const uint8_t dies[] = { 10, 12, 20, 20, 12, 10, 20, 20,
					20, 20, 10, 12, 20, 20, 12, 10 };
	static const uint8_t sockets[] = { 10, 20, 20, 10 };

	build_numa(TOPOLOGY_DIE);
	assert_int_equal(load_le64(table(ACPI_SLIT) + 36), 4);
	assert_memory_equal(table(ACPI_SLIT) + 44, dies, sizeof(dies));
	build_numa(TOPOLOGY_SOCKET);
	assert_int_equal(load_le64(table(ACPI_SLIT) + 36), 2);
	assert_memory_equal(table(ACPI_SLIT) + 44, sockets, sizeof(sockets));
}

static void large_ids_are_told_as_x2apic(void **state)
{
	struct acpi_config c = { .topology = &topology };
	const uint8_t *e;
	struct error err;

	build(1, false, 0);
	topology.sockets = 2;
	topology.dies = topology.cores = 16; /* the second socket begins at id 256 */
	acpi_image_fini(&image);
	assert_int_equal(acpi_image_init(&image, &c, &err), 0);
	e = table(ACPI_MADT) + 44 + 255 * 8;
	assert_int_equal(e[0], 9);
	assert_int_equal(load_le32(e + 4), 255);
	assert_int_equal(load_le32(e + 16 + 4), 256);
	assert_int_equal(load_le32(e + 16 + 12), 256);
	topology.node = TOPOLOGY_SOCKET;
	topology.node_count = 2;
	acpi_image_fini(&image);
	assert_int_equal(acpi_image_init(&image, &c, &err), 0);
	e = table(ACPI_SRAT) + 48 + 255 * 16 + 24;
	assert_int_equal(e[0], 2);
	assert_int_equal(load_le32(e + 4), 1);
	assert_int_equal(load_le32(e + 8), 256);
}

static void dsdt_has_the_legacy_devices(void **state)
{
	assert_int_equal(build(1, false, 0), 0);
	assert_true(has(ACPI_DSDT, "\x41\xD0\x05\x01", 4)); /* PNP0501 */
	assert_true(has(ACPI_DSDT, "\x41\xD0\x03\x03", 4)); /* PNP0303 */
	assert_true(has(ACPI_DSDT, "\x41\xD0\x0B\x00", 4)); /* PNP0B00 */
	assert_true(has(ACPI_DSDT, "\\_S5_", 5));
	assert_false(has(ACPI_DSDT, "LNRO", 4));
}

static void dsdt_has_every_virtio_device(void **state)
{
	uint32_t i;

	assert_int_equal(build(1, false, LIMIT_VIRTIO_DEVICES), 0);
	for (i = 0; i < LIMIT_VIRTIO_DEVICES; i++) {
		uint8_t memory[12] = { 0x86, 9, 0, 1 }, line[9] = { 0x89, 6, 0, 3, 1 };

		store_le32(memory + 4, (uint32_t)slots[i].base);
		store_le32(memory + 8, 0x1000);
		store_le32(line + 5, slots[i].gsi);
		assert_true(has(ACPI_DSDT, memory, sizeof(memory)));
		assert_true(has(ACPI_DSDT, line, sizeof(line)));
	}
}

static void one_device_too_many_is_an_error(void **state)
{
	assert_int_equal(build(1, false, LIMIT_VIRTIO_DEVICES + 1), -ENOSPC);
}

static void tables_that_do_not_fit_are_an_error(void **state)
{
	struct acpi_config c = { .topology = &topology };
	struct error err;

	topology_init(&topology, 20000, false);
	acpi_image_fini(&image);
	assert_int_equal(acpi_image_init(&image, &c, &err), -ENOSPC);
	assert_begins(err.text, "ACPI: tables do not fit");
}

static void tables_are_written_where_guests_search(void **state)
{
	struct acpi_config c = { .topology = &topology };
	struct guest_mem mem;
	struct error err;
	uint64_t rsdp;

	topology_init(&topology, 1, false);
	test_mem_init(&mem, 16 * MIB, 0);
	assert_int_equal(acpi_write(&mem, &c, &rsdp, &err), 0);
	assert_int_equal(rsdp, 0xE0000);
	assert_int_equal(test_u64(&mem, rsdp), 0x2052545020445352); /* "RSD PTR " */
	guest_mem_fini(&mem);
	test_mem_init(&mem, LAYOUT_ACPI, 0);
	assert_int_equal(acpi_write(&mem, &c, &rsdp, &err), -EFAULT);
	guest_mem_fini(&mem);
}

/* Runs iasl in `folder`; its status, or -1 where there is none. Output goes to a file. */
static int run_iasl(const char *folder)
{
	char command[] = "cd \"$0\" && exec iasl -d *.aml >out 2>&1";
	char shell[] = "sh", flag[] = "-c", where[256];
	char *argv[] = { shell, flag, command, where, NULL };
	pid_t pid;
	int status;

	snprintf(where, sizeof(where), "%s", folder);
	if (posix_spawnp(&pid, "sh", NULL, NULL, argv, environ))
		return -1;
	if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) == 127)
		return -1;
	return WEXITSTATUS(status);
}

static void write_table(int folder, const char *name, enum acpi_table t)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, table(t), image.tables[t].size), 0);
	close(fd);
}

static void read_text(int folder, const char *name, char *text, size_t size)
{
	int fd = openat(folder, name, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	text[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
}

static void remove_folder(int folder, const char *path)
{
	static const char *const files[] = { "dsdt.aml", "dsdt.dsl", "facp.aml", "facp.dsl",
					     "apic.aml", "apic.dsl", "xsdt.aml", "xsdt.dsl",
					     "srat.aml", "srat.dsl", "slit.aml", "slit.dsl",
					     "out" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(files); i++)
		unlinkat(folder, files[i], 0);
	close(folder);
	rmdir(path);
}

static void disassembler_reads_them(void **state)
{
	static char out[65536], dsdt[65536], srat[65536];
	char path[] = "/tmp/lull-acpi.XXXXXX";
	int folder, status;

	assert_int_equal(build(LIMIT_VCPUS, true, LIMIT_VIRTIO_DEVICES), 0);
	assert_non_null(mkdtemp(path));
	folder = open(path, O_RDONLY | O_DIRECTORY);
	write_table(folder, "dsdt.aml", ACPI_DSDT);
	write_table(folder, "facp.aml", ACPI_FADT);
	write_table(folder, "apic.aml", ACPI_MADT);
	build_numa(TOPOLOGY_DIE);
	write_table(folder, "xsdt.aml", ACPI_XSDT);
	write_table(folder, "srat.aml", ACPI_SRAT);
	write_table(folder, "slit.aml", ACPI_SLIT);
	status = run_iasl(path);
	read_text(folder, "out", out, sizeof(out));
	read_text(folder, "dsdt.dsl", dsdt, sizeof(dsdt));
	read_text(folder, "srat.dsl", srat, sizeof(srat));
	remove_folder(folder, path);
	if (status < 0) {
		print_message("skipped: iasl (package acpica-tools) is not installed\n");
		skip();
	}
	assert_int_equal(status, 0);
	assert_null(strstr(out, "rror"));
	assert_null(strstr(out, "arning"));
	assert_contains(dsdt, "Name (_HID, \"LNRO0005\")");
	assert_contains(dsdt, "EisaId (\"PNP0501\")");
	assert_contains(srat, "Subtable Type : 01 [Memory Affinity]");
}

#define TEST(function) cmocka_unit_test_teardown(function, free_image)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(checksums_are_right_for_all_vcpu_counts),
		TEST(headers_tell_signature_and_length),
		TEST(tables_point_at_each_other),
		TEST(fadt_is_hardware_reduced),
		TEST(fadt_tells_where_the_clock_has_century_and_date_of_the_alarm),
		TEST(fadt_has_sleep_and_reset_ports),
		TEST(fadt_tells_which_legacy_devices_there_are),
		TEST(madt_has_the_topologys_ids),
		TEST(madt_has_the_ioapic_and_no_pic),
		TEST(without_nodes_there_is_no_srat),
		TEST(xsdt_lists_the_tables_of_a_numa_machine),
		TEST(srat_puts_each_processor_on_its_node),
		TEST(srat_gives_all_memory_to_nodes),
		TEST(slit_is_nearest_to_itself_and_then_to_the_socket),
		TEST(large_ids_are_told_as_x2apic),
		TEST(dsdt_has_the_legacy_devices),
		TEST(dsdt_has_every_virtio_device),
		TEST(one_device_too_many_is_an_error),
		TEST(tables_that_do_not_fit_are_an_error),
		TEST(tables_are_written_where_guests_search),
		TEST(disassembler_reads_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
