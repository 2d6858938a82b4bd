"""One-line faults in codes of values and of beginnings, guesses by letters, and bounds (faults.py)."""

from faults import fault


# --- key ------------------------------------------------------------------------

FILE = 'key/dictionary.c'
fault('gap code given to a value', FILE, 'code = (i > 0 ? known(d, i - 1)->code : 0) + 1;',
      'code = (i > 0 ? known(d, i - 1)->code : 0) + 2;', 'unit:test_dictionary')
fault('no long value of a gap is remembered', FILE,
      '#define MOST_REMEMBERED\t1024\t/* bytes of a value that got the code of a gap */',
      '#define MOST_REMEMBERED\t128', 'unit:test_dictionary')
fault('no value of a gap is remembered', FILE, 'd->stranger.length = length;', 'd->stranger.length = 0;',
      'unit:test_dictionary')
fault('values of gaps of the same length are the same', FILE,
      'return length > 0 && d->stranger.length == length && d->stranger.hash == hash &&\nmemcmp(d->stranger.bytes, bytes, length) == 0;',
      'return length > 0 && d->stranger.length == length;', 'unit:test_dictionary')
fault('used gap forgotten', FILE, '*gap_used = true;', '{}', 'unit:test_dictionary')
fault('equal values in codes of their own', FILE,
      'if (i == 0 || compare_values(d, known(d, d->nordered - 1)->datum, v->datum) != 0)', 'if (true)',
      'unit:test_dictionary')
fault('hints believed', FILE, 'low = 0;\nif (high < d->nordered && compare_values(d, known(d, high)->datum, value) <= 0)',
      '{}\nif (high < d->nordered && compare_values(d, known(d, high)->datum, value) <= 0)', 'unit:test_dictionary')
fault('values of other lengths are equal', FILE, 'if (v->hash == hash && v->length == length && ws_same_bytes(known_bytes(d->col, v), bytes, length))',
      'if (v->hash == hash && ws_same_bytes(known_bytes(d->col, v), bytes, length))', 'unit:test_dictionary', 'The hash has the length in it: equal hashes of different lengths are rare.')
fault('the last bytes of short values do not count', 'key/value.h', 'return x.first == y.first && x.last == y.last;',
      'return x.first == y.first;', 'unit:test_dictionary')
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
FILE = 'key/trie.c'
fault('children of a beginning before its gap', FILE, 'b->node[child].before = (uint16) code++;',
      'b->node[child].before = (uint16) (code++ + 2);', 'unit:test_beginnings')
fault('a byte between two children leads to the first', FILE,
      'if (node->least + i > b->node[node->first_child + child].first)',
      'if (node->least + i >= b->node[node->first_child + child + 1].first)', 'unit:test_beginnings')
fault('too many beginnings', FILE, 'if (b->nodes == b->most)', 'if (b->nodes > b->most + 100000)',
      'unit:test_beginnings', 'Then memory of the trie is overrun, which a sanitizer sees.')
FILE = 'key/beginnings.c'
fault('one byte of a label more', FILE, 'return pg_ntoh64(x ^ y) >> (BITS_PER_BYTE * (sizeof(x) - n)) == 0;',
      'return x == y;', 'unit:test_beginnings')
fault('a label of eight bytes is not compared', FILE, 'for (; n > sizeof(x); n -= sizeof(x), a += sizeof(x), b += sizeof(x))',
      'for (; n >= sizeof(x); n -= sizeof(x), a += sizeof(x), b += sizeof(x))', 'unit:test_beginnings')
fault('bytes behind a part one too many', FILE, 'behind--;\nbreak;', 'break;', 'unit:test_beginnings')
FILE = 'key/trie.c'
fault('keys never told to their ends', FILE, 'b.whole = ends && equal > n / WS_LEARN_ONE_IN;', 'b.whole = false;',
      'unit:test_beginnings')
fault('what one key begins with gets no code', FILE, 'Build		b = {.keys = keys, .least = 2, .alone = true};',
      'Build		b = {.keys = keys, .least = 2};', 'unit:test_beginnings')
fault('labels end with anything', FILE,
      'while (same < most && label[n - 1 - same] == b->label[b->nlabel - 1 - same])', 'while (same < most)',
      'unit:test_beginnings')
