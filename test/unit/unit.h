/*-------------------------------------------------------------------------
 * unit.h - a few lines of test harness for the pure parts.
 *
 * A unit test includes the source file it tests and supplies the few symbols
 * of the server that the file refers to.  Output is TAP-like: one line
 * "ok - what" or "not ok - what" a check, exit status 1 if any failed.
 *-------------------------------------------------------------------------
 */
#ifndef WS_UNIT_H
#define WS_UNIT_H

#include "entry.h"

#include <stdio.h>

#include "portability/instr_time.h"

#undef printf
#undef snprintf
#undef fprintf
#undef qsort

static int	failures = 0;

#define CHECK(condition, ...) \
	do { \
		bool		passed_ = (condition); \
		printf("%sok - ", passed_ ? "" : "not "); \
		printf(__VA_ARGS__); \
		printf("\n"); \
		failures += !passed_; \
	} while (0)

/* A small generator with a seed, so that a failure can be repeated. */
static uint64 random_state = 88172645463325252ULL;

static inline uint64
next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Symbols of the server that headers refer to. */
void
ExceptionalCondition(const char *condition, const char *type_or_file,
#if PG_VERSION_NUM < 160000
					 const char *file,
#endif
					 int line)
{
	printf("not ok - assertion %s failed, line %d\n", condition, line);
	exit(1);
}

/* From 19 on, a clock may count the processor's ticks; here, 0 of them a nanosecond, it is the system's. */
#ifdef PG_INSTR_TICKS_TO_NS
uint64		ticks_per_ns_scaled = 0;
uint64		max_ticks_no_overflow = 0;
bool		timing_initialized = true;
bool		timing_tsc_enabled = false;
#endif

#endif							/* WS_UNIT_H */
