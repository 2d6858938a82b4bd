/*-------------------------------------------------------------------------
 * stripe.h - where the bytes of a file are that lies in several.
 *-------------------------------------------------------------------------
 */
#ifndef WS_STRIPE_H
#define WS_STRIPE_H

#include "entry.h"

/* The files that one can lie in, at most. */
#define WS_MOST_MEMBERS		8

/* Extent number i, of `extent` bytes, lies in member i % width. */
typedef struct WsStripe
{
	int			width;			/* members; 1: all of it lies in one */
	int64		extent;			/* bytes */
} WsStripe;

/* Bytes of one member. */
typedef struct WsPart
{
	int			member;
	Size		bytes;
	int64		offset;			/* in the member */
} WsPart;

extern WsPart ws_stripe_part(const WsStripe *s, Size bytes, int64 offset);
extern int64 ws_stripe_length(const WsStripe *s, int64 size, int member);
extern WsPart ws_stripe_span(const WsStripe *s, Size bytes, int64 offset, int member);

#endif							/* WS_STRIPE_H */
