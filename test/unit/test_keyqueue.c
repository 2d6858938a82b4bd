/*-------------------------------------------------------------------------
 * test_keyqueue.c - keys that a helper makes: none may be lost, whatever the texts' lengths.
 *
 * With a stand-in for ICU whose key is the text's first bytes.  It takes as long as it is told to, so that
 * the helper is ahead of the backend, or behind it with all blocks full.
 *
 * And prefixes by what keys begin with: those that a helper makes, of copies of values or of first bytes, must
 * be those that the backend makes of the rows.
 *-------------------------------------------------------------------------
 */
#define ICU_OF_ITS_OWN
#define MANY_CODES	1
#define REST_NS		0			/* on a busy machine, too, the helper is at work */

#include "sorting.c"

#define TEXTS_IN_ALL	20000

typedef struct TextJob
{
	Size		lengths[3];		/* of texts, in turn at random */
	int			spins;			/* for a key */
	bool		descending;
	int			alike;			/* texts that come one behind the other, if they are as long */
} TextJob;

static TextJob	text_job;
static long made;				/* keys that the helper was to make */
static long wrong;
static long asked;				/* keys that were made, by all threads */
static WsEntry entries[TEXTS_IN_ALL];

static uint64
eight_of(const char *text)
{
	uint64		key;

	memcpy(&key, text, sizeof(key));
	return key;
}

bool
ws_icu_key(const WsIcu *icu, const char *text, Size n, uint64 *key)
{
	__atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
	for (volatile int i = 0; i < text_job.spins; i++)
		;
	*key = eight_of(text);
	return true;
}

void
ws_icu_failed(void)
{
	ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("no key")));
}

/* Until the helper has done the block that is to be filled next, for ten seconds at most. */
static void
wait_for_helper(WsKeyQueue *q)
{
	for (int i = 0; i < 100000 && q->helper != NULL; i++)
	{
		const WsChore *next = &q->blocks[(q->current + 1) % BLOCKS].chore;

		if (ws_chore_is_idle(next) || ws_chore_is_done(next))
			break;
		usleep(100);
	}
}

/* The entry of text number i. */
static WsEntry
with_key(const WsKeyColumn *column, int i)
{
	uint64		key = (uint64) (i / text_job.alike) + 1;

	return ws_entry_make((ws_uint128) (text_job.descending ? ~key : key) << (ws_first_bits(column) - 64), i);
}

static void
queue_texts(void *arg)
{
	static char buffer[TEXTS_IN_ALL / 100][VARHDRSZ + LONGEST_QUEUED];
	WsKeyColumn column = {.attno = 1, .notnull = true, .descending = text_job.descending, .icu = (WsIcu *) &text_job};
	WsKeySpec	spec = {.cols = &column, .ncols = 1, .first_alone = true};
	WsThreads	threads = {1, 1, 1, 4};
	WsAccount	account = {0};
	Datum		value;
	bool		isnull = false;
	WsKeyQueue *q = ws_keyqueue_create(&spec, &threads, &account);
	uint64		state = 1;

	made = wrong = asked = 0;
	for (int i = 0; i < TEXTS_IN_ALL; i++)
	{
		char	   *text = buffer[i % lengthof(buffer)];
		uint64		key = (uint64) (i / text_job.alike) + 1;

		state = state * UINT64CONST(6364136223846793005) + 1442695040888963407;
		SET_VARSIZE(text, VARHDRSZ + text_job.lengths[state >> 33 & 1 ? state >> 40 & 1 : 2]);
		memcpy(VARDATA(text), &key, sizeof(key));
		value = PointerGetDatum(text);
		if (ws_keyqueue_put(q, &value, &isnull, &entries[i]))
		{
			entries[i] = ws_entry_make(0, i);
			made++;
		}
		else
		{
			entries[i] = with_key(&column, i);
			/* the input takes its time, so that the helper can do what it has */
			if (state >> 50 & 1)
				wait_for_helper(q);
		}
	}
	ws_keyqueue_finish(q);
	for (int i = 0; i < TEXTS_IN_ALL; i++)
	{
		WsEntry		right = with_key(&column, i);

		wrong += memcmp(&entries[i], &right, sizeof(WsEntry)) != 0;
	}
	ws_keyqueue_stop(q);
}

