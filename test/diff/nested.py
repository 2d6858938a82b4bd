"""Column types of the differential test that are made of other types, with many values: arrays, ranges,
multiranges, composite types and jsonb.  Of many the first parts are alike, and of some all but the last.
"""

import datetime

import coltypes
from coltypes import Type, letters


# --- arrays ---------------------------------------------------------------------

def quoted(element):
    """An element of an array, in COPY's text format."""
    return 'NULL' if element is None else '"%s"' % element.replace('\\', '\\\\').replace('"', '\\\\"')


def braces(elements, dims):
    """The text of an array."""
    if len(dims) == 1:
        return '{%s}' % ','.join(quoted(e) for e in elements)
    size = len(elements) // dims[0]
    return '{%s}' % ','.join(braces(elements[i:i + size], dims[1:])
                             for i in range(0, len(elements), size))


def array(rng, element):
    """Arrays with nulls, of several dimensions, with other bounds than 1, and some that are toasted."""
    heads = [[element(rng) for _ in range(rng.choice([0, 0, 1, 2, 5, 11]))] for _ in range(2)]
    nulls, deep, longest = rng.choice([0, 0.1, 0.4]), rng.choice([0, 0, 0.2]), rng.choice([1, 3, 6])

    def value(r):
        head = r.choice(heads) if r.random() < 0.6 else []
        dims = [len(head) + (700 if r.random() < 0.004 else r.randint(0, longest))]
        if r.random() < deep:
            dims = [r.randint(1, 3), 2] + [2] * r.randint(0, 1)
        count = 1
        for n in dims:
            count *= n
        if count == 0:
            return '{}'
        body = [None if r.random() < nulls else element(r) for _ in range(count)]
        low = r.choice([0, 2, -7])
        shift = '[%d:%d]=' % (low, low + count - 1) if len(dims) == 1 and r.random() < 0.1 else ''
        return shift + braces((head + body)[:count], dims)
    return value


def element_type(rng, names):
    """The declaration, the collation, a generator, and whether values that are equal print alike."""
    pick = rng.randrange(20)
    if pick < 8:
        clause, deterministic = rng.choice(coltypes.collations(names))
        kind = rng.choice(['text', 'text', 'varchar', 'bpchar'])
        alphabet = rng.choice(coltypes.ALPHABETS[:6])
        head, longest = letters(rng, rng.choice([0, 0, 2, 9]), alphabet), rng.choice([1, 3, 12])
        return (kind, clause, lambda r: head[:r.randint(0, 9)] + letters(r, r.randint(0, longest), alphabet),
                deterministic and kind != 'bpchar')
    if pick < 12:
        return 'int4', '', lambda r: str(r.choice([r.randint(-9, 9), r.randint(-2 ** 31, 2 ** 31 - 1)])), True
    if pick < 14:
        return 'numeric', '', coltypes.numeric, False
    if pick == 14:
        return 'bytea', '', coltypes.bytea(rng), True
    if pick == 15:
        return 'int8range', '', coltypes.span(lambda r: r.choice([1, 2, r.getrandbits(40)])), True
    base = rng.choice([t for t in coltypes.FIXED + coltypes.VARYING[:4]])
    return base.decl, '', base.value, base.exact


def array_type(rng, names):
    decl, clause, element, exact = element_type(rng, names)
    appended = 'CASE WHEN coalesce(array_ndims({c}), 1) = 1 THEN array_append({c}, {c}[%s]) END'
    return Type(decl + '[]' + clause.replace('"', ''), decl + '[]' + clause, array(rng, element), exact=exact,
                exprs=[(appended % 'array_upper({c}, 1)', exact), (appended % '1', exact),
                       ('({c} || {c})', exact), ('array_length({c}, 1)', True)])


# --- ranges ---------------------------------------------------------------------

def moment(number):
    return str(datetime.datetime(2020, 1, 1) + datetime.timedelta(microseconds=number * 977))


def day(number):
    return str(datetime.date(2020, 1, 1) + datetime.timedelta(number % 90000))


