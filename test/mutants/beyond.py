"""One-line faults in what sorts beyond memory: rows that travel, readers, files (faults.py)."""

from faults import fault


# --- rows that travel: run/rowwrite.c, run/rowread.c, merge, store ------------

FILE = 'run/rowwrite.c'
fault('row entries not turned round', FILE, 'for (WsEntry *a = filled, *b = filled + w->nentries - 1; a < b; a++, b--)',
      'for (WsEntry *a = filled, *b = filled + w->nentries - 1; a < b - 1; a++, b--)', 'unit:test_travel')
fault('a row too many in a block', FILE,
      'if (w->used > 0 && offset + bytes + w->nentries * sizeof(WsEntry) > room)',
      'if (w->used > 0 && offset + bytes + w->nentries * sizeof(WsEntry) > room + 64)', 'unit:test_travel')
fault('blocks that do not lie together', FILE, 'if (unit != w->next_unit)', 'if (unit < w->next_unit)',
      'unit:test_travel sql:inline')
fault('a block has more than was written', FILE, 'memmove(entries, filled, size);', '{}', 'unit:test_travel sql:inline')
fault('the last block of rows', FILE, 'close_block(w, WS_ENTRY_MAX);', '{}', 'unit:test_travel')
FILE = 'run/rowspace.c'
fault('units of a large row', FILE, 'home->end += n;', 'home->end += 1;', 'unit:test_rowspace')
fault('free units are not joined', FILE, 'if (before != NULL && before->unit + before->n == unit)', 'if (false)',
      'unit:test_rowspace')
fault('more units are taken than are free', FILE, 'if (home->free[home->looked].n >= n &&', 'if (true &&',
      'unit:test_rowspace')
FILE = 'run/rowread.c'
fault('large rows are kept until the merge ends', FILE, '(void) madvise(r->large, TYPEALIGN_DOWN(in->page, r->in_large), MADV_DONTNEED);', '{}',
      't:accounting')
fault('a block of rows not checked', FILE, 'r->wrong = ws_rowblock_check(block);', 'r->wrong = NULL;', 'unit:test_travel')
fault('another block of rows named', FILE,
      'offset = (int64) r->units[r->block] * WS_ROWS_UNIT;', 'offset = (int64) r->units[0] * WS_ROWS_UNIT;', 't:damage')
fault('another place for rows', FILE, 'int			place = WS_ARENAS + run;', 'int			place = WS_ARENAS;',
      'unit:test_travel')
fault('a block that could not wait, again', FILE, 'if (block < r->block)', 'if (block + 1 < r->block)',
      'unit:test_travel sql:inline')
fault('the rest of a large block', FILE, 'rest.read.offset += r->run.block_size;', 'rest.read.offset += 0;', 'sql:inline')
fault('units freed by a helper', FILE, 'if (in->recycle)', 'if (true)', 'unit:test_travel sql:inline')
FILE = 'merge/merge.c'
fault('ties remember the row that was there', FILE, 'forget_tied(&merge->tied[source]);', '{}',
      'unit:test_travel')
fault('no wait for the next block', FILE, 'return s->rows != NULL && s->next == s->end && !ws_source_is_used_up(s);',
      'return false;', 'unit:test_travel')
FILE = 'merge/gather.c'
fault('a block that is due', FILE, 'before -= before > 0;', 'before = ws_entry_int(WS_ENTRY_MAX);', 'unit:test_travel')
FILE = 'store/carry.c'
fault('a row in place is not waited for', FILE, 'b->skipped = c->held;', 'b->skipped = false;', 'sql:inline')
FILE = 'store/travel.c'
fault('length in front of a row', FILE, 'escape = *bytes >= LENGTH_ESCAPE ? sizeof(uint64) : 0;', 'escape = 0;', 'sql:inline')
FILE = 'sort/sorter.c'
fault('the arena is not changed', FILE, 'if (sorter->travels && sorter->turns != f->turns)',
      'if (sorter->travels && sorter->turns + 1 < f->turns)', 'unit:test_travel')

# --- beyond the page cache: file/async.c, store/spoolscan.c, sort/again.c, merges of few runs ------

