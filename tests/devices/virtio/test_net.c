/* The network device, over a socket in the TAP's place. */
#include "tests/devices/virtio/net_fixture.h"

#include <sched.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "vmm/device_thread.h"

static uint8_t frame[70000];

static void wait_used(struct net_fixture *f, uint16_t idx)
{
	rig_wait_used(f->r, RX, idx);
}

static void a_frame_is_sent(void **state)
{
	struct net_fixture *f = *state;

	guest_send(f, 0x11, 60);
	assert_int_equal(host_receive(f, frame, sizeof(frame)), 60);
	assert_int_equal(frame[59], 0x11);
	assert_int_equal(rig_used_idx(f->r, TX), 1);
	assert_int_equal(rig_used_len(f->r, TX, 0), 0);
}

/* The header in two pieces, the payload in two. */
static void a_frame_in_many_descriptors_is_sent_whole(void **state)
{
	struct net_fixture *f = *state;

	memset(rig_ram(f->r, DATA), 0, HDR);
	memset(rig_ram(f->r, DATA + HDR), 0x22, 1000);
	rig_desc(f->r, TX, 0, DATA, 5, D_NEXT, 1);
	rig_desc(f->r, TX, 1, DATA + 5, 20, D_NEXT, 2);
	rig_desc(f->r, TX, 2, DATA + 25, 500, 0, 0);
	rig_submit(f->r, TX, 0);
	assert_int_equal(host_receive(f, frame, sizeof(frame)), 525 - HDR);
	assert_int_equal(frame[0], 0x22);
	assert_int_equal(frame[525 - HDR - 1], 0x22);
}

/* More frames than one turn takes: no further kick is needed. */
static void a_long_queue_is_sent_in_turns(void **state)
{
	struct net_fixture *f = *state;
	uint16_t i;

	rig_reset(f->r);
	rig_boot(f->r, F_VERSION_1, 256);
	memset(rig_ram(f->r, DATA), 0, 128);
	for (i = 0; i < 200; i++) {
		rig_desc(f->r, TX, i, DATA, HDR + 60, 0, 0);
		rig_avail(f->r, TX, i);
	}
	rig_kick(f->r, TX);
	rig_wait_used(f->r, TX, 200);
	for (i = 0; i < 200; i++)
		assert_int_equal(host_receive(f, frame, sizeof(frame)), 60);
}

static void a_foreign_source_address_is_counted(void **state)
{
	struct net_fixture *f = *state;
	struct buf b;

	buf_init(&b, 65536);
	guest_send(f, 2, 60);
	assert_int_equal(metrics_format(f->r->env.metrics, &b), 0);
	assert_non_null(strstr(buf_text(&b), "\"tx_spoofed_mac_count\":1"));
	assert_non_null(strstr(buf_text(&b), "\"net_eth0\""));
	buf_fini(&b);
}

static void a_frame_is_received(void **state)
{
	struct net_fixture *f = *state;

	rx_buffer(f, 3, DATA, 2048);
	rig_kick(f->r, RX);
	host_send(f, 0x33, 100);
	wait_used(f, 1);
	assert_int_equal(rig_used_id(f->r, RX, 0), 3);
	assert_int_equal(rig_used_len(f->r, RX, 0), HDR + 100);
	assert_int_equal(get16(f->r, DATA + 10), 1);
	assert_int_equal(*rig_ram(f->r, DATA + HDR + 99), 0x33);
	assert_int_equal(*rig_ram(f->r, DATA + HDR + 100), 0);
}

static void a_buffer_of_header_and_data_descriptors(void **state)
{
	struct net_fixture *f = *state;

	rig_desc(f->r, RX, 0, DATA, HDR, D_WRITE | D_NEXT, 1);
	rig_desc(f->r, RX, 1, DATA + 0x100, 1514, D_WRITE, 0);
	rig_avail(f->r, RX, 0);
	rig_kick(f->r, RX);
	host_send(f, 0x44, 1000);
	wait_used(f, 1);
	assert_int_equal(*rig_ram(f->r, DATA + 0x100), 0x44);
	assert_int_equal(get16(f->r, DATA + 10), 1);
}

