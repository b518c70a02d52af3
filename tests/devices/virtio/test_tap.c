/* Opening TAPs. With the right to make one, also using it; else that is skipped. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "devices/virtio/tap.h"

static char name[IFNAMSIZ];

/* A persistent interface of its own for this process; false without the right. */
static bool make_interface(bool persist)
{
	struct ifreq request;
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	bool ok;

	memset(&request, 0, sizeof(request));
	request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
	snprintf(name, sizeof(name), "lt%d", (int)getpid());
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	ok = fd >= 0 && ioctl(fd, TUNSETIFF, &request) == 0 &&
	     ioctl(fd, TUNSETPERSIST, persist) == 0;
	if (fd >= 0)
		close(fd);
	return ok;
}

static void assert_fails(const char *what, int code, const char *part)
{
	struct tap *tap = NULL;
	struct error err;

	assert_int_equal(tap_open(what, &tap, &err), code);
	assert_null(tap);
	assert_non_null(strstr(err.text, "Open tap device failed: "));
	assert_non_null(strstr(err.text, part));
}

static void a_missing_interface_is_named(void **state)
{
	assert_fails("lull-no-if", -ENODEV, "lull-no-if");
}

static void a_name_too_long_is_refused(void **state)
{
	assert_fails("a-name-of-16-chr", -EINVAL, "a-name-of-16-chr");
}

static void an_empty_name_is_refused(void **state)
{
	assert_fails("", -ENODEV, "''");
}

static void an_interface_that_is_no_tap_is_refused(void **state)
{
	struct tap *tap = NULL;
	struct error err;

	assert_true(tap_open("lo", &tap, &err) < 0);
	assert_non_null(strstr(err.text, "Open tap device failed: "));
}

static void a_path_that_does_not_exist_is_refused(void **state)
{
	assert_fails("/dev/tap-none", -ENOENT, "/dev/tap-none");
}

static void a_path_that_is_no_node_is_refused(void **state)
{
	assert_fails("/etc/passwd", -EINVAL, "not a character device");
}

static void another_character_device_is_refused(void **state)
{
	struct tap *tap = NULL;
	struct error err;

	assert_true(tap_open("/dev/null", &tap, &err) < 0);
}

static void an_interface_is_opened_once(void **state)
{
	struct tap_offloads all = { true, true, true }, none = { 0 };
	struct tap *tap = NULL;
	struct error err;

	if (!make_interface(true))
		skip();
	assert_int_equal(tap_open(name, &tap, &err), 0);
	assert_fails(name, -EBUSY, name);
	assert_int_equal(tap_set_offloads(tap, &all), 0);
	assert_int_equal(tap_set_offloads(tap, &none), 0);
	tap_close(tap);
	make_interface(false);
}

static void an_interface_that_is_down_takes_no_frame(void **state)
{
	uint8_t frame[TAP_HEADER_BYTES + 60] = { 0 };
	struct tap *tap = NULL;
	struct error err;

	if (!make_interface(true))
		skip();
	assert_int_equal(tap_open(name, &tap, &err), 0);
	assert_int_equal(write(tap->fd, frame, sizeof(frame)), -1);
	assert_int_equal(errno, EIO);
	assert_int_equal(read(tap->fd, frame, sizeof(frame)), -1);
	assert_int_equal(errno, EAGAIN);
	tap_close(tap);
	make_interface(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_interface_is_named),
		cmocka_unit_test(a_name_too_long_is_refused),
		cmocka_unit_test(an_empty_name_is_refused),
		cmocka_unit_test(an_interface_that_is_no_tap_is_refused),
		cmocka_unit_test(a_path_that_does_not_exist_is_refused),
		cmocka_unit_test(a_path_that_is_no_node_is_refused),
		cmocka_unit_test(another_character_device_is_refused),
		cmocka_unit_test(an_interface_is_opened_once),
		cmocka_unit_test(an_interface_that_is_down_takes_no_frame),
	};

	return cmocka_run_group_tests_name("tap", tests, NULL, NULL);
}