FILE = 'file/async.c'
fault('reads are not waited for when memory goes', FILE, 'while (r->on_their_way > 0)', 'while (false)', 'unit:test_aio')
fault('a read that failed is taken for one that was done', FILE, 'if (o->result == (long) read->bytes)',
      'if (o->result != 0)', 'unit:test_aio')
fault('the page cache is asked for what it has not', FILE,
      'if (!is_cached(r, read, s) || read_through_cache(r, read, s) != (ssize_t) read->bytes)',
      'if (read_through_cache(r, read, s) != (ssize_t) read->bytes)', 'unit:test_aio')
fault('what a file system does not know is no reason to wait', FILE, 'r->waits = true;', 'return got;', 'unit:test_aio')
fault('a read that was refused is taken for one that was done', FILE, 'ws_operation_done(r->ready[taken], -EAGAIN);',
      'ws_operation_done(r->ready[taken], (long) r->ready[taken]->read->bytes);', 'unit:test_aio')
fault('reads that wait for an operation never begin', FILE, 'if (r->nfree >= BATCH && r->later != NULL)', 'if (false)',
      'unit:test_aio')
fault('a queue that has refused a read is used again', FILE, 'if (queue->broken)', 'if (false)', 'unit:test_aio')
fault('a queue of another depth', FILE, 'if ((*idle)->depth == depth)', 'if (true)', 'unit:test_aio')
fault('a read in two members is one in the first', FILE,
      'if (!ws_file_stretch(r->reader.files, read->file, read->bytes, read->offset, &s))',
      'if (!ws_file_stretch(r->reader.files, read->file, read->bytes, read->offset, &s) && false)', 'unit:test_aio')
fault('the offset of the whole file', FILE, 'o->offset = s.offset;', 'o->offset = read->offset;', 'unit:test_aio')
fault('queues survive a fork', FILE, 'kinds[kind].idle = NULL;', '{}', 'unit:test_aio')
fault('the other kind of queue is not asked', FILE, 'for (int kind = 0; queue == NULL && kind < WS_READER_KINDS; kind++)',
      'for (int kind = 0; false && kind < WS_READER_KINDS; kind++)', 'unit:test_aio')
FILE = 'file/uring.c'
fault('a ring that has refused a read is given more', FILE, 'if (queue->broken)', 'if (false)', 'unit:test_aio')
FILE = 'merge/rowpasses.c'
fault('block starts are forgotten in any merge', FILE, 'if (final)', 'if (true)', 'unit:test_travel')
FILE = 'sort/budget.c'
fault('blocks as large as they were asked for', FILE,
      'return TYPEALIGN_DOWN(WS_IO_ALIGN, CLAMP(asked, WS_IO_ALIGN, Max(memory / 8, WS_IO_ALIGN)));',
      'return TYPEALIGN_DOWN(WS_IO_ALIGN, CLAMP(asked, WS_IO_ALIGN, Max(memory, WS_IO_ALIGN)));', 'unit:test_budget')
FILE = 'store/spoolscan.c'
fault('padding is taken for a row', FILE,
      'return bits != 0 ? here : (int64) TYPEALIGN(8, end) + 8 - WS_ROW_HEADER;', 'return here;', 't:beyond/told')
fault('a length is taken for a header', FILE, 'row += sizeof(uint64);', '{}', 't:beyond/told')
fault('holes before they have been read', FILE, 'behind = TYPEALIGN_DOWN(ws_page_bytes(), scan->end);',
      'behind = TYPEALIGN_DOWN(ws_page_bytes(), scan->end) + PUNCH_STEP;', 't:beyond/lost')
FILE = 'sort/again.c'
fault('a row is handed out twice', FILE, 'pass_over(s, sort->rows_before - 1, slot);',
      'pass_over(s, sort->rows_before - 2, slot);', 'unit:test_again')
fault('rows of a table begin again in the middle of a scroll', FILE,
      'if (sort->rel != NULL && request->random_access)', 'if (false)', 'unit:test_again_table')
fault('a sort that is worth it goes on', FILE, 'return gone * toll.reads * toll.read_us > price(&toll);',
      'return false;', 't:beyond/lost')