static void frames_keep_their_order(void **state)
{
	struct net_fixture *f = *state;
	uint16_t i;

	for (i = 0; i < 8; i++)
		rx_buffer(f, i, DATA + 2048 * i, 2048);
	rig_kick(f->r, RX);
	for (i = 0; i < 8; i++)
		host_send(f, (uint8_t)i, 60);
	wait_used(f, 8);
	for (i = 0; i < 8; i++)
		assert_int_equal(*rig_ram(f->r, DATA + 2048 * i + HDR), i);
}

static void frames_wait_for_buffers_until_a_kick(void **state)
{
	struct net_fixture *f = *state;

	host_send(f, 0x55, 60);
	rig_settle(f->r);
	rx_buffer(f, 0, DATA, 2048);
	rig_kick(f->r, RX);
	wait_used(f, 1);
	assert_int_equal(*rig_ram(f->r, DATA + HDR), 0x55);
}

static void a_merged_frame_takes_several_buffers(void **state)
{
	struct net_fixture *f = *state;
	uint16_t i;

	for (i = 0; i < 16; i++)
		rx_buffer(f, i, DATA + 0x1000 * i, 1000);
	rig_kick(f->r, RX);
	host_send(f, 0x66, 2500);
	wait_used(f, 3);
	assert_int_equal(get16(f->r, DATA + 10), 3);
	assert_int_equal(rig_used_len(f->r, RX, 0), 1000);
	assert_int_equal(rig_used_len(f->r, RX, 1), 1000);
	assert_int_equal(rig_used_len(f->r, RX, 2), HDR + 500);
	assert_int_equal(*rig_ram(f->r, DATA + 0x2000 + HDR + 499), 0x66);
	assert_int_equal(*rig_ram(f->r, DATA + 0x2000 + HDR + 500), 0);
}

/* The frame is longer than what was at hand: it waits, and arrives whole. */
static void a_frame_that_ran_over_waits_for_more_buffers(void **state)
{
	struct net_fixture *f = *state;
	unsigned i;

	rx_buffer(f, 0, DATA, 1000);
	rig_kick(f->r, RX);
	for (i = 0; i < 1988; i++)
		frame[HDR + i] = (uint8_t)(i * 7);
	memset(frame, 0, HDR);
	assert_int_equal(send(f->host, frame, 2000, 0), 2000);
	rig_settle(f->r);
	assert_int_equal(rig_used_idx(f->r, RX), 0);
	rx_buffer(f, 1, DATA + 0x1000, 1500);
	rig_kick(f->r, RX);
	wait_used(f, 2);
	assert_memory_equal(rig_ram(f->r, DATA + HDR), frame + HDR, 1000 - HDR);
	assert_memory_equal(rig_ram(f->r, DATA + 0x1000), frame + 1000, 1000);
	assert_int_equal(get16(f->r, DATA + 10), 2);
}

static void the_address_is_in_configuration_space(void **state)
{
	struct net_fixture *f = *state;

	assert_int_equal(rig_read(f->r, R_CONFIG, 8) & 0xffffffffffffull, 0x010000000002ull);
	assert_true(rd(f->r, R_DEVICE_FEATURES) & NF(MAC));
	assert_false(rd(f->r, R_DEVICE_FEATURES) & NF(MTU));
}

static void an_mtu_is_offered_when_there_is_one(void **state)
{
	struct net_config c;
	struct net_fixture *f;

	net_config(&c);
	c.mtu = 9000;
	c.has_guest_mac = false;
	f = net_fixture_new(&c);
	assert_true(rd(f->r, R_DEVICE_FEATURES) & NF(MTU));
	assert_false(rd(f->r, R_DEVICE_FEATURES) & NF(MAC));
	assert_int_equal(rig_read(f->r, R_CONFIG + 10, 2), 9000);
	*state = f;
	net_teardown(state);
}

