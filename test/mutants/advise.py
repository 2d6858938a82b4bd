"""One-line faults in what a DBA is told: forecasts, refusals, lists of libraries (faults.py)."""

from faults import fault

FILE = 'advise/model.c'
fault('rows in memory need no entries', FILE, 'if (spooled + s->rows * s->entry <= b.shared)',
      'if (spooled <= b.shared)', 't:advise')
fault('runs take no disk', FILE, 'f->temp += l.most[i];', 'f->temp += 0;', 't:advise')
fault('array of core never grows by what is left', FILE, 'slots = floor(slots * memory / used);', 'slots *= 1;',
      't:advise')
fault('travelling rows are in a spool', FILE,
      'else if (request.store == WS_KIND_SPOOL && spooled > (double) request.allowance)', 'else if (false)',
      't:advise')
FILE = 'advise/measure.c'
fault('core needs less for a row', FILE, 'm->core += MAXALIGN(minimal + again) + WS_CORE_CHUNK;',
      'm->core += minimal;', 't:advise')
FILE = 'advise/query.c'
fault('writing queries', FILE, 'if (query->commandType != CMD_SELECT || query->hasModifyingCTE)', 'if (false)',
      't:advise')
fault('locking queries', FILE, 'if (query->rowMarks != NIL)', 'if (false)', 't:advise')
fault('parameters', FILE, 'pstate->p_paramref_hook = refuse_parameter;', '', 't:advise')
fault('a query that is run may write', FILE,
      'XactReadOnly = true;		/* until the subtransaction ends */', '', 't:advise')
FILE = 'exec/input.c'
fault('rows past what measures them', FILE, 'if (!ws_input_by_rows && ws_scans_pages(outer) &&',
      'if (ws_scans_pages(outer) &&', 't:advise')
FILE = 'advise/preload.c'
fault('empty list as a literal', FILE,
      'command = psprintf("ALTER DATABASE %s SET " SETTING " FROM CURRENT", database);',
      'command = psprintf("ALTER DATABASE %s SET " SETTING " = %s", database, quote_literal_cstr(list));',
      't:install')
fault('the list of a session is taken for that of the cluster', FILE,
      """" ('default', 'configuration file', 'command line', 'environment variable')",""",
      """" ('default', 'configuration file', 'command line', 'environment variable', 'client')",""", 't:install')
fault('the list as the transaction sees it', FILE, 'PushActiveSnapshot(GetLatestSnapshot());',
      'PushActiveSnapshot(GetActiveSnapshot());', 't:preloading')
fault('the list may be changed meanwhile', FILE, 'LockRelationOid(DbRoleSettingRelationId, ShareRowExclusiveLock);', '',
      't:preloading')
fault('the own list of a role is overlooked', 'advise/status.c', 'next = next || own;', '', 't:preloading')
