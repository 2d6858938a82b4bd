"""One-line faults for test/mutants/run.

fault(name, file, old, new, tests, reason): `old` is a line of the file, without its blanks at
either end; where it is not the only one of its kind, with neighbours of it, which `new` then
repeats.  `tests` are tried first: unit:PROGRAM, sql:FILE, t:SCRIPT or t:SCRIPT/TEST, diff:SEEDS.
`reason` says why no test can notice the fault, and is left out where one does.
"""

from collections import namedtuple

Fault = namedtuple('Fault', 'name file old new tests reason')
FAULTS = []


def fault(name, file, old, new, tests='', reason=None):
    FAULTS.append(Fault(name, 'src/' + file, old, new, tests.split(), reason))


# --- what is compared, and what keys are called ---------------------------------

fault('codes of values that cannot be compared', 'key/keyspec.c',
      'return proc >= FirstNormalObjectId && category != TYPCATEGORY_STRING;', 'return false;', 'sql:errors')
fault('work tables without their union', 'exec/report.c',
      '*unions = lappend(*unions, castNode(RecursiveUnionState, (Node *) found)->ps.plan);', '{}', 't:stat/max_temp')

# --- key/fixed.h: each encoding of fixed width --------------------------------

FILE = 'key/fixed.h'
fault('float8 -0 kept', FILE, 'f = 0;					/* -0 is equal to +0 */', 'f = copysign(0, f);',
      'unit:test_key')
fault('float4 -0 kept', FILE, 'f = 0;', 'f = copysignf(0, f);', 'unit:test_key')
fault('float8 NaN smallest', FILE, 'return ~UINT64CONST(0);', 'return UINT64CONST(0);', 'unit:test_key')
fault('float4 NaN smallest', FILE, 'return ~(uint32) 0;', 'return 0;', 'unit:test_key')
fault('float8 negatives', FILE, 'return (bits & SIGN_64) ? ~bits : bits | SIGN_64;',
      'return (bits & SIGN_64) ? bits ^ SIGN_64 : bits | SIGN_64;', 'unit:test_key')
fault('float4 negatives', FILE, 'return (bits & SIGN_32) ? ~bits : bits | SIGN_32;',
      'return bits ^ 0x80000000;', 'unit:test_key')
fault('interval months of 31 days', FILE,
      'int64		days = span->month * INT64CONST(30) + span->day;',
      'int64		days = span->month * INT64CONST(31) + span->day;', 'unit:test_key')
fault('interval sign', FILE,
      'return (ws_uint128) days * USECS_PER_DAY + (ws_uint128) span->time + SIGN_80;',
      'return (ws_uint128) days * USECS_PER_DAY + (ws_uint128) span->time;', 'unit:test_key')
fault('bool turned round', FILE, 'return DatumGetBool(value) ? 1 : 0;',
      'return DatumGetBool(value) ? 0 : 1;', 'unit:test_key')
fault('char signed', FILE, 'return (uint8) DatumGetChar(value);',
      'return (uint8) (DatumGetChar(value) ^ 0x80);', 'unit:test_key')
fault('int2 sign', FILE, 'return (uint16) (DatumGetInt16(value) ^ 0x8000);',
      'return (uint16) DatumGetInt16(value);', 'unit:test_key')
fault('int4 sign', FILE, 'return (uint32) DatumGetInt32(value) ^ 0x80000000;',
      'return (uint32) DatumGetInt32(value);', 'unit:test_key')
fault('int8 sign', FILE, 'return (uint64) DatumGetInt64(value) ^ SIGN_64;',
      'return (uint64) DatumGetInt64(value);', 'unit:test_key')
fault('oid signed', FILE, 'return DatumGetUInt32(value);', 'return DatumGetUInt32(value) ^ 0x80000000;',
      'unit:test_key')
fault('xid8 signed', FILE, 'return DatumGetUInt64(value);', 'return DatumGetUInt64(value) ^ SIGN_64;',
      'unit:test_key')
fault('uuid little-endian', FILE,
      'bits = ((ws_uint128) pg_hton64(half[0]) << 64) | pg_hton64(half[1]);',
      'bits = ((ws_uint128) half[0] << 64) | half[1];', 'unit:test_key')
fault('macaddr shifted', FILE, 'return bits >> (128 - 8 * col->width);',
      'return bits >> (127 - 8 * col->width);', 'unit:test_key')
fault('timetz zone subtracted', FILE,
      'uint64		utc = (uint64) (t->time + t->zone * USECS_PER_SEC) ^ SIGN_64;',
      'uint64		utc = (uint64) (t->time - t->zone * USECS_PER_SEC) ^ SIGN_64;', 'unit:test_key')
fault('timetz zone sign', FILE,
      'return ((ws_uint128) utc << 32) | ((uint32) t->zone ^ 0x80000000);',
      'return ((ws_uint128) utc << 32) | (uint32) t->zone;', 'unit:test_key')
fault('tid block over offset', FILE,
      'return ((uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16) |',
      'return ((uint64) ItemPointerGetBlockNumberNoCheck(tid) << 4) |', 'unit:test_key')

# --- key/letters.c, lettertable.c: text whose letters tell its order -------------

FILE = 'key/letters.c'
fault('cases from the end', FILE, 'uint8\t\tbit = 0x80 >> place % BITS_PER_BYTE;', 'uint8\t\tbit = 1 << place % BITS_PER_BYTE;', 'unit:test_letters')
fault('no weight lost', FILE, 'skipped++;', '{}', 'unit:test_letters')
fault('ignored letters sooner', FILE, 'add_byte(w, (uint8) (places + 1));',
      'add_byte(w, (uint8) (MORE_PLACES - places));', 'unit:test_letters')
fault('punctuation behind is less', FILE, 'add_byte(w, BEHIND_ALL);', 'add_byte(w, NO_MORE - 1);',
      'unit:test_letters')
fault('accents of no weight', 'key/lettertable.c', 'compare_level(w, plain, ACCENTS) > 0;',
      'compare_level(w, plain, ACCENTS) >= 0;', 'unit:test_letters')
