/*-------------------------------------------------------------------------
 * keyqueue.c - keys that a helper makes while more rows come.
 *
 * ICU takes a quarter of a microsecond for the key of a text, more than all that is done else
 * with a row that comes in.  So texts are copied, by blocks, and a helper makes their keys and puts
 * them into the entries, which are in the IndexMap without them meanwhile.  While
 * all blocks are in its hands the backend makes keys itself: both are busy.
 *
 * Before entries are sorted, or moved, ws_keyqueue_finish waits for their keys.
 *
 * Memory: WS_KEYQUEUE_BYTES.  It belongs to the context in which this was created, and the helper
 * ends before that.
 *-------------------------------------------------------------------------
 */
#include "key/text.h"
#include "os/os.h"

#define BLOCKS		4
#define ROWS		256			/* of a block */
#define TEXTS		(12 * 1024)	/* bytes of a block, all texts together */
#define LONGEST		1024		/* bytes of a text that is worth a copy */
#define FIRST		2048		/* rows that come before a helper is started */

typedef struct Block
{
	WsChore		chore;			/* must be first */
	struct WsKeyQueue *owner;
	int			rows;
	Size		used;			/* bytes of texts */
	bool		failed;
	WsEntry    *entry[ROWS];
	uint16		length[ROWS];
	char		texts[TEXTS];
} Block;

StaticAssertDecl(BLOCKS * sizeof(Block) <= WS_KEYQUEUE_BYTES, "memory of queued keys");

struct WsKeyQueue
{
	const WsKeyColumn *col;
	const WsThreads *threads;
	WsAccount  *account;
	int			seen;			/* rows before there was a helper */
	WsHelper   *helper;
	int			current;		/* block that is filled */
	Block	   *blocks;			/* or NULL */
};

/*
 * Prepares a queue, in CurrentMemoryContext, or returns NULL if keys are not such as a helper can make,
 * or if there is to be none.  Its memory is counted in `account`.
 */
WsKeyQueue *
ws_keyqueue_create(const WsKeySpec *spec, const WsThreads *threads, WsAccount *account)
{
	WsKeyQueue *q;

	/* a helper cannot lower texts */
	if (spec->cols[0].icu == NULL || spec->cols[0].lowered || !spec->first_alone ||
		!ws_thread_wanted(threads->sort, true))
		return NULL;
	q = palloc0(sizeof(WsKeyQueue));
	q->col = &spec->cols[0];
	q->threads = threads;
	q->account = account;
	return q;
}

/* Puts a key into an entry that has none. */
static inline void
complete(const WsKeyColumn *col, WsEntry *entry, uint64 key)
{
	ws_uint128	prefix = ws_first_null(col, false);

	prefix |= (ws_uint128) (col->descending ? ~key : key) << (ws_first_bits(col) - 64);
	*entry = ws_entry_make(prefix, ws_entry_pointer(*entry));
}

static void
make_keys(WsChore *chore)
{
	Block	   *b = (Block *) chore;
	const WsKeyColumn *col = b->owner->col;
	const char *text = b->texts;
	uint64		key = 0;

	for (int i = 0; i < b->rows; i++)
	{
		Size		n = b->length[i];

		/* tables are often in the order of a text: then it is the one before */
		if ((i == 0 || n != b->length[i - 1] || memcmp(text, text - n, n) != 0) &&
			!ws_icu_key(col->icu, text, n, &key))
			b->failed = true;
		complete(col, b->entry[i], key);
		text += n;
	}
}

/* Waits for a block, and empties it. */
static void
take_back(WsKeyQueue *q, Block *b)
{
	(void) ws_helper_wait(q->helper, &b->chore);
	if (b->failed)
		ws_icu_failed();
	b->rows = 0;
	b->used = 0;
}

/* Starts the helper, once rows enough have come.  False if there is none. */
static bool
start(WsKeyQueue *q)
{
	/* once only: the system may have no thread to give */
	if (q->seen > FIRST || q->seen++ < FIRST)
		return false;
	q->helper = ws_helper_start(q->threads->sort, q->threads->most, true);
	if (q->helper == NULL)
		return false;
	q->blocks = palloc0(BLOCKS * sizeof(Block));
	ws_account_add(q->account, BLOCKS * sizeof(Block));
	for (int i = 0; i < BLOCKS; i++)
	{
		q->blocks[i].owner = q;
		q->blocks[i].chore.run = make_keys;
	}
	return true;
}

/*
 * Takes over making the key of a value that is not null, for the entry that the caller is going to put
 * at `entry`, with its pointer, before the next call.  False if the caller has to make the key.
 * Raises what an earlier key met.
 */
bool
ws_keyqueue_put(WsKeyQueue *q, Datum value, WsEntry *entry)
{
	struct varlena *text = (struct varlena *) DatumGetPointer(value);
	Block	   *b;
	Size		n;

	if (unlikely(q->helper == NULL) && !start(q))
		return false;
	if (VARATT_IS_EXTERNAL(text) || VARATT_IS_COMPRESSED(text))
		return false;
	n = ws_icu_length(q->col, VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text));
	if (n > LONGEST)
		return false;
	b = &q->blocks[q->current];
	/* one that has been handed over takes no more, even if this text would find room */
	if (!ws_chore_is_idle(&b->chore) || b->rows == ROWS || b->used + n > TEXTS)
	{
		/* the entries of all its rows are there by now */
		if (ws_chore_is_idle(&b->chore))
			ws_helper_submit(q->helper, &b->chore);
		b = &q->blocks[(q->current + 1) % BLOCKS];
		if (!ws_chore_is_idle(&b->chore) && !ws_chore_is_done(&b->chore))
			return false;
		take_back(q, b);
		q->current = (q->current + 1) % BLOCKS;
	}
	memcpy(b->texts + b->used, VARDATA_ANY(text), n);
	b->used += n;
	b->length[b->rows] = (uint16) n;
	b->entry[b->rows++] = entry;
	return true;
}

/*
 * Makes all keys that have been taken over.  `q` may be NULL.  Raises what a key met.
 */
void
ws_keyqueue_finish(WsKeyQueue *q)
{
	if (q == NULL || q->helper == NULL)
		return;
	/* the last block is the backend's if it has not been handed over */
	if (ws_chore_is_idle(&q->blocks[q->current].chore))
		make_keys(&q->blocks[q->current].chore);
	for (int i = 0; i < BLOCKS; i++)
		take_back(q, &q->blocks[i]);
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
