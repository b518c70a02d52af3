/*
 * RTC: its timer thread, with the host's clocks. Interrupts come by themselves,
 * pause holds them, and readers, writers and the thread race.
 */
#include "tests/devices/device_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "devices/rtc_cmos.h"
#include "vmm/base/lock.h"
#include "vmm/device_thread.h"

enum { REG_A = 10, REG_B = 11, REG_C = 12 };

#define B_24H 0x02u
#define B_UIE 0x10u
#define B_AIE 0x20u
#define B_PIE 0x40u
#define WAIT_MS 20000 /* for what comes at once on a machine that is not busy */

struct fixture {
	struct device *rtc;
	atomic_uint edges;
	atomic_bool stop;
};

static int count_edge(void *chip, uint32_t gsi, bool level)
{
	struct fixture *f = chip;

	atomic_fetch_add(&f->edges, level);
	return 0;
}

static const struct irq_ops irq_ops = { .set = count_edge };

static int setup_policy(void **state, enum rtc_lost_ticks policy)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct irq_line line = { .ops = &irq_ops, .chip = f, .gsi = 8 };
	const struct rtc_config config = { .lost_ticks = policy };
	const struct device_env env = { 0 };

	f->rtc = rtc_cmos_create(&env, &config, &line, NULL);
	*state = f;
	return f->rtc ? f->rtc->ops->start(f->rtc, NULL) : -1;
}

static int setup(void **state)
{
	return setup_policy(state, RTC_LOST_TICKS_SLEW);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	f->rtc->ops->destroy(f->rtc);
	free(f);
	return 0;
}

static unsigned rd(struct fixture *f, unsigned index)
{
	rtc_cmos_bus_ops.write(f->rtc, 0, 1, index);
	return (unsigned)rtc_cmos_bus_ops.read(f->rtc, 1, 1);
}

static void wr(struct fixture *f, unsigned index, unsigned value)
{
	rtc_cmos_bus_ops.write(f->rtc, 0, 1, index);
	rtc_cmos_bus_ops.write(f->rtc, 1, 1, value);
}

static int64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

static bool wait_for_edges(struct fixture *f, unsigned n)
{
	unsigned ms;

	for (ms = 0; ms < WAIT_MS && atomic_load(&f->edges) < n; ms++)
		usleep(1000);
	return atomic_load(&f->edges) >= n;
}

static void quiesce(void *rtc)
{
	((struct device *)rtc)->ops->quiesce(rtc);
}

static void unquiesce(void *rtc)
{
	((struct device *)rtc)->ops->unquiesce(rtc);
}

static void thread_is_named_for_reports(void **state)
{
	struct fixture *f = *state;
	char path[64], name[16] = "";
	FILE *file;

	assert_true(device_thread_tid(f->rtc->thread) > 0);
	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", device_thread_tid(f->rtc->thread));
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(name, sizeof(name), file));
	fclose(file);
	assert_string_equal(name, "dev rtc\n");
}

/* Ticks are as many as are due at some moment, and never more. */
static void ticks_keep_up_with_the_clock(void **state)
{
	struct fixture *f = *state;
	int64_t start, due = 0;
	unsigned answered = 0, edges, rounds;

	rd(f, REG_C);
	start = monotonic_ns();
	wr(f, REG_B, B_24H | B_PIE);
	for (rounds = 0; rounds < WAIT_MS && (due < 512 || answered + 1 < due); rounds++) {
		usleep(200);
		edges = atomic_load(&f->edges);
		due = (monotonic_ns() - start) * 1024 / 1000000000 + 1;
		assert_true(edges <= due);
		while (answered < edges)
			answered += (rd(f, REG_C) & 0x40) != 0;
	}
	assert_true(answered + 1 >= due);
}

static void unread_c_holds_ticks_until_it_is_read(void **state)
{
	struct fixture *f = *state;

	wr(f, REG_A, 0x23);
	rd(f, REG_C);
	wr(f, REG_B, B_24H | B_PIE);
	assert_true(wait_for_edges(f, 1));
	usleep(20000);
	assert_int_equal(atomic_load(&f->edges), 1);
	rd(f, REG_C);
	assert_true(wait_for_edges(f, 2));
}

static void update_interrupt_comes_within_a_second(void **state)
{
	struct fixture *f = *state;

	wr(f, REG_B, B_24H | B_UIE);
	assert_true(wait_for_edges(f, 1));
	assert_int_equal(rd(f, REG_C) & 0x90, 0x90);
}

