/*-------------------------------------------------------------------------
 * keys.h - sorts whose rows are nothing but their keys.
 *-------------------------------------------------------------------------
 */
#ifndef WS_KEYS_H
#define WS_KEYS_H

#include "store/store.h"

/* As WsPointers, but for entries. */
typedef struct WsEntries
{
	Size		(*next) (void *source, WsEntry *entries, Size max);
	bool		(*share) (void *source);
	void		(*settle) (void *source);
	void	   *source;
} WsEntries;

typedef struct WsKeys WsKeys;

typedef struct WsKeysBatch
{
	WsChore		chore;			/* must be first */
	WsKeys	   *owner;
	WsEntry    *entries;
	Size		wanted;
	Size		n;
} WsKeysBatch;

struct WsKeys
{
	WsEntries	source;
	WsHelper   *helper;			/* or NULL: only the first batch is used */
	bool		started;
	Size		max;			/* entries of a batch at most */
	Size		wanted;			/* of the next */
	Size		head;			/* next entry of the current batch */
	WsKeysBatch *current;
	WsKeysBatch batches[2];
};

extern WsKeys *ws_keys_create(const WsEntries *source, Size memory, uint64 rows);
extern bool ws_keys_next(WsKeys *keys, WsEntry *entry);
extern void ws_keys_restart(WsKeys *keys);
extern Size ws_keys_memory(const WsKeys *keys);
extern void ws_keys_stop(WsKeys *keys);

#endif							/* WS_KEYS_H */
