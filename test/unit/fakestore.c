/*-------------------------------------------------------------------------
 * fakestore.c - a store that keeps rows in an array, and the keys that go with it.
 *
 * In the place of store/store.c, key/keyspec.c, key/fetch.c and key/transform.c: rows are virtual slots
 * of int8 columns (or text, in the columns whose order is guessed), and an ordering operator is the number
 * of an encoding.  The comparators leave memory behind, as those of toasted values do.
 *
 * Rows count as memory until the store is asked to spill.  From then on they are written, too, as a spool's
 * are: by the backend, or by a helper if the request wants one.  Nothing reads that file; what is handed out comes
 * from the array.  Behind the request's allowance of it rows travel, in arenas and in runs.  Entries are taken from the stream by a helper if it allows one.
 *
 * Memory: the array, and two buffers.  Errors: those of the file set and of the stream.
 *-------------------------------------------------------------------------
 */
#include "fakestore.h"

#include "access/htup_details.h"
#include "mb/pg_wchar.h"

#include "key/text.h"
#include "store/batch.h"

int			fake_guess_wrong;
int			fake_strange;
bool		fake_ignores;
bool		fake_alike;
bool		fake_store_keeps;

#define INT8	WS_ENC_INT8
#define NONE	WS_ENC_NONE

const FakeKey fake_keys[FAKE_KEYS] = {
	{.name = "exact", .ncols = 1, .encoding = {INT8}},
	{.name = "exact with nulls", .ncols = 1, .encoding = {INT8}, .descending = {true},
	.nulls_first = {true}, .nullable = {true}},
	{.name = "bytes", .ncols = 2, .encoding = {INT8, INT8}},
	{.name = "bytes with nulls", .ncols = 2, .encoding = {INT8, INT8}, .descending = {true, false},
	.nulls_first = {false, true}, .nullable = {true, true}},
	{.name = "long", .ncols = 12,
	.encoding = {INT8, INT8, INT8, INT8, INT8, INT8, INT8, INT8, INT8, INT8, INT8, INT8},
	.descending = {[11] = true}, .constant = 11},
	{.name = "comparator", .ncols = 2, .encoding = {NONE, INT8}, .descending = {false, true},
	.nulls_first = {true, false}, .nullable = {true, false}},
	{.name = "comparator behind", .ncols = 2, .encoding = {INT8, NONE}, .descending = {false, true},
	.nullable = {true, true}},
	{.name = "guess", .ncols = 2, .encoding = {WS_ENC_TRANSFORMED, INT8}, .nullable = {true}},
	{.name = "dear", .ncols = 4, .encoding = {NONE, WS_ENC_TRANSFORMED, NONE, INT8},
	.descending = {true, false, true, false}, .nulls_first = {true, false, true, false},
	.nullable = {true, true, false, false}},
	{.name = "letters", .ncols = 2, .encoding = {WS_ENC_LETTERS, INT8}, .nullable = {true, false}},
	{.name = "letters behind", .ncols = 4, .encoding = {INT8, WS_ENC_LETTERS, WS_ENC_LETTERS, INT8},
	.descending = {false, true, false, true}, .nulls_first = {false, true, false, false},
	.nullable = {true, true, true, true}, .constant = 1},
	{.name = "letters behind a prefix", .ncols = 4, .encoding = {INT8, INT8, WS_ENC_LETTERS, INT8},
	.nullable = {true, true, false, false}},
	{.name = "coded", .ncols = 2, .encoding = {NONE, INT8}, .descending = {false, true}},
	{.name = "strangers", .ncols = 6, .encoding = {INT8, INT8, INT8, INT8, INT8, INT8},
	.descending = {[4] = true}, .constant = 2, .rare = {[3] = true, [4] = true}},
	{.name = "comparator far behind", .ncols = 7, .encoding = {INT8, INT8, INT8, INT8, INT8, NONE, INT8},
	.descending = {[4] = true, [6] = true}, .nullable = {[5] = true}, .constant = 4},
};

/* ---- keys: in the place of keyspec.c, fetch.c and transform.c ---- */

static int
fake_compare(Datum x, Datum y, SortSupport ssup)
{
	int64		a = DatumGetInt64(x);
	int64		b = DatumGetInt64(y);

	(void) palloc(1);			/* nobody frees it */
	return (a > b) - (a < b);
}

static int
compare_texts(Datum x, Datum y)
{
	Size		n = VARSIZE_ANY_EXHDR(DatumGetPointer(x));
	Size		m = VARSIZE_ANY_EXHDR(DatumGetPointer(y));
	int			cmp = memcmp(VARDATA_ANY(DatumGetPointer(x)), VARDATA_ANY(DatumGetPointer(y)), Min(n, m));

	return cmp != 0 ? cmp : (n > m) - (n < m);
}