fault('a strange text is not noted', FILE, 'l->strange = l->spec->guess = true;', 'l->spec->guess = true;',
      'unit:test_random')

# --- key/normalize.c: strings and the rest -------------------------------------

FILE = 'key/normalize.c'
fault('numeric weight of no class', 'key/numeric.c', 'if (likely(abs(weight) <= MOST_WEIGHT))',
      'if (likely(abs(weight) <= MOST_WEIGHT + 1))', 'unit:test_key')
fault('numeric goes on', 'key/numeric.c',
      'return (uint16) (word_at(parts->digits + d * sizeof(uint16)) * 2 + (d + 1 < parts->ndigits));',
      'return (uint16) (word_at(parts->digits + d * sizeof(uint16)) * 2 + (d + 2 < parts->ndigits));',
      'unit:test_key')
fault('numeric zeros in front', 'key/numeric.c',
      'for (; parts.ndigits > 0 && unlikely(word_at(parts.digits) == 0); parts.ndigits--, weight--)',
      'for (; parts.ndigits > 0 && unlikely(word_at(parts.digits) == 0); parts.ndigits--)', 'unit:test_key')
fault('numeric, negative and inverted', 'key/numeric.c', 'bool\t\tinvert = parts->negative != descending;',
      'bool\t\tinvert = parts->negative || descending;', 'unit:test_key')
fault('columns behind a numeric', 'key/prefix.c', 'return window_prefix(window) >> (before * BITS_PER_BYTE);',
      'return window_prefix(window) >> ((before - 1) * BITS_PER_BYTE);', 'unit:test_key')
fault('numeric end of a negative', 'key/numeric.c', 'last = (class < CLASS_ZERO) ^ (invert & 1);',
      'last = invert & 1;', 'unit:test_key')
fault('null byte turned round', 'key/key.h', 'return isnull != col->nulls_first;',
      'return isnull == col->nulls_first;', 'unit:test_key')
fault('null apart turned round', 'key/key.h', 'return col->nulls_first ? 0 : 0xFF;',
      'return col->nulls_first ? 0xFF : 0;', 'unit:test_key')
fault('DESC inverts too little', 'key/prefix.c',
      'return col->descending ? v ^ ~(ws_uint128) 0 >> (128 - col->width * BITS_PER_BYTE) : v;',
      'return col->descending ? v ^ ~(ws_uint128) 0 >> (129 - col->width * BITS_PER_BYTE) : v;', 'unit:test_key')
fault('exact key at the right', 'key/prefix.c', 'return prefix << (8 * (WS_PREFIX_BYTES - spec->exact_bytes));',
      'return prefix;', 'unit:test_key sql:keys')
fault('long DESC not inverted', FILE, 'word ^= eight_times(invert);', '{}',
      'unit:test_key')
fault('window ends early', FILE, 'return w->pos > w->end;', 'return w->pos >= w->end;', 'unit:test_key')
fault('bytea escape missing', FILE, 'put_byte(w, 0xFF ^ invert);', 'put_byte(w, invert);', 'unit:test_key')
fault('text escapes one too few', FILE, 'if (bytes[i] <= WS_LAST_ESCAPED)', 'if (bytes[i] < WS_LAST_ESCAPED)',
      'unit:test_key')
fault('text terminators turned round', FILE, 'put_byte(w, (invert & ~1) + second);',
      'put_byte(w, (invert & ~1) + !second);', 'unit:test_key')
fault('text terminator missing', FILE, 'put_bytes(w, bytes, n, invert);\nput_byte(w, invert);',
      'put_bytes(w, bytes, n, invert);', 'unit:test_key')
fault('bpchar keeps a blank', FILE, "while (n > 0 && bytes[n - 1] == ' ')", "while (n > 1 && bytes[n - 1] == ' ')",
      'unit:test_key')
fault('bit length missing', FILE,
      'put_byte(w, (uint8) (bytes > 0 ? bits - BITS_PER_BYTE * (bytes - 1) : 0) ^ invert);',
      'put_byte(w, (uint8) (bytes > 0 ? 8 : 0) ^ invert);', 'unit:test_key')
fault('inet mask a bit longer', FILE,
      'uint8		mask = i == network ? 0xFF00 >> (inet->bits % BITS_PER_BYTE) : 0;',
      'uint8		mask = i == network ? 0x1FF00 >> (1 + inet->bits % BITS_PER_BYTE) : 0;', 'unit:test_key')
fault('inet bits missing', FILE, 'put_byte(w, inet->bits ^ invert);', 'put_byte(w, invert);', 'unit:test_key')
FILE = 'key/told.c'
fault('inet end off by one', FILE,
      'return pos + 1 + ws_inet_address_bytes(family) - ws_inet_network_bytes(family, bytes->at[pos] ^ invert);',
      'return pos + ws_inet_address_bytes(family) - ws_inet_network_bytes(family, bytes->at[pos] ^ invert);',
      'unit:test_key')
fault('bytea complete too early', FILE, 'if (encoding != WS_ENC_BYTEA && encoding != WS_ENC_BIT)',
      'if (encoding != WS_ENC_BIT)', 'unit:test_key')
fault('bit complete too early', FILE, 'return encoding == WS_ENC_BIT ? pos + 1 : pos;', 'return pos;',
      'unit:test_key')
fault('key complete off by one', FILE, 'if (pos > bytes.n)', 'if (pos > bytes.n + 1)',
      'unit:test_key')
fault('escape not passed over', FILE, 'pos += (byte ^ invert) == WS_LAST_ESCAPED;',
      'pos += (byte ^ invert) > WS_LAST_ESCAPED + 255;', 'unit:test_key')
FILE = 'key/normalize.c'
fault('null tells of the next', FILE, 'told = col->tells_null && !isnull[att];', 'told = col->tells_null;',
      'unit:test_key')

# --- the rest of key ----------------------------------------------------------

