/*-------------------------------------------------------------------------
 * test_keyqueue.c - keys that a helper makes: none may be lost, whatever the texts' lengths.
 *
 * With a stand-in for ICU whose key is the text's first bytes.  It takes as long as it is told to, so that
 * the helper is ahead of the backend, or behind it with all blocks full.
 *-------------------------------------------------------------------------
 */
#include "server.c"

#include "../../src/os/helper.c"
#include "../../src/key/keyqueue.c"

#include "unit.h"

#define TEXTS_IN_ALL	20000

typedef struct Job
{
	Size		lengths[3];		/* of texts, in turn at random */
	int			spins;			/* for a key */
	bool		descending;
	int			alike;			/* texts that come one behind the other, if they are as long */
} Job;

static Job	job;
static long made;				/* keys that the helper was to make */
static long wrong;
static long asked;				/* keys that were made, by all threads */
static WsEntry entries[TEXTS_IN_ALL];

Size
ws_icu_length(const WsKeyColumn *col, const char *text, Size n)
{
	return n;
}

static uint64
first_bytes(const char *text)
{
	uint64		key;

	memcpy(&key, text, sizeof(key));
	return key;
}

bool
ws_icu_key(const WsIcu *icu, const char *text, Size n, uint64 *key)
{
	__atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
	for (volatile int i = 0; i < job.spins; i++)
		;
	*key = first_bytes(text);
	return true;
}

void
ws_icu_failed(void)
{
	ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("no key")));
}

/* The entry of text number i. */
static WsEntry
with_key(const WsKeyColumn *column, int i)
{
	uint64		key = (uint64) (i / job.alike) + 1;

	return ws_entry_make((ws_uint128) (job.descending ? ~key : key) << (ws_first_bits(column) - 64), i);
}

static void
queue_texts(void *arg)
{
	static char buffer[TEXTS_IN_ALL / 100][VARHDRSZ + LONGEST];
	WsKeyColumn column = {.notnull = true, .descending = job.descending, .icu = (WsIcu *) &job};
	WsKeySpec	spec = {.cols = &column, .ncols = 1, .first_alone = true};
	WsThreads	threads = {1, 1, 1, 4};
	WsAccount	account = {0};
	WsKeyQueue *q = ws_keyqueue_create(&spec, &threads, &account);
	uint64		state = 1;

	made = wrong = asked = 0;
	for (int i = 0; i < TEXTS_IN_ALL; i++)
	{
		char	   *text = buffer[i % lengthof(buffer)];
		uint64		key = (uint64) (i / job.alike) + 1;

		state = state * UINT64CONST(6364136223846793005) + 1442695040888963407;
		SET_VARSIZE(text, VARHDRSZ + job.lengths[state >> 33 & 1 ? state >> 40 & 1 : 2]);
		memcpy(VARDATA(text), &key, sizeof(key));
		if (ws_keyqueue_put(q, PointerGetDatum(text), &entries[i]))
		{
			entries[i] = ws_entry_make(0, i);
			made++;
		}
		else
		{
			entries[i] = with_key(&column, i);
			/* the input takes its time, so that the helper can do all that it has */
			if (state >> 50 & 1)
				usleep(100);
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

int
main(void)
{
	static const Job jobs[] = {
		{{12, 12, 12}, 0, false, 1}, {{1024, 1024, 1024}, 20, false, 1}, {{1024, 12, 12}, 100, true, 1},
		{{1000, 40, 12}, 100, false, 1}, {{1000, 40, 12}, 1000, false, 1}, {{1000, 12, 12}, 0, false, 1},
	{{1024, 8, 300}, 300, true, 1}, {{12, 12, 12}, 10, false, 5}, {{40, 12, 12}, 10, true, 50}};

	for (int i = 0; i < lengthof(jobs); i++)
	{
		job = jobs[i];
		CHECK(server_try(queue_texts, NULL) && wrong == 0 && made > 0 && server_left() == NULL,
			  "texts of %zu, %zu and %zu bytes, %d spins a key: %ld keys by the helper, %ld wrong", job.lengths[0],
			  job.lengths[1], job.lengths[2], job.spins, made, wrong);
		CHECK(job.alike == 1 ? asked == made : asked < made / 2, "%d alike: %ld of %ld keys are made", job.alike,
			  asked, made);
	}
	return failures > 0;
}
