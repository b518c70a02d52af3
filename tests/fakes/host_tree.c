/*
 * Files of a host that is not this one.
 */
#include "host_tree.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[32];

const char *host_tree_new(void)
{
	snprintf(root, sizeof(root), "/tmp/lull-host-XXXXXX");
	return mkdtemp(root);
}

bool host_tree_put(const char *path, const char *text)
{
	char full[512], *slash;
	bool good;
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(full, 0700);
		*slash = '/';
	}
	f = fopen(full, "w");
	if (!f)
		return false;
	good = fputs(text, f) >= 0;
	return fclose(f) == 0 && good;
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *where)
{
	return remove(path);
}

void host_tree_free(void)
{
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
