/*
 * The guests that lulld-fake can run: scripts for the fake KVM, by name. They
 * are for the x86 board.
 */
#ifndef LULL_FAKE_GUESTS_H
#define LULL_FAKE_GUESTS_H

#include <stdbool.h>

/* Sets the scripts of that guest; false if there is none of that name. */
bool fake_guests_set(const char *name);
/* One name a line, to stdout. */
void fake_guests_list(void);

#endif