FILE = 'key/decode.c'
fault('decode nulls', FILE, 'isnull[att] = (uint8) (prefix >> left) == ws_null_byte(col, true);',
      'isnull[att] = (uint8) (prefix >> left) == ws_null_byte(col, false);', 'unit:test_key sql:keys')
fault('decode DESC', FILE, '((uint64) (prefix >> left) ^ (col->descending ? mask : 0)) & mask);',
      '(uint64) (prefix >> left) & mask);', 'unit:test_key sql:keys')
fault('decode int2 sign', FILE, 'return Int16GetDatum((int16) (bits ^ 0x8000));',
      'return Int16GetDatum((int16) bits);', 'unit:test_key sql:keys')
fault('decode oid unsigned', FILE, 'return Int32GetDatum((int32) (uint32) bits);',
      'return UInt32GetDatum((uint32) bits);', 'sql:keys',
      'all but datum_image_eq take 32 bits of it; that serves Memoize, which would keep a value twice')
FILE = 'key/fetch.c'
fault('nulls at fixed places', FILE, '!HeapTupleHasNulls(tuple) &&', '', 'sql:executor')
fault('missing columns at fixed places', FILE,
      'HeapTupleHeaderGetNatts(tuple->t_data) >= f->spec->last_attno)',
      'HeapTupleHeaderGetNatts(tuple->t_data) > 0)', 'sql:executor')
fault('fixed places not aligned', FILE, 'offset = (int) att_align_nominal(offset, att->attalign);', '',
      'sql:multi')
FILE = 'key/encoding.c'
fault('oid as int4', FILE, 'FIXED(WS_ENC_UINT4, 4);', 'FIXED(WS_ENC_INT4, 4);', 'sql:types sql:keys')
fault('any collation is C', FILE, 'return ws_collation_is_bytes(collation) ? WS_ENC_TEXT : WS_ENC_NONE;',
      'return WS_ENC_TEXT;', 'sql:types sql:multi')
fault('null byte not counted', FILE, 'all->bytes += width + (notnull ? 0 : 1);', 'all->bytes += width;',
      'sql:keys')
fault('exact keys too long', 'key/key.h', 'return all->fixed && all->bytes <= WS_PREFIX_BYTES;',
      'return all->fixed && all->bytes <= WS_PREFIX_BYTES + 1;', 'sql:edges')
FILE = 'key/keyqueue.c'
fault('queued key DESC', FILE, 'prefix |= (ws_uint128) (col->descending ? ~key : key) << (ws_first_bits(col) - 64);',
      'prefix |= (ws_uint128) key << (ws_first_bits(col) - 64);', 'unit:test_keyqueue')
fault('queued null byte', FILE,
      'ws_uint128	prefix = ws_first_null(col, false);', 'ws_uint128	prefix = ws_first_null(col, true);',
      'sql:threads sql:types')
fault('last queued keys missing', FILE, 'make_block(b, &q->own, made, &met);', 'memset(made, 0, sizeof(made));',
      'sql:threads sql:types')
fault('compressed text queued', FILE, 'if (VARATT_IS_EXTERNAL(text) || VARATT_IS_COMPRESSED(text))',
      'if (VARATT_IS_EXTERNAL(text))', 'sql:threads sql:types')
fault('queued block overfull', FILE,
      'if (!ws_chore_is_idle(&b->chore) || b->rows == ROWS || b->used + n > ROOM)',
      'if (!ws_chore_is_idle(&b->chore) || b->rows == ROWS || b->used > ROOM)', 'unit:test_keyqueue sql:edges')
fault('text for a block handed over', FILE,
      'if (!ws_chore_is_idle(&b->chore) || b->rows == ROWS || b->used + n > ROOM)',
      'if (b->rows == ROWS || b->used + n > ROOM)', 'unit:test_keyqueue')

# --- run ------------------------------------------------------------------------

FILE = 'run/runblock.h'
fault('block checksum not verified', FILE, 'if (b->crc != ws_block_crc(b))', 'if (b->crc == 0)',
      'unit:test_runfile t:damage')
fault('block of another place', FILE, 'if (b->run != run || b->block != block)', 'if (b->run != run)',
      'unit:test_runfile')
fault('header checksum not verified', FILE, 'if (h->crc != ws_run_header_crc(h))', 'if (h->crc == 0)',
      'unit:test_runfile')
fault('last block too long', FILE,
      'return sizeof(WsBlockHeader) + Min(capacity, nentries - before) * sizeof(WsEntry);',
      'return sizeof(WsBlockHeader) + Min(capacity, nentries - before + 1) * sizeof(WsEntry);',
      'unit:test_runfile')
FILE = 'run/runfile.c'
fault('run shorter than its blocks', FILE, 'uint64		blocks = (nentries + capacity - 1) / capacity;',
      'uint64		blocks = nentries / capacity;', 'sql:merge')
fault('another block of a run named', FILE, 'r->asked = block;', 'r->asked = block + 1;', 't:damage')
fault('the header of a run named a block', FILE, 'if (r->asked < 0)', 'if (r->asked < -1)', 't:damage')
fault("helper's write error dropped", FILE, 'if (w->error != 0)', 'if (w->error < 0)', 't:limits/no_space')
fault('no place is taken again', FILE, 'for (; i < home->level[level].nlive && live[i].begin - begin < bytes; i++)',
      'for (; i < home->level[level].nlive; i++)', 't:in_order')
fault('last block unknown', FILE,
      'return (r->loaded + 1) * ws_block_capacity(r->run.block_size) >= r->run.nentries;',
      'return (r->loaded + 2) * ws_block_capacity(r->run.block_size) >= r->run.nentries;', 'sql:merge')
FILE = 'run/formation.c'
fault('a block written from twice', FILE, 'if (f->pieces[i]->write)', 'if (f->pieces[i]->write && f->pieces[i] == p)',
      'unit:test_formation')
fault('a piece skipped where memory ends', FILE,
      'int			next = f->current + 1 < f->npieces ? f->current + 1 : 0;',
      'int			next = (f->current + 1) % f->npieces;', 'unit:test_formation')
