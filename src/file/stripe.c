/*-------------------------------------------------------------------------
 * stripe.c - where the bytes of a file are that lies in several: RAID 0 by extents.
 *
 * A file is a sequence of extents, of which the members, files themselves, have one each in turn.  So in
 * a member the bytes follow each other as they do in the whole, and what a member has of any stretch of
 * the whole is one stretch, too.
 *
 * Pure: it needs no server (test/unit/test_stripe.c).  Offsets and sizes are in bytes and not negative;
 * none of these functions can overflow where offset + bytes does not.
 *-------------------------------------------------------------------------
 */
#include "file/stripe.h"

/* The first part of `bytes` bytes at `offset`: as many of them as lie in one extent, and where that is. */
WsPart
ws_stripe_part(const WsStripe *s, Size bytes, int64 offset)
{
	WsPart		part = {0, bytes, offset};

	if (s->width > 1)
	{
		int64		number = offset / s->extent;
		int64		inside = offset % s->extent;

		part.member = (int) (number % s->width);
		part.bytes = Min(bytes, (Size) (s->extent - inside));
		part.offset = number / s->width * s->extent + inside;
	}
	return part;
}

/* How many of the first `size` bytes lie in a member. */
int64
ws_stripe_length(const WsStripe *s, int64 size, int member)
{
	int64		number;
	int64		length;

	if (s->width == 1)
		return size;
	number = size / s->extent;
	length = number / s->width * s->extent;
	if (member < number % s->width)
		length += s->extent;
	else if (member == number % s->width)
		length += size % s->extent;
	return length;
}

/* What lies in a member of `bytes` bytes at `offset`; perhaps nothing. */
WsPart
ws_stripe_span(const WsStripe *s, Size bytes, int64 offset, int member)
{
	WsPart		span = {member, bytes, offset};

	if (s->width > 1)
	{
		span.offset = ws_stripe_length(s, offset, member);
		span.bytes = (Size) (ws_stripe_length(s, offset + (int64) bytes, member) - span.offset);
	}
	return span;
}
