-- Every kind of sort key: one column of each type, in each direction, with nulls first and last, against
-- core's own sort.
LOAD 'wiscsort';
SET wtest.seed = '0.25';

CREATE TYPE wtest.mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE wtest.mood ADD VALUE 'fine' BEFORE 'happy';
CREATE TYPE wtest.pair AS (a int, b text);
CREATE TYPE wtest.row_wide AS (dropped text, x bool, y numeric, z int8);
ALTER TYPE wtest.row_wide DROP ATTRIBUTE dropped, ADD ATTRIBUTE later int2;
CREATE TYPE wtest.row_deep AS (p wtest.pair, l int4[]);
CREATE TYPE wtest.row_uuids AS (u uuid, n int);
CREATE TYPE wtest.row_coded AS (c text COLLATE "C", n int);
CREATE TYPE wtest.row_named AS (c text COLLATE "und-x-icu", n int);
CREATE TYPE wtest.row_moody AS (m wtest.mood, n int);
CREATE TYPE wtest.row_bare AS ();
CREATE DOMAIN wtest.row_wider AS wtest.row_wide;
CREATE DOMAIN wtest.posint AS int CHECK (VALUE > 0);
CREATE DOMAIN wtest.code AS text COLLATE "C";
CREATE DOMAIN wtest.ints AS int4[];
CREATE TYPE wtest.letters AS RANGE (subtype = text, collation = "C");
CREATE TYPE wtest.words AS RANGE (subtype = text, collation = "und-x-icu");
CREATE TYPE wtest.patterns AS RANGE (subtype = text, subtype_opclass = text_pattern_ops, collation = "und-x-icu");