static int
fake_compare_text(Datum x, Datum y, SortSupport ssup)
{
	(void) palloc(1);
	return compare_texts(x, y);
}

/* A text without its tildes, or with these below all letters. */
static Datum
without_tildes(Datum x, bool below, char *out)
{
	Size		n = VARSIZE_ANY_EXHDR(DatumGetPointer(x));
	const char *bytes = VARDATA_ANY(DatumGetPointer(x));
	Size		m = 0;

	for (Size i = 0; i < n; i++)
		if (bytes[i] != '~' || below)
			out[VARHDRSZ + m++] = bytes[i] == '~' ? 1 : bytes[i];
	SET_VARSIZE(out, VARHDRSZ + m);
	return PointerGetDatum(out);
}

/* Texts whose letters tell: if some are ignored, these count last. */
static int
compare_letters(Datum x, Datum y)
{
	union
	{
		int32		header;
		char		bytes[100];
	}			a[2],
				b[2];
	int			cmp;

	if (!fake_ignores)
		return compare_texts(x, y);
	cmp = compare_texts(without_tildes(x, false, a[0].bytes), without_tildes(y, false, b[0].bytes));
	if (cmp != 0)
		return cmp;
	return compare_texts(without_tildes(x, true, a[1].bytes), without_tildes(y, true, b[1].bytes));
}

static int
fake_compare_letters(Datum x, Datum y, SortSupport ssup)
{
	(void) palloc(1);
	return compare_letters(x, y);
}

/* No value here is made of parts. */
bool
ws_nested_vote(SortSupport ssup, const Datum *value)
{
	return false;
}

void
ws_nested_guess(SortSupport guess, Datum value, Size wanted, uint8 *out)
{
	memset(out, 0, wanted);
}

Size
ws_transform(const WsTransform *transform, const char *text, Size n, Size wanted, char *out)
{
	Size		length = 0;
	int			sum = 0;
	bool		wrong;

	for (Size i = 0; i < n; i++)
		sum += text[i];
	wrong = fake_guess_wrong > 0 && sum % fake_guess_wrong == 0;
	/* letters that are not of ASCII weigh nothing */
	for (Size i = 0; i < n; i++)
		if (!IS_HIGHBIT_SET(text[i]))
			out[length++] = wrong ? 'z' + 'a' - text[i] : text[i];
	return length;
}

int
GetDatabaseEncoding(void)
{
	return PG_UTF8;
}

WsAlphabet *
ws_alphabet_of(const WsTransform *transform)
{
	return ws_alphabet_create(transform);
}

/* In the place of lettertable.c: letters are in the order of their bytes. */
const WsLetterTable *
ws_letter_table(const WsKeyColumn *col, bool make)
{
	static WsLetterTable letters;

	if (col->transform == NULL)
		return NULL;
	memset(letters.lettered, WS_LETTERS_STRANGE, sizeof(letters.lettered));
	for (int i = 0x20; i < 0x7F; i++)
	{
		letters.places[i][0] = (uint8) (i - 0x20 + WS_SHIFT + 1);
		letters.lettered[i] = WS_LETTERS_PLAIN;
	}
	letters.ignores = fake_ignores;
	letters.ignored['~'] = fake_ignores;
	if (fake_ignores)
		letters.places['~'][0] = 0;
	letters.places[0xE9][0] = 200;
	letters.lettered[0xE9] = WS_LETTERS_ACCENTED;
	return &letters;
}

/* No text here is compared in lower case. */
struct varlena *
ws_lowered(Datum value)
{
	exit(1);
}

/* Bytes of a text that count. */
Size
ws_icu_length(const WsKeyColumn *col, const char *text, Size n)
{
	return n;
}

#ifndef ICU_OF_ITS_OWN
/* No column has keys of ICU's. */
bool
ws_icu_key(const WsIcu *icu, const char *text, Size n, uint64 *key)
{
	return false;
}

void
ws_icu_failed(void)
{
	exit(1);
}
#endif

static inline bool
is_text(WsEncoding encoding)
{
	return encoding == WS_ENC_TRANSFORMED || encoding == WS_ENC_LETTERS;
}

