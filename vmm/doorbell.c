/*
 * Doorbells. Threads: main. Locks: none.
 */
#include "vmm/doorbell.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/fd.h"

int doorbell_init(struct doorbell *d, const struct doorbells *owner, enum bus_kind kind,
		  uint64_t address, unsigned width, uint64_t value, struct error *err)
{
	int fd = fd_eventfd_new();
	int ret;

	memset(d, 0, sizeof(*d));
	d->fd = -EBADF;
	if (fd < 0)
		return error_set_errno(err, fd, "doorbell: cannot create an eventfd");
	ret = owner->ops->assign(owner->vm, kind, address, width, value, fd, true);
	if (ret < 0) {
		close(fd);
		return error_set_errno(err, ret, "doorbell at 0x%llx: KVM_IOEVENTFD",
				       (unsigned long long)address);
	}
	d->owner = owner;
	d->kind = kind;
	d->address = address;
	d->width = width;
	d->value = value;
	d->fd = fd;
	return 0;
}

void doorbell_fini(struct doorbell *d)
{
	if (!d->owner)
		return;
	(void)d->owner->ops->assign(d->owner->vm, d->kind, d->address, d->width, d->value, d->fd,
				    false);
	close(d->fd);
	d->fd = -EBADF;
	d->owner = NULL;
}