FILE = 'key/packing.c'
fault('packed bytes in another order', FILE, 'least += share_of(interval, part.from);\ninterval = share_of(interval, part.size);',
      'least += interval - share_of(interval, part.from);\ninterval = share_of(interval, part.size);', 'unit:test_beginnings')
fault('bytes are told that others may be', FILE,
      'if (packed >= size || (interval < WHOLE && !is_certain(t, interval, byte)))', 'if (packed >= size)',
      'unit:test_beginnings')
fault('bytes that are not told count where they may be guesses', FILE, 'else if (p->stops)', 'else if (false)',
      'unit:test_beginnings')
fault('all bytes come oftenest behind any', FILE, 'p->table_of[oftenest] = (uint8) p->tables;', '{}', 'unit:test_beginnings',
      'Slower only: prefixes tell less.')
fault('strange bytes are taken for common ones', FILE, 'p->table_of[i] = BEHIND_STRANGE;', '{}', 'unit:test_beginnings')
fault('whole keys go on', 'key/beginnings.c', 'return (prefix << (8 * behind - 1) | bytes) << 1 | (n <= *told ? WS_PACKED_WHOLE : 0);',
      'return (prefix << (8 * behind - 1) | bytes) << 1;', 'unit:test_beginnings',
      'Slower only: whole keys are told by their bytes, too.')
fault('keys that go on are whole', 'key/beginnings.c', 'return (prefix << (8 * behind - 1) | bytes) << 1 | (n <= *told ? WS_PACKED_WHOLE : 0);',
      'return (prefix << (8 * behind - 1) | bytes) << 1 | WS_PACKED_WHOLE;',
      'unit:test_random t:beginnings')
fault('whole keys, of letters that became strange', 'key/told.c',
      'if ((prefix & WS_PACKED_WHOLE) != 0 && spec->doubts == 0)', 'if ((prefix & WS_PACKED_WHOLE) != 0)',
      'unit:test_beginnings')
fault('packed text ends with a zero byte', 'key/told.c',
      'else if (ws_text_first(spec) && spec->ncols == 1 && !spec->cols[0].descending && (uint8) prefix == 0)',
      'if (ws_text_first(spec) && spec->ncols == 1 && !spec->cols[0].descending && (uint8) prefix == 0)',
      'unit:test_beginnings')
FILE = 'key/sample.c'
fault('all rows are tied that are in groups', FILE, 'share = Min(1, 2 * pairs * pairs / (3 * n * triples));', '{}',
      'unit:test_beginnings')
fault('codes of beginnings that leave all ties', FILE,
      'if (is_better(l, left, *tied))', 'if (left < l->n)', 'unit:test_dictionary', 'Slower only: prefixes are right all the same.')
fault('values that statistics do not know never fit', 'key/foretold.c', 'return distinct > 0 ? distinct <= room : seen <= room / 2;',
      'return distinct > 0 && distinct <= room;', 't:foretold')
fault('a share of the rows is no number of values', 'exec/frequent.c',
      'add_distinct(s, distinct < 0 ? -distinct * Max(analysed, 0) : distinct);', 'add_distinct(s, distinct);', 't:foretold')
fault('doubtful codes are kept where letters tell nothing', 'key/learn.c',
      'ws_dictionary_values(col->dictionary) > MANY_VALUES && ws_has_doubtful_codes(l, c))', 'false)', 't:foretold')
fault('all values fit', 'key/foretold.c', 'return distinct > 0 ? distinct <= room : seen <= room / 2;', 'return true;',
      't:foretold')
fault('late values end codes that fit', 'key/learn.c',
      '!ws_foretold_to_fit(l, column, values, ws_dictionary_most(d));', 'true;', 't:foretold')
fault('few values are never doubtful', 'key/learntext.c',
      'return values > 1 && !l->all && (values > LEAST_DOUBTFUL || l->late[column] * LATE_ONE_IN >= values) &&',
      'return values > LEAST_DOUBTFUL && !l->all &&', 't:foretold')
fault('few values are always doubtful', 'key/learntext.c',
      'return values > 1 && !l->all && (values > LEAST_DOUBTFUL || l->late[column] * LATE_ONE_IN >= values) &&',
      'return values > 1 && !l->all &&', 't:foretold',
      'Values that fit stay whatever the others: only tables that were not analysed lose codes.')
fault('a text of the same length has the key before', 'key/keyqueue.c', 'if ((i == 0 || n != b->length[i - 1] || memcmp(text, text - n, n) != 0) &&',
      'if ((i == 0 || n != b->length[i - 1]) &&', 'unit:test_keyqueue')
