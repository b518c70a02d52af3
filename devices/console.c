/*
 * Console of a serial port.
 *
 * The thread is signalled when it sleeps. Awake, it looks at the ring by
 * itself every POLL_NS until it finds nothing, so that a flood of bytes costs
 * few wake-ups and a single byte goes out at once. A full ring drops bytes
 * and counts them, after one bounded wait if the host side takes output and
 * the thread is merely late. While nobody is connected to a socket the ring
 * keeps the newest bytes.
 *
 * Threads, locks: see the header.
 * Not here: registers, FIFOs (the device's), descriptors (chardev.c).
 */
#include "devices/console.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/bits.h"
#include "vmm/base/fd.h"

#define POLL_NS 2000000ull       /* between looks at the ring while it is in use */
#define ROOM_WAIT_NS 100000000ull /* the one wait of a vCPU for a late thread; hosts are busy */
#define FLUSH_MS 500u            /* for what is left in the ring at the end */

_Static_assert((LIMIT_SERIAL_OUTPUT & (LIMIT_SERIAL_OUTPUT - 1)) == 0, "ring size");

static uint32_t used(const struct console *c)
{
	return atomic_load(&c->head) - atomic_load(&c->tail);
}

/* ---- producer: vCPU threads, the device's lock held --------------------------------------- */

static void wake(struct console *c)
{
	atomic_store(&c->awake, true);
	fd_eventfd_signal(c->wake_fd);
}

/* The ring is full: waits once for a thread that is late, never for the host side. */
static bool wait_for_room(struct console *c) TSA_UNCHECKED
{
	if (!c->thread || atomic_load(&c->is_full) || atomic_load(&c->is_late))
		return false;
	atomic_fetch_add(&c->waiters, 1);
	if (used(c) == LIMIT_SERIAL_OUTPUT &&
	    lock_cond_wait_for(&c->has_room, c->lock, ROOM_WAIT_NS) < 0)
		atomic_store(&c->is_late, true);
	atomic_fetch_sub(&c->waiters, 1);
	return used(c) < LIMIT_SERIAL_OUTPUT;
}

/* The thread sleeps between two looks, which a ring at 1/2, 3/4 and full is no time for. */
static bool is_filling(uint32_t n)
{
	return n >= LIMIT_SERIAL_OUTPUT / 2 && n % (LIMIT_SERIAL_OUTPUT / 4) == 0;
}

/* Puts a byte into the ring, which has room. True if the thread sleeps. */
static bool put_locked(struct console *c, uint8_t byte)
{
	uint32_t head = atomic_load_explicit(&c->head, memory_order_relaxed);

	c->bytes[head & (LIMIT_SERIAL_OUTPUT - 1)] = byte;
	/* Ordered before the load of `awake`; the thread clears it, then looks again. */
	atomic_store(&c->head, head + 1);
	return !atomic_load(&c->awake);
}

/* A byte that may have to be dropped, to be waited for, or to be told of. */
static __attribute__((noinline)) void send_carefully_locked(struct console *c, uint8_t byte)
{
	if (!c->is_open)
		return;
	if (c->is_limited && !ratelimit_take(&c->limiter, 1, ratelimit_now())) {
		metric_count(&c->counts.rate_limiter_dropped_bytes);
		return;
	}
	if (used(c) == LIMIT_SERIAL_OUTPUT && !wait_for_room(c)) {
		metric_inc(&c->counts.missed_write_count);
		return;
	}
	if (put_locked(c, byte) || is_filling(used(c)))
		wake(c);
}

/* On the path of each byte: what is rare is done elsewhere. */
void console_send_locked(struct console *c, uint8_t byte)
{
	metric_count(&c->counts.write_count);
	if (!c->is_open || c->is_limited || used(c) + 1 >= LIMIT_SERIAL_OUTPUT / 2)
		send_carefully_locked(c, byte);
	else if (put_locked(c, byte))
		wake(c);
}

