/*
 * The fake KVM: descriptors, faults, dispatch of requests, set-up and questions.
 * Not here: requests to a VM (fake_kvm_vm.c), KVM_RUN (fake_kvm_run.c), the ring
 * of coalesced writes (fake_kvm_ring.c), registers and CPUID (fake_kvm_x86.c).
 */
#include "fake_kvm_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#define FDS 4096

struct fake_global fake = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Atomic(struct fake_object *) objects[FDS]; /* by descriptor; changed with the lock held */
static unsigned open_objects;                      /* and mappings */

static struct {
	unsigned long request;
	uint64_t left; /* calls until it happens; 0: none is set */
	int error;
	bool happened;
	uint64_t calls;
} fault;

static void __attribute__((format(printf, 1, 0))) note_locked(const char *fmt, va_list args)
{
	if (fake.mismatches++ == 0)
		vsnprintf(fake.mismatch, sizeof(fake.mismatch), fmt, args);
}

void fake_mismatch_locked(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	note_locked(fmt, args);
	va_end(args);
}

void fake_mismatch(const char *fmt, ...)
{
	va_list args;

	pthread_mutex_lock(&fake.lock);
	va_start(args, fmt);
	note_locked(fmt, args);
	va_end(args);
	pthread_mutex_unlock(&fake.lock);
}

/* Descriptors */

static int object_add_locked(struct fake_object *o, enum fake_kind kind)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fd >= FDS) {
		close(fd);
		return -EMFILE;
	}
	o->kind = kind;
	o->fd = fd;
	objects[fd] = o;
	open_objects++;
	return fd;
}

static struct fake_object *object_of(int fd)
{
	return fd >= 0 && fd < FDS ? objects[fd] : NULL;
}

static int new_system_locked(void)
{
	struct fake_object *o = calloc(1, sizeof(*o));
	int fd = o ? object_add_locked(o, FAKE_SYSTEM) : -ENOMEM;

	if (fd < 0)
		free(o);
	return fd;
}

static int new_vm_locked(void)
{
	struct fake_vm *vm = calloc(1, sizeof(*vm));
	int fd = vm ? fake_ring_init(vm) : -ENOMEM;

	if (fd < 0) {
		free(vm);
		return fd;
	}
	fd = object_add_locked(&vm->object, FAKE_VM);
	if (fd < 0) {
		fake_ring_fini(vm);
		free(vm);
		return fd;
	}
	vm->refs = 1;
	fake.vm = vm;
	return fd;
}

static void vm_put_locked(struct fake_vm *vm)
{
	unsigned i;

	if (--vm->refs)
		return;
	for (i = 0; i < FAKE_BELLS; i++) {
		if (vm->bells[i].used)
			close(vm->bells[i].fd);
	}
	for (i = 0; i < FAKE_IRQFDS; i++) {
		if (vm->irqfds[i].used)
			close(vm->irqfds[i].fd);
	}
	fake_ring_fini(vm);
	fake_arch_vm_fini(vm);
	if (fake.vm == vm)
		fake.vm = NULL;
	free(vm);
}

static void vcpu_free(struct fake_vcpu *v)
{
	if (v->wake_fd >= 0)
		close(v->wake_fd);
	fake_arch_vcpu_fini(v);
	free(v->loops);
	free(v);
}

static int check_vcpu_id_locked(const struct fake_vm *vm, uint32_t id)
{
	unsigned i;

	if (id >= 4096)
		return -EINVAL;
	for (i = 0; i < vm->vcpu_count; i++) {
		if (vm->vcpu_ids[i] == id)
			return -EEXIST;
	}
	return vm->vcpu_count == FAKE_VCPUS ? -EINVAL : 0;
}

