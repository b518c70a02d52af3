/*
 * A virtio driver that means no good: a valid device and valid rings are built
 * first, then the input writes descriptors, rings, registers and memory, kicks
 * and resets. Drives (over memory), network (over a socket) and entropy.
 *
 * Promises: no access outside RAM (the sanitizer sees it), the device's thread
 * answers, nothing is given back that was not taken, and a reset makes it whole.
 *
 * Input: one byte that chooses the device, one its features, then steps of 8
 * bytes: what to do, two small numbers, a byte, and a 32-bit number.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "devices/registry.h"
#include "devices/virtio/blk_backend.h"
#include "devices/virtio/device.h"
#include "devices/virtio/iov.h"
#include "devices/virtio/mmio.h"
#include "devices/virtio/tap.h"
#include "vmm/base/bits.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/config.h"
#include "vmm/device_thread.h"

#define STEP_BYTES 8
#define MAX_STEPS 256
#define MAX_KICKS 24 /* each waits for the device's thread */

#define RAM 0x10000ull
#define RAM_BYTES 0x40000ull
#define MORE_RAM (RAM + RAM_BYTES)
#define MORE_RAM_BYTES 0x10000ull
#define HOLE (MORE_RAM + MORE_RAM_BYTES)
#define QUEUE_BYTES 0x4000u
#define QUEUE_SIZE 16u
#define DATA (RAM + 0x10000)

#define DISK_BYTES 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum kind { DRIVE, NET, ENTROPY, KINDS };

struct disk {
	struct blk_backend b; /* first */
	uint8_t bytes[DISK_BYTES];
	struct blk_io *held; /* one transfer may be slow */
	bool slow;
	event_fn idle;
	void *idle_arg;
};

struct machine {
	struct guest_mem mem;
	struct doorbells doorbells;
	struct device_env env;
	struct device *devices[KINDS];
	struct disk *disk;
	int wire; /* the network: the other end, */
	int tap;  /* and the device's */
	/* of the run */
	struct device *d;
	unsigned kicks;
};

static struct machine *machine;

static void require(bool holds)
{
	if (!holds)
		__builtin_trap();
}

/* The drive's engine */

static void transfer(struct disk *disk, struct blk_io *io)
{
	require(io->op == BLK_FLUSH || (io->offset <= DISK_BYTES &&
					io->bytes <= DISK_BYTES - io->offset));
	if (io->op == BLK_READ)
		iov_write(io->iov, io->iov_count, 0, disk->bytes + io->offset, io->bytes);
	else if (io->op == BLK_WRITE)
		iov_read(io->iov, io->iov_count, 0, disk->bytes + io->offset, io->bytes);
	io->done(io, 0);
}

static int disk_attach(struct blk_backend *b, struct event_loop *loop, event_fn idle, void *arg)
{
	((struct disk *)b)->idle = idle;
	((struct disk *)b)->idle_arg = arg;
	return 0;
}

static void disk_detach(struct blk_backend *b)
{
	require(!((struct disk *)b)->held);
}

static int disk_submit(struct blk_backend *b, struct blk_io *io)
{
	struct disk *disk = (struct disk *)b;

	if (disk->held)
		return -EAGAIN;
	if (disk->slow)
		disk->held = io;
	else
		transfer(disk, io);
	return 0;
}

static void disk_commit(struct blk_backend *b)
{
}

static bool disk_drain(struct blk_backend *b, bool cancel)
{
	struct disk *disk = (struct disk *)b;
	struct blk_io *io = disk->held;

	disk->held = NULL;
	if (io && cancel)
		io->done(io, -ECANCELED);
	else if (io)
		transfer(disk, io);
	return true;
}

static void disk_destroy(struct blk_backend *b)
{
	free(b);
}

static const struct blk_backend_ops disk_ops = {
	.name = "Fuzz",
	.attach = disk_attach,
	.detach = disk_detach,
	.submit = disk_submit,
	.commit = disk_commit,
	.drain = disk_drain,
	.destroy = disk_destroy,
};

static void disk_finish(void *arg)
{
	struct disk *disk = arg;

	disk->slow = false;
	if (!disk->held)
		return;
	disk_drain(&disk->b, false);
	disk->idle(disk->idle_arg);
}

static void disk_slow(void *arg)
{
	((struct disk *)arg)->slow = true;
}

/* The machine, made once */

static int no_line(void *chip, uint32_t gsi, bool level)
{
	return 0;
}

static int no_assign(void *vm, enum bus_kind kind, uint64_t address, unsigned width,
		     uint64_t value, int fd, bool on)
{
	return 0;
}

static const struct irq_ops irq_ops = { .set = no_line };
static const struct doorbell_ops doorbell_ops = { .assign = no_assign };

static void add_ram(struct machine *m, uint64_t gpa, uint64_t size)
{
	struct guest_mem_region *r = &m->mem.regions[m->mem.count++];

	r->gpa = gpa;
	r->size = size;
	r->hva = calloc(1, size);
	r->fd = -EBADF;
	require(r->hva);
}

