/*
 * A device for tests. Threads: as vmm/device.h says. Locks: none.
 */
#include "fake_device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake_kvm.h"
#include "vmm/device_thread.h"
#include "vmm/vm.h"

static struct fake_device *of(struct device *d)
{
	return (struct fake_device *)d;
}

static int fake_start(struct device *d, struct error *err)
{
	struct fake_device *f = of(d);

	atomic_fetch_add(&f->started, 1);
	if (f->start_code < 0)
		return error_set(err, f->start_code, "device %s does not start", d->id);
	if (f->own_thread)
		d->thread = device_thread_new(d->id, err);
	return f->own_thread && !d->thread ? err->code : 0;
}

static void note(struct fake_device *f, _Atomic unsigned *count)
{
	if (fake_kvm_running())
		atomic_fetch_add(&f->ran_beside_vcpus, 1);
	if (f->dawdle_us)
		usleep(f->dawdle_us);
	atomic_store(&f->served_by, gettid());
	atomic_fetch_add(count, 1);
}

static void fake_quiesce(struct device *d)
{
	note(of(d), &of(d)->quiesced);
}

static void fake_unquiesce(struct device *d)
{
	note(of(d), &of(d)->unquiesced);
}

static void fake_destroy(struct device *d)
{
	struct fake_device *f = of(d);

	d->thread = device_thread_free(d->thread);
	if (f->destroyed)
		++*f->destroyed;
	free(f);
}

static const struct device_ops fake_device_ops = {
	.start = fake_start,
	.quiesce = fake_quiesce,
	.unquiesce = fake_unquiesce,
	.destroy = fake_destroy,
};

struct fake_device *fake_device_new(const char *id)
{
	struct fake_device *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->dev.ops = &fake_device_ops;
	f->dev.type = "fake";
	f->dev.gsi = -1;
	snprintf(f->dev.id, sizeof(f->dev.id), "%s", id);
	return f;
}

struct fake_device *fake_devices[FAKE_DEVICES];
unsigned fake_devices_destroyed;

int fake_devices_build(struct vm *vm, struct error *err)
{
	static const char *const ids[FAKE_DEVICES] = { "threaded", "served-by-main",
						       "threaded-too" };
	int i;

	for (i = 0; i < FAKE_DEVICES; i++) {
		struct fake_device *d = fake_device_new(ids[i]);

		if (!d)
			return error_set(err, -ENOMEM, "no memory for a fake device");
		d->own_thread = i != 1;
		d->destroyed = &fake_devices_destroyed;
		fake_devices[i] = d;
		if (device_set_add(&vm->devices, &d->dev, err) < 0)
			return err->code;
	}
	return 0;
}
