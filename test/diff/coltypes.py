"""Column types of the differential test: how to declare them, random values
for them, and expressions over them that make good sort keys.

A type is `exact` when two values that compare equal also print alike; then a
result can be checked by its text.  Of the others (numeric 1.0 and 1.00, -0 and
0, bpchar padding, nondeterministic collations, ...) only the rank among all
values of the table is compared, see gen.py.
"""

import datetime
import ipaddress
import random
import re

ALPHABETS = ['ab', 'aAbB', 'abcdefghijklmnopqrstuvwxyz', 'aäAÄáÁzZéßÅåøo', 'a b-c_D.0',
             '0123456789', 'éè日本語😀zα', '\x01~aé']


NESTED = 0.1                    # of the columns, which have many values of nested types


class Type:
    """decl: the SQL type.  value(rng): one non-null value in COPY's text
    format.  exprs: pairs (template, exact) with {c} for the column.  pattern:
    has the operators ~<~ and ~>~."""

    def __init__(self, name, decl, value, exact=True, exprs=(), pattern=False):
        self.name, self.decl, self.value, self.exact = name, decl, value, exact
        self.exprs, self.pattern = list(exprs), pattern
        self.setup = []
        self.big = False


def escape(text):
    """A value in COPY's text format."""
    return (text.replace('\\', '\\\\').replace('\t', '\\t').replace('\n', '\\n')
            .replace('\r', '\\r'))


# --- numbers and fixed-width types ---------------------------------------

def integers(bits):
    low, high = -2 ** (bits - 1), 2 ** (bits - 1) - 1
    edges = [low, low + 1, -256, -1, 0, 1, 127, 128, 255, 256, high - 1, high]

    def value(rng):
        pick = rng.random()
        if pick < 0.15:
            return str(rng.choice(edges))
        if pick < 0.5:
            return str(rng.randint(-50, 50))
        return str(rng.randint(low, high))
    return value


def floats(small, large):
    def value(rng):
        pick = rng.random()
        if pick < 0.25:
            return rng.choice(['0', '-0', 'NaN', 'Infinity', '-Infinity', small, '-' + small,
                               large, '-' + large, '1', '-1'])
        if pick < 0.6:
            return str(rng.randint(-20, 20) / 4)
        return '%r' % rng.gauss(0, 1000)
    return value


def numeric(rng):
    pick = rng.random()
    if pick < 0.08:
        return rng.choice(['NaN', 'Infinity', '-Infinity', '0', '0.000', '-0.0'])
    if pick < 0.4:
        return '%d.%s' % (rng.randint(-9, 9), '0' * rng.randint(1, 4))
    if pick < 0.7:
        return '%.*f' % (rng.randint(0, 6), rng.gauss(0, 50))
    sign = rng.choice(['', '-'])
    if pick < 0.8:
        return '%s%d.%de%d' % (sign, rng.randint(1, 9), rng.randint(0, 99), rng.randint(-90, 300))
    digits = ''.join(rng.choice('0001239') for _ in range(rng.randint(1, 30)))
    return '%s%s.%s' % (sign, digits, rng.choice(['0', '5', '10000', digits[::-1]]))


def unsigned(bits):
    edges = [0, 1, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2 ** bits - 1]
    return lambda rng: str(rng.choice(edges) if rng.random() < 0.2
                           else rng.randrange(2 ** rng.choice([4, bits])))


def day(rng):
    return str(datetime.date(1970, 1, 1) + datetime.timedelta(rng.randint(-40000, 40000)))


def clock(rng):
    if rng.random() < 0.1:
        return rng.choice(['00:00:00', '24:00:00', '23:59:59.999999'])
    return '%02d:%02d:%02d.%06d' % (rng.randrange(24), rng.randrange(60), rng.randrange(60),
                                    rng.choice([0, rng.randrange(10 ** 6)]))


def date(rng):
    if rng.random() < 0.1:
        return rng.choice(['infinity', '-infinity', '0001-01-01', '4713-01-02 BC', '5000-12-31'])
    return day(rng)


