/*
 * What the host's scheduler says of one thread of ours, from procfs.
 * Threads: any. Locks: none.
 */
#ifndef LULL_SCHED_STAT_H
#define LULL_SCHED_STAT_H

#include <stdint.h>
#include <sys/types.h>

struct sched_stat {
	uint64_t run_ns;   /* on a host CPU */
	uint64_t delay_ns; /* runnable, while another thread had the host CPU */
	uint64_t slices;   /* how often it was put on one */
};

/* "run delay slices", as in /proc/self/task/TID/schedstat; -EPROTO for other text. */
int sched_stat_parse(const char *text, struct sched_stat *ret);
/* `root` is "" but in tests. A negative errno if there is no such thread or file. */
int sched_stat_read(const char *root, pid_t tid, struct sched_stat *ret);

struct sched_place {
	uint32_t cpu;    /* that it ran on last */
	uint32_t policy; /* SCHED_* */
};

/* From /proc/self/task/TID/stat; the name in it may hold anything but a NUL. */
int sched_place_parse(const char *text, struct sched_place *ret);
int sched_place_read(const char *root, pid_t tid, struct sched_place *ret);

#endif