int fake_new_vcpu_locked(struct fake_vm *vm, uint32_t id)
{
	int ret = check_vcpu_id_locked(vm, id);
	struct fake_vcpu *v;

	if (ret < 0)
		return ret;
	v = calloc(1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	v->vm = vm;
	v->id = id;
	v->index = vm->vcpu_count;
	v->script = fake.scripts[v->index].steps ? fake.scripts[v->index] : fake.default_script;
	v->loops = calloc(v->script.count + 1, sizeof(*v->loops));
	v->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = v->wake_fd < 0 || !v->loops ? -ENOMEM : object_add_locked(&v->object, FAKE_VCPU);
	if (ret < 0) {
		vcpu_free(v);
		return ret;
	}
	vm->refs++;
	vm->vcpu_ids[vm->vcpu_count++] = id;
	return ret;
}

void fake_wake_vcpus_locked(const struct fake_vm *vm)
{
	uint64_t one = 1;
	int fd;

	for (fd = 0; fd < FDS; fd++) {
		struct fake_vcpu *v = (struct fake_vcpu *)objects[fd];

		if (v && v->object.kind == FAKE_VCPU && v->vm == vm &&
		    write(v->wake_fd, &one, sizeof(one)) < 0)
			continue; /* its counter is full: it is awake */
	}
}

static int close_object(int fd)
{
	struct fake_object *o = object_of(fd);

	if (!o) {
		fake_mismatch("close of descriptor %d, which is not of KVM", fd);
		errno = EBADF;
		return -1;
	}
	pthread_mutex_lock(&fake.lock);
	objects[fd] = NULL;
	open_objects--;
	if (o->kind == FAKE_SYSTEM || o->kind == FAKE_STATISTICS) {
		free(o);
	} else if (o->kind == FAKE_VM) {
		vm_put_locked((struct fake_vm *)o);
	} else {
		struct fake_vcpu *v = (struct fake_vcpu *)o;
		struct fake_vm *vm = v->vm;

		if (atomic_load(&v->inside))
			fake_mismatch_locked("vCPU %u is closed inside KVM_RUN", v->index);
		vcpu_free(v);
		vm_put_locked(vm);
	}
	pthread_mutex_unlock(&fake.lock);
	return close(fd);
}

/* Faults */

/* 0, or the errno with which this call shall fail. */
static int fault_locked(unsigned long request)
{
	fault.calls++;
	if (!fault.left || (fault.request != FAKE_ANY && fault.request != request))
		return 0;
	if (--fault.left)
		return 0;
	fault.happened = true;
	return fault.error;
}

static int give(int ret)
{
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

static int fake_open(const char *path)
{
	int ret;

	pthread_mutex_lock(&fake.lock);
	ret = -fault_locked(FAKE_OPEN);
	if (ret == 0)
		ret = strcmp(path, "/dev/kvm") ? -ENOENT : new_system_locked();
	pthread_mutex_unlock(&fake.lock);
	return give(ret);
}

static void *map_run(const struct fake_vm *vm, size_t bytes)
{
	uint8_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p != MAP_FAILED && bytes > FAKE_RING_OFFSET &&
	    shmat(vm->ring_shm, p + FAKE_RING_OFFSET, SHM_REMAP) == (void *)-1) {
		munmap(p, bytes);
		return MAP_FAILED;
	}
	return p;
}

static void *fake_mmap(int fd, size_t bytes)
{
	struct fake_object *o = object_of(fd);
	void *p = MAP_FAILED;
	int error;

	pthread_mutex_lock(&fake.lock);
	error = fault_locked(FAKE_MMAP);
	if (!error && (!o || o->kind != FAKE_VCPU || bytes > FAKE_RUN_BYTES))
		error = EINVAL;
	if (!error) {
		p = map_run(((struct fake_vcpu *)o)->vm, bytes);
		error = p == MAP_FAILED ? ENOMEM : 0;
	}
	if (!error) {
		((struct fake_vcpu *)o)->run = p;
		open_objects++;
	} else {
		errno = error;
	}
	pthread_mutex_unlock(&fake.lock);
	return p;
}

static int fake_munmap(void *p, size_t bytes)
{
	pthread_mutex_lock(&fake.lock);
	open_objects--;
	pthread_mutex_unlock(&fake.lock);
	return munmap(p, bytes);
}

/* Requests */

static int system_ioctl(unsigned long request, void *arg)
{
	switch (request) {
	case KVM_GET_API_VERSION:
		return arg ? -EINVAL : KVM_API_VERSION;
	case KVM_CREATE_VM:
		return arg ? -EINVAL : new_vm_locked();
	case KVM_CHECK_EXTENSION:
		return fake_check_extension((int)(intptr_t)arg);
	case KVM_GET_VCPU_MMAP_SIZE:
		if (arg)
			return -EINVAL;
		return fake_check_extension(KVM_CAP_COALESCED_MMIO) ? FAKE_RUN_BYTES :
								      FAKE_RING_OFFSET;
	default:
		return fake_arch_system(request, arg);
	}
}

static int new_stats_locked(const struct fake_object *of)
{
	struct fake_stats *s = calloc(1, sizeof(*s));
	int fd;

	if (!s)
		return -ENOMEM;
	s->of = of->kind == FAKE_VM ? FAKE_STATS_OF_VM :
				      (int)((const struct fake_vcpu *)of)->index;
	fd = object_add_locked(&s->object, FAKE_STATISTICS);
	if (fd < 0)
		free(s);
	return fd;
}

static int ioctl_locked(struct fake_object *o, unsigned long request, void *arg)
{
	int error = fault_locked(request);

	if (error)
		return -error;
	if (o->kind == FAKE_SYSTEM)
		return system_ioctl(request, arg);
	if (o->kind == FAKE_STATISTICS)
		return -ENOTTY;
	if (request == KVM_GET_STATS_FD)
		return new_stats_locked(o);
	if (o->kind == FAKE_VM)
		return fake_vm_ioctl_locked((struct fake_vm *)o, request, arg);
	return fake_arch_vcpu_locked((struct fake_vcpu *)o, request, arg);
}

static int fake_ioctl(int fd, unsigned long request, void *arg)
{
	struct fake_object *o = object_of(fd);
	int ret;

	if (!o) {
		fake_mismatch("ioctl 0x%lx on descriptor %d, which is not of KVM", request, fd);
		return give(-EBADF);
	}
	if (request == KVM_RUN && o->kind == FAKE_VCPU)
		return give(fake_run((struct fake_vcpu *)o));
	/* The kernel would make the caller wait for the end of KVM_RUN. */
	if (o->kind == FAKE_VCPU && atomic_load(&((struct fake_vcpu *)o)->inside))
		fake_mismatch("ioctl 0x%lx on a vCPU that is inside KVM_RUN", request);
	pthread_mutex_lock(&fake.lock);
	ret = ioctl_locked(o, request, arg);
	pthread_mutex_unlock(&fake.lock);
	if (ret == -ENOTTY)
		fake_mismatch("request 0x%lx (nr 0x%lx) is not known to the fake", request,
			      _IOC_NR(request));
	return give(ret);
}

static ssize_t fake_pread(int fd, void *buf, size_t bytes, off_t offset)
{
	struct fake_object *o = object_of(fd);
	ssize_t ret;

	pthread_mutex_lock(&fake.lock);
	ret = -fault_locked(FAKE_PREAD);
	if (ret == 0)
		ret = o && o->kind == FAKE_STATISTICS ?
			      fake_read_stats_locked((struct fake_stats *)o, buf, bytes,
						     (size_t)offset) :
			      -EBADF;
	pthread_mutex_unlock(&fake.lock);
	return give((int)ret);
}

const struct kvm_ops fake_kvm_ops = {
	.open = fake_open,
	.close = close_object,
	.ioctl = fake_ioctl,
	.mmap = fake_mmap,
	.munmap = fake_munmap,
	.pread = fake_pread,
};

/* Set-up and questions */

void fake_kvm_reset(void)
{
	pthread_mutex_lock(&fake.lock);
	memset(fake.scripts, 0, sizeof(fake.scripts));
	memset(&fake.default_script, 0, sizeof(fake.default_script));
	memset(fake.edges, 0, sizeof(fake.edges));
	memset(fake.totals, 0, sizeof(fake.totals));
	memset(&fake.ioeventfd_calls, 0, sizeof(fake.ioeventfd_calls));
	memset(fake.caps, 0, sizeof(fake.caps));
	memset(&fault, 0, sizeof(fault));
	fake_stats_reset_locked();
	fake.vendor = FAKE_AMD;
	fake.mismatches = 0;
	fake.mismatch[0] = '\0';
	pthread_mutex_unlock(&fake.lock);
}

void fake_kvm_set_script(unsigned vcpu, const struct fake_step *steps, size_t count)
{
	fake.scripts[vcpu] = (struct fake_script){ steps, count };
}

void fake_kvm_set_default_script(const struct fake_step *steps, size_t count)
{
	fake.default_script = (struct fake_script){ steps, count };
}

void fake_kvm_set_vendor(enum fake_vendor vendor)
{
	fake.vendor = vendor;
}

void fake_kvm_fail(unsigned long request, uint64_t nth, int error)
{
	pthread_mutex_lock(&fake.lock);
	fault.request = request;
	fault.left = nth;
	fault.error = error;
	fault.happened = false;
	pthread_mutex_unlock(&fake.lock);
}

bool fake_kvm_failed(void)
{
	bool happened;

	pthread_mutex_lock(&fake.lock);
	happened = fault.happened;
	pthread_mutex_unlock(&fake.lock);
	return happened;
}

uint64_t fake_kvm_calls(void)
{
	uint64_t calls;

	pthread_mutex_lock(&fake.lock);
	calls = fault.calls;
	pthread_mutex_unlock(&fake.lock);
	return calls;
}

unsigned fake_kvm_open_objects(void)
{
	unsigned n;

	pthread_mutex_lock(&fake.lock);
	n = open_objects;
	pthread_mutex_unlock(&fake.lock);
	return n;
}

unsigned fake_kvm_running(void)
{
	return atomic_load(&fake.running);
}

void fake_kvm_get_counts(unsigned vcpu, struct fake_vcpu_counts *ret)
{
	struct fake_totals *t = &fake.totals[vcpu];

	*ret = (struct fake_vcpu_counts){
		.runs = atomic_load(&t->runs),
		.exits = atomic_load(&t->exits),
		.interrupted = atomic_load(&t->interrupted),
		.steps = atomic_load(&t->steps),
		.doorbells = atomic_load(&t->doorbells),
		.coalesced = atomic_load(&t->coalesced),
		.ring_full = atomic_load(&t->ring_full),
	};
}

uint64_t fake_kvm_irq_edges(uint32_t gsi)
{
	uint64_t edges;

	pthread_mutex_lock(&fake.lock);
	edges = fake.edges[gsi];
	pthread_mutex_unlock(&fake.lock);
	return edges;
}

bool fake_kvm_irq_level(uint32_t gsi)
{
	bool level;

	pthread_mutex_lock(&fake.lock);
	level = fake.vm && fake.vm->lines[gsi].level;
	pthread_mutex_unlock(&fake.lock);
	return level;
}

bool fake_kvm_get_slot(unsigned index, struct kvm_userspace_memory_region *ret)
{
	bool there;

	pthread_mutex_lock(&fake.lock);
	there = fake.vm && index < FAKE_SLOTS && fake.vm->slots[index].memory_size;
	if (there)
		*ret = fake.vm->slots[index];
	pthread_mutex_unlock(&fake.lock);
	return there;
}

unsigned fake_kvm_ioeventfd_count(void)
{
	unsigned n = 0, i;

	pthread_mutex_lock(&fake.lock);
	for (i = 0; fake.vm && i < FAKE_BELLS; i++)
		n += fake.vm->bells[i].used;
	pthread_mutex_unlock(&fake.lock);
	return n;
}

void fake_kvm_get_ioeventfd_calls(struct fake_ioeventfd_calls *ret)
{
	pthread_mutex_lock(&fake.lock);
	*ret = fake.ioeventfd_calls;
	pthread_mutex_unlock(&fake.lock);
}

bool fake_kvm_get_coalesced_zone(unsigned index, struct kvm_coalesced_mmio_zone *ret)
{
	bool there;

	pthread_mutex_lock(&fake.lock);
	there = fake.vm && index < fake.vm->zone_count;
	if (there)
		*ret = fake.vm->zones[index];
	pthread_mutex_unlock(&fake.lock);
	return there;
}

unsigned fake_kvm_mismatches(void)
{
	unsigned n;

	pthread_mutex_lock(&fake.lock);
	n = fake.mismatches;
	pthread_mutex_unlock(&fake.lock);
	return n;
}

const char *fake_kvm_mismatch(void)
{
	return fake.mismatch;
}
