/* What every unit test includes: cmocka in the order it demands. */
#ifndef PAWL_TESTS_TESTING_H
#define PAWL_TESTS_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