/* ---- prefixes by what keys begin with ---- */

#define ROWS_IN_ALL	8000
#define COLUMNS		3

typedef struct Keys
{
	WsEncoding	first;			/* of the first column: of letters, or bytes */
	bool		descending;
	bool		strange;		/* letters do not tell some of the texts */
	bool		packed;
} Keys;

static Keys keys;
static long by_helper;
static long other_cuts;
static Datum row_values[ROWS_IN_ALL][COLUMNS];
static bool row_nulls[ROWS_IN_ALL][COLUMNS];

/* A text of so many bytes at most, with a header of one byte or of four. */
static Datum
new_text(const char *bytes)
{
	Size		n = strlen(bytes);
	struct varlena *v = malloc(VARHDRSZ + n);

	if (next_random() % 2)
		SET_VARSIZE_SHORT(v, VARHDRSZ_SHORT + n);
	else
		SET_VARSIZE(v, VARHDRSZ + n);
	memcpy(VARDATA_ANY(v), bytes, n);
	return PointerGetDatum(v);
}

static void
make_rows(void)
{
	for (int i = 0; i < ROWS_IN_ALL; i++)
	{
		uint64		number = i % 7 == 3 ? 5 : next_random();
		char		bytes[200];

		snprintf(bytes, sizeof(bytes), "www.the-same.org/%c%c%s/%s%c%c%s", 'a' + (int) (number % 20),
				 'A' + (int) (number / 32 % 20), number % 3 ? "" : "/and/more/that/is/rather/long", number % 50 ? "" : "\xC3\xA9",
				 'a' + (int) (number / 1024 % 26), 'a' + (int) (number / 32768 % 26),
				 keys.strange && i > ROWS_IN_ALL / 2 && number % 500 == 0 ? "\xC3\xBF" : "");
		row_values[i][0] = new_text(bytes);
		row_values[i][1] = Int64GetDatum((int64) (number / 1048576 % 3) - 1);
		snprintf(bytes, sizeof(bytes), "%.*s", (int) (number % 30), "thirty bytes, as it happens....");
		row_values[i][2] = new_text(bytes);
		row_nulls[i][0] = number % 97 == 0;
		row_nulls[i][2] = number % 5 == 0;
	}
}

/* A key of three columns, and codes of what it begins with. */
static void
init_spec(WsKeySpec *spec, WsKeyColumn *cols, WsLetters *letters, WsBeginnings *beginnings)
{
	memset(cols, 0, COLUMNS * sizeof(WsKeyColumn));
	cols[0] = (WsKeyColumn) {.attno = 1, .encoding = keys.first, .descending = keys.descending, .length = -1};
	cols[1] = (WsKeyColumn) {.attno = 2, .encoding = WS_ENC_INT8, .width = 8, .byval = true, .length = 8, .notnull = true};
	cols[2] = (WsKeyColumn) {.attno = 3, .encoding = WS_ENC_TEXT, .length = -1};
	*spec = (WsKeySpec) {.ncols = COLUMNS, .cols = cols, .last_attno = COLUMNS, .beginnings = beginnings};
	if (keys.first != WS_ENC_LETTERS)
		return;
	cols[0].transform = (WsTransform *) &fake_strange;
	cols[0].alphabet = ws_alphabet_of(cols[0].transform);
	*letters = (WsLetters) {ws_letter_table(&cols[0], true), spec, false};
	cols[0].letters = letters;
	spec->lettered = true;
}

static WsBeginnings *
learn_beginnings(const WsKeySpec *spec)
{
	static uint8 bytes[ROWS_IN_ALL / 4][WS_BEGINNING];
	static WsKeyBytes sample[ROWS_IN_ALL / 4];

	for (int i = 0; i < lengthof(sample); i++)
	{
		Size		n = ws_key_bytes_behind(spec, 0, 0, row_values[i], row_nulls[i], 60, bytes[i]);

		n = Min(n, 60);
		while (n > 0 && bytes[i][n - 1] == 0)
			n--;
		sample[i] = (WsKeyBytes) {bytes[i], n, 0};
	}
	return ws_beginnings_create(sample, lengthof(sample), true, keys.packed ? WS_PACK_TOLD : WS_PACK_NONE, 1 << 20);
}