static void quiesce(void *arg)
{
	((struct rig *)arg)->d->ops->quiesce(((struct rig *)arg)->d);
}

static void unquiesce(void *arg)
{
	((struct rig *)arg)->d->ops->unquiesce(((struct rig *)arg)->d);
}

static void a_paused_device_receives_when_it_goes_on(void **state)
{
	struct net_fixture *f = *state;

	rx_buffer(f, 0, DATA, 2048);
	rig_kick(f->r, RX);
	rig_settle(f->r);
	rig_call(f->r, quiesce, f->r);
	host_send(f, 0x77, 60);
	rig_settle(f->r);
	assert_int_equal(rig_used_idx(f->r, RX), 0);
	rig_call(f->r, unquiesce, f->r);
	wait_used(f, 1);
}

static void after_reset_held_buffers_are_forgotten(void **state)
{
	struct net_fixture *f = *state;

	rx_buffer(f, 0, DATA, 2048);
	rig_kick(f->r, RX);
	host_send(f, 1, 60);
	wait_used(f, 1);
	rx_buffer(f, 1, DATA, 2048);
	rig_kick(f->r, RX);
	rig_settle(f->r);
	rig_reset(f->r);
	memset(rig_ram(f->r, DATA), 0, 4096);
	host_send(f, 2, 60);
	rig_settle(f->r);
	assert_int_equal(*rig_ram(f->r, DATA + HDR), 0);
	rig_boot(f->r, F_VERSION_1, 16);
	rx_buffer(f, 5, DATA + 0x1000, 2048);
	rig_kick(f->r, RX);
	wait_used(f, 1);
	assert_int_equal(*rig_ram(f->r, DATA + 0x1000 + HDR), 2);
}

/* Both queues and the wire full again and again: nothing stops for good. */
static void a_flood_of_frames_never_freezes(void **state)
{
	struct net_fixture *f = *state;
	const unsigned total = 20000;
	unsigned sent = 0, got = 0, posted = 0;

	memset(frame, 0, 72);
	while (got < total) {
		while (sent < total && send(f->host, frame, 72, 0) == 72)
			sent++;
		got += (uint16_t)(rig_used_idx(f->r, RX) - (uint16_t)got);
		for (; posted < got + 16 && posted < total; posted++)
			rx_buffer(f, (uint16_t)(posted % 16), DATA + 2048 * (posted % 16), 2048);
		rig_kick(f->r, RX);
		sched_yield();
	}
	assert_int_equal(got, total);
	assert_false(rig_needs_reset(f->r));
}

static void checksum_flags_reach_the_host_when_negotiated(void **state)
{
	struct net_config c;
	struct net_fixture *f;
	uint8_t raw[200];

	net_config(&c);
	f = net_fixture_new(&c);
	rig_boot(f->r, F_VERSION_1 | NF(CSUM) | NF(HOST_TSO4), 16);
	memset(rig_ram(f->r, DATA), 0, 200);
	*rig_ram(f->r, DATA) = VIRTIO_NET_HDR_F_NEEDS_CSUM | 2;
	*rig_ram(f->r, DATA + 1) = VIRTIO_NET_HDR_GSO_TCPV4;
	put16(f->r, DATA + 10, 99);
	rig_desc(f->r, TX, 0, DATA, 200, 0, 0);
	rig_submit(f->r, TX, 0);
	assert_int_equal(recv(f->host, raw, sizeof(raw), 0), 200);
	assert_int_equal(raw[0], VIRTIO_NET_HDR_F_NEEDS_CSUM);
	assert_int_equal(raw[1], VIRTIO_NET_HDR_GSO_TCPV4);
	assert_int_equal(raw[10], 0);
	*state = f;
	net_teardown(state);
}

