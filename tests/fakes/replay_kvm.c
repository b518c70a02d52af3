/*
 * The KVM that replays: KVM_RUN, and what it needs to know of descriptors and
 * of coalesced zones.
 *
 * Threads: each vCPU's own for its replay; `by_fd` and `zones` are written when
 * no vCPU runs. Locks: a spinlock, as the kernel has it, around what is put in
 * the ring of coalesced writes; no other.
 */
#include "replay_kvm.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_kvm_impl.h"

#define FDS 4096
#define RING_ENTRIES \
	((FAKE_PAGE - sizeof(struct kvm_coalesced_mmio_ring)) / sizeof(struct kvm_coalesced_mmio))

struct replay {
	/* constant while the vCPU runs */
	const struct replay_exit *exits;
	size_t count;
	struct kvm_run *run;
	/* its own thread's */
	size_t next;
	const uint8_t *unfinished; /* of a read: where its value will be */
	uint8_t unfinished_width;
	/* written by its own thread, or before that runs; read by any */
	_Atomic uint64_t limit;
	_Atomic uint64_t made;
	_Atomic uint64_t coalesced;
	_Atomic uint64_t last_read;
} __attribute__((aligned(128))); /* no cache line, nor its neighbour, has two writers */

static struct replay replays[FAKE_VCPUS];
static struct replay *by_fd[FDS];
static unsigned created;
static struct kvm_coalesced_mmio_zone zones[FAKE_ZONES];
static unsigned zone_count;
static int ring_fd = -EBADF; /* of the page that all vCPUs have */
static atomic_flag ring_lock = ATOMIC_FLAG_INIT;

/* As in the kernel, the value of a read is taken where KVM_RUN is called next. */
static void replay_complete_read(struct replay *r)
{
	uint64_t value;

	memcpy(&value, r->unfinished, sizeof(value));
	r->unfinished = NULL;
	value &= UINT64_MAX >> (64 - 8 * r->unfinished_width);
	atomic_store_explicit(&r->last_read, value, memory_order_relaxed);
}

/* Values are copied whole, whatever their width: what lies behind them is ours. */
static void replay_pio(struct replay *r, const struct replay_exit *e)
{
	uint8_t *data = (uint8_t *)r->run + FAKE_PIO_OFFSET;
	unsigned i;

	r->run->exit_reason = KVM_EXIT_IO;
	r->run->io.direction = e->op == REPLAY_PIO_READ ? KVM_EXIT_IO_IN : KVM_EXIT_IO_OUT;
	r->run->io.size = e->width;
	r->run->io.port = (uint16_t)e->address;
	r->run->io.count = e->count;
	r->run->io.data_offset = FAKE_PIO_OFFSET;
	if (e->op == REPLAY_PIO_READ)
		r->unfinished = data + (size_t)e->width * (e->count - 1);
	for (i = 0; e->op == REPLAY_PIO_WRITE && i < e->count; i++)
		memcpy(data + (size_t)e->width * i, &e->value, sizeof(e->value));
}

static void replay_mmio(struct replay *r, const struct replay_exit *e)
{
	r->run->exit_reason = KVM_EXIT_MMIO;
	r->run->mmio.phys_addr = e->address;
	r->run->mmio.len = e->width;
	r->run->mmio.is_write = e->op == REPLAY_MMIO_WRITE;
	memcpy(r->run->mmio.data, &e->value, sizeof(e->value));
	if (e->op == REPLAY_MMIO_READ)
		r->unfinished = r->run->mmio.data;
}

static bool replay_is_in_a_zone(const struct replay_exit *e)
{
	bool pio = e->op == REPLAY_PIO_WRITE;
	unsigned i;

	for (i = 0; i < zone_count; i++) {
		if (zones[i].pio == pio && e->address >= zones[i].addr &&
		    e->address + e->width <= zones[i].addr + zones[i].size)
			return true;
	}
	return false;
}

