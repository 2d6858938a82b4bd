/*-------------------------------------------------------------------------
 * test_travel.c - the sorts of test_sort.c, with rows that travel inside runs, from the start.
 *-------------------------------------------------------------------------
 */
#define ALLOWANCE 0
#include "test_sort.c"
