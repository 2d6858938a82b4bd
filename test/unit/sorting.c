/*-------------------------------------------------------------------------
 * sorting.c - all of src/ that a sort is made of, below the store, for tests to include.
 *
 * With server.c in the place of the server, memfiles.c in that of the file set, and fakestore.c for the
 * store, the key specification and the rows.  A test that defines WS_FAKE_READER before gets fakereader.c
 * in the place of the plain reader; one that defines PIECE_ENTRIES has pieces of so many entries.
 *
 * And a job: entries of a table of rows through formation and passes, without a store or a budget.
 *-------------------------------------------------------------------------
 */
#include "server.c"
#include "memfiles.c"

#include "../../src/os/region.c"
#include "../../src/os/owned.c"
#include "../../src/os/helper.c"
#include "../../src/os/crowd.c"
#include "../../src/os/sigbus.c"
#include "../../src/os/resident.c"
#ifdef WS_FAKE_READER
#include "fakereader.c"
#else
#include "../../src/file/reader.c"
#endif
#include "../../src/file/aio.c"
#include "../../src/file/uring.c"
#include "../../src/file/async.c"
#include "../../src/file/writer.c"
#include "../../src/key/normalize.c"
#include "../../src/key/memo.c"
#include "../../src/key/prefix.c"
#include "../../src/key/numeric.c"
#include "../../src/key/told.c"
#include "../../src/key/range.c"
#include "../../src/key/compare.c"
#include "../../src/key/guess.c"
#include "dictionaries.c"
#include "../../src/key/keycopy.c"
#include "../../src/key/keyqueue.c"
#include "../../src/index/index.h"
#ifdef PIECE_ENTRIES
#undef WS_PIECE_ENTRIES
#define WS_PIECE_ENTRIES ((Size) (PIECE_ENTRIES))
#endif
#include "../../src/index/indexmap.c"
#include "../../src/index/kernel.c"
#define settle ties_settle		/* formation.c has one, too */
#include "../../src/index/digit.c"
#include "../../src/index/windows.c"
#include "../../src/index/compared.c"
#include "../../src/index/ties.c"
#undef settle
#include "../../src/run/runfile.c"
#include "../../src/run/rowspace.c"
#include "../../src/run/rowwrite.c"
#include "../../src/run/rowread.c"
#include "../../src/run/chain.c"
#include "../../src/run/runlist.c"
#include "../../src/run/bound.c"
#include "../../src/run/emit.c"
#include "../../src/run/formation.c"
#include "../../src/merge/losertree.c"
#include "../../src/merge/merge.c"
#include "../../src/merge/gather.c"
#include "../../src/merge/passes.c"
#include "../../src/merge/rowpasses.c"
#include "../../src/merge/stream.c"
#include "../../src/merge/rowstream.c"

#include "fakestore.c"

typedef struct Job
{
	/* set by the test */
	const char *what;
	int			kind;			/* of key */
	Size		n;
	uint64		distinct;
	double		expected;		/* entries */
	Size		bytes;			/* that the IndexMap may have */
	Size		disk_bytes;		/* that ws_formation_limit is told of */
	Size		block_size;
	uint64		asked;			/* rows that are asked for, or 0: all */
	Size		limit_at;		/* entries after which it is called in any case; 0: when all is full */
	bool		vectorised;
	int			threads;		/* 1: helpers, 0: none */
	bool		random_access;
	Size		reading;
	/* made of it */
	FakeTable	table;
	uint32	   *order;			/* the rows in the order that is right */
	WsThreads	wanted;
	/* while it runs */
	WsAccount	account;
	WsKeySpec  *spec;
	WsFileSet  *files;
	WsFormation *formation;
	WsBound		bound;
	WsPasses   *passes;
	int			moves;			/* times that the IndexMap has moved */
	int			sorts;			/* times that passes_reduce had something to do */
	WsRunStats	stats;
	int64		disk;
	Size		kept;
	/* afterwards */
	long		wrong;			/* entries that were not those of `order`, or missing */
} Job;

/* Makes the rows of a job, and finds their order. */
void
job_rows(Job *j)
{
	fake_fill(&j->table, &fake_keys[j->kind], j->n, j->distinct);
	j->order = fake_sorted(&j->table, &fake_keys[j->kind]);
	j->wanted = (WsThreads) {j->threads, j->threads, j->threads, 4};
}

void
job_free(Job *j)
{
	fake_free(&j->table);
	free(j->order);
}

/* Creates what a job needs, and takes in all entries. */
void
job_form(Job *j)
{
	WsFormation *f;
	bool		limited = false;

	memset(&j->account, 0, sizeof(j->account));
	j->moves = j->sorts = 0;
	j->wrong = 0;
	j->table.readied = false;
	j->table.fetched = 0;
	j->spec = fake_spec(&fake_keys[j->kind]);
	j->files = ws_fileset_create(&j->wanted, 0);
	f = j->formation = ws_formation_create(j->spec, j->spec->exact ? NULL : &j->table.keys, &j->wanted,
										   &j->account, j->files, j->vectorised, j->expected, j->bytes);
	j->passes = ws_passes_create(f, j->files, NULL);
	ws_bound_init(&j->bound, j->asked);
	if (j->asked > 0)
		ws_formation_bound(f, &j->bound);
	for (Size i = 0; i < j->n; i++)
	{
		const WsEntry *base = f->map->entries;
		WsEntry		entry = fake_entry(&j->table, j->spec, i);

		entry.lo &= ~WS_POINTER_MASK;
		if (j->bound.known && ws_bound_passes(&j->bound, entry))
		{
			j->bound.passed++;
			continue;
		}

		if (!limited && j->limit_at > 0 && i == j->limit_at)
		{
			limited = true;
			ws_formation_limit(f, j->disk_bytes, j->block_size);
		}
		while (!ws_formation_has_room(f))
		{
			if (!ws_formation_make_room(f))
			{
				if (limited)
					server_die("%s: the formation is limited twice", j->what);
				limited = true;
				ws_formation_limit(f, j->disk_bytes, j->block_size);
			}
			j->sorts += ws_formation_is_crowded(f);
			ws_passes_check(j->passes);
		}
		j->moves += f->map->entries != base;
		ws_formation_add(f, fake_entry(&j->table, j->spec, i));
	}
}

/* Closes what is still open, as ws_sorter_destroy does. */
void
job_close(Job *j)
{
	j->stats = j->formation->stats;
	j->disk = ws_fileset_bytes(j->files);
	j->kept = j->formation->nkept;
	ws_formation_close(j->formation);
	ws_fileset_close(j->files);
}