fault('pieces left behind', FILE,
      'f->pieces[i]->entries = f->map->entries + (f->pieces[i]->entries - before);', '{}', 'sql:threads')
fault('whole of two pieces', FILE, 'whole &= f->current > 0 && !f->in_order;',
      'whole &= f->current > 1 && !f->in_order;', 'sql:cursors')
fault('memory of ties forgotten', FILE,
      'capacity = bytes / (sizeof(WsEntry) + ws_ties_bytes_per_entry(f->spec));',
      'capacity = bytes / sizeof(WsEntry);', 't:accounting')

# --- merge ----------------------------------------------------------------------

FILE = 'merge/losertree.c'
fault('ties turned round', FILE, 'return cmp != 0 ? cmp < 0 : ws_entry_int(a.entry) < ws_entry_int(b.entry);',
      'return cmp != 0 ? cmp > 0 : ws_entry_int(a.entry) < ws_entry_int(b.entry);', 'unit:test_losertree')
fault('first matches turned round', FILE, 'if (before(tree, right, left))',
      'if (before(tree, left, right))', 'unit:test_losertree')
fault('source not exchanged', FILE, 'champion.source ^= src;', '(void) src;', 'unit:test_losertree')
fault('end of a source is a row', FILE,
      'if (ws_entry_pointer(a.entry) != WS_POINTER_MASK && ws_entry_pointer(b.entry) != WS_POINTER_MASK)',
      'if (ws_entry_pointer(a.entry) != WS_POINTER_MASK && ws_entry_pointer(b.entry) != 0)', 'sql:edges')
FILE = 'merge/gather.c'
fault('bound is the greatest', FILE, 'bound = Min(bound, ws_entry_int(s->end[-1]));',
      'bound = Max(bound, ws_entry_int(s->end[-1]));', 'sql:merge')
fault('bound left out', FILE, 'if (ws_entry_int(entries[low + half]) <= bound)',
      'if (ws_entry_int(entries[low + half]) < bound)', 'sql:merge')
fault('gathers ties', FILE,
      'if (!merge->whole || merge->nsources < 2 || !vectorised || 2 * need > room)',
      'if (merge->nsources < 2 || !vectorised || 2 * need > room)', 'sql:edges')
fault('two merged from the wrong end', FILE,
      'int			last = ws_entry_int(bend[-1]) < ws_entry_int(aend[-1]);',
      'int			last = ws_entry_int(bend[-1]) > ws_entry_int(aend[-1]);', 'sql:merge')
FILE = 'merge/merge.c'
fault('tied beyond the window', FILE, 'if (cmp == 0 && !(bytes && x->complete))', 'if (cmp == 0 && !bytes)',
      'sql:merge')
fault('merge by a guess not verified', FILE,
      'right = ws_key_compare(merge->spec, certain.columns, slots[1 - current]->values,\n'
      'slots[1 - current]->isnull, slots[current]->values,\nslots[current]->isnull) <= 0;',
      'right = true;', 't:alphabets')
fault('entries ahead taken for equal', FILE,
      'if (compare_tied(merge, told_of(merge, winner), winner, tied, last[-1], &merge->ahead) != 0)',
      'if (compare_tied(merge, told_of(merge, winner), winner, tied, last[-1], &merge->ahead) > 99)',
      'unit:test_sort sql:multi')
fault('one entry ahead too many', FILE, 'source->equal = last - source->next;',
      'source->equal = last - source->next + 1;', 'unit:test_sort sql:multi')
fault('guesses left in merges', FILE, 'merge->wipes = wipes;', 'merge->wipes = false;',
      'unit:test_sort unit:test_passes t:libc')
fault('same prefix is same key', FILE,
      'return told_of(merge, next)->what == WS_TOLD_ALL || equal_ahead(merge, winner);',
      'return winner.lo != next.lo;', 'sql:merge')
fault('errors of runs dropped', FILE, 'ws_run_read_raise(&merge->sources[i].reader);', '{}', 't:damage')
fault('blocks read not counted', FILE, 'ws_reader_count(merge->reader);', '{}', 'sql:edges')
FILE = 'merge/passes.c'
fault('merges of runs that are no neighbours', FILE, 'return (x->arrival < y->arrival) - (x->arrival > y->arrival);',
      'return (x->number < y->number) - (x->number > y->number);', 'unit:test_passes')
fault('one run too many', FILE, 'while (f->nruns > f->fan_in && ws_formation_count_chains(f, -1) > f->fan_in)',
      'while (f->nruns > f->fan_in + 8 && ws_formation_count_chains(f, -1) > f->fan_in + 8)',
      't:accounting sql:merge')
fault('merged into the same level', FILE,
      'run = write_merged(p, merge_runs(p, n, false), level + 1);',
      'run = write_merged(p, merge_runs(p, n, false), level);', 'sql:edges')
FILE = 'merge/stream.c'
fault('run read past its block', FILE, 'n = Min(Min(n - first, max - done), stream->count - stream->taken);',
      'n = Min(Min(n, max - done), stream->count - stream->taken);',
      'sql:cursors')
fault('entries released too early', FILE, 'ws_region_release(region, stream->taken * sizeof(WsEntry));',
      'ws_region_release(region, (stream->taken + 4096) * sizeof(WsEntry));', 'sql:heap')
fault("one run's errors dropped", FILE, 'ws_run_read_raise(&r->reader);', '{}', 't:damage')

# --- store: the spool -----------------------------------------------------------

FILE = 'store/row.h'
fault('length loses a bit', FILE, 'return (uint16) ((length & 0x3F) << 4 | (length & 0x3C0) << 6);',
      'return (uint16) ((length & 0x3F) << 4 | (length & 0x380) << 6);', 'sql:executor')
fault('copy leaves a gap', FILE, 'for (Size i = 0; i + 32 < n; i += 32)',
      'for (Size i = 0; i + 64 < n; i += 32)', 'sql:executor')
