/*
 * Fixed addresses of the arm64 machine.
 *
 *	1 GiB	.------------------.
 *		| devices          |
 *	2 GiB	+------------------+
 *		| RAM, in one piece|
 *		'------------------'
 */
#ifndef LULL_ARCH_ARM64_LAYOUT_H
#define LULL_ARCH_ARM64_LAYOUT_H

#define LAYOUT_RAM 0x80000000ull

#endif
