/*
 * Files of drives.
 *
 * Threads: opened on main; read, written and flushed on the device's thread;
 * closed on either.
 * Locks: open_files_lock for the list of open files; never held over I/O.
 * flush_failed is set under it, so that no file is opened past a failure.
 * Not here: io_uring (blk_uring.c). The file is never mapped, so one that is
 * truncated under us is an error of a request and no signal.
 */
#include "devices/virtio/blk_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "devices/virtio/iov.h"
#include "vmm/base/cleanup.h"
#include "vmm/base/fd.h"
#include "vmm/base/lock.h"
#include "vmm/base/log.h"

/*
 * Files that are open for drives. A lock of an open file description stands in
 * the way of our own second one too, so a drive that is given its file again
 * takes a duplicate of the first descriptor.
 */
static struct blk_file *open_files;
static struct lock open_files_lock = LOCK_STATIC(LOCK_LEVEL_DEVICE, "drive files");

/* Begins every error of opening, in the words that Firecracker's clients know. */
static const char cannot_open[] = "Unable to create the virtio block device: Virtio backend "
				  "error: Error manipulating the backing file";

static bool is_null_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

/* The null device is the one character device that makes a drive: an empty one. */
static int open_path(const char *path, bool writable, struct error *err)
{
	struct stat st;
	int fd;

	if (stat(path, &st) < 0 || !is_null_device(&st))
		return fd_open_file(path, writable, true, cannot_open, err);
	fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return error_set_path(err, -errno, cannot_open, path);
	if (fstat(fd, &st) < 0 || !is_null_device(&st)) {
		close(fd);
		return error_set(err, -EINVAL, "%s: %s changed while it was opened", cannot_open, path);
	}
	return fd;
}

