/*-------------------------------------------------------------------------
 * sigbus.c - a fault inside one of our file mappings becomes an ERROR.
 *
 * Touching a page of a mapped file that has been truncated, or that the
 * device cannot deliver, raises SIGBUS, which would kill the backend and
 * with it every session.  The signal is synchronous: it arrives in the
 * middle of our own load instruction, so that raising an ERROR from the
 * handler is what PostgreSQL itself does for SIGFPE (FloatExceptionHandler
 * in postgres.c).  The window touches every page of a row before it hands
 * the row out, which keeps the fault in our code.
 *
 * A helper thread cannot raise an ERROR: it sets ws_fault_jump while it
 * touches a mapping, and reports the fault itself.
 *
 * A fault anywhere else goes to whoever handled SIGBUS before us.
 *-------------------------------------------------------------------------
 */
#include "os/os.h"

#include <signal.h>

#include "storage/lwlock.h"

__thread sigjmp_buf *ws_fault_jump = NULL;
__thread const char *ws_fault_address = NULL;

static WsMapping *mappings = NULL;
static bool installed = false;
static struct sigaction previous;

/*
 * Raises the error of damaged temporary data: SQLSTATE XX001, with the
 * file's name.  `what` is a sentence for the DETAIL line; `where` is what it was met in, or NULL.
 */
void
ws_corrupt(const char *filename, const char *what, const char *where)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("temporary file \"%s\" of a sort is damaged", filename),
			 where == NULL ? errdetail("%s", what) : errdetail("%s This is %s.", what, where),
			 errhint("Check the storage of the temporary tablespace, then run the query again.")));
}

/* The same of a table's file. */
void
ws_bad_table(const char *filename)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("could not read a mapped page of file \"%s\"", filename),
			 errdetail("The file is shorter than the table, or the device failed."),
			 errhint("Check the storage, or set wiscsort.direct_read to off.")));
}

static void
on_sigbus(int signo, siginfo_t *info, void *context)
{
	char	   *addr = info->si_addr;

	if (ws_fault_jump != NULL)
	{
		ws_fault_address = addr;
		siglongjmp(*ws_fault_jump, 1);
	}
	for (WsMapping *m = mappings; m != NULL; m = m->next)
	{
		if (addr >= m->base && addr < m->base + m->bytes)
		{
			char		where[WS_WHERE_BYTES];
			const char *name;
			Size		at;

			if (m->table)
			{
				/* nobody shall wait for us while the client is told */
				LWLockReleaseAll();
				ws_bad_table(m->name);
			}
			at = (Size) (addr - m->base);
			name = m->name_at != NULL ? m->name_at(m, &at) : m->name;
			snprintf(where, sizeof(where), "at offset %zu", at);
			ws_corrupt(name, WS_UNREADABLE_PAGE, where);
		}
	}

	/* Not ours. */
	if (previous.sa_flags & SA_SIGINFO)
		previous.sa_sigaction(signo, info, context);
	else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
		previous.sa_handler(signo);
	else
	{
		/* Die as we would have without us: returning repeats the fault. */
		sigaction(SIGBUS, &previous, NULL);
		installed = false;
	}
}

/*
 * Announces a mapping; the caller keeps the struct and the name alive until
 * ws_sigbus_forget.  Installs the handler at the first call in the process.
 */
void
ws_sigbus_register(WsMapping *mapping)
{
	/* The first access allocates, which the handler must not. */
	ws_fault_jump = NULL;
	if (!installed)
	{
		struct sigaction act;

		memset(&act, 0, sizeof(act));
		act.sa_sigaction = on_sigbus;
		act.sa_flags = SA_SIGINFO | SA_NODEFER;
		sigemptyset(&act.sa_mask);
		if (sigaction(SIGBUS, &act, &previous) == 0)
			installed = true;
	}
	mapping->next = mappings;
	mappings = mapping;
}

/* Takes a mapping off the list; harmless if it is not on it. */
void
ws_sigbus_forget(WsMapping *mapping)
{
	for (WsMapping **m = &mappings; *m != NULL; m = &(*m)->next)
	{
		if (*m == mapping)
		{
			*m = mapping->next;
			return;
		}
	}
}
