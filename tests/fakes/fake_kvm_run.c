/*
 * KVM_RUN of the fake: the script of a vCPU, step by step.
 *
 * Threads: the vCPU's. All signals are blocked while the script runs, so that
 * one that arrives stays pending, as it does inside the kernel; a halt lets it
 * in; where KVM_RUN returns it is delivered. So a signal that came before
 * KVM_RUN began leaves no trace, and only immediate_exit tells of it.
 * Locks: fake.lock, for what the vCPUs of a VM share.
 */
#include "fake_kvm_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define IRQ_PATIENCE_S 30

enum outcome { GO_ON, EXITED }; /* or a negative errno */

static void load_value(uint64_t *ret, const void *data, unsigned width)
{
	*ret = 0;
	memcpy(ret, data, width > sizeof(*ret) ? sizeof(*ret) : width);
}

static bool as_expected(const struct fake_step *s, uint64_t value)
{
	return (value & s->mask) == s->value;
}

static const char *kind_name(const struct fake_step *s)
{
	return s->op == FAKE_OP_PIO_READ ? "port" : "address";
}

/* Takes the value of a read that was an exit, as the kernel does on the next KVM_RUN. */
static void complete_read(struct fake_vcpu *v)
{
	const struct fake_step *s = &v->script.steps[v->pc];
	const uint8_t *data = s->op == FAKE_OP_PIO_READ ?
				      (const uint8_t *)v->run + FAKE_PIO_OFFSET :
				      v->run->mmio.data;
	uint64_t value;

	v->unfinished = false;
	load_value(&value, data, s->width);
	if (s->until && !as_expected(s, value))
		return; /* once more */
	if (s->mask && !as_expected(s, value))
		fake_mismatch("step %zu: %s 0x%" PRIx64 " reads 0x%" PRIx64 ", not 0x%" PRIx64
			      " under 0x%" PRIx64, v->pc, kind_name(s), s->address, value, s->value,
			      s->mask);
	v->pc++;
}

static bool rings(const struct fake_bell *bell, const struct fake_step *s)
{
	const struct kvm_ioeventfd *e = &bell->spec;
	bool pio = e->flags & KVM_IOEVENTFD_FLAG_PIO;

	return bell->used && pio == (s->op == FAKE_OP_PIO_WRITE) && e->addr == s->address &&
	       (!e->len || e->len == s->width) &&
	       (!(e->flags & KVM_IOEVENTFD_FLAG_DATAMATCH) || e->datamatch == s->value);
}

/* True if a doorbell takes the write. */
static bool ring_locked(struct fake_vcpu *v, const struct fake_step *s)
{
	uint64_t one = 1;
	bool rung = false;
	unsigned i;

	if (s->data)
		return false;
	for (i = 0; i < FAKE_BELLS && !rung; i++) {
		rung = rings(&v->vm->bells[i], s);
		if (rung && write(v->vm->bells[i].fd, &one, sizeof(one)) < 0)
			rung = errno == EAGAIN;
	}
	if (rung)
		atomic_fetch_add(&fake.totals[v->index].doorbells, 1);
	return rung;
}

/* True if a doorbell or the ring takes the write, which then is no exit. */
static bool stays_inside(struct fake_vcpu *v, const struct fake_step *s)
{
	bool pio = s->op == FAKE_OP_PIO_WRITE, taken;

	pthread_mutex_lock(&fake.lock);
	taken = ring_locked(v, s) ||
		fake_coalesce_locked(v, pio, s->address, s->data ? s->data : &s->value, s->width,
				     pio ? s->size : 1);
	pthread_mutex_unlock(&fake.lock);
	return taken;
}

