/*
 * Guests for lulld-fake. Threads: set before the daemon runs.
 */
#include "fake_guests.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "arch-x86/layout.h"
#include "devices/acpi_pm.h"
#include "fake_kvm.h"

/* Power */
#define POWEROFF                                                \
	FAKE_OUT(LAYOUT_ACPI_PM_PORT + ACPI_PM_SLEEP_CONTROL, 1, \
		 0x20 | ACPI_PM_SLP_TYP_S5 << 2)
#define ACPI_RESET FAKE_OUT(LAYOUT_ACPI_PM_PORT + ACPI_PM_RESET, 1, ACPI_PM_RESET_VALUE)
#define KEYBOARD_RESET FAKE_OUT(0x64, 1, 0xfe)

/* Serial port */
#define PUTS(text, n) FAKE_OUTS(LAYOUT_SERIAL_PORT, 1, text, n)
#define PUTC(c) FAKE_OUT(LAYOUT_SERIAL_PORT, 1, c)
#define LSR_DATA 0x01

/* A virtio device in its slot, one queue of eight in RAM at RING. */
#define REG(slot, offset) (LAYOUT_VIRTIO + (slot) * LAYOUT_VIRTIO_BYTES + (offset))
#define RING 0x1000000ull
#define RING_DRIVER (RING + 0x1000)
#define RING_DEVICE (RING + 0x2000)
#define HEADER (RING + 0x3000)
#define DATA (RING + 0x4000)
#define DONE (RING + 0x5000)
#define SET_UP(device_id, features)                                                        \
	FAKE_MMIO_EXPECT(REG(0, 0x000), 4, 0xffffffff, 0x74726976),                        \
	FAKE_MMIO_EXPECT(REG(0, 0x004), 4, 0xffffffff, 2),                                 \
	FAKE_MMIO_EXPECT(REG(0, 0x008), 4, 0xffffffff, device_id),                         \
	FAKE_MMIO_W(REG(0, 0x070), 4, 0), FAKE_MMIO_W(REG(0, 0x070), 4, 3),                \
	FAKE_MMIO_W(REG(0, 0x024), 4, 0), FAKE_MMIO_W(REG(0, 0x020), 4, features),         \
	FAKE_MMIO_W(REG(0, 0x024), 4, 1), FAKE_MMIO_W(REG(0, 0x020), 4, 1),                \
	FAKE_MMIO_W(REG(0, 0x070), 4, 0xb),                                                \
	FAKE_MMIO_EXPECT(REG(0, 0x070), 4, 0xff, 0xb),                                     \
	FAKE_MMIO_W(REG(0, 0x030), 4, 0), FAKE_MMIO_W(REG(0, 0x038), 4, 8),                \
	FAKE_MMIO_W(REG(0, 0x080), 4, RING), FAKE_MMIO_W(REG(0, 0x084), 4, 0),             \
	FAKE_MMIO_W(REG(0, 0x090), 4, RING_DRIVER), FAKE_MMIO_W(REG(0, 0x094), 4, 0),      \
	FAKE_MMIO_W(REG(0, 0x0a0), 4, RING_DEVICE), FAKE_MMIO_W(REG(0, 0x0a4), 4, 0),      \
	FAKE_MMIO_W(REG(0, 0x044), 4, 1), FAKE_MMIO_W(REG(0, 0x070), 4, 0xf)
/* Makes head 0 available as number n (from 1), rings, waits for its interrupt. */
#define NOTIFY_AND_WAIT(number)                                                 \
	FAKE_MEM_W(RING_DRIVER + 2, number, 2), FAKE_MMIO_W(REG(0, 0x050), 4, 0), \
	FAKE_WAIT_IRQ(LAYOUT_GSI_VIRTIO_FIRST),                                  \
	FAKE_MMIO_EXPECT(REG(0, 0x060), 4, 1, 1), FAKE_MMIO_W(REG(0, 0x064), 4, 1), \
	FAKE_MEM_EXPECT(RING_DEVICE + 2, number, 2)

struct descriptor {
	uint64_t address;
	uint32_t bytes;
	uint16_t flags; /* 1: there is a next one; 2: the device writes */
	uint16_t next;
};

