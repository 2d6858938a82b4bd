/*-------------------------------------------------------------------------
 * writer.c - writes that a helper does while the backend goes on.
 *
 * Each write has a struct of its own, which says what became of it.  The backend
 * raises that when it waits for the write.
 *-------------------------------------------------------------------------
 */
#include "file/file.h"

static void
write_chore(WsChore *chore)
{
	WsWrite    *w = (WsWrite *) chore;

	w->error = ws_file_write_raw(w->files, w->file, w->data, w->bytes, w->offset);
}

/*
 * Has a helper write `bytes` bytes at `offset` of a file that allows helpers;
 * `data` must stay as it is until ws_write_finish.  To be followed by ws_file_charge.
 */
void
ws_write_start(WsHelper *h, WsWrite *w, WsFileSet *files, int file,
			   const char *data, Size bytes, int64 offset)
{
	ws_file_announce(files, file, bytes, offset);
	w->chore.run = write_chore;
	w->files = files;
	w->file = file;
	w->data = data;
	w->bytes = bytes;
	w->offset = offset;
	ws_helper_submit_lazily(h, &w->chore, 2);
}

/* Waits for a write, if one was started, and raises its error. */
void
ws_write_finish(WsHelper *h, WsWrite *w)
{
	if (ws_helper_wait(h, &w->chore) && w->error != 0)
		ws_file_write_failed(w->files, w->file, w->error);
}