/* An operator is an encoding, and 0x100 if it is descending. */
WsKeySpec *
ws_keyspec_create(TupleDesc desc, int ncols, const AttrNumber *attnos, const Oid *sortops,
				  const Oid *collations, const bool *nulls_first, const bool *notnull)
{
	WsKeySpec  *spec = palloc0(sizeof(WsKeySpec));
	int			bytes = 0;

	spec->ncols = ncols;
	spec->cols = palloc0(ncols * sizeof(WsKeyColumn));
	spec->compare = palloc0(ncols * sizeof(SortSupportData));
	for (int i = 0; i < ncols; i++)
	{
		WsKeyColumn *col = &spec->cols[i];

		col->attno = attnos[i];
		col->encoding = (WsEncoding) (sortops[i] & 0xFF);
		if (col->encoding == WS_ENC_LETTERS)
		{
			col->encoding = WS_ENC_TRANSFORMED;
			col->transform = (WsTransform *) &fake_strange;
		}
		col->width = col->encoding == INT8 ? 8 : 0;
		col->descending = (sortops[i] & 0x100) != 0;
		col->nulls_first = nulls_first[i];
		col->notnull = notnull[i];
		col->byval = col->encoding != WS_ENC_TRANSFORMED;
		col->length = col->byval ? sizeof(Datum) : -1;
		spec->last_attno = Max(spec->last_attno, attnos[i]);
		spec->compare[i].ssup_reverse = col->descending;
		spec->compare[i].ssup_nulls_first = col->nulls_first;
		spec->compare[i].comparator = col->transform != NULL ? fake_compare_letters :
			col->encoding == WS_ENC_TRANSFORMED ? fake_compare_text : fake_compare;
		spec->comparator |= ws_encoding_partial(col->encoding);
		spec->guess |= col->encoding == WS_ENC_TRANSFORMED;
		bytes += col->width + (col->notnull ? 0 : 1);
	}
	if (!spec->comparator && bytes <= WS_PREFIX_BYTES)
	{
		spec->exact = true;
		spec->exact_bytes = bytes;
	}
	spec->first_alone = ws_first_alone(spec);
	return spec;
}

/* The specification of a kind of key over the first columns of rows. */
WsKeySpec *
fake_spec(const FakeKey *key)
{
	AttrNumber	attnos[FAKE_COLUMNS];
	Oid			sortops[FAKE_COLUMNS];
	bool		notnull[FAKE_COLUMNS];

	for (int i = 0; i < key->ncols; i++)
	{
		attnos[i] = i + 1;
		sortops[i] = key->encoding[i] | (key->descending[i] ? 0x100 : 0);
		notnull[i] = !key->nullable[i];
	}
	return ws_keyspec_create(NULL, key->ncols, attnos, sortops, NULL, key->nulls_first, notnull);
}

WsKeyFetch *
ws_key_fetch_create(const WsKeySpec *spec, TupleDesc desc)
{
	return NULL;
}

void
ws_key_fetch(WsKeyFetch *fetch, TupleTableSlot *slot, const Datum **values, const bool **isnull)
{
	*values = slot->tts_values;
	*isnull = slot->tts_isnull;
}

/* ---- rows, and how ties get at their keys ---- */

static void
fake_ready(void *arg)
{
	((FakeTable *) arg)->readied = true;
}

/*
 * A row that travels: its values, and a byte for each that says whether it is null.  Where it is.
 */
static const char *
fake_address(const FakeTable *t, uint64 pointer)
{
	int			place = ws_travel_place(pointer);
	const char *row = t->places->base[place] + ((pointer & (WS_PLACE_OFFSETS - 1)) << 3);

	if (place >= t->places->n || row + t->ncols * (sizeof(Datum) + 1) > t->places->end[place])
		server_die("a row that is not in its place");
	return row;
}

/* Its columns, from there. */
static void
fake_columns(const FakeTable *t, const char *row, Datum *values, bool *isnull)
{
	memcpy(values, row, t->ncols * sizeof(Datum));
	memcpy(isnull, row + t->ncols * sizeof(Datum), t->ncols * sizeof(bool));
}

static void
fake_prefetch(void *arg, uint64 pointer)
{
	if ((pointer & WS_TRAVELS) != 0)
		(void) fake_address(arg, pointer);
	else if (pointer >= ((FakeTable *) arg)->n)
		server_die("row " UINT64_FORMAT " is prefetched, of %zu", pointer, ((FakeTable *) arg)->n);
}

static WsKeySlot *
fake_make_slot(void *arg)
{
	WsKeySlot  *slot = palloc(sizeof(WsKeySlot));

	slot->pointer = WS_POINTER_MASK;
	slot->values = palloc((FAKE_COLUMNS + 1) * sizeof(Datum));
	slot->isnull = palloc((FAKE_COLUMNS + 1) * sizeof(bool));
	return slot;
}

