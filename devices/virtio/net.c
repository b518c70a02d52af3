/*
 * Virtio network device.
 *
 * Threads: the device's; creation on main. Locks: none of its own.
 * Not here: the interface (tap.c), receive buffers (net_rx.c).
 * Frames go between the TAP and the guest's buffers without a copy, but for
 * the header of a frame that is sent: it is copied, checked and passed on.
 */
#include "devices/virtio/net.h"

#include <errno.h>
#include <linux/virtio_ids.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices/virtio/device.h"
#include "devices/virtio/iov.h"
#include "devices/virtio/net_rx.h"
#include "devices/virtio/tap.h"
#include "devices/virtio/throttle.h"
#include "vmm/base/bits.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/config.h"
#include "vmm/device_thread.h"

/* virtio 1.2 section 5.1.2 */
enum { RX_QUEUE = 0, TX_QUEUE = 1 };

#define NET_BATCH 64u                 /* frames in one go, each direction */
#define NET_BACKOFF_NS 100000000ull   /* after an error of the TAP that may pass */
#define ETHERNET_BYTES (ETH_HLEN + 4) /* with a VLAN tag */

struct net_metrics {
	metric activate_fails;
	metric cfg_fails;
	metric no_rx_avail_buffer;
	metric no_tx_avail_buffer;
	metric event_fails;
	metric rx_queue_event_count;
	metric rx_event_rate_limiter_count;
	metric rx_rate_limiter_throttled;
	metric rx_tap_event_count;
	metric rx_bytes_count;
	metric rx_packets_count;
	metric rx_fails;
	metric rx_count;
	metric tap_read_fails;
	metric tap_write_fails;
	metric tx_bytes_count;
	metric tx_malformed_frames;
	metric tx_fails;
	metric tx_count;
	metric tx_packets_count;
	metric tx_queue_event_count;
	metric tx_rate_limiter_event_count;
	metric tx_rate_limiter_throttled;
	metric tx_spoofed_mac_count;
	metric tx_remaining_reqs_count;
};

static const struct metric_field net_metric_fields[] = {
	METRIC(struct net_metrics, activate_fails),
	METRIC(struct net_metrics, cfg_fails),
	METRIC(struct net_metrics, no_rx_avail_buffer),
	METRIC(struct net_metrics, no_tx_avail_buffer),
	METRIC(struct net_metrics, event_fails),
	METRIC(struct net_metrics, rx_queue_event_count),
	METRIC(struct net_metrics, rx_event_rate_limiter_count),
	METRIC(struct net_metrics, rx_rate_limiter_throttled),
	METRIC(struct net_metrics, rx_tap_event_count),
	METRIC(struct net_metrics, rx_bytes_count),
	METRIC(struct net_metrics, rx_packets_count),
	METRIC(struct net_metrics, rx_fails),
	METRIC(struct net_metrics, rx_count),
	METRIC(struct net_metrics, tap_read_fails),
	METRIC(struct net_metrics, tap_write_fails),
	METRIC(struct net_metrics, tx_bytes_count),
	METRIC(struct net_metrics, tx_malformed_frames),
	METRIC(struct net_metrics, tx_fails),
	METRIC(struct net_metrics, tx_count),
	METRIC(struct net_metrics, tx_packets_count),
	METRIC(struct net_metrics, tx_queue_event_count),
	METRIC(struct net_metrics, tx_rate_limiter_event_count),
	METRIC(struct net_metrics, tx_rate_limiter_throttled),
	METRIC(struct net_metrics, tx_spoofed_mac_count),
	METRIC(struct net_metrics, tx_remaining_reqs_count),
	{ NULL, METRIC_COUNT, 0 },
};

struct virtio_net {
	struct virtio_device v; /* first */
	/* constant */
	struct tap *tap;
	uint8_t mac[ETH_ALEN];
	bool has_mac;
	uint32_t mtu; /* 0: the driver was not told one */
	struct net_metrics metrics;

	/* the device's thread */
	struct throttle rx_throttle;
	struct throttle tx_throttle;
	struct event_source *tap_source;
	bool watching; /* tap_source is enabled */
	bool starving; /* a frame may be there, buffers are not: a kick goes on */
	bool dead;     /* the interface is gone */
	struct net_rx rx;
	struct chain chain;
	struct iovec tx_iov[LIMIT_CHAIN_IOV + 1];
};