-- expr makes a value from i (1, 2, ...) and r (random, 0 to 1); specials are literals of the type.
CREATE TABLE wtest.kinds (no int GENERATED ALWAYS AS IDENTITY, type text, coll text, expr text, specials text[]);
INSERT INTO wtest.kinds (type, coll, expr, specials) VALUES
 -- types that are normalised
 ('bool', '', 'r < 0.5', '{}'),
 ('"char"', '', 'chr(1 + (r * 126)::int)::"char"', '{"", "\\200", "\\377", a}'),
 ('int2', '', '(r * 65535 - 32768)::int2', '{0, -1, 1, -32768, 32767}'),
 ('int4', '', '((r - 0.5) * 4e9)::int4', '{0, -1, 1, -2147483648, 2147483647}'),
 ('int8', '', '((r - 0.5) * 1e19 / 1.1)::int8', '{0, -1, 1, -9223372036854775808, 9223372036854775807}'),
 ('float4', '', '((r - 0.5) * 1e9)::float4', '{0, -0, NaN, Infinity, -Infinity, 1e-45, -1e-45, 3.4028235e38, -3.4028235e38}'),
 ('float8', '', '(r - 0.5) * 1e9', '{0, -0, NaN, Infinity, -Infinity, 5e-324, -5e-324, 1.7976931348623157e308}'),
 ('oid', '', '(r * 4294967295)::int8::oid', '{0, 1, 2147483647, 2147483648, 4294967295}'),
 ('money', '', '((r - 0.5) * 1e9)::int8::money', '{-92233720368547758.08, 92233720368547758.07, 0, -0.01}'),
 ('date', '', 'date ''2000-01-01'' + ((r - 0.5) * 1e6)::int', '{infinity, -infinity, 1999-12-31, 2000-01-01, 4713-01-01 BC}'),
 ('time', '', 'time ''00:00'' + r * interval ''1 day''', '{00:00, 24:00, 23:59:59.999999}'),
 ('timetz', '', '(time ''00:00'' + r * interval ''1 day'') at time zone make_interval(mins => (i % 1400) - 700)', '{00:00+00, 24:00+15, 00:00-15, 12:00+01, 11:00+00}'),
 ('timestamp', '', 'timestamp ''2000-01-01'' + (r - 0.5) * interval ''4000 years''', '{infinity, -infinity, 2000-01-01, 4713-01-01 BC}'),
 ('timestamptz', '', 'timestamptz ''2000-01-01'' + (r - 0.5) * interval ''4000 years''', '{infinity, -infinity, epoch}'),
 ('interval', '', 'make_interval(months => ((r - 0.5) * 100)::int, days => (i % 61) - 30, secs => (r - 0.5) * 1e6)', '{1 month, 30 days, 720 hours, 29 days 24:00:00, 1 month 1 day -24:00:00, 31 days, -1 month, -30 days, 1 month -30 days, 0, 0.000001 seconds, -0.000001 seconds, "178000000 years", "-178000000 years", "-178956970 years -8 months -2147483648 days -2562047788:00:54.775807", "178956970 years 7 months 2147483647 days 2562047788:00:54.775806"}'),
 ('uuid', '', 'md5(r::text)::uuid', '{00000000-0000-0000-0000-000000000000, ffffffff-ffff-ffff-ffff-ffffffffffff, 80000000-0000-0000-0000-000000000000}'),
 ('bytea', '', 'substr(sha256(r::text::bytea), 1, i % 33)', '{"", "\\\\x00", "\\\\x0000", "\\\\x0001", "\\\\xff", "\\\\xffff", "\\\\x00ff", "\\\\x01"}'),
 ('name', '', 'md5(r::text)::name', '{"", a, aa, A}'),
 ('text', 'C', 'substr(md5(r::text), 1, i % 33)', '{"", a, aa, A, "a ", é, zz, 0123456789, 01234567890, 0123456789a}'),
 ('varchar(20)', 'C', 'substr(md5(r::text), 1, i % 21)', '{"", a, aa, A, "a ", é}'),
 ('char(12)', 'C', 'substr(md5(r::text), 1, i % 13)', '{"", a, "a  ", A, "a b", "a\tb", é}'),
 ('text', 'POSIX', 'substr(md5(r::text), 1, i % 33)', '{"", a, aa, A, é}'),
 ('text', 'ucs_basic', 'substr(md5(r::text), 1, i % 33)', '{"", a, aa, A, é}'),
 ('wtest.posint', '', '1 + (r * 2e9)::int4', '{1, 2147483647}'),
 ('wtest.code', '', 'substr(md5(r::text), 1, i % 33)', '{"", a, aa}'),
 ('macaddr', '', 'substr(md5(r::text), 1, 12)::macaddr', '{00:00:00:00:00:00, ff:ff:ff:ff:ff:ff}'),
 ('macaddr8', '', 'substr(md5(r::text), 1, 16)::macaddr8', '{00:00:00:00:00:00:00:00, ff:ff:ff:ff:ff:ff:ff:ff}'),
 ('tid', '', 'format(''(%s,%s)'', (r * 4294967295)::int8, 1 + i % 300)::tid', '{"(0,0)", "(0,65535)", "(1,0)", "(255,1)", "(256,1)", "(65535,1)", "(65536,0)", "(2147483648,1)", "(4294967295,0)", "(4294967295,65535)", "(1,2)", "(1,10)"}'),
 ('xid8', '', '((r * 9e18)::int8)::text::xid8', '{0, 18446744073709551615}'),
 ('pg_lsn', '', 'pg_lsn ''0/0'' + (r * 9e18)::int8', '{0/0, FFFFFFFF/FFFFFFFF}'),
 ('inet', '', 'set_masklen((CASE i % 4 WHEN 0 THEN inet ''2001:db8::'' ELSE inet ''0.0.0.0'' END) + (r * 4294967295)::int8, CASE i % 3 WHEN 0 THEN i % 33 ELSE 32 END)', '{0.0.0.0, 0.0.0.0/0, 10.0.0.0/8, 10.1.2.3/8, 10.1.2.3/9, 10.1.2.4/8, 10.128.0.0/9, 10.0.0.1/24, 10.0.0.1, 255.255.255.255, 255.255.255.255/0, ::, ::/0, ::1, ::1/0, 2001:db8::1/32, 2001:db8::1/64, 2001:db8::2/64, ffff::/128}'),
 ('cidr', '', 'network(set_masklen(inet ''0.0.0.0'' + (r * 4294967295)::int8, i % 33))', '{0.0.0.0/0, 0.0.0.0/8, 0.0.0.0/32, 10.0.0.0/8, 10.0.0.0/9, 10.128.0.0/9, ::/0, ::/128, 2001:db8::/32}'),
 ('bit(12)', '', '(r * 4095)::int::bit(12)', '{000000000000, 111111111111, 000000010000, 111111110000}'),
 ('bit(70)', '', '((i % 3)::bit(2) || (r * 1e18)::int8::bit(60) || B''00000000'')::bit(70)', ARRAY[repeat('0', 70), repeat('1', 70), repeat('0', 69) || '1']),
 ('varbit', '', 'substring((r * 4294967295)::int8::bit(40) for i % 41)', '{"", 0, 00, 00000000, 000000000, 1, 10, 01, 10000000, 100000000, 1000000000000000, 11111111, 1111111100000000}'),
 -- types that are compared
 ('numeric', '', '((r - 0.5) * 10 ^ (i % 40 - 20))::numeric', '{0, 0.00, -0.0, 1, 1.0, 1.00, NaN, Infinity, -Infinity, 1e100, -1e-100}'),
 ('text', 'und-x-icu', 'substr(md5(r::text), 1, i % 33)', '{"", a, A, "a b", ab, é, e, É, ß, ss, "a-b"}'),
 ('text', 'de-x-icu', 'substr(md5(r::text), 1, i % 33)', '{"", a, A, ä, Ä, ae, z}'),
 ('text', 'wtest_nocase', 'substr(md5(r::text), 1, i % 4)', '{"", a, A, b, B, aa, aA, Aa, AA, é, É}'),
 ('char(12)', 'und-x-icu', 'substr(md5(r::text), 1, i % 13)', '{"", a, "a  ", A, "a b"}'),
 ('wtest.mood', '', '(enum_range(NULL::wtest.mood))[1 + i % 4]', '{sad, ok, fine, happy}'),
 ('int4[]', '', 'ARRAY[i % 7, (r * 1000)::int]', '{"{}", "{NULL}", "{1,NULL}", "{1}", "{1,2}", "{{1},{2}}"}'),
 ('text[]', '', 'ARRAY[substr(md5(r::text), 1, i % 5), md5(r::text)]', '{"{}", "{NULL}", "{a,NULL}", "{a}"}'),
 ('jsonb', '', 'jsonb_build_object(''k'', i % 9, md5(r::text), r)', '{null, true, 1, 1.0, "\"a\"", "[]", "{}", "[1,2]"}'),
 ('int4range', '', 'int4range(i % 50, i % 50 + (r * 100)::int)', '{empty, "(,)", "[1,)", "(,1]", "[1,2)"}'),
 ('int4multirange', '', 'multirange(int4range(i % 50, i % 50 + (r * 100)::int))', '{"{}", "{(,)}", "{[1,2),[3,4)}"}'),
 ('numrange', '', 'numrange((r * 10)::numeric(4, 2), NULL)', '{empty, "[1.0,2)", "[1.00,2)"}'),
 -- the same with many values, whose first parts tell them apart, or not
 ('int4[]', '', '(ARRAY[((r - 0.5) * 4e9)::int, i, NULL])[1:1 + i % 3]', '{"{}", "{NULL}", "{NULL,NULL}", "{NULL,1}", "{-2147483648}", "{-2147483648,NULL}", "{2147483647}", "{1,2}", "[0:1]={1,2}", "[-5:-5]={1}", "{{1,2}}", "{{1},{2}}", "{{{1},{2}}}", "{{1,NULL},{3,4}}"}'),
 ('wtest.ints', '', 'ARRAY[1, 2, i % 9, (r * 1000)::int]', '{"{}", "{1,2}", "{1,2,3}"}'),
 ('int8[]', '', 'ARRAY[i % 3, ((r - 0.5) * 1e18)::int8]', '{"{}", "{0}", "{0,NULL}"}'),
 ('bool[]', '', 'ARRAY[r < 0.5, i % 3 = 0, NULL, i % 7 < 3, r < 0.1, i % 2 = 0]', '{"{}", "{t}", "{f}", "{NULL}"}'),
 ('uuid[]', '', 'ARRAY[md5(r::text)::uuid, md5(i::text)::uuid]', '{"{}", "{00000000-0000-0000-0000-000000000000,NULL}"}'),
 ('float8[]', '', 'ARRAY[(r - 0.5) * 1e9, i]', '{"{0}", "{-0}", "{NaN}", "{Infinity}", "{-Infinity}", "{0,-0}", "{-0,0}"}'),
 ('numeric[]', '', 'ARRAY[((r - 0.5) * 10 ^ (i % 40 - 20))::numeric, i]', '{"{1,2}", "{1.0,1}", "{1.00,3}", "{NaN,1}", "{NULL}", "{}"}'),
 ('bytea[]', '', 'ARRAY[substr(sha256(r::text::bytea), 1, i % 4), sha256(i::text::bytea)]', ARRAY['{}', '{""}', '{"\\x00"}', '{"\\x0000"}', '{"\\x00ff"}', '{"",NULL}']),
 ('varbit[]', '', 'ARRAY[(i % 8)::bit(3)::varbit, (r * 1e9)::int::bit(32)::varbit]', '{"{}", "{0}", "{00}", "{1}", "{\"\"}"}'),
 ('inet[]', '', 'ARRAY[inet ''10.0.0.0'' + (r * 1e6)::int]', '{"{::1}", "{10.0.0.0/8}", "{10.0.0.0}", "{10.0.0.0/8,NULL}"}'),
 ('text[]', 'C', 'ARRAY[substr(md5(r::text), 1, i % 5), md5(i::text)]', '{"{}", "{NULL}", "{\"\"}", "{\"\",NULL}", "{\"\",\"\"}", "{a,NULL}", "{a}", "{a,b}", "{ab}"}'),
 ('text[]', 'und-x-icu', 'ARRAY[substr(md5(r::text), 1, i % 5), md5(i::text)]', '{"{}", "{NULL}", "{a}", "{A}", "{a,b}", "{A,a}", "{é}", "{e}", "{É,1}"}'),
 ('char(3)[]', 'C', 'ARRAY[substr(md5(r::text), 1, i % 3), md5(i::text)::char(3)]', '{"{\"\"}", "{\" \"}", "{\"a \",b}", "{a,c}"}'),
 ('name[]', '', 'ARRAY[substr(md5(r::text), 1, i % 5)::name, md5(i::text)::name]', '{"{}", "{a}", "{a,b}"}'),
 ('int4range[]', '', 'ARRAY[int4range(i % 50, i % 50 + (r * 100)::int), int4range(i, NULL)]', '{"{}", "{empty}", "{NULL}", "{\"(,)\"}", "{\"[1,1]\"}"}'),
 ('int2vector', '', 'format(''%s %s'', i % 9, (r * 1000)::int)::int2vector', '{"", 1, "1 2"}'),
 ('wtest.mood[]', '', 'ARRAY[(enum_range(NULL::wtest.mood))[1 + i % 4], (enum_range(NULL::wtest.mood))[1 + (r * 3)::int]]', '{"{sad}", "{ok}", "{fine}", "{}"}'),
 ('int4range', '', 'int4range(((r - 0.5) * 4e9)::int, 2147483647 - i % 3)', '{empty, "(,)", "[1,)", "(,1]", "[1,1]", "(,2147483647)", "[-2147483648,)"}'),
 ('tstzrange', '', 'tstzrange(timestamptz ''2000-01-01'' + r * interval ''9 years'', NULL, (ARRAY[''[)'', ''()''])[1 + i % 2])', '{empty, "(,)", "[infinity,)", "[-infinity,)", "(-infinity,)", "(,infinity]", "(,infinity)", "[2000-01-01,2000-01-01]", "[2000-01-01,2000-01-02)", "[2000-01-01,2000-01-02]", "(2000-01-01,2000-01-02]", "(2000-01-01,2000-01-02)"}'),
 ('daterange', '', 'daterange(date ''2000-01-01'' + i % 5, date ''2000-02-01'' + (r * 9999)::int)', '{empty, "(,)", "[infinity,)"}'),
 ('numrange', '', 'numrange((r * 10)::numeric(9, 5), 10 + i % 3)', '{empty, "[1.0,2)", "[1.00,2.0]", "(1,2)", "(1.0,2]", "(,1.0)", "(,1.00]"}'),
 ('wtest.letters', '', 'wtest.letters(substr(md5(r::text), 1, i % 5), ''z'' || i % 3)', '{empty, "(,)", "[a,)", "(a,)", "(,a]", "(,a)", "[a,b)", "(a,b]", "[\"\",a)"}'),
 ('wtest.words', '', 'wtest.words(substr(md5(r::text), 1, i % 5), ''z'' || i % 3)', '{empty, "(,)", "[a,)", "[A,)", "(a,)", "(,a]", "(,A)", "[a,A]"}'),
 ('wtest.patterns', '', 'wtest.patterns(substr(md5(r::text), 1, i % 5), ''z'' || i % 3)', '{empty, "(,)", "[a,)", "[A,)", "(a,)", "(,a]", "(,A)", "[A,a]"}'),
 ('int4multirange', '', 'int4multirange(int4range(i % 50, i % 50 + 3), int4range(100, 100 + (r * 1e9)::int), int4range(NULL, -i))', '{"{}", "{(,)}", "{(,1)}", "{[1,2),[3,4)}", "{[1,2)}", "{[1,3)}"}'),
 ('tsmultirange', '', 'tsmultirange(tsrange(timestamp ''2000-01-01'' + r * interval ''9 years'', NULL))', '{"{}", "{(,)}", "{[2000-01-01,2000-01-02),(2000-01-02,2000-01-03)}", "{[2000-01-01,2000-01-02)}"}'),
 ('jsonb', '', 'to_jsonb(((r - 0.5) * 10 ^ (i % 30 - 15))::numeric)', '{null, true, false, 0, 0.00, 1e50, "[]", "{}", "\"\"", "\"a\"", "[0]", "[[]]"}'),
 ('jsonb', '', 'to_jsonb(substr(md5(r::text), 1, i % 33))', '{"\"\"", "\"a\"", "\"aa\"", "\"é\"", "[]", "[\"\"]", "1"}'),
 ('jsonb', '', 'CASE i % 4 WHEN 0 THEN jsonb_build_array(i % 3, r) WHEN 1 THEN jsonb_build_array(i % 2 = 0, NULL, md5(r::text)) WHEN 2 THEN jsonb_build_array(jsonb_build_array(), jsonb_build_object(''k'', r)) ELSE (SELECT jsonb_agg(n) FROM generate_series(1, i % 40) n) END', '{"[]", "[null]", "[[]]", "[{}]", "[[[]]]", "[true]", "[false]", "[1.0]", "[1]"}'),
 ('jsonb', '', 'CASE i % 6 WHEN 0 THEN jsonb_build_object(''id'', r, ''kind'', i % 3) WHEN 1 THEN jsonb_build_object(''k'', i % 2 = 0, ''id'', r) WHEN 2 THEN jsonb_build_object(''name'', md5(r::text)) WHEN 3 THEN jsonb_build_object(substr(chr(97 + i / 6 % 26) || ''x'', 1, 1 + i % 4 / 2), r) WHEN 4 THEN jsonb_build_object(''a'', substr(''xyzx'', 1, 3 + i / 6 % 2), ''k'', r * 1e9) ELSE jsonb_build_object(''id'', jsonb_build_object(''k'', NULL, ''x'', r), ''k'', jsonb_build_array()) END', '{"{}", "{\"\": 1}", "{\"\": 1.0}", "{\"id\": null}", "{\"id\": {}}", "{\"id\": []}", "{\"é\": 1}", "{\"ID\": 1}"}'),
 ('wtest.pair', '', 'ROW(i % 5, substr(md5(r::text), 1, i % 9))::wtest.pair', '{"(,)", "(1,)", "(,a)", "(1,a)"}'),
 ('wtest.pair', '', 'ROW(((r - 0.5) * 4e9)::int, md5(i::text))::wtest.pair', '{"(,)", "(1,)", "(,a)", "(1,a)", "(-2147483648,)", "(2147483647,a)"}'),
 ('wtest.row_wide', '', 'ROW(r < 0.5, (r * 100)::numeric(5, 2), i % 9, NULL)::wtest.row_wide', '{"(,,,)", "(t,,,)", "(,1.0,,1)", "(,1.00,1,)", "(f,1.0,2,-1)", "(f,1.00,2,3)", "(t,NaN,,)"}'),
 ('wtest.row_wider', '', 'ROW(r < 0.5, (r * 100)::numeric(5, 2), i % 9, i % 5)::wtest.row_wide', '{"(,,,)", "(t,,,)", "(f,1.0,2,-1)", "(f,1.00,2,3)"}'),
 ('wtest.row_wide[]', '', 'ARRAY[ROW(r < 0.5, (r * 100)::numeric(5, 2), i % 9, i % 5)::wtest.row_wide, NULL]', ARRAY['{}', '{NULL}', '{"(t,,,)"}', '{"(t,,,)",NULL}', '{"(,,,)"}']),
 ('wtest.row_deep', '', 'ROW(ROW(i % 5, md5(r::text)), ARRAY[i, (r * 1000)::int])::wtest.row_deep', ARRAY['(,)', '("(,)",)', '("(1,)",{})', '(,"{1,2}")', '("(1,a)","{1,NULL}")', '("(1,a)",{1})', '(,{1})']),
 ('wtest.row_uuids', '', 'ROW(md5((i % 60)::text)::uuid, (r * 100)::int)::wtest.row_uuids', '{"(,)", "(,1)", "(00000000-0000-0000-0000-000000000000,)", "(ffffffff-ffff-ffff-ffff-ffffffffffff,1)"}'),
 ('wtest.row_coded', '', 'ROW(substr(md5(r::text), 1, i % 5) || repeat(md5(i::text), CASE WHEN i % 40 = 0 THEN 300 ELSE 0 END), (r * 100)::int)::wtest.row_coded', ARRAY['(,)', '(,1)', '("",1)', '("",)', '(a,)', '(a,-1)', '(a,1)', '(aaaaaaaaa,1)', '(aaaaaaaaa,)']),
 ('wtest.row_named', '', 'ROW(substr(md5(r::text), 1, i % 5), (r * 100)::int)::wtest.row_named', ARRAY['(,)', '(,1)', '("",1)', '(a,)', '(A,-1)', '(a,1)', '(é,1)', '(E,)']),
 ('wtest.row_moody', '', 'ROW((enum_range(NULL::wtest.mood))[1 + i % 4], (r * 100)::int)::wtest.row_moody', '{"(,)", "(sad,)", "(fine,1)", "(happy,)"}'),
 ('wtest.row_bare', '', 'ROW()::wtest.row_bare', '{"()"}'),
 ('tsvector', '', 'to_tsvector(''simple'', md5(r::text))', '{"", a, "a b"}'),
 ('oidvector', '', 'format(''%s %s'', i % 9, (r * 1000)::int)::oidvector', '{"", 1, "1 2"}');