static void
fake_fetch(void *arg, uint64 pointer, WsKeySlot *slot)
{
	FakeTable  *t = arg;

	if (!t->readied)
		server_die("a row is fetched before ready");
	t->fetched++;
	if ((pointer & WS_TRAVELS) != 0)
	{
		/* as the spool does: whoever knows that another row is there now must say so */
		if (slot->pointer != pointer)
			fake_columns(t, fake_address(t, pointer), slot->values, slot->isnull);
		slot->pointer = pointer;
		return;
	}
	if (pointer >= t->n)
		server_die("row " UINT64_FORMAT " is fetched, of %zu", pointer, t->n);
	slot->pointer = pointer;
	memcpy(slot->values, t->values + pointer * t->ncols, t->ncols * sizeof(Datum));
	memcpy(slot->isnull, t->isnull + pointer * t->ncols, t->ncols * sizeof(bool));
}

static void
fake_table_init(FakeTable *t, int ncols)
{
	memset(t, 0, sizeof(FakeTable));
	t->ncols = ncols;
	t->keys = (WsKeyRows) {.ready = fake_ready, .prefetch = fake_prefetch, .make_slot = fake_make_slot,
		.fetch = fake_fetch, .store = t};
}

/* Another one, of which some have accents, and some are strange. */
static Datum
fake_letters(uint64 number)
{
#define LETTERS_TEXTS 8192
#define ALIKE_TEXTS 65536
	static struct
	{
		int32		header;
		char		bytes[60];
	}			texts[ALIKE_TEXTS];
	static const char *const last[ALIKE_TEXTS / LETTERS_TEXTS] = {"", "a", "ab", "B", "e", "eee", "x", "Xyz"};
	uint64		i = number % (fake_alike ? ALIKE_TEXTS : LETTERS_TEXTS);
	const char *first = fake_alike ? "www.all-the-same.org/" : i % 3 == 0 ? "all the same " : "";

	snprintf(texts[i].bytes, sizeof(texts[i].bytes), "%s%c%s%c%s%c%s%s%s%s", first,
			 'a' + (int) (i % 8), fake_ignores && i % 5 == 0 ? "~" : "", 'b' + (int) (i / 16 % 16), i % 11 == 0 ? "\xC3\xA9" : "", 'c' + (int) (i / 256 % 24),
			 last[i / LETTERS_TEXTS], fake_strange > 0 && i % fake_strange == 0 ? "\xC3\xBF" : "",
			 i % 7 == 0 ? " and more" : "", fake_ignores && i % 13 == 0 ? "~" : "");
	SET_VARSIZE(&texts[i], VARHDRSZ + strlen(texts[i].bytes));
	return PointerGetDatum(&texts[i]);
}

/* A text of five letters at most that depends on `number`. */
static Datum
fake_text(uint64 number)
{
#define TEXTS 4096
	static struct
	{
		int32		header;
		char		bytes[12];
	}			texts[TEXTS];
	uint64		i = number % TEXTS;

	snprintf(texts[i].bytes, sizeof(texts[i].bytes), "%c%c%c%c%c", 'a' + (int) (i % 16),
			 'b' + (int) (i / 16 % 16), 'c' + (int) (i / 256), 'x', i % 2 ? 'y' : '\0');
	SET_VARSIZE(&texts[i], VARHDRSZ + strlen(texts[i].bytes));
	return PointerGetDatum(&texts[i]);
}

/*
 * Fills a table, in memory of its own, with n random rows of about `distinct` different values in
 * each of the first columns.
 */
void
fake_fill(FakeTable *t, const FakeKey *key, Size n, uint64 distinct)
{
	fake_table_init(t, key->ncols);
	t->n = n;
	t->values = malloc(Max(n, 1) * t->ncols * sizeof(Datum));
	t->isnull = malloc(Max(n, 1) * t->ncols * sizeof(bool));
	for (Size i = 0; i < n * t->ncols; i++)
	{
		int			col = (int) (i % t->ncols);
		int64		value = (int64) (next_random() % distinct) - (int64) (distinct / 2);

		if (col < key->constant)
			value = next_random() % 1000 == 0;
		else if (key->rare[col])
			value = next_random() % 400 == 0;
		else if (distinct > 1000000)
			value *= INT64CONST(0x100000000);	/* all bytes differ */
		t->isnull[i] = key->nullable[col] && next_random() % 20 == 0;
		t->values[i] = t->isnull[i] ? 0 : key->encoding[col] == WS_ENC_TRANSFORMED ? fake_text((uint64) value) :
			key->encoding[col] == WS_ENC_LETTERS ? fake_letters((uint64) value) : Int64GetDatum(value);
	}
}

