/*-------------------------------------------------------------------------
 * keyqueue.c - keys that a helper makes while more rows come.
 *
 * ICU takes a quarter of a microsecond for the key of a text, more than all that is done else with a row
 * that comes in; letters, the code of what a key begins with, and packing what follows take half of that.
 * So texts, or values of all key columns (keycopy.c), or first bytes of keys are copied, by blocks, and a
 * helper makes their prefixes.  The entries are in the IndexMap without them meanwhile, and the backend
 * adds them when it comes back to the block.  While all blocks are in the helper's hands the backend makes
 * keys itself: both are busy.  Where others need the processors, it makes all (crowd.c).
 *
 * Before entries are sorted, or moved, ws_keyqueue_finish gives all of them their keys.  It waits for
 * nobody: where all processors are busy, the system may let the helper rest for some ms in the middle of a
 * block.  The backend makes the keys of such a block itself.  So a helper writes nothing but its block, which
 * remains in its hands until it has done it.  What it reads of the key specification does not change, but for
 * letters->strange, which may come to be set meanwhile: the bytes of texts that letters tell are the same.
 *
 * Memory: WS_KEYQUEUE_BYTES.  It belongs to the context in which this was created, and the helper
 * ends before that.
 *-------------------------------------------------------------------------
 */
#include "key/text.h"
#include "os/os.h"

#define BLOCKS		4
#define ROWS		192			/* of a block */
#define ROOM		(27 * 1024)	/* bytes of a block, for all that keys are made of */
#define LONGEST_QUEUED	1024	/* bytes of a text, or of values, that are worth a copy */
#ifndef MANY_CODES
#define MANY_CODES	1024		/* of beginnings: it takes a while to find one */
#endif
#define REST_ROWS	1024		/* before the backend looks again whether the helper is to rest */
#ifndef QUEUE_FIRST
#define QUEUE_FIRST	2048		/* rows that come before a helper is started */
#endif

/* What the keys of a block have met. */
typedef struct Met
{
	bool		failed;
	bool		cut;			/* a key goes on behind its prefix */
} Met;

typedef struct Block
{
	WsChore		chore;			/* must be first */
	struct WsKeyQueue *owner;
	int			rows;
	Size		used;			/* bytes of texts */
	volatile bool settled;		/* entries have their keys, although the helper may not have made them */
	Met			met;
	WsEntry    *entry[ROWS];
	WsEntry		made[ROWS];		/* prefixes, without pointers */
	uint16		length[ROWS];
	char		texts[ROOM] pg_attribute_aligned(MAXIMUM_ALIGNOF);
} Block;

StaticAssertDecl(BLOCKS * sizeof(Block) <= WS_KEYQUEUE_BYTES, "memory of queued keys");

/* The values of a row's key columns, by attno - 1: of each who makes keys of copies. */
typedef struct Values
{
	Datum	   *values;
	bool	   *isnull;
} Values;

/* What blocks hold. */
typedef enum Kind
{
	QUEUED_TEXTS,				/* of which ICU makes keys */
	QUEUED_COPIES,				/* of the values of keys */
	QUEUED_BYTES				/* first bytes of keys */
} Kind;

struct WsKeyQueue
{
	WsKeySpec  *spec;
	Kind		kind;
	const WsThreads *threads;
	WsAccount  *account;
	int			seen;			/* rows before there was a helper */
	WsHelper   *helper;
	int			current;		/* block that is filled */
	WsCrowd		crowd;
	int			resting;		/* rows whose keys the backend makes, because others need the processors */
	Block	   *blocks;			/* or NULL */
	Values		own;			/* the backend's */
	Values		helpers;
};

/* Room for the values of copies. */
static Values
make_values(const WsKeySpec *spec)
{
	return (Values) {palloc0(spec->last_attno * sizeof(Datum)), palloc0(spec->last_attno * sizeof(bool))};
}

/* Is more work to be done for a prefix than to hand it over? */
static bool
codes_are_dear(const WsBeginnings *b)
{
	return b != NULL && (ws_beginnings_packed(b) || ws_beginnings_count(b) >= MANY_CODES);
}

/*
 * Prepares a queue, in CurrentMemoryContext, or returns NULL if keys are not such as a helper can, or should,
 * make, or if there is to be none.  Its memory is counted in `account`.
 */
WsKeyQueue *
ws_keyqueue_create(WsKeySpec *spec, const WsThreads *threads, WsAccount *account)
{
	/* a helper cannot lower texts */
	bool		texts = spec->first_alone && spec->cols[0].icu != NULL && !spec->cols[0].lowered;
	bool		copies = spec->beginnings != NULL && ws_keycopy_wanted(spec);
	WsKeyQueue *q;

	if (!(texts || copies || codes_are_dear(spec->beginnings)) || !ws_thread_wanted(threads->sort, true))
		return NULL;
	q = palloc0(sizeof(WsKeyQueue));
	q->spec = spec;
	q->kind = texts ? QUEUED_TEXTS : copies ? QUEUED_COPIES : QUEUED_BYTES;
	q->threads = threads;
	q->account = account;
	if (copies)
	{
		q->own = make_values(spec);
		q->helpers = make_values(spec);
	}
	return q;
}

