/*-------------------------------------------------------------------------
 * spaces.c - the temporary tablespaces that the next files will be in.
 *
 * PostgreSQL puts each temporary file into the next of temp_tablespaces, in turn, and there is no way to
 * name one.  But one can be passed over (GetNextTempTableSpace), and after as many as there are it is the
 * first one's turn again: so the turns can be looked at, and the wanted one made the next.
 *
 * Memory: none.  On error: temp_tablespaces is checked as it is for PostgreSQL's own files.  A list of more
 * than MOST_TURNS members, of which some may be equal, is left to PostgreSQL's turns.
 *-------------------------------------------------------------------------
 */
#include "file/spaces.h"

#include "commands/tablespace.h"
#include "storage/fd.h"

#define MOST_TURNS	64

/* The tablespaces of the next files; returns after how many it is the first one's turn again, or 0. */
static int
look_at_turns(Oid *turns)
{
	int			n;

	PrepareTempTablespaces();
	n = GetTempTablespaces(turns, MOST_TURNS);
	if (n < 2 || n == MOST_TURNS)
		return 0;
	for (int i = 0; i < n; i++)
		turns[i] = GetNextTempTableSpace();
	return n;
}

/*
 * Sets spaces[] to up to `most` different temporary tablespaces, beginning with that of the next file
 * (InvalidOid is the database's own), and returns how many: 1, and nothing is set, if there is no choice.
 */
int
ws_spaces_find(Oid *spaces, int most)
{
	Oid			turns[MOST_TURNS];
	int			n = look_at_turns(turns);
	int			found = 0;

	for (int i = 0; i < n && found < most; i++)
	{
		bool		known = false;

		for (int j = 0; j < found; j++)
			known |= spaces[j] == turns[i];
		if (!known)
			spaces[found++] = turns[i];
	}
	return Max(found, 1);
}

/* Makes a tablespace that of the next file, if it is one of temp_tablespaces still. */
void
ws_spaces_turn_to(Oid space)
{
	Oid			turns[MOST_TURNS];
	int			n = look_at_turns(turns);
	int			before = 0;

	while (before < n && turns[before] != space)
		before++;
	for (int i = 0; before < n && i < before; i++)
		(void) GetNextTempTableSpace();
}