static void place(struct machine *m, enum kind kind, struct device *d)
{
	const struct irq_line line = { .ops = &irq_ops };
	struct error err;

	require(d);
	require(virtio_mmio_attach(d, &m->env, 0xc0000000 + 0x1000ull * kind, &line, &err) == 0);
	require(d->ops->start(d, &err) == 0);
	m->devices[kind] = d;
}

static void make_devices(struct machine *m)
{
	struct drive_config drive = { .drive_id = "fuzz", .cache_type = DRIVE_CACHE_WRITEBACK };
	struct net_config net = { .iface_id = "fuzz0", .has_guest_mac = true };
	struct entropy_config entropy = { 0 };
	struct error err;
	int fds[2];

	m->disk = calloc(1, sizeof(*m->disk));
	require(m->disk);
	m->disk->b.ops = &disk_ops;
	m->disk->b.size = DISK_BYTES;
	require(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fds) == 0);
	m->wire = fds[0];
	m->tap = fds[1];
	place(m, DRIVE, virtio_blk_class.create(&m->env, &drive, &m->disk->b, &err));
	place(m, NET, virtio_net_class.create(&m->env, &net, tap_from_socket(fds[1]), &err));
	place(m, ENTROPY, virtio_rng_class.create(&m->env, &entropy, NULL, &err));
}

static struct machine *machine_new(void)
{
	struct machine *m = calloc(1, sizeof(*m));

	require(m);
	log_set_level(LOG_LEVEL_OFF);
	add_ram(m, RAM, RAM_BYTES);
	add_ram(m, MORE_RAM, MORE_RAM_BYTES);
	m->doorbells.ops = &doorbell_ops;
	m->env.mem = &m->mem;
	m->env.doorbells = &m->doorbells;
	m->env.metrics = metrics_new();
	require(m->env.metrics);
	make_devices(m);
	return m;
}

/* What a driver does */

static void wr(struct machine *m, uint64_t offset, uint32_t value)
{
	virtio_mmio_bus_ops.write(m->d, offset, 4, value);
}

static void nothing(void *arg)
{
}

static void call(struct machine *m, event_fn fn, void *arg)
{
	require(device_thread_call(m->d->thread, fn, arg) == 0);
}

static void settle(struct machine *m)
{
	if (m->kicks++ > MAX_KICKS)
		return;
	call(m, nothing, NULL);
	call(m, nothing, NULL);
}

/* Resets the device; nothing is left over from before. */
static void reset(struct machine *m)
{
	uint8_t byte;

	wr(m, 0x70, 0);
	require(virtio_mmio_bus_ops.read(m->d, 0x70, 4) == 0);
	while (recv(m->tap, &byte, 1, 0) >= 0)
		;
}

static void boot(struct machine *m, uint64_t features)
{
	struct virtio_device *v = virtio_of(m->d);
	unsigned q;

	reset(m);
	memset(m->mem.regions[0].hva, 0, 2 * QUEUE_BYTES);
	features = (features & v->offered) | 1ull << 32;
	wr(m, 0x70, 3);
	wr(m, 0x24, 0);
	wr(m, 0x20, (uint32_t)features);
	wr(m, 0x24, 1);
	wr(m, 0x20, (uint32_t)(features >> 32));
	wr(m, 0x70, 11);
	for (q = 0; q < v->queue_count; q++) {
		uint32_t at = (uint32_t)RAM + q * QUEUE_BYTES;

		wr(m, 0x30, q);
		wr(m, 0x38, QUEUE_SIZE);
		wr(m, 0x80, at);
		wr(m, 0x90, at + 0x1000);
		wr(m, 0xa0, at + 0x2000);
		wr(m, 0x44, 1);
	}
	wr(m, 0x70, 15);
}

/* Addresses: mostly RAM, its ends, the rings themselves, the hole, anything. */
static uint64_t address(uint8_t how, uint32_t n)
{
	switch (how & 7) {
	case 0:
	case 1:
	case 2:
		return DATA + (n & 0x1ffff);
	case 3:
		return MORE_RAM - 64 + (n & 0x7f);
	case 4:
		return HOLE - (n & 0xff);
	case 5:
		return HOLE + (n & 0xffff);
	case 6:
		return (uint64_t)n << 32 | n;
	default:
		return RAM + (n & 0x7fff);
	}
}

static uint8_t *ram(struct machine *m, uint64_t gpa, uint64_t len)
{
	return guest_mem_span(&m->mem, gpa, len);
}

/* A descriptor of queue `q`; its length comes from the address' number as well. */
static void put_descriptor(struct machine *m, unsigned q, uint8_t index, uint8_t how, uint32_t n)
{
	static const uint32_t lengths[] = { 16, 1, 512, 12, 1500, 4096, 0, 0xffffffff };
	uint8_t *d = ram(m, RAM + q * QUEUE_BYTES + 16u * (index % QUEUE_SIZE), 16);

	store_le64(d, address(how, n));
	store_le32(d + 8, lengths[n >> 24 & 7]);
	store_le16(d + 12, (uint16_t)(how >> 3 & 7));
	store_le16(d + 14, (uint16_t)(n >> 27 & 0x1f));
}