/* The prefix of one of ICU's keys. */
static inline WsEntry
prefix_of(const WsKeyColumn *col, uint64 key)
{
	ws_uint128	prefix = ws_first_null(col, false);

	prefix |= (ws_uint128) (col->descending ? ~key : key) << (ws_first_bits(col) - 64);
	return ws_entry_make(prefix, 0);
}

/* Makes the keys of a block's texts, by ICU. */
static void
make_keys(const Block *b, WsEntry *made, Met *met)
{
	const WsKeyColumn *col = &b->owner->spec->cols[0];
	const char *text = b->texts;
	uint64		key = 0;

	for (int i = 0; i < b->rows; i++)
	{
		Size		n = b->length[i];

		/* tables are often in the order of a text: then it is the one before */
		if ((i == 0 || n != b->length[i - 1] || memcmp(text, text - n, n) != 0) &&
			!ws_icu_key(col->icu, text, n, &key))
			met->failed = true;
		made[i] = prefix_of(col, key);
		text += n;
	}
}

/* Makes the prefixes of a block's keys, of which it has the first bytes. */
static void
make_prefixes(const Block *b, WsEntry *made, Met *met)
{
	const WsKeySpec *spec = b->owner->spec;
	Size		reach = ws_beginnings_reach(spec->beginnings);
	const uint8 *key = (const uint8 *) b->texts;

	for (int i = 0; i < b->rows; i++, key += reach)
		made[i] = ws_key_reached_entry(spec, key, b->length[i], &met->cut);
}

/* The same of copies of rows' values, which are read by way of `v`. */
static void
make_of_copies(const Block *b, const Values *v, WsEntry *made, Met *met)
{
	const WsKeySpec *spec = b->owner->spec;
	Size		reach = ws_beginnings_reach(spec->beginnings);
	const char *copy = b->texts;
	uint8		key[WS_BEGINNING + WS_MOST_BEHIND];

	for (int i = 0; i < b->rows; copy += b->length[i++])
		if (i > 0 && b->length[i] == b->length[i - 1] && memcmp(copy, copy - b->length[i], b->length[i]) == 0)
			made[i] = made[i - 1];
		else
		{
			Size		n;

			ws_keycopy_get(spec, copy, v->values, v->isnull);
			n = ws_key_bytes_behind(spec, 0, 0, v->values, v->isnull, reach, key);
			made[i] = ws_key_reached_entry(spec, key, n, &met->cut);
		}
}

static void
make_block(const Block *b, const Values *v, WsEntry *made, Met *met)
{
	switch (b->owner->kind)
	{
		case QUEUED_TEXTS:
			make_keys(b, made, met);
			break;
		case QUEUED_COPIES:
			make_of_copies(b, v, made, met);
			break;
		case QUEUED_BYTES:
			make_prefixes(b, made, met);
			break;
	}
}

static void
make_chore(WsChore *chore)
{
	Block	   *b = (Block *) chore;

	if (!b->settled)
		make_block(b, &b->owner->helpers, b->made, &b->met);
	(void) ws_crowd_look(&b->owner->crowd);
}

/* Gives the entries of a block their keys. */
static void
complete_block(WsKeyQueue *q, Block *b, const WsEntry *made, const Met *met)
{
	if (met->failed)
		ws_icu_failed();
	q->spec->cut |= met->cut || q->spec->doubts > 0;
	for (int i = 0; i < b->rows; i++)
	{
		b->entry[i]->hi = made[i].hi;
		b->entry[i]->lo |= made[i].lo;
	}
	b->settled = true;
}

/* Empties a block that the helper has not, or no longer. */
static void
take_back(WsKeyQueue *q, Block *b)
{
	if (ws_helper_wait(q->helper, &b->chore) && !b->settled)
		complete_block(q, b, b->made, &b->met);
	b->rows = 0;
	b->used = 0;
	b->settled = false;
	b->met = (Met) {0};
}

/* Starts the helper, once rows enough have come.  False if there is none. */
static bool
start_helping(WsKeyQueue *q)
{
	/* once only: the system may have no thread to give */
	if (q->seen > QUEUE_FIRST || q->seen++ < QUEUE_FIRST)
		return false;
	q->helper = ws_helper_start(q->threads->sort, q->threads->most, true);
	if (q->helper == NULL)
		return false;
	q->blocks = palloc0(BLOCKS * sizeof(Block));
	ws_account_add(q->account, BLOCKS * sizeof(Block));
	for (int i = 0; i < BLOCKS; i++)
	{
		q->blocks[i].owner = q;
		q->blocks[i].chore.run = make_chore;
	}
	return true;
}

/*
 * The block that takes the next key, of n bytes.  NULL if all of them are in the helper's hands, or if it
 * is to rest.  Raises what an earlier key met.
 */
