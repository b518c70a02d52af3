/* A drive of plain memory. Threads: as the contract says. */
#include "tests/devices/virtio/fake_backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "devices/virtio/iov.h"

static struct fake_backend *fake_of(struct blk_backend *b)
{
	return (struct fake_backend *)b;
}

static int transfer(struct fake_backend *f, struct blk_io *io)
{
	if (f->fail)
		return f->fail;
	f->stable += io->stable;
	if (io->op == BLK_FLUSH)
		f->flushes++;
	else if (io->offset + io->bytes > f->b.size)
		return -EIO;
	else if (io->op == BLK_READ)
		iov_write(io->iov, io->iov_count, 0, f->disk + io->offset, io->bytes);
	else
		iov_read(io->iov, io->iov_count, 0, f->disk + io->offset, io->bytes);
	return 0;
}

static void finish_held(struct fake_backend *f, int force)
{
	unsigned i, n = f->held_count;

	f->held_count = 0;
	for (i = 0; i < n; i++) {
		struct blk_io *io = f->held[i];

		io->done(io, force ? force : transfer(f, io));
	}
}

void fake_finish(void *fake)
{
	struct fake_backend *f = fake;

	finish_held(f, 0);
	f->idle(f->idle_arg);
}

static int fake_attach(struct blk_backend *b, struct event_loop *loop, event_fn idle, void *arg)
{
	struct fake_backend *f = fake_of(b);

	f->attached = true;
	f->idle = idle;
	f->idle_arg = arg;
	return 0;
}

static void fake_detach(struct blk_backend *b)
{
	fake_of(b)->attached = false;
}

static int fake_submit(struct blk_backend *b, struct blk_io *io)
{
	struct fake_backend *f = fake_of(b);

	if (f->slow && f->held_count == f->capacity)
		return -EAGAIN;
	f->submitted++;
	if (f->slow)
		f->held[f->held_count++] = io;
	else
		io->done(io, transfer(f, io));
	return 0;
}

static void fake_commit(struct blk_backend *b)
{
}

static bool fake_drain(struct blk_backend *b, bool cancel)
{
	struct fake_backend *f = fake_of(b);

	f->drains++;
	if (f->stuck && f->held_count)
		return false;
	f->cancels += cancel && f->held_count;
	finish_held(f, cancel ? -ECANCELED : 0);
	return true;
}

static void fake_destroy(struct blk_backend *b)
{
	struct fake_backend *f = fake_of(b);

	if (f->destroyed)
		*f->destroyed = true;
	free(f->disk);
	free(f);
}

static const struct blk_backend_ops fake_ops = {
	.name = "Fake",
	.attach = fake_attach,
	.detach = fake_detach,
	.submit = fake_submit,
	.commit = fake_commit,
	.drain = fake_drain,
	.destroy = fake_destroy,
};

struct fake_backend *fake_backend_new(uint64_t size)
{
	struct fake_backend *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->b.ops = &fake_ops;
	f->b.size = size;
	f->capacity = FAKE_HELD;
	f->disk = calloc(1, size ? size : 1);
	if (!f->disk) {
		free(f);
		return NULL;
	}
	return f;
}