void
fake_free(FakeTable *t)
{
	free(t->values);
	free(t->isnull);
}

WsEntry
fake_entry(const FakeTable *t, WsKeySpec *spec, Size row)
{
	return ws_key_entry(spec, t->values + row * t->ncols, t->isnull + row * t->ncols, row);
}

/* For fake_order. */
static const FakeTable *ordered;
static const FakeKey *order_key;

/* The order that rows must have in the end, by nothing that the sources have. */
static int
fake_order(const void *x, const void *y)
{
	Size		a = *(const uint32 *) x;
	Size		b = *(const uint32 *) y;

	for (int i = 0; i < order_key->ncols; i++)
	{
		Size		p = a * ordered->ncols + i;
		Size		q = b * ordered->ncols + i;
		int64		left = DatumGetInt64(ordered->values[p]);
		int64		right = DatumGetInt64(ordered->values[q]);
		int			cmp = (left > right) - (left < right);

		if (ordered->isnull[p] || ordered->isnull[q])
		{
			if (ordered->isnull[p] == ordered->isnull[q])
				continue;
			return ordered->isnull[p] == order_key->nulls_first[i] ? -1 : 1;
		}
		if (is_text(order_key->encoding[i]))
			cmp = (order_key->encoding[i] == WS_ENC_LETTERS ? compare_letters : compare_texts)
				(ordered->values[p], ordered->values[q]);
		if (cmp != 0)
			return order_key->descending[i] ? -cmp : cmp;
	}
	return (a > b) - (a < b);
}

/* The numbers of all rows in the order that a sort must find; malloc. */
uint32 *
fake_sorted(const FakeTable *table, const FakeKey *key)
{
	uint32	   *numbers = malloc(Max(table->n, 1) * sizeof(uint32));

	for (Size i = 0; i < table->n; i++)
		numbers[i] = (uint32) i;
	ordered = table;
	order_key = key;
	qsort(numbers, table->n, sizeof(uint32), fake_order);
	return numbers;
}

/* ---- the store ---- */

#define FAKE_BATCH	256			/* entries taken at a time */

typedef struct FakeStore
{
	WsStore		store;			/* must be first */
	WsStoreContext context;
	FakeTable	table;			/* its memory is palloc's */
	Size		room;			/* rows */
	/* writing */
	WsHelper   *writer;			/* or NULL */
	int			file;			/* -1: nothing is written */
	Size		buffer_size;	/* 0: nothing is written */
	char	   *buffers[2];
	WsWrite		writes[2];
	int			filling;		/* which */
	Size		filled;
	int64		offset;
	/* once rows travel */
	bool		travels;
	WsRowSource source;
	WsPlaces	places;
	Size		arena_bytes;
	char	   *arenas[WS_ARENAS];
	int			arena;
	Size		used;			/* bytes of it */
	/* reading */
	WsStream   *stream;
	WsHelper   *helper;			/* or NULL */
	WsChore		chore;
	WsEntry		batch[FAKE_BATCH];
	Size		wanted;
	Size		n;				/* entries in the batch */
	Size		next;
	uint64		first;			/* number of the batch's first row */
	TupleTableSlot *slot;		/* rows are read again in */
	Size		scanned;		/* of them */
} FakeStore;

/* Writes the buffer that is being filled. */
static void
fake_flush(FakeStore *s)
{
	char	   *data = s->buffers[s->filling];

	if (s->filled == 0)
		return;
	if (s->writer == NULL)
		ws_file_write(s->context.files, s->file, data, s->filled, s->offset);
	else
	{
		ws_write_start(s->writer, &s->writes[s->filling], s->context.files, s->file, data, s->filled,
					   s->offset);
		s->filling = 1 - s->filling;
		ws_write_finish(s->writer, &s->writes[s->filling]);
	}
	s->offset += s->filled;
	s->filled = 0;
	s->store.full |= s->offset > s->context.request->allowance;
}

static void
fake_write_row(FakeStore *s, Size row)
{
	Size		bytes = s->table.ncols * sizeof(Datum);

	if (s->filled + bytes > s->buffer_size)
		fake_flush(s);
	memcpy(s->buffers[s->filling] + s->filled, s->table.values + row * s->table.ncols, bytes);
	s->filled += bytes;
}

static Size
fake_row_bytes(const FakeTable *t)
{
	return t->ncols * (sizeof(Datum) + sizeof(bool));
}