SUBTYPES = [('int4', 31, str, True), ('int8', 60, str, True), ('num', 50, lambda n: str(n) + '.50', False),
            ('num', 30, lambda n: '%d.%d' % (n // 7, n % 7), False), ('ts', 38, moment, True),
            ('tstz', 38, moment, True), ('date', 16, day, True)]


def one_range(bits, text):
    """Ranges of which some have the same lower bound."""
    def value(r):
        if r.random() < 0.05:
            return r.choice(['empty', '(,)'])
        low = r.choice([1, 77]) if r.random() < 0.3 else r.getrandbits(r.choice([4, bits]))
        high = low + r.choice([0, 1, 2, r.getrandbits(r.choice([3, bits]))])
        if text is day:
            high = min(high, 89999)
            low = min(low, high)
        elif high >= 2 ** bits:
            high = low
        return '%s%s,%s%s' % (r.choice('[('), quote(text(low)) if r.random() < 0.9 else '',
                              quote(text(high)) if r.random() < 0.9 else '', r.choice('])'))
    return value


def quote(bound):
    return '"%s"' % bound if ' ' in bound else bound


def range_type(rng, names, number):
    name, bits, text, exact = rng.choice(SUBTYPES)
    one = one_range(bits, text)
    if rng.random() < 0.3:
        most = rng.choice([1, 3, 5])

        def several(r):
            ranges = [one(r) for _ in range(r.randint(0, most))]
            return '{%s}' % ','.join(s for s in ranges if s != 'empty')
        return Type(name + 'multirange', name + 'multirange', several, exact=exact)
    if rng.random() < 0.25:
        clause = rng.choice(coltypes.collations(names))
        pattern = rng.random() < 0.3
        result = Type('text_range', 'ran%d' % number, text_range, exact=clause[1] and not pattern)
        result.setup = ['CREATE TYPE ran%d AS RANGE (subtype = text%s%s)'
                        % (number, ', subtype_opclass = text_pattern_ops' if pattern else '',
                           clause[0].replace(' COLLATE', ', collation ='))]
        return result
    return Type(name + 'range', name + 'range', one, exact=exact,
                exprs=[('lower({c})', exact), ('{c}::text COLLATE "C"', True)])


def text_range(r):
    """Bounds that every collation puts into this order."""
    low = 'b' + letters(r, r.randint(0, 5), 'aAb')
    high = 'y' + letters(r, r.randint(0, 5), 'aAb')
    return r.choice(['empty', '[%s,%s)', '(%s,%s]', '[%s,)', '(,%s)', '[%s,%s]']) \
        .replace('%s', low, 1).replace('%s', high)


# --- composite types --------------------------------------------------------------

def composite_type(rng, names, number):
    """Of two to four fields, one of which may have been dropped, and one added behind; some have few values."""
    fields = [element_type(rng, names) for _ in range(rng.randint(2, 4))]
    nulls, dropped = rng.choice([0, 0.1, 0.4]), rng.choice([None, 0, 1])
    heads = [element(rng) if rng.random() < 0.4 else None for _, _, element, _ in fields[:-1]] + [None]

    def value(r):
        shown = [None if r.random() < nulls else head if head and r.random() < 0.8 else element(r)
                 for head, (_, _, element, _) in zip(heads, fields)]
        return '(%s)' % ','.join('' if one is None else '"%s"' % one.replace('\\', '\\\\').replace('"', '""')
                                 for one in shown)
    name = 'row%d' % number
    declared = ['f%d %s%s' % (n, decl, clause) for n, (decl, clause, _, _) in enumerate(fields)]
    last = declared.pop()
    if dropped is not None:
        declared.insert(dropped, 'gone text')
    result = Type('composite', name, value, exact=False,
                  exprs=[('({c}).f0', fields[0][3]), ('({c}).f1', fields[1][3])])
    result.setup = ['CREATE TYPE %s AS (%s)' % (name, ', '.join(declared))] + \
        (['ALTER TYPE %s DROP ATTRIBUTE gone' % name] if dropped is not None else []) + \
        ['ALTER TYPE %s ADD ATTRIBUTE %s' % (name, last)]
    return result


# --- jsonb ----------------------------------------------------------------------

def scalar(r):
    pick = r.randrange(8)
    if pick < 3:
        return r.choice([str(r.randint(-9, 9)), str(r.getrandbits(40)), '%.3f' % r.gauss(0, 9), '1e%d' % r.randint(-20, 90)])
    if pick < 7:
        return '"%s"' % letters(r, r.randint(0, 10), r.choice(['abAB', 'é日b', '01']))
    return r.choice(['true', 'false', 'null'])


def shape(rng, depth=0):
    """A function that makes values of a shape, most of them with the same keys."""
    pick = rng.randrange(6)
    if pick < 2 or depth > 2:
        return scalar
    if pick == 2:
        member, most = shape(rng, depth + 1), rng.choice([2, 5, 40])
        return lambda r: '[%s]' % ','.join(member(r) for _ in range(r.randint(0, most)))
    keys = rng.sample(['a', 'b', 'id', 'name', 'Name', 'é', 'a_long_name', 'k1', 'k2', ''], rng.choice([1, 2, 4]))
    members = [(key, shape(rng, depth + 1)) for key in keys]

    def value(r):
        kept = [(k, m) for k, m in members if r.random() < 0.95]
        if r.random() < 0.05:
            kept.append((letters(r, r.randint(1, 3), 'abk'), scalar))
        return '{%s}' % ','.join('"%s":%s' % (k, m(r)) for k, m in kept)
    return value


def json_type(rng):
    made = [shape(rng) for _ in range(rng.choice([1, 1, 3]))]
    odd = ['[]', '{}', 'null', '[[]]', '[{}]', '""', '[""]', '0', '[null]']
    return Type('jsonb', 'jsonb', exact=False,
                value=lambda r: r.choice(odd) if r.random() < 0.05 else r.choice(made)(r),
                exprs=[("({c} -> 'id')", False), ("jsonb_build_array({c})", False)])


def choose(rng, names, number):
    pick = rng.random()
    if pick < 0.4:
        return array_type(rng, names)
    if pick < 0.6:
        return composite_type(rng, names, number)
    return range_type(rng, names, number) if pick < 0.8 else json_type(rng)