static struct virtio_net *net_of(struct virtio_device *v)
{
	return (struct virtio_net *)v;
}

static void watch(struct virtio_net *net, bool on)
{
	if (!net->tap_source || net->watching == on)
		return;
	net->watching = on;
	event_source_enable(net->tap_source, on);
}

/* Receive */

/* What should be at hand before a frame is read, so that it fits. */
static uint64_t wanted_bytes(const struct virtio_net *net)
{
	uint64_t frame;

	if (!net->rx.mergeable)
		return 1; /* one buffer, whatever it holds */
	if (net->rx.frame_bytes)
		return net->rx.frame_bytes;
	frame = net->mtu > ETH_DATA_LEN ? net->mtu : ETH_DATA_LEN;
	if (virtio_has(&net->v, VIRTIO_NET_F_GUEST_TSO4) ||
	    virtio_has(&net->v, VIRTIO_NET_F_GUEST_TSO6))
		return LIMIT_NET_FRAME;
	return TAP_HEADER_BYTES + ETHERNET_BYTES + frame;
}

/*
 * Takes buffers over until there are enough. True if it stopped early, after
 * giving back a queue's worth of useless ones; otherwise, if there are too
 * few, the driver has been asked for a kick.
 */
static bool gather(struct virtio_net *net)
{
	uint64_t wanted = wanted_bytes(net);
	struct chain *c = &net->chain;
	unsigned useless = 0;
	int ret;

	while (net->rx.bytes < wanted && net_rx_has_room(&net->rx)) {
		ret = virtio_pop(&net->v, RX_QUEUE, c);
		if (ret == 0)
			return false;
		if (ret == -EPROTO) {
			metric_inc(&net->metrics.event_fails);
			return false;
		}
		if (ret > 0 && net_rx_add(&net->rx, c) == 0)
			continue;
		if (ret > 0)
			virtio_push(&net->v, RX_QUEUE, c->head, 0);
		metric_inc(&net->metrics.rx_fails);
		if (++useless == net->v.queues[RX_QUEUE].size)
			return true;
	}
	return false;
}

static void received(struct virtio_net *net, uint64_t bytes)
{
	metric_add(&net->metrics.rx_bytes_count, bytes);
	metric_inc(&net->metrics.rx_packets_count);
	metric_inc(&net->metrics.rx_count);
	if (throttle_charge(&net->rx_throttle, bytes))
		metric_inc(&net->metrics.rx_rate_limiter_throttled);
}

/* Nothing was read. An interface that is gone is not asked again. */
static void read_failed(struct virtio_net *net, int error)
{
	if (error == -EAGAIN)
		return;
	metric_inc(&net->metrics.tap_read_fails);
	if (error == 0 || error == -EBADFD || error == -EBADF || error == -ENODEV) {
		net->dead = true;
		log_warn("network interface %s: its host side is gone", net->v.dev.id);
		return;
	}
	throttle_delay(&net->rx_throttle, NET_BACKOFF_NS);
}

/* One frame. False if there is no more to do now. */
static bool receive_one(struct virtio_net *net)
{
	struct queue *q = &net->v.queues[RX_QUEUE];
	bool again = gather(net), waited = net->rx.frame_bytes;
	enum net_rx_result result = NET_RX_WAITS;
	int ret = 0;

	if (net->v.failed)
		return false;
	if (waited)
		result = net_rx_retry(&net->rx, q, &ret);
	else if (!net_rx_empty(&net->rx))
		result = net_rx_read(&net->rx, q, net->tap->fd, &ret);
	switch (result) {
	case NET_RX_DELIVERED:
		received(net, (uint64_t)ret - TAP_HEADER_BYTES);
		return true;
	case NET_RX_DROPPED:
		metric_inc(&net->metrics.rx_fails);
		return true;
	case NET_RX_WAITS:
		if (net->rx.frame_bytes && !waited)
			return true; /* there may be more buffers, now that they are wanted */
		net->starving = true;
		metric_inc(&net->metrics.no_rx_avail_buffer);
		if (again)
			fd_eventfd_signal(net->v.doorbells[RX_QUEUE].fd);
		return false;
	case NET_RX_NOTHING:
		read_failed(net, ret);
		return false;
	}
	return false;
}

