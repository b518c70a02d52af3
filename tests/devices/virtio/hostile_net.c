/* Hostile ring suite: frames and receive buffers of a network device. */
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/devices/virtio/hostile_ring.h"
#include "tests/devices/virtio/net_fixture.h"
#include "vmm/base/bits.h"

static uint8_t frame[70000];

/* Both directions still work. */
static void assert_alive(struct net_fixture *f)
{
	rig_reset(f->r);
	while (recv(f->host, frame, sizeof(frame), 0) > 0)
		;
	rig_boot(f->r, F_VERSION_1, 16);
	guest_send(f, 0x5a, 60);
	assert_int_equal(host_receive(f, frame, sizeof(frame)), 60);
	rx_buffer(f, 0, DATA + 0x2000, 2048);
	rig_kick(f->r, RX);
	host_send(f, 0x5b, 60);
	rig_wait_used(f->r, RX, 1);
}

/* What was sent went nowhere, and was given back. */
static void assert_dropped(struct net_fixture *f)
{
	assert_int_equal(rig_used_idx(f->r, TX), 1);
	assert_int_equal(rig_used_len(f->r, TX, 0), 0);
	assert_int_equal(host_receive(f, frame, sizeof(frame)), -EAGAIN);
	assert_false(rig_needs_reset(f->r));
	assert_alive(f);
}

static void send_one(struct net_fixture *f, uint64_t addr, uint32_t len, uint16_t flags)
{
	rig_desc(f->r, TX, 0, addr, len, flags, 0);
	rig_submit(f->r, TX, 0);
}

static void frame_shorter_than_its_header(void **state)
{
	send_one(*state, DATA, HDR - 1, 0);
	assert_dropped(*state);
}

static void frame_of_one_byte_in_all(void **state)
{
	send_one(*state, DATA, 1, 0);
	assert_dropped(*state);
}

static void header_without_a_frame(void **state)
{
	send_one(*state, DATA, HDR, 0);
	assert_dropped(*state);
}

static void frame_of_one_byte(void **state)
{
	send_one(*state, DATA, HDR + 1, 0);
	assert_dropped(*state);
}

static void frame_one_byte_short_of_ethernet(void **state)
{
	send_one(*state, DATA, HDR + 13, 0);
	assert_dropped(*state);
}

static void frame_above_the_limit(void **state)
{
	send_one(*state, RAM_A, LIMIT_NET_FRAME + 1, 0);
	assert_dropped(*state);
}

static void frame_at_the_limit(void **state)
{
	struct net_fixture *f = *state;

	memset(rig_ram(f->r, DATA), 0, HDR);
	send_one(f, DATA, LIMIT_NET_FRAME, 0);
	assert_int_equal(host_receive(f, frame, sizeof(frame)), LIMIT_NET_FRAME - HDR);
}

static void frame_of_four_gigabytes(void **state)
{
	send_one(*state, DATA, 0xffffffff, 0);
	assert_dropped(*state);
}

static void frame_that_is_writable(void **state)
{
	send_one(*state, DATA, 100, D_WRITE);
	assert_dropped(*state);
}

static void frame_with_a_writable_end(void **state)
{
	struct net_fixture *f = *state;

	rig_desc(f->r, TX, 1, DATA + 512, 100, D_WRITE, 0);
	rig_desc(f->r, TX, 0, DATA, 100, D_NEXT, 1);
	rig_submit(f->r, TX, 0);
	assert_dropped(f);
}

static void frame_in_the_hole(void **state)
{
	send_one(*state, HOLE, 100, 0);
	assert_dropped(*state);
}

static void frame_in_a_loop(void **state)
{
	send_one(*state, DATA, 100, D_NEXT);
	assert_dropped(*state);
}

/* The two bytes of a header that ask the host for work. */
static void send_with_header(struct net_fixture *f, uint8_t flags, uint8_t gso)
{
	memset(rig_ram(f->r, DATA), 0, 200);
	*rig_ram(f->r, DATA) = flags;
	*rig_ram(f->r, DATA + 1) = gso;
	send_one(f, DATA, 200, 0);
}