static void alarm_interrupt_comes(void **state)
{
	struct fixture *f = *state;

	wr(f, 1, 0xff);
	wr(f, 3, 0xff);
	wr(f, 5, 0xff);
	wr(f, REG_B, B_24H | B_AIE);
	assert_true(wait_for_edges(f, 1));
	assert_int_equal(rd(f, REG_C) & 0xa0, 0xa0);
}

static void pause_holds_interrupts(void **state)
{
	struct fixture *f = *state;
	unsigned before;

	wr(f, REG_B, B_24H | B_PIE);
	assert_true(wait_for_edges(f, 1));
	device_thread_call(f->rtc->thread, quiesce, f->rtc);
	rd(f, REG_C);
	before = atomic_load(&f->edges);
	usleep(50000);
	assert_int_equal(atomic_load(&f->edges), before);
	device_thread_call(f->rtc->thread, unquiesce, f->rtc);
	assert_true(wait_for_edges(f, before + 1));
}

static unsigned long sleeps_of(pid_t tid)
{
	static const char key[] = "voluntary_ctxt_switches:";
	char path[64], line[128] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) && strncmp(line, key, strlen(key)) != 0)
		;
	fclose(file);
	assert_memory_equal(line, key, strlen(key));
	return strtoul(line + strlen(key), NULL, 10);
}

/* Nothing is enabled, and a guest sets its clock and reads it. */
static void quiet_clock_leaves_its_thread_asleep(void **state)
{
	struct fixture *f = *state;
	unsigned long before;
	unsigned i;

	usleep(20000);
	before = sleeps_of(device_thread_tid(f->rtc->thread));
	for (i = 0; i < 128; i++) {
		wr(f, REG_B, B_24H | 0x80);
		wr(f, 0, 0x10);
		wr(f, REG_B, B_24H);
		rd(f, i);
		usleep(1000);
	}
	assert_int_equal(sleeps_of(device_thread_tid(f->rtc->thread)), before);
}

static void *read_everything(void *arg)
{
	struct fixture *f = arg;
	unsigned i;

	for (i = 0; !atomic_load(&f->stop); i++)
		assert_true(rd(f, i % 128) <= 0xff);
	return NULL;
}

static void *write_everything(void *arg)
{
	struct fixture *f = arg;
	unsigned i;

	for (i = 0; i < 20000; i++)
		wr(f, i % 128, i % 11 == 0 ? 0x26 : i >> 3 & 0xff);
	atomic_store(&f->stop, true);
	return NULL;
}

static void readers_writers_and_the_timer_race(void **state)
{
	struct fixture *f = *state;
	pthread_t readers[2], writer;

	wr(f, REG_A, 0x23);
	wr(f, REG_B, B_24H | B_PIE | B_UIE | B_AIE);
	pthread_create(&readers[0], NULL, read_everything, f);
	pthread_create(&readers[1], NULL, read_everything, f);
	pthread_create(&writer, NULL, write_everything, f);
	pthread_join(writer, NULL);
	pthread_join(readers[0], NULL);
	pthread_join(readers[1], NULL);
	assert_int_equal(lock_order_violations(), 0);
}

/* With every policy the timer comes to rest when all is disabled. */
static void interrupts_end_when_they_are_disabled(void **state)
{
	struct fixture *f = *state;
	unsigned before;

	wr(f, REG_A, 0x23);
	wr(f, REG_B, B_24H | B_PIE);
	assert_true(wait_for_edges(f, 1));
	wr(f, REG_B, B_24H);
	device_thread_call(f->rtc->thread, unquiesce, f->rtc); /* it has seen that by now */
	rd(f, REG_C);
	before = atomic_load(&f->edges);
	usleep(20000);
	assert_int_equal(atomic_load(&f->edges), before);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(thread_is_named_for_reports),
		T(ticks_keep_up_with_the_clock),
		T(unread_c_holds_ticks_until_it_is_read),
		T(update_interrupt_comes_within_a_second),
		T(alarm_interrupt_comes),
		T(pause_holds_interrupts),
		T(quiet_clock_leaves_its_thread_asleep),
		T(readers_writers_and_the_timer_race),
		T(interrupts_end_when_they_are_disabled),
	};

	log_init("test");
	return cmocka_run_group_tests_name("rtc_cmos_thread", tests, NULL, NULL);
}
