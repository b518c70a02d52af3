/*
 * The thread of one device: an event loop of its own, and nothing shared with
 * other devices. Its name ("dev rootfs") and tid are reported to clients, so
 * that they can pin it.
 */
#ifndef LULL_DEVICE_THREAD_H
#define LULL_DEVICE_THREAD_H

#include <sys/types.h>

#include "vmm/base/error.h"
#include "vmm/base/lock.h"
#include "vmm/event_loop.h"

struct device_thread;

/* Starts a thread, all signals masked. Main thread. */
struct device_thread *device_thread_new(const char *id, struct error *err);
/* Stops its loop and joins it. NULL allowed. Main thread. */
struct device_thread *device_thread_free(struct device_thread *t);

/* Sources may be added to it by the device's thread, or by main before start posts. */
struct event_loop *device_thread_loop(struct device_thread *t);
pid_t device_thread_tid(const struct device_thread *t);

/*
 * Any thread but its own: runs `fn(arg)` on the thread and waits for it. For
 * the few places where the guest must not go on before the device has stopped
 * (reset) and for destruction. The wait is charged to the call site. -ENOMEM, or 0.
 */
#define device_thread_call(t, fn, arg) device_thread_call_at((t), (fn), (arg), LOCK_SITE)
int device_thread_call_at(struct device_thread *t, event_fn fn, void *arg,
			  const struct lock_site *site);

#endif
