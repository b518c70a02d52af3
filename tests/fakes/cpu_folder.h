/*
 * A folder that looks like /sys/devices/system/cpu, for hosts that a test makes up.
 * Threads: the test's. Locks: none.
 */
#ifndef LULL_CPU_FOLDER_H
#define LULL_CPU_FOLDER_H

#include <stddef.h>

/* An empty one; its path goes to `root`. */
void cpu_folder_make(char *root, size_t size);
void cpu_folder_remove(const char *root);
/* Cache number `index` of a CPU, lines of 64 bytes. */
void cpu_folder_cache(const char *root, unsigned cpu, unsigned index, unsigned level,
		      const char *type, const char *size, const char *ways,
		      const char *shared_cpu_list);
void cpu_folder_online(const char *root, const char *list);

#endif
