"""One-line faults in what is planned, and in sorts of few rows (faults.py)."""

from faults import fault


FILE = 'plan/lookups.c'
fault('lost order of lookups is free', FILE,
      'loop->jpath.path.total_cost += share * PAGES_OF_LOOKUP * seq_page_cost *', 'loop->jpath.path.total_cost += 0 *', 't:lookups')
fault('lookups in buffers cost as much', FILE,
      'share = order_lost(root, sort, lookup) * (1 - NBuffers / pages);',
      'share = order_lost(root, sort, lookup);', 't:lookups')
fault('keys in order are out of order', FILE, 'if (ri->left_ec == first || ri->right_ec == first || ri->parent_ec == first)',
      'if (false)', 't:lookups')
fault('the rows of the sort before stay', 'exec/few.c', 'few->sorted = false;', '', 't:few')
FILE = 'sort/budget.c'
fault('entries of short rows behind a long one', FILE, 'b->arena = Min(b->arena, share - share / ENTRIES_LEAST);', '',
      'sql:inline unit:test_budget')
FILE = 'plan/rivals.c'
fault('an index that is read whole for few rows', FILE,
      'if (whole && ordered && WS_INDEX_SHARE * path->total_cost < cost)', 'if (whole && ordered)', 'sql:heap')
FILE = 'plan/bound.c'
fault('a LIMIT two levels outside is none', FILE, 'outside = limit_outside(root);', 'outside = NULL;', 'sql:plans')
fault('a LIMIT of some of the rows', FILE,
      'root->simple_rel_array[relid]->baserestrictinfo == NIL && q->setOperations == NULL &&',
      'q->setOperations == NULL &&', 'sql:plans')
FILE = 'plan/paths.c'
fault('each worker sorts all', FILE, 'return rel->partial_pathlist != NIL && !IS_OTHER_REL(rel) &&', 'return false &&',
      'sql:joins')
fault('a disabled scan dropped', FILE, 'else if (ws_costs_of_disabled(&cpath->path))', 'else if (false)', 'sql:plans')
FILE = 'plan/narrow.c'
fault('text that nobody has measured has 32 bytes', FILE, 'parts++;', 'parts += 0;', 'sql:plans')
fault('whole rows have no columns', FILE, '!bms_is_member(-FirstLowInvalidHeapAttributeNumber, sorted))', 'true)', 'sql:plans')
fault('what a key is made of is sorted along', FILE, 'narrow = exprs != NIL ? NARROW_EXPR : NARROW;', 'narrow = NARROW;',
      'sql:plans')
FILE = 'plan/groups.c'
fault('a grown table is as it was', FILE, '*least /= growth(root, data.rel);', '*least /= 1;', 'sql:plans')
fault('no groups are groups that can be hashed', FILE, 'return group_columns(root) != NIL && enable_hashagg && parse->groupingSets == NIL &&',
      'return enable_hashagg && parse->groupingSets == NIL &&', 'sql:plans')
fault('groups have the bytes that are known of them', FILE,
      'if (most * most_bytes <= memory && most * bytes_by_core(root) <= memory)', 'if (most * most_bytes <= memory)', 'sql:plans')
fault('objects are compared in no time', FILE, 'if (is_made_of_values(expr))', 'if (false)', 'sql:plans')
fault('only objects are made of values', FILE,
      'return type == JSONBOID || type_is_range(type) || type_is_multirange(type) || type_is_rowtype(type);',
      'return type == JSONBOID;', 'sql:plans')
fault('groups of narrow values are groups of wide ones', FILE, 'return width > WS_PREFIX_BYTES;', 'return true;', 'sql:plans')
fault('sorts beat hash tables that are written', FILE, 'least * ROWS_OF_TIED <= most_rows(root) && is_wide(root, expr);',
      'false;', 'sql:plans')
fault('hash tables write all rows', FILE, '(work_mem * (Size) 1024 < WS_HELPER_MEMORY &&', '(false &&', 'sql:plans')
FILE = 'plan/handed.c'
fault('a subquery hands on all that begins early', FILE, 'if (late)', 'if (false)', 'sql:plans')
fault('a subquery hands on nothing that begins early', FILE,
      'core[i] = path->total_cost + saved(path, &sorts[i]);',
      'core[i] = path->total_cost + 0 * saved(path, &sorts[i]);', 'sql:plans')
fault('sorts of workers have a say beside hash tables', 'plan/rivals.c', '(ws_can_hash_groups(root) && pathkeys_contained_in(grouping, pathkeys)) ||',
      '', 't:parallel/parallel')
fault('arrays told as numbers', 'plan/compared.c',
      '(is_partly_told(root, pathkey) &&', '(false &&', 'sql:plans')
fault('pages of the heap given back', 'os/memory.c', 'block = malloc(Min(bytes, LARGEST_KEPT));', 'block = NULL;',
      'unit:test_memory')
fault('advice for the average execution', 'advise/advise.c',
      'facts->rows = Max(Max(a->input->most, a->input->rows - a->input->begun), mean);', '', 't:advise')
FILE = 'plan/rewrite.c'
fault('a merge of which core sorts a member stays', FILE,
      'else if (pathkeys_count_contained_in(append->path.pathkeys, path->pathkeys, &common) || common > 0)', 'else', 'sql:plans')
fault('a merge takes what it is charged', FILE,
      'if (cpath == NULL || cpath->path.total_cost - below >= MERGE_TAKES * (path->total_cost - below))',
      'if (cpath == NULL || cpath->path.total_cost >= path->total_cost)', 'sql:plans')
fault('no memory for helpers, and yet one process', 'plan/workers.c', '#define WITHOUT_HELPER	1.5',
      '#define WITHOUT_HELPER	0.0', 'sql:plans')
fault('workers have helpers', 'plan/paths.c', 'ws_charge_workers(root, rel, spooled, &sort->path, input->parallel_workers);',
      ';', 'sql:plans')
fault('workers have helpers above joins', FILE,
      'ws_charge_workers(rw->root, NULL, cpath, &sort->path, rw->workers);', '', 'sql:plans')
fault('no memory for helpers, and yet one process under a LIMIT', 'plan/workers.c', 'share = 1 + WITHOUT_HELPER;',
      'share = 1;', 'sql:plans')
fault('one process in the place of workers', 'plan/settle.c', 'cost -= ws_undercharge(root, path);', '',
      'sql:plans')
fault('equal columns of grouping sets are one', 'plan/path.c', 'if (!sets && (IsA(lfirst(lc), Var) || !contain_volatile_functions(lfirst(lc))))',
      'if (IsA(lfirst(lc), Var) || !contain_volatile_functions(lfirst(lc)))', 'sql:edges')
FILE = 'plan/orderings.c'
fault('expressions below joins that come first', FILE, 'classes = evaluable_classes(root, rel, classes);', '(void) evaluable_classes;', 'sql:joins')
fault('expressions below windows that end early', FILE,
      '(!root->parse->hasWindowFuncs || groups || pathkeys_contained_in(pathkeys, root->window_pathkeys)) &&', 'true &&', 'sql:joins')
fault('expressions below the LIMIT of a member of UNION', FILE, '(root->parse->limitCount == NULL || groups || pathkeys == root->sort_pathkeys ||',
      '(true ||', 'sql:joins', 'before PostgreSQL 17 a UNION asks no order of its members')
fault('rows are counted from the window', 'store/window.c', 'window->head -= drop;', 'window->head = 0;', 'sql:cursors')
