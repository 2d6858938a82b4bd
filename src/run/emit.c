/*-------------------------------------------------------------------------
 * emit.c - how a sorted piece becomes a run: of entries, or of rows that travel.
 *
 * Who forms runs (formation.c) does not ask which of the two it is.
 *
 * Memory: what rowwrite.c notes of a run's blocks, until it ends.  On error: as runfile.c and rowwrite.c.
 *-------------------------------------------------------------------------
 */
#include "run/run.h"

#include "utils/memutils.h"

/*
 * Is an older piece going to be written after what is written now?  Runs are numbered as they are begun,
 * and the numbers say which rows came first: a merge of some of them takes those of one span of arrival.
 */
static bool
older_waits(const WsFormation *f, const WsPiece *p)
{
	for (int i = 0; i < f->made; i++)
	{
		const WsPiece *q = f->pieces[i];

		if (q->n > 0 && !q->write && q->closed < p->closed)
			return true;
	}
	return false;
}

/* May a helper write a piece as the next run? */
bool
ws_emit_by_helper(WsFormation *f, const WsPiece *p)
{
	bool		allowed = f->source != NULL ?
		ws_file_allow_appending(f->row_home.files, f->row_home.file) :
		ws_runs_allow_helpers(&f->home, 0);

	return allowed && !older_waits(f, p);
}

/* Begins the run of a piece, which a helper writes if `helped`. */
void
ws_emit_begin(WsFormation *f, WsPiece *p, bool helped)
{
	memset(&p->rows, 0, sizeof(WsRowWriter));
	if (f->source == NULL)
		ws_run_write_begin(&p->writer, &f->home, p->n, f->block_size,
						   f->next_number++, 0, f->block, helped ? f->helper : NULL);
	else
		ws_rows_write_begin(&p->rows, &f->row_home, f->source, f->next_number++, 0,
							f->row_buffer, f->row_buffer_bytes,
							MemoryContextAllocHuge(GetMemoryChunkContext(f),
												   f->most_starts * sizeof(WsBlockStart)),
							f->most_starts, helped ? f->helper : NULL);
}

/* Writes the run.  In a helper if it was begun so. */
void
ws_emit(WsPiece *p)
{
	if (p->rows.source == NULL)
		ws_run_write(&p->writer, p->entries, p->n);
	else
	{
		ws_rows_write(&p->rows, p->entries, p->n);
		ws_rows_write_last(&p->rows);
	}
}

/* In a helper: sorts a piece and writes it, as far as that is asked for. */
void
ws_emit_chore(WsChore *chore)
{
	WsPiece    *p = (WsPiece *) chore;

	if (!p->sorted)
		ws_sort_vectorised(p->entries, p->n);
	p->sorted = true;
	if (p->write)
		ws_emit(p);
}

/* Makes it one of the live runs.  Raises what a helper met. */
void
ws_emit_end(WsFormation *f, WsPiece *p)
{
	if (p->rows.source == NULL)
		ws_formation_add_run(f, ws_run_write_end(&p->writer));
	else
	{
		ws_formation_add_run(f, ws_rows_write_end(&p->rows));
		ws_starts_add(f, p->rows.starts, p->rows.run.blocks);
		pfree(p->rows.starts);
	}
}