static const struct descriptor blk_read_chain[] = {
	{ HEADER, 16, 1, 1 }, { DATA, 512, 3, 2 }, { DONE, 1, 2, 0 },
};
static const struct descriptor blk_write_chain[] = {
	{ HEADER, 16, 1, 1 }, { DATA, 512, 1, 2 }, { DONE, 1, 2, 0 },
};
static const struct descriptor rng_chain[] = { { DATA, 64, 2, 0 } };
/* Type, reserved, sector. */
static const uint32_t read_sector_1[] = { 0, 0, 1, 0 };
static const uint32_t write_sector_1[] = { 1, 0, 1, 0 };
static const uint16_t one = 1, two = 2;

static char pattern[512], zeros[512];

static void make_pattern(void)
{
	size_t i;

	for (i = 0; i < sizeof(pattern); i++)
		pattern[i] = "lull"[i % 4];
}

static void nap(void *arg)
{
	usleep(300000);
}

static void sleep_long(void *arg)
{
	sleep(60);
}

static const struct fake_step idle[] = { FAKE_WAIT() };
static const struct fake_step spin[] = { FAKE_SPIN() };
static const struct fake_step poweroff[] = { POWEROFF };
static const struct fake_step acpi_reset[] = { ACPI_RESET };
static const struct fake_step reset[] = { KEYBOARD_RESET };
static const struct fake_step triple_fault[] = { FAKE_SHUTDOWN() };
static const struct fake_step fail_entry[] = { FAKE_FAIL_ENTRY(0x80000021) };
static const struct fake_step internal_error[] = { FAKE_INTERNAL_ERROR(1) };
static const struct fake_step memory_lost[] = { FAKE_RUN_FAILS(EFAULT) };
static const struct fake_step port_flood[] = { FAKE_OUT(0xe0, 1, 0), FAKE_LOOP(0, 0) };
/* Deaf inside KVM_RUN for 0.3 s at a time, as on a host that is overloaded. */
static const struct fake_step sluggish[] = { FAKE_CALL(nap, NULL), FAKE_OUT(0xe0, 1, 0),
					     FAKE_LOOP(0, 0) };
/* Deaf for longer than anybody waits, as when memory lies on storage that hangs. */
static const struct fake_step deaf[] = { FAKE_OUT(0xe0, 1, 0), FAKE_CALL(sleep_long, NULL),
					 FAKE_LOOP(1, 0) };
static const struct fake_step console_hello[] = { PUTS("hello from the guest\n", 21), POWEROFF };
static const struct fake_step console_flood[] = { PUTS("0123456789abcdef", 16), FAKE_LOOP(0, 0) };
/* Answers 'y' to an 'x'. */
static const struct fake_step console_answer[] = {
	FAKE_IN_UNTIL(LAYOUT_SERIAL_PORT + 5, 1, LSR_DATA, LSR_DATA),
	FAKE_IN_EXPECT(LAYOUT_SERIAL_PORT, 1, 0xff, 'x'),
	PUTC('y'),
	PUTC('\n'),
	POWEROFF,
};
static const struct fake_step boot_timer[] = { FAKE_MMIO_W(LAYOUT_BOOT_TIMER, 1, 123),
					       FAKE_WAIT() };