static void
queue_keys(void *arg)
{
	WsKeyColumn cols[2][COLUMNS];
	WsLetters	letters[2] = {{0}};
	WsKeySpec	spec[2];
	WsThreads	threads = {1, 1, 1, 4};
	WsAccount	account = {0};
	WsBeginnings *beginnings;
	WsKeyQueue *q;

	init_spec(&spec[0], cols[0], &letters[0], NULL);
	beginnings = learn_beginnings(&spec[0]);
	for (int i = 0; i < 2; i++)
		init_spec(&spec[i], cols[i], &letters[i], beginnings);
	q = ws_keyqueue_create(&spec[0], &threads, &account);
	wrong = by_helper = other_cuts = 0;
	for (int from = 0; from < ROWS_IN_ALL; from += 1000)
	{
		int			last = -1;

		for (int i = from; i < from + 1000; i++)
			if (ws_keyqueue_put(q, row_values[i], row_nulls[i], &entries[i]))
			{
				entries[i] = ws_entry_make(0, i);
				by_helper++;
				last = i;
			}
			else
			{
				entries[i] = ws_key_entry(&spec[0], row_values[i], row_nulls[i], i);
				if (i % 64 == 0)
					wait_for_helper(q);
			}
		/* the last of them are in the queue */
		spec[0].cut = false;
		ws_keyqueue_finish(q);
		for (int i = from; i < from + 1000; i++)
		{
			WsEntry		right;

			spec[1].cut = false;
			right = ws_key_entry(&spec[1], row_values[i], row_nulls[i], i);

			wrong += memcmp(&entries[i], &right, sizeof(WsEntry)) != 0;
			other_cuts += i == last && spec[1].cut && !spec[0].cut;
		}
		other_cuts += letters[0].strange != letters[1].strange;
	}
	ws_keyqueue_stop(q);
}

static void
check_keys(void)
{
	for (int i = 0; i < 16; i++)
	{
		keys = (Keys) {i & 1 ? WS_ENC_TEXT : WS_ENC_LETTERS, (i & 2) != 0, (i & 4) != 0, (i & 8) != 0};
		fake_ignores = keys.strange;
		make_rows();
		CHECK(server_try(queue_keys, NULL) && wrong == 0 && other_cuts == 0 && by_helper > ROWS_IN_ALL / 4,
			  "prefixes of %s%s%s%s: %ld by the helper, %ld wrong", i & 1 ? "bytes" : "copies",
			  keys.descending ? ", descending" : "", keys.strange ? ", strange" : "", keys.packed ? ", packed" : "",
			  by_helper, wrong);
	}
}

int
main(void)
{
	static const TextJob text_jobs[] = {
		{{12, 12, 12}, 0, false, 1}, {{1024, 1024, 1024}, 20, false, 1}, {{1024, 12, 12}, 100, true, 1},
		{{1000, 40, 12}, 100, false, 1}, {{1000, 40, 12}, 1000, false, 1}, {{1000, 12, 12}, 0, false, 1},
	{{1024, 8, 300}, 300, true, 1}, {{12, 12, 12}, 10, false, 5}, {{40, 12, 12}, 10, true, 50}};

	for (int i = 0; i < lengthof(text_jobs); i++)
	{
		text_job = text_jobs[i];
		CHECK(server_try(queue_texts, NULL) && wrong == 0 && made > TEXTS_IN_ALL / 4 && server_left() == NULL,
			  "texts of %zu, %zu and %zu bytes, %d spins a key: %ld keys by the helper, %ld wrong", text_job.lengths[0],
			  text_job.lengths[1], text_job.lengths[2], text_job.spins, made, wrong);
		/* the last blocks may be made twice */
		CHECK(text_job.alike == 1 ? asked >= made && asked <= made + BLOCKS * ROWS : asked < made / 2, "%d alike: %ld of %ld keys are made", text_job.alike,
			  asked, made);
	}
	check_keys();
	return failures > 0;
}