/* Receives a batch; the TAP is watched afterwards if the next frame could be taken. */
static void receive(struct virtio_net *net)
{
	unsigned n;

	if (virtio_running(&net->v) && net->v.queues[RX_QUEUE].size) {
		net->starving = false;
		for (n = 0; n < NET_BATCH && !net->dead; n++) {
			if (throttle_blocked(&net->rx_throttle) || !receive_one(net))
				break;
		}
		virtio_notify(&net->v, RX_QUEUE);
	} else {
		net->starving = true;
	}
	watch(net, !net->starving && !net->dead && !net->v.failed &&
			   !throttle_blocked(&net->rx_throttle));
}

static void on_tap(void *arg, int fd, unsigned events)
{
	struct virtio_net *net = arg;

	metric_inc(&net->metrics.rx_tap_event_count);
	receive(net);
}

static void on_rx_refilled(void *arg)
{
	struct virtio_net *net = arg;

	metric_inc(&net->metrics.rx_event_rate_limiter_count);
	receive(net);
}

/* Transmit */

/* Only what was negotiated may be asked of the host. */
static bool header_valid(const struct virtio_net *net, const struct virtio_net_hdr_v1 *h)
{
	if ((h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) && !virtio_has(&net->v, VIRTIO_NET_F_CSUM))
		return false;
	switch (h->gso_type) {
	case VIRTIO_NET_HDR_GSO_NONE:
		return true;
	case VIRTIO_NET_HDR_GSO_TCPV4:
		return virtio_has(&net->v, VIRTIO_NET_F_HOST_TSO4);
	case VIRTIO_NET_HDR_GSO_TCPV6:
		return virtio_has(&net->v, VIRTIO_NET_F_HOST_TSO6);
	default:
		return false;
	}
}

static void count_spoofed(struct virtio_net *net, const struct chain *c)
{
	uint8_t source[ETH_ALEN];

	if (!net->has_mac)
		return;
	iov_read(c->iov, c->readable, TAP_HEADER_BYTES + ETH_ALEN, source, sizeof(source));
	if (memcmp(source, net->mac, sizeof(source)))
		metric_inc(&net->metrics.tx_spoofed_mac_count);
}

/*
 * The header, copied into `h`, and the rest of the ranges behind it. Returns how
 * many ranges *ret has; 0 if the frame is malformed.
 */
static uint32_t build_frame(struct virtio_net *net, const struct chain *c,
			    struct virtio_net_hdr_v1 *h, struct iovec **ret)
{
	struct iovec *rest = net->tx_iov + 1;
	uint32_t count = c->readable;

	if (c->writable || c->readable_bytes < TAP_HEADER_BYTES + ETH_HLEN ||
	    c->readable_bytes > LIMIT_NET_FRAME)
		return 0;
	iov_read(c->iov, c->readable, 0, h, sizeof(*h));
	if (!header_valid(net, h))
		return 0;
	h->flags &= VIRTIO_NET_HDR_F_NEEDS_CSUM;
	h->num_buffers = 0;
	memcpy(rest, c->iov, count * sizeof(*rest));
	iov_skip(&rest, &count, TAP_HEADER_BYTES);
	rest--; /* element 0 was left free for this */
	rest->iov_base = h;
	rest->iov_len = sizeof(*h);
	*ret = rest;
	return count + 1;
}

/* A frame that the host does not take is lost, as on a wire. */
static void send_frame(struct virtio_net *net, const struct chain *c)
{
	struct virtio_net_hdr_v1 h;
	struct iovec *iov;
	uint32_t count = build_frame(net, c, &h, &iov);
	uint64_t bytes = c->readable_bytes - TAP_HEADER_BYTES;
	ssize_t n;

	if (!count) {
		metric_inc(&net->metrics.tx_malformed_frames);
		metric_inc(&net->metrics.tx_fails);
		return;
	}
	count_spoofed(net, c);
	do {
		n = writev(net->tap->fd, iov, (int)count);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		metric_inc(&net->metrics.tap_write_fails);
		metric_inc(&net->metrics.tx_fails);
	} else {
		metric_add(&net->metrics.tx_bytes_count, bytes);
		metric_inc(&net->metrics.tx_packets_count);
		metric_inc(&net->metrics.tx_count);
	}
	if (throttle_charge(&net->tx_throttle, bytes))
		metric_inc(&net->metrics.tx_rate_limiter_throttled);
}