static void checksum_that_was_not_negotiated(void **state)
{
	send_with_header(*state, VIRTIO_NET_HDR_F_NEEDS_CSUM, 0);
	assert_dropped(*state);
}

static void segmentation_that_was_not_negotiated(void **state)
{
	send_with_header(*state, 0, VIRTIO_NET_HDR_GSO_TCPV4);
	assert_dropped(*state);
}

static void segmentation_v6_that_was_not_negotiated(void **state)
{
	send_with_header(*state, 0, VIRTIO_NET_HDR_GSO_TCPV6);
	assert_dropped(*state);
}

/* With all that is offered, every other type is still refused. */
static void every_segmentation_type(void **state)
{
	struct net_fixture *f = *state;
	unsigned gso;

	rig_reset(f->r);
	rig_boot(f->r, F_VERSION_1 | NF(CSUM) | NF(HOST_TSO4) | NF(HOST_TSO6), 16);
	for (gso = 0; gso < 256; gso++) {
		bool known = gso == VIRTIO_NET_HDR_GSO_NONE || gso == VIRTIO_NET_HDR_GSO_TCPV4 ||
			     gso == VIRTIO_NET_HDR_GSO_TCPV6;

		send_with_header(f, VIRTIO_NET_HDR_F_NEEDS_CSUM, (uint8_t)gso);
		assert_int_equal(host_receive(f, frame, sizeof(frame)), known ? 200 - HDR : -EAGAIN);
	}
	assert_alive(f);
}

static void unknown_header_flags_do_not_reach_the_host(void **state)
{
	struct net_fixture *f = *state;

	send_with_header(f, 0xfe, 0);
	assert_int_equal(recv(f->host, frame, sizeof(frame), 0), 200);
	assert_int_equal(frame[0], 0);
}

static void frame_in_the_smallest_pieces(void **state)
{
	struct net_fixture *f = *state;
	uint16_t i;

	rig_reset(f->r);
	rig_boot(f->r, F_VERSION_1, 256);
	memset(rig_ram(f->r, DATA), 0, 256);
	for (i = 0; i < 256; i++)
		rig_desc(f->r, TX, i, DATA + i, 1, i < 255 ? D_NEXT : 0, (uint16_t)(i + 1));
	rig_submit(f->r, TX, 0);
	assert_int_equal(host_receive(f, frame, sizeof(frame)), 256 - HDR);
}

static void transmit_head_out_of_range(void **state)
{
	struct net_fixture *f = *state;

	rig_submit(f->r, TX, 999);
	assert_true(rig_needs_reset(f->r));
	assert_alive(f);
}

static void receive_head_out_of_range(void **state)
{
	struct net_fixture *f = *state;

	rig_avail(f->r, RX, 16);
	rig_kick(f->r, RX);
	host_send(f, 1, 60);
	rig_settle(f->r);
	assert_true(rig_needs_reset(f->r));
	assert_alive(f);
}

/* All buffers that cannot be used are given back, and the frame goes to a good one. */
static void assert_useless(struct net_fixture *f)
{
	rig_kick(f->r, RX);
	host_send(f, 0x77, 60);
	rig_wait_used(f->r, RX, 1);
	assert_int_equal(rig_used_len(f->r, RX, 0), 0);
	rx_buffer(f, 9, DATA + 0x3000, 2048);
	rig_kick(f->r, RX);
	rig_wait_used(f->r, RX, 2);
	assert_int_equal(*rig_ram(f->r, DATA + 0x3000 + HDR), 0x77);
	assert_false(rig_needs_reset(f->r));
}

static void receive_buffer_that_is_readable(void **state)
{
	struct net_fixture *f = *state;

	rig_desc(f->r, RX, 0, DATA, 2048, 0, 0);
	rig_avail(f->r, RX, 0);
	assert_useless(f);
}