static int pio(struct fake_vcpu *v, const struct fake_step *s, bool write)
{
	uint8_t *data = (uint8_t *)v->run + FAKE_PIO_OFFSET;

	if (write && stays_inside(v, s)) {
		v->pc++;
		return GO_ON;
	}
	v->run->exit_reason = KVM_EXIT_IO;
	v->run->io.direction = write ? KVM_EXIT_IO_OUT : KVM_EXIT_IO_IN;
	v->run->io.size = s->width;
	v->run->io.port = (uint16_t)s->address;
	v->run->io.count = s->size;
	v->run->io.data_offset = FAKE_PIO_OFFSET;
	if (write) {
		memcpy(data, s->data ? s->data : &s->value, (size_t)s->width * s->size);
		v->pc++;
	}
	v->unfinished = !write;
	return EXITED;
}

static int mmio(struct fake_vcpu *v, const struct fake_step *s, bool write)
{
	bool ram;

	pthread_mutex_lock(&fake.lock);
	ram = fake_ram_locked(v->vm, s->address, s->width);
	pthread_mutex_unlock(&fake.lock);
	if (ram)
		fake_mismatch("step %zu: address 0x%" PRIx64 " is RAM", v->pc, s->address);
	if (write && stays_inside(v, s)) {
		v->pc++;
		return GO_ON;
	}
	v->run->exit_reason = KVM_EXIT_MMIO;
	v->run->mmio.phys_addr = s->address;
	v->run->mmio.len = s->width;
	v->run->mmio.is_write = write;
	memset(v->run->mmio.data, 0, sizeof(v->run->mmio.data));
	if (write) {
		memcpy(v->run->mmio.data, &s->value, s->width);
		v->pc++;
	}
	v->unfinished = !write;
	return EXITED;
}

/* Words are single accesses, as the rings of a device need them. */
static void store_ram(void *to, const void *from, uint32_t size)
{
	uint64_t value = 0;

	if (size > 8 || ((uintptr_t)to & (size - 1))) {
		memcpy(to, from, size);
		return;
	}
	memcpy(&value, from, size);
	if (size == 2)
		__atomic_store_n((uint16_t *)to, (uint16_t)value, __ATOMIC_RELEASE);
	else if (size == 4)
		__atomic_store_n((uint32_t *)to, (uint32_t)value, __ATOMIC_RELEASE);
	else if (size == 8)
		__atomic_store_n((uint64_t *)to, value, __ATOMIC_RELEASE);
	else
		memcpy(to, from, size);
}

static int memory(struct fake_vcpu *v, const struct fake_step *s)
{
	void *ram;

	pthread_mutex_lock(&fake.lock);
	ram = fake_ram_locked(v->vm, s->address, s->size);
	pthread_mutex_unlock(&fake.lock);
	if (!ram)
		fake_mismatch("step %zu: address 0x%" PRIx64 " is not RAM", v->pc, s->address);
	else if (s->op == FAKE_OP_MEM_WRITE)
		store_ram(ram, s->data, s->size);
	else if (memcmp(ram, s->data, s->size))
		fake_mismatch("step %zu: memory at 0x%" PRIx64 " differs", v->pc, s->address);
	v->pc++;
	return GO_ON;
}

/* One that the thread lets in outside KVM_RUN: the others are not for it. */
static bool signal_is_pending(const sigset_t *outside)
{
	static const sigset_t none;
	sigset_t set = none;
	int signo;

	sigpending(&set);
	/* glibc's sigisemptyset() overlooks real-time signals. */
	if (memcmp(&set, &none, sizeof(set)) == 0)
		return false;
	for (signo = 1; signo <= SIGRTMAX; signo++) {
		if (sigismember(&set, signo) == 1 && sigismember(outside, signo) == 0)
			return true;
	}
	return false;
}

static int interrupted(struct fake_vcpu *v)
{
	v->run->exit_reason = KVM_EXIT_INTR;
	return -EINTR;
}

/* Halts until a descriptor is readable: 1; a signal: -EINTR; the time is up: 0. */
static int halt(struct pollfd *fds, nfds_t count, const struct timespec *limit,
		const sigset_t *outside)
{
	int ret = ppoll(fds, count, limit, outside);

	return ret < 0 ? -errno : ret > 0;
}

