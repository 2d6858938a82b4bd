/*-------------------------------------------------------------------------
 * test_travel_late.c - the sorts of test_sort.c, whose rows wait in a file until it has 20 kB, and travel then.
 *-------------------------------------------------------------------------
 */
#define ALLOWANCE (20 * 1024)
#include "test_sort.c"