static void receive_buffer_with_a_readable_head(void **state)
{
	struct net_fixture *f = *state;

	rig_desc(f->r, RX, 0, DATA, 12, D_NEXT, 1);
	rig_desc(f->r, RX, 1, DATA + 64, 2048, D_WRITE, 0);
	rig_avail(f->r, RX, 0);
	assert_useless(f);
}

static void receive_buffer_shorter_than_a_header(void **state)
{
	rx_buffer(*state, 0, DATA, HDR - 1);
	assert_useless(*state);
}

static void receive_buffer_without_bytes(void **state)
{
	rx_buffer(*state, 0, DATA, 0);
	assert_useless(*state);
}

static void receive_buffer_in_the_hole(void **state)
{
	rx_buffer(*state, 0, HOLE, 2048);
	assert_useless(*state);
}

static void receive_buffer_in_a_loop(void **state)
{
	struct net_fixture *f = *state;

	rig_desc(f->r, RX, 0, DATA, 2048, D_WRITE | D_NEXT, 0);
	rig_avail(f->r, RX, 0);
	assert_useless(f);
}

/* One frame is lost for lack of room; the next fits. */
static void receive_buffer_too_small_for_the_frame(void **state)
{
	struct net_fixture *f = *state;

	rx_buffer(f, 0, DATA, 100);
	rig_kick(f->r, RX);
	host_send(f, 1, 1000);
	host_send(f, 2, 60);
	rig_wait_used(f->r, RX, 1);
	assert_int_equal(*rig_ram(f->r, DATA + HDR), 2);
	assert_int_equal(*rig_ram(f->r, DATA + 100), 0);
}

/* All sixteen buffers together are too small, so the frame is dropped. */
static void mergeable_buffers_too_small_altogether(void **state)
{
	struct net_fixture *f = *state;
	uint16_t i;

	for (i = 0; i < 16; i++)
		rx_buffer(f, i, DATA + 64 * i, 16);
	rig_kick(f->r, RX);
	host_send(f, 1, 1400);
	host_send(f, 2, 60);
	rig_wait_used(f->r, RX, 5);
	assert_int_equal(get16(f->r, DATA + 10), 5);
	assert_false(rig_needs_reset(f->r));
}

/* Eight buffers of two descriptors each: the driver has none left to help with. */
static void mergeable_pairs_too_small_altogether(void **state)
{
	struct net_fixture *f = *state;
	uint16_t i;

	for (i = 0; i < 16; i += 2) {
		rig_desc(f->r, RX, i, DATA + 64 * i, 8, D_WRITE | D_NEXT, (uint16_t)(i + 1));
		rig_desc(f->r, RX, i + 1u, DATA + 64 * i + 8, 8, D_WRITE, 0);
		rig_avail(f->r, RX, i);
	}
	rig_kick(f->r, RX);
	host_send(f, 1, 1400);
	host_send(f, 2, 60);
	rig_wait_used(f->r, RX, 5);
	assert_int_equal(get16(f->r, DATA + 10), 5);
	assert_false(rig_needs_reset(f->r));
}

static void a_queue_full_of_useless_buffers(void **state)
{
	struct net_fixture *f = *state;
	uint16_t i;

	for (i = 0; i < 16; i++)
		rx_buffer(f, i, HOLE, 2048);
	rig_kick(f->r, RX);
	host_send(f, 1, 60);
	rig_wait_used(f->r, RX, 16);
	rx_buffer(f, 3, DATA, 2048);
	rig_kick(f->r, RX);
	rig_wait_used(f->r, RX, 17);
	assert_int_equal(*rig_ram(f->r, DATA + HDR), 1);
}

/* CPU time of the process in 50 ms in which nothing should happen. */
static uint64_t busy_us(void)
{
	const struct timespec wait = { .tv_nsec = 50000000 };
	struct rusage a, b;

	getrusage(RUSAGE_SELF, &a);
	nanosleep(&wait, NULL);
	getrusage(RUSAGE_SELF, &b);
	return (uint64_t)(b.ru_utime.tv_sec + b.ru_stime.tv_sec - a.ru_utime.tv_sec -
			  a.ru_stime.tv_sec) * 1000000ull +
	       (uint64_t)(b.ru_utime.tv_usec + b.ru_stime.tv_usec - a.ru_utime.tv_usec -
			  a.ru_stime.tv_usec);
}

