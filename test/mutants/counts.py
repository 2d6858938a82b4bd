"""One-line faults in statistics, progress and the limits of temporary files (faults.py)."""

from faults import fault


FILE = 'stat/shared.c'
fault('counts of a row that was folded', FILE, 'ws_counts_add(heir->counts, old.counts);', '{}', 't:stat')
fault('the first row is not counted in', FILE, 'ws_counts_add(counts, s->rows[0].counts);', '{}', 't:counts')
fault('queries are given up for the row of all', FILE, 'if (key.query != 0)', 'if (false)', 't:stat')
fault('the newest rows are given up', FILE, 'return (x > y) - (x < y);', 'return (x < y) - (x > y);', 't:counts')
fault('a slot that is taken is free', FILE, 'if (my_slots(s, i)->pid == 0)', 'if (i >= 0)', 't:stat')
FILE = 'store/heap.c'
fault('windows grow as long as there is memory', FILE, 'return Min(MAX_ROWS, Max((Size) most, TEAM_ROWS));',
      'return MAX_ROWS;', 't:heap')
FILE = 'exec/node.c'
fault('rows that were dropped before are not counted', FILE,
      'sort->sorter->dropped = (uint64) (figures->rows_in - ws_few_rows(state->few));', '{}', 't:few')
FILE = 'advise/query.c'
fault('a plan that is looked at is an execution', FILE, 'standard_ExecutorStart(desc, EXEC_FLAG_EXPLAIN_ONLY);',
      'ExecutorStart(desc, EXEC_FLAG_EXPLAIN_ONLY);', 't:monitoring')
FILE = 'stat/track.c'
fault('rows that wait for the client say how long others take', FILE,
      't->suspended = t->statement != GetCurrentStatementStartTimestamp();', '{}', 't:progress')
fault('aborted sorts are not told', FILE, 't->counts[WS_ABORTED]++;', '{}', 't:stat')
fault('a sort that fails in a function runs on until ROLLBACK', FILE, 'if (after && !commits && t->sorting)', 'if (false)',
      't:transactions')
fault('a slot is kept', FILE, '\tif (t->slot != NULL)\n\t\tws_slot_free(t->slot);', '', 't:stat')
fault('the store of sorts begun again', FILE, 'bool		travels = s->store.travels && !s->again;',
      'bool		travels = s->store.travels;', 't:stat')
FILE = 'stat/left.c'
fault('sorts in memory are left to core, too', FILE, 'counts[WS_LEFT] += disk > 0;', 'counts[WS_LEFT]++;', 't:stat')
FILE = 'stat/views.c'
fault('everybody sees what others do', FILE, 'return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||',
      'return true ||', 't:stat')
FILE = 'file/watch.h'
fault('max_temp is not looked at', FILE, 'if (watch->disk_limit >= 0 && disk > watch->disk_limit)', 'if (false)', 't:stat')
FILE = 'file/fileset.c'
fault('what was written is not known', FILE, 'ws_watch_grow(set->watch, end - f->length);', '{}', 't:stat')
FILE = 'plan/finish.c'
fault('workers do not know their query', FILE, 'ws_request_note_query(cscan->custom_private, query);', '{}', 't:stat')
FILE = 'stat/track.c'
fault('rows that travelled not counted', FILE, 'c[WS_TRAVELLED] += travels && request->allowance > 0;', '', 't:counts')
fault('rows that were copied not counted', FILE, 'c[WS_COPIED] += request->copies;', '', 't:counts')
fault('refused ways of reading not counted', FILE,
      'c[WS_IO_REFUSED] += s->runs.reads.blocks > 0 && s->runs.reads.io != request->reads.io;', '', 't:counts')
FILE = 'advise/query.c'
fault('errors point into the outer query', FILE, 'if (error->cursorpos > 0 && error->internalquery == NULL)', 'if (false)',
      't:advise')
fault('what spools took is told of tables', 'stat/track.c', 't->table = request->store == WS_KIND_HEAP && !request->copies;',
      't->table = false;', 't:progress')
fault('helpers go on after an abort', 'os/helper.c', 'if (!after && !commits)', 'if (false)', 't:transactions')
fault('nobody is told of owners that go', 'os/owned.c', 'if (o->owner != owner)', 'if (true)', 't:transactions')