static int wait_for_signal(struct fake_vcpu *v, const sigset_t *outside)
{
	return halt(NULL, 0, NULL, outside) == -EINTR ? interrupted(v) : GO_ON;
}

/* Turns signalled irqfds of the line into its edge, and takes the edge. */
static bool take_irq(struct fake_vcpu *v, uint32_t gsi)
{
	struct fake_line *line = &v->vm->lines[gsi];
	uint64_t count;
	bool taken;
	unsigned i;

	pthread_mutex_lock(&fake.lock);
	for (i = 0; i < FAKE_IRQFDS; i++) {
		struct fake_irqfd *f = &v->vm->irqfds[i];
		struct pollfd p = { .fd = f->fd, .events = POLLIN };

		if (!f->used || f->gsi != gsi || poll(&p, 1, 0) != 1 ||
		    read(f->fd, &count, sizeof(count)) != sizeof(count))
			continue;
		fake.edges[gsi] += count;
		line->pending = true;
	}
	taken = line->pending;
	line->pending = false;
	pthread_mutex_unlock(&fake.lock);
	return taken;
}

static int wait_for_irq(struct fake_vcpu *v, uint32_t gsi, const sigset_t *outside)
{
	static const struct timespec limit = { .tv_sec = IRQ_PATIENCE_S };
	struct pollfd fds[FAKE_IRQFDS + 1] = { { .fd = v->wake_fd, .events = POLLIN } };
	nfds_t count = 1;
	uint64_t ignored;
	unsigned i;
	int ret;

	if (take_irq(v, gsi)) {
		v->pc++;
		return GO_ON;
	}
	pthread_mutex_lock(&fake.lock);
	for (i = 0; i < FAKE_IRQFDS; i++) {
		if (v->vm->irqfds[i].used && v->vm->irqfds[i].gsi == gsi)
			fds[count++] = (struct pollfd){ .fd = v->vm->irqfds[i].fd,
							.events = POLLIN };
	}
	pthread_mutex_unlock(&fake.lock);
	ret = halt(fds, count, &limit, outside);
	if (ret < 0)
		return interrupted(v);
	if (ret == 0)
		fake_mismatch("step %zu: no interrupt on line %u in %d s", v->pc, gsi,
			      IRQ_PATIENCE_S);
	/* Empty if it was an irqfd. */
	while (read(v->wake_fd, &ignored, sizeof(ignored)) > 0)
		;
	return GO_ON;
}

static int loop(struct fake_vcpu *v, const struct fake_step *s)
{
	uint64_t *rounds = &v->loops[v->pc];

	if (s->value && *rounds == s->value) {
		*rounds = 0;
		v->pc++;
	} else {
		++*rounds;
		v->pc = (size_t)s->address;
	}
	return GO_ON;
}

static int leave(struct fake_vcpu *v, const struct fake_step *s)
{
	struct kvm_run *run = v->run;

	run->exit_reason = (uint32_t)s->address;
	if (s->address == KVM_EXIT_FAIL_ENTRY) {
		run->fail_entry.hardware_entry_failure_reason = s->detail;
	} else if (s->address == KVM_EXIT_INTERNAL_ERROR) {
		run->internal.suberror = s->detail;
		run->internal.ndata = 0;
	} else if (s->address == KVM_EXIT_SYSTEM_EVENT) {
		run->system_event.type = s->detail;
	}
	v->pc++;
	return EXITED;
}

static int call(struct fake_vcpu *v, const struct fake_step *s)
{
	v->pc++;
	s->call((void *)(uintptr_t)s->data);
	return GO_ON;
}