/* False if the ring is full: then the write is an exit. */
static bool replay_put(struct kvm_coalesced_mmio_ring *ring, const struct replay_exit *e)
{
	struct kvm_coalesced_mmio *entry;
	uint32_t first, last;
	bool has_room;

	while (atomic_flag_test_and_set_explicit(&ring_lock, memory_order_acquire))
		;
	first = __atomic_load_n(&ring->first, __ATOMIC_ACQUIRE);
	last = __atomic_load_n(&ring->last, __ATOMIC_RELAXED);
	has_room = last < RING_ENTRIES && (last + 1) % RING_ENTRIES != first;
	if (has_room) {
		entry = &ring->coalesced_mmio[last];
		entry->phys_addr = e->address;
		entry->len = e->width;
		entry->pio = e->op == REPLAY_PIO_WRITE;
		memcpy(entry->data, &e->value, sizeof(e->value));
		__atomic_store_n(&ring->last, (uint32_t)((last + 1) % RING_ENTRIES), __ATOMIC_RELEASE);
	}
	atomic_flag_clear_explicit(&ring_lock, memory_order_release);
	return has_room;
}

/* Strings are exits here, whatever they are written to. */
static bool replay_coalesces(struct replay *r, const struct replay_exit *e)
{
	if (!zone_count || (e->op != REPLAY_PIO_WRITE && e->op != REPLAY_MMIO_WRITE) ||
	    e->count != 1 || !replay_is_in_a_zone(e) ||
	    !replay_put((void *)((uint8_t *)r->run + FAKE_RING_OFFSET), e))
		return false;
	atomic_store_explicit(&r->coalesced,
			      atomic_load_explicit(&r->coalesced, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	return true;
}

static const struct replay_exit *replay_next(struct replay *r)
{
	const struct replay_exit *e;

	do {
		e = &r->exits[r->next];
		r->next = r->next + 1 == r->count ? 0 : r->next + 1;
	} while (replay_coalesces(r, e));
	return e;
}

/* Signals are held back while immediate_exit is read, so that no kick falls between. */
static int replay_halt(struct replay *r)
{
	sigset_t all, outside;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &outside);
	if (!__atomic_load_n(&r->run->immediate_exit, __ATOMIC_SEQ_CST))
		ppoll(NULL, 0, NULL, &outside);
	pthread_sigmask(SIG_SETMASK, &outside, NULL);
	return -EINTR;
}

static int replay_run(struct replay *r)
{
	uint64_t made = atomic_load_explicit(&r->made, memory_order_relaxed);
	const struct replay_exit *e;

	if (r->unfinished)
		replay_complete_read(r);
	if (__atomic_load_n(&r->run->immediate_exit, __ATOMIC_SEQ_CST))
		return -EINTR;
	if (made >= atomic_load_explicit(&r->limit, memory_order_relaxed))
		return replay_halt(r);
	e = replay_next(r);
	r->unfinished_width = e->width;
	if (e->op == REPLAY_PIO_READ || e->op == REPLAY_PIO_WRITE)
		replay_pio(r, e);
	else
		replay_mmio(r, e);
	atomic_store_explicit(&r->made, made + 1, memory_order_release);
	return 0;
}

/*
 * Benchmarks count the instructions around this: they leave out all functions
 * whose names begin with replay_, which call no others between two exits.
 */
static int replay_ioctl(int fd, unsigned long request, void *arg)
{
	struct replay *r = fd >= 0 && fd < FDS ? by_fd[fd] : NULL;
	int ret;

	if (request == KVM_RUN && r && r->exits) {
		ret = replay_run(r);
		if (ret == 0)
			return 0;
		errno = -ret;
		return -1;
	}
	if (request == KVM_IRQ_LINE)
		return 0;
	ret = fake_kvm_ops.ioctl(fd, request, arg);
	if (request == KVM_REGISTER_COALESCED_MMIO && ret == 0)
		zones[zone_count++] = *(const struct kvm_coalesced_mmio_zone *)arg;
	if (request == KVM_CREATE_VCPU && ret >= 0 && ret < FDS && created < FAKE_VCPUS)
		by_fd[ret] = &replays[created++];
	return ret;
}

static int replay_open(const char *path)
{
	return fake_kvm_ops.open(path);
}

static int replay_close(int fd)
{
	if (fd >= 0 && fd < FDS)
		by_fd[fd] = NULL;
	return fake_kvm_ops.close(fd);
}

/*
 * The mapping of a vCPU that replays is not the fake KVM's, which makes the one
 * ring of all vCPUs in a way that valgrind does not know.
 */
static void *map_run(size_t bytes)
{
	uint8_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (ring_fd < 0)
		ring_fd = memfd_create("replay-ring", MFD_CLOEXEC);
	if (p == MAP_FAILED || ring_fd < 0 || ftruncate(ring_fd, FAKE_PAGE) < 0 ||
	    mmap(p + FAKE_RING_OFFSET, FAKE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 ring_fd, 0) == MAP_FAILED)
		return MAP_FAILED;
	return p;
}

static void *replay_mmap(int fd, size_t bytes)
{
	struct replay *r = fd >= 0 && fd < FDS ? by_fd[fd] : NULL;
	void *p;

	if (!r || !r->exits || bytes != FAKE_RUN_BYTES)
		return fake_kvm_ops.mmap(fd, bytes);
	p = map_run(bytes);
	r->run = p == MAP_FAILED ? NULL : p;
	return p;
}

static int replay_munmap(void *p, size_t bytes)
{
	unsigned i;

	for (i = 0; i < FAKE_VCPUS; i++) {
		if (replays[i].run == p) {
			replays[i].run = NULL;
			return munmap(p, bytes);
		}
	}
	return fake_kvm_ops.munmap(p, bytes);
}

static ssize_t replay_pread(int fd, void *buf, size_t bytes, off_t offset)
{
	return fake_kvm_ops.pread(fd, buf, bytes, offset);
}

const struct kvm_ops replay_kvm_ops = {
	.open = replay_open,
	.close = replay_close,
	.ioctl = replay_ioctl,
	.mmap = replay_mmap,
	.munmap = replay_munmap,
	.pread = replay_pread,
};

void replay_kvm_reset(void)
{
	fake_kvm_reset();
	memset(replays, 0, sizeof(replays));
	memset(by_fd, 0, sizeof(by_fd));
	created = 0;
	zone_count = 0;
	if (ring_fd >= 0)
		close(ring_fd);
	ring_fd = -EBADF;
}

void replay_kvm_set(unsigned vcpu, const struct replay_exit *exits, size_t count, uint64_t limit)
{
	replays[vcpu].exits = exits;
	replays[vcpu].count = count;
	replay_kvm_set_limit(vcpu, limit);
}

void replay_kvm_set_limit(unsigned vcpu, uint64_t limit)
{
	atomic_store_explicit(&replays[vcpu].limit, limit, memory_order_relaxed);
}

uint64_t replay_kvm_exits(unsigned vcpu)
{
	return atomic_load_explicit(&replays[vcpu].made, memory_order_acquire);
}

uint64_t replay_kvm_coalesced(unsigned vcpu)
{
	return atomic_load_explicit(&replays[vcpu].coalesced, memory_order_relaxed);
}

bool replay_kvm_is_done(void)
{
	unsigned i;

	for (i = 0; i < FAKE_VCPUS; i++) {
		if (replays[i].exits && replay_kvm_exits(i) < atomic_load(&replays[i].limit))
			return false;
	}
	return true;
}

uint64_t replay_kvm_last_read(unsigned vcpu)
{
	return atomic_load_explicit(&replays[vcpu].last_read, memory_order_relaxed);
}