void console_want_input(struct console *c)
{
	atomic_store(&c->input_wanted, true);
	if (c->thread)
		fd_eventfd_signal(c->wake_fd);
}

/* ---- consumer: the device's thread -------------------------------------------------------- */

/* The bytes in the ring as up to two ranges; returns their sum. */
static size_t ring_iov(struct console *c, struct iovec iov[2], int *n)
{
	uint32_t at = atomic_load_explicit(&c->tail, memory_order_relaxed) &
		      (LIMIT_SERIAL_OUTPUT - 1);
	uint32_t all = used(c);
	uint32_t first = all < LIMIT_SERIAL_OUTPUT - at ? all : LIMIT_SERIAL_OUTPUT - at;

	iov[0] = (struct iovec){ c->bytes + at, first };
	iov[1] = (struct iovec){ c->bytes, all - first };
	*n = all > first ? 2 : 1;
	return all;
}

static void consume(struct console *c, uint32_t n)
{
	atomic_fetch_add(&c->tail, n);
	atomic_store(&c->is_late, false);
	if (atomic_load(&c->waiters)) {
		lock_take(c->lock);
		lock_cond_broadcast(&c->has_room);
		lock_release(c->lock);
	}
}

/* Nobody is connected: all but the newest half of a ring may go. */
static void keep_newest(struct console *c)
{
	uint32_t n = used(c);

	if (n <= LIMIT_SERIAL_OUTPUT / 2)
		return;
	n -= LIMIT_SERIAL_OUTPUT / 2;
	metric_add(&c->counts.missed_write_count, n);
	consume(c, n);
}

enum written {
	WRITTEN_ALL,  /* that there was; lost bytes count as written */
	WRITTEN_PART, /* more may be taken now */
	WRITTEN_NONE, /* the chardev calls back when there is more to do */
};

static enum written write_once(struct console *c)
{
	struct iovec iov[2];
	int n;
	size_t tried = ring_iov(c, iov, &n);
	ssize_t put;

	if (tried == 0)
		return WRITTEN_ALL;
	put = chardev_write(&c->chardev, iov, n);
	if (put == -EAGAIN) {
		atomic_store(&c->is_full, true);
		return WRITTEN_NONE;
	}
	if (put == -ENOTCONN) {
		keep_newest(c);
		return WRITTEN_NONE;
	}
	metric_inc(put >= 0 ? &c->counts.flush_count : &c->counts.error_count);
	consume(c, put >= 0 ? (uint32_t)put : (uint32_t)tried);
	return put >= 0 && (size_t)put < tried ? WRITTEN_PART : WRITTEN_ALL;
}

/* The thread stays awake: it looks again soon, or the chardev calls back. */
static void serve_output(void *arg)
{
	struct console *c = arg;
	enum written written;

	atomic_store(&c->is_full, false);
	written = write_once(c);
	if (written != WRITTEN_NONE)
		event_source_arm(c->poll_timer, written == WRITTEN_PART ? 0 : POLL_NS);
}

static void on_poll_timer(void *arg)
{
	struct console *c = arg;

	if (!used(c)) {
		atomic_store(&c->awake, false);
		if (!used(c))
			return;
		atomic_store(&c->awake, true);
	}
	serve_output(c);
}

static void serve_input(struct console *c)
{
	if (!c->is_quiesced)
		chardev_set_room(&c->chardev, c->ops->room(c->user));
}

static void on_wake(void *arg, int fd, unsigned events)
{
	struct console *c = arg;

	fd_eventfd_drain(fd);
	if (atomic_load(&c->awake))
		serve_output(c);
	/* Only then: it takes the device's lock, which a vCPU holds that has just woken us. */
	if (atomic_exchange(&c->input_wanted, false))
		serve_input(c);
}

static size_t on_input(void *user, const uint8_t *data, size_t n)
{
	struct console *c = user;

	c->ops->input(c->user, data, n);
	return c->ops->room(c->user);
}

