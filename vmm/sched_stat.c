/*
 * Scheduler statistics of one thread. Threads: any. Locks: none.
 */
#include "vmm/sched_stat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/host_file.h"

/* proc_pid_stat(5) numbers its fields from 1; the third is the first behind the name. */
#define FIELD_AFTER_NAME 3
#define FIELD_PROCESSOR 39
#define FIELD_POLICY 41

/* One number and the blank before it. */
static int take_number(const char **text, uint64_t *ret)
{
	char *end;

	*text += strspn(*text, " ");
	if (**text < '0' || **text > '9')
		return -EPROTO;
	errno = 0;
	*ret = strtoull(*text, &end, 10);
	*text = end;
	return errno ? -EPROTO : 0;
}

int sched_stat_parse(const char *text, struct sched_stat *ret)
{
	struct sched_stat s;

	if (take_number(&text, &s.run_ns) < 0 || take_number(&text, &s.delay_ns) < 0 ||
	    take_number(&text, &s.slices) < 0 || *text)
		return -EPROTO;
	*ret = s;
	return 0;
}

static int read_task_file(const char *root, pid_t tid, const char *name, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)tid, name);
	return host_file_read(root, path, text, size);
}

int sched_stat_read(const char *root, pid_t tid, struct sched_stat *ret)
{
	char text[96];
	int code = read_task_file(root, tid, "schedstat", text, sizeof(text));

	return code < 0 ? code : sched_stat_parse(text, ret);
}

int sched_place_parse(const char *text, struct sched_place *ret)
{
	const char *p = strrchr(text, ')');
	uint64_t cpu = 0, policy = 0;
	unsigned field;

	if (!p || p[1] != ' ')
		return -EPROTO;
	p += 2;
	for (field = FIELD_AFTER_NAME; field < FIELD_PROCESSOR; field++) {
		p = strchr(p, ' ');
		if (!p)
			return -EPROTO;
		p++;
	}
	if (take_number(&p, &cpu) < 0)
		return -EPROTO;
	for (field = FIELD_PROCESSOR + 1; field <= FIELD_POLICY; field++) {
		if (take_number(&p, &policy) < 0)
			return -EPROTO;
	}
	if (cpu > UINT32_MAX || policy > UINT32_MAX)
		return -EPROTO;
	*ret = (struct sched_place){ .cpu = (uint32_t)cpu, .policy = (uint32_t)policy };
	return 0;
}

int sched_place_read(const char *root, pid_t tid, struct sched_place *ret)
{
	char text[1024];
	int code = read_task_file(root, tid, "stat", text, sizeof(text));

	return code < 0 ? code : sched_place_parse(text, ret);
}