/* Puts a row into the arena. */
static uint64
fake_put_into_arena(FakeStore *s, TupleTableSlot *slot)
{
	FakeTable  *t = &s->table;
	char	   *row = s->arenas[s->arena] + s->used;
	uint64		pointer = ws_travel_pointer(s->arena, s->used >> 3);

	if (s->store.full)
		server_die("a row is put into a full arena");
	memcpy(row, slot->tts_values, t->ncols * sizeof(Datum));
	memcpy(row + t->ncols * sizeof(Datum), slot->tts_isnull, t->ncols * sizeof(bool));
	s->used += TYPEALIGN(8, fake_row_bytes(t));
	s->places.base[s->arena] = s->arenas[s->arena];
	s->places.end[s->arena] = s->arenas[s->arena] + s->used;
	s->store.full = s->used >= s->arena_bytes;
	return pointer;
}

static uint64
fake_put(WsStore *store, TupleTableSlot *slot, uint64 number)
{
	FakeStore  *s = (FakeStore *) store;
	FakeTable  *t = &s->table;
	Size		bytes = t->ncols * sizeof(Datum);

	if (s->travels)
		return fake_put_into_arena(s, slot);

	if (number != t->n)
		server_die("row " UINT64_FORMAT " is put as number %zu", number, t->n);
	if (t->n == s->room)
	{
		s->room *= 2;
		t->values = repalloc(t->values, s->room * t->ncols * sizeof(Datum));
		t->isnull = repalloc(t->isnull, s->room * t->ncols * sizeof(bool));
	}
	memcpy(t->values + t->n * t->ncols, slot->tts_values, t->ncols * sizeof(Datum));
	memcpy(t->isnull + t->n * t->ncols, slot->tts_isnull, t->ncols * sizeof(bool));
	t->n++;
	if (s->buffer_size > 0)
		fake_write_row(s, t->n - 1);
	else if (!fake_store_keeps)
	{
		ws_account_add(s->context.account, bytes);
		store->in_memory += bytes;
	}
	return number;
}

static Size
fake_spill(WsStore *store, Size alone, Size helped, Size entries)
{
	FakeStore  *s = (FakeStore *) store;
	const WsThreads *threads = &s->context.request->threads;

	ws_account_subtract(s->context.account, store->in_memory);
	store->in_memory = 0;
	if (fake_store_keeps)
		return 0;
	s->file = ws_file_create(s->context.files);
	s->buffer_size = alone;
	if (ws_file_allow_helpers(s->context.files, s->file))
		s->writer = ws_helper_start(threads->write, threads->most, false);
	if (s->writer != NULL)
		s->buffer_size = helped / 2;
	for (int i = 0; i < (s->writer != NULL ? 2 : 1); i++)
	{
		s->buffers[i] = palloc(s->buffer_size);
		ws_account_add(s->context.account, s->buffer_size);
	}
	for (Size i = 0; i < s->table.n; i++)
		fake_write_row(s, i);
	return s->writer != NULL ? helped : alone;
}

/* Where a row is, to be copied into a run: of one that does not travel yet, it is made. */
static const char *
fake_locate(void *arg, uint64 pointer, Size *bytes, Size *lead)
{
	static __thread char made[(FAKE_COLUMNS + 1) * (sizeof(Datum) + sizeof(bool))];
	FakeStore  *s = arg;
	const FakeTable *t = &s->table;

	*bytes = fake_row_bytes(t);
	*lead = 0;
	if ((pointer & WS_TRAVELS) != 0)
		return fake_address(t, pointer);
	memcpy(made, t->values + pointer * t->ncols, t->ncols * sizeof(Datum));
	memcpy(made + t->ncols * sizeof(Datum), t->isnull + pointer * t->ncols, t->ncols * sizeof(bool));
	return made;
}

static void
fake_prefetch_row(void *arg, uint64 pointer)
{
	fake_prefetch(&((FakeStore *) arg)->table, pointer);
}

static void
fake_yield(void *arg)
{
	FakeStore  *s = arg;

	for (int i = 0; i < WS_ARENAS; i++)
		if (s->arenas[i] != NULL)
		{
			ws_account_subtract(s->context.account, s->arena_bytes);
			pfree(s->arenas[i]);
			s->arenas[i] = NULL;
		}
}

