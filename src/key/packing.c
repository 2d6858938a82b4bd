/*-------------------------------------------------------------------------
 * packing.c - bytes of keys in fewer bits, in the same order.
 *
 * Few of the values that a byte can have come behind a given one: in text of words, three bits tell what
 * takes eight.  So each byte narrows an interval of numbers, which begins with all that fit the bits: to a
 * part of it, the larger the oftener a sample has the byte behind the one before it.  The least number of
 * what is left stands for all bytes so far.  This is arithmetic coding (Rissanen and Langdon, 1979) that ends
 * when the bits are full.  Parts are in the order of the bytes, so numbers are in the order of keys.  Every
 * byte has a part, whatever the sample was.
 *
 * Bytes are told as long as no other bytes give the same number.  The bytes behind the first that is not told
 * count as well, unless they may be a guess: that must be told, or not be in the number at all.  Zero bytes
 * come first, so that a key that has ended has the number of one that goes on with zeros.
 *
 * Memory: one chunk in CurrentMemoryContext.  Nothing is raised.
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

#define BYTES			(PG_UINT8_MAX + 1)
#define WHOLE			(PG_UINT16_MAX + 1)	/* what parts are parts of */
#define LEAST_PART		8		/* of a byte that the sample does not have */
#define SHARED			4		/* bytes behind this one, as many as those behind any count */
#define LEAST_COUNT		64		/* bytes of the sample that tell what comes behind one */

/* What comes behind a byte. */
typedef struct Table
{
	uint16		from[BYTES + 1];	/* where the part of each byte begins, and the last one ends: 0 */
	uint8		byte[BYTES];	/* in whose part each 256th of the whole begins */
} Table;

struct WsPacking
{
	int			tables;
	bool		stops;			/* at the first byte that is not told */
	uint8		table_of[BYTES];	/* of what comes behind a byte */
	Table		table[FLEXIBLE_ARRAY_MEMBER];
};

/* How often bytes come behind one. */
typedef struct Counts
{
	uint32		of[BYTES];
} Counts;

/* Divides the whole by how often bytes come behind one, and behind any other. */
static void
fill_table(Table *t, const Counts *here, const Counts *all, uint64 nhere, uint64 nall)
{
	uint64		total = nhere * nall + SHARED * nall;
	uint32		part[BYTES];
	uint32		left = WHOLE;
	int			most = 0;
	uint32		from = 0;
	uint32		mark = 0;

	for (int i = 0; i < BYTES; i++)
	{
		uint64		weight = here->of[i] * nall + SHARED * (uint64) all->of[i];

		part[i] = nall == 0 ? WHOLE / BYTES :
			LEAST_PART + (uint32) ((double) weight / total * (WHOLE - BYTES * LEAST_PART));
		left -= part[i];
		if (part[i] > part[most])
			most = i;
	}
	part[most] += left;
	for (int i = 0; i < BYTES; i++)
	{
		t->from[i] = (uint16) from;
		from += part[i];
		for (; mark < BYTES && mark * (WHOLE / BYTES) < from; mark++)
			t->byte[mark] = (uint8) i;
	}
	t->from[BYTES] = 0;
}

/*
 * Tables that are not for what comes behind one byte: behind those that have none, and behind bytes that the
 * sample hardly has, of which nothing is known.
 */
#define BEHIND_ANY		0
#define BEHIND_STRANGE	1

/* Counts the bytes of keys by what table they will have, or by the byte before if p is NULL. */
static void
count_bytes(const WsPacking *p, const WsKeyBytes *keys, const uint16 *from, Size n, Counts *counts)
{
	for (Size i = 0; i < n; i++)
	{
		/* many keys end with a zero byte, which those of the sample do not have */
		Size		ended = keys[i].n < WS_BEGINNING ? keys[i].n + 1 : keys[i].n;
		Size		end = Min(ended, (Size) from[i] + WS_MOST_BEHIND);

		for (Size j = from[i]; j < end; j++)
		{
			uint8		before = j > 0 ? keys[i].bytes[j - 1] : 0;
			uint8		byte = j < keys[i].n ? keys[i].bytes[j] : 0;

			if (p == NULL)
				counts[0].of[before]++;
			else
				counts[p->table_of[before]].of[byte]++;
		}
	}
}

/* Gives the bytes that come oftenest in front of others a table each, as long as there is room. */
static void
number_tables(WsPacking *p, Counts *before, int most)
{
	memset(p->table_of, BEHIND_ANY, sizeof(p->table_of));
	if (most <= BEHIND_STRANGE)
	{
		p->tables = most;
		return;
	}
	for (int i = 0; i < BYTES; i++)
		if (before->of[i] < LEAST_COUNT)
			p->table_of[i] = BEHIND_STRANGE;
	for (p->tables = BEHIND_STRANGE + 1; p->tables < most; p->tables++)
	{
		int			oftenest = 0;

		for (int i = 1; i < BYTES; i++)
			if (before->of[i] > before->of[oftenest])
				oftenest = i;
		if (before->of[oftenest] < LEAST_COUNT)
			break;
		p->table_of[oftenest] = (uint8) p->tables;
		before->of[oftenest] = 0;
	}
}

