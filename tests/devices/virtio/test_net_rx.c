/* Receive buffers, without a device. */
#include <linux/virtio_net.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "devices/virtio/net_rx.h"
#include "devices/virtio/tap.h"
#include "tests/devices/virtio/queue_fixture.h"

struct rx_fixture {
	struct queue_fixture *q;
	struct net_rx rx;
	int fds[2];
};

static int setup(void **state)
{
	struct rx_fixture *f = calloc(1, sizeof(*f));
	void *q;

	assert_non_null(f);
	queue_setup_8(&q);
	f->q = q;
	assert_int_equal(queue_open(f->q, 256, 0), 0);
	assert_int_equal(net_rx_init(&f->rx), 0);
	net_rx_clear(&f->rx, 1ull << VIRTIO_NET_F_MRG_RXBUF);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, f->fds), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct rx_fixture *f = *state;
	void *q = f->q;

	queue_teardown(&q);
	net_rx_fini(&f->rx);
	close(f->fds[0]);
	close(f->fds[1]);
	free(f);
	return 0;
}

/* Makes a chain of `n` descriptors of `len` bytes available and holds it. */
static int add(struct rx_fixture *f, unsigned n, uint32_t len)
{
	static uint16_t next;
	uint16_t head = next, i;

	if (head + n > 256)
		head = 0;
	for (i = 0; i < n; i++)
		d(f->q, head + i, DATA + 0x800 * ((head + i) % 64u), len,
		  D_WRITE | (i + 1u < n ? D_NEXT : 0), (uint16_t)(head + i + 1));
	next = (uint16_t)(head + n);
	rig_avail(f->q->r, 0, head);
	assert_int_equal(parse(f->q, pop(f->q)), 0);
	return net_rx_add(&f->rx, &f->q->c);
}

static void send_bytes(struct rx_fixture *f, size_t len)
{
	static uint8_t frame[70000];

	memset(frame, 0xcd, sizeof(frame));
	assert_int_equal(send(f->fds[1], frame, len, 0), len);
}

static enum net_rx_result receive(struct rx_fixture *f, int *ret)
{
	return net_rx_read(&f->rx, &f->q->q, f->fds[0], ret);
}

static void a_buffer_shorter_than_a_header_is_refused(void **state)
{
	struct rx_fixture *f = *state;

	assert_int_equal(add(f, 1, TAP_HEADER_BYTES - 1), -EINVAL);
	assert_true(net_rx_empty(&f->rx));
	assert_int_equal(add(f, 1, TAP_HEADER_BYTES), 0);
}

static void an_empty_wire_leaves_the_buffers(void **state)
{
	struct rx_fixture *f = *state;
	int ret;

	add(f, 1, 100);
	assert_int_equal(receive(f, &ret), NET_RX_NOTHING);
	assert_int_equal(ret, -EAGAIN);
	assert_int_equal(f->rx.bytes, 100);
}

/* A frame that fills its buffers to the last byte takes no further one. */
static void an_exact_fit_takes_no_more(void **state)
{
	struct rx_fixture *f = *state;
	int ret;

	add(f, 1, 100);
	add(f, 1, 100);
	add(f, 1, 100);
	send_bytes(f, 200);
	assert_int_equal(receive(f, &ret), NET_RX_DELIVERED);
	assert_int_equal(rig_used_idx(f->q->r, 0), 2);
	assert_int_equal(f->rx.bytes, 100);
}

static void every_length_up_to_three_buffers(void **state)
{
	struct rx_fixture *f = *state;
	size_t len;
	int ret;

	for (len = TAP_HEADER_BYTES; len <= 90; len++) {
		uint16_t before = rig_used_idx(f->q->r, 0);

		while (f->rx.bytes < 90)
			add(f, 2, 15);
		send_bytes(f, len);
		assert_int_equal(receive(f, &ret), NET_RX_DELIVERED);
		assert_int_equal(ret, len);
		assert_int_equal(rig_used_idx(f->q->r, 0) - before, (len + 29) / 30);
	}
}