static void on_peer(void *user, bool present)
{
	struct console *c = user;

	if (present)
		serve_output(c);
}

static const struct chardev_ops chardev_ops = {
	.input = on_input,
	.writable = serve_output,
	.peer = on_peer,
};

void console_quiesce(struct console *c)
{
	c->is_quiesced = true;
	chardev_set_room(&c->chardev, 0);
}

void console_unquiesce(struct console *c)
{
	c->is_quiesced = false;
	if (c->thread)
		serve_input(c);
}

/* ---- start and end ------------------------------------------------------------------------ */

int console_init(struct console *c, const char *id, const struct serial_config *config,
		 struct lock *lock, const struct console_ops *ops, void *user, struct error *err)
{
	const struct token_bucket_config *bucket = &config->rate_limiter;
	int ret;

	c->id = id;
	c->ops = ops;
	c->user = user;
	c->lock = lock;
	c->wake_fd = -EBADF;
	lock_cond_init(&c->has_room, "console room", id);
	c->is_limited = bucket->present && bucket->size && bucket->refill_time_ms;
	if (c->is_limited)
		ratelimit_init(&c->limiter, bucket->size, ratelimit_ns_of_ms(bucket->refill_time_ms),
			       bucket->one_time_burst, ratelimit_now());
	ret = chardev_open(&c->chardev, config, err);
	if (ret < 0 || config->console == CONSOLE_NONE)
		return ret;
	c->wake_fd = fd_eventfd_new();
	if (c->wake_fd < 0)
		return error_set_errno(err, c->wake_fd, "serial: cannot make an eventfd");
	c->is_open = true;
	return 0;
}

struct attach {
	struct console *console;
	struct error *err;
	int ret;
};

static void attach_on_thread(void *arg)
{
	struct attach *a = arg;
	struct console *c = a->console;
	struct event_loop *loop = device_thread_loop(c->thread);

	a->ret = chardev_start(&c->chardev, loop, &chardev_ops, c, a->err);
	if (a->ret < 0)
		return;
	c->poll_timer = event_loop_add_timer(loop, on_poll_timer, c);
	c->wake_source = event_loop_add_fd(loop, c->wake_fd, EVENT_READABLE, on_wake, c);
	if (!c->poll_timer || !c->wake_source)
		a->ret = error_set(a->err, -ENOMEM, "serial: no memory for the console");
	else
		serve_input(c);
}

int console_start(struct console *c, struct error *err)
{
	struct attach a = { .console = c, .err = err };
	int ret;

	if (!c->is_open)
		return 0;
	c->thread = device_thread_new(c->id, err);
	if (!c->thread)
		return -ENOMEM;
	ret = device_thread_call(c->thread, attach_on_thread, &a);
	if (ret < 0)
		return error_set_errno(err, ret, "serial: cannot reach its thread");
	return a.ret;
}

static void detach_on_thread(void *arg)
{
	struct console *c = arg;
	uint64_t end = ratelimit_now() + FLUSH_MS * 1000000ull;
	uint64_t now;

	while (used(c) && (now = ratelimit_now()) < end) {
		if (write_once(c) == WRITTEN_NONE &&
		    !chardev_drained(&c->chardev, (int)((end - now) / 1000000ull) + 1))
			break;
	}
	c->wake_source = event_source_free(c->wake_source);
	c->poll_timer = event_source_free(c->poll_timer);
	chardev_stop(&c->chardev);
}

void console_fini(struct console *c)
{
	if (c->thread)
		(void)device_thread_call(c->thread, detach_on_thread, c);
	c->thread = device_thread_free(c->thread);
	chardev_close(&c->chardev);
	if (c->wake_fd >= 0)
		close(c->wake_fd);
	c->wake_fd = -EBADF;
	lock_cond_fini(&c->has_room);
}