static const WsRowSource *
fake_depart(WsStore *store, Size *average)
{
	FakeStore  *s = (FakeStore *) store;

	s->places.n = WS_ARENAS;
	s->places.base = palloc0(WS_ARENAS * sizeof(char *));
	s->places.end = palloc0(WS_ARENAS * sizeof(char *));
	s->table.places = &s->places;
	if (s->file >= 0)
	{
		store->ops->end(store);
		for (int i = 0; i < 2; i++)
			if (s->buffers[i] != NULL)
				ws_account_subtract(s->context.account, s->buffer_size);
		s->buffer_size = 0;
	}
	s->source = (WsRowSource) {fake_locate, fake_prefetch_row, fake_yield, s, &s->places, 3};
	*average = TYPEALIGN(8, fake_row_bytes(&s->table));
	return &s->source;
}

static void
fake_turn(WsStore *store, int arena)
{
	FakeStore  *s = (FakeStore *) store;

	if (s->arenas[arena] == NULL)
	{
		s->arenas[arena] = palloc(s->arena_bytes + 1024);
		ws_account_add(s->context.account, s->arena_bytes);
	}
	memset(s->arenas[arena], 0x3C, s->arena_bytes);
	s->arena = arena;
	s->used = 0;
	store->full = false;
}

static void
fake_travel(WsStore *store, Size arena)
{
	FakeStore  *s = (FakeStore *) store;

	if (s->travels)
		server_die("rows depart twice");
	s->travels = true;
	s->arena_bytes = arena;
	if (s->file < 0)
	{
		ws_account_subtract(s->context.account, store->in_memory);
		store->in_memory = 0;
	}
	else
		ws_file_drop(s->context.files, s->file);
	s->file = -1;
	fake_turn(store, 0);
}

static void
fake_end(WsStore *store)
{
	FakeStore  *s = (FakeStore *) store;

	if (s->buffer_size == 0)
		return;
	fake_flush(s);
	if (s->writer == NULL)
		return;
	for (int i = 0; i < 2; i++)
		ws_write_finish(s->writer, &s->writes[i]);
	ws_helper_stop(s->writer);
	s->writer = NULL;
	ws_file_charge(s->context.files, s->file);
}

static void
fake_take(WsChore *chore)
{
	FakeStore  *s = (FakeStore *) ((char *) chore - offsetof(FakeStore, chore));

	s->n = s->stream->ops->next(s->stream, s->batch, s->wanted);
}

static void
fake_open(WsStore *store, WsStream *stream, Size memory)
{
	FakeStore  *s = (FakeStore *) store;
	const WsThreads *threads = &s->context.request->threads;

	s->stream = stream;
	s->wanted = WS_FIRST_BATCH;
	s->chore.run = fake_take;
	if (stream->helper_safe && stream->ops->seek == NULL)
		s->helper = ws_helper_start(threads->read, threads->most, false);
}

/* The next batch; false at the end. */
static bool
fake_load(FakeStore *s)
{
	s->first += s->n;
	s->next = s->n = 0;
	if (!s->context.request->random_access && s->stream->ops->release != NULL)
		(void) s->stream->ops->release(s->stream);
	ws_helper_submit(s->helper, &s->chore);
	(void) ws_helper_wait(s->helper, &s->chore);
	ws_stream_raise(s->stream);
	s->wanted = ws_batch_after(s->wanted, FAKE_BATCH);
	return s->n > 0;
}

static bool
fake_get(WsStore *store, TupleTableSlot *slot)
{
	FakeStore  *s = (FakeStore *) store;
	FakeTable  *t = &s->table;
	uint64		row;

	if (s->next == s->n && !fake_load(s))
		return false;
	row = ws_entry_pointer(s->batch[s->next++]);
	if ((row & WS_TRAVELS) != 0)
	{
		fake_columns(t, fake_address(t, row), slot->tts_values, slot->tts_isnull);
		return true;
	}
	if (row >= t->n)
		server_die("row " UINT64_FORMAT " is to be got, of %zu", row, t->n);
	memcpy(slot->tts_values, t->values + row * t->ncols, t->ncols * sizeof(Datum));
	memcpy(slot->tts_isnull, t->isnull + row * t->ncols, t->ncols * sizeof(bool));
	return true;
}

static void
fake_seek(WsStore *store, uint64 position)
{
	FakeStore  *s = (FakeStore *) store;

	s->stream->ops->seek(s->stream, position);
	s->first = position;
	s->n = s->next = 0;
	s->wanted = WS_FIRST_BATCH;
}

static void
fake_close(WsStore *store)
{
	FakeStore  *s = (FakeStore *) store;

	ws_helper_stop(s->writer);
	ws_helper_stop(s->helper);
}

/* What the sort that begins again is told of the page cache. */
static double fake_absent_share = 0;

static double
fake_absent(const WsStore *store)
{
	return fake_absent_share;
}

