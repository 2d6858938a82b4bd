"""One-line faults in codes of values and of beginnings, and in guesses by letters (faults.py)."""

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

# --- rows in order ----------------------------------------------------------------

FILE = 'sort/order.c'
fault('a row that is less follows', FILE, 'return cmp > 0;', 'return false;', 'unit:test_sort t:in_order')
fault('the last key stays the first', FILE, 'return !less && remember(order, &sorter->account, values, isnull);',
      'return !less;', 'unit:test_sort t:in_order')
fault('runs without prefixes are merged with others', FILE, 'f->nruns = 0;', '{}', 'unit:test_sort t:in_order')
fault('pieces are in order by what is no prefix', FILE,
      'ws_sort_entries(f->pieces[i]->entries, f->pieces[i]->n, f->vectorised);', '{}',
      reason='they came in order: only guesses that are wrong are in another')