static void frames_and_no_buffers_cost_nothing(void **state)
{
	struct net_fixture *f = *state;
	int i;

	for (i = 0; i < 50; i++)
		host_send(f, 1, 60);
	rig_settle(f->r);
	assert_true(busy_us() < 25000);
	assert_alive(f);
}

static void frames_before_driver_ok_cost_nothing(void **state)
{
	struct net_fixture *f = *state;

	rig_reset(f->r);
	host_send(f, 1, 60);
	assert_true(busy_us() < 25000);
}

static void frames_on_a_failed_device_cost_nothing(void **state)
{
	struct net_fixture *f = *state;

	rx_buffer(f, 0, DATA, 2048);
	rig_kick(f->r, RX);
	rig_submit(f->r, TX, 500);
	assert_true(rig_needs_reset(f->r));
	host_send(f, 1, 60);
	assert_true(busy_us() < 25000);
	assert_int_equal(rig_used_idx(f->r, RX), 0);
}

static bool metric_is(struct net_fixture *f, const char *text)
{
	struct buf b;
	bool found;

	buf_init(&b, 65536);
	assert_int_equal(metrics_format(f->r->env.metrics, &b), 0);
	found = strstr(buf_text(&b), text);
	buf_fini(&b);
	return found;
}

/* The other end is closed: no spin, frames to it are dropped, reset works. */
static void the_host_side_goes_away(void **state)
{
	struct net_fixture *f = *state;

	rx_buffer(f, 0, DATA, 2048);
	rig_kick(f->r, RX);
	rig_settle(f->r);
	shutdown(f->host, SHUT_RDWR);
	rig_settle(f->r);
	assert_true(busy_us() < 25000);
	assert_true(metric_is(f, "\"tap_read_fails\":1"));
	guest_send(f, 1, 60);
	assert_int_equal(rig_used_idx(f->r, TX), 1);
	assert_true(metric_is(f, "\"tap_write_fails\":1"));
	assert_false(rig_needs_reset(f->r));
	rig_reset(f->r);
	rig_boot(f->r, F_VERSION_1, 16);
	assert_true(busy_us() < 25000);
}

/* Closed with a frame unread: an error of the read that is not the end. */
static void the_host_side_breaks(void **state)
{
	struct net_fixture *f = *state;

	guest_send(f, 1, 60);
	rx_buffer(f, 0, DATA, 2048);
	rig_kick(f->r, RX);
	rig_settle(f->r);
	close(f->host);
	f->host = -1;
	rig_settle(f->r);
	assert_true(busy_us() < 25000);
	assert_false(rig_needs_reset(f->r));
}

static void only_the_transmit_queue_is_ready(void **state)
{
	struct net_fixture *f = *state;

	rig_reset(f->r);
	assert_true(rig_negotiate(f->r, F_VERSION_1));
	rig_queue(f->r, TX, 16);
	rig_driver_ok(f->r);
	host_send(f, 1, 60);
	rig_kick(f->r, RX);
	assert_true(busy_us() < 25000);
	guest_send(f, 2, 60);
	assert_int_equal(host_receive(f, frame, sizeof(frame)), 60);
	assert_alive(f);
}

static void only_the_receive_queue_is_ready(void **state)
{
	struct net_fixture *f = *state;

	rig_reset(f->r);
	assert_true(rig_negotiate(f->r, F_VERSION_1));
	rig_queue(f->r, RX, 16);
	rig_driver_ok(f->r);
	rig_kick(f->r, TX);
	wr(f->r, R_QUEUE_NOTIFY, TX);
	rx_buffer(f, 0, DATA, 2048);
	rig_kick(f->r, RX);
	host_send(f, 1, 60);
	rig_wait_used(f->r, RX, 1);
	assert_alive(f);
}