def timestamp(rng):
    if rng.random() < 0.1:
        return rng.choice(['infinity', '-infinity', '2000-01-01 00:00:00'])
    return day(rng) + ' ' + clock(rng).replace('24:', '23:')


def timestamptz(rng):
    value = timestamp(rng)
    return value if 'inf' in value else value + rng.choice(['+00', '+02', '-11:30'])


def timetz(rng):
    return clock(rng) + rng.choice(['+00', '+01', '-01', '+05:30', '-12'])


def interval(rng):
    pick = rng.random()
    if pick < 0.4:
        return rng.choice(['1 mon', '30 days', '29 days 24:00:00', '720:00:00', '0', '1 day',
                           '24:00:00', '-1 mon', '-30 days', '1 mon -30 days', '178000 years'])
    if pick < 0.5:
        return '%d mons %d days %d:00:00' % tuple(rng.choice([-n, 0, n]) for n in
                                                  (2 ** 31 - 1, 2 ** 31 - 1, 2562047787))
    if pick < 0.6:
        return '00:00:00.%06d' % rng.randrange(300)
    return '%d mons %d days %d.%03d secs' % (rng.randint(-30, 30), rng.randint(-99, 99),
                                             rng.randint(0, 99999), rng.randint(0, 999))


def infinite_interval(rng):
    """For servers that have them, 17 and later."""
    return rng.choice(['infinity', '-infinity']) if rng.random() < 0.1 else interval(rng)


def hexbytes(rng, count):
    return bytes(rng.choice([0, 0, 1, 127, 128, 255, rng.randrange(256)])
                 for _ in range(count)).hex()


def uuid(rng):
    return hexbytes(rng, 16) if rng.random() < 0.5 else '%032x' % rng.getrandbits(128)


def inet(rng):
    """Hosts, and hosts in few networks, so that netmasks and addresses tie."""
    if rng.random() < 0.3:
        return '2001:%x::%x/%d' % (rng.randrange(16), rng.randrange(3),
                                   rng.choice([128, 64, 63, 0, rng.randint(0, 128)]))
    return '%d.%d.%d.%d/%d' % (rng.choice([10, 10, 127, 192]), rng.randrange(3),
                               rng.choice([0, 1, 128, 255]),
                               rng.choice([0, 0, 1, rng.randrange(256)]),
                               rng.choice([32, 32, 8, 9, 0, rng.randint(0, 32)]))


def cidr(rng):
    return str(ipaddress.ip_interface(inet(rng)).network)


def tid(rng):
    edges = [0, 1, 255, 256, 65535]
    if rng.random() < 0.3:
        return '(%d,%d)' % (rng.choice(edges + [65536, 2 ** 31, 2 ** 32 - 1]), rng.choice(edges))
    return '(%d,%d)' % (rng.randrange(9), rng.randrange(1, 99))


def money(rng):
    return '%d.%02d' % (rng.choice([0, 1, -1, rng.randint(-10 ** 9, 10 ** 9)]), rng.randrange(100))


# --- byte strings and texts ------------------------------------------------

def prefixes(rng, unit):
    """A function that puts one of a few shared beginnings in front."""
    length = rng.choice([0, 0, 0, 1, 5, 8, 9, 10, 11, 16, 40, 300])
    heads = [unit(rng, length) for _ in range(rng.choice([1, 1, 2]))]
    return lambda r: r.choice(heads)


def bytea(rng):
    head = prefixes(rng, hexbytes)
    longest = rng.choice([2, 6, 12, 30])
    return lambda r: '\\\\x' + head(r) + hexbytes(r, r.randint(0, longest))


def letters(rng, count, alphabet):
    return ''.join(rng.choice(alphabet) for _ in range(count))


