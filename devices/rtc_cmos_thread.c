/*
 * The clock's timer thread. It sleeps on two timerfds and an eventfd by which
 * register writes, and reads of C that a tick waits for, wake it. Where no
 * interrupt is enabled no timer is armed.
 *
 * Threads: rtc_poke() on any; start and fini on main; the rest on the device's.
 * Locks: none; the interrupt is raised without any of user space.
 * Not here: what is due when (rtc_cmos_timer.c).
 */
#include "devices/rtc_cmos_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/fd.h"

#define NS_PER_SECOND 1000000000ll

void rtc_poke(struct rtc *r)
{
	if (r->poke_fd >= 0)
		fd_eventfd_signal(r->poke_fd);
}

/*
 * Sets flags, and IRQF to what register B lets through; true if that raises it.
 * Whoever reads C takes all bits at once.
 */
static bool set_flags(struct rtc *r, uint8_t flags, uint8_t b)
{
	uint8_t old = atomic_load(&r->c), new;

	do {
		new = (old | flags) & RTC_C_FLAGS;
		if (new & b & RTC_B_ENABLES)
			new |= RTC_C_IRQF;
	} while (!atomic_compare_exchange_weak(&r->c, &old, new));
	return (new & RTC_C_IRQF) && !(old & RTC_C_IRQF);
}

struct rtc_cmos_wakeup rtc_cmos_run_timer(struct device *d)
{
	struct rtc *r = (struct rtc *)d;
	struct rtc_time t = rtc_snapshot(r);
	struct rtc_now now = rtc_read_clocks(r);
	struct rtc_due due = rtc_timer_run(&r->timer, &t, now, atomic_load(&r->c) & RTC_C_PF);

	atomic_store(&r->awaits_read, due.awaits_read);
	if (set_flags(r, due.flags, t.b))
		irq_line_pulse(&r->line);
	/* Ordered after the store: a guest that read C before it did not poke us. */
	if (due.awaits_read && !(atomic_load(&r->c) & RTC_C_PF))
		due.monotonic_ns = now.monotonic_ns;
	return (struct rtc_cmos_wakeup){ due.wall_ns, due.monotonic_ns };
}

/* Arms a timer for an absolute time, or disarms it; it is not readable any more. */
static int arm(int fd, int64_t ns, int flags)
{
	struct itimerspec at = { .it_value = { 0 } };

	if (ns == RTC_NEVER) {
		flags = 0;
	} else {
		ns = ns > 0 ? ns : 1; /* zero disarms */
		at.it_value.tv_sec = (time_t)(ns / NS_PER_SECOND);
		at.it_value.tv_nsec = (long)(ns % NS_PER_SECOND);
	}
	return timerfd_settime(fd, TFD_TIMER_ABSTIME | flags, &at, NULL) < 0 ? -errno : 0;
}

static void serve(struct rtc *r)
{
	struct rtc_cmos_wakeup next = { RTC_NEVER, RTC_NEVER };

	if (!r->is_quiesced)
		next = rtc_cmos_run_timer(&r->dev);
	(void)arm(r->monotonic_fd, next.monotonic_ns, 0);
	/* The clock was set since we looked at it: once more. */
	if (arm(r->wall_fd, next.wall_ns, TFD_TIMER_CANCEL_ON_SET) == -ECANCELED)
		rtc_poke(r);
}

static void on_timer(void *arg, int fd, unsigned events)
{
	serve(arg);
}

static void on_poke(void *arg, int fd, unsigned events)
{
	fd_eventfd_drain(fd);
	serve(arg);
}

void rtc_thread_quiesce(struct device *d)
{
	struct rtc *r = (struct rtc *)d;

	r->is_quiesced = true;
	serve(r);
}

void rtc_thread_unquiesce(struct device *d)
{
	struct rtc *r = (struct rtc *)d;

	r->is_quiesced = false;
	serve(r);
}

/* ---- start and end ------------------------------------------------------------------------ */

void rtc_thread_init(struct rtc *r)
{
	r->poke_fd = -EBADF;
	r->wall_fd = -EBADF;
	r->monotonic_fd = -EBADF;
}

static int open_timer(clockid_t clock, struct error *err)
{
	int fd = timerfd_create(clock, TFD_CLOEXEC | TFD_NONBLOCK);

	return fd < 0 ? error_set_errno(err, -errno, "rtc: cannot make a timer") : fd;
}

static int open_fds(struct rtc *r, struct error *err)
{
	r->wall_fd = open_timer(CLOCK_REALTIME, err);
	if (r->wall_fd < 0)
		return r->wall_fd;
	r->monotonic_fd = open_timer(CLOCK_MONOTONIC, err);
	if (r->monotonic_fd < 0)
		return r->monotonic_fd;
	r->poke_fd = fd_eventfd_new();
	if (r->poke_fd < 0)
		return error_set_errno(err, r->poke_fd, "rtc: cannot make an eventfd");
	return 0;
}

struct attach {
	struct rtc *rtc;
	bool is_done;
};

static void attach_on_thread(void *arg)
{
	struct attach *a = arg;
	struct rtc *r = a->rtc;
	struct event_loop *loop = device_thread_loop(r->dev.thread);

	a->is_done = event_loop_add_fd(loop, r->wall_fd, EVENT_READABLE, on_timer, r) &&
		     event_loop_add_fd(loop, r->monotonic_fd, EVENT_READABLE, on_timer, r) &&
		     event_loop_add_fd(loop, r->poke_fd, EVENT_READABLE, on_poke, r);
}

int rtc_thread_start(struct device *d, struct error *err)
{
	struct rtc *r = (struct rtc *)d;
	struct attach a = { .rtc = r };
	int ret = open_fds(r, err);

	if (ret < 0)
		return ret;
	d->thread = device_thread_new(d->id, err);
	if (!d->thread)
		return -ENOMEM;
	ret = device_thread_call(d->thread, attach_on_thread, &a);
	if (ret == 0 && !a.is_done)
		ret = -ENOMEM;
	if (ret < 0)
		return error_set_errno(err, ret, "rtc: no memory for its event loop");
	return 0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void rtc_thread_fini(struct rtc *r)
{
	r->dev.thread = device_thread_free(r->dev.thread);
	close_fd(r->poke_fd);
	close_fd(r->monotonic_fd);
	close_fd(r->wall_fd);
	rtc_thread_init(r);
}
