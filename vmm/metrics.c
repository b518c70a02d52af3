/*
 * Metrics: groups of counters and the JSON line that they become.
 *
 * A group of one name has any number of sources (structs of counters); its
 * line shows their sum plus what removed sources had counted. The groups that
 * consumers of Firecracker's metrics expect are always there, zeros included.
 *
 * Threads: main; counters are bumped by any. Locks: none.
 * Not here: when lines are written (main's timer, FlushMetrics).
 */
#include "vmm/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/bits.h"
#include "vmm/base/log.h"

#define LINE_MAX_BYTES (256u * 1024u)
#define NAME_MAX_BYTES 64

struct series {
	struct series *next;
	char *name;
	const struct metric_field *fields;
	size_t count;
	uint64_t *last;    /* shown by the last line */
	uint64_t *now;     /* taken for the line being written */
	uint64_t *retired; /* counted by removed sources */
	const void **sources;
	size_t source_count;
};

struct logger_metrics {
	metric missed_metrics_count;
	metric metrics_fails;
	metric missed_log_count;
	metric rate_limited_log_count;
};

struct metrics {
	struct series *first; /* in the order they were added */
	int fd;               /* -EBADF: no target */
	struct buf tail;      /* of a line that the target took only in part */
	struct logger_metrics logger;
	void (*refresh)(void *arg);
	void *refresh_arg;
};

struct schema_group {
	const char *name;
	const char *fields; /* separated by blanks; "agg.min_us" lies in an object "agg" */
};

#define AGG(name) name ".min_us " name ".max_us " name ".sum_us"

/* What every line holds, whether or not the machine has the device. */
static const struct schema_group schema[] = {
	{ "api_server", "process_startup_time_us process_startup_time_cpu_us" },
	{ "balloon", "activate_fails inflate_count stats_updates_count stats_update_fails "
		     "deflate_count event_fails free_page_report_count free_page_report_freed "
		     "free_page_report_fails free_page_hint_count free_page_hint_freed "
		     "free_page_hint_fails" },
	{ "block", "activate_fails cfg_fails no_avail_buffer event_fails execute_fails "
		   "invalid_reqs_count flush_count queue_event_count rate_limiter_event_count "
		   "update_count update_fails read_bytes write_bytes read_count write_count "
		   "rate_limiter_throttled_events io_engine_throttled_events "
		   "remaining_reqs_count " AGG("read_agg") " " AGG("write_agg") },
	{ "deprecated_api", "deprecated_http_api_calls" },
	{ "entropy", "activate_fails entropy_event_fails entropy_event_count entropy_bytes "
		     "host_rng_fails entropy_rate_limiter_throttled rate_limiter_event_count" },
	{ "get_api_requests", "instance_info_count machine_cfg_count mmds_count "
			      "vmm_version_count hotplug_memory_count" },
	{ "i8042", "error_count missed_read_count missed_write_count read_count reset_count "
		   "write_count" },
	{ "interrupts", "triggers config_updates" },
	{ "latencies_us", "full_create_snapshot diff_create_snapshot load_snapshot pause_vm "
			  "resume_vm vmm_full_create_snapshot vmm_diff_create_snapshot "
			  "vmm_load_snapshot vmm_pause_vm vmm_resume_vm" },
	{ "logger", "missed_metrics_count metrics_fails missed_log_count "
		    "rate_limited_log_count" },
	{ "memory_hotplug", "activate_fails queue_event_fails queue_event_count plug_count "
			    "plug_bytes plug_fails " AGG("plug_agg") " unplug_count unplug_bytes "
			    "unplug_fails unplug_discard_fails " AGG("unplug_agg") " state_count "
			    "state_fails " AGG("state_agg") " unplug_all_count unplug_all_fails "
			    AGG("unplug_all_agg") },
	{ "mmds", "rx_accepted rx_accepted_err rx_accepted_unusual rx_bad_eth rx_invalid_token "
		  "rx_no_token rx_count tx_bytes tx_count tx_errors tx_frames "
		  "connections_created connections_destroyed" },
	{ "net", "activate_fails cfg_fails no_rx_avail_buffer no_tx_avail_buffer event_fails "
		 "rx_queue_event_count rx_event_rate_limiter_count rx_rate_limiter_throttled "
		 "rx_tap_event_count rx_bytes_count rx_packets_count rx_fails rx_count "
		 "tap_read_fails tap_write_fails tx_bytes_count tx_malformed_frames tx_fails "
		 "tx_count tx_packets_count tx_queue_event_count tx_rate_limiter_event_count "
		 "tx_rate_limiter_throttled tx_spoofed_mac_count tx_remaining_reqs_count "
		 AGG("tap_write_agg") },
	{ "patch_api_requests", "drive_count drive_fails network_count network_fails "
				"machine_cfg_count machine_cfg_fails mmds_count mmds_fails "
				"hotplug_memory_count hotplug_memory_fails pmem_count pmem_fails" },
	{ "pmem", "activate_fails cfg_fails event_fails queue_event_count "
		  "rate_limiter_throttled_events rate_limiter_event_count" },
	{ "put_api_requests", "actions_count actions_fails boot_source_count boot_source_fails "
			      "drive_count drive_fails logger_count logger_fails "
			      "machine_cfg_count machine_cfg_fails cpu_cfg_count cpu_cfg_fails "
			      "metrics_count metrics_fails network_count network_fails mmds_count "
			      "mmds_fails vsock_count vsock_fails pmem_count pmem_fails "
			      "serial_count serial_fails hotplug_memory_count "
			      "hotplug_memory_fails" },
#if defined(__aarch64__)
	{ "rtc", "error_count missed_read_count missed_write_count" },
#endif
	{ "seccomp", "num_faults" },
	{ "signals", "sigbus sigsegv sigxfsz sigxcpu sigpipe sighup sigill" },
	{ "uart", "error_count flush_count missed_read_count missed_write_count read_count "
		  "write_count rate_limiter_dropped_bytes" },
	{ "vcpu", "exit_io_in exit_io_out exit_mmio_read exit_mmio_write failures "
		  "kvmclock_ctrl_fails " AGG("exit_io_in_agg") " " AGG("exit_io_out_agg") " "
		  AGG("exit_mmio_read_agg") " " AGG("exit_mmio_write_agg") },
	{ "vmm", "panic_count" },
	{ "vsock", "activate_fails cfg_fails rx_queue_event_fails tx_queue_event_fails "
		   "ev_queue_event_fails muxer_event_fails conn_event_fails rx_queue_event_count "
		   "tx_queue_event_count rx_bytes_count tx_bytes_count rx_packets_count "
		   "tx_packets_count conns_added conns_killed conns_removed killq_resync "
		   "tx_flush_fails tx_write_fails rx_read_fails" },
};

