/*-------------------------------------------------------------------------
 * test_again_table.c - the same as test_again.c, of rows that stay in a table.
 *
 * Only those that have not been handed out are sorted again; read from any place, all or none.
 *-------------------------------------------------------------------------
 */
#define AGAIN true
#define FROM_TABLE true
#include "test_sort.c"