/* Receives a frame whose header asks for all there is; returns flags and gso_type. */
static uint16_t received_header(uint64_t features, uint8_t gso)
{
	struct net_config c;
	struct net_fixture *f;
	uint16_t got;
	void *state;

	net_config(&c);
	f = net_fixture_new(&c);
	state = f;
	rig_boot(f->r, F_VERSION_1 | features, 16);
	rx_buffer(f, 0, DATA, 2048);
	rig_kick(f->r, RX);
	memset(frame, 0, 100);
	frame[0] = 0xff;
	frame[1] = gso | VIRTIO_NET_HDR_GSO_ECN;
	assert_int_equal(send(f->host, frame, 100, 0), 100);
	wait_used(f, 1);
	got = get16(f->r, DATA);
	net_teardown(&state);
	return got;
}

static void received_headers_hold_only_what_was_negotiated(void **state)
{
	const uint8_t v4 = VIRTIO_NET_HDR_GSO_TCPV4, v6 = VIRTIO_NET_HDR_GSO_TCPV6;
	const uint64_t csum = NF(GUEST_CSUM);

	assert_int_equal(received_header(0, v4), 0);
	assert_int_equal(received_header(NF(GUEST_TSO4), v4), 0);
	assert_int_equal(received_header(csum, v4), 3);
	assert_int_equal(received_header(csum | NF(GUEST_TSO4), v4), 3 | v4 << 8);
	assert_int_equal(received_header(csum | NF(GUEST_TSO4), v6), 3);
	assert_int_equal(received_header(csum | NF(GUEST_TSO6), v6), 3 | v6 << 8);
	assert_int_equal(received_header(csum | NF(GUEST_TSO4), VIRTIO_NET_HDR_GSO_UDP), 3);
}

/* Ten frames each half second, each way. */
static int setup_limited(void **state)
{
	struct token_bucket_config ten = { .size = 10, .refill_time_ms = 500, .present = true };
	struct net_config c;
	struct net_fixture *f;

	net_config(&c);
	c.rx_rate_limiter.ops = ten;
	c.tx_rate_limiter.ops = ten;
	f = net_fixture_new(&c);
	rig_boot(f->r, F_VERSION_1, 16);
	*state = f;
	return 0;
}

static void rate_limits_hold_both_directions(void **state)
{
	struct net_fixture *f = *state;
	uint16_t i;

	for (i = 0; i < 15; i++)
		rx_buffer(f, i, DATA + 0x1000 + 2048 * i, 2048);
	rig_kick(f->r, RX);
	for (i = 0; i < 15; i++) {
		host_send(f, 1, 60);
		guest_send(f, 1, 60);
	}
	assert_in_range(rig_used_idx(f->r, RX), 10, 14);
	assert_in_range(rig_used_idx(f->r, TX), 10, 14);
	rig_wait_used(f->r, RX, 15);
	rig_wait_used(f->r, TX, 15);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, net_setup, net_teardown)
#define M(name) cmocka_unit_test_setup_teardown(name, net_setup_mergeable, net_teardown)
	const struct CMUnitTest tests[] = {
		T(a_frame_is_sent),
		T(a_frame_in_many_descriptors_is_sent_whole),
		T(a_long_queue_is_sent_in_turns),
		T(a_foreign_source_address_is_counted),
		T(a_frame_is_received),
		T(a_buffer_of_header_and_data_descriptors),
		T(frames_keep_their_order),
		T(frames_wait_for_buffers_until_a_kick),
		M(a_merged_frame_takes_several_buffers),
		M(a_frame_that_ran_over_waits_for_more_buffers),
		T(the_address_is_in_configuration_space),
		cmocka_unit_test(an_mtu_is_offered_when_there_is_one),
		T(a_paused_device_receives_when_it_goes_on),
		T(after_reset_held_buffers_are_forgotten),
		T(a_flood_of_frames_never_freezes),
		M(a_flood_of_frames_never_freezes),
		cmocka_unit_test(checksum_flags_reach_the_host_when_negotiated),
		cmocka_unit_test(received_headers_hold_only_what_was_negotiated),
		cmocka_unit_test_setup_teardown(rate_limits_hold_both_directions, setup_limited,
						net_teardown),
	};

	return cmocka_run_group_tests_name("virtio net", tests, NULL, NULL);
}
