/*
 * Virtio block device.
 *
 * Threads: the device's; creation on main. Locks: none of its own.
 * Not here: files and io_uring (blk_file.c, blk_uring.c), registers (device.c).
 * A request is header, data and one byte of status, cut into descriptors in
 * any way. The header is copied once; a request whose status cannot be written
 * is given back unserved, every other one gets a status.
 */
#include "devices/virtio/blk.h"

#include <errno.h>
#include <linux/virtio_blk.h>
#include <linux/virtio_ids.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices/virtio/blk_file.h"
#include "devices/virtio/blk_uring.h"
#include "devices/virtio/device.h"
#include "devices/virtio/iov.h"
#include "devices/virtio/throttle.h"
#include "vmm/base/bits.h"
#include "vmm/base/log.h"
#include "vmm/config.h"
#include "vmm/device_thread.h"

#define BLK_BATCH 32u /* requests taken in one go */
/*
 * Data segments of a request, offered as SEG_MAX. SIZE_MAX is not offered: a
 * guest's segments are as long as its pages, and those may be of 64 KiB.
 */
#define BLK_SEGMENTS 128u

/* virtio 1.2 section 5.2.6 */
struct blk_header {
	uint32_t type; /* VIRTIO_BLK_T_* */
	uint64_t sector;
};
#define HEADER_BYTES 16u
#define OVERHEAD (HEADER_BYTES + 1) /* and the status: what a request has beside data */

struct blk_metrics {
	metric activate_fails;
	metric cfg_fails;
	metric no_avail_buffer;
	metric event_fails;
	metric execute_fails;
	metric invalid_reqs_count;
	metric flush_count;
	metric queue_event_count;
	metric rate_limiter_event_count;
	metric update_count;
	metric update_fails;
	metric read_bytes;
	metric write_bytes;
	metric read_count;
	metric write_count;
	metric rate_limiter_throttled_events;
	metric io_engine_throttled_events;
	metric remaining_reqs_count;
};

static const struct metric_field blk_metric_fields[] = {
	METRIC(struct blk_metrics, activate_fails),
	METRIC(struct blk_metrics, cfg_fails),
	METRIC(struct blk_metrics, no_avail_buffer),
	METRIC(struct blk_metrics, event_fails),
	METRIC(struct blk_metrics, execute_fails),
	METRIC(struct blk_metrics, invalid_reqs_count),
	METRIC(struct blk_metrics, flush_count),
	METRIC(struct blk_metrics, queue_event_count),
	METRIC(struct blk_metrics, rate_limiter_event_count),
	METRIC(struct blk_metrics, update_count),
	METRIC(struct blk_metrics, update_fails),
	METRIC(struct blk_metrics, read_bytes),
	METRIC(struct blk_metrics, write_bytes),
	METRIC(struct blk_metrics, read_count),
	METRIC(struct blk_metrics, write_count),
	METRIC(struct blk_metrics, rate_limiter_throttled_events),
	METRIC(struct blk_metrics, io_engine_throttled_events),
	METRIC(struct blk_metrics, remaining_reqs_count),
	{ NULL, METRIC_COUNT, 0 },
};

struct virtio_blk {
	struct virtio_device v; /* first */
	/* constant */
	bool read_only;
	bool write_back; /* FLUSH is offered */
	struct blk_metrics metrics;

	/* the device's thread */
	struct blk_backend *backend;
	struct throttle throttle;
	struct chain chain;
	bool discarding; /* a reset: results are dropped */
	bool lost;       /* requests in flight could not be waited for: results are dropped */
	struct blk_request *stalled; /* was not taken by the full engine: its idle call goes on */
};

struct blk_request {
	struct blk_io io; /* first */
	struct virtio_blk *blk;
	uint16_t head;
	uint64_t bytes;  /* of data */
	uint8_t *status; /* in guest memory */
	struct iovec iov[];
};

static struct virtio_blk *blk_of(struct virtio_device *v)
{
	return (struct virtio_blk *)v;
}

/* Requests */

