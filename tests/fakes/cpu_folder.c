/*
 * A folder like the host's CPUs in sysfs. Threads: the test's. Locks: none.
 */
#include "cpu_folder.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void put_file(const char *folder, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "we");
	if (!f)
		return;
	fprintf(f, "%s\n", text);
	fclose(f);
}

void cpu_folder_make(char *root, size_t size)
{
	snprintf(root, size, "/tmp/lull-cpus-XXXXXX");
	if (!mkdtemp(root))
		root[0] = '\0';
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at)
{
	return remove(path);
}

void cpu_folder_remove(const char *root)
{
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void cpu_folder_cache(const char *root, unsigned cpu, unsigned index, unsigned level,
		      const char *type, const char *size, const char *ways,
		      const char *shared_cpu_list)
{
	char folder[128], text[16];

	snprintf(folder, sizeof(folder), "%s/cpu%u", root, cpu);
	(void)mkdir(folder, 0700);
	snprintf(folder, sizeof(folder), "%s/cpu%u/cache", root, cpu);
	(void)mkdir(folder, 0700);
	snprintf(folder, sizeof(folder), "%s/cpu%u/cache/index%u", root, cpu, index);
	(void)mkdir(folder, 0700);
	snprintf(text, sizeof(text), "%u", level);
	put_file(folder, "level", text);
	put_file(folder, "type", type);
	put_file(folder, "size", size);
	put_file(folder, "ways_of_associativity", ways);
	put_file(folder, "coherency_line_size", "64");
	put_file(folder, "shared_cpu_list", shared_cpu_list);
}

void cpu_folder_online(const char *root, const char *list)
{
	put_file(root, "online", list);
}
