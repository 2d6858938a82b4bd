/*-------------------------------------------------------------------------
 * guc.c - every setting of wiscsort, in one place.
 *
 * All but those for administrators are USERSET, with PostgreSQL's own range checks.  A setting exists
 * from the version on in which it does something; the names are fixed and
 * listed in README.md.
 *-------------------------------------------------------------------------
 */
#include "guc.h"

#include <limits.h>

bool		ws_enable = true;
int			ws_threshold = -1;
int			ws_sort_kernel = WS_KERNEL_AUTO;
int			ws_record_store = WS_STORE_AUTO;
int			ws_cache_size = -1;
int			ws_direct_read = WS_DIRECT_AUTO;
int			ws_read_threads = -1;
int			ws_sort_threads = -1;
int			ws_write_threads = -1;
int			ws_max_threads = 4;
int			ws_io_method = WS_IO_AUTO;
int			ws_merge_read = WS_MERGE_AUTO;
int			ws_assist_blocks = -1;
int			ws_block_size = -1;
bool		ws_prefetch_joins = true;
bool		ws_track_sorts = true;
int			ws_max_temp = -1;
int			ws_log_min_temp = -1;
bool		ws_debug_force = false;
int			ws_debug_again = -1;
int			ws_debug_few = -1;
int			ws_debug_tie_keys = WS_TIE_KEYS_AUTO;
int			ws_debug_extent = -1;

static const struct config_enum_entry sort_kernels[] = {
	{"auto", WS_KERNEL_AUTO, false},
#ifdef HAVE_LIBHWY
	{"vqsort", WS_KERNEL_VQSORT, false},
#endif
	{"template", WS_KERNEL_TEMPLATE, false},
	{NULL, 0, false}
};

static const struct config_enum_entry record_stores[] = {
	{"auto", WS_STORE_AUTO, false},
	{"heap", WS_STORE_HEAP, false},
	{"spool", WS_STORE_SPOOL, false},
	{"inline", WS_STORE_INLINE, false},
	{NULL, 0, false}
};

static const struct config_enum_entry io_methods[] = {
	{"auto", WS_IO_AUTO, false},
	{"sync", WS_IO_SYNC, false},
	{"libaio", WS_IO_LIBAIO, false},
	{"io_uring", WS_IO_URING, false},
	{NULL, 0, false}
};

static const struct config_enum_entry merge_reads[] = {
	{"auto", WS_MERGE_AUTO, false},
	{"block", WS_MERGE_BLOCK, false},
	{"double", WS_MERGE_DOUBLE, false},
	{"read_order", WS_MERGE_READ_ORDER, false},
	{NULL, 0, false}
};

static const struct config_enum_entry direct_reads[] = {
	{"auto", WS_DIRECT_AUTO, false},
	{"on", WS_DIRECT_ON, false},
	{"off", WS_DIRECT_OFF, false},
	{NULL, 0, false}
};

static const struct config_enum_entry tie_keys[] = {
	{"auto", WS_TIE_KEYS_AUTO, false},
	{"table", WS_TIE_KEYS_TABLE, false},
	{"spool", WS_TIE_KEYS_SPOOL, false},
	{NULL, 0, false}
};

/*
 * Defines the settings and reserves their prefix.  Called once, from _PG_init.
 */
