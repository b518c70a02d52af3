/*
 * The profiler's side of a lock, for lock.c.
 */
#ifndef LULL_BASE_LOCK_PROFILE_H
#define LULL_BASE_LOCK_PROFILE_H

#include "vmm/base/lock.h"

/* Any thread. From here on reports see it. */
void lock_profile_add(struct lock_profile *p, enum lock_level level, const char *type,
		      const char *object);
void lock_profile_remove(struct lock_profile *p);

/*
 * A wait of `ns` nanoseconds at that site is over. With the lock held (for a
 * condition, the lock that goes with it), which makes its counters have one
 * writer at a time.
 */
void lock_profile_charge(struct lock_profile *p, const struct lock_site *site, uint64_t ns);

#endif
