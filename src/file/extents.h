/*-------------------------------------------------------------------------
 * extents.h - a mapping of a file that lies in several.
 *-------------------------------------------------------------------------
 */
#ifndef WS_EXTENTS_H
#define WS_EXTENTS_H

#include "file/stripe.h"
#include "file/tempfile.h"

typedef struct WsExtents WsExtents;

extern WsExtents *ws_extents_create(const WsStripe *stripe, WsTempFile *const *members,
									const WsThreads *threads);
extern char *ws_extents_map(WsExtents *x, int64 bytes);
extern void ws_extents_close(WsExtents *x);

#endif							/* WS_EXTENTS_H */