void
ws_define_settings(void)
{
	DefineCustomBoolVariable("wiscsort.enable",
							 "Lets the planner use WiscSort instead of an external Sort.",
							 "When off, plans are exactly those of PostgreSQL without the extension.",
							 &ws_enable, true, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomIntVariable("wiscsort.threshold",
							"Sets the estimated input size above which a sort is considered.",
							"-1 means work_mem: only sorts that would spill. 0 means every sort.",
							&ws_threshold, -1, -1, MAX_KILOBYTES, PGC_USERSET,
							GUC_UNIT_KB | GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomEnumVariable("wiscsort.sort_kernel",
							 "Sets the routine that sorts the IndexMap.",
							 "auto takes vqsort when the extension was built with libhwy, else template.",
							 &ws_sort_kernel, WS_KERNEL_AUTO, sort_kernels, PGC_USERSET,
							 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("wiscsort.record_store",
							 "Sets where a sort's rows wait.",
							 "heap: they stay in the table, if one table is sorted, and are "
							 "fetched from there in sorted order. spool: in memory and a "
							 "temporary file. inline: inside sorted runs. auto: whichever "
							 "costs less, and inline once the page cache is used up.",
							 &ws_record_store, WS_STORE_AUTO, record_stores, PGC_USERSET,
							 GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomIntVariable("wiscsort.cache_size",
							"Sets how much page cache a sort may count on for its rows.",
							"With more, they travel inside sorted runs. -1 means a share of what "
							"effective_cache_size, the machine and its memory cgroups allow.",
							&ws_cache_size, -1, -1, MAX_KILOBYTES, PGC_USERSET,
							GUC_UNIT_KB | GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomEnumVariable("wiscsort.direct_read",
							 "Fetches a table's rows from its mapped files instead of shared_buffers.",
							 "auto: if effective_cache_size can hold the table. "
							 "off: always through the buffer manager.",
							 &ws_direct_read, WS_DIRECT_AUTO, direct_reads, PGC_USERSET,
							 GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomEnumVariable("wiscsort.io_method",
							 "Chooses how runs of rows are read.",
							 "libaio, io_uring: many blocks at once, past the page cache; where the system "
							 "has not the one, by the other, and else as sync. "
							 "sync: one after the other, announced to the system before. "
							 "auto: libaio.",
							 &ws_io_method, WS_IO_AUTO, io_methods, PGC_USERSET,
							 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("wiscsort.merge_read",
							 "Chooses the order in which a merge of runs of rows reads their blocks.",
							 "read_order: as the merge is going to need them, ahead of it. "
							 "double: of each run the next one while one is in use. "
							 "block: each when it is needed. auto: read_order.",
							 &ws_merge_read, WS_MERGE_AUTO, merge_reads, PGC_USERSET,
							 0, NULL, NULL, NULL);
	DefineCustomIntVariable("wiscsort.assist_blocks",
							"Sets how many blocks a merge reads ahead in the read order.",
							"-1 means 64, if memory allows it.",
							&ws_assist_blocks, -1, -1, 64, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("wiscsort.block_size",
							"Sets the size of the blocks of runs.",
							"Rounded down to a multiple of 4 kB, and to an eighth of work_mem at most. "
							"-1 means by work_mem and the width of rows.",
							&ws_block_size, -1, -1, 1024, PGC_USERSET,
							GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("wiscsort.read_threads",
							"Sets the number of threads that merge and fetch rows ahead of "
							"a big sort's reader.",
							"0 means that the backend does it itself; -1 a thread if there is a second "
							"processor and the query is not parallel.",
							&ws_read_threads, -1, -1, 1, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("wiscsort.sort_threads",
							"Sets the number of threads that sort while a big sort's input is being read.",
							"0 means that the backend does it itself; -1 a thread if there is a second "
							"processor and the query is not parallel.",
							&ws_sort_threads, -1, -1, 1, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("wiscsort.write_threads",
							"Sets the number of threads that write a big sort's rows to temporary files.",
							"0 means that the backend does it itself; -1 a thread if there is a second "
							"processor and the query is not parallel.",
							&ws_write_threads, -1, -1, 1, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("wiscsort.max_threads",
							"Sets the most helper threads that one backend has at a time, "
							"over all its sorts.",
							"A sort that gets none does without.",
							&ws_max_threads, 4, 0, 64, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("wiscsort.prefetch_joins",
							 "Prefetches what hash joins below a sort are going to look up.",
							 NULL,
							 &ws_prefetch_joins, true, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("wiscsort.track",
							 "Counts sorts in wiscsort.stat, and shows those that run in wiscsort.progress.",
							 NULL,
							 &ws_track_sorts, true, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("wiscsort.max_temp",
							"Limits the temporary files of one sort.",
							"A sort that needs more ends with an error.  -1 means no limit.",
							&ws_max_temp, -1, -1, MAX_KILOBYTES, PGC_SUSET,
							GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("wiscsort.log_min_temp",
							"Logs sorts with temporary files of at least this size.",
							"0 logs all sorts, -1 none.",
							&ws_log_min_temp, -1, -1, MAX_KILOBYTES, PGC_SUSET,
							GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomBoolVariable("wiscsort.debug_force",
							 "Uses WiscSort wherever it is legal, whatever it costs.",
							 "A developer option, for tests.",
							 &ws_debug_force, false, PGC_USERSET,
							 GUC_NOT_IN_SAMPLE | GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomIntVariable("wiscsort.debug_again",
							"Has a sort with a spool begin again when so many rows have been got.",
							"A developer option, for tests.  -1: if the page cache has lost the spool.",
							&ws_debug_again, -1, -1, INT_MAX, PGC_USERSET,
							GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomIntVariable("wiscsort.debug_few",
							"Sets how many rows are few, which are sorted as PostgreSQL sorts them.",
							"A developer option, for tests.  -1: 512, and none with wiscsort.debug_force.",
							&ws_debug_few, -1, -1, 1024 * 1024, PGC_USERSET,
							GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomEnumVariable("wiscsort.debug_tie_keys",
							 "Sets where a sort that leaves rows in their table has the keys of ties.",
							 "A developer option, for tests.  auto: by statistics.",
							 &ws_debug_tie_keys, WS_TIE_KEYS_AUTO, tie_keys, PGC_USERSET,
							 GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomIntVariable("wiscsort.debug_extent",
							"Sets the extents by which files are striped over temp_tablespaces.",
							"A developer option, for tests.  -1: chosen.  0: each file is in one tablespace.",
							&ws_debug_extent, -1, -1, 1024 * 1024, PGC_USERSET,
							GUC_UNIT_KB | GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);

	MarkGUCPrefixReserved("wiscsort");
}
