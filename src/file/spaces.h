/*-------------------------------------------------------------------------
 * spaces.h - the temporary tablespaces that the next files will be in.
 *-------------------------------------------------------------------------
 */
#ifndef WS_SPACES_H
#define WS_SPACES_H

#include "entry.h"

extern int	ws_spaces_find(Oid *spaces, int most);
extern void ws_spaces_turn_to(Oid space);

#endif							/* WS_SPACES_H */
