/*-------------------------------------------------------------------------
 * test_travel_late.c - the sorts of test_sort.c, whose rows wait in a file first, and travel inside runs behind 20 kB.
 *-------------------------------------------------------------------------
 */
#define ALLOWANCE (20 * 1024)
#include "test_sort.c"