static void many_turns_keep_the_arrays_in_bounds(void **state)
{
	struct rx_fixture *f = *state;
	int i, ret;

	for (i = 0; i < 3000; i++) {
		while (net_rx_has_room(&f->rx) && f->rx.end - f->rx.first < 20)
			assert_int_equal(add(f, 1 + (unsigned)i % 3, 64), 0);
		send_bytes(f, 12 + (size_t)(i * 37 % 400));
		assert_int_equal(receive(f, &ret), NET_RX_DELIVERED);
		assert_in_range(f->rx.iov_end, 0, NET_RX_IOV);
	}
}

static void a_frame_that_no_buffers_can_hold_is_dropped(void **state)
{
	struct rx_fixture *f = *state;
	int ret;

	net_rx_clear(&f->rx, 0);
	add(f, 1, 100);
	send_bytes(f, 101);
	assert_int_equal(receive(f, &ret), NET_RX_DROPPED);
	assert_int_equal(f->rx.bytes, 100);
	send_bytes(f, 100);
	assert_int_equal(receive(f, &ret), NET_RX_DELIVERED);
}

/* Buffers of two descriptors: half a queue of them leaves the driver none. */
static void a_frame_is_dropped_when_all_descriptors_are_held(void **state)
{
	struct rx_fixture *f = *state;
	unsigned i;
	int ret;

	for (i = 0; i < 127; i++)
		add(f, 2, 8);
	send_bytes(f, 4000);
	assert_int_equal(receive(f, &ret), NET_RX_WAITS);
	add(f, 2, 8);
	assert_int_equal(net_rx_retry(&f->rx, &f->q->q, &ret), NET_RX_DROPPED);
	send_bytes(f, 128 * 16);
	assert_int_equal(receive(f, &ret), NET_RX_DELIVERED);
	assert_int_equal(f->rx.descriptors, 0);
}

static void a_waiting_frame_is_kept_over_tries(void **state)
{
	struct rx_fixture *f = *state;
	int ret;

	add(f, 1, 100);
	send_bytes(f, 150);
	assert_int_equal(receive(f, &ret), NET_RX_WAITS);
	assert_int_equal(net_rx_retry(&f->rx, &f->q->q, &ret), NET_RX_WAITS);
	add(f, 1, 100);
	assert_int_equal(net_rx_retry(&f->rx, &f->q->q, &ret), NET_RX_DELIVERED);
	assert_int_equal(ret, 150);
	assert_int_equal(rig_used_len(f->q->r, 0, 1), 50);
}

static void less_than_a_header_from_the_host_is_dropped(void **state)
{
	struct rx_fixture *f = *state;
	int ret;

	add(f, 1, 100);
	send_bytes(f, TAP_HEADER_BYTES - 1);
	assert_int_equal(receive(f, &ret), NET_RX_DROPPED);
}

/* 768 ranges: chains of 8 fill them before 256 buffers do. */
static void ranges_are_bounded(void **state)
{
	struct rx_fixture *f = *state;
	unsigned n = 0;

	while (net_rx_has_room(&f->rx) && n < 32) {
		assert_int_equal(add(f, 8, 8), 0);
		n++;
	}
	assert_int_equal(n, 32);
	assert_true(f->rx.iov_end <= NET_RX_IOV);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_buffer_shorter_than_a_header_is_refused),
		T(an_empty_wire_leaves_the_buffers),
		T(an_exact_fit_takes_no_more),
		T(every_length_up_to_three_buffers),
		T(many_turns_keep_the_arrays_in_bounds),
		T(a_frame_that_no_buffers_can_hold_is_dropped),
		T(a_frame_is_dropped_when_all_descriptors_are_held),
		T(a_waiting_frame_is_kept_over_tries),
		T(less_than_a_header_from_the_host_is_dropped),
		T(ranges_are_bounded),
	};

	return cmocka_run_group_tests_name("net rx", tests, NULL, NULL);
}
