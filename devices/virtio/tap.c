/*
 * TAP interfaces. Threads: opened on main, used by the device's thread.
 * Locks: none. Interfaces are never created here: that takes rights that the
 * daemon shall not have, and hides a misspelt name.
 */
#include "devices/virtio/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/cleanup.h"

#define TAP_FLAGS (IFF_TAP | IFF_NO_PI | IFF_VNET_HDR)

static int open_node(const char *path, const char *name, struct error *err)
{
	struct stat st;
	_cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return error_set_errno(err, -errno, "Open tap device failed: %s: cannot open %s",
				       name, path);
	if (fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode))
		return error_set(err, -EINVAL,
				 "Open tap device failed: %s is not a character device", path);
	return fd_take(&fd);
}

/* Binds the descriptor to the interface; a macvtap node ignores the name. */
static int set_interface(int fd, const char *name, struct error *err)
{
	struct ifreq request;
	int header = TAP_HEADER_BYTES, little = 1;

	memset(&request, 0, sizeof(request));
	request.ifr_flags = TAP_FLAGS;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(fd, TUNSETIFF, &request) < 0)
		return error_set_errno(err, -errno, "Open tap device failed: %s", name);
	if (ioctl(fd, TUNSETVNETHDRSZ, &header) < 0)
		return error_set_errno(err, -errno,
				       "Open tap device failed: %s: virtio header size", name);
	/* Little-endian is the native order of our hosts; kernels may not have the call. */
	(void)ioctl(fd, TUNSETVNETLE, &little);
	return 0;
}

static int open_by_name(const char *name, struct error *err)
{
	_cleanup_close_ int fd = -EBADF;
	int ret;

	if (strlen(name) >= IFNAMSIZ)
		return error_set(err, -EINVAL,
				 "Open tap device failed: the name %.64s is longer than %d characters",
				 name, IFNAMSIZ - 1);
	if (!name[0] || !if_nametoindex(name))
		return error_set(err, -ENODEV, "Open tap device failed: there is no interface '%s'",
				 name);
	fd = open_node("/dev/net/tun", name, err);
	if (fd < 0)
		return fd;
	ret = set_interface(fd, name, err);
	return ret < 0 ? ret : fd_take(&fd);
}

static int open_by_path(const char *path, struct error *err)
{
	_cleanup_close_ int fd = open_node(path, path, err);
	int ret;

	if (fd < 0)
		return fd;
	ret = set_interface(fd, "", err);
	return ret < 0 ? ret : fd_take(&fd);
}

static struct tap *tap_new(int fd, bool plain)
{
	struct tap *tap = calloc(1, sizeof(*tap));

	if (!tap) {
		close(fd);
		return NULL;
	}
	tap->fd = fd;
	tap->plain = plain;
	return tap;
}

int tap_open(const char *name, struct tap **ret, struct error *err)
{
	int fd = strchr(name, '/') ? open_by_path(name, err) : open_by_name(name, err);
	struct tap *tap;

	if (fd < 0)
		return fd;
	tap = tap_new(fd, false);
	if (!tap)
		return error_set(err, -ENOMEM, "Open tap device failed: no memory");
	*ret = tap;
	return 0;
}

struct tap *tap_from_socket(int fd)
{
	return tap_new(fd, true);
}

struct tap *tap_close(struct tap *tap)
{
	if (!tap)
		return NULL;
	close(tap->fd);
	free(tap);
	return NULL;
}

int tap_set_offloads(struct tap *tap, const struct tap_offloads *o)
{
	unsigned flags = 0;

	if (tap->plain)
		return 0;
	if (o->csum)
		flags = TUN_F_CSUM | (o->tso4 ? TUN_F_TSO4 : 0) | (o->tso6 ? TUN_F_TSO6 : 0);
	return ioctl(tap->fd, TUNSETOFFLOAD, flags) < 0 ? -errno : 0;
}