static Block *
block_for(WsKeyQueue *q, Size n)
{
	Block	   *b = &q->blocks[q->current];

	/* one that has been handed over takes no more, even if this text would find room */
	if (!ws_chore_is_idle(&b->chore) || b->rows == ROWS || b->used + n > ROOM)
	{
		/* the entries of all its rows are there by now */
		if (ws_chore_is_idle(&b->chore))
			ws_helper_submit_lazily(q->helper, &b->chore, BLOCKS - 1);
		b = &q->blocks[(q->current + 1) % BLOCKS];
		if (!ws_chore_is_idle(&b->chore) && !ws_chore_is_done(&b->chore))
			return NULL;
		if (unlikely(ws_crowd_rests(&q->crowd)))
		{
			q->resting = REST_ROWS;
			return NULL;
		}
		take_back(q, b);
		q->current = (q->current + 1) % BLOCKS;
	}
	return b;
}

/* Notes where the key of n bytes that has been put into a block belongs. */
static inline void
end_key(Block *b, Size n, Size length, WsEntry *entry)
{
	b->used += n;
	b->length[b->rows] = (uint16) length;
	b->entry[b->rows++] = entry;
}

static bool
queue_text(WsKeyQueue *q, Datum value, WsEntry *entry)
{
	struct varlena *text = (struct varlena *) DatumGetPointer(value);
	Block	   *b;
	Size		n;

	if (VARATT_IS_EXTERNAL(text) || VARATT_IS_COMPRESSED(text))
		return false;
	n = ws_icu_length(&q->spec->cols[0], VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text));
	b = n <= LONGEST_QUEUED ? block_for(q, n) : NULL;
	if (b == NULL)
		return false;
	memcpy(b->texts + b->used, VARDATA_ANY(text), n);
	end_key(b, n, n, entry);
	return true;
}

static bool
queue_copy(WsKeyQueue *q, const Datum *values, const bool *isnull, WsEntry *entry)
{
	Size		n = ws_keycopy_bytes(q->spec, values, isnull);
	Block	   *b = n > 0 && n <= LONGEST_QUEUED ? block_for(q, n) : NULL;

	/* all letters are looked at last, only if that is of use */
	if (b == NULL || !ws_keycopy_tells(q->spec, values, isnull))
		return false;
	ws_keycopy_put(q->spec, values, isnull, n, b->texts + b->used);
	end_key(b, n, n, entry);
	return true;
}

static bool
queue_bytes(WsKeyQueue *q, const Datum *values, const bool *isnull, WsEntry *entry)
{
	Size		reach = ws_beginnings_reach(q->spec->beginnings);
	Block	   *b = block_for(q, reach);
	Size		n;

	if (b == NULL)
		return false;
	n = ws_key_reached(q->spec, values, isnull, (uint8 *) b->texts + b->used);
	end_key(b, reach, Min(n, reach + 1), entry);
	return true;
}

/*
 * Takes over making the prefix of a row, for the entry that the caller is going to put at `entry`, with its
 * pointer, before the next call.  False if the caller has to make it.  Raises what an earlier key met.
 */
bool
ws_keyqueue_put(WsKeyQueue *q, const Datum *values, const bool *isnull, WsEntry *entry)
{
	int			first = q->spec->cols[0].attno - 1;

	if (unlikely(q->helper == NULL) && !start_helping(q))
		return false;
	if (q->resting > 0)
	{
		q->resting--;
		return false;
	}
	if (q->kind == QUEUED_COPIES)
		return queue_copy(q, values, isnull, entry);
	if (q->kind == QUEUED_BYTES)
		return queue_bytes(q, values, isnull, entry);
	if (isnull[first] || !queue_text(q, values[first], entry))
		return false;
	if (q->spec->lettered)
		ws_key_look(q->spec, values, isnull);
	return true;
}

/*
 * Gives all entries that have been put their keys.  `q` may be NULL.  Raises what a key met.
 */
void
ws_keyqueue_finish(WsKeyQueue *q)
{
	if (q == NULL || q->helper == NULL)
		return;
	/* from the oldest on: the helper may do some of the others meanwhile */
	for (int i = 1; i <= BLOCKS; i++)
	{
		Block	   *b = &q->blocks[(q->current + i) % BLOCKS];
		WsEntry		made[ROWS];
		Met			met = {0};

		if (ws_chore_is_done(&b->chore))
			take_back(q, b);
		else if (!b->settled)
		{
			make_block(b, &q->own, made, &met);
			complete_block(q, b, made, &met);
			if (ws_chore_is_idle(&b->chore))
				take_back(q, b);
		}
	}
}

/* Stops the helper, and frees the blocks, after ws_keyqueue_finish or an error.  NULL is fine. */
void
ws_keyqueue_stop(WsKeyQueue *q)
{
	if (q == NULL || q->helper == NULL)
		return;
	ws_helper_stop(q->helper);
	q->helper = NULL;
	pfree(q->blocks);
	ws_account_subtract(q->account, BLOCKS * sizeof(Block));
	q->blocks = NULL;
}
