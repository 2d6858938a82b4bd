/*-------------------------------------------------------------------------
 * guc.h - the settings.  Read by the planner, the executor node and statistics alone.
 *-------------------------------------------------------------------------
 */
#ifndef WS_GUC_H
#define WS_GUC_H

#include "entry.h"

#define WS_VERSION			"0.2.0"

typedef enum WsSortKernel
{
	WS_KERNEL_AUTO,
	WS_KERNEL_VQSORT,
	WS_KERNEL_TEMPLATE
} WsSortKernel;

typedef enum WsRecordStore
{
	WS_STORE_AUTO,
	WS_STORE_HEAP,
	WS_STORE_SPOOL,
	WS_STORE_INLINE
} WsRecordStore;

typedef enum WsIoMethod
{
	WS_IO_AUTO,
	WS_IO_SYNC,
	WS_IO_LIBAIO,
	WS_IO_URING
} WsIoMethod;

typedef enum WsMergeReadSetting
{
	WS_MERGE_AUTO,
	WS_MERGE_BLOCK,
	WS_MERGE_DOUBLE,
	WS_MERGE_READ_ORDER
} WsMergeReadSetting;

typedef enum WsDirectRead
{
	WS_DIRECT_AUTO,
	WS_DIRECT_ON,
	WS_DIRECT_OFF
} WsDirectRead;

typedef enum WsTieKeysSetting
{
	WS_TIE_KEYS_AUTO,
	WS_TIE_KEYS_TABLE,
	WS_TIE_KEYS_SPOOL
} WsTieKeysSetting;

extern bool ws_enable;
extern int	ws_threshold;		/* kB; -1 = work_mem */
extern int	ws_sort_kernel;		/* WsSortKernel */
extern int	ws_record_store;	/* WsRecordStore */
extern int	ws_cache_size;		/* kB; -1 = found out */
extern int	ws_direct_read;		/* WsDirectRead */
extern int	ws_read_threads;	/* -1 = chosen */
extern int	ws_sort_threads;
extern int	ws_write_threads;
extern int	ws_max_threads;
extern int	ws_io_method;		/* WsIoMethod */
extern int	ws_merge_read;		/* WsMergeReadSetting */
extern int	ws_assist_blocks;	/* -1 = chosen */
extern int	ws_block_size;		/* kB; -1 = chosen */
extern bool ws_prefetch_joins;
extern bool ws_debug_force;
extern bool ws_track_sorts;
extern int	ws_max_temp;		/* kB; -1 = no limit */
extern int	ws_log_min_temp;	/* kB; -1 = never */
extern int	ws_debug_again;
extern int	ws_debug_few;
extern int	ws_debug_tie_keys;	/* WsTieKeysSetting */
extern int	ws_debug_extent;	/* kB; -1 = chosen, 0 = files are not striped */

extern void ws_define_settings(void);

/* ---- wiscsort.c ---- */
extern const char *ws_loaded;	/* how the library has come into this session, in words */
extern bool ws_preloaded;		/* with the session */

extern char *ws_version(void);

#endif							/* WS_GUC_H */