/* The buffer lies on the used ring; the frame and our entry go over one another. */
static void receive_buffer_on_the_used_ring(void **state)
{
	struct net_fixture *f = *state;

	rx_buffer(f, 0, RING_USED(RX), 2048);
	rig_kick(f->r, RX);
	host_send(f, 0xff, 500);
	rig_settle(f->r);
	rig_settle(f->r);
	assert_alive(f);
}

static void same_receive_buffer_twice(void **state)
{
	struct net_fixture *f = *state;

	rx_buffer(f, 0, DATA, 2048);
	rx_buffer(f, 0, DATA, 2048);
	rig_kick(f->r, RX);
	host_send(f, 1, 60);
	host_send(f, 2, 60);
	rig_settle(f->r);
	rig_settle(f->r);
	assert_alive(f);
}

/* Header sizes do not depend on what was negotiated: every subset of the bits. */
static void every_subset_of_the_features(void **state)
{
	static const uint64_t bits[] = { NF(CSUM), NF(GUEST_CSUM), NF(GUEST_TSO4), NF(GUEST_TSO6),
					 NF(HOST_TSO4), NF(HOST_TSO6), NF(MRG_RXBUF) };
	struct net_fixture *f = *state;
	unsigned set, i;

	for (set = 0; set < 1u << ARRAY_SIZE(bits); set++) {
		uint64_t features = F_VERSION_1;

		for (i = 0; i < ARRAY_SIZE(bits); i++)
			features |= set >> i & 1 ? bits[i] : 0;
		rig_reset(f->r);
		rig_boot(f->r, features, 16);
		rx_buffer(f, 0, DATA + 0x1000, 2048);
		rig_kick(f->r, RX);
		host_send(f, 1, 60);
		rig_wait_used(f->r, RX, 1);
		assert_int_equal(rig_used_len(f->r, RX, 0), HDR + 60);
		guest_send(f, 1, 60);
		assert_int_equal(host_receive(f, frame, sizeof(frame)), 60);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, net_setup, net_teardown)
static const struct CMUnitTest tests[] = {
	T(frame_shorter_than_its_header),
	T(frame_of_one_byte_in_all),
	T(header_without_a_frame),
	T(frame_of_one_byte),
	T(frame_one_byte_short_of_ethernet),
	T(frame_above_the_limit),
	T(frame_at_the_limit),
	T(frame_of_four_gigabytes),
	T(frame_that_is_writable),
	T(frame_with_a_writable_end),
	T(frame_in_the_hole),
	T(frame_in_a_loop),
	T(checksum_that_was_not_negotiated),
	T(segmentation_that_was_not_negotiated),
	T(segmentation_v6_that_was_not_negotiated),
	T(every_segmentation_type),
	T(unknown_header_flags_do_not_reach_the_host),
	T(frame_in_the_smallest_pieces),
	T(transmit_head_out_of_range),
	T(receive_head_out_of_range),
	T(receive_buffer_that_is_readable),
	T(receive_buffer_with_a_readable_head),
	T(receive_buffer_shorter_than_a_header),
	T(receive_buffer_without_bytes),
	T(receive_buffer_in_the_hole),
	T(receive_buffer_in_a_loop),
	T(receive_buffer_too_small_for_the_frame),
	cmocka_unit_test_setup_teardown(mergeable_buffers_too_small_altogether,
					net_setup_mergeable, net_teardown),
	cmocka_unit_test_setup_teardown(mergeable_pairs_too_small_altogether,
					net_setup_mergeable, net_teardown),
	T(a_queue_full_of_useless_buffers),
	T(frames_and_no_buffers_cost_nothing),
	T(frames_before_driver_ok_cost_nothing),
	T(frames_on_a_failed_device_cost_nothing),
	T(the_host_side_goes_away),
	T(the_host_side_breaks),
	T(only_the_transmit_queue_is_ready),
	T(only_the_receive_queue_is_ready),
	T(receive_buffer_on_the_used_ring),
	T(same_receive_buffer_twice),
	T(every_subset_of_the_features),
};

const struct hostile_group hostile_net = { "hostile net", tests, ARRAY_SIZE(tests) };
