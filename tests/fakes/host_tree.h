/*
 * Files of a host that is not this one, /sys and /proc, below a folder of the
 * test's. Threads: that of the test.
 */
#ifndef LULL_HOST_TREE_H
#define LULL_HOST_TREE_H

#include <stdbool.h>

/* Makes the folder; what is to be put before each path. NULL if that failed. */
const char *host_tree_new(void);
/* Makes or replaces a file, and the folders to it: "/sys/module/kvm/...". False if that failed. */
bool host_tree_put(const char *path, const char *text);
void host_tree_free(void);

#endif
