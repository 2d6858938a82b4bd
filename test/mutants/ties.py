"""One-line faults in settling ties (faults.py)."""

from faults import fault


# --- index ----------------------------------------------------------------------

FILE = 'index/digit.c'
fault('strangers taken for others', FILE, 'cmp = memcmp(bytes, shared->bytes, shared->n);', 'cmp = 0;',
      'unit:test_ties')
fault('greater strangers in front', FILE, 'else if (cmp < 0)', 'else if (cmp != 0)', 'unit:test_ties')
fault('guesses behind bytes that prefixes do not tell', 'key/normalize.c', '(w->pos <= WS_LAST_GUESS && (asked == GUESSED_BYTES || asked == NO_LENGTH));',
      '(w->pos <= WS_LAST_GUESS && asked != TOLD_BYTES);', 't:eager')
fault('guesses behind such bytes in merges', 'merge/merge.c', 'tied->complete = (guesses ? ws_key_guessed_bytes : merge->wipes ? ws_key_certain_bytes : ws_key_bytes)',
      'tied->complete = (true ? ws_key_guessed_bytes : merge->wipes ? ws_key_certain_bytes : ws_key_bytes)', 't:eager')
FILE = 'index/windows.c'
fault('keys that go on taken for equal', FILE, 'w->goes_on[i] = length > d->reach + WS_WINDOW;',
      'w->goes_on[i] = false;', 'sql:multi')
fault('windows compared by their first word', FILE, 'cmp = memcmp(a->rest, b->rest, a->words * sizeof(uint64));',
      'cmp = 0;', 'unit:test_ties sql:multi')
fault('windows of equal keys in any order', FILE,
      'return cmp != 0 ? cmp : (a->number > b->number) - (a->number < b->number);',
      'return cmp != 0 ? cmp : (a->number < b->number) - (a->number > b->number);', 'unit:test_ties')
FILE = 'index/compared.c'
fault('misplaced rows inserted elsewhere', FILE, 'entries[from + nrows] = *row;', 'entries[from] = *row;',
      'unit:test_ties')
fault('row dropped that was not misplaced', FILE, 'dropped[(*ndropped)++] = entries[--left];',
      'dropped[(*ndropped)++] = entries[(--left, i)];', 'unit:test_ties')
fault('rows of equal keys in any order', FILE,
      'cmp = compare_keys(t, pa, pb, t->told);\nreturn cmp != 0 ? cmp : compare_pointers(pa, pb);',
      'cmp = compare_keys(t, pa, pb, t->told);\nreturn cmp != 0 ? cmp : compare_pointers(pb, pa);', 'sql:edges')
fault('pairs of equal keys in any order', FILE,
      't->tied |= cmp == 0 && pa != pb;\nreturn cmp != 0 ? cmp : compare_pointers(pa, pb);',
      't->tied |= cmp == 0 && pa != pb;\nreturn cmp != 0 ? cmp : compare_pointers(pb, pa);', 'unit:test_ties sql:edges')
fault('pairs without further columns', FILE, 'else if (t->tied)', 'else if (false)',
      'unit:test_ties sql:multi')
fault('pairs of other values taken for equal', FILE, 'number += compare_pair_values(&pairs[i - 1], &pairs[i], t) != 0;', '{}', 'unit:test_ties sql:multi')
fault('columns behind compared by those in front', FILE, 'behind.compare += next;', '{}', 'unit:test_ties sql:multi')
fault('the value of another column kept', FILE, 'pairs[i].datum = t->rows->keep(t->rows->store, key, t->first + t->told, &kept);',
      'pairs[i].datum = t->rows->keep(t->rows->store, key, t->told, &kept);', 'sql:heap_ties')
fault('pair of a null', FILE, 'pairs[i].pointer |= PAIR_NULL;', '{}', 'sql:edges')
fault('guess believed', FILE,
      'if (ws_key_compare(t->spec, t->told, last->values, last->isnull, key->values, key->isnull) <= 0)',
      'if (t != NULL)', 'unit:test_ties')
fault('mended guess not wiped out', FILE, 'return ndropped == 0;', 'return true;', 'unit:test_passes t:libc',
      'Slower only: the merge goes by it, is verified, and wipes it out itself.')
FILE = 'index/ties.c'
fault('group complete a digit early', FILE,
      'return length <= t->reach ? DONE : DIGITS;',
      'return length <= t->reach + WS_PREFIX_BYTES ? DONE : DIGITS;', 'sql:types')
fault('prefix not put back', FILE,
      'settle(t, group, same, digits + 1, DIGITS);\nfor (Size i = 0; i < same; i++)\n'
      'group[i] = ws_entry_make(common, ws_entry_pointer(group[i]));',
      'settle(t, group, same, digits + 1, DIGITS);', 'sql:merge')
fault('strangers behind are told what those before were', FILE,
      't->told = told;\nt->reach = reach;\n/* they have one prefix: in the order of their pointers again */',
      't->reach = reach;\n(void) told;', 'sql:multi')
fault('strangers in any order', FILE, 'settle(t, strangers, n, digits, DIGITS);', '', 'unit:test_ties')
fault('guess of a null turned round', FILE, 'memset(window, col->nulls_first ? 0 : 0xFF, sizeof(window));',
      'memset(window, col->nulls_first ? 0xFF : 0, sizeof(window));', 't:libc',
      'A guess of a null is wrong then, and what is wrong is sorted by comparisons.')
fault('columns told stay those of the group before', FILE, 'start = i;\nt->told = told;', 'start = i;\n(void) told;',
      'unit:test_ties t:libc')
fault('groups of guesses not verified', FILE,
      'settle_by_guess(t, group, size, way == GUESSES ? digits : t->unverified ? 1 : 0);',
      'settle_by_guess(t, group, size, way == GUESSES ? digits : 1);', 'unit:test_ties t:libc')
fault('guesses not verified', FILE, 'guesses = verify_guesses(&t, entries, n);', 'guesses = WS_GUESSES_RIGHT;',
      'unit:test_ties t:libc')
fault('wrong guess taken for right', FILE, 'result = WS_GUESSES_WRONG;', 'result = WS_GUESSES_RIGHT;', 'unit:test_sort unit:test_passes t:libc')
FILE = 'index/indexmap.c'
fault('moved IndexMap forgotten', FILE,
      'map->entries = (WsEntry *) map->region->base;\nws_region_commit(map->region, bytes);\n'
      'map->room = Min(map->region->committed / sizeof(WsEntry), map->capacity);',
      'ws_region_commit(map->region, bytes);\n'
      'map->room = Min(map->region->committed / sizeof(WsEntry), map->capacity);', 'sql:merge')
fault('IndexMap moved under helpers', FILE, 'return next_size(map) > map->region->reserved;', 'return false;',
      'sql:threads')