static int take_step(struct fake_vcpu *v, const sigset_t *outside)
{
	const struct fake_step *s = &v->script.steps[v->pc];

	if (v->pc >= v->script.count)
		return wait_for_signal(v, outside);
	atomic_fetch_add_explicit(&fake.totals[v->index].steps, 1, memory_order_relaxed);
	switch (s->op) {
	case FAKE_OP_PIO_WRITE:
	case FAKE_OP_PIO_READ:
		return pio(v, s, s->op == FAKE_OP_PIO_WRITE);
	case FAKE_OP_MMIO_WRITE:
	case FAKE_OP_MMIO_READ:
		return mmio(v, s, s->op == FAKE_OP_MMIO_WRITE);
	case FAKE_OP_MEM_WRITE:
	case FAKE_OP_MEM_EXPECT:
		return memory(v, s);
	case FAKE_OP_WAIT:
		return wait_for_signal(v, outside);
	case FAKE_OP_SPIN:
		sched_yield();
		return GO_ON;
	case FAKE_OP_WAIT_IRQ:
		return wait_for_irq(v, (uint32_t)s->address, outside);
	case FAKE_OP_LOOP:
		return loop(v, s);
	case FAKE_OP_EXIT:
		return leave(v, s);
	case FAKE_OP_FAIL:
		v->pc++;
		return -(int)s->value;
	case FAKE_OP_CALL:
		return call(v, s);
	}
	return GO_ON;
}

/*
 * One step, and whether a signal ends the run after it. The question is a
 * system call, so it is not asked where the answer makes no difference: a step
 * that exits at once does so just before the signal comes, a wait sees it
 * itself, and a jump is followed by what it leads to.
 */
static int advance(struct fake_vcpu *v, const sigset_t *outside)
{
	bool jump = v->pc < v->script.count && v->script.steps[v->pc].op == FAKE_OP_LOOP;
	int ret = take_step(v, outside);

	return ret == GO_ON && !jump && signal_is_pending(outside) ? interrupted(v) : ret;
}

static void block_signals(sigset_t *ret_outside)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT };
	sigset_t set;
	size_t i;

	sigfillset(&set);
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&set, faults[i]);
	pthread_sigmask(SIG_BLOCK, &set, ret_outside);
}

/* As after HLT: any line that rises ends it. */
static int sleep_halted(struct fake_vcpu *v, const sigset_t *outside)
{
	struct pollfd wake = { .fd = v->wake_fd, .events = POLLIN };
	uint64_t ignored;

	if (halt(&wake, 1, NULL, outside) < 0)
		return interrupted(v);
	while (read(v->wake_fd, &ignored, sizeof(ignored)) > 0)
		;
	v->halted = false;
	return GO_ON;
}

static bool exit_is_wanted(const struct fake_vcpu *v)
{
	return __atomic_load_n(&v->run->immediate_exit, __ATOMIC_SEQ_CST);
}

static int run_script(struct fake_vcpu *v)
{
	sigset_t outside;
	int ret;

	if (v->unfinished)
		complete_read(v);
	if (exit_is_wanted(v))
		return -EINTR;
	block_signals(&outside);
	/* The read that counts: a kick until here came before KVM_RUN looked. */
	ret = exit_is_wanted(v) ? -EINTR : GO_ON;
	if (ret == GO_ON && v->halted)
		ret = sleep_halted(v, &outside);
	while (ret == GO_ON)
		ret = advance(v, &outside);
	pthread_sigmask(SIG_SETMASK, &outside, NULL);
	return ret == EXITED ? 0 : ret;
}

int fake_run(struct fake_vcpu *v)
{
	struct fake_totals *totals = &fake.totals[v->index];
	int ret;

	if (atomic_exchange(&v->inside, true)) {
		fake_mismatch("two threads are inside KVM_RUN of vCPU %u", v->index);
		return -EINVAL;
	}
	atomic_fetch_add(&fake.running, 1);
	atomic_fetch_add(&totals->runs, 1);
	ret = run_script(v);
	if (ret == 0)
		atomic_fetch_add(&totals->exits, 1);
	else if (ret == -EINTR)
		atomic_fetch_add(&totals->interrupted, 1);
	atomic_fetch_sub(&fake.running, 1);
	atomic_store(&v->inside, false);
	return ret;
}
