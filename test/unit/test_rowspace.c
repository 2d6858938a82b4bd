/*-------------------------------------------------------------------------
 * test_rowspace.c - places of blocks in the file of runs of rows (run/rowspace.c): no unit is given away twice,
 * none is lost, and merging in several passes hardly lets the file grow, whatever sizes blocks have.
 *-------------------------------------------------------------------------
 */
#include "server.c"

#include "../../src/run/rowspace.c"

#define RUNS		64
#define BLOCKS		50			/* of a run */
#define UNITS		(RUNS * BLOCKS * 600)

static WsAccount account;
static uint8 used[UNITS];
static bool right;

/* What rowspace.c wants of files. */
int
ws_file_create(WsFileSet *set)
{
	return 7;
}

void
ws_file_align(WsFileSet *set, int file, Size unit)
{
}

typedef struct Block
{
	uint32		unit;
	uint32		n;
} Block;

static Block
take(WsRowFile *home, uint32 n, uint32 wanted)
{
	Block		b = {ws_rowfile_take(home, n, wanted), n};

	for (uint32 i = 0; i < n; i++)
	{
		right &= b.unit + i < home->end && used[b.unit + i] == 0;
		used[b.unit + i] = 1;
	}
	return b;
}

static void
give_back(WsRowFile *home, Block b)
{
	memset(used + b.unit, 0, b.n);
	ws_rowfile_free(home, b.unit, b.n);
}

/* Are the free units, all of them, in extents that do not touch, by place? */
static bool
is_whole(const WsRowFile *home)
{
	uint32		at = 0;
	bool		whole = true;

	for (uint32 i = 0; i < home->nfree; i++)
	{
		whole &= home->free[i].n > 0 && (i == 0 || home->free[i].unit > at);
		for (; at < home->free[i].unit; at++)
			whole &= used[at] == 1;
		for (; at < home->free[i].unit + home->free[i].n; at++)
			whole &= used[at] == 0;
	}
	for (; at < home->end; at++)
		whole &= used[at] == 1;
	return whole;
}

/* Merges all runs, block by block in turn, into one with blocks of other sizes; three times. */
static void
merge(uint32 least, uint32 most, double growth)
{
	static Block blocks[RUNS * BLOCKS];
	WsRowFile	home;
	uint32		seed = 12345 + most;
	uint32		total = 0;
	uint32		first;

	memset(used, 0, sizeof(used));
	right = true;
	ws_rowfile_init(&home, NULL, 16 * WS_ROWS_UNIT, &account);
	CHECK(home.file == 7 && home.end == 0, "a file");
	for (int i = 0; i < RUNS * BLOCKS; i++)
	{
		seed = seed * 1664525 + 1013904223;
		blocks[i] = take(&home, least + (seed >> 8) % (most - least + 1), i > 0 ? blocks[i - 1].unit + blocks[i - 1].n : 0);
		total += blocks[i].n;
	}
	first = home.end;
	CHECK(first == total && home.nfree == 0, "%u to %u units: runs lie one behind the other", least, most);
	for (int pass = 0; pass < 3; pass++)
	{
		static Block merged[RUNS * BLOCKS];
		int			n = 0;

		/* one block of each run has been read before the first one is written */
		for (int run = 0; run < RUNS; run++)
			give_back(&home, blocks[run * BLOCKS]);
		for (int block = 0; block < BLOCKS; block++)
			for (int run = 0; run < RUNS; run++)
			{
				Block		b = blocks[run * BLOCKS + block];

				merged[n] = take(&home, b.n, n > 0 ? merged[n - 1].unit + merged[n - 1].n : 0);
				n++;
				if (block + 1 < BLOCKS)
					give_back(&home, blocks[run * BLOCKS + block + 1]);
			}
		right &= is_whole(&home);
		/* runs of what has been merged, but not those of before */
		for (int i = 0; i < n; i++)
			blocks[i] = merged[(i % RUNS) * BLOCKS + i / RUNS];
	}
	CHECK(right, "%u to %u units: none is taken twice, none is lost", least, most);
	CHECK(home.end <= first * growth, "%u to %u units: %u became %u", least, most, first, home.end);
	for (int i = 0; i < RUNS * BLOCKS; i++)
		give_back(&home, blocks[i]);
	CHECK(home.nfree == 1 && home.free[0].unit == 0 && home.free[0].n == home.end, "all are free, and joined");
	CHECK(account.now == home.max_free * sizeof(WsRowExtent), "memory is counted");
	ws_account_subtract(&account, account.now);
	pfree(home.free);
}

static void
sizes(void *arg)
{
	merge(1, 1, 1.0);
	merge(16, 16, 1.0);
	merge(14, 16, 1.05);
	merge(2, 5, 1.05);
	merge(1, 300, 1.15);
}

int
main(void)
{
	CHECK(server_try(sizes, NULL), "blocks of all sizes");
	CHECK(server_left() == NULL, "nothing is left");
	return failures != 0;
}