FILE = 'store/spool.c'
fault('visibility bits kept', FILE, 'mask = (mask & MASK_KEEP) | length_in_mask(stored);',
      'mask = mask | length_in_mask(stored);', 'sql:executor')
fault('row of 8191 bytes without its length', FILE,
      'Size		escape = length >= LENGTH_ESCAPE ? sizeof(uint64) : 0;',
      'Size		escape = length > LENGTH_ESCAPE ? sizeof(uint64) : 0;', 'sql:edges')
fault('null in the last column', FILE, 'for (int i = 0; i < desc->natts && !hasnull; i++)',
      'for (int i = 0; i < desc->natts - 1 && !hasnull; i++)', 'sql:executor')
fault('TOAST pointer as a value', FILE,
      'else if (column->length != -1 || VARATT_IS_EXTERNAL(value))', 'else if (column->length != -1)',
      'sql:edges')
fault('buffer filled while it is written', FILE, 'await_write(spool, &spool->writes[next]);', '(void) next;',
      'sql:threads')
fault('end of the spool not charged', FILE, 'ws_file_charge(spool->files, spool->file);', '{}',
      'sql:edges')
FILE = 'store/spoolread.c'
fault('row beyond the end', FILE, 'room < 0 || length > (uint64) room))', 'length > PG_UINT32_MAX))',
      't:damage')
fault('column too many', FILE, 'if (unlikely(natts > spool->desc->natts || hoff < expected ||',
      'if (unlikely(hoff < expected ||', 't:damage')
fault('copies beyond the arena', FILE, 'used + MAXALIGN(length[i]) > room)', 'used > room)', 'sql:threads')
FILE = 'store/window.c'
fault('seek backward ignored', FILE,
      'if (position < window->first || position > window->first + window->filled)',
      'if (position > window->first + window->filled)', 'sql:cursors')
FILE = 'store/ahead.c'
fault('copies of the batch before', FILE, 'b->ncopied = 0;', '{}', 'sql:threads')
fault('copying not waited for', FILE, 'if (pg_atomic_exchange_u32(&b->owner, BACKEND) == HELPER)',
      'if (pg_atomic_exchange_u32(&b->owner, BACKEND) == BACKEND)', 'sql:threads')
fault("reader's fault dropped", FILE, 'if (b->fault != NULL)', 'if (b->fault != NULL && b->npointers == 0)', 't:damage')
FILE = 'store/keys.c'
fault('keys seek backward', FILE, 'if (position < k->first || position > k->first + k->current->n)',
      'if (position > k->first + k->current->n)', 'sql:keys')
fault("key rows' errors dropped", FILE, 'ws_stream_raise(k->stream);', '{}', 't:damage')

# --- store: the heap ------------------------------------------------------------

FILE = 'store/heap_fetch.c'
fault('composite bit left', FILE, '((HeapTupleHeader) to)->t_infomask &= ~HEAP_XMAX_COMMITTED;', '',
      'sql:heap',
      'htup_details.h: no row in a page has both bits.  And in a damaged one ExecStoreHeapTuple '
      'takes the bytes where t_ctid was for a version only in blocks from 32 TB on (store/heap_fetch.c)')
fault('dead line pointer is a row', 'store/heap.h',
      'if (lp.lp_flags != LP_NORMAL || lp.lp_len < SizeofHeapTupleHeader ||',
      'if (lp.lp_len < SizeofHeapTupleHeader ||', 't:heap/damage')
fault('line pointer behind the last', 'store/heap.h',
      'SizeOfPageHeaderData + offset * sizeof(ItemIdData) > header->pd_lower)',
      'SizeOfPageHeaderData > header->pd_lower)', 't:heap/damage')
fault('missing row passed by', FILE, 'if (unlikely(done < end))', 'if (unlikely(done > end))',
      't:heap/damage')
fault('blocks left are lost', FILE, 'h->nblocks = left;', 'h->nblocks = 0;', 'sql:heap t:heap/busy_few')
FILE = 'store/heap_direct.c'
fault('buffers not looked up', FILE, 'b->buffer = lookup(d, b->block, hash[i]);',
      'b->buffer = hash[i] == 0 ? lookup(d, b->block, hash[i]) : -1;', 'sql:heap t:heap/busy_dirty')
fault('mapping locks not taken', FILE, 'd->held[partition / 64] |= UINT64CONST(1) << partition % 64;',
      'd->held[partition / 64] |= UINT64CONST(0) << partition % 64;', 't:heap/busy_few t:heap/busy_dirty')
fault('buffer not valid yet', FILE, 'if (!ws_buffer_is_valid(desc) || !ws_buffer_try_share(desc))',
      'if (!ws_buffer_try_share(desc))',
      't:heap/busy_few',
      'looked at again under the content lock; the mapping lock keeps the buffer valid in between')
fault('checksums not verified', FILE, 'if (copied && ws_page_is_verified(d->page, block))', 'if (copied)',
      't:heap/damage')
fault('unverified block trusted', FILE, 'else if (b->page != NULL && !trusted(d, b->block))',
      'else if (b->page == NULL && !trusted(d, b->block))', 't:heap/damage')
fault('temporary table read directly', FILE,
      'return rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP || ws_direct_io() ||', 'return ws_direct_io() ||',
      'sql:heap')
FILE = 'store/heap.c'
fault('heap seek backward', FILE, 'if (position < h->first || position > h->first + h->rows)',
      'if (position > h->first + h->rows)', 'sql:heap')
fault('pointers of missing rows overwritten', FILE,
      'else if (!h->sides[0].missing && !h->sides[1].missing)', 'else', 'sql:heap t:heap/figures')
FILE = 'store/heapstore.c'
fault('spool of the heap not counted', FILE, 'h->store.in_memory = h->spool->in_memory;', '',
      't:accounting sql:heap')