static const struct metric_field logger_fields[] = {
	METRIC(struct logger_metrics, missed_metrics_count),
	METRIC(struct logger_metrics, metrics_fails),
	METRIC(struct logger_metrics, missed_log_count),
	METRIC(struct logger_metrics, rate_limited_log_count),
	{ 0 },
};

struct metrics *metrics_new(void)
{
	struct metrics *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->fd = -EBADF;
	buf_init(&m->tail, LINE_MAX_BYTES);
	if (metrics_add_group(m, "logger", logger_fields, &m->logger) < 0)
		return metrics_free(m);
	return m;
}

static void series_free(struct series *s)
{
	free(s->name);
	free(s->last);
	free(s->now);
	free(s->retired);
	free(s->sources);
	free(s);
}

struct metrics *metrics_free(struct metrics *m)
{
	struct series *s;

	if (!m)
		return NULL;
	while (m->first) {
		s = m->first;
		m->first = s->next;
		series_free(s);
	}
	if (m->fd >= 0)
		close(m->fd);
	buf_fini(&m->tail);
	free(m);
	return NULL;
}

static size_t count_fields(const struct metric_field *fields)
{
	size_t n = 0;

	while (fields[n].name)
		n++;
	return n;
}

static bool same_fields(const struct series *s, const struct metric_field *fields)
{
	size_t i;

	if (count_fields(fields) != s->count)
		return false;
	for (i = 0; i < s->count; i++) {
		if (strcmp(fields[i].name, s->fields[i].name) != 0 ||
		    fields[i].kind != s->fields[i].kind || fields[i].offset != s->fields[i].offset)
			return false;
	}
	return true;
}

static struct series *find_series(const struct metrics *m, const char *name, size_t len)
{
	struct series *s;

	for (s = m->first; s; s = s->next) {
		if (!strncmp(s->name, name, len) && s->name[len] == '\0')
			return s;
	}
	return NULL;
}

static struct series *series_new(struct metrics *m, const char *name,
				 const struct metric_field *fields)
{
	struct series *s = calloc(1, sizeof(*s)), **link;

	if (!s)
		return NULL;
	s->fields = fields;
	s->count = count_fields(fields);
	s->name = strndup(name, NAME_MAX_BYTES + 16);
	s->last = calloc(s->count + 1, sizeof(*s->last));
	s->now = calloc(s->count + 1, sizeof(*s->now));
	s->retired = calloc(s->count + 1, sizeof(*s->retired));
	if (!s->name || !s->last || !s->now || !s->retired) {
		series_free(s);
		return NULL;
	}
	for (link = &m->first; *link; link = &(*link)->next)
		;
	*link = s;
	return s;
}

