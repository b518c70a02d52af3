/*
 * Small text files of the host's kernel. Threads: any. Locks: none.
 */
#include "vmm/host_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/cleanup.h"

#define PATH_BYTES 512

int host_file_read(const char *root, const char *path, char *text, size_t size)
{
	_cleanup_close_ int fd = -EBADF;
	char full[PATH_BYTES];
	ssize_t got;

	text[0] = '\0';
	if ((size_t)snprintf(full, sizeof(full), "%s%s", root, path) >= sizeof(full))
		return -ENAMETOOLONG;
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	got = read(fd, text, size - 1);
	if (got < 0)
		return -errno;
	text[got] = '\0';
	while (got > 0 && text[got - 1] == '\n')
		text[--got] = '\0';
	return 0;
}

int host_file_number(const char *root, const char *path, int64_t *ret)
{
	char text[32], *end;
	int code = host_file_read(root, path, text, sizeof(text));

	if (code < 0)
		return code;
	errno = 0;
	*ret = strtoll(text, &end, 10);
	return end == text || *end || errno ? -EINVAL : 0;
}
