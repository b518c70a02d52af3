/*
 * Thread creation. Threads: any. Locks: none.
 */
#include "vmm/base/thread.h"

#include <signal.h>
#include <stdio.h>

int thread_start(pthread_t *ret, const char *name, void *(*fn)(void *arg), void *arg)
{
	char short_name[16];
	pthread_attr_t attr;
	sigset_t all, old;
	int code;

	snprintf(short_name, sizeof(short_name), "%s", name);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	code = pthread_create(ret, &attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (code == 0)
		pthread_setname_np(*ret, short_name);
	return -code;
}
