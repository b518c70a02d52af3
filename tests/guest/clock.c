/*
 * clock: asks Linux's clock device for interrupts, as programs do.
 *
 * usage: clock alarm SECONDS      RTC_WKALM_SET that far ahead, as rtcwake does
 *        clock day-alarm SECONDS  RTC_ALM_SET and RTC_AIE_ON: no date
 *        clock updates N          that many update interrupts
 *        clock periodic HZ        periodic interrupts during two seconds
 *
 * Prints "WHAT ms=N count=N flags=0xN": how long it took, the interrupts that the
 * device counted, and what they were. Status 1 with a reason if it will not.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/rtc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { PERIODIC_MS = 2000, TIMEOUT_MS = 30000 };

struct seen {
	unsigned long count, flags;
};

static void check(long result, const char *what)
{
	if (result >= 0)
		return;
	printf("error %s: %s\n", what, strerror(errno));
	exit(1);
}

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

// What the device has counted; waits for the first.
static void wait_for_interrupt(int fd, struct seen *seen)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	unsigned long data;

	errno = ETIMEDOUT;
	check(poll(&p, 1, TIMEOUT_MS) > 0 ? 0 : -1, "no interrupt");
	check(read(fd, &data, sizeof(data)), "read");
	seen->count += data >> 8;
	seen->flags |= data & 0xff;
}

static struct rtc_time time_ahead(int fd, long seconds)
{
	struct rtc_time t;
	struct tm tm;
	time_t at;

	check(ioctl(fd, RTC_RD_TIME, &t), "RTC_RD_TIME");
	tm = (struct tm){.tm_sec = t.tm_sec, .tm_min = t.tm_min, .tm_hour = t.tm_hour,
			 .tm_mday = t.tm_mday, .tm_mon = t.tm_mon, .tm_year = t.tm_year};
	at = timegm(&tm) + seconds;
	gmtime_r(&at, &tm);
	return (struct rtc_time){.tm_sec = tm.tm_sec, .tm_min = tm.tm_min, .tm_hour = tm.tm_hour,
				 .tm_mday = tm.tm_mday, .tm_mon = tm.tm_mon, .tm_year = tm.tm_year};
}

static void wait_for_alarm(int fd, long seconds, struct seen *seen)
{
	struct rtc_wkalrm alarm = {.enabled = 1, .time = time_ahead(fd, seconds)};

	check(ioctl(fd, RTC_WKALM_SET, &alarm), "RTC_WKALM_SET");
	wait_for_interrupt(fd, seen);
	check(ioctl(fd, RTC_AIE_OFF, 0), "RTC_AIE_OFF");
}

static void wait_for_day_alarm(int fd, long seconds, struct seen *seen)
{
	struct rtc_time t = time_ahead(fd, seconds);

	check(ioctl(fd, RTC_ALM_SET, &t), "RTC_ALM_SET");
	check(ioctl(fd, RTC_AIE_ON, 0), "RTC_AIE_ON");
	wait_for_interrupt(fd, seen);
	check(ioctl(fd, RTC_AIE_OFF, 0), "RTC_AIE_OFF");
}

static void wait_for_updates(int fd, long n, struct seen *seen)
{
	check(ioctl(fd, RTC_UIE_ON, 0), "RTC_UIE_ON");
	while (n-- > 0)
		wait_for_interrupt(fd, seen);
	check(ioctl(fd, RTC_UIE_OFF, 0), "RTC_UIE_OFF");
}

static void count_periodic(int fd, long hz, struct seen *seen)
{
	long end;

	check(ioctl(fd, RTC_IRQP_SET, hz), "RTC_IRQP_SET");
	check(ioctl(fd, RTC_PIE_ON, 0), "RTC_PIE_ON");
	end = now_ms() + PERIODIC_MS;
	while (now_ms() < end)
		wait_for_interrupt(fd, seen);
	check(ioctl(fd, RTC_PIE_OFF, 0), "RTC_PIE_OFF");
}

static const struct {
	const char *name;
	void (*run)(int fd, long number, struct seen *seen);
} commands[] = {
	{"alarm", wait_for_alarm},
	{"day-alarm", wait_for_day_alarm},
	{"updates", wait_for_updates},
	{"periodic", count_periodic},
};

int main(int argc, char **argv)
{
	struct seen seen = {0};
	long number = argc == 3 ? atol(argv[2]) : 0;
	long start;
	size_t i;
	int fd;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (number <= 0 || strcmp(argv[1], commands[i].name) != 0)
			continue;
		fd = open("/dev/rtc0", O_RDONLY);
		check(fd, "/dev/rtc0");
		start = now_ms();
		commands[i].run(fd, number, &seen);
		printf("%s ms=%ld count=%lu flags=0x%lx\n", argv[1], now_ms() - start, seen.count,
		       seen.flags);
		return 0;
	}
	printf("error usage\n");
	return 1;
}
