/*
 * KVM ioctls that every architecture has. Threads: see kvm.h. Locks: none.
 */
#include "vmm/kvm.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static int linux_open(const char *path)
{
	return open(path, O_RDWR | O_CLOEXEC);
}

static int linux_ioctl(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg);
}

static void *linux_mmap(int fd, size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

const struct kvm_ops kvm_ops_linux = {
	.open = linux_open,
	.close = close,
	.ioctl = linux_ioctl,
	.mmap = linux_mmap,
	.munmap = munmap,
	.pread = pread,
};

int kvm_ioctl(struct kvm_fd k, unsigned long request, void *arg)
{
	int ret;

	do {
		ret = k.ops->ioctl(k.fd, request, arg);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : ret;
}

int kvm_open(const struct kvm_ops *ops, struct kvm_fd *ret, struct error *err)
{
	struct kvm_fd k = { .ops = ops, .fd = ops->open("/dev/kvm") };
	int version;

	if (k.fd < 0)
		return error_set_errno(err, -errno, "cannot open /dev/kvm");
	version = kvm_ioctl_val(k, KVM_GET_API_VERSION, 0);
	if (version != KVM_API_VERSION) {
		kvm_close(&k);
		if (version < 0)
			return error_set_errno(err, version, "/dev/kvm: KVM_GET_API_VERSION");
		return error_set(err, -ENOTSUP, "/dev/kvm: API version %d, need %d", version,
				 KVM_API_VERSION);
	}
	*ret = k;
	return 0;
}

void kvm_close(struct kvm_fd *k)
{
	if (k->ops && k->fd >= 0)
		k->ops->close(k->fd);
	k->fd = -EBADF;
}

int kvm_check_extension(struct kvm_fd k, int capability)
{
	return kvm_ioctl_val(k, KVM_CHECK_EXTENSION, capability);
}

int kvm_create_vm(struct kvm_fd kvm, struct kvm_fd *ret_vm)
{
	int fd = kvm_ioctl_val(kvm, KVM_CREATE_VM, 0);

	if (fd < 0)
		return fd;
	*ret_vm = (struct kvm_fd){ .ops = kvm.ops, .fd = fd };
	return 0;
}

int kvm_vcpu_mmap_size(struct kvm_fd kvm)
{
	return kvm_ioctl_val(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
}

int kvm_enable_vm_cap(struct kvm_fd vm, uint32_t capability, uint64_t arg0)
{
	struct kvm_enable_cap cap = { .cap = capability, .args = { arg0 } };

	return kvm_ioctl_ptr(vm, KVM_ENABLE_CAP, &cap);
}

int kvm_set_halt_poll(struct kvm_fd vm, uint32_t ns)
{
	return kvm_enable_vm_cap(vm, KVM_CAP_HALT_POLL, ns);
}

int kvm_set_user_memory_region(struct kvm_fd vm, uint32_t slot, uint32_t flags, uint64_t gpa,
			       uint64_t size, void *hva)
{
	struct kvm_userspace_memory_region region = {
		.slot = slot,
		.flags = flags,
		.guest_phys_addr = gpa,
		.memory_size = size,
		.userspace_addr = (uint64_t)(uintptr_t)hva,
	};

	return kvm_ioctl_ptr(vm, KVM_SET_USER_MEMORY_REGION, &region);
}

int kvm_create_irqchip(struct kvm_fd vm)
{
	return kvm_ioctl_val(vm, KVM_CREATE_IRQCHIP, 0);
}

int kvm_irq_line(struct kvm_fd vm, uint32_t gsi, bool level)
{
	struct kvm_irq_level line = { .irq = gsi, .level = level };

	return kvm_ioctl_ptr(vm, KVM_IRQ_LINE, &line);
}

int kvm_irqfd(struct kvm_fd vm, uint32_t gsi, int fd, bool assign)
{
	struct kvm_irqfd irqfd = {
		.fd = (uint32_t)fd,
		.gsi = gsi,
		.flags = assign ? 0 : KVM_IRQFD_FLAG_DEASSIGN,
	};

	return kvm_ioctl_ptr(vm, KVM_IRQFD, &irqfd);
}

int kvm_ioeventfd(struct kvm_fd vm, bool pio, uint64_t address, uint32_t width, uint64_t value,
		  int fd, bool assign)
{
	struct kvm_ioeventfd ioeventfd = {
		.datamatch = value,
		.addr = address,
		.len = width,
		.fd = fd,
		.flags = KVM_IOEVENTFD_FLAG_DATAMATCH,
	};

	if (pio)
		ioeventfd.flags |= KVM_IOEVENTFD_FLAG_PIO;
	if (!assign)
		ioeventfd.flags |= KVM_IOEVENTFD_FLAG_DEASSIGN;
	return kvm_ioctl_ptr(vm, KVM_IOEVENTFD, &ioeventfd);
}

int kvm_coalesced_zone(struct kvm_fd vm, bool pio, uint64_t address, uint32_t bytes, bool on)
{
	struct kvm_coalesced_mmio_zone zone = { .addr = address, .size = bytes, .pio = pio };

	return on ? kvm_ioctl_ptr(vm, KVM_REGISTER_COALESCED_MMIO, &zone) :
		    kvm_ioctl_ptr(vm, KVM_UNREGISTER_COALESCED_MMIO, &zone);
}

int kvm_create_vcpu(struct kvm_fd vm, uint32_t id, struct kvm_fd *ret_vcpu)
{
	int fd = kvm_ioctl_val(vm, KVM_CREATE_VCPU, id);

	if (fd < 0)
		return fd;
	*ret_vcpu = (struct kvm_fd){ .ops = vm.ops, .fd = fd };
	return 0;
}

int kvm_get_stats(struct kvm_fd of, struct kvm_fd *ret_stats)
{
	int fd = kvm_ioctl_val(of, KVM_GET_STATS_FD, 0);

	if (fd < 0)
		return fd;
	*ret_stats = (struct kvm_fd){ .ops = of.ops, .fd = fd };
	return 0;
}

int kvm_pread(struct kvm_fd stats, void *buf, size_t bytes, uint64_t offset)
{
	size_t done = 0;
	ssize_t got;

	while (done < bytes) {
		got = stats.ops->pread(stats.fd, (char *)buf + done, bytes - done,
				       (off_t)(offset + done));
		if (got == 0)
			return -EPROTO;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got > 0)
			done += (size_t)got;
	}
	return 0;
}

int kvm_map_run(struct kvm_fd vcpu, size_t bytes, struct kvm_run **ret_run)
{
	void *run = vcpu.ops->mmap(vcpu.fd, bytes);

	if (run == MAP_FAILED)
		return -errno;
	*ret_run = run;
	return 0;
}

void kvm_unmap_run(struct kvm_fd vcpu, struct kvm_run *run, size_t bytes)
{
	if (run)
		vcpu.ops->munmap(run, bytes);
}