/* Writes the status and gives the chain back; `data` bytes were written before it. */
static void answer(struct virtio_blk *blk, uint16_t head, uint8_t *status, uint8_t code,
		   uint64_t data)
{
	*(volatile uint8_t *)status = code;
	virtio_push(&blk->v, 0, head, data < UINT32_MAX ? (uint32_t)data + 1 : UINT32_MAX);
}

static void count_done(struct virtio_blk *blk, const struct blk_request *r)
{
	switch (r->io.op) {
	case BLK_READ:
		metric_inc(&blk->metrics.read_count);
		metric_add(&blk->metrics.read_bytes, r->bytes);
		break;
	case BLK_WRITE:
		metric_inc(&blk->metrics.write_count);
		metric_add(&blk->metrics.write_bytes, r->bytes);
		break;
	case BLK_FLUSH:
		metric_inc(&blk->metrics.flush_count);
		break;
	}
}

static void on_done(struct blk_io *io, int result)
{
	struct blk_request *r = (struct blk_request *)io;
	struct virtio_blk *blk = r->blk;

	/* Of requests that were lost the guest has been told to forget all. */
	if (!blk->discarding && !blk->lost) {
		if (result < 0) {
			metric_inc(&blk->metrics.execute_fails);
			log_warn("drive %s: request failed: error %d", blk->v.dev.id, -result);
		} else {
			count_done(blk, r);
		}
		answer(blk, r->head, r->status, result < 0 ? VIRTIO_BLK_S_IOERR : VIRTIO_BLK_S_OK,
		       result == 0 && io->op == BLK_READ ? r->bytes : 0);
	}
	free(r);
}

/* False if the engine is full: then the request waits for its idle call. */
static bool submit(struct virtio_blk *blk, struct blk_request *r)
{
	if (blk->backend->ops->submit(blk->backend, &r->io) == 0)
		return true;
	blk->stalled = r;
	metric_inc(&blk->metrics.io_engine_throttled_events);
	return false;
}

static bool submit_stalled(struct virtio_blk *blk)
{
	struct blk_request *r = blk->stalled;

	blk->stalled = NULL;
	return submit(blk, r);
}

/*
 * Waits for all requests that the engine has, and for the one that it had no
 * room for: that was accepted too. False if there may be requests in flight.
 */
static bool finish_all(struct virtio_blk *blk, bool cancel)
{
	struct blk_backend *b = blk->backend;
	bool done = b->ops->drain(b, cancel);

	if (done && blk->stalled)
		done = submit_stalled(blk) && b->ops->drain(b, cancel);
	blk->lost = !done;
	return done;
}

/* Hands a transfer of the given ranges to the engine. */
static bool start(struct virtio_blk *blk, enum blk_op op, uint64_t sector, uint16_t head,
		  uint8_t *status, const struct iovec *iov, uint32_t count)
{
	struct blk_request *r = malloc(sizeof(*r) + count * sizeof(*iov));

	if (!r) {
		metric_inc(&blk->metrics.execute_fails);
		answer(blk, head, status, VIRTIO_BLK_S_IOERR, 0);
		return true;
	}
	if (count)
		memcpy(r->iov, iov, count * sizeof(*iov));
	r->blk = blk;
	r->head = head;
	r->status = status;
	r->bytes = iov_bytes(iov, count);
	r->io = (struct blk_io){
		.op = op,
		/* A driver that will never flush must find its writes on the disk. */
		.stable = blk->write_back && !virtio_has(&blk->v, VIRTIO_BLK_F_FLUSH),
		.offset = sector * BLK_SECTOR_BYTES,
		.bytes = r->bytes,
		.iov = r->iov,
		.iov_count = count,
		.done = on_done,
	};
	return submit(blk, r);
}

/* Inside the disk, in whole sectors, not too long; no sum here can wrap. */
static bool transfer_valid(const struct virtio_blk *blk, uint64_t sector, uint64_t bytes)
{
	uint64_t sectors = blk->backend->size / BLK_SECTOR_BYTES;

	return bytes && bytes <= LIMIT_BLK_REQUEST && bytes % BLK_SECTOR_BYTES == 0 &&
	       sector <= sectors && bytes / BLK_SECTOR_BYTES <= sectors - sector;
}

