"""One-line faults in abbreviated keys of arrays, ranges, jsonb and rows (faults.py)."""

from faults import fault

FILE = 'key/bits.h'
fault('more bits than there is room for', FILE, 'b->key |= bits >> (n - b->left);',
      'b->key |= bits;', 'sql:types')
fault('parts behind an abbreviation', FILE, 'if (ws_encoding_partial(part->encoding))', 'if (false)',
      'sql:types',
      'There is no room behind one: it has 64 bits, and some are in front of it.')
FILE = 'key/nested.c'
fault('null element first', FILE, 'ws_bits_put(b, isnull ? 2 : 1, FLAG_BITS);',
      'ws_bits_put(b, isnull ? 0 : 1, FLAG_BITS);',
      'sql:types')
fault('expanded array flattened', FILE, 'if (VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value)))', 'if (false)',
      'sql:types', 'Slower only: detoasting flattens it.')
fault('no lower bound comes last', FILE, 'ws_bits_put(b, lower->infinite ? 1 : 2, FLAG_BITS);',
      'ws_bits_put(b, lower->infinite ? 3 : 2, FLAG_BITS);', 'sql:types')
fault('exclusive lower bound first', FILE, 'ws_bits_put(b, lower->inclusive ? 0 : 1, 1);',
      'ws_bits_put(b, lower->inclusive ? 1 : 0, 1);', 'sql:types')
fault('no upper bound comes first', FILE, 'ws_bits_put(b, upper->infinite ? 1 : 0, 1);',
      'ws_bits_put(b, upper->infinite ? 0 : 1, 1);', 'sql:types')
fault('exclusive upper bound last', FILE, 'ws_bits_put(b, upper->inclusive ? 1 : 0, 1);',
      'ws_bits_put(b, upper->inclusive ? 0 : 1, 1);', 'sql:types')
fault('empty range like any', FILE, 'if (!empty)', 'if (true)', 'sql:types')
fault('null field first', FILE, 'ws_bits_put(b, isnull ? 1 : 0, 1);', 'ws_bits_put(b, isnull ? 0 : 1, 1);',
      'sql:types')
fault('fields behind one without bits', FILE,
      '!find_part(&nested->nested, field, entry->cmp_proc, att->atttypid, att->attcollation))\n\t\t\tbreak;',
      '!find_part(&nested->nested, field, entry->cmp_proc, att->atttypid, att->attcollation))\n\t\t\tcontinue;', 't:parts')
fault('first field again', FILE,
      'field = heap_getattr(row, i + 1, desc, &isnull);',
      'field = heap_getattr(row, 1, desc, &isnull);', 'sql:types')
fault('dropped fields count', FILE, 'if (att->attisdropped)', 'if (false)', 'sql:types')
FILE = 'key/jsonb.c'
fault('empty jsonb array behind scalars', FILE,
      'else if (JsonContainerIsObject(root) || JsonContainerSize(root) > 0)', 'else', 'sql:types')
fault('jsonb scalars behind arrays', FILE, 'ws_bits_put(b, 1, FLAG_BITS);',
      'ws_bits_put(b, 3, FLAG_BITS);', 'sql:types')
fault('members not counted', FILE, 'if (n >= MANY)', 'if (n > MANY)', 'sql:types')
fault('true before false in jsonb', FILE, 'ws_bits_put(b, JBE_ISBOOL_TRUE(entry) ? 1 : 0, 1);',
      'ws_bits_put(b, JBE_ISBOOL_TRUE(entry) ? 0 : 1, 1);', 'sql:types')
fault('key of an object less than the first', FILE, 'ws_bits_put(b, cmp < 0 ? 0 : cmp == 0 ? 1 : 2, FLAG_BITS);',
      'ws_bits_put(b, cmp < 0 ? 2 : cmp == 0 ? 1 : 0, FLAG_BITS);', 'sql:types')
fault('keys as long as the first are equal', FILE,
      'return length == first->length && memcmp(text, first->text, length) == 0;',
      'return length == first->length;', 'sql:types')
fault('keys of another object', FILE, 'layout->nkeys = 0;', 'layout->nkeys %= MOST_KEYS;', 'sql:types')
fault('last member of an object first', FILE, 'put_member(b, layout, c, n + i, data, value);',
      'put_member(b, layout, c, 2 * n - 1, data, value);', 'sql:types')
fault('numbers of jsonb not aligned', FILE, 'const char *aligned = data + INTALIGN(offset);',
      'const char *aligned = data + offset;', 'sql:types')
FILE = 'plan/nested.c'
fault('parts always told', FILE, 'return untold > MOST_UNTOLD * (slot->nvalues - 1);', 'return false;',
      't:left_to_core/nested')
fault('equal ranges untold', FILE, '!datumIsEqual(bounds[i].value, bounds[i - 1].value, false, -1);', 'true;',
      't:left_to_core/nested')
fault('statistics looked for above a set operation', FILE, 'if (bms_is_member(0, pull_varnos(root, expr)))',
      'if (false)', 't:left_to_core/nested diff:170218-170218')
