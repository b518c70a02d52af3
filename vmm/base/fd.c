/*
 * Descriptor helpers. Threads: any. Locks: none.
 */
#include "vmm/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/cleanup.h"

int fd_read_all(int fd, void *buf, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = read(fd, (char *)buf + done, n - done);

		if (got == 0)
			return -ENODATA;
		if (got > 0)
			done += (size_t)got;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

int fd_pread_all(int fd, void *buf, size_t n, uint64_t offset)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = pread(fd, (char *)buf + done, n - done, (off_t)(offset + done));

		if (got == 0)
			return -ENODATA;
		if (got > 0)
			done += (size_t)got;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

int fd_write_all(int fd, const void *buf, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t put = write(fd, (const char *)buf + done, n - done);

		if (put >= 0)
			done += (size_t)put;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

int fd_eventfd_new(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

void fd_eventfd_signal(int fd)
{
	uint64_t one = 1;

	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

uint64_t fd_eventfd_drain(int fd)
{
	uint64_t count;
	ssize_t got;

	do {
		got = read(fd, &count, sizeof(count));
	} while (got < 0 && errno == EINTR);
	return got == sizeof(count) ? count : 0;
}

int fd_set_nonblocking(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

static int check_file_type(int fd, bool allow_block, const char *what, const char *path,
			   struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_set_path(err, -errno, what, path);
	if (S_ISREG(st.st_mode) || (allow_block && S_ISBLK(st.st_mode)))
		return 0;
	if (S_ISDIR(st.st_mode))
		return error_set_path(err, -EISDIR, what, path);
	return error_set(err, -EINVAL, "%s%s%s is not a regular file%s", what,
			 error_separator(what), path, allow_block ? " or block device" : "");
}

int fd_open_file(const char *path, bool writable, bool allow_block, const char *what,
		 struct error *err)
{
	int flags = (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	_cleanup_close_ int fd = open(path, flags);
	int ret;

	if (fd < 0)
		return error_set_path(err, -errno, what, path);
	ret = check_file_type(fd, allow_block, what, path, err);
	if (ret < 0)
		return ret;
	ret = fd_set_nonblocking(fd, false);
	if (ret < 0)
		return error_set_path(err, ret, what, path);
	return fd_take(&fd);
}

int fd_size(int fd, uint64_t *ret_size)
{
	struct stat st;
	uint64_t size;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode)) {
		*ret_size = (uint64_t)st.st_size;
		return 0;
	}
	if (!S_ISBLK(st.st_mode))
		return -EINVAL;
	if (ioctl(fd, BLKGETSIZE64, &size) < 0)
		return -errno;
	*ret_size = size;
	return 0;
}