static uint64_t write_id(const struct virtio_blk *blk, const struct iovec *iov, uint32_t count)
{
	char id[VIRTIO_BLK_ID_BYTES] = { 0 };
	size_t len = strnlen(blk->v.dev.id, sizeof(id));

	memcpy(id, blk->v.dev.id, len);
	return iov_write(iov, count, 0, id, sizeof(id));
}

/* The last writable byte, taken off the chain. Zero-length ranges do not exist. */
static uint8_t *take_status(struct chain *c)
{
	struct iovec *last;

	if (!c->writable)
		return NULL;
	last = &chain_writable(c)[c->writable - 1];
	last->iov_len--;
	c->writable_bytes--;
	if (last->iov_len == 0)
		c->writable--;
	return (uint8_t *)last->iov_base + last->iov_len;
}

/* Copies the header off the front of the readable ranges. */
static bool take_header(const struct chain *c, struct blk_header *ret)
{
	uint8_t raw[HEADER_BYTES];

	if (iov_read(c->iov, c->readable, 0, raw, sizeof(raw)) != sizeof(raw))
		return false;
	ret->type = load_le32(raw);
	ret->sector = load_le64(raw + 8);
	return true;
}

/* Serves one chain. False if the engine is full. */
static bool serve_one(struct virtio_blk *blk, struct chain *c)
{
	struct iovec *out = c->iov, *in = chain_writable(c);
	uint32_t out_count = c->readable;
	uint8_t *status = take_status(c);
	uint8_t code = VIRTIO_BLK_S_IOERR;
	uint64_t written = 0;
	struct blk_header h;

	if (!status || !take_header(c, &h)) {
		metric_inc(&blk->metrics.invalid_reqs_count);
		if (status)
			answer(blk, c->head, status, code, 0);
		else
			virtio_push(&blk->v, 0, c->head, 0);
		return true;
	}
	iov_skip(&out, &out_count, HEADER_BYTES);
	switch (h.type) {
	case VIRTIO_BLK_T_IN:
		if (transfer_valid(blk, h.sector, c->writable_bytes))
			return start(blk, BLK_READ, h.sector, c->head, status, in, c->writable);
		break;
	case VIRTIO_BLK_T_OUT:
		if (!blk->read_only &&
		    transfer_valid(blk, h.sector, c->readable_bytes - HEADER_BYTES))
			return start(blk, BLK_WRITE, h.sector, c->head, status, out, out_count);
		break;
	case VIRTIO_BLK_T_FLUSH:
		if (blk->write_back)
			return start(blk, BLK_FLUSH, 0, c->head, status, NULL, 0);
		code = VIRTIO_BLK_S_UNSUPP;
		break;
	case VIRTIO_BLK_T_GET_ID:
		written = write_id(blk, in, c->writable);
		code = written ? VIRTIO_BLK_S_OK : VIRTIO_BLK_S_IOERR;
		break;
	default:
		code = VIRTIO_BLK_S_UNSUPP;
		break;
	}
	if (code != VIRTIO_BLK_S_OK)
		metric_inc(&blk->metrics.invalid_reqs_count);
	answer(blk, c->head, status, code, written);
	return true;
}

static bool blocked(const struct virtio_blk *blk)
{
	return blk->stalled || throttle_blocked(&blk->throttle);
}

/* Takes up to a batch of requests; what pop returned last. */
static int take_batch(struct virtio_blk *blk, unsigned queue)
{
	struct chain *c = &blk->chain;
	uint64_t bytes;
	unsigned n;
	int ret = 1;

	for (n = 0; n < BLK_BATCH && ret && !blocked(blk); n++) {
		ret = virtio_pop(&blk->v, queue, c);
		if (ret == -EPROTO)
			break;
		if (ret < 0)
			metric_inc(&blk->metrics.invalid_reqs_count);
		if (ret <= 0)
			continue;
		bytes = c->readable_bytes + c->writable_bytes;
		if (throttle_charge(&blk->throttle, bytes > OVERHEAD ? bytes - OVERHEAD : 0))
			metric_inc(&blk->metrics.rate_limiter_throttled_events);
		serve_one(blk, c);
	}
	if (n == 1 && ret == 0)
		metric_inc(&blk->metrics.no_avail_buffer);
	return ret;
}

