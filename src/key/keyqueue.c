/*-------------------------------------------------------------------------
 * late.c - keys that a helper makes while more rows come.
 *
 * ICU takes a quarter of a microsecond for the key of a text, more than all that is done else
 * with a row that comes in.  So texts are copied, by blocks, and a helper makes their keys and puts
 * them into the entries, which are in the IndexMap without them meanwhile.  While
 * all blocks are in its hands the backend makes keys itself: both are busy.
 *
 * Before entries are sorted, ws_late_finish waits for their keys.
 *
 * Memory: WS_LATE_BYTES.  It belongs to the context in which this was created, and the helper ends before that.
 *-------------------------------------------------------------------------
 */
#include "run/run.h"

#define BLOCKS		4
#define ROWS		256			/* of a block */
#define TEXTS		(12 * 1024)	/* bytes of a block, all texts together */
#define LONGEST		1024		/* bytes of a text that is worth a copy */
#define FIRST		2048		/* rows that come before a helper is started */

typedef struct Block
{
	WsChore		chore;			/* must be first */
	struct WsLate *owner;
	int			rows;
	Size		used;			/* bytes of texts */
	bool		failed;
	WsEntry    *entry[ROWS];
	uint16		length[ROWS];
	char		texts[TEXTS];
} Block;

StaticAssertDecl(BLOCKS * sizeof(Block) <= WS_LATE_BYTES, "memory of late keys");

struct WsLate
{
	const WsKeyColumn *col;
	int			threads;		/* value of the setting */
	int			seen;			/* rows before there was a helper */
	WsHelper   *helper;
	int			current;		/* block that is filled */
	Block	   *blocks;			/* or NULL */
};

/*
 * Prepares late keys, in CurrentMemoryContext, or returns NULL if keys are not such as a helper can make.
 * `threads` and `worthwhile` as for ws_helper_start.
 */
WsLate *
ws_late_create(const WsKeySpec *spec, int threads, bool worthwhile)
{
	WsLate	   *l;

	if (spec->cols[0].icu == NULL || !spec->first_alone || !ws_thread_wanted(threads, worthwhile))
		return NULL;
	l = palloc0(sizeof(WsLate));
	l->col = &spec->cols[0];
	l->threads = threads;
	return l;
}

/* Puts a key into an entry that has none. */
static inline void
complete(const WsKeyColumn *col, WsEntry *entry, uint64 key)
{
	int			left = WS_PREFIX_BYTES * 8 - (col->notnull ? 0 : 8);
	ws_uint128	prefix = col->notnull ? 0 : (ws_uint128) col->nulls_first << left;

	prefix |= (ws_uint128) (col->descending ? ~key : key) << (left - 64);
	*entry = ws_entry_make(prefix, ws_entry_pointer(*entry));
}

static void
make_keys(WsChore *chore)
{
	Block	   *b = (Block *) chore;
	const WsKeyColumn *col = b->owner->col;
	const char *text = b->texts;

	for (int i = 0; i < b->rows; i++)
	{
		uint64		key = 0;

		if (!ws_icu_key(col->icu, text, b->length[i], &key))
			b->failed = true;
		complete(col, b->entry[i], key);
		text += b->length[i];
	}
}

/* Waits for a block, and empties it. */
static void
take_back(WsLate *l, Block *b)
{
	(void) ws_helper_wait(l->helper, &b->chore);
	if (b->failed)
		ws_icu_failed();
	b->rows = 0;
	b->used = 0;
}

/* Starts the helper, once rows enough have come.  False if there is none. */
static bool
start(WsLate *l)
{
	/* once only: the system may have no thread to give */
	if (l->seen > FIRST || l->seen++ < FIRST)
		return false;
	l->helper = ws_helper_start(l->threads, true);
	if (l->helper == NULL)
		return false;
	l->blocks = palloc0(BLOCKS * sizeof(Block));
	for (int i = 0; i < BLOCKS; i++)
	{
		l->blocks[i].owner = l;
		l->blocks[i].chore.run = make_keys;
	}
	return true;
}

/*
 * Takes over making the key of a value that is not null, for the entry that the caller is going to put
 * at `entry`, with its pointer, before the next call.  False if the caller has to make the key.  Raises what an earlier key met.
 */
bool
ws_late_put(WsLate *l, Datum value, WsEntry *entry)
{
	struct varlena *text = (struct varlena *) DatumGetPointer(value);
	Block	   *b;
	Size		n;

	if (unlikely(l->helper == NULL) && !start(l))
		return false;
	if (VARATT_IS_EXTERNAL(text) || VARATT_IS_COMPRESSED(text))
		return false;
	n = ws_icu_length(l->col, VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text));
	if (n > LONGEST)
		return false;
	b = &l->blocks[l->current];
	if (b->rows == ROWS || b->used + n > TEXTS)
	{
		/* the entries of all its rows are there by now */
		if (ws_chore_is_idle(&b->chore))
			ws_helper_submit(l->helper, &b->chore);
		b = &l->blocks[(l->current + 1) % BLOCKS];
		if (!ws_chore_is_idle(&b->chore) && !ws_chore_is_done(&b->chore))
			return false;
		take_back(l, b);
		l->current = (l->current + 1) % BLOCKS;
	}
	memcpy(b->texts + b->used, VARDATA_ANY(text), n);
	b->used += n;
	b->length[b->rows] = (uint16) n;
	b->entry[b->rows++] = entry;
	return true;
}

/*
 * Makes all keys that have been taken over.  `l` may be NULL.  Raises what a key met.
 */
void
ws_late_finish(WsLate *l)
{
	if (l == NULL || l->helper == NULL)
		return;
	/* the last block is the backend's if it has not been handed over */
	if (ws_chore_is_idle(&l->blocks[l->current].chore))
		make_keys(&l->blocks[l->current].chore);
	for (int i = 0; i < BLOCKS; i++)
		take_back(l, &l->blocks[i]);
}

/* Bytes of memory in use.  NULL is fine. */
Size
ws_late_memory(const WsLate *l)
{
	return l != NULL && l->blocks != NULL ? BLOCKS * sizeof(Block) : 0;
}

/* Stops the helper, and frees the blocks, after ws_late_finish or an error.  NULL is fine. */
void
ws_late_stop(WsLate *l)
{
	if (l == NULL || l->helper == NULL)
		return;
	ws_helper_stop(l->helper);
	l->helper = NULL;
	pfree(l->blocks);
	l->blocks = NULL;
}