FILE = 'sort/tablerows.c'
fault('columns that nobody needs are there', FILE, 'if (rows->needed[i])', 'if (true)',
      reason='they cost disk, and are not looked at')
fault('defaults of younger columns are forgotten', FILE,
      'all = rows->desc->constr == NULL || rows->desc->constr->missing == NULL;', 'all = true;',
      't:beyond/from_table t:beyond/outgrown')
fault('the last column is forgotten', FILE, 'rows->last = i + 1;', 'rows->last = i;', 't:beyond/from_table')
FILE = 'store/heap.c'
fault('pointers of the window are left behind', FILE, 'if (h->where == NULL)', 'if (true)', 't:beyond/from_table')
FILE = 'exec/request.c'
fault('a column that cannot be null is', FILE, 'r->needed[i] = all || TupleDescAttr(desc, i)->attnotnull;',
      'r->needed[i] = all;', 't:beyond/from_table t:beyond/outgrown')
fault('a copy is taken for the row', FILE, 'r->needed = NULL;', '{}', 't:beyond/from_table')
fault('an old plan is believed', FILE, 'if (r->needed == NULL || !has_outgrown_memory(r, rel))',
      'if (true)', 't:beyond/outgrown')
fault('the mark is lost', 'sort/again.c', 's->mark_position = first->mark_position;', '{}', 'unit:test_again t:beyond/places')
FILE = 'merge/passes.c'
fault('the youngest runs are merged', FILE, 'put_first(f, end - n, n);', 'put_first(f, 0, n);', 'unit:test_travel')
fault('a helper writes before its turn', 'run/emit.c', 'return allowed && !older_waits(f, p);', 'return allowed;',
      reason='runs are out of order only if a descriptor for the helper comes free between two pieces')
FILE = 'exec/request.c'
fault('a spool has all of temp_file_limit', FILE, 'if (limit < 0 || bytes > most || (double) r->allowance <= most)', 'if (true)', 't:limits')
fault('cheap random reads of the server count', FILE,
      'bool		own = false;', 'bool		own = true;', 't:left_to_core')
fault('TIES have the price of few rows', 'plan/rewrite.c', 'if (has_ties(rw) || rw->root->parse->rowMarks != NIL)', 'if (false)', 'sql:plans')
FILE = 'exec/node.c'
fault('the first rows are lost where they are not all', FILE, 'for (int64 i = 0; i < ws_few_rows(state->few); i++)',
      'for (int64 i = 1; i < ws_few_rows(state->few); i++)', 't:few')
FILE = 'exec/few.c'
fault('few rows are never so many', FILE, 'while (ws_top_rows(few->top) < few->most && ws_top_bytes(few->top) < most)',
      'while (ws_top_rows(few->top) < few->most - 1)', 't:few')
fault('a column is one key', FILE, 'memset(few->slot->tts_isnull, true, few->slot->tts_tupleDescriptor->natts);', '', 't:few')
fault('rows in the opposite order stay in the heap', FILE,
      'if (unlikely(few->in_table && ws_top_is_reversed(few->top, REVERSED_ROWS)) &&', 'if (false &&', 't:few')
FILE = 'exec/top.c'
fault('of many rows not the first are kept', FILE,
      'if (child + 1 < n && compare(top, &top->rows[child + 1], &top->rows[child]) > 0)', 'if (false)', 't:few')
fault('a bound keeps one row too few', FILE, 'else if (comes_before(top, slot, &top->rows[0]))', 'else if (false)', 't:few')
fault('a LIMIT is passed to a window', 'plan/bound.c', 'if (is_bound_lost(root->parent_root))', 'if (false)', 'sql:plans')
fault('what is not UTF-8 is a null', 'key/normalize.c', 'put_byte(w, ESCAPED_FIRST ^ invert);', '{}', 't:libc')
fault('any index finds a value', 'plan/reach.c', 'if ((index->relam == BTREE_AM_OID || index->relam == HASH_AM_OID) &&', 'if (',
      reason='PostgreSQL joins such tables as it would without wiscsort: plans are slower, and right')