static bool transmit(struct virtio_net *net)
{
	struct chain *c = &net->chain;
	unsigned n;
	int ret = 1;

	metric_inc(&net->metrics.tx_queue_event_count);
	for (n = 0; n < NET_BATCH && ret && !throttle_blocked(&net->tx_throttle); n++) {
		ret = virtio_pop(&net->v, TX_QUEUE, c);
		if (ret == -EPROTO) {
			metric_inc(&net->metrics.event_fails);
			return false;
		}
		if (ret < 0)
			metric_inc(&net->metrics.tx_malformed_frames);
		if (ret <= 0)
			continue;
		send_frame(net, c);
		virtio_push(&net->v, TX_QUEUE, c->head, 0);
	}
	if (n == 1 && ret == 0)
		metric_inc(&net->metrics.no_tx_avail_buffer);
	virtio_notify(&net->v, TX_QUEUE);
	if (!ret || throttle_blocked(&net->tx_throttle))
		return false;
	metric_inc(&net->metrics.tx_remaining_reqs_count);
	return true;
}

static void on_tx_refilled(void *arg)
{
	struct virtio_net *net = arg;

	metric_inc(&net->metrics.tx_rate_limiter_event_count);
	virtio_serve(&net->v, TX_QUEUE);
}

static bool net_serve(struct virtio_device *v, unsigned queue)
{
	struct virtio_net *net = net_of(v);

	if (queue == TX_QUEUE)
		return transmit(net);
	metric_inc(&net->metrics.rx_queue_event_count);
	if (net->starving)
		receive(net);
	return false;
}

/* Life */

static int set_offloads(struct virtio_net *net)
{
	struct tap_offloads o = {
		.csum = virtio_has(&net->v, VIRTIO_NET_F_GUEST_CSUM),
		.tso4 = virtio_has(&net->v, VIRTIO_NET_F_GUEST_TSO4),
		.tso6 = virtio_has(&net->v, VIRTIO_NET_F_GUEST_TSO6),
	};
	int ret = tap_set_offloads(net->tap, &o);

	if (ret < 0)
		log_warn("network interface %s: offloads cannot be set: error %d", net->v.dev.id,
			 -ret);
	return ret;
}

static int net_activate(struct virtio_device *v)
{
	struct virtio_net *net = net_of(v);
	struct event_loop *loop = device_thread_loop(v->dev.thread);

	/* An interface that is gone fails here; the guest still gets a device, without frames. */
	net->dead = set_offloads(net) == -EBADFD;
	net->starving = true; /* until the first look at the queue */
	net_rx_clear(&net->rx, v->negotiated);
	if (throttle_start(&net->rx_throttle, loop) < 0)
		return -ENOMEM;
	if (throttle_start(&net->tx_throttle, loop) < 0)
		goto undo_rx_throttle;
	net->tap_source = event_loop_add_fd(loop, net->tap->fd, EVENT_READABLE, on_tap, net);
	if (!net->tap_source)
		goto undo_tx_throttle;
	net->watching = true;
	return 0;

undo_tx_throttle:
	throttle_stop(&net->tx_throttle);
undo_rx_throttle:
	throttle_stop(&net->rx_throttle);
	return -ENOMEM;
}

/* Reads and writes of the TAP do not wait: nothing is ever in flight. */
static bool net_stop(struct virtio_device *v, bool discard)
{
	watch(net_of(v), false);
	return true;
}

static void net_resume(struct virtio_device *v)
{
	receive(net_of(v));
}

static void net_deactivate(struct virtio_device *v)
{
	struct virtio_net *net = net_of(v);

	net->tap_source = event_source_free(net->tap_source);
	net->watching = false;
	throttle_stop(&net->tx_throttle);
	throttle_stop(&net->rx_throttle);
	net_rx_clear(&net->rx, 0);
}