fault('TIDs continue elsewhere', FILE, 'pointers->ops->seek(pointers, position);', '', 'sql:heap')
fault('keys spooled late as if all were', FILE, 'return h->keys != NULL ? pointer | WS_TIE_SPOOLED : pointer;',
      'return pointer;', 'sql:heap_ties')
FILE = 'store/heap_keys.c'
fault('keys of other columns', FILE, 'AttrNumber	column = k->columns[i];',
      'AttrNumber	column = k->spec->cols[i].attno;', 'sql:heap_ties')
fault('keys left in the copy', FILE, '*value = PointerGetDatum(to);', '', 'sql:heap_ties')
fault('comparator has the last value', FILE, 'return datumCopy(value, false, att->attlen);', 'return value;',
      'sql:heap_ties')
fault('spooled key of another row', FILE,
      'k->spooled->fetch(k->spooled->store, pointer & ~WS_TIE_SPOOLED, slot->spooled);',
      'if (slot->spooled->pointer == WS_POINTER_MASK)'
      ' k->spooled->fetch(k->spooled->store, pointer & ~WS_TIE_SPOOLED, slot->spooled);', 'sql:heap_ties')
FILE = 'plan/ties.c'
fault('beginnings in common count', FILE, 'common = (double) alike(&col->bounds[0], &col->bounds[parts]);',
      'common = 0;', 'unit:test_tied')
fault('ties of pairs counted once', FILE, 'double		share = col->unique > 0 ? 2 * (1 - col->unique) : 1;',
      'double		share = col->unique > 0 ? 1 - col->unique : 1;', 'unit:test_tied')

# --- file -----------------------------------------------------------------------

FILE = 'file/tempfile.c'
fault('limit of 0 is no limit', FILE, 'if (temp_file_limit >= 0)', 'if (temp_file_limit > 0)', 'sql:edges',
      'what the backend writes itself meets the limit later, at the end at the latest')
fault('errno dropped', FILE, 'ws_tempfile_write_failed(const WsTempFile *tf, int error)\n{\nerrno = error;',
      'ws_tempfile_write_failed(const WsTempFile *tf, int error)\n{\n(void) error;', 't:limits/no_space')
fault('end of a file is a read error', FILE, 'if (error == WS_SHORT_FILE)', 'if (error == WS_SHORT_FILE - 1)',
      't:damage')
fault("helpers' descriptor left open", FILE, 'close_descriptor(&m->tf.raw);', '{}', 't:faults')
fault('direct descriptor left open', FILE, 'close_descriptor(&m->tf.direct);', '{}', 't:faults')
fault('an error of reading is no error', FILE, 'return done < 0 ? errno : WS_SHORT_FILE;', 'return 0;', 't:faults')
fault('mapping not announced', FILE, 'ws_sigbus_register(&m->mapping);', '', 't:damage')
fault('charge forgotten', FILE, 'ws_tempfile_write(tf, "", 1, offset + bytes - 1);', '',
      't:limits sql:threads',
      'what the backend writes behind it is charged with all before it: only the last run escapes')
FILE = 'file/fileset.c'
fault('one file counted', FILE, 'bytes += set->files[i]->members[j] != NULL ? set->files[i]->members[j]->size : 0;',
      'bytes = set->files[i]->members[j] != NULL ? set->files[i]->members[j]->size : 0;', 't:stripe/accounting')
fault('the first member has every error', FILE, 'int			number = abs(*error) >> MEMBER_SHIFT;',
      'int			number = 0;', 't:stripe/damage')
fault('blocks in two members', FILE, 'stripe->extent = Max(stripe->extent / (int64) unit, 1) * (int64) unit;', '{}',
      reason='such reads are done in two parts: it costs time, and changes nothing else')
fault('members that no helper may use', FILE, 'ws_tempfile_require_helpers(tf);', '{}', 't:stripe/same_rows')
fault('a stretch in two members is taken for one', FILE,
      'if (part.bytes != bytes || tf == NULL || tf->direct < 0)', 'if (tf == NULL || tf->direct < 0)',
      't:stripe/same_rows')
FILE = 'file/stripe.c'
fault('an extent too short', FILE, 'part.bytes = Min(bytes, (Size) (s->extent - inside));',
      'part.bytes = Min(bytes, (Size) s->extent);', 'unit:test_stripe unit:test_aio')
fault('the open extent is not counted', FILE, 'length += size % s->extent;', '{}', 'unit:test_stripe')
FILE = 'file/spaces.c'
fault('any tablespace', FILE, 'while (before < n && turns[before] != space)', 'while (false)', 't:stripe/shares')
FILE = 'file/extents.c'
fault('a fault in the first member', FILE,
      'return x->members[part.member]->name;',
      'return x->members[0]->name;', 't:stripe/damage')
FILE = 'file/writer.c'
fault("spool's write error dropped", FILE, 'if (ws_helper_wait(h, &w->chore) && w->error != 0)',
      'if (ws_helper_wait(h, &w->chore) && w->error < 0)', 't:limits/no_space')
FILE = 'file/reader.c'
fault('blocks counted twice', FILE, 'uint64		bytes = pg_atomic_exchange_u64(&reader->bytes, 0);',
      'uint64		bytes = pg_atomic_read_u64(&reader->bytes);', 'sql:edges')

# --- os -------------------------------------------------------------------------

FILE = 'os/region.c'
fault('memory given back still counted', FILE, 'ws_account_subtract(region->account, before - after);', '{}',
      't:accounting sql:explain')
fault('region as long as before', FILE, 'region->reserved = grown;', '', 'sql:merge')
FILE = 'os/helper.c'
fault('helper without SIGBUS', FILE, 'sigdelset(&block, SIGBUS);', '', 't:damage')
fault('chore never done', FILE,
      '/* the lock and this make what the chore wrote visible */\n'
      'pg_atomic_write_u32(&chore->state, WS_CHORE_DONE);', '', 'sql:threads')
fault('a chore done twice at a time', FILE,
      'while (!h->busy && pg_atomic_read_u32(&chore->state) == WS_CHORE_QUEUED && !h->head->lengthy)',
      'while (pg_atomic_read_u32(&chore->state) == WS_CHORE_QUEUED)', 'unit:test_formation sql:threads')
