/*
 * The network device over a real TAP, in a network namespace of its own. All of
 * it is skipped without the right to make one.
 */
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "devices/registry.h"
#include "tests/devices/virtio/net_fixture.h"

#define TAP "lull0"
#define ALL_FEATURES                                                                           \
	(F_VERSION_1 | F_EVENT_IDX | F_INDIRECT | NF(CSUM) | NF(GUEST_CSUM) | NF(GUEST_TSO4) | \
	 NF(GUEST_TSO6) | NF(HOST_TSO4) | NF(HOST_TSO6) | NF(MRG_RXBUF) | NF(MAC))

static bool allowed;

static bool make_tap(void)
{
	struct ifreq request = { .ifr_name = TAP, .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	bool ok = fd >= 0 && ioctl(fd, TUNSETIFF, &request) == 0 &&
		  ioctl(fd, TUNSETPERSIST, 1) == 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

/* Gives the host's end 10.9.9.1 and brings it up. */
static void bring_up(void)
{
	struct ifreq request = { .ifr_name = TAP };
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)&request.ifr_addr;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0x0a090901);
	assert_int_equal(ioctl(fd, SIOCSIFADDR, &request), 0);
	request.ifr_flags = IFF_UP;
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &request), 0);
	close(fd);
}

static void delete_tap(void)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg info;
	} m = { .header = { .nlmsg_len = sizeof(m), .nlmsg_type = RTM_DELLINK,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK } };
	char reply[512];
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	m.info.ifi_index = (int)if_nametoindex(TAP);
	assert_int_equal(send(fd, &m, sizeof(m), 0), sizeof(m));
	assert_true(recv(fd, reply, sizeof(reply), 0) > 0);
	close(fd);
	assert_int_equal(if_nametoindex(TAP), 0);
}

static int setup(void **state)
{
	struct net_fixture *f = calloc(1, sizeof(*f));
	struct net_config c;
	struct error err;
	void *backend;

	*state = f;
	if (!allowed || !make_tap())
		return 0;
	net_config(&c);
	snprintf(c.host_dev_name, sizeof(c.host_dev_name), TAP);
	assert_int_equal(virtio_net_class.open(&c, &backend, &err), 0);
	f->r = rig_new();
	rig_place(f->r, virtio_net_class.create(&f->r->env, &c, backend, &err));
	rig_boot(f->r, ALL_FEATURES, 64);
	return 0;
}

static int teardown(void **state)
{
	struct net_fixture *f = *state;

	if (f->r) {
		rig_free(f->r);
		if (if_nametoindex(TAP))
			delete_tap();
	}
	free(f);
	return 0;
}

/* Who has 10.9.9.1? Tell 10.9.9.2. */
static void send_arp_request(struct net_fixture *f)
{
	static const uint8_t arp[] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1,
		2, 0, 0, 0, 0, 1, 10, 9, 9, 2, 0, 0, 0, 0, 0, 0, 10, 9, 9, 1,
	};

	memset(rig_ram(f->r, DATA), 0, HDR + 60);
	memcpy(rig_ram(f->r, DATA + HDR), arp, sizeof(arp));
	rig_desc(f->r, TX, 0, DATA, HDR + 60, 0, 0);
	rig_submit(f->r, TX, 0);
}

static bool is_arp_reply(const uint8_t *frame)
{
	return frame[12] == 8 && frame[13] == 6 && frame[21] == 2 && frame[31] == 1;
}

/* The host answers; among what else it sends is the answer. */
static void the_host_answers_the_guest(void **state)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	struct net_fixture *f = *state;
	bool answered = false;
	uint16_t i, n;

	if (!f->r)
		skip();
	for (i = 0; i < 64; i++)
		rx_buffer(f, i, DATA + 0x1000 + 0x800 * i, 0x800);
	rig_kick(f->r, RX);
	bring_up();
	send_arp_request(f);
	for (n = 0; n < 2000 && !answered; n++) {
		nanosleep(&ms, NULL);
		for (i = 0; i < rig_used_idx(f->r, RX); i++)
			answered |= is_arp_reply(rig_ram(f->r, DATA + 0x1000 + HDR + 0x800 * i));
	}
	assert_true(answered);
}

static void an_interface_that_is_down_loses_frames(void **state)
{
	struct net_fixture *f = *state;

	if (!f->r)
		skip();
	send_arp_request(f);
	assert_int_equal(rig_used_idx(f->r, TX), 1);
	assert_false(rig_needs_reset(f->r));
}

/* What the kernel does not take (a segment size of 0) is lost, and no more. */
static void a_header_that_the_host_refuses_loses_the_frame(void **state)
{
	struct net_fixture *f = *state;

	if (!f->r)
		skip();
	bring_up();
	memset(rig_ram(f->r, DATA), 0xff, 200);
	*rig_ram(f->r, DATA) = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	*rig_ram(f->r, DATA + 1) = VIRTIO_NET_HDR_GSO_TCPV4;
	rig_desc(f->r, TX, 0, DATA, 200, 0, 0);
	rig_submit(f->r, TX, 0);
	assert_int_equal(rig_used_idx(f->r, TX), 1);
	assert_false(rig_needs_reset(f->r));
}

static uint64_t cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000ull +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* The interface is deleted under the device: no spin, and reset works. */
static void a_deleted_interface_is_left_alone(void **state)
{
	const struct timespec wait = { .tv_nsec = 50000000 };
	struct net_fixture *f = *state;
	uint64_t before;

	if (!f->r)
		skip();
	rx_buffer(f, 0, DATA, 2048);
	rig_kick(f->r, RX);
	rig_settle(f->r);
	delete_tap();
	rig_settle(f->r);
	before = cpu_us();
	nanosleep(&wait, NULL);
	assert_true(cpu_us() - before < 25000);
	send_arp_request(f);
	assert_int_equal(rig_used_idx(f->r, TX), 1);
	rig_reset(f->r);
	rig_boot(f->r, ALL_FEATURES, 64);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(the_host_answers_the_guest),
		T(an_interface_that_is_down_loses_frames),
		T(a_header_that_the_host_refuses_loses_the_frame),
		T(a_deleted_interface_is_left_alone),
	};

	allowed = unshare(CLONE_NEWNET) == 0;
	return cmocka_run_group_tests_name("virtio net over a TAP", tests, NULL, NULL);
}