-- One table for each kind: rank tells which values are equal in core's eyes, so that an order by the key
-- alone has one right answer.
CREATE FUNCTION wtest.try_kind(kind wtest.kinds) RETURNS TABLE (orderings text, with_second_key text)
LANGUAGE plpgsql AS $$
DECLARE
    declared text := kind.type || coalesce(' COLLATE ' || quote_ident(nullif(kind.coll, '')), '');
    dir text;
    verdict text;
    -- 3328 entries of 16 bytes are one run at 64 kB: of one kind in four there are more
    size int := CASE WHEN hashtext(kind.type || kind.coll) % 4 = 0 THEN 3600 ELSE 700 END;
BEGIN
    PERFORM setseed(current_setting('wtest.seed')::float8);
    EXECUTE 'CREATE TEMP TABLE raw (i int, k ' || declared || ')';
    EXECUTE format('INSERT INTO raw SELECT i, CASE WHEN i %% 11 > 0 THEN %s END
                      FROM (SELECT i, random() AS r FROM generate_series(1, %s) i) s', kind.expr, size);
    EXECUTE format('INSERT INTO raw SELECT i, s::%s FROM unnest($1) s, generate_series(1, 5) i', kind.type)
      USING kind.specials;
    CREATE TEMP TABLE t AS
        SELECT (row_number() OVER (ORDER BY md5(i::text || coalesce(k::text, '?'))))::int AS id,
               dense_rank() OVER (ORDER BY k) AS rank, k, i % 3 AS few
          FROM raw;
    ANALYZE t;
    orderings := '';
    with_second_key := '';
    FOREACH dir IN ARRAY ARRAY['ASC', 'ASC NULLS FIRST', 'DESC', 'DESC NULLS LAST'] LOOP
        verdict := wtest.compare(format('SELECT rank FROM t ORDER BY k %s', dir));
        IF verdict <> 'same' THEN
            orderings := orderings || dir || ': ' || verdict || '; ';
        END IF;
        verdict := wtest.compare(format('SELECT few, k, id FROM t ORDER BY few DESC, k %s, id', dir));
        IF verdict <> 'same' THEN
            with_second_key := with_second_key || dir || ': ' || verdict || '; ';
        END IF;
    END LOOP;
    DROP TABLE raw, t;
    orderings := coalesce(nullif(orderings, ''), 'same');
    with_second_key := coalesce(nullif(with_second_key, ''), 'same');
    RETURN NEXT;
END $$;

SET client_min_messages = warning;
SET wiscsort.enable = off;
SELECT type, coll, t.*
  FROM (SELECT k FROM wtest.kinds k ORDER BY no) s, LATERAL (SELECT (k).type, (k).coll) c,
       LATERAL wtest.try_kind(k) t;
RESET wiscsort.enable;

-- Without a null byte: NOT NULL columns, and keys of exactly ten bytes and one more.
CREATE TEMP TABLE nn (a int8 NOT NULL, b int2 NOT NULL, c "char" NOT NULL, id int NOT NULL);
INSERT INTO nn SELECT (random() * 5)::int8 - 3, (random() * 5)::int2 - 2, chr(65 + (random() * 3)::int)::"char", i
                 FROM generate_series(1, 2000) i;
SELECT wtest.compare('SELECT a, b FROM nn ORDER BY a, b') AS ten_bytes,
       wtest.compare('SELECT a, b, c FROM nn ORDER BY a DESC, b, c DESC') AS eleven_bytes,
       wtest.compare('SELECT * FROM nn ORDER BY c DESC, b DESC, a, id') AS all_columns,
       wtest.compare('SELECT a FROM nn ORDER BY a DESC') AS single;

-- Infinite intervals, from 17 on.
CREATE TEMP TABLE spans AS
    SELECT i AS id, CASE WHEN current_setting('server_version_num')::int < 170000 THEN NULL
                         WHEN i % 3 = 0 THEN 'infinity' WHEN i % 3 = 1 THEN '-infinity' END::interval AS k
      FROM generate_series(1, 60) i
    UNION ALL
    SELECT 100 + i, make_interval(months => s * 2147483647, days => s * (2147483500 + i), secs => s * 9e12)
      FROM generate_series(1, 60) i, unnest('{1, -1}'::int[]) s;
SELECT wtest.compare('SELECT k FROM spans ORDER BY k') AS ascending,
       wtest.compare('SELECT k, id FROM spans ORDER BY k DESC NULLS LAST, id') AS descending;

-- Arrays that are expanded when they come, that are toasted, and that have few values at first.
CREATE TEMP TABLE arrays AS
    SELECT i AS id, ARRAY[(random() * 1e9)::int, NULL, i] AS k,
           CASE WHEN i % 50 = 0 THEN ARRAY(SELECT i % 7 * 1000 + n FROM generate_series(1, 3000) n) ELSE ARRAY[i % 7 * 1000 + 1, i] END AS long,
           CASE WHEN i <= 17000 THEN ARRAY['beginning', chr(97 + i % 5)] ELSE ARRAY[substr(md5(i::text), 1, i % 4), md5(i::text)] END COLLATE "C" AS late
      FROM generate_series(1, 20000) i;
SELECT wtest.compare('SELECT id FROM arrays ORDER BY array_append(k, id)') AS expanded,
       wtest.compare('SELECT id FROM arrays ORDER BY array_prepend(NULL, k) DESC') AS expanded_again,
       wtest.compare('SELECT id FROM arrays ORDER BY long, id') AS toasted,
       wtest.compare('SELECT id FROM arrays ORDER BY late DESC, id') AS late,
       wtest.compare('SELECT id FROM arrays ORDER BY id % 3, late, k') AS behind;

-- Types of fixed and of variable width in one key: intervals that fill the prefix, hosts and nets, bits. Long bit
-- strings are compressed, or out of line.
CREATE TEMP TABLE mixed (d interval NOT NULL, net inet, b varbit NOT NULL, at tid, id int NOT NULL);
INSERT INTO mixed
SELECT (ARRAY['1 mon', '30 days', '29 days 24:00:00', '-1 mon', '0', '-00:00:01'])[1 + i % 6]::interval,
       (ARRAY['10.0.0.0/8', '10.1.2.3/8', '10.1.2.3', '::/0', '::1/64', NULL])[1 + (i / 6) % 6]::inet,
       CASE i % 5 WHEN 0 THEN repeat('0', i % 70) WHEN 1 THEN repeat('10', 20000 + i % 3) WHEN 2 THEN '1' ELSE repeat('0', 40000) || i % 2 END::varbit,
       format('(%s,%s)', i % 3, i % 2)::tid, i
  FROM generate_series(1, 600) i;
INSERT INTO mixed SELECT '1 day', '::2', (SELECT string_agg(('x' || md5(i::text || j))::varbit(128)::text, '')::varbit FROM generate_series(1, 300) j), '(0,0)', i
  FROM generate_series(601, 640) i;
SELECT bool_or(pg_column_size(b) < bit_length(b) / 16) AS compressed, max(pg_column_size(b)) > 4000 AS out_of_line FROM mixed;
SELECT wtest.compare('SELECT extract(epoch FROM d) FROM mixed ORDER BY d') AS interval_alone,
       wtest.compare('SELECT d, id FROM mixed ORDER BY d DESC, id') AS interval_exact,
       wtest.compare('SELECT net, d, id FROM mixed ORDER BY net DESC, d, id DESC') AS inet_interval,
       wtest.compare('SELECT extract(epoch FROM d), net FROM mixed ORDER BY d, net NULLS FIRST') AS interval_inet,
       wtest.compare('SELECT b FROM mixed ORDER BY b') AS bits,
       wtest.compare('SELECT b, at, id FROM mixed ORDER BY b DESC, at DESC, id') AS bits_tid,
       wtest.compare('SELECT at, net, b, id FROM mixed ORDER BY at, net DESC NULLS LAST, b, id') AS tid_inet_bits;

-- Empty input, one row, nothing but nulls.
CREATE TEMP TABLE empty (a int, b text);
CREATE TEMP TABLE nulls AS SELECT NULL::int AS a, NULL::text AS b FROM generate_series(1, 500);
SELECT wtest.compare('SELECT * FROM empty ORDER BY a, b') AS no_rows,
       wtest.compare('SELECT * FROM (SELECT * FROM nulls LIMIT 1) s ORDER BY a, b') AS one_row,
       wtest.compare('SELECT * FROM nulls ORDER BY a DESC, b NULLS FIRST') AS all_null;