static void net_close(void *backend)
{
	tap_close(backend);
}

static void net_destroy(struct virtio_device *v)
{
	struct virtio_net *net = net_of(v);

	metrics_remove_group(v->metrics, &net->metrics);
	net_rx_fini(&net->rx);
	tap_close(net->tap);
	free(net);
}

static const struct virtio_ops net_ops = {
	.activate = net_activate,
	.serve = net_serve,
	.stop = net_stop,
	.resume = net_resume,
	.deactivate = net_deactivate,
	.destroy = net_destroy,
};

static const struct device_ops net_device_ops = {
	.start = virtio_device_start,
	.quiesce = virtio_device_quiesce,
	.unquiesce = virtio_device_unquiesce,
	.status = virtio_device_state,
	.destroy = virtio_device_destroy,
};

static int net_open(const void *config, void **ret_backend, struct error *err)
{
	const struct net_config *c = config;
	struct tap *tap;
	int ret = tap_open(c->host_dev_name, &tap, err);

	if (ret == 0)
		*ret_backend = tap;
	return ret;
}

static void set_up(struct virtio_net *net, const struct net_config *c) TSA_UNCHECKED
{
	uint8_t *config = net->v.config;

	net->has_mac = c->has_guest_mac;
	net->mtu = c->mtu;
	net->v.queue_count = 2;
	net->v.activate_fails = &net->metrics.activate_fails;
	net->v.offered |= BIT_ULL(VIRTIO_NET_F_CSUM) | BIT_ULL(VIRTIO_NET_F_GUEST_CSUM) |
			  BIT_ULL(VIRTIO_NET_F_HOST_TSO4) | BIT_ULL(VIRTIO_NET_F_HOST_TSO6) |
			  BIT_ULL(VIRTIO_NET_F_GUEST_TSO4) | BIT_ULL(VIRTIO_NET_F_GUEST_TSO6) |
			  BIT_ULL(VIRTIO_NET_F_MRG_RXBUF);
	if (net->has_mac) {
		net->v.offered |= BIT_ULL(VIRTIO_NET_F_MAC);
		memcpy(net->mac, c->guest_mac, ETH_ALEN);
		memcpy(config + offsetof(struct virtio_net_config, mac), c->guest_mac, ETH_ALEN);
	}
	if (net->mtu) {
		net->v.offered |= BIT_ULL(VIRTIO_NET_F_MTU);
		store_le16(config + offsetof(struct virtio_net_config, mtu), (uint16_t)net->mtu);
	}
	throttle_init(&net->rx_throttle, &c->rx_rate_limiter, on_rx_refilled, net);
	throttle_init(&net->tx_throttle, &c->tx_rate_limiter, on_tx_refilled, net);
}

static int add_metrics(struct virtio_net *net)
{
	char group[LIMIT_ID + 8];
	int ret = metrics_add_group(net->v.metrics, "net", net_metric_fields, &net->metrics);

	if (ret < 0)
		return ret;
	snprintf(group, sizeof(group), "net_%s", net->v.dev.id);
	return metrics_add_group(net->v.metrics, group, net_metric_fields, &net->metrics);
}

static struct device *net_create(const struct device_env *env, const void *config, void *backend,
				 struct error *err)
{
	const struct net_config *c = config;
	struct virtio_net *net = calloc(1, sizeof(*net));
	int ret;

	if (!net) {
		tap_close(backend);
		error_set(err, -ENOMEM, "network interface %s: no memory", c->iface_id);
		return NULL;
	}
	net->tap = backend;
	virtio_device_init(&net->v, &net_device_ops, &net_ops, env, "virtio-net", c->iface_id,
			   VIRTIO_ID_NET);
	set_up(net, c);
	ret = net_rx_init(&net->rx);
	if (ret == 0)
		ret = add_metrics(net);
	if (ret < 0) {
		error_set_errno(err, ret, "network interface %s", c->iface_id);
		virtio_device_destroy(&net->v.dev);
		return NULL;
	}
	return &net->v.dev;
}

const struct device_class virtio_net_class = {
	.type = "virtio-net",
	.open = net_open,
	.close = net_close,
	.create = net_create,
};
