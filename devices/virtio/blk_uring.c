/*
 * io_uring engine.
 *
 * Threads: made on main, then the device's thread only. Locks: none.
 * The ring can reach one registered file with four operations, and is told so
 * before it is enabled. Guest memory is not registered: that would pin it. A
 * transfer's ranges live until its completion has been seen, whatever happens.
 */
#include "devices/virtio/blk_uring.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vmm/base/bits.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/limits.h"

#define RING_ENTRIES LIMIT_BLK_INFLIGHT /* the completion ring has twice as many */
#define RING_FILE 0                     /* index of the registered file */
#define RING_WORKERS 4u                 /* kernel threads of this ring, each kind */

struct uring_backend {
	struct blk_backend b; /* first */
	/* constant */
	struct blk_file *file;
	int event_fd;

	/* the device's thread */
	struct io_uring ring;
	uint32_t in_flight;
	bool cancelling; /* what was interrupted is not begun again */
	struct event_source *source;
	event_fn idle;
	void *idle_arg;
};

static struct uring_backend *uring_of(struct blk_backend *b)
{
	return (struct uring_backend *)b;
}

static void prepare(struct io_uring_sqe *sqe, struct blk_io *io)
{
	if (io->op == BLK_FLUSH)
		io_uring_prep_fsync(sqe, RING_FILE, IORING_FSYNC_DATASYNC);
	else if (io->op == BLK_READ)
		io_uring_prep_readv(sqe, RING_FILE, io->iov, io->iov_count, io->offset);
	else
		io_uring_prep_writev2(sqe, RING_FILE, io->iov, io->iov_count, io->offset,
				      io->stable ? RWF_DSYNC : 0);
	io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
	io_uring_sqe_set_data(sqe, io);
}

static void finish(struct uring_backend *u, struct blk_io *io, int result)
{
	u->in_flight--;
	io->done(io, result);
}

/* Puts `io` into the submission ring; false if that is full and cannot be emptied. */
static bool queue_up(struct uring_backend *u, struct blk_io *io)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

	if (!sqe) {
		io_uring_submit(&u->ring);
		sqe = io_uring_get_sqe(&u->ring);
	}
	if (!sqe)
		return false;
	prepare(sqe, io);
	return true;
}

/* One completion: done, to be continued after a short transfer, or failed. */
static void complete(struct uring_backend *u, struct blk_io *io, int result)
{
	bool flush = io->op == BLK_FLUSH;

	if ((result == -EINTR || result == -EAGAIN) && !u->cancelling) {
		/* once more, from where it stands */
	} else if (flush) {
		if (result < 0 && result != -EINVAL && result != -ECANCELED && result != -EINTR)
			blk_file_fail_flushes(u->file);
		finish(u, io, result == -EINVAL ? 0 : result);
		return;
	} else if (result <= 0) {
		/* 0 bytes before the end: the file has become shorter */
		finish(u, io, result < 0 ? result : -EIO);
		return;
	} else {
		blk_io_advance(io, (uint64_t)result);
		if (io->bytes == 0) {
			finish(u, io, 0);
			return;
		}
	}
	if (!queue_up(u, io))
		finish(u, io, -EIO);
}

/* Takes all completions that are there; true if any. */
static bool reap(struct uring_backend *u)
{
	struct io_uring_cqe *cqe;
	bool any = false;

	while (io_uring_peek_cqe(&u->ring, &cqe) == 0) {
		struct blk_io *io = io_uring_cqe_get_data(cqe);
		int result = cqe->res;

		io_uring_cqe_seen(&u->ring, cqe);
		any = true;
		if (io)
			complete(u, io, result);
	}
	return any;
}

static void uring_commit(struct blk_backend *b)
{
	struct uring_backend *u = uring_of(b);

	while (io_uring_sq_ready(&u->ring) && io_uring_submit(&u->ring) == -EINTR)
		;
	/* What the kernel did not take now (no memory) is tried again from the loop. */
	if (io_uring_sq_ready(&u->ring))
		fd_eventfd_signal(u->event_fd);
}

static void on_completion(void *arg, int fd, unsigned events)
{
	struct uring_backend *u = arg;

	fd_eventfd_drain(fd);
	if (reap(u))
		u->idle(u->idle_arg);
	uring_commit(&u->b);
}

static int uring_attach(struct blk_backend *b, struct event_loop *loop, event_fn idle, void *arg)
{
	struct uring_backend *u = uring_of(b);

	u->idle = idle;
	u->idle_arg = arg;
	u->source = event_loop_add_fd(loop, u->event_fd, EVENT_READABLE, on_completion, u);
	return u->source ? 0 : -ENOMEM;
}

static void uring_detach(struct blk_backend *b)
{
	struct uring_backend *u = uring_of(b);

	u->source = event_source_free(u->source);
}

