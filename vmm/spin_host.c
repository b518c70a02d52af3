/*
 * Host checks. Threads: main. Locks: none.
 * Not here: what only one architecture has (arch_spin_check_host()).
 */
#include "vmm/spin_host.h"

#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/host_file.h"
#include "vmm/sched_stat.h"

#define CGROUP_BYTES 256

void spin_check_add(struct spin_checks *checks, const char *name, enum spin_check_status status,
		    const char *fmt, ...)
{
	struct spin_check *c;
	va_list args;

	if (checks->count == SPIN_CHECKS)
		return;
	c = &checks->rows[checks->count++];
	c->name = name;
	c->status = status;
	va_start(args, fmt);
	vsnprintf(c->text, sizeof(c->text), fmt, args);
	va_end(args);
}

/* The kernel */

/*
 * The loop over vCPUs, reworked in 6.13, kept its own counter where the index of the
 * vCPU that was helped belongs, until a fix that 6.19 has and stable kernels may have.
 */
static bool helps_the_wrong_vcpu(unsigned version)
{
	return version >= 613 && version < 619;
}

/* EEVDF ignored whom yield_to() had named, from 6.6 until the feature PICK_BUDDY. */
static bool ignores_who_is_named(unsigned version)
{
	return version >= 606 && version < 614;
}

static void check_buddy(const char *root, const char *release, struct spin_checks *checks)
{
	char features[1024];

	if (host_file_read(root, "/sys/kernel/debug/sched/features", features,
			   sizeof(features)) < 0) {
		spin_check_add(checks, "directed_yield", SPIN_CHECK_WARN,
			       "Linux %s: the scheduler may ignore whom KVM yields to; "
			       "sched/features, which would tell, cannot be read", release);
		return;
	}
	if (strstr(features, "PICK_BUDDY") && !strstr(features, "NO_PICK_BUDDY"))
		spin_check_add(checks, "directed_yield", SPIN_CHECK_OK,
			       "Linux %s has PICK_BUDDY", release);
	else
		spin_check_add(checks, "directed_yield", SPIN_CHECK_WARN,
			       "Linux %s without PICK_BUDDY: the scheduler ignores whom KVM "
			       "yields to", release);
}

/* 601 for "6.1.0-30-amd64"; 0 if there is no such number. */
static unsigned version_of(const char *release)
{
	char *end;
	unsigned long major = strtoul(release, &end, 10), minor;

	if (*end != '.' || end[1] < '0' || end[1] > '9')
		return 0;
	minor = strtoul(end + 1, NULL, 10);
	return major > 99 || minor > 99 ? 0 : (unsigned)(major * 100 + minor);
}

void spin_check_kernel(const char *root, const char *release, struct spin_checks *checks)
{
	unsigned version = version_of(release);

	if (!version) {
		spin_check_add(checks, "directed_yield", SPIN_CHECK_UNKNOWN,
			       "kernel release \"%.60s\" has no number", release);
		return;
	}
	if (helps_the_wrong_vcpu(version))
		spin_check_add(checks, "directed_yield", SPIN_CHECK_WARN,
			       "Linux %.60s: without a later fix KVM yields to the wrong vCPU",
			       release);
	else if (ignores_who_is_named(version))
		check_buddy(root, release, checks);
	else
		spin_check_add(checks, "directed_yield", SPIN_CHECK_OK,
			       "Linux %.60s: nothing is known against it", release);
}

/* The threads */

/* yield_to() does nothing for these classes. */
static bool is_real_time(uint32_t policy)
{
	return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

static void check_class(const char *root, const pid_t *tids, uint32_t count,
			struct spin_checks *checks)
{
	struct sched_place place;
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (sched_place_read(root, tids[i], &place) < 0) {
			spin_check_add(checks, "scheduling_class", SPIN_CHECK_UNKNOWN,
				       "vCPU %u has no thread that tells", i);
			return;
		}
		if (is_real_time(place.policy)) {
			spin_check_add(checks, "scheduling_class", SPIN_CHECK_WARN,
				       "vCPU %u has scheduling policy %u: no directed yield "
				       "reaches it", i, place.policy);
			return;
		}
	}
	spin_check_add(checks, "scheduling_class", SPIN_CHECK_OK,
		       "no vCPU thread is a real-time one");
}

