"""One-line faults in codes of values and of beginnings, guesses by letters, and bounds (faults.py)."""

from faults import fault


# --- key ------------------------------------------------------------------------

FILE = 'key/dictionary.c'
fault('gap code given to a value', FILE, 'return (i > 0 ? known(d, i - 1)->code : 0) + 1;',
      'return (i > 0 ? known(d, i - 1)->code : 0) + 2;', 'unit:test_dictionary')
fault('used gap forgotten', FILE, '*gap_used = true;', '{}', 'unit:test_dictionary')
fault('equal values in codes of their own', FILE,
      'if (i == 0 || compare_values(d, known(d, d->nordered - 1)->datum, v->datum) != 0)', 'if (true)',
      'unit:test_dictionary')
fault('hints believed', FILE, 'low = 0;\nif (high < d->nordered && compare_values(d, known(d, high)->datum, value) <= 0)',
      '{}\nif (high < d->nordered && compare_values(d, known(d, high)->datum, value) <= 0)', 'unit:test_dictionary')
fault('values of other lengths are equal', FILE, 'if (v->hash == hash && v->length == length &&', 'if (v->hash == hash &&',
      'unit:test_dictionary', 'The hash has the length in it: equal hashes of different lengths are rare.')
fault('dictionary grows without end', FILE, 'if (d->nvalues >= MOST_VALUES || d->bytes + tables + chunk > d->most)',
      'if (d->nvalues >= MOST_VALUES)', 'unit:test_dictionary')
fault('hint passes over a byte too many', FILE,
      'i < d->nordered ? known(d, i)->hint : PG_UINT64_MAX);',
      'i < d->nordered ? known(d, i)->hint : PG_UINT64_MAX) + 1;', 'unit:test_dictionary')
fault('hint of another value', FILE, 'd->hint.bits = hint;', 'd->hint.bits = i > 0 ? known(d, i - 1)->hint : hint;',
      'unit:test_dictionary t:libc', 'Slower only: all in a gap tie.')
fault('first value of the same hint', FILE,
      'high = hint == PG_UINT64_MAX ? d->nordered : place_by_hint(d, hint + 1, low);', '{}', 'unit:test_dictionary')
FILE = 'key/beginnings.c'
fault('part above its beginning ascends', FILE, 'return (uint8) (above ? PG_UINT8_MAX - part : part);',
      'return (uint8) part;', 'unit:test_beginnings')
fault('part below taken for above', FILE, 'prefix = key[known] < label[known] ? BELOW(child) : child->above;',
      'prefix = key[known] > label[known] ? BELOW(child) : child->above;', 'unit:test_beginnings')
fault('children of a beginning before its gap', FILE, 'b->node[child].before = (uint16) code++;',
      'b->node[child].before = (uint16) (code++ + 2);', 'unit:test_beginnings')
fault('too many beginnings', FILE, 'if (b->nodes == b->most)', 'if (b->nodes > b->most + 100000)',
      'unit:test_beginnings', 'Then memory of the trie is overrun, which a sanitizer sees.')
fault('bytes behind a part one too many', FILE, 'behind--;\nbreak;', 'break;', 'unit:test_beginnings')
fault('keys never told to their ends', FILE, 'b.whole = ends && equal > n / WS_LEARN_ONE_IN;', 'b.whole = false;',
      'unit:test_beginnings')
FILE = 'key/sample.c'
fault('codes of beginnings that leave all ties', FILE,
      'if (ws_learn_tied(l) * WS_LEARN_FEWER <= tied)\nreturn ws_beginnings_bytes(spec->beginnings);',
      'return ws_beginnings_bytes(spec->beginnings);', 'unit:test_dictionary', 'Slower only: prefixes are right all the same.')
FILE = 'key/alphabet.c'
fault('letters between others have no place', FILE, 'return (uint8) (2 * from + 1);', 'return (uint8) 0;',
      'unit:test_alphabet')
fault('letters transformed without end', FILE, '*transformed = MOST_TRANSFORMED;', '{}', 'unit:test_alphabet')
fault('letter of two has one place', FILE, 'for (int j = 0; j < MOST_PLACES; j++)', 'for (int j = 0; j < 1; j++)',
      'unit:test_alphabet')
FILE = 'key/learn.c'
fault('dictionary behind a column without one', FILE, 'goes_on = false;', '{}', 'unit:test_dictionary',
      'No key comes to it: the column before ends them all.')
FILE = 'key/told.c'
fault('gap taken for a value', FILE, 'if (ws_code_is_exact(bytes->at[*pos - 1]))', 'if (*pos > 0)',
      'unit:test_dictionary t:libc')
fault('nothing is certain before a guess behind a code', FILE,
      'certain.to = ws_beginnings_prefix(spec->beginnings, bytes.at);', 'certain.to = certain.from;',
      't:alphabets t:beginnings t:libc')
FILE = 'key/normalize.c'
fault('gap goes on', FILE, 'if (ws_code_is_exact(code))\nreturn true;', 'return true;',
      'unit:test_dictionary t:libc')


# --- bounds -----------------------------------------------------------------------

FILE = 'run/bound.c'
fault('peers of the limit passed over', FILE, 'b->first_out = ws_entry_make(complete ? last : last + 1, 0);',
      'b->first_out = ws_entry_make(last, 0);', 'unit:test_formation sql:limits')
fault('a guess taken for certain', FILE, 'ws_uint128	last = ws_key_certain(spec, entry).to;',
      'ws_uint128	last = ws_entry_prefix(entry);', 'unit:test_formation sql:limits')
fault('a note stands for one more', FILE, 'b->noted[b->nnoted++] = (WsNoted) {entries[i], step};',
      'b->noted[b->nnoted++] = (WsNoted) {entries[i], step + 1};', 'unit:test_formation sql:limits')
fault('two notes at the place of the first', FILE, 'noted = (WsNoted) {b->noted[i + 1].entry, noted.n + b->noted[i + 1].n};',
      'noted = (WsNoted) {noted.entry, noted.n + b->noted[i + 1].n};', 'unit:test_formation sql:limits')
fault('entries cut before they are settled', FILE, 'if (settled)', 'if (true)', 'unit:test_formation sql:limits')
FILE = 'exec/node.c'
fault('a sort of fewer rows read again', FILE, '(sorted > 0 && (wanted == 0 || wanted > sorted)))', 'false)',
      'sql:limits')
FILE = 'plan/finish.c'
fault('WITH TIES taken for a bound', FILE, '((Limit *) plan)->limitOption == LIMIT_OPTION_COUNT)', 'true)',
      'sql:limits')
