/*
 * The set of devices. Threads: main; work is posted to device threads.
 * Locks: none.
 */
#include "vmm/device_set.h"

#include <errno.h>
#include <string.h>

#include "vmm/device_thread.h"

void device_set_init(struct device_set *s, struct event_loop *loop)
{
	memset(s, 0, sizeof(*s));
	s->loop = loop;
}

int device_set_add(struct device_set *s, struct device *d, struct error *err)
{
	if (s->count == DEVICE_SET_MAX) {
		error_set(err, -ENOSPC, "device %s: more than %d devices", d->id, DEVICE_SET_MAX);
		d->ops->destroy(d);
		return -ENOSPC;
	}
	s->devices[s->count++] = d;
	return 0;
}

struct device *device_set_find(const struct device_set *s, const char *type, const char *id)
{
	uint32_t i;

	for (i = 0; i < s->count; i++) {
		struct device *d = s->devices[i];

		if (!strcmp(d->type, type) && !strcmp(d->id, id))
			return d;
	}
	return NULL;
}

int device_set_start(struct device_set *s, struct error *err)
{
	uint32_t i;

	for (i = 0; i < s->count; i++) {
		struct device *d = s->devices[i];
		int ret = d->ops->start ? d->ops->start(d, err) : 0;

		if (ret < 0)
			return ret;
	}
	return 0;
}

static void answered(void *arg)
{
	struct device_set *s = arg;

	if (--s->pending == 0)
		s->done(s->done_arg);
}

static void run_job(void *arg)
{
	struct device_job *job = arg;

	job->op(job->device);
	event_loop_post_node(job->set->loop, &job->answer, answered, job->set);
}

static void run_on(struct device_set *s, struct device_job *job)
{
	struct device *d = job->device;

	event_loop_post_node(d->thread ? device_thread_loop(d->thread) : s->loop, &job->ask,
			     run_job, job);
}

static void fan_out(struct device_set *s, bool pause, event_fn done, void *arg)
{
	uint32_t i;

	s->paused = pause;
	s->done = done;
	s->done_arg = arg;
	s->pending = s->count + 1; /* ours keeps it above zero until all are posted */
	for (i = 0; i < s->count; i++) {
		const struct device_ops *ops = s->devices[i]->ops;
		void (*op)(struct device *d) = pause ? ops->quiesce : ops->unquiesce;

		s->jobs[i] = (struct device_job){
			.set = s,
			.device = s->devices[i],
			.op = op,
		};
		if (op)
			run_on(s, &s->jobs[i]);
		else
			s->pending--;
	}
	answered(s);
}

void device_set_pause(struct device_set *s, event_fn done, void *arg)
{
	fan_out(s, true, done, arg);
}

void device_set_resume(struct device_set *s, event_fn done, void *arg)
{
	fan_out(s, false, done, arg);
}

void device_set_fini(struct device_set *s)
{
	while (s->count) {
		struct device *d = s->devices[--s->count];

		d->ops->destroy(d);
	}
}