/* A whole request that is right: the input breaks it afterwards, or not. */
static void put_request(struct machine *m, unsigned q, uint8_t type, uint32_t sector)
{
	uint8_t *d = ram(m, RAM + q * QUEUE_BYTES, 48);
	uint8_t *header = ram(m, DATA, 16);

	memset(d, 0, 48);
	memset(header, 0, 16);
	header[0] = type % 12;
	store_le64(header + 8, sector % 160);
	store_le64(d, DATA);
	store_le32(d + 8, 16);
	d[12] = 1;
	d[14] = 1;
	store_le64(d + 16, DATA + 0x1000);
	store_le32(d + 24, 512);
	d[28] = type & 1 ? 1 : 3;
	d[30] = 2;
	store_le64(d + 32, DATA + 0x800);
	store_le32(d + 40, 1);
	d[44] = 2;
}

static void put_available(struct machine *m, unsigned q, uint8_t head, uint8_t count)
{
	uint8_t *avail = ram(m, RAM + q * QUEUE_BYTES + 0x1000, 4 + 2 * QUEUE_SIZE);
	uint16_t idx = load_le16(avail + 2);

	store_le16(avail + 4 + 2 * (idx % QUEUE_SIZE), head % (QUEUE_SIZE + 2));
	guest_store_release16(avail + 2, (uint16_t)(idx + 1 + (count > 250 ? count : 0)));
}

static void host_frame(struct machine *m, uint8_t fill, uint32_t len)
{
	static uint8_t frame[70000];

	memset(frame, fill, 64);
	(void)!send(m->wire, frame, len % sizeof(frame), 0);
	while (recv(m->wire, frame, sizeof(frame), 0) > 0)
		;
}

static void host_step(struct machine *m, uint8_t a, uint32_t n)
{
	if (m->d == m->devices[NET])
		host_frame(m, a, n);
	else if (m->d == m->devices[DRIVE])
		call(m, a & 1 ? disk_slow : disk_finish, m->disk);
}

static void poke(struct machine *m, uint8_t how, uint8_t value, uint32_t n)
{
	uint8_t *p = ram(m, address(how, n), 1);

	if (p)
		*p = value;
}

static void step(struct machine *m, const uint8_t *s)
{
	unsigned q = s[1] % virtio_of(m->d)->queue_count;
	uint32_t n = load_le32(s + 4);

	switch (s[0] % 12) {
	case 0:
	case 1:
	case 2:
		put_descriptor(m, q, s[2], s[3], n);
		break;
	case 3:
	case 4:
		put_available(m, q, s[2], s[3]);
		break;
	case 5:
		put_request(m, q, s[2], n);
		put_available(m, q, 0, 0);
		break;
	case 6:
	case 7:
		fd_eventfd_signal(virtio_of(m->d)->doorbells[q].fd);
		settle(m);
		break;
	case 8:
		host_step(m, s[2], n);
		break;
	case 9:
		poke(m, s[2], s[3], n);
		break;
	case 10:
		virtio_mmio_bus_ops.write(m->d, (uint64_t)s[2] << 2 | (s[3] & 0x80 ? s[3] & 3 : 0),
					  1u << (s[3] & 0x80 ? s[3] >> 4 & 3 : 2), n);
		break;
	default:
		(void)virtio_mmio_bus_ops.read(m->d, n & 0xfff, 1u << (s[3] & 3));
		break;
	}
}

/* After anything: a reset, and the device does what it is for. */
static void check_whole(struct machine *m)
{
	/* The head of put_request()'s chain that is right for each kind. */
	static const uint8_t heads[KINDS] = { 0, 1, 2 };
	const uint8_t *used = ram(m, RAM + 0x2000, 8);
	unsigned kind = 0;

	while (m->devices[kind] != m->d)
		kind++;
	if (kind == DRIVE)
		call(m, disk_finish, m->disk);
	boot(m, 0);
	put_request(m, 0, 0, 0);
	put_available(m, 0, heads[kind], 0);
	fd_eventfd_signal(virtio_of(m->d)->doorbells[0].fd);
	if (kind == NET)
		host_frame(m, 0, 100);
	m->kicks = 0;
	settle(m);
	settle(m);
	require(!(virtio_mmio_bus_ops.read(m->d, 0x70, 4) & 0x40));
	require(guest_load_acquire16(used + 2) == 1);
	reset(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned i;

	if (!machine)
		machine = machine_new();
	if (size < 2)
		return 0;
	machine->d = machine->devices[data[0] % KINDS];
	machine->kicks = 0;
	boot(machine, (uint64_t)data[1] << 28 | (data[1] & 4 ? UINT32_MAX : 1u << 9));
	data += 2;
	size -= 2;
	for (i = 0; i < MAX_STEPS && size >= STEP_BYTES; i++) {
		step(machine, data);
		data += STEP_BYTES;
		size -= STEP_BYTES;
	}
	check_whole(machine);
	return 0;
}