/*
 * How to pack the bytes of keys that are like n keys of a sample, from from[i] on for the i-th one, in `most`
 * bytes of memory at most.  With `stops`, nothing behind a byte that is not told counts.  NULL if the memory
 * is not enough.  Belongs to CurrentMemoryContext.
 */
WsPacking *
ws_packing_create(const WsKeyBytes *keys, const uint16 *from, Size n, bool stops, Size most)
{
	Size		room = (most - Min(most, sizeof(WsPacking))) / sizeof(Table);
	WsPacking	head;
	WsPacking  *p;
	Counts	   *counts;
	Counts		all = {{0}};
	uint64		nall = 0;

	if (room == 0)
		return NULL;
	count_bytes(NULL, keys, from, n, &all);
	number_tables(&head, &all, (int) Min(room, BYTES));
	p = palloc(offsetof(WsPacking, table) + head.tables * sizeof(Table));
	*p = head;
	p->stops = stops;
	counts = palloc0(p->tables * sizeof(Counts));
	count_bytes(p, keys, from, n, counts);
	memset(&all, 0, sizeof(all));
	for (int t = 0; t < p->tables; t++)
		for (int i = 0; i < BYTES; i++)
		{
			all.of[i] += counts[t].of[i];
			nall += counts[t].of[i];
		}
	for (int t = 0; t < p->tables; t++)
	{
		static const Counts none = {{0}};
		uint64		here = 0;

		if (t == BEHIND_STRANGE)
		{
			fill_table(&p->table[t], &none, &none, 0, 0);
			continue;
		}
		for (int i = 0; i < BYTES; i++)
			here += counts[t].of[i];
		fill_table(&p->table[t], &counts[t], &all, here, nall);
	}
	pfree(counts);
	return p;
}

/* Bytes of memory. */
Size
ws_packing_bytes(const WsPacking *p)
{
	return offsetof(WsPacking, table) + p->tables * sizeof(Table);
}

/* A share of an interval. */
static inline uint64
share_of(uint64 interval, uint16 part)
{
	return (uint64) ((ws_uint128) interval * ((uint64) part << 48) >> 64);
}

/* The parts of a byte. */
typedef struct Part
{
	uint16		from;
	uint16		size;
} Part;

static inline Part
part_of(const Table *t, uint8 byte)
{
	return (Part) {t->from[byte], (uint16) (t->from[byte + 1] - t->from[byte])};
}

/*
 * Is a byte's part of an interval the only one that begins where it does?  In a large one all are; here those
 * of others may be empty.
 */
static inline bool
is_certain(const Table *t, uint64 interval, uint8 byte)
{
	return byte == 0 || share_of(interval, t->from[byte - 1]) < share_of(interval, t->from[byte]);
}

/*
 * Packs at most n bytes behind the byte `before` into `bits` bits, up to 64.  Sets *told to how many of them
 * these tell.
 */
uint64
ws_pack(const WsPacking *p, const uint8 *bytes, uint8 before, Size n, int bits, Size *told)
{
	uint64		interval = ~UINT64CONST(0) >> (64 - bits);
	uint64		least = 0;
	Size		i;

	for (i = 0; i < n && interval >= WHOLE; before = bytes[i++])
	{
		Part		part = part_of(&p->table[p->table_of[before]], bytes[i]);

		least += share_of(interval, part.from);
		interval = share_of(interval, part.size);
	}
	*told = i;
	for (; i < n && interval > 0; before = bytes[i++])
	{
		const Table *t = &p->table[p->table_of[before]];
		Part		part = part_of(t, bytes[i]);

		least += share_of(interval, part.from);
		if (*told == i && is_certain(t, interval, bytes[i]) && share_of(interval, part.size) > 0)
			(*told)++;
		else if (p->stops)
			break;
		interval = share_of(interval, part.size);
	}
	return least;
}

/* The byte whose part of an interval a number is in, or behind it where the parts of others begin. */
static inline uint8
find_byte(const Table *t, uint64 interval, uint64 number)
{
	uint64		place = interval > PG_UINT32_MAX ? number / (interval >> 16) : (number << 16) / interval;
	int			byte = t->byte[Min(place, WHOLE - 1) / (WHOLE / BYTES)];

	while (byte < PG_UINT8_MAX && share_of(interval, t->from[byte + 1]) <= number)
		byte++;
	while (byte > 0 && share_of(interval, t->from[byte]) > number)
		byte--;
	return (uint8) byte;
}

/* Writes those of at most n bytes that were packed behind `before` that are told, and returns how many. */
Size
ws_unpack(const WsPacking *p, uint64 packed, uint8 before, Size n, int bits, uint8 *bytes)
{
	uint64		interval = ~UINT64CONST(0) >> (64 - bits);
	Size		i;

	for (i = 0; i < n && interval > 0; before = bytes[i++])
	{
		const Table *t = &p->table[p->table_of[before]];
		uint8		byte = find_byte(t, interval, packed);
		Part		part = part_of(t, byte);
		uint64		size = share_of(interval, part.size);

		packed -= share_of(interval, part.from);
		if (packed >= size || (interval < WHOLE && !is_certain(t, interval, byte)))
			break;
		bytes[i] = byte;
		interval = size;
	}
	return i;
}