static TupleTableSlot *
fake_scan(WsStore *store)
{
	FakeStore  *s = (FakeStore *) store;
	FakeTable  *t = &s->table;

	if (s->slot == NULL)
	{
		s->slot = palloc0(sizeof(TupleTableSlot));
		ws_helper_stop(s->helper);
		s->helper = NULL;
		for (int i = 0; i < 2; i++)
			if (s->buffers[i] != NULL)
				ws_account_subtract(s->context.account, s->buffer_size);
	}
	if (s->scanned == t->n)
	{
		if (s->file >= 0)
			ws_file_drop(s->context.files, s->file);
		s->file = -1;
		return NULL;
	}
	s->slot->tts_values = t->values + s->scanned * t->ncols;
	s->slot->tts_isnull = t->isnull + s->scanned * t->ncols;
	s->scanned++;
	return s->slot;
}

/* What it costs matters only to sorts that nobody has told when to begin again. */
static WsStoreToll
fake_toll(const WsStore *store)
{
	return (WsStoreToll) {0};
}

/* Are the store's rows in a table?  Then it does this. */
static bool fake_store_is_table = false;
static WsStoreOps fake_table_ops;

static bool
fake_rest(WsStore *store, uint64 *pointer)
{
	FakeStore  *s = (FakeStore *) store;

	if (s->next == s->n && !fake_load(s))
	{
		fake_close(store);
		s->writer = s->helper = NULL;
		return false;
	}
	*pointer = ws_entry_pointer(s->batch[s->next++]);
	return true;
}

static const WsStoreOps fake_ops = {
	.name = "fake",
	.virtual_rows = true,
	.put = fake_put,
	.spill = fake_spill,
	.depart = fake_depart,
	.travel = fake_travel,
	.turn = fake_turn,
	.end = fake_end,
	.open = fake_open,
	.get = fake_get,
	.seek = fake_seek,
	.absent = fake_absent,
	.toll = fake_toll,
	.scan = fake_scan,
	.close = fake_close,
};

WsStore *
ws_store_create(const WsStoreContext *context)
{
	FakeStore  *s = palloc0(sizeof(FakeStore));

	fake_table_ops = fake_ops;
	fake_table_ops.scan = NULL;
	fake_table_ops.rest = fake_rest;
	s->store.ops = fake_store_is_table && context->rel != NULL ? &fake_table_ops : &fake_ops;
	s->context = *context;
	s->file = -1;
	/* what is sorted by, and behind it the row's number */
	fake_table_init(&s->table, context->spec->ncols + 1);
	s->room = 16;
	s->table.values = palloc(s->room * s->table.ncols * sizeof(Datum));
	s->table.isnull = palloc(s->room * s->table.ncols * sizeof(bool));
	if (!context->spec->exact)
		s->store.keys = &s->table.keys;
	return &s->store;
}

#undef INT8
#undef NONE

/* ---- slots: columns as they are, which a copy has behind an empty header ---- */

static void
fake_clear(TupleTableSlot *slot)
{
}

static HeapTuple
fake_tuple(TupleTableSlot *slot)
{
	Size		bytes = slot->tts_nvalid * sizeof(Datum);
	Size		hoff = MAXALIGN(SizeofHeapTupleHeader);
	HeapTuple	tuple = palloc0(HEAPTUPLESIZE + hoff + bytes);

	tuple->t_len = (uint32) (hoff + bytes);
	tuple->t_data = (HeapTupleHeader) ((char *) tuple + HEAPTUPLESIZE);
	tuple->t_data->t_hoff = (uint8) hoff;
	for (int i = 0; i < slot->tts_nvalid; i++)
		if (!slot->tts_isnull[i])
			memcpy((char *) tuple->t_data + hoff + i * sizeof(Datum), &slot->tts_values[i], sizeof(Datum));
	return tuple;
}

/* The nulls are not among what a copy has. */
void
ExecForceStoreHeapTuple(HeapTuple tuple, TupleTableSlot *slot, bool should_free)
{
	memcpy(slot->tts_values, (char *) tuple->t_data + tuple->t_data->t_hoff, slot->tts_nvalid * sizeof(Datum));
	if (should_free)
		pfree(tuple);
}

HeapTuple
ExecFetchSlotHeapTuple(TupleTableSlot *slot, bool materialize, bool *should_free)
{
	return fake_tuple(slot);
}

void
heap_freetuple(HeapTuple tuple)
{
	pfree(tuple);
}

static const TupleTableSlotOps fake_slot_ops = {.clear = fake_clear, .copy_heap_tuple = fake_tuple};
