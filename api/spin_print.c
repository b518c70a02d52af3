/*
 * Printing of what is seen of spinning. Threads: main. Locks: none.
 */
#include "api/spin_print.h"

#include <inttypes.h>

#include "vmm/control.h"

struct stats_printer {
	struct buf *body;
	const char *lead;
};

/* A histogram is shown up to its last value that is not zero. */
static void print_stat(void *arg, const char *name, const uint64_t *values, size_t count)
{
	struct stats_printer *p = arg;
	size_t i;

	buf_printf(p->body, "%s", p->lead);
	p->lead = ",";
	buf_append_json_string(p->body, name);
	if (count == 1) {
		buf_printf(p->body, ":%" PRIu64, values[0]);
		return;
	}
	while (count > 0 && values[count - 1] == 0)
		count--;
	buf_printf(p->body, ":[");
	for (i = 0; i < count; i++)
		buf_printf(p->body, "%s%" PRIu64, i ? "," : "", values[i]);
	buf_printf(p->body, "]");
}

static void print_sched(struct buf *body, const struct spin_sample *s)
{
	if (!s->has_sched) {
		buf_printf(body, "null");
		return;
	}
	buf_printf(body,
		   "{\"run_ns\":%" PRIu64 ",\"run_delay_ns\":%" PRIu64 ",\"slices\":%" PRIu64
		   ",\"host_cpu\":%" PRIu32 "}",
		   s->run_ns, s->delay_ns, s->slices, s->host_cpu);
}

static void print_spin(struct buf *body, const struct spin_sample *s)
{
	if (!s->has_kvm) {
		buf_printf(body, "null");
		return;
	}
	buf_printf(body,
		   "{\"exits\":%" PRIu64 ",\"spin_exits\":%" PRIu64 ",\"halts\":%" PRIu64
		   ",\"halt_polls\":%" PRIu64 ",\"halt_polls_successful\":%" PRIu64
		   ",\"directed_yields\":%" PRIu64 ",\"directed_yields_successful\":%" PRIu64 "}",
		   s->exits, s->spin_exits, s->halts, s->polls, s->polls_good, s->yields,
		   s->yields_good);
}

static void print_sample(struct buf *body, const struct spin_sample *s)
{
	buf_printf(body, "\"sched\":");
	print_sched(body, s);
	buf_printf(body, ",\"spin\":");
	print_spin(body, s);
}

void spin_print_vcpu(struct buf *body, struct vm *vm, size_t index)
{
	struct stats_printer printer = { body, "{" };
	struct spin_sample s;

	if (control_vcpu_sample(vm, index, &s) < 0) {
		buf_printf(body, "null");
		return;
	}
	buf_printf(body, "{");
	print_sample(body, &s);
	buf_printf(body, ",\"kvm\":");
	control_vcpu_stats(vm, index, print_stat, &printer);
	buf_printf(body, "%s", printer.lead[0] == '{' ? "null}" : "}}");
}

void spin_print_vcpus(struct buf *body, struct vm *vm)
{
	size_t i, count = control_vcpu_count(vm);
	struct spin_sample s;

	buf_printf(body, "[");
	for (i = 0; i < count && control_vcpu_sample(vm, i, &s) == 0; i++) {
		buf_printf(body, "%s{\"index\":%zu,", i ? "," : "", i);
		print_sample(body, &s);
		buf_printf(body, "}");
	}
	buf_printf(body, "]");
}

void spin_print_vm_stats(struct buf *body, struct vm *vm)
{
	struct stats_printer printer = { body, "{" };

	control_vm_stats(vm, print_stat, &printer);
	buf_printf(body, "%s", printer.lead[0] == '{' ? "null" : "}");
}

static const char *class_name(enum spin_class c)
{
	static const char *const names[] = {
		[SPIN_NORMAL] = "normal",
		[SPIN_IDLE] = "idle",
		[SPIN_PREEMPTED_HOLDER] = "preempted_holder",
		[SPIN_TRUE_CONTENTION] = "true_contention",
	};

	return names[c];
}