int metrics_add_group(struct metrics *m, const char *name, const struct metric_field *fields,
		      const void *base)
{
	struct series *s = find_series(m, name, strlen(name));
	const void **grown;

	if (!s)
		s = series_new(m, name, fields);
	if (!s)
		return -ENOMEM;
	if (!same_fields(s, fields))
		return -EINVAL;
	grown = realloc(s->sources, (s->source_count + 1) * sizeof(*s->sources));
	if (!grown)
		return -ENOMEM;
	s->sources = grown;
	s->sources[s->source_count++] = base;
	return 0;
}

static uint64_t read_field(const struct metric_field *f, const void *base)
{
	return metric_read((const metric *)((const char *)base + f->offset));
}

static void retire_source(struct series *s, size_t at)
{
	size_t i;

	for (i = 0; i < s->count; i++)
		s->retired[i] += read_field(&s->fields[i], s->sources[at]);
	s->sources[at] = s->sources[--s->source_count];
}

void metrics_remove_group(struct metrics *m, const void *base)
{
	struct series *s;
	size_t i;

	for (s = m->first; s; s = s->next) {
		for (i = s->source_count; i > 0; i--) {
			if (s->sources[i - 1] == base)
				retire_source(s, i - 1);
		}
	}
}

void metrics_set_refresh(struct metrics *m, void (*fn)(void *arg), void *arg)
{
	m->refresh = fn;
	m->refresh_arg = arg;
}

int metrics_set_target(struct metrics *m, const char *path, struct error *err)
{
	static const char lead[] = "Cannot initialize the metrics system due to bad user input";
	char meaning[128];
	int fd;

	if (m->fd >= 0)
		return error_set(err, -EALREADY, "%s: Reinitialization of metrics not allowed.",
				 lead);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
	if (fd < 0)
		return error_set(err, -errno, "%s: %s (os error %d) %s", lead,
				 strerror_r(errno, meaning, sizeof(meaning)), errno, path);
	m->fd = fd;
	return 0;
}

/* Reads all counters once, so that a line and what is kept of it agree. */
static void take_values(const struct metrics *m)
{
	struct series *s;
	size_t i, j;

	if (m->refresh)
		m->refresh(m->refresh_arg);
	for (s = m->first; s; s = s->next) {
		for (i = 0; i < s->count; i++) {
			s->now[i] = s->retired[i];
			for (j = 0; j < s->source_count; j++)
				s->now[i] += read_field(&s->fields[i], s->sources[j]);
		}
	}
}

static uint64_t shown_value(const struct series *s, size_t i)
{
	return s->fields[i].kind == METRIC_COUNT ? s->now[i] - s->last[i] : s->now[i];
}

/* Writes `"name":value`, with the objects that dotted names lie in around them. */
struct field_writer {
	struct buf *out;
	char open[NAME_MAX_BYTES]; /* name of the inner object that is open; "" */
	const char *lead;
};

static void close_inner(struct field_writer *w)
{
	if (w->open[0])
		buf_append(w->out, "}", 1);
	w->open[0] = '\0';
}

static void write_field(struct field_writer *w, const char *name, size_t len, uint64_t value)
{
	const char *dot = memchr(name, '.', len);
	size_t outer = dot ? (size_t)(dot - name) : 0;

	if (w->open[0] && (strncmp(w->open, name, outer) != 0 || w->open[outer] != '\0'))
		close_inner(w);
	buf_printf(w->out, "%s", w->lead);
	if (outer && !w->open[0] && outer < sizeof(w->open)) {
		memcpy(w->open, name, outer);
		w->open[outer] = '\0';
		buf_printf(w->out, "\"%s\":{", w->open);
	}
	buf_printf(w->out, "\"%.*s\":%" PRIu64, (int)(len - (dot ? outer + 1 : 0)),
		   dot ? dot + 1 : name, value);
	w->lead = ",";
}

static size_t find_field(const struct series *s, const char *name, size_t len)
{
	size_t i = 0;

	while (i < s->count &&
	       (strncmp(s->fields[i].name, name, len) != 0 || s->fields[i].name[len] != '\0'))
		i++;
	return i;
}

static bool in_schema(const char *fields, const char *name)
{
	size_t len = strlen(name), n;

	for (; *fields; fields += n + (fields[n] == ' ')) {
		n = strcspn(fields, " ");
		if (n == len && !memcmp(fields, name, n))
			return true;
	}
	return false;
}