FILE = 'key/memo.c'
fault('a text of the same length is the one before', FILE, 'memcmp(memo->text, v, memo->text_bytes) == 0)', 'true)',
      'unit:test_memo')
fault('bytes of a shorter key are enough', FILE, 'if (memo->text_bytes == VARSIZE_ANY(v) && memo->wanted == n &&',
      'if (memo->text_bytes == VARSIZE_ANY(v) &&', 'unit:test_memo')
fault('bytes behind a strange text', FILE, 'VARSIZE_ANY(v) <= MEMO_TEXT && !(col->letters != NULL && col->letters->strange);',
      'VARSIZE_ANY(v) <= MEMO_TEXT;', 'unit:test_memo')
fault('columns behind are those of the row before', FILE, 'if (spec->ncols == 1 || length > n)', 'if (true)', 'unit:test_memo')
fault('a memo is never given up', FILE, 'memo->patience--;', '', 'unit:test_memo')
fault('a memo is soon given up', FILE, 'memo->patience = Min(memo->patience + WORTH, MOST_PATIENCE);', '', 'unit:test_memo')
FILE = 'key/sample.c'
fault('no value is foretold', 'key/foretold.c', 'if (number % 2 == 0)', 'if (true)', 't:foretold')
fault('entries keep imagined values', 'key/sample.c', 'l->entries[i] = !l->imagined && i % l->step == 0 ? l->sample[i / l->step] :',
      'l->entries[i] = i % l->step == 0 ? l->sample[i / l->step] :', 't:foretold')
fault('codes of beginnings are judged by the keys that they are made of', FILE, 'if (!others || hold_for_others(l, &pack))', '',
      't:beginnings')
fault('ranges that leave more ties than beginnings', FILE,
      'if (Min(by_beginnings, tied / WS_LEARN_FEWER) < by_ranges)', 'if (tied < by_ranges)', 'unit:test_dictionary',
      'Slower only: prefixes are right all the same.')
fault('ranges before guesses', FILE, 'if (spec->guess || (r = find_ranges(l)) == NULL)', 'if ((r = find_ranges(l)) == NULL)',
      'unit:test_dictionary t:libc', 'Few guesses come behind a column of fixed width that leaves ties.')
FILE = 'key/range.c'
fault('range begins at its middle', FILE, 'range->least -= Min(range->least, (span - range->span) / 2);', '{}',
      'unit:test_range')
fault('range goes beyond the last value', FILE,
      'range->least = Min(range->least, all_bits(col) - Min(span, all_bits(col)));', '{}', 'unit:test_range')
fault('codes of values that have no room behind a mark', FILE,
      '#define WIDEST\t\t\t12\t\t/* a mark and a value behind it have room in 128 bits */', '#define WIDEST 16',
      'unit:test_range')
fault('bytes compared of which a merge has none', 'merge/merge.c',
      'bool\t\tbytes = (told->what == WS_TOLD_IN_PART && told->reach > 0) || guesses;',
      'bool\t\tbytes = told->what == WS_TOLD_IN_PART || guesses;', 'sql:ranges')
fault('null below the range', FILE, 'range->null = col->nulls_first ? marks++ : range->above--;',
      'range->null = marks++;', 'unit:test_range')
fault('null among all values', FILE, 'range->null = col->nulls_first ? 0 : 1;', 'range->null = 0;', 'unit:test_range')
fault('range of a value too few', FILE, 'range->span = Max(range->span, value - range->least);',
      'range->span = Max(range->span, value - range->least - 1);', 'unit:test_range')
fault('range that moves down loses its end', FILE, 'range->span += range->least - value;', '{}', 'unit:test_range')
fault('mark of the range in place of one above', FILE, 'range->above = (1 << range->escape) - 1;',
      'range->above = (1 << range->escape) - 2;', 'unit:test_range')
fault('value of a range descends twice', FILE, '.invert = spec->cols[i].descending ? all_bits(&spec->cols[i]) : 0,',
      '.invert = 0,', 'unit:test_range')
fault('codes that are cut tell their column', FILE, 'if (bits > *left)', 'if (bits > *left + 8)', 'unit:test_range')
fault('value out of its range has few bits', FILE, 'bits = range->escape + range->whole;', '{}', 'unit:test_range')
fault('codes tell a null and a value', FILE,
      'told->reach += (col->notnull ? 0 : 1) + (mark == range->null ? 0 : col->width);',
      'told->reach += (col->notnull ? 0 : 1) + col->width;', 'unit:test_range sql:ranges')
