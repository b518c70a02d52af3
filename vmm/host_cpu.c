/*
 * The host's CPUs by sysfs. Threads: any. Locks: none.
 */
#include "vmm/host_cpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/cleanup.h"

#define INDEXES 10     /* of caches that are looked at; there are 4 or 5 */
#define FILE_MAX 4096  /* bytes; sysfs shows a page at most */
#define LIST_PART_MAX 16

_Static_assert(LIMIT_HOST_CPUS == CPU_SETSIZE, "sets are libc's");

/* One line, without its end. A negative errno. */
static int read_line(const char *path, char *text, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

static int read_cache_file(const char *root, unsigned cpu, unsigned index, const char *name,
			   char *text, size_t size)
{
	char path[FILE_MAX];

	snprintf(path, sizeof(path), "%s/cpu%u/cache/index%u/%s", root, cpu, index, name);
	return read_line(path, text, size);
}

/* A number, with K behind it for sizes; 0 if there is none. */
static uint32_t read_cache_number(const char *root, unsigned cpu, unsigned index,
				  const char *name)
{
	char text[32], *end;
	unsigned long value;

	if (read_cache_file(root, cpu, index, name, text, sizeof(text)) < 0)
		return 0;
	value = strtoul(text, &end, 10);
	if ((*end && strcmp(end, "K") != 0) || value > UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

static int kind_of(uint32_t level, const char *type)
{
	if (level == 1)
		return !strcmp(type, "Instruction") ? TOPOLOGY_L1I : TOPOLOGY_L1D;
	if (level == 2)
		return TOPOLOGY_L2;
	return level == 3 ? TOPOLOGY_L3 : -1;
}

void host_cpu_caches(const char *root, unsigned cpu, struct topology_host *ret)
{
	char type[32];
	unsigned i;
	int kind;

	memset(ret, 0, sizeof(*ret));
	for (i = 0; i < INDEXES; i++) {
		if (read_cache_file(root, cpu, i, "type", type, sizeof(type)) < 0)
			continue;
		kind = kind_of(read_cache_number(root, cpu, i, "level"), type);
		if (kind < 0)
			continue;
		ret->caches[kind] = (struct topology_geometry){
			.size_kib = read_cache_number(root, cpu, i, "size"),
			.ways = read_cache_number(root, cpu, i, "ways_of_associativity"),
			.line = read_cache_number(root, cpu, i, "coherency_line_size"),
		};
	}
}

int host_cpu_llc(const char *root, unsigned cpu, cpu_set_t *ret)
{
	uint32_t level = 0, outermost = 0;
	char list[FILE_MAX];
	int found = -ENOENT;
	unsigned i;

	for (i = 0; i < INDEXES; i++) {
		level = read_cache_number(root, cpu, i, "level");
		if (level <= outermost)
			continue;
		outermost = level;
		found = i;
	}
	if (found < 0 || read_cache_file(root, cpu, found, "shared_cpu_list", list,
					 sizeof(list)) < 0)
		return -ENOENT;
	return host_cpu_parse_list(list, ret) == 0 && CPU_ISSET(cpu, ret) ? 0 : -ENOENT;
}

int host_cpu_online(const char *root, cpu_set_t *ret)
{
	char path[FILE_MAX], list[FILE_MAX];
	int code;

	snprintf(path, sizeof(path), "%s/online", root);
	code = read_line(path, list, sizeof(list));
	return code < 0 ? code : host_cpu_parse_list(list, ret);
}

int host_cpu_parse_list(const char *text, cpu_set_t *ret)
{
	unsigned long first, last;
	char *end;

	CPU_ZERO(ret);
	while (*text) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		first = last = strtoul(text, &end, 10);
		if (*end == '-' && end[1] >= '0' && end[1] <= '9')
			last = strtoul(end + 1, &end, 10);
		if (first > last || (*end && *end != ','))
			return -EINVAL;
		for (; first <= last && first < LIMIT_HOST_CPUS; first++)
			CPU_SET(first, ret);
		text = *end ? end + 1 : end;
	}
	return 0;
}

void host_cpu_print_list(const cpu_set_t *set, char *text, size_t size)
{
	unsigned first, last;
	size_t used = 0;

	text[0] = '\0';
	for (first = 0; first < LIMIT_HOST_CPUS && used + LIST_PART_MAX < size; first = last + 1) {
		last = first;
		if (!CPU_ISSET(first, set))
			continue;
		while (last + 1 < LIMIT_HOST_CPUS && CPU_ISSET(last + 1, set))
			last++;
		used += (size_t)snprintf(text + used, size - used, last > first ? "%s%u-%u" : "%s%u",
					 used ? "," : "", first, last);
	}
}