static const struct {
	const char *action;
	const char *text;
} advices[] = {
	[SPIN_ADVICE_NONE] = { "none", "" },
	[SPIN_ADVICE_SPREAD] = { "spread_vcpus", "pin each vCPU to a host CPU of its own" },
	[SPIN_ADVICE_MORE_CPUS] = { "more_host_cpus",
				    "there are fewer host CPUs than vCPUs that want to run" },
	[SPIN_ADVICE_LEAVE] = { "none_helps", "all vCPUs run: no yield and no host CPU can help" },
};

void spin_print_controller(struct buf *body, const struct vm *vm)
{
	static const char *const modes[] = {
		[SPIN_CONTROLLER_OFF] = "off",
		[SPIN_CONTROLLER_DRY_RUN] = "dry_run",
		[SPIN_CONTROLLER_ON] = "on",
	};
	const struct spin_config *config = &control_get_config(vm)->spin;
	struct control_spin_controller c;
	uint32_t i;

	control_get_spin_controller(vm, &c);
	buf_printf(body, "{\"mode\":\"%s\",\"period_ms\":%" PRIu32 ",\"periods\":%" PRIu64
			 ",\"blind_periods\":%" PRIu64,
		   modes[config->controller], config->period_ms, c.periods, c.blind);
	if (c.periods == 0) {
		buf_printf(body, ",\"class\":null,\"halt_poll_ns\":null,\"advice\":null}");
		return;
	}
	buf_printf(body,
		   ",\"class\":\"%s\",\"halt_poll_ns\":%" PRIu32
		   ",\"advice\":{\"action\":\"%s\",\"text\":\"%s\",\"host_cpus\":[",
		   class_name(c.class), c.halt_poll_ns, advices[c.advice].action,
		   advices[c.advice].text);
	for (i = 0; i < c.host_cpu_count; i++)
		buf_printf(body, "%s%" PRIu32, i ? "," : "", c.host_cpus[i]);
	buf_printf(body, "]}}");
}

static void print_inputs(struct buf *body, const struct spin_inputs *in)
{
	struct stats_printer printer = { body, "," };

	buf_printf(body,
		   ",\"inputs\":{\"wall_ns\":%" PRIu64 ",\"vcpus\":%" PRIu32 ",\"host_cpus\":%" PRIu32
		   ",\"run_ns\":%" PRIu64 ",\"run_delay_ns\":%" PRIu64
		   ",\"max_run_delay_ns\":%" PRIu64 ",\"spin_exits\":%" PRIu64
		   ",\"halts\":%" PRIu64 ",\"directed_yields\":%" PRIu64
		   ",\"directed_yields_successful\":%" PRIu64
		   ",\"halt_polls_failed\":%" PRIu64 ",\"halt_poll_failed_ns\":%" PRIu64,
		   in->wall_ns, in->vcpus, in->host_cpus, in->run_ns, in->delay_ns,
		   in->max_delay_ns, in->spin_exits, in->halts, in->yields, in->yields_good,
		   in->polls_bad, in->poll_bad_ns);
	print_stat(&printer, "halts_polled", in->poll_hist, SPIN_BUCKETS);
	print_stat(&printer, "halts_slept", in->wait_hist, SPIN_BUCKETS);
	buf_printf(body, "}");
}

static void print_event(struct buf *body, const struct spin_event *e)
{
	buf_printf(body, "{\"number\":%" PRIu64 ",\"uptime_ms\":%" PRIu64, e->number,
		   e->uptime_ms);
	if (e->kind == SPIN_EVENT_CLASS)
		buf_printf(body, ",\"kind\":\"class\",\"from\":\"%s\",\"to\":\"%s\"",
			   class_name(e->from_class), class_name(e->to_class));
	else
		buf_printf(body,
			   ",\"kind\":\"halt_poll_ns\",\"from\":%" PRIu32 ",\"to\":%" PRIu32
			   ",\"dry_run\":%s,\"errno\":%d",
			   e->from_ns, e->to_ns, e->dry_run ? "true" : "false", -e->code);
	buf_printf(body, ",\"why\":");
	buf_append_json_string(body, e->why);
	print_inputs(body, &e->inputs);
	buf_printf(body, "}");
}

void spin_print_events(struct buf *body, const struct vm *vm)
{
	const struct spin_event *e;
	size_t i;

	buf_printf(body, "[");
	for (i = 0; (e = control_get_spin_event(vm, i)); i++) {
		buf_printf(body, "%s", i ? "," : "");
		print_event(body, e);
	}
	buf_printf(body, "]");
}
