/*
 * memcheck.h - what a server built with -DUSE_VALGRIND tells Valgrind, told to AddressSanitizer.
 *
 * palloc takes memory out of big blocks, so AddressSanitizer alone sees neither the end of a chunk nor that it
 * was freed.  PostgreSQL announces both to Valgrind, by the macros of Valgrind's own valgrind/memcheck.h.  With
 * this file in its place the same announcements poison and unpoison AddressSanitizer's shadow memory; unpinned
 * buffers are poisoned with them.  AddressSanitizer does not know undefined bytes from defined ones.
 */
#ifndef WISCSORT_TEST_MEMCHECK_H
#define WISCSORT_TEST_MEMCHECK_H

#include <sanitizer/asan_interface.h>

#define VALGRIND_MAKE_MEM_NOACCESS(addr, size)	__asan_poison_memory_region((addr), (size))
#define VALGRIND_MAKE_MEM_UNDEFINED(addr, size)	__asan_unpoison_memory_region((addr), (size))
#define VALGRIND_MAKE_MEM_DEFINED(addr, size)	__asan_unpoison_memory_region((addr), (size))
#define VALGRIND_MEMPOOL_ALLOC(pool, addr, size)	__asan_unpoison_memory_region((addr), (size))
#define VALGRIND_MEMPOOL_CHANGE(pool, old, addr, size)	__asan_unpoison_memory_region((addr), (size))

/* pfree has poisoned the chunk already, when it wiped it */
#define VALGRIND_MEMPOOL_FREE(pool, addr)	((void) 0)

#define VALGRIND_CREATE_MEMPOOL(pool, redzone, zeroed)	((void) 0)
#define VALGRIND_DESTROY_MEMPOOL(pool)	((void) 0)
#define VALGRIND_CHECK_MEM_IS_DEFINED(addr, size)	((void) 0)
#define VALGRIND_GET_VBITS(addr, bits, size)	(0)
#define VALGRIND_SET_VBITS(addr, bits, size)	(0)

#endif							/* WISCSORT_TEST_MEMCHECK_H */