fault('columns behind the prefix are in it', FILE, 'r->ncols = i;', '{}', 'unit:test_range',
      'Slower only: their codes are never reached.')
FILE = 'key/key.h'
fault('value below its range is above', FILE,
      'return (ws_uint128) (value < range->least ? range->below : range->above) << range->whole | value;',
      'return (ws_uint128) range->above << range->whole | value;', 'unit:test_range')
fault('cut prefixes are whole keys', FILE,
      'return spec->exact || !(spec->cut || spec->first_alone);', 'return spec->exact || !spec->first_alone;',
      'unit:test_range sql:ranges')
fault('prefixes of a first column alone are whole keys', FILE,
      'return spec->exact || !(spec->cut || spec->first_alone);', 'return spec->exact || !spec->cut;',
      'unit:test_key')
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
      'certain.to = ws_beginnings_prefix(spec->beginnings, bytes.at, 0, &same);', 'certain.to = certain.from;',
      't:alphabets t:beginnings t:libc')
fault('bytes behind codes from the front of the prefix', FILE, 'bytes.n = left / BITS_PER_BYTE;', 'bytes.n = WS_PREFIX_BYTES;',
      'unit:test_range')
fault('bits behind codes taken for bytes', FILE, 'prefix >>= left % BITS_PER_BYTE;', '{}', 'unit:test_range')
FILE = 'key/normalize.c'
fault('a null byte before a text that needs none', FILE, 'if (!col->notnull && !col->null_apart)', 'if (!col->notnull)',
      'unit:test_key')
fault('a text of bytes that need an escape', FILE, 'if (unlikely(!none_escaped(bytes, Min(n, w->end))))',
      'if (unlikely(!none_escaped(bytes, 0)))', 'unit:test_key')
fault('a text that ends in a prefix is told wholly', 'key/told.c',
      'else if (ws_text_first(spec) && spec->ncols == 1 && !spec->cols[0].descending && (uint8) prefix == 0)',
      'else if (ws_text_first(spec) && (uint8) prefix == 0)', 'unit:test_key')
FILE = 'key/prefix.c'
fault('codes are not said to be cut', FILE, 'spec->cut = true;\nreturn prefix << left | code >> (bits - left);',
      'return prefix << left | code >> (bits - left);', 'unit:test_range sql:ranges')
fault('bytes are not said to be cut', FILE, 'spec->cut |= n > told || spec->doubts > 0;',
      'spec->cut |= spec->doubts > 0;', 'unit:test_key')
fault('the code of a gap is told like that of a value', FILE, 'if (unlikely(!ws_code_is_exact((uint32) v)))',
      'if (false)', 'unit:test_dictionary')
fault('values behind codes are not said to be cut', FILE,
      'spec->cut = true;\nreturn prefix << left | v >> (bits - left);', 'return prefix << left | v >> (bits - left);',
      'unit:test_dictionary')
fault('columns behind a whole prefix of codes are not there', FILE, 'spec->cut |= i < spec->ncols;', '{}',
      'unit:test_dictionary')
fault('columns before the code of a gap are asked again', FILE,
      'return before << room | prefix_behind(spec, i, room, values, isnull);',
      'return (before & 0) << room | prefix_behind(spec, 0, WS_PREFIX_BYTES * BITS_PER_BYTE, values, isnull);',
      'unit:test_dictionary')
fault('letters that have no room in a prefix are not looked at', FILE, 'if (bytes >= most)', 'if (bytes > most)',
      't:letters')
fault('letters behind other columns are not looked at', FILE,
      'if (col->width == 0 || col->dictionary != NULL || ws_encoding_partial(col->encoding))\nreturn i + 1;', '{}',
      't:letters')
fault('learning leaves prefixes cut', 'key/sample.c', 'l->spec->cut = false;', '{}', 'unit:test_dictionary')
FILE = 'key/normalize.c'
fault('columns that are not looked at are not there', FILE,
      'return guessed && asked != NO_LENGTH ? WS_KEY_UNBOUNDED : w->pos + (i < spec->ncols);',
      'return guessed && asked != NO_LENGTH ? WS_KEY_UNBOUNDED : w->pos;', 'unit:test_key')