struct cgroup {
	bool unified; /* version 2 */
	char path[CGROUP_BYTES];
};

/* Is "cpu" among these, separated by commas? */
static bool has_cpu(const char *controllers, size_t len)
{
	const char *end = controllers + len;
	size_t n;

	for (; controllers < end; controllers += n + 1) {
		n = strcspn(controllers, ",:");
		if (n == 3 && !memcmp(controllers, "cpu", 3))
			return true;
	}
	return false;
}

/* Lines are "id:controllers:path"; that of version 2 has no controllers. */
static bool find_cpu_cgroup(const char *text, struct cgroup *ret)
{
	bool found = false;
	const char *line, *controllers, *path;
	size_t n;

	for (line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		n = strcspn(line, "\n");
		controllers = memchr(line, ':', n);
		path = controllers ? memchr(controllers + 1, ':',
					    n - (size_t)(controllers + 1 - line)) : NULL;
		if (!path)
			continue;
		controllers++;
		n -= (size_t)(path + 1 - line);
		if (n >= sizeof(ret->path) ||
		    (path > controllers && !has_cpu(controllers, (size_t)(path - controllers))))
			continue;
		if (path == controllers && found)
			continue; /* the controller is version 1's */
		ret->unified = path == controllers;
		memcpy(ret->path, path + 1, n);
		ret->path[n] = '\0';
		found = true;
	}
	return found;
}

static bool read_cgroup(const char *root, pid_t tid, struct cgroup *ret)
{
	char path[64], text[2048];

	snprintf(path, sizeof(path), "/proc/self/task/%d/cgroup", (int)tid);
	return host_file_read(root, path, text, sizeof(text)) == 0 && find_cpu_cgroup(text, ret);
}

/* True if this one group has a quota; `quota` shows it. */
static bool has_quota(const char *root, const struct cgroup *g, char *quota, size_t size)
{
	char path[CGROUP_BYTES + 64];
	int64_t us;

	if (g->unified) {
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", g->path);
		return host_file_read(root, path, quota, size) == 0 && quota[0] &&
		       strncmp(quota, "max", 3) != 0;
	}
	snprintf(path, sizeof(path), "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", g->path);
	if (host_file_number(root, path, &us) < 0 || us < 0)
		return false;
	snprintf(quota, size, "%lld", (long long)us);
	return true;
}

/* From the group up to the root: a quota of any of them throttles. */
static void check_quota(const char *root, const struct cgroup *group, struct spin_checks *checks)
{
	struct cgroup g = *group;
	char quota[48], *slash;

	for (;;) {
		if (has_quota(root, &g, quota, sizeof(quota))) {
			spin_check_add(checks, "cpu_quota", SPIN_CHECK_WARN,
				       "%.60s has a quota (%s): a holder may be throttled, and "
				       "no yield reaches it", g.path, quota);
			return;
		}
		slash = strrchr(g.path, '/');
		if (!slash)
			break;
		*slash = '\0';
	}
	spin_check_add(checks, "cpu_quota", SPIN_CHECK_OK, "no quota is seen");
}

static void check_cgroups(const char *root, const pid_t *tids, uint32_t count,
			  struct spin_checks *checks)
{
	struct cgroup first, other;
	uint32_t i;

	if (count == 0 || !read_cgroup(root, tids[0], &first)) {
		spin_check_add(checks, "one_cgroup", SPIN_CHECK_UNKNOWN,
			       "the cgroup of vCPU 0 cannot be read");
		return;
	}
	for (i = 1; i < count; i++) {
		if (!read_cgroup(root, tids[i], &other) || !strcmp(first.path, other.path))
			continue;
		spin_check_add(checks, "one_cgroup", SPIN_CHECK_WARN,
			       "vCPU 0 is in %.40s, vCPU %u in %.40s: yields across groups are weak",
			       first.path, i, other.path);
		break;
	}
	if (i == count)
		spin_check_add(checks, "one_cgroup", SPIN_CHECK_OK, "all vCPUs are in %.100s",
			       first.path);
	check_quota(root, &first, checks);
}

void spin_check_threads(const char *root, const pid_t *tids, uint32_t count,
			struct spin_checks *checks)
{
	check_class(root, tids, count, checks);
	check_cgroups(root, tids, count, checks);
}
