/*
 * The daemon as a function, so that tests can run all of it over a KVM of
 * their own.
 */
#ifndef LULL_MAIN_H
#define LULL_MAIN_H

#include "vmm/kvm.h"

/* Runs lulld and returns its exit status; may end the process by a signal it was sent. */
int lulld_main(int argc, char **argv, const struct kvm_ops *ops);

#endif
