/*
 * Handlers of the lock profiler: who waited for what, and where.
 *
 * Threads: main. Locks: none held; the report reads counters that others write.
 */
#include "api/handlers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "api/respond.h"
#include "api/schema.h"
#include "vmm/base/lock.h"
#include "vmm/limits.h"

/* Too large for a stack. */
struct report {
	struct lock_report_wait waits[LIMIT_LOCK_ROWS];
	struct lock_report_lock locks[LIMIT_LOCK_ROWS];
	size_t wait_count, lock_count; /* rows in use */
	size_t waits_left_out, locks_left_out;
};

static size_t rows_of(size_t count, size_t *ret_left_out)
{
	size_t rows = count < LIMIT_LOCK_ROWS ? count : LIMIT_LOCK_ROWS;

	*ret_left_out = count - rows;
	return rows;
}

static void take_report(struct report *r)
{
	r->wait_count = rows_of(lock_report_waits(r->waits, LIMIT_LOCK_ROWS), &r->waits_left_out);
	r->lock_count = rows_of(lock_report_locks(r->locks, LIMIT_LOCK_ROWS), &r->locks_left_out);
}

static void print_name(struct buf *body, const char *lead, const char *type, const char *object)
{
	buf_printf(body, "%s{\"type\":", lead);
	buf_append_json_string(body, type);
	buf_printf(body, ",\"object\":");
	buf_append_json_string(body, object);
}

/* Locks have a level, which conditions have not. */
static void print_wait(struct buf *body, const char *lead, const struct lock_report_wait *w)
{
	print_name(body, lead, w->type, w->object);
	if (!w->is_condition)
		buf_printf(body, ",\"level\":\"%s\"", lock_level_name(w->level));
	buf_printf(body, ",\"site\":\"%s:%" PRIu32 "\"", w->file, w->line);
	buf_printf(body,
		   ",\"wait_ns\":%" PRIu64 ",\"count\":%" PRIu64 ",\"average_ns\":%" PRIu64
		   ",\"max_ns\":%" PRIu64 "}",
		   w->wait_ns, w->count, w->wait_ns / w->count, w->max_ns);
}

static void print_waits(struct buf *body, const char *key, const struct report *r,
			bool conditions)
{
	const char *lead = "";
	size_t i;

	buf_printf(body, ",\"%s\":[", key);
	for (i = 0; i < r->wait_count; i++) {
		if (r->waits[i].is_condition != conditions)
			continue;
		print_wait(body, lead, &r->waits[i]);
		lead = ",";
	}
	buf_append(body, "]", 1);
}

static void print_locks(struct buf *body, const struct report *r)
{
	const struct lock_report_lock *l;

	buf_printf(body, ",\"objects\":[");
	for (l = r->locks; l < r->locks + r->lock_count; l++) {
		print_name(body, l == r->locks ? "" : ",", l->type, l->object);
		buf_printf(body, ",\"level\":\"%s\",\"takes\":%" PRIu64 "}",
			   lock_level_name(l->level), l->takes);
	}
	buf_append(body, "]", 1);
}

void handle_v1_get_locks(struct api_call *call)
{
	struct report *r = malloc(sizeof(*r));
	struct error err;
	struct buf body;

	if (!r) {
		error_set(&err, -ENOMEM, "no memory for the report");
		respond_error(call, &err);
		return;
	}
	take_report(r);
	buf_init(&body, LIMIT_API_REPLY);
	buf_printf(&body, "{\"profiling\":%s", lock_is_profiling() ? "true" : "false");
	print_waits(&body, "locks", r, false);
	print_waits(&body, "conditions", r, true);
	print_locks(&body, r);
	buf_printf(&body, ",\"waits_left_out\":%zu,\"objects_left_out\":%zu}", r->waits_left_out,
		   r->locks_left_out);
	respond_json(call, &body);
	buf_fini(&body);
	free(r);
}

void handle_v1_put_locks(struct api_call *call)
{
	const struct field_error neither = {
		.fault = FIELD_FAULT_MISSING,
		.text = "missing field `profiling` or `reset`",
	};
	const struct locks_params *p = call->params;

	if (!call->given) {
		respond_field_error(call, &neither);
		return;
	}
	if (p->has_profiling)
		lock_set_profiling(p->profiling);
	if (p->reset)
		lock_report_reset();
	respond_empty(call);
}
