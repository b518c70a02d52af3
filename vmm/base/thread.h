/*
 * Starting a thread: all signals masked, a stack of our size, a name.
 */
#ifndef LULL_BASE_THREAD_H
#define LULL_BASE_THREAD_H

#include <pthread.h>

/*
 * Small and of one size: large stacks are given transparent huge pages by some
 * hosts, 2 MiB each. Deep enough for the sanitizers' frames.
 */
#define THREAD_STACK_BYTES (256u * 1024u)

/*
 * Runs `fn(arg)` on a new thread whose signals are all masked. A name longer
 * than the kernel's 15 characters is cut. 0 or a negative errno.
 */
int thread_start(pthread_t *ret, const char *name, void *(*fn)(void *arg), void *arg);

#endif
