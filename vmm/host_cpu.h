/*
 * What the host's sysfs says of its CPUs. `root` is HOST_CPU_ROOT, or a folder
 * that a test has made. Files that are missing, or not as they should be, count
 * as "not known". Pure functions of the file system; any thread.
 */
#ifndef LULL_HOST_CPU_H
#define LULL_HOST_CPU_H

#include <sched.h>

#include "vmm/topology.h"

#define HOST_CPU_ROOT "/sys/devices/system/cpu"

/* Caches of one CPU; a size of 0 where there is none, or it is not known. */
void host_cpu_caches(const char *root, unsigned cpu, struct topology_host *ret);

/* The CPUs that share the outermost cache with this one. -ENOENT if it is not known. */
int host_cpu_llc(const char *root, unsigned cpu, cpu_set_t *ret);

/* The CPUs that are online. A negative errno. */
int host_cpu_online(const char *root, cpu_set_t *ret);

/* "0-3,8" to a set. -EINVAL; CPUs from LIMIT_HOST_CPUS on are passed over. */
int host_cpu_parse_list(const char *text, cpu_set_t *ret);
/* And back, for messages; cut where `size` ends. */
void host_cpu_print_list(const cpu_set_t *set, char *text, size_t size);

#endif