def text(rng, limit=10 ** 6, spaces=False, big=False):
    alphabet = rng.choice(ALPHABETS)
    head = prefixes(rng, lambda r, n: letters(r, min(n, limit // 2), alphabet))
    longest = min(rng.choice([1, 3, 8, 12, 25]), limit // 2)

    def value(r):
        if big and r.random() < 0.3:
            body = letters(r, 40, 'abc') * r.randint(50, 1500)
            if r.random() < 0.3:
                body = '%x' % r.getrandbits(4 * r.randint(2500, 9000))
            return head(r) + body + letters(r, r.randint(0, 3), alphabet)
        tail = ' ' * r.randint(0, 3) if spaces else ''
        result = head(r) + letters(r, r.randint(0, longest), alphabet) + tail
        return escape(result[:limit] if limit else result)
    return value


def short_name(rng):
    alphabet = rng.choice(ALPHABETS[:3])
    head = prefixes(rng, lambda r, n: letters(r, min(n, 40), alphabet))
    return lambda r: head(r) + letters(r, r.randint(0, 12), alphabet)


def tsvector(rng):
    return ' '.join(letters(rng, rng.randint(1, 4), 'abc') for _ in range(rng.randint(0, 4)))


def bits(rng):
    return letters(rng, rng.randint(1, 20), '01')


def varbit(rng):
    """Beginnings of each other, zeros at the end, and sometimes long enough to be toasted."""
    head = prefixes(rng, lambda r, n: letters(r, n * 8, '01'))
    longest = rng.choice([9, 20, 90])
    long = rng.choice([0, 0, 0, 20000])

    def value(r):
        zeros = '0' * (r.randint(0, 17) + (long if r.random() < 0.1 else 0))
        return head(r) + letters(r, r.randint(0, longest), '01') + zeros
    return value


# --- containers --------------------------------------------------------------

def json_value(rng, depth=0):
    pick = rng.randrange(9 if depth < 2 else 6)
    if pick < 3:
        return rng.choice(['1', '1.0', '1.00', '0', '-1', '1e3', '1000', '2.50', '2.5'])
    if pick < 5:
        return '"%s"' % letters(rng, rng.randint(0, 5), 'abz')
    if pick == 5:
        return rng.choice(['true', 'false', 'null'])
    if pick < 8:
        return '[%s]' % ','.join(json_value(rng, depth + 1) for _ in range(rng.randrange(4)))
    return '{%s}' % ','.join('"%s":%s' % (k, json_value(rng, depth + 1))
                             for k in rng.sample('abcd', rng.randrange(4)))


def array(element):
    def value(rng):
        if rng.random() < 0.08:
            return '{{1,2},{3,4}}'
        return '{%s}' % ','.join('NULL' if rng.random() < 0.1 else element(rng)
                                 for _ in range(rng.randrange(5)))
    return value


def span(element):
    """A range from ordered bounds; element(rng) gives a Python number."""
    def value(rng):
        if rng.random() < 0.1:
            return rng.choice(['empty', '(,)', '[1,1]'])
        low, high = sorted([element(rng), element(rng)])
        return '%s%s,%s%s' % (rng.choice('[('), low if rng.random() < 0.9 else '',
                              high + 1 if rng.random() < 0.9 else '', rng.choice('])'))
    return value


def multispan(rng):
    one = span(lambda r: r.randint(-9, 9))
    spans = [s for s in (one(rng) for _ in range(rng.randrange(4))) if s != 'empty']
    return '{%s}' % ','.join(spans)


def composite(rng):
    return '(%s,%s,%s)' % (rng.choice(['', '1', '2', '-7']), letters(rng, rng.randint(1, 3), 'aAb'),
                           rng.choice(['0', '-0', '1.5', 'NaN', '']))


# --- the list -----------------------------------------------------------------

NUMBER = [('-({c}::numeric)', False), ('{c}::text COLLATE "C"', True), ('({c} > 3)', True)]
FLOAT = [('-{c}', False), ('{c}::text COLLATE "C"', True), ('({c} > 3)', True)]
TIME = [('{c}::text COLLATE "C"', True)]
TEXT = [('length({c})', True), ("({c} || 'x')", None), ('lower({c})', None),
        ('{c} COLLATE "C"', True), ('{c} COLLATE icu_de', True), ('{c} COLLATE icu_nd2', False),
        ('convert_to({c}, \'UTF8\')', True), ('md5({c})', True), ("nullif({c}, 'a')", None)]

FIXED = [
    Type('int2', 'int2', integers(16), exprs=NUMBER),
    Type('int4', 'int4', integers(32), exprs=NUMBER + [('({c} % 7)', True)]),
    Type('int8', 'int8', integers(64), exprs=NUMBER + [('({c} % 7)', True)]),
    Type('float4', 'float4', floats('1e-42', '3e38'), exact=False, exprs=FLOAT),
    Type('float8', 'float8', floats('4e-320', '1e308'), exact=False, exprs=FLOAT),
    Type('bool', 'bool', lambda r: r.choice('tf'), exprs=[('(NOT {c})', True)]),
    Type('oid', 'oid', unsigned(32), exprs=[('{c}::int8', True)]),
    Type('date', 'date', date, exprs=TIME),
    Type('time', 'time', clock, exprs=TIME),
    Type('timestamp', 'timestamp', timestamp, exprs=TIME + [('{c}::date', True)]),
    Type('timestamptz', 'timestamptz', timestamptz, exprs=TIME),
    Type('timetz', 'timetz', timetz, exprs=TIME),
    Type('interval', 'interval', interval, exact=False, exprs=TIME),
    Type('uuid', 'uuid', uuid, exprs=TIME),
    Type('char', '"char"', lambda r: r.choice(['', 'a', 'b', 'Z', '~', '0'])),
    Type('money', 'money', money, exprs=[('{c}::numeric', False)]),
    Type('macaddr', 'macaddr', lambda r: hexbytes(r, 6), exprs=[('trunc({c})', True)]),
    Type('macaddr8', 'macaddr8', lambda r: hexbytes(r, 8)),
    Type('xid8', 'xid8', unsigned(64)),
    Type('pg_lsn', 'pg_lsn', lambda r: '%X/%X' % (r.randrange(9), r.getrandbits(32))),
    Type('tid', 'tid', tid),
    Type('numeric', 'numeric', numeric, exact=False,
         exprs=[('-{c}', False), ('{c}::text COLLATE "C"', True), ('abs({c})', False)]),
    Type('numeric_2', 'numeric(12,2)', lambda r: '%.2f' % r.gauss(0, 500), exprs=NUMBER),
]

VARYING = [
    Type('inet', 'inet', inet, exprs=[('host({c})', True), ('masklen({c})', True)]),
    Type('cidr', 'cidr', cidr, exprs=[('set_masklen({c}::inet, 8)', True)]),
    Type('bit', 'bit(20)', lambda r: bits(r).ljust(20, '0')),
    Type('tsvector', 'tsvector', tsvector),
    Type('int_array', 'int4[]', array(lambda r: str(r.randint(-3, 3))),
         exprs=[('array_length({c}, 1)', True), ('{c}[1]', True)]),
    Type('float_array', 'float8[]', array(floats('1e-5', '1e9')), exact=False),
    Type('text_array', 'text[]', array(lambda r: letters(r, r.randint(1, 3), 'abA'))),
    Type('jsonb', 'jsonb', lambda r: json_value(r), exact=False,
         exprs=[("({c} -> 'a')", False), ('jsonb_typeof({c})', True)]),
    Type('int_range', 'int4range', span(lambda r: r.randint(-20, 20)),
         exprs=[('upper({c})', True), ('isempty({c})', True)]),
    Type('num_range', 'numrange', span(lambda r: r.choice([0, 1, 2, 3, 1.5])), exact=False),
    Type('multirange', 'int4multirange', multispan),
]


def collations(names):
    """Pairs (COLLATE clause, exact) that this server has."""
    found = [('', True), (' COLLATE "C"', True), (' COLLATE "POSIX"', True)]
    for name in ('C.utf8', 'C.UTF-8', 'en_US.utf8', 'pg_c_utf8'):
        if name in names:
            found.append((' COLLATE "%s"' % name, True))
    if 'icu_de' in names:
        found += [(' COLLATE icu_de', True), (' COLLATE icu_nd2', False), (' COLLATE icu_nd1', False)]
    return found


def text_type(rng, names):
    """A text, varchar or bpchar column with a collation."""
    clause, deterministic = rng.choice(collations(names))
    kind = rng.choice(['text', 'text', 'varchar', 'varchar40', 'bpchar', 'bpchar20'])
    decl = {'varchar40': 'varchar(40)', 'bpchar20': 'char(20)'}.get(kind, kind)
    bpchar = kind.startswith('bpchar')
    big = kind == 'text' and rng.random() < 0.15
    limit = {'varchar40': 40, 'bpchar20': 20}.get(kind, 10 ** 6)
    exprs = [(e, deterministic if exact is None else exact) for e, exact in TEXT
             if 'icu_' not in e or 'icu_de' in names]
    exact = deterministic and not bpchar
    if bpchar:
        exprs = [(e, False) for e, _ in exprs if 'md5' not in e and 'convert' not in e]
    # what was added later draws for itself, so that most seeds stay what they were
    other = random.Random(str(rng.getstate()))
    if 'en_US' in clause:
        clause = ' COLLATE "%s"' % other.choice(sorted(n for n in names if re.match('[a-z]+_[A-Z]+.utf8$', n)))
    if kind == 'text' and deterministic and 'citext' in names and other.random() < 0.2:
        kind = decl = 'citext'
        exact, exprs, deterministic = False, [('length({c})', True)], False
    kind += clause.replace(' COLLATE ', '/').replace('"', '')
    result = Type(kind, decl + clause, text(rng, limit, spaces=bpchar, big=big),
                  exact=exact, exprs=exprs, pattern=deterministic)
    result.big = big
    return result


def choose(rng, names, number):
    """A column type for column `number`; `setup` holds the statements that
    create the types it needs."""
    other = random.Random(str(rng.getstate()))
    pick = rng.random()
    if other.random() < NESTED:
        import nested           # which needs this module
        base = nested.choose(other, names, number)
    elif pick < 0.45:
        base = rng.choice(FIXED)
        if base.name == 'interval' and 'pg_c_utf8' in names:    # 17 or later
            base = Type('interval', 'interval', infinite_interval, exact=False, exprs=TIME)
    elif pick < 0.72:
        base = text_type(rng, names)
    elif pick < 0.80:
        base = Type('bytea', 'bytea', bytea(rng), exprs=[('length({c})', True)])
    elif pick < 0.82:
        base = Type('varbit', 'varbit', varbit(rng), exprs=[('length({c})', True)])
    elif pick < 0.85:
        base = Type('name', 'name', short_name(rng), exprs=[('{c}::text', True)])
    elif pick < 0.94:
        base = rng.choice(VARYING)
    elif pick < 0.97:
        base = Type('composite', 'comp%d' % number, composite, exact=False,
                    exprs=[('({c}).a', True), ('({c}).c', False)])
        base.setup = ['CREATE TYPE comp%d AS (a int4, b text%s, c float8)'
                      % (number, rng.choice(collations(names))[0])]
    else:
        base = enum(rng, number)
    if rng.random() < 0.08 and base.name not in ('composite', 'enum'):
        base = domain(base, number)
    return base


def enum(rng, number):
    """An enum whose labels were added out of order, so that its oids are not
    in the order of its values."""
    labels = ['m']
    setup = ["CREATE TYPE enum%d AS ENUM ('m')" % number]
    for label in rng.sample('abcdefgxyz', rng.randint(2, 8)):
        setup.append("ALTER TYPE enum%d ADD VALUE '%s' %s '%s'"
                     % (number, label, rng.choice(['BEFORE', 'AFTER']), rng.choice(labels)))
        labels.append(label)
    result = Type('enum', 'enum%d' % number, lambda r: r.choice(labels),
                  exprs=[('{c}::text', True)])
    result.setup = setup
    return result


def domain(base, number):
    """A domain over the type; the collation goes into the domain."""
    result = Type(base.name + '/domain', 'dom%d' % number, base.value, base.exact,
                  [e for e in base.exprs if '[' not in e[0]], base.pattern)
    result.setup = base.setup + ['CREATE DOMAIN dom%d AS %s' % (number, base.decl)]
    result.big = base.big
    return result
