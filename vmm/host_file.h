/*
 * Small text files of the host's kernel: /sys, /proc. Never waits: these are
 * not storage. Threads: any. Locks: none.
 */
#ifndef LULL_HOST_FILE_H
#define LULL_HOST_FILE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Reads the file `root` + `path` as text without its final newline; what does
 * not fit is cut off. `root` is "" but in tests. 0 or a negative errno, and
 * then `text` is "".
 */
int host_file_read(const char *root, const char *path, char *text, size_t size);

/* As host_file_read() for a file with one number in it; -EINVAL if it has none. */
int host_file_number(const char *root, const char *path, int64_t *ret);

#endif
