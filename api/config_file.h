/*
 * The configuration file: one JSON document that stands for the requests a
 * client would make before the start.
 * Threads: main. Locks: none.
 */
#ifndef LULL_API_CONFIG_FILE_H
#define LULL_API_CONFIG_FILE_H

#include "vmm/base/error.h"

struct vm;

/*
 * Reads the file (LIMIT_CONFIG_FILE bytes at most) and applies it in the order
 * logger, metrics, machine, boot source, drives, network interfaces, entropy.
 * A negative errno with `err` filled; what came before the fault stays applied.
 */
int api_load_config_file(struct vm *vm, const char *path, struct error *err);

#endif