static int set_lock(int fd, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };
	int ret;

	do {
		ret = fcntl(fd, F_OFD_SETLK, &lock);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

static short lock_type(const struct blk_file *f)
{
	return f->read_only ? F_RDLCK : F_WRLCK;
}

static bool same_file(const struct blk_file *a, const struct blk_file *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

/* This drive's file, if the same is open already. */
static struct blk_file *find_own_locked(const struct blk_file *f) TSA_REQUIRES(open_files_lock)
{
	struct blk_file *own;

	for (own = open_files; own; own = own->next) {
		if (same_file(own, f) && !strcmp(own->drive_id, f->drive_id))
			return own;
	}
	return NULL;
}

/*
 * Gives `f` a locked descriptor: `*fd`, or one that shares the lock of the same
 * drive's. A drive that is configured again for other access hands its lock on.
 */
static int lock_locked(struct blk_file *f, int *fd, const char *path, struct error *err)
	TSA_REQUIRES(open_files_lock)
{
	struct blk_file *own = find_own_locked(f);
	int ret;

	if (own && own->read_only == f->read_only) {
		f->fd = fcntl(own->fd, F_DUPFD_CLOEXEC, 0);
		return f->fd < 0 ? error_set_path(err, -errno, cannot_open, path) : 0;
	}
	if (own)
		set_lock(own->fd, F_UNLCK);
	ret = set_lock(*fd, lock_type(f));
	if (ret == -EAGAIN || ret == -EACCES) {
		if (own)
			set_lock(own->fd, lock_type(own));
		return error_set(err, -EBUSY, "%s: %s is in use by another drive or process",
				 cannot_open, path);
	}
	if (ret < 0)
		log_warn("drive %s: %s cannot be locked: error %d", f->drive_id, path, -ret);
	f->fd = fd_take(fd);
	return 0;
}

static void list_add_locked(struct blk_file *f) TSA_REQUIRES(open_files_lock)
{
	const struct blk_file *other;

	for (other = open_files; other; other = other->next) {
		if (same_file(other, f) && atomic_load(&other->flush_failed))
			atomic_store(&f->flush_failed, true);
	}
	f->next = open_files;
	open_files = f;
}

void blk_file_fail_flushes(struct blk_file *f)
{
	struct blk_file *other;

	lock_take(&open_files_lock);
	atomic_store(&f->flush_failed, true);
	for (other = open_files; other; other = other->next) {
		if (same_file(other, f))
			atomic_store(&other->flush_failed, true);
	}
	lock_release(&open_files_lock);
}

/* Fills `f` from the open descriptor, which it takes over or replaces by a shared one. */
static int adopt(struct blk_file *f, int *fd, const char *path, struct error *err)
{
	struct stat st;
	int ret;

	if (fstat(*fd, &st) < 0)
		return error_set_path(err, -errno, cannot_open, path);
	if (is_null_device(&st)) {
		f->fd = fd_take(fd);
		return 0;
	}
	ret = fd_size(*fd, &f->size);
	if (ret < 0)
		return error_set_path(err, ret, cannot_open, path);
	if (f->size % BLK_SECTOR_BYTES)
		log_warn("drive %s: the size of %s, %llu bytes, is not a multiple of %u: the guest "
			 "does not see the rest", f->drive_id, path, (unsigned long long)f->size,
			 BLK_SECTOR_BYTES);
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	lock_take(&open_files_lock);
	ret = lock_locked(f, fd, path, err);
	if (ret == 0)
		list_add_locked(f);
	lock_release(&open_files_lock);
	return ret;
}

int blk_file_open(const struct drive_config *config, struct blk_file **ret, struct error *err)
{
	struct blk_file *f = calloc(1, sizeof(*f));
	_cleanup_close_ int fd = -EBADF;
	int code;

	if (!f)
		return error_set(err, -ENOMEM, "no memory for drive %s", config->drive_id);
	f->fd = -EBADF;
	f->read_only = config->is_read_only;
	snprintf(f->drive_id, sizeof(f->drive_id), "%s", config->drive_id);
	fd = open_path(config->path_on_host, !f->read_only, err);
	code = fd < 0 ? fd : adopt(f, &fd, config->path_on_host, err);
	if (code < 0) {
		blk_file_close(f);
		return code;
	}
	*ret = f;
	return 0;
}

struct blk_file *blk_file_close(struct blk_file *f)
{
	struct blk_file **at;

	if (!f)
		return NULL;
	lock_take(&open_files_lock);
	for (at = &open_files; *at && *at != f; at = &(*at)->next)
		;
	if (*at)
		*at = f->next;
	lock_release(&open_files_lock);
	if (f->fd >= 0)
		close(f->fd);
	free(f);
	return NULL;
}

void blk_io_advance(struct blk_io *io, uint64_t n)
{
	io->offset += n;
	io->bytes -= n;
	iov_skip(&io->iov, &io->iov_count, n);
}

static int flush(struct blk_file *f)
{
	int ret;

	if (atomic_load(&f->flush_failed))
		return -EIO;
	do {
		ret = fdatasync(f->fd);
	} while (ret < 0 && errno == EINTR);
	if (ret == 0 || errno == EINVAL)
		return 0; /* the null device has nothing to flush and says EINVAL */
	ret = -errno;
	blk_file_fail_flushes(f);
	return ret;
}

int blk_file_transfer(struct blk_file *f, struct blk_io *io)
{
	ssize_t n;

	if (io->op == BLK_FLUSH)
		return flush(f);
	while (io->bytes) {
		if (io->op == BLK_READ)
			n = preadv(f->fd, io->iov, (int)io->iov_count, (off_t)io->offset);
		else
			n = pwritev2(f->fd, io->iov, (int)io->iov_count, (off_t)io->offset,
				     io->stable ? RWF_DSYNC : 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		blk_io_advance(io, (uint64_t)n);
	}
	return 0;
}

/* The engine */

struct file_backend {
	struct blk_backend b; /* first */
	struct blk_file *file;
};

static int sync_attach(struct blk_backend *b, struct event_loop *loop, event_fn idle, void *arg)
{
	return 0;
}

static void sync_detach(struct blk_backend *b)
{
}

static int sync_submit(struct blk_backend *b, struct blk_io *io)
{
	io->done(io, blk_file_transfer(((struct file_backend *)b)->file, io));
	return 0;
}

static void sync_commit(struct blk_backend *b)
{
}

static bool sync_drain(struct blk_backend *b, bool cancel)
{
	return true;
}

static void sync_destroy(struct blk_backend *b)
{
	blk_file_close(((struct file_backend *)b)->file);
	free(b);
}

static const struct blk_backend_ops sync_ops = {
	.name = "Sync",
	.attach = sync_attach,
	.detach = sync_detach,
	.submit = sync_submit,
	.commit = sync_commit,
	.drain = sync_drain,
	.destroy = sync_destroy,
};

struct blk_backend *blk_file_backend_new(struct blk_file *f)
{
	struct file_backend *fb = calloc(1, sizeof(*fb));

	if (!fb) {
		blk_file_close(f);
		return NULL;
	}
	fb->b.ops = &sync_ops;
	fb->b.size = f->size;
	fb->b.read_only = f->read_only;
	fb->file = f;
	return &fb->b;
}
