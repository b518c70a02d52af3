/*
 * A start whose threads cannot be had: thread_start() of this file takes the
 * place of the one in vmm/base and fails the n-th time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "fake_arch.h"
#include "fake_device.h"
#include "vm_rig.h"
#include "vmm/base/log.h"
#include "vmm/base/thread.h"

#define THREADED_DEVICES 2

static unsigned fail_at; /* of the threads to come, from 1; 0: none */
static unsigned started;

int thread_start(pthread_t *ret, const char *name, void *(*fn)(void *arg), void *arg)
{
	sigset_t all, old;
	int code;

	if (fail_at && ++started == fail_at)
		return -EAGAIN;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	code = pthread_create(ret, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -code;
}

static void start_with_failing_thread(unsigned n)
{
	struct vm_rig r;
	unsigned fds;

	log_init("test"); /* may open its own standard output, once */
	fds = vm_rig_open_fds();
	vm_rig_init(&r, VM_RIG_VCPUS, 16);
	fake_arch.build = fake_devices_build;
	fail_at = n;
	started = 0;
	assert_int_equal(vm_rig_start(&r), -EAGAIN);
	assert_non_null(strstr(r.err.text, n <= THREADED_DEVICES ? "device" : "vCPU"));
	assert_int_equal(r.vm->state.phase, VM_CONFIGURING);
	assert_int_equal(fake_kvm_open_objects(), 0);
	fail_at = 0;
	assert_int_equal(vm_rig_start(&r), 0);
	vm_rig_end(&r);
	vm_rig_fini(&r);
	assert_int_equal(vm_rig_open_fds(), fds);
	fake_arch_reset();
}

static void each_thread_that_cannot_be_started_fails_the_start(void **state)
{
	unsigned n;

	for (n = 1; n <= THREADED_DEVICES + VM_RIG_VCPUS; n++)
		start_with_failing_thread(n);
}

/* Some vCPUs are being set up, and their end is under way, when the VM shall end. */
static void the_end_meets_a_start_that_is_failing(void **state)
{
	struct vm_rig r;

	vm_rig_init(&r, VM_RIG_VCPUS, 16);
	fail_at = VM_RIG_VCPUS;
	started = 0;
	vm_start(r.vm, vm_rig_done, &r);
	assert_int_equal(vm_rig_end(&r), VM_END_STOPPED);
	assert_int_equal(r.answers, 1);
	assert_true(r.code < 0);
	fail_at = 0;
	vm_rig_fini(&r);
	assert_int_equal(fake_kvm_open_objects(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_thread_that_cannot_be_started_fails_the_start),
		cmocka_unit_test(the_end_meets_a_start_that_is_failing),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