static bool blk_serve(struct virtio_device *v, unsigned queue)
{
	struct virtio_blk *blk = blk_of(v);
	int ret;

	metric_inc(&blk->metrics.queue_event_count);
	ret = take_batch(blk, queue);
	blk->backend->ops->commit(blk->backend);
	virtio_notify(v, queue);
	if (ret == -EPROTO) {
		metric_inc(&blk->metrics.event_fails);
		return false;
	}
	if (ret && !blocked(blk))
		metric_inc(&blk->metrics.remaining_reqs_count);
	return ret && !blocked(blk);
}

/* The engine has room again. */
static void on_idle(void *arg)
{
	struct virtio_blk *blk = arg;

	if (!virtio_running(&blk->v))
		return;
	virtio_notify(&blk->v, 0);
	if (blk->stalled && submit_stalled(blk))
		virtio_serve(&blk->v, 0);
}

static void on_refilled(void *arg)
{
	struct virtio_blk *blk = arg;

	metric_inc(&blk->metrics.rate_limiter_event_count);
	virtio_serve(&blk->v, 0);
}

/* Life */

static int blk_activate(struct virtio_device *v)
{
	struct virtio_blk *blk = blk_of(v);
	struct event_loop *loop = device_thread_loop(v->dev.thread);
	int ret = throttle_start(&blk->throttle, loop);

	if (ret < 0)
		return ret;
	ret = blk->backend->ops->attach(blk->backend, loop, on_idle, blk);
	if (ret < 0)
		throttle_stop(&blk->throttle);
	return ret;
}

static bool blk_stop(struct virtio_device *v, bool discard)
{
	struct virtio_blk *blk = blk_of(v);
	bool done;

	if (discard) {
		free(blk->stalled);
		blk->stalled = NULL;
	}
	blk->discarding = discard;
	done = finish_all(blk, discard);
	blk->discarding = false;
	if (done && !discard)
		virtio_notify(v, 0);
	return done;
}

/* Nothing waits for the engine after a stop: the queues are served next. */
static void blk_resume(struct virtio_device *v)
{
}

static void blk_deactivate(struct virtio_device *v)
{
	struct virtio_blk *blk = blk_of(v);

	blk->backend->ops->detach(blk->backend);
	throttle_stop(&blk->throttle);
}

static void blk_close(void *backend)
{
	struct blk_backend *b = backend;

	if (b)
		b->ops->destroy(b);
}

static void blk_destroy(struct virtio_device *v)
{
	struct virtio_blk *blk = blk_of(v);

	metrics_remove_group(v->metrics, &blk->metrics);
	blk_close(blk->backend);
	free(blk);
}

static void set_capacity(uint8_t *config, const struct blk_backend *b)
{
	store_le64(config + offsetof(struct virtio_blk_config, capacity), b->size / BLK_SECTOR_BYTES);
}

/* Attaches `b` and waits for the old engine; on failure the old one stays. */
static int change_engine(struct virtio_blk *blk, struct blk_backend *b, struct error *err)
{
	const char *id = blk->v.dev.id;
	int ret;

	if (b->read_only != blk->read_only)
		return error_set(err, -EINVAL, "drive %s: read-only access cannot change", id);
	if (!blk->v.active)
		return 0;
	ret = b->ops->attach(b, device_thread_loop(blk->v.dev.thread), on_idle, blk);
	if (ret < 0)
		return error_set_errno(err, ret, "drive %s: new file", id);
	if (!finish_all(blk, false)) {
		b->ops->detach(b);
		virtio_fail(&blk->v, "requests in flight do not end");
		return error_set(err, -EIO, "drive %s: requests in flight do not end", id);
	}
	blk->backend->ops->detach(blk->backend);
	return 0;
}

