/*
 * kvm-check: does KVM work here?
 *
 * usage: kvm-check          open /dev/kvm, check its version, create a VM
 *        kvm-check --guest  and run a real-mode guest to its HLT
 *
 * Exit status 0 if so; otherwise 1 with the first thing that failed.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

enum { LOAD_ADDRESS = 0x1000, MEMORY = 0x2000, PORT = 0x10, SUM = 42 };

static void fail(const char *what)
{
	printf("kvm-check: %s: %s\n", what, errno ? strerror(errno) : "not as expected");
	exit(1);
}

static long check(long result, const char *what)
{
	if (result < 0)
		fail(what);
	return result;
}

static void expect(int condition, const char *what)
{
	errno = 0;
	if (!condition)
		fail(what);
}

// out(PORT, bl + al); hlt
static const unsigned char code[] = {0x00, 0xd8, 0xe6, PORT, 0xf4};

static void run_guest(int kvm, int vm)
{
	unsigned char *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct kvm_userspace_memory_region region = {
		.memory_size = MEMORY,
		.userspace_addr = (unsigned long)memory,
	};
	struct kvm_regs regs = {.rip = LOAD_ADDRESS, .rax = 2, .rbx = SUM - 2, .rflags = 2};
	struct kvm_sregs sregs;
	struct kvm_run *run;
	int vcpu;
	long size;

	memcpy(memory + LOAD_ADDRESS, code, sizeof(code));
	check(ioctl(vm, KVM_SET_TSS_ADDR, 0xfffbd000), "KVM_SET_TSS_ADDR");
	check(ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region), "KVM_SET_USER_MEMORY_REGION");
	vcpu = check(ioctl(vm, KVM_CREATE_VCPU, 0), "KVM_CREATE_VCPU");
	size = check(ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), "KVM_GET_VCPU_MMAP_SIZE");
	run = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu, 0);
	check(run == MAP_FAILED ? -1 : 0, "mmap of the vCPU");

	check(ioctl(vcpu, KVM_GET_SREGS, &sregs), "KVM_GET_SREGS");
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	check(ioctl(vcpu, KVM_SET_SREGS, &sregs), "KVM_SET_SREGS");
	check(ioctl(vcpu, KVM_SET_REGS, &regs), "KVM_SET_REGS");

	check(ioctl(vcpu, KVM_RUN, 0), "KVM_RUN");
	expect(run->exit_reason == KVM_EXIT_IO && run->io.port == PORT, "exit of the OUT");
	expect(*((unsigned char *)run + run->io.data_offset) == SUM, "byte that the guest wrote");
	check(ioctl(vcpu, KVM_RUN, 0), "KVM_RUN");
	expect(run->exit_reason == KVM_EXIT_HLT, "exit of the HLT");
}

int main(int argc, char **argv)
{
	int kvm = check(open("/dev/kvm", O_RDWR | O_CLOEXEC), "/dev/kvm");
	int version = ioctl(kvm, KVM_GET_API_VERSION, 0);
	int vm;

	expect(version == KVM_API_VERSION, "KVM_GET_API_VERSION");
	vm = check(ioctl(kvm, KVM_CREATE_VM, 0), "KVM_CREATE_VM");
	if (argc > 1 && strcmp(argv[1], "--guest") == 0)
		run_guest(kvm, vm);
	printf("kvm-check: API version %d, %s\n", version,
	       argc > 1 ? "a guest ran to its HLT" : "a VM was created");
	return 0;
}