fault('prefixes of the same key differ when letters come into doubt', FILE,
      'return guessed && asked != NO_LENGTH ? WS_KEY_UNBOUNDED : w->pos + (i < spec->ncols);',
      'return guessed ? WS_KEY_UNBOUNDED : w->pos + (i < spec->ncols);', 'unit:test_keyqueue unit:test_random',
      'Rows that are equal may leave their order of arrival, which nobody has promised.')
fault('gap goes on', FILE, 'if (ws_code_is_exact(code))\nreturn true;', 'return true;',
      'unit:test_dictionary t:libc')


# --- bounds -----------------------------------------------------------------------

FILE = 'run/bound.c'
fault('peers of the limit passed over', FILE, 'b->first_out = ws_entry_make(complete ? last : last + 1, 0);',
      'b->first_out = ws_entry_make(last, 0);', 'unit:test_formation sql:limits')
fault('a guess taken for certain', FILE, 'ws_uint128	last = certain.to;',
      'ws_uint128	last = ws_entry_prefix(entry);', 'unit:test_formation sql:limits')
fault('a note stands for one more', FILE, 'b->noted[b->nnoted++] = (WsNoted) {entries[i], step};',
      'b->noted[b->nnoted++] = (WsNoted) {entries[i], step + 1};', 'unit:test_formation sql:limits')
fault('two notes at the place of the first', FILE, 'noted = (WsNoted) {b->noted[i + 1].entry, noted.n + b->noted[i + 1].n};',
      'noted = (WsNoted) {noted.entry, noted.n + b->noted[i + 1].n};', 'unit:test_formation sql:limits')
fault('entries cut before they are settled', FILE, 'if (settled)', 'if (true)', 'unit:test_formation sql:limits')
FILE = 'exec/node.c'
fault('a sort of fewer rows read again', FILE, '(wanted == 0 || wanted > sorted)))', 'false))',
      'sql:limits')
FILE = 'plan/finish.c'
fault('WITH TIES taken for a bound', FILE, '((Limit *) plan)->limitOption == LIMIT_OPTION_COUNT)', 'true)',
      'sql:limits')

# --- rows in order ----------------------------------------------------------------

FILE = 'sort/order.c'
fault('a row that is less follows', FILE,
      'return ws_key_compare(spec, 0, order->last, order->last_null, values, isnull) > 0;', 'return false;', 'unit:test_sort t:in_order')
fault('the last key stays the first', FILE, 'return !less && (!kept || remember(order, &sorter->account, values, isnull));',
      'return !less;', 'unit:test_sort t:in_order')
fault('the row that finds memory full is not looked at', 'sort/sorter.c',
      'if (unlikely(f->in_order && !in_order) && !ws_order_goes_on(sorter, values, isnull, true))', 'if (false)', 'unit:test_sort')
fault('all rows in order are learnt from', 'sort/learn.c', 'if (in_order && ended)', 'if (false)', 't:in_order')
fault('equal prefixes stay turned round', 'index/kernel.c', 'reverse(entries + from, to - from);', '{}', 'unit:test_kernel')
fault('a younger piece is written first', 'run/emit.c', 'if (q->n > 0 && !q->write && q->closed < p->closed)',
      'if (f->source != NULL && q->n > 0 && !q->write && q->closed < p->closed)', 'unit:test_sort')
fault('runs without prefixes are merged with others', FILE, 'f->nruns = 0;', '{}', 'unit:test_sort t:in_order')
fault('pieces are in order by what is no prefix', FILE,
      'ws_sort_entries(f->pieces[i]->entries, f->pieces[i]->n, f->vectorised);', '{}',
      reason='they came in order: only guesses that are wrong are in another')

fault('an alphabet that columns share is freed twice', 'key/learn.c', 'if (spec->cols[c].alphabet == alphabet)',
      'if (c == column)', 't:letters')

FILE = 'key/aside.c'
fault('nothing set aside', FILE, 'col->aside = true;', 'continue;', 't:aside')
fault('few long values count', FILE, '#define SOME			32', '#define SOME			2000', 't:aside',
      'Faster or slower only: what is set aside is compared.')
fault('set aside behind columns of few values', FILE,
      'return 2.0 * same * Max(l->expected, l->n) <= (double) l->n * l->n;', 'return true;', 't:aside',
      'Slower only.')
