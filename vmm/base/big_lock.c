/*
 * The big lock. Threads and locks: see big_lock.h.
 */
#include "vmm/base/big_lock.h"

#include "vmm/base/lock.h"

static struct lock big_lock;
static bool is_on;
static _Thread_local bool is_held;

void big_lock_enable(void)
{
	if (is_on)
		return;
	lock_init(&big_lock, LOCK_LEVEL_GLOBAL, "big-lock", "");
	is_on = true;
}

bool big_lock_is_on(void)
{
	return is_on;
}

void big_lock_take(void) TSA_UNCHECKED
{
	lock_take(&big_lock);
	is_held = true;
}

void big_lock_release(void) TSA_UNCHECKED
{
	is_held = false;
	lock_release(&big_lock);
}

bool big_lock_yield(void)
{
	if (!is_held)
		return false;
	big_lock_release();
	return true;
}
