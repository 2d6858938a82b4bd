/*-------------------------------------------------------------------------
 * test_stripe.c - where the bytes of a file are that lies in several (file/stripe.c).
 *
 * Files in memory are written part by part, in pieces of any length, and every byte must be where the
 * simplest description of RAID 0 says; what a member has of a stretch must be one stretch of it, and all
 * members together must have all of it.
 *-------------------------------------------------------------------------
 */
#include "unit.h"

#include "../../src/file/stripe.c"

#define MB	((int64) 1024 * 1024)

/* Where byte `at` is, by counting. */
static WsPart
by_counting(const WsStripe *s, int64 at)
{
	WsPart		p = {0, 1, 0};

	for (; at >= s->extent; at -= s->extent)
	{
		p.member = (p.member + 1) % s->width;
		p.offset += p.member == 0 ? s->extent : 0;
	}
	p.offset += at;
	return p;
}

/* Parts of stretches at random: bytes that are not where they belong. */
static long
parts(const WsStripe *s)
{
	long		wrong = 0;

	for (int i = 0; i < 300; i++)
	{
		int64		offset = (int64) (next_random() % (uint64) (200 * s->extent));
		Size		left = next_random() % (uint64) (10 * s->extent);

		while (left > 0)
		{
			WsPart		p = ws_stripe_part(s, left, offset);
			WsPart		first = by_counting(s, offset);
			WsPart		last = by_counting(s, offset + (int64) p.bytes - 1);

			if (p.bytes == 0 || p.bytes > left)
				return -1;
			wrong += p.member != first.member || p.offset != first.offset;
			wrong += p.member != last.member || p.offset + (int64) p.bytes - 1 != last.offset;
			/* and it is no shorter than it has to be */
			wrong += p.bytes < left && by_counting(s, offset + (int64) p.bytes).member == p.member;
			offset += (int64) p.bytes;
			left -= p.bytes;
		}
	}
	return wrong;
}

/* Lengths and spans, against a count of all bytes. */
static long
lengths(const WsStripe *s)
{
	static int64 length[WS_MOST_MEMBERS];
	static int64 before[WS_MOST_MEMBERS];
	int64		from = 0;
	long		wrong = 0;

	memset(length, 0, sizeof(length));
	memset(before, 0, sizeof(before));
	for (int64 size = 0; size <= 20 * s->extent; size++)
	{
		if (size > 0)
			length[by_counting(s, size - 1).member]++;
		for (int i = 0; i < s->width; i++)
			wrong += ws_stripe_length(s, size, i) != length[i];
		if (next_random() % 50 == 0)
		{
			for (int i = 0; i < s->width; i++)
			{
				WsPart		span = ws_stripe_span(s, (Size) (size - from), from, i);

				wrong += span.member != i || span.offset != before[i] ||
					(int64) span.bytes != length[i] - before[i];
			}
			memcpy(before, length, sizeof(length));
			from = size;
		}
	}
	return wrong;
}

int
main(void)
{
	static const int64 extents[] = {1, 7, 64, 100};
	WsStripe	one = {1, 64};
	WsStripe	large = {3, 8 * MB};
	WsPart		p;
	int64		sum = 0;

	for (int width = 2; width <= WS_MOST_MEMBERS; width++)
		for (int i = 0; i < lengthof(extents); i++)
		{
			WsStripe	s = {width, extents[i]};
			long		in_parts = parts(&s);
			long		in_lengths = lengths(&s);

			CHECK(in_parts == 0, "parts, %d members, extents of %d bytes: %ld wrong", width, (int) extents[i],
				  in_parts);
			CHECK(in_lengths == 0, "lengths and spans, %d members, extents of %d bytes: %ld wrong", width,
				  (int) extents[i], in_lengths);
		}

	p = ws_stripe_part(&one, 12345, 678);
	CHECK(p.member == 0 && p.bytes == 12345 && p.offset == 678 && ws_stripe_length(&one, 999, 0) == 999,
		  "one member has all of it");
	p = ws_stripe_span(&one, 12345, 678, 0);
	CHECK(p.member == 0 && p.bytes == 12345 && p.offset == 678, "and any stretch");
	p = ws_stripe_part(&large, 1, 8 * MB * 1000000 + 5);
	CHECK(p.member == 1 && p.offset == 8 * MB * 333333 + 5, "an offset of 8 TB");
	for (int i = 0; i < 3; i++)
		sum += ws_stripe_length(&large, PG_INT64_MAX, i);
	CHECK(sum == PG_INT64_MAX, "a file of any size");
	return failures != 0;
}