fault('threads not given back', FILE, 'h->running = false;\nws_thread_give_back();', 'h->running = false;',
      'sql:edges')
FILE = 'os/sigbus.c'
fault('locks kept at a fault', FILE, 'LWLockReleaseAll();', '', 't:heap/damage',
      'the abort releases them: without this, others wait while the client is told')
fault('second fault kills', FILE, 'act.sa_flags = SA_SIGINFO | SA_NODEFER;', 'act.sa_flags = SA_SIGINFO;',
      't:damage')
FILE = 'os/memory.c'
fault('memory of the machine in bytes', FILE, 'take_least(found, machine * 1024, WS_BOUND_MACHINE);',
      'take_least(found, machine, WS_BOUND_MACHINE);', 'unit:test_memory')
fault('memory.high ignored', FILE, 'limit = Min(limit, high);', 'limit = Max(limit, high);', 'unit:test_memory')
fault('file pages not counted', FILE, 'return Max(0, limit - usage + Min(files, usage));',
      'return Max(0, limit - usage);', 'unit:test_memory')
FILE = 'os/team.c'
fault('item done twice', FILE, 'return FRONT(turn) + BACK(turn) >= ITEMS(turn);',
      'return FRONT(turn) + BACK(turn) > ITEMS(turn);', 'sql:heap t:heap/busy_many')

# --- sort -----------------------------------------------------------------------

FILE = 'sort/sorter.c'
fault('end forgotten by PRIOR', FILE, 'sorter->eof = false;	/* the last row, again */',
      'sorter->eof = true;', 'sql:cursors')
fault('mark forgets the end', FILE, 'sorter->mark_eof = sorter->eof;', '', 'sql:executor',
      'merge joins alone mark, on a row')
fault('restore forgets the end', FILE, 'sorter->eof = sorter->mark_eof;', '', 'sql:executor',
      'merge joins alone restore, and never read backward, for which alone it is there')
fault('one row too far back', FILE, 'seek(sorter, sorter->position - 1);', 'seek(sorter, sorter->position);',
      'sql:cursors')
fault('rewind forgets the end', FILE, 'seek(sorter, 0);\nsorter->eof = false;', 'seek(sorter, 0);',
      'sql:edges')
FILE = 'sort/budget.c'
fault('nothing left for later', FILE, 'b.shared = w - Min(later, w);', 'b.shared = w + Min(later, w);',
      't:accounting')
fault('run block beside the budget', FILE, 'b.entries = rest - Min(b.block, rest);',
      'b.entries = rest + Min(b.block, rest);', 't:accounting')

# --- exec -----------------------------------------------------------------------

FILE = 'exec/node.c'
fault('compiled code trusts young constraints', FILE, 'estate->es_jit_flags &= ~PGJIT_DEFORM;', '',
      't:snapshot_notnull')
fault('chgParam not looked at', FILE,
      'if (outer->chgParam != NULL || !state->request->random_access ||',
      'if (!state->request->random_access ||', 'sql:edges')
fault('input read backward', FILE, 'estate->es_direction = ForwardScanDirection;', '', 'sql:cursors',
      'a cursor begins forward, and ExecSubPlan sets the direction: no plan asks first for a row backward')
fault('input not rescanned', FILE, 'if (outer->chgParam == NULL)\nExecReScan(outer);',
      'if (outer->chgParam != NULL)\nExecReScan(outer);', 'sql:edges')
fault('WHERE CURRENT OF finds a table', FILE, 'node->ss.ss_currentRelation = NULL;', '', 'sql:heap')
FILE = 'exec/request.c'
fault('younger NOT NULL trusted', FILE, 'if (!holds)\nreturn false;', '', 't:transactions/old_snapshot')
fault('own NOT NULL trusted', FILE,
      'return !TransactionIdIsCurrentTransactionId(xmin) && !XidInMVCCSnapshot(xmin, snapshot);',
      'return !XidInMVCCSnapshot(xmin, snapshot);', 't:transactions/old_snapshot',
      'an open query keeps ALTER TABLE away, and what follows it sees the rows that it saw: no nulls')
fault('number for a worker without a point', FILE,
      'private = lappend(private, makeFloat(psprintf("%.1f", r->rows)));',
      'private = lappend(private, makeFloat(psprintf("%.0f", r->rows)));', 'sql:plans')
FILE = 'exec/input.c'
fault('filter left out', FILE, 'if (outer->qual != NULL && !ExecQual(outer->qual, econtext))',
      'if (outer->qual == NULL && !ExecQual(outer->qual, econtext))', 'sql:executor')
fault('columns of the row before', FILE, 'slot->tts_nvalid = 0;', '', 'sql:executor')
fault('TID of the row before', FILE, 'slot->tts_tid = tuple->t_self;', '', 'sql:heap')
fault('rows of the scan not counted', FILE, 'pgstat_count_heap_getnext(page->rs_base.rs_rd);', '',
      'sql:executor')
fault('expressions never freed', FILE, 'ResetExprContext(econtext);', '', 't:accounting',
      'what is allocated for the rows of one page is freed with the next')
fault('rows not in EXPLAIN', FILE, 'outer->instrument->tuplecount += 1;', '{}', 'sql:executor')
FILE = 'exec/below/prefetch.c'
fault('null key hashed', FILE, 'if (isnull || (k->text && !is_short(DatumGetPointer(value))))',
      'if (k->text && !is_short(DatumGetPointer(value)))', 'sql:joins')
fault('no hash table yet', FILE,
      'if (table == NULL || table->parallel_state != NULL || table->totalTuples == 0 ||',
      'if (table->totalTuples == 0 ||', 'sql:joins',
      'the table is there once a row has come, and to prefetch what is no address does nothing')
