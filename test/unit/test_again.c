/*-------------------------------------------------------------------------
 * test_again.c - the sorts of test_sort.c, which begin again when a third of the rows have been got.
 *-------------------------------------------------------------------------
 */
#define AGAIN true
#include "test_sort.c"