/* The old file's requests all end there; then the guest is told the new capacity. */
static int blk_exchange(struct device *d, void *backend, struct error *err)
{
	struct virtio_blk *blk = blk_of(virtio_of(d));
	struct blk_backend *old = blk->backend;
	uint8_t capacity[8];
	int ret = change_engine(blk, backend, err);

	if (ret < 0) {
		metric_inc(&blk->metrics.update_fails);
		return ret;
	}
	blk->backend = backend;
	old->ops->destroy(old);
	set_capacity(capacity, blk->backend);
	virtio_set_config(&blk->v, 0, capacity, sizeof(capacity));
	metric_inc(&blk->metrics.update_count);
	virtio_serve(&blk->v, 0);
	return 0;
}

static const struct virtio_ops blk_ops = {
	.activate = blk_activate,
	.serve = blk_serve,
	.stop = blk_stop,
	.resume = blk_resume,
	.deactivate = blk_deactivate,
	.destroy = blk_destroy,
};

static const struct device_ops blk_device_ops = {
	.start = virtio_device_start,
	.quiesce = virtio_device_quiesce,
	.unquiesce = virtio_device_unquiesce,
	.status = virtio_device_state,
	.exchange = blk_exchange,
	.destroy = virtio_device_destroy,
};

static int blk_open(const void *config, void **ret_backend, struct error *err)
{
	const struct drive_config *c = config;
	struct blk_backend *b = NULL;
	struct blk_file *f;
	int ret;

	ret = blk_file_open(c, &f, err);
	if (ret < 0)
		return ret;
	if (c->io_engine == DRIVE_IO_ASYNC) {
		ret = blk_uring_backend_new(f, &b);
		if (ret < 0)
			log_always("drive %s: io_uring is not available (error %d): Sync engine",
				   c->drive_id, -ret);
	}
	if (!b)
		b = blk_file_backend_new(f);
	if (!b)
		return error_set(err, -ENOMEM, "drive %s: no memory", c->drive_id);
	*ret_backend = b;
	return 0;
}

static void set_up(struct virtio_blk *blk, const struct drive_config *c) TSA_UNCHECKED
{
	uint8_t *config = blk->v.config;

	blk->read_only = c->is_read_only;
	blk->write_back = c->cache_type == DRIVE_CACHE_WRITEBACK;
	blk->v.activate_fails = &blk->metrics.activate_fails;
	blk->v.offered |= BIT_ULL(VIRTIO_BLK_F_SEG_MAX);
	if (blk->read_only)
		blk->v.offered |= BIT_ULL(VIRTIO_BLK_F_RO);
	if (blk->write_back)
		blk->v.offered |= BIT_ULL(VIRTIO_BLK_F_FLUSH);
	set_capacity(config, blk->backend);
	store_le32(config + offsetof(struct virtio_blk_config, seg_max), BLK_SEGMENTS);
	throttle_init(&blk->throttle, &c->rate_limiter, on_refilled, blk);
}

static struct device *blk_create(const struct device_env *env, const void *config, void *backend,
				 struct error *err)
{
	const struct drive_config *c = config;
	struct virtio_blk *blk = calloc(1, sizeof(*blk));
	char group[LIMIT_ID + 8];
	int ret;

	if (!blk) {
		blk_close(backend);
		error_set(err, -ENOMEM, "drive %s: no memory", c->drive_id);
		return NULL;
	}
	blk->backend = backend;
	virtio_device_init(&blk->v, &blk_device_ops, &blk_ops, env, "virtio-blk", c->drive_id,
			   VIRTIO_ID_BLOCK);
	set_up(blk, c);
	snprintf(group, sizeof(group), "block_%s", c->drive_id);
	ret = metrics_add_group(env->metrics, "block", blk_metric_fields, &blk->metrics);
	if (ret == 0)
		ret = metrics_add_group(env->metrics, group, blk_metric_fields, &blk->metrics);
	if (ret < 0) {
		error_set_errno(err, ret, "drive %s: metrics", c->drive_id);
		virtio_device_destroy(&blk->v.dev);
		return NULL;
	}
	return &blk->v.dev;
}

const struct device_class virtio_blk_class = {
	.type = "virtio-blk",
	.open = blk_open,
	.close = blk_close,
	.create = blk_create,
};