FILE = 'exec/explain.c'
fault('NULLS turned round', FILE, 'if (nulls_first != reverse)', 'if (nulls_first == reverse)', 'sql:explain')
fault('DESC turned round', FILE, 'if (sortop == entry->gt_opr)', 'if (sortop == entry->lt_opr)',
      'sql:explain')

# --- plan -----------------------------------------------------------------------

FILE = 'plan/heap.c'
fault('row marks allowed', FILE, 'root->parse->rowMarks != NIL || root->rowMarks != NIL)', 'false)',
      'sql:heap')
fault('system columns allowed', FILE, 'if (needs_changing_columns(rel))', 'if (false)', 'sql:heap')
fault('catalogs allowed', FILE,
      'if (rel->rd_tableam != GetHeapamTableAmRoutine() || IsCatalogRelation(rel) || RELATION_IS_OTHER_TEMP(rel))',
      'if (rel->rd_tableam != GetHeapamTableAmRoutine() || RELATION_IS_OTHER_TEMP(rel))', 'sql:heap')
fault('distance scans have TIDs', FILE, 'return ((const IndexPath *) path)->indexorderbys == NIL;',
      'return true;', 'sql:heap', 'rows that an index delivers by distance have their TIDs in PostgreSQL 15 to 18')
fault('snapshots that expire allowed', FILE, 'if (ws_snapshots_expire())', 'if (false)',
      't:snapshots/expiring_snapshots')
FILE = 'plan/orderings.c'
fault('expressions below joins', FILE, '(evaluated_for_all(root, own[i]) || only_columns(root, rel, own[i])))',
      'true)', 'sql:plans sql:executor')
FILE = 'plan/finish.c'
fault('volatile columns taken for one', FILE, 'match_by_position(cscan);', '(void) match_by_position;',
      'sql:edges sql:executor')
FILE = 'plan/path.c'
fault('equal volatile columns projected', FILE, 'if (!is_ambiguous(root, sort->path.pathtarget))', '(void) is_ambiguous;', 'sql:edges')
fault('constants of grouping sets projected', FILE, 'if (sets && IsA(lfirst(lc), Const))',
      'if (false)', 'sql:edges')
fault('keys of merge joins evaluated again', FILE,
      'tlist = with_keys(tlist, sort, input);', '(void) with_keys;', 'sql:plans')
FILE = 'plan/paths.c'
fault('scans of indexes dropped', FILE, 'ws_keep_early_paths(root, rel);', '', 'sql:plans')
fault('unsorted scans dropped', FILE, 'rel->partial_pathlist = with_path(rel->partial_pathlist, (Path *) cpath);',
      'add_partial_path(rel, (Path *) cpath);', 'sql:plans')
FILE = 'plan/early.c'
fault('scans of indexes of partitions dropped', FILE,
      'while (root->append_rel_array != NULL && root->append_rel_array[rel->relid] != NULL)',
      'while (false)', 'sql:plans')
fault('joins that begin early dropped', FILE,
      'root->tuple_fraction = NEARLY_NONE;', 'root->tuple_fraction = 0;', 'sql:plans')
fault('windows that stop read whole', FILE, 'if (windows_stop(root))', 'if (false)', 'sql:plans')
fault('CTEs under a LIMIT read whole', FILE,
      'if (root->parse->limitCount != NULL || root->tuple_fraction > 0 || windows_stop(root))',
      'if (false)', 'sql:plans')
FILE = 'plan/shape.c'
fault('sorts that are done again taken', FILE,
      'if (has_outer_value((Node *) clause, root) && !is_equality(root, clause))', 'if (false)', 'sql:plans')
fault('results of initplans taken for values outside', FILE, 'return ((Param *) node)->paramkind == PARAM_EXEC &&',
      'return ((Param *) node)->paramkind == PARAM_EXEC ||', 'sql:plans')
fault('single values counted as rows', FILE, 'bytes = TUPLESORT_VALUE;', '', 'sql:plans')
FILE = 'plan/groups.c'
fault('as many groups as combinations', FILE,
      'return least * least_bytes <= memory ||', 'return', 'sql:plans')
fault('statistics of combinations overlooked', FILE, 'combined = combined || has_combinations(root, expr);',
      '(void) has_combinations;', 'sql:plans')
FILE = 'plan/rewrite.c'
fault('OFFSET not in the bound', 'plan/bound.c',
      'bound += (double) DatumGetInt64(((Const *) offset)->constvalue);', '{}', 'sql:edges sql:plans')
fault('limits that no sort is told', 'plan/bound.c', 'return !contain_mutable_functions(clause) && !contain_subplans(clause) &&',
      'return !contain_subplans(clause) &&', 'sql:plans')
fault('TIES have a bound', FILE, 'if (limit->limitOption == LIMIT_OPTION_WITH_TIES)', 'if (false)', 'sql:plans')
fault('one sort though a LIMIT is above', FILE, 'root->parse->limitCount != NULL || root->parse->rowMarks != NIL ||',
      'root->parse->rowMarks != NIL ||', 'sql:plans')
fault('Incremental Sort takes what core charges', 'plan/rivals.c',
      'double		share = compared ? 1 : INCREMENTAL_SHARE;', 'double		share = 1;',
      't:left_to_core/other_plans')
fault('Gather Merge takes what core charges', 'plan/rivals.c', '#define GATHERED_SHARE		0.65',
      '#define GATHERED_SHARE		1.0', 't:parallel/parallel')
fault('workers that the scan is dear without', 'plan/rivals.c',
      'return Min(sort->total_cost, input->total_cost + GATHERED_SHARE * (path->total_cost - scan->total_cost));',
      'return Min(sort->total_cost, scan->total_cost + GATHERED_SHARE * (path->total_cost - scan->total_cost));',
      't:parallel/parallel')
FILE = 'plan/paths.c'
fault('column of an outer join is NOT NULL', 'plan/path.c',
      'if (rte->rtekind != RTE_RELATION || rte->inh || ws_var_nullable(root, var) ||',
      'if (rte->rtekind != RTE_RELATION || rte->inh ||', 'sql:plans sql:executor')
