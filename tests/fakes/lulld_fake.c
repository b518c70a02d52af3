/*
 * lulld-fake: the whole daemon over the fake KVM, for tests that need a
 * process. It takes the command line of lulld and this environment:
 *
 *	LULL_FAKE_GUEST		what the guest does [idle]; "list" prints the names
 *	LULL_FAKE_VENDOR	"intel" or "amd" [amd]: the host's CPUID
 *	LULL_FAKE_FAIL		"K" or "K:ERRNO": the K-th call of KVM that can fail does
 *	LULL_FAKE_SLOW_START_MS	each vCPU's set-up takes that long
 *
 * Where the guest saw other than its script expects, or the daemon left
 * something of KVM open, it says so on standard error and exits with 99.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_guests.h"
#include "fake_kvm.h"
#include "vmm/main.h"

#define EXIT_NOT_AS_EXPECTED 99

static useconds_t slow_start_us;

static int slow_ioctl(int fd, unsigned long request, void *arg)
{
	if (request == KVM_SET_CPUID2)
		usleep(slow_start_us);
	return fake_kvm_ops.ioctl(fd, request, arg);
}

static void set_fault(const char *text)
{
	char *end;
	unsigned long k = strtoul(text, &end, 10);
	long error = *end == ':' ? strtol(end + 1, NULL, 10) : ENOMEM;

	fake_kvm_fail(FAKE_ANY, k, (int)error);
}

static int set_up(struct kvm_ops *ops)
{
	const char *guest = getenv("LULL_FAKE_GUEST");
	const char *vendor = getenv("LULL_FAKE_VENDOR");
	const char *fault = getenv("LULL_FAKE_FAIL");
	const char *slow = getenv("LULL_FAKE_SLOW_START_MS");

	fake_kvm_reset();
	fake_kvm_set_vendor(vendor && !strcmp(vendor, "intel") ? FAKE_INTEL : FAKE_AMD);
	if (fault)
		set_fault(fault);
	if (slow) {
		slow_start_us = (useconds_t)strtoul(slow, NULL, 10) * 1000;
		ops->ioctl = slow_ioctl;
	}
	if (guest && !fake_guests_set(guest)) {
		fprintf(stderr, "lulld-fake: there is no guest \"%s\"\n", guest);
		return -EINVAL;
	}
	return 0;
}

static int judge(int status)
{
	if (fake_kvm_mismatches())
		fprintf(stderr, "lulld-fake: %u mismatches, the first: %s\n",
			fake_kvm_mismatches(), fake_kvm_mismatch());
	if (fake_kvm_open_objects())
		fprintf(stderr, "lulld-fake: %u descriptors of KVM are open\n",
			fake_kvm_open_objects());
	if (fake_kvm_mismatches() || fake_kvm_open_objects())
		return EXIT_NOT_AS_EXPECTED;
	return status;
}

int main(int argc, char **argv)
{
	struct kvm_ops ops = fake_kvm_ops;
	const char *guest = getenv("LULL_FAKE_GUEST");

	if (guest && !strcmp(guest, "list")) {
		fake_guests_list();
		return 0;
	}
	if (set_up(&ops) < 0)
		return EXIT_NOT_AS_EXPECTED;
	return judge(lulld_main(argc, argv, &ops));
}