/* First the fields of the schema, zeros where there is no counter, then further ones. */
static void write_group(struct buf *out, const char *name, const char *fields,
			const struct series *s)
{
	struct field_writer w = { .out = out, .lead = "" };
	const char *p;
	size_t n, i;

	buf_printf(out, ",\"%s\":{", name);
	for (p = fields; *p; p += n + (p[n] == ' ')) {
		n = strcspn(p, " ");
		i = s ? find_field(s, p, n) : 0;
		write_field(&w, p, n, s && i < s->count ? shown_value(s, i) : 0);
	}
	for (i = 0; s && i < s->count; i++) {
		if (!in_schema(fields, s->fields[i].name))
			write_field(&w, s->fields[i].name, strlen(s->fields[i].name),
				    shown_value(s, i));
	}
	close_inner(&w);
	buf_append(out, "}", 1);
}

/* "block_<id>" and "net_<id>" have all the fields of "block" and "net". */
static const struct schema_group *schema_of(const char *name)
{
	size_t i, n;

	for (i = 0; i < ARRAY_SIZE(schema); i++) {
		n = strlen(schema[i].name);
		if (!strncmp(name, schema[i].name, n) && (name[n] == '\0' || name[n] == '_'))
			return &schema[i];
	}
	return NULL;
}

static void write_line(const struct metrics *m, struct buf *out)
{
	const struct schema_group *g;
	const struct series *s;
	struct timespec now;
	size_t i;

	clock_gettime(CLOCK_REALTIME, &now);
	buf_printf(out, "{\"utc_timestamp_ms\":%" PRIu64,
		   (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000);
	for (i = 0; i < ARRAY_SIZE(schema); i++)
		write_group(out, schema[i].name, schema[i].fields,
			    find_series(m, schema[i].name, strlen(schema[i].name)));
	for (s = m->first; s; s = s->next) {
		g = schema_of(s->name);
		if (!g || strcmp(g->name, s->name) != 0)
			write_group(out, s->name, g ? g->fields : "", s);
	}
	buf_append(out, "}", 1);
}

static void update_logger(struct logger_metrics *l)
{
	struct log_counters counters;

	log_get_counters(&counters);
	atomic_store_explicit(&l->missed_log_count, counters.missed, memory_order_relaxed);
	atomic_store_explicit(&l->rate_limited_log_count, counters.rate_limited,
			      memory_order_relaxed);
}

int metrics_format(const struct metrics *m, struct buf *out)
{
	take_values(m);
	write_line(m, out);
	return buf_failed(out) ? -ENOSPC : 0;
}

static void keep_values(struct metrics *m)
{
	struct series *s;

	for (s = m->first; s; s = s->next)
		memcpy(s->last, s->now, s->count * sizeof(*s->last));
}

/* Bytes that the target took: 0 when it is full; a negative errno. */
static ssize_t put_bytes(int fd, const char *data, size_t len)
{
	size_t done = 0;
	ssize_t put;

	while (done < len) {
		put = write(fd, data + done, len - done);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return done > 0 || errno == EAGAIN ? (ssize_t)done : -errno;
		done += (size_t)put;
	}
	return (ssize_t)done;
}

/* A FIFO may take part of a line: the rest goes out before the next one. */
static ssize_t put_tail(struct metrics *m)
{
	struct buf rest = m->tail;
	ssize_t put;

	if (m->tail.len == 0)
		return 0;
	put = put_bytes(m->fd, m->tail.data, m->tail.len);
	if (put < 0)
		return put;
	buf_init(&m->tail, LINE_MAX_BYTES);
	buf_append(&m->tail, rest.data + put, rest.len - (size_t)put);
	buf_fini(&rest);
	return m->tail.len > 0 ? -EAGAIN : 0;
}

static ssize_t put_line(struct metrics *m, const struct buf *line)
{
	ssize_t put = put_tail(m);

	if (put < 0)
		return put;
	put = put_bytes(m->fd, line->data, line->len);
	if (put > 0)
		buf_append(&m->tail, line->data + put, line->len - (size_t)put);
	return put == 0 ? -EAGAIN : put;
}

int metrics_flush(struct metrics *m, struct error *err)
{
	struct buf line;
	ssize_t put;
	int ret;

	if (m->fd < 0)
		return 0;
	update_logger(&m->logger);
	buf_init(&line, LINE_MAX_BYTES);
	ret = metrics_format(m, &line);
	if (ret == 0)
		ret = buf_append(&line, "\n", 1);
	put = ret < 0 ? ret : put_line(m, &line);
	buf_fini(&line);
	if (put > 0) {
		keep_values(m);
		return 0;
	}
	metric_inc(&m->logger.missed_metrics_count);
	if (put == -EAGAIN)
		return 0;
	metric_inc(&m->logger.metrics_fails);
	return error_set_errno(err, (int)put, "Cannot write the metrics");
}
