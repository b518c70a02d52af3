/* cmocka with the headers it wants before it. */
#ifndef LULL_TESTS_BASE_TEST_H
#define LULL_TESTS_BASE_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
