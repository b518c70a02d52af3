/*
 * A drive's file or block device: opening, locking, and the engine that reads
 * and writes it with plain system calls.
 */
#ifndef LULL_VIRTIO_BLK_FILE_H
#define LULL_VIRTIO_BLK_FILE_H

#include <stdatomic.h>

#include "devices/virtio/blk_backend.h"
#include "vmm/base/error.h"
#include "vmm/config.h"

struct blk_file {
	int fd;
	uint64_t size;
	bool read_only;
	/*
	 * Data may have been lost that a later fsync would not report again: every
	 * flush fails from here on.
	 */
	atomic_bool flush_failed;
	/* of the list of open drives */
	uint64_t dev;
	uint64_t ino;
	char drive_id[LIMIT_ID + 1];
	struct blk_file *next;
};

/*
 * Opens the file of `config` and locks it: against writers if it is read-only,
 * against everyone otherwise. The same drive may open the same file again, and
 * shares the lock. Main thread.
 */
int blk_file_open(const struct drive_config *config, struct blk_file **ret, struct error *err);
/* NULL allowed. Any thread. */
struct blk_file *blk_file_close(struct blk_file *f);

/*
 * A flush failed: sets flush_failed of `f` and of all that have the same file
 * open, or will open it before the last of them is closed. Any thread.
 */
void blk_file_fail_flushes(struct blk_file *f);

/* Does all of `io`, waiting for it. 0 or negative errno; a file that has become short is -EIO. */
int blk_file_transfer(struct blk_file *f, struct blk_io *io);

/* The engine that does each transfer at once. Owns `f`, also on failure; NULL without memory. */
struct blk_backend *blk_file_backend_new(struct blk_file *f);

#endif