/* Has the keyboard's interrupts on; resets when Delete arrives. */
static const struct fake_step ctrl_alt_del[] = {
	FAKE_OUT(0x64, 1, 0x60), /* command byte: interrupt on, keyboard on, translated */
	FAKE_OUT(0x60, 1, 0x41),
	FAKE_WAIT_IRQ(LAYOUT_GSI_I8042),
	FAKE_IN_UNTIL(0x60, 1, 0x7f, 0x53),
	KEYBOARD_RESET,
};
static const struct fake_step blk_read[] = {
	SET_UP(2, 0),
	FAKE_MEM_W(RING, blk_read_chain, sizeof(blk_read_chain)),
	FAKE_MEM_W(HEADER, read_sector_1, sizeof(read_sector_1)),
	FAKE_MEM_W(DONE, "\xff", 1),
	NOTIFY_AND_WAIT(&one),
	FAKE_MEM_EXPECT(DONE, "", 1),
	FAKE_MEM_EXPECT(DATA, pattern, sizeof(pattern)),
	POWEROFF,
};
/* Writes the sector, clears its memory, reads the sector again. */
static const struct fake_step blk_write[] = {
	SET_UP(2, 0),
	FAKE_MEM_W(RING, blk_write_chain, sizeof(blk_write_chain)),
	FAKE_MEM_W(HEADER, write_sector_1, sizeof(write_sector_1)),
	FAKE_MEM_W(DATA, pattern, sizeof(pattern)),
	FAKE_MEM_W(DONE, "\xff", 1),
	NOTIFY_AND_WAIT(&one),
	FAKE_MEM_EXPECT(DONE, "", 1),
	FAKE_MEM_W(DATA, zeros, sizeof(zeros)),
	FAKE_MEM_W(RING, blk_read_chain, sizeof(blk_read_chain)),
	FAKE_MEM_W(HEADER, read_sector_1, sizeof(read_sector_1)),
	FAKE_MEM_W(DONE, "\xff", 1),
	NOTIFY_AND_WAIT(&two),
	FAKE_MEM_EXPECT(DONE, "", 1),
	FAKE_MEM_EXPECT(DATA, pattern, sizeof(pattern)),
	POWEROFF,
};
/* One byte of status says "error": reading where the file has no sector. */
static const struct fake_step blk_read_error[] = {
	SET_UP(2, 0),
	FAKE_MEM_W(RING, blk_read_chain, sizeof(blk_read_chain)),
	FAKE_MEM_W(HEADER, read_sector_1, sizeof(read_sector_1)),
	FAKE_MEM_W(DONE, "\xff", 1),
	NOTIFY_AND_WAIT(&one),
	FAKE_MEM_EXPECT(DONE, "\x01", 1),
	POWEROFF,
};
static const struct fake_step blk_write_error[] = {
	SET_UP(2, 0),
	FAKE_MEM_W(RING, blk_write_chain, sizeof(blk_write_chain)),
	FAKE_MEM_W(HEADER, write_sector_1, sizeof(write_sector_1)),
	FAKE_MEM_W(DONE, "\xff", 1),
	NOTIFY_AND_WAIT(&one),
	FAKE_MEM_EXPECT(DONE, "\x01", 1),
	POWEROFF,
};
/* Each reset but the first waits for the device's thread. */
static const struct fake_step blk_reset[] = { SET_UP(2, 0), FAKE_LOOP(0, 0) };
static const struct fake_step rng_read[] = {
	SET_UP(4, 0),
	FAKE_MEM_W(RING, rng_chain, sizeof(rng_chain)),
	NOTIFY_AND_WAIT(&one),
	FAKE_MEM_EXPECT(RING_DEVICE + 8, "\x40\0\0\0", 4),
	POWEROFF,
};

#define GUEST(name, steps, all) { name, steps, sizeof(steps) / sizeof((steps)[0]), all }

static const struct {
	const char *name;
	const struct fake_step *steps;
	size_t count;
	bool all; /* on every vCPU; else the others wait for ever */
} guests[] = {
	GUEST("idle", idle, true),
	GUEST("spin", spin, true),
	GUEST("poweroff", poweroff, false),
	GUEST("reset", reset, false),
	GUEST("acpi-reset", acpi_reset, false),
	GUEST("triple-fault", triple_fault, false),
	GUEST("fail-entry", fail_entry, false),
	GUEST("internal-error", internal_error, false),
	GUEST("memory-lost", memory_lost, false),
	GUEST("port-flood", port_flood, true),
	GUEST("sluggish", sluggish, true),
	GUEST("deaf", deaf, false),
	GUEST("console-hello", console_hello, false),
	GUEST("console-flood", console_flood, false),
	GUEST("console-answer", console_answer, false),
	GUEST("boot-timer", boot_timer, false),
	GUEST("ctrl-alt-del", ctrl_alt_del, false),
	GUEST("blk-read", blk_read, false),
	GUEST("blk-write", blk_write, false),
	GUEST("blk-read-error", blk_read_error, false),
	GUEST("blk-write-error", blk_write_error, false),
	GUEST("blk-reset", blk_reset, false),
	GUEST("rng-read", rng_read, false),
};

bool fake_guests_set(const char *name)
{
	size_t i;

	make_pattern();
	for (i = 0; i < sizeof(guests) / sizeof(guests[0]); i++) {
		if (strcmp(guests[i].name, name) != 0)
			continue;
		fake_kvm_set_script(0, guests[i].steps, guests[i].count);
		if (guests[i].all)
			fake_kvm_set_default_script(guests[i].steps, guests[i].count);
		return true;
	}
	return false;
}

void fake_guests_list(void)
{
	size_t i;

	for (i = 0; i < sizeof(guests) / sizeof(guests[0]); i++)
		printf("%s\n", guests[i].name);
}