FILE = 'plan/narrow.c'
fault('rows are never narrower', FILE,
      'return sorted <= narrow * scanned;', 'return false;', 'sql:plans')
fault('results are looked up in their own order', FILE,
      'return (root->tuple_fraction <= 0 && q->limitCount == NULL && looks_up((Node *) exprs, NULL)) ||',
      'return', 'sql:plans')
fault('toasted values are read in the order of the result', FILE, 'reads_toast(root, rel, exprs);', 'false;', 'sql:plans')
fault('conditions choose no rows', 'plan/groups.c', 'if (vars != NIL && !has_column(vars, (Var *) expr))', 'if (false)',
      'sql:plans')
fault('no rows come in the order of indexes', 'plan/rivals.c',
      'return rows >= 0.5 * input->rows ? "most rows come in the order of indexes" : NULL;', 'return NULL;', 'sql:plans')
fault('a cursor ends early', 'plan/orderings.c', 'return root->tuple_fraction > 0 && limit != NULL;',
      'return root->tuple_fraction > 0;', 'sql:plans')
FILE = 'plan/workers.c'
fault('all functions are cheap', FILE, 'calls->dear += dear;', '{}', 'sql:plans')
fault('rows of any width are handed over alike', 'plan/workers.c', 'return HAND_OVER + HAND_OVER_WIDE * width / 1000;',
      'return HAND_OVER;', 'sql:plans')
fault('what results take does not count', FILE, '*hidden = hidden_cost(root, exprs);', '{}', 'sql:plans')
fault('a table is sorted below look-ups', 'plan/orderings.c',
      'if (own[i] != NIL && pays_below_joins(root, rel, own[i], classes) &&', 'if (own[i] != NIL &&', 'sql:plans')
FILE = 'plan/bound.c'
fault('a LIMIT above a join never starves', FILE,
      '(other->baserestrictinfo != NIL || !ws_finds_partners(root, other)))', 'false)', 'sql:plans')
fault('all joins find partners', 'plan/reach.c', 'return theirs > 0 && its * MOST_FOUND >= theirs;', 'return true;', 'sql:plans')
fault('joins by ranges are no guess', 'plan/orderings.c', 'if (joined_by_guess(root, rel))', 'if (false)', 'sql:plans')
fault('rows of an index are all scattered', 'plan/leaves.c', 'c->moves += block != before;', 'c->moves++;', 'sql:plans')
fault('a range of an index ends with it', 'plan/leaves.c', 'end = behind_cut(index, page, &high);', '{}', 'sql:plans')
fault('a range of an index begins with it', 'plan/leaves.c', 'first = behind_cut(index, page, &low);', '{}', 'sql:plans')
fault('columns of an index all ascend', 'plan/leaves.c', 'bool		high = less != index->reverse_sort[column];',
      'bool		high = less;', 'sql:plans')
fault('nulls are in the ranges of an index', 'plan/leaves.c', 'else if (range->low.known != range->high.known)',
      'else if (false)', 'sql:plans')
fault('values of an index are not those of its type', 'plan/leaves.c', 'fmgr_info(bound->compare, &scankey->sk_func);', '{}',
      'sql:plans')
fault('an outer join drops rows', FILE, 'bms_is_subset(other, join->syn_righthand) && !bms_overlap(own, join->syn_righthand))',
      'false)', 'sql:plans')
fault('workers call what is not for them', FILE, 'return func_parallel(function) != PROPARALLEL_SAFE;', 'return false;',
      'sql:plans')
fault('columns of SQL are not counted', 'stat/setof.c', 'if (result->setDesc->natts != columns)', 'if (false)', 't:install')
fault('what is hidden is not said', 'advise/preload.c', '*hidden = missing.len > 0 ? missing.data : NULL;', '*hidden = NULL;',
      't:install')
FILE = 'key/letters.c'
fault('transformed bytes are places', FILE, 'for (Size i = 0; i < placed; i++)', 'for (Size i = 0; i < found; i++)',
      reason='a guess that is wrong more often: it is verified')
fault('another letter ends the places and says no more', 'key/alphabet.c', 'return *placed + length;', 'return *placed;',
      'unit:test_alphabet')