fault('rows looked at in steps of one pattern', FILE,
      'for (Size i = 0; i < l->n; i += 1 + murmurhash32((uint32) seen++) % (2 * step))',
      'for (Size i = 0; i < l->n; i += 1 + seen++ * 7919 % (2 * step))', 't:aside')
fault('values behind codes of beginnings read', 'key/prefix.c',
      'Size\t\tn = row_bytes(spec, values, isnull, ws_beginnings_reach(spec->beginnings), key);',
      'Size\t\tn = ws_key_bytes(spec, values, isnull, 0, ws_beginnings_reach(spec->beginnings), key);', 't:aside',
      'Slower only, of long values that are seldom.')
fault('codes of what is set aside', 'key/learn.c',
      'return ws_encoding_partial(col->encoding) && !col->dissimilar && !col->aside && !col->needless;',
      'return ws_encoding_partial(col->encoding) && !col->dissimilar && !col->needless;', 't:aside')
fault('null byte of a text that is set aside', FILE, 'col->null_apart = col->tells_null = false;', '', 't:aside')
fault('no comparator for what is set aside', FILE, 'spec->comparator = true;', '', 't:aside')
fault('values read for no byte', 'key/normalize.c', 'if (asked == NO_LENGTH && w->pos >= w->end)', 'if (false)', 't:aside')
fault('long keys of table rows', 'plan/tiestats.c', 'if (is_long(root, list_nth(input->pathtarget->exprs, i + 1)))',
      'if (false)', 't:aside')

fault('codes of beginnings for fewer prefixes', 'key/sample.c',
      'return left * WS_LEARN_FEWER <= tied || l->sampled - left >= (l->sampled - tied) * MUCH_SMALLER;',
      'return left * WS_LEARN_FEWER <= tied;', 'unit:test_beginnings')
fault('no memo of dear texts', 'key/learn.c', 'spec->memo = ws_memo_create(spec);', '{}', 'unit:test_dictionary')
FILE = 'key/letters.c'
fault('letters are looked at 64 at a time, once', FILE, 'for (Size i = 0; i < last && w->pos <= w->end; i += MARKED)',
      'for (Size i = 0; i < Min(last, MARKED) && w->pos <= w->end; i += MARKED)', 'unit:test_letters')
fault('weights lost where 64 letters end', FILE, 'uint64\t\tlast = m.backward << 1 | before.backward >> (MARKED - 1);',
      'uint64\t\tlast = m.backward << 1;', 'unit:test_letters')
fault('the last eight letters are not looked at', FILE,
      'bytes = n < sizeof(uint64) ? 0 : eight + plain_end(text + eight, i - eight) - i;',
      'bytes = n < sizeof(uint64) || plain_end(text + eight, i - eight) == 0 ? 0 : n - i;',
      'unit:test_letters')

FILE = 'key/keyqueue.c'
fault('keys that a helper made are not said to be cut', FILE, 'q->spec->cut |= met->cut || q->spec->doubts > 0;', '{}', 'unit:test_keyqueue')
fault('keys made by both', FILE, 'if (ws_helper_wait(q->helper, &b->chore) && !b->settled)',
      'if (ws_helper_wait(q->helper, &b->chore))', 'unit:test_random t:beginnings',
      'Entries may have moved by then; only where a helper lost its processor.')
fault('keys that a helper has begun are not made', FILE, 'else if (!b->settled)',
      'else if (!b->settled && ws_chore_is_idle(&b->chore))', 'unit:test_keyqueue')
fault('texts of letters are as those before', FILE,
      'if (i > 0 && b->length[i] == b->length[i - 1] && memcmp(copy, copy - b->length[i], b->length[i]) == 0)',
      'if (i > 0 && b->length[i] == b->length[i - 1])', 'unit:test_keyqueue')
FILE = 'key/keycopy.c'
fault('strange texts are copied', FILE,
      'if (col->letters != NULL && !isnull[att] &&\nws_letters_of(col->letters->table, col, values[att]) == WS_LETTERS_STRANGE)',
      'if (false)', 'unit:test_keyqueue',
      'The same keys, but a helper would write what the backend reads.')
fault('copies without their nulls', FILE, 'copy->nulls |= UINT64CONST(1) << i;', '{}', 'unit:test_keyqueue')
fault('copies one behind the other', FILE, 'end += MAXALIGN(n);', '{}', 'unit:test_keyqueue')
