/* cmocka with what it needs before it. */
#ifndef LULL_TEST_CMOCKA_ALL_H
#define LULL_TEST_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#endif
