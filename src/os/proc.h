/*-------------------------------------------------------------------------
 * proc.h - what the system's own files tell: whole files, lists in them, and what is mounted where.
 *-------------------------------------------------------------------------
 */
#ifndef WS_PROC_H
#define WS_PROC_H

#include "postgres.h"

#define WS_PROC_BYTES	(32 * 1024) /* of a file that is read, at most */

/* A line of /proc/self/mountinfo, taken apart; strings within the line. */
typedef struct WsMount
{
	char	   *device;			/* major:minor */
	char	   *root;			/* which directory of the file system is mounted */
	char	   *point;			/* where */
	char	   *options;		/* of the mount, with commas between them */
	char	   *type;			/* of the file system */
	char	   *source;			/* what it is of: a device, a server's directory, or nothing that exists */
	char	   *super_options;	/* of the file system */
} WsMount;

extern bool ws_proc_read(const char *root, const char *name, char *text);
extern bool ws_list_has(const char *list, const char *word);
extern bool ws_mount_parse(char *line, WsMount *mount);

#endif							/* WS_PROC_H */
