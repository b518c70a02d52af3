/*
 * Force-included into every source file: functions that must not be used.
 * Unbounded or locale-driven string functions, and ways to end the process
 * from below main. The system headers that declare them come first.
 */
#ifndef LULL_BASE_BANNED_H
#define LULL_BASE_BANNED_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

/* Some are macros where the C library is fortified. */
#undef strcpy
#undef strcat
#undef strncpy
#undef strncat
#undef stpcpy
#undef sprintf
#undef vsprintf

#pragma GCC poison strcpy strcat strncpy strncat stpcpy sprintf vsprintf gets
#pragma GCC poison strtok atoi atol atoll sscanf scanf fscanf
#pragma GCC poison abort system popen tmpnam mktemp
#pragma GCC poison localtime gmtime ctime asctime

#endif