static int uring_submit(struct blk_backend *b, struct blk_io *io)
{
	struct uring_backend *u = uring_of(b);

	if (io->op == BLK_FLUSH && atomic_load(&u->file->flush_failed)) {
		io->done(io, -EIO);
		return 0;
	}
	if (io->op != BLK_FLUSH && io->bytes == 0) {
		io->done(io, 0);
		return 0;
	}
	if (u->in_flight == LIMIT_BLK_INFLIGHT || !queue_up(u, io))
		return -EAGAIN;
	u->in_flight++;
	return 0;
}

/* Best effort: what has begun ends as it would have. */
static void cancel_all(struct uring_backend *u)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

	if (!sqe)
		return;
	io_uring_prep_cancel64(sqe, 0, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
	io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
	io_uring_sqe_set_data(sqe, NULL);
}

static bool uring_drain(struct blk_backend *b, bool cancel)
{
	struct uring_backend *u = uring_of(b);
	int ret = 0;

	uring_commit(b);
	u->cancelling = cancel;
	if (cancel && u->in_flight)
		cancel_all(u);
	while (u->in_flight) {
		ret = io_uring_submit_and_wait(&u->ring, 1);
		if (ret < 0 && ret != -EINTR && ret != -EAGAIN && ret != -EBUSY)
			break;
		reap(u);
	}
	u->cancelling = false;
	if (u->in_flight)
		log_error("io_uring: cannot wait for requests in flight: error %d", -ret);
	return !u->in_flight;
}

static void uring_destroy(struct blk_backend *b)
{
	struct uring_backend *u = uring_of(b);

	io_uring_queue_exit(&u->ring);
	close(u->event_fd);
	blk_file_close(u->file);
	free(u);
}

static const struct blk_backend_ops uring_ops = {
	.name = "Async",
	.attach = uring_attach,
	.detach = uring_detach,
	.submit = uring_submit,
	.commit = uring_commit,
	.drain = uring_drain,
	.destroy = uring_destroy,
};

/* The newest flags that the host's kernel knows; 0 or negative errno. */
static int ring_init(struct io_uring *ring)
{
	static const unsigned flags[] = {
		IORING_SETUP_R_DISABLED | IORING_SETUP_COOP_TASKRUN,
		IORING_SETUP_R_DISABLED,
	};
	int ret = -EINVAL;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flags) && ret == -EINVAL; i++)
		ret = io_uring_queue_init(RING_ENTRIES, ring, flags[i]);
	return ret;
}

/* Two calls that the library declares and, in some versions, does not export. */
static int ring_register(struct io_uring *ring, unsigned opcode, void *arg, unsigned n)
{
	return syscall(SYS_io_uring_register, ring->ring_fd, opcode, arg, n) < 0 ? -errno : 0;
}

static int restrict_ring(struct io_uring *ring)
{
	struct io_uring_restriction r[] = {
		{ .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_READV },
		{ .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_WRITEV },
		{ .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_FSYNC },
		{ .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_ASYNC_CANCEL },
		{ .opcode = IORING_RESTRICTION_SQE_FLAGS_REQUIRED, .sqe_flags = IOSQE_FIXED_FILE },
	};

	return ring_register(ring, IORING_REGISTER_RESTRICTIONS, r, ARRAY_SIZE(r));
}

static int ring_enable(struct uring_backend *u)
{
	unsigned workers[2] = { RING_WORKERS, RING_WORKERS };
	int ret;

	ret = io_uring_register_files(&u->ring, &u->file->fd, 1);
	if (ret < 0)
		return ret;
	ret = io_uring_register_eventfd(&u->ring, u->event_fd);
	if (ret < 0)
		return ret;
	ret = restrict_ring(&u->ring);
	if (ret < 0)
		return ret;
	/* Not essential, and unknown to kernels before 5.15. */
	(void)io_uring_register_iowq_max_workers(&u->ring, workers);
	return ring_register(&u->ring, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
}

int blk_uring_backend_new(struct blk_file *f, struct blk_backend **ret)
{
	struct uring_backend *u = calloc(1, sizeof(*u));
	int code = -ENOMEM;

	if (!u)
		return code;
	u->file = f;
	code = fd_eventfd_new();
	if (code < 0)
		goto undo_memory;
	u->event_fd = code;
	code = ring_init(&u->ring);
	if (code < 0)
		goto undo_eventfd;
	code = ring_enable(u);
	if (code < 0)
		goto undo_ring;
	u->b.ops = &uring_ops;
	u->b.size = f->size;
	u->b.read_only = f->read_only;
	*ret = &u->b;
	return 0;

undo_ring:
	io_uring_queue_exit(&u->ring);
undo_eventfd:
	close(u->event_fd);
undo_memory:
	free(u);
	return code;
}
