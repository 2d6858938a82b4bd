/*-------------------------------------------------------------------------
 * proc.c - reading what the system's own files tell (proc.h).
 *
 * Plain system calls, no memory but the caller's, no errors raised.
 *-------------------------------------------------------------------------
 */
#include "os/proc.h"

#include <fcntl.h>
#include <unistd.h>

/*
 * Reads a file, to its end or WS_PROC_BYTES, as a string into text, which has so many bytes.  `root` is put
 * in front of its name: "" but for tests.  False if it cannot be read.
 */
bool
ws_proc_read(const char *root, const char *name, char *text)
{
	char		path[MAXPGPATH];
	Size		used = 0;
	ssize_t		n = 0;
	int			fd;

	if (snprintf(path, sizeof(path), "%s%s", root, name) >= (int) sizeof(path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (used < WS_PROC_BYTES - 1 && (n = read(fd, text + used, WS_PROC_BYTES - 1 - used)) > 0)
		used += n;
	close(fd);
	text[used] = '\0';
	return n >= 0;
}

/* Is `word` one of the names in a list with commas between them? */
bool
ws_list_has(const char *list, const char *word)
{
	Size		length = strlen(word);

	for (const char *p = list; p != NULL && *p != '\0'; p = strchr(p, ','))
	{
		p += *p == ',';
		if (strncmp(p, word, length) == 0 && (p[length] == ',' || p[length] == '\0'))
			return true;
	}
	return false;
}

/* Undoes the escapes of /proc/self/mountinfo: \040 and the like. */
static void
unescape(char *text)
{
	char	   *to = text;

	for (const char *p = text; *p != '\0'; p++)
	{
		if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] != '\0' && p[3] != '\0')
		{
			*to++ = (char) ((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
			p += 3;
		}
		else
			*to++ = *p;
	}
	*to = '\0';
}

/* Takes a line of /proc/self/mountinfo apart.  False if it is none. */
bool
ws_mount_parse(char *line, WsMount *mount)
{
	char	   *fields[6];
	char	   *rest = strstr(line, " - ");

	if (rest == NULL)
		return false;
	*rest = '\0';
	rest += strlen(" - ");
	for (int i = 0; i < (int) lengthof(fields); i++)
		if ((fields[i] = strsep(&line, " ")) == NULL)
			return false;
	mount->device = fields[2];
	mount->root = fields[3];
	mount->point = fields[4];
	mount->options = fields[5];
	mount->type = strsep(&rest, " ");
	mount->source = strsep(&rest, " ");
	mount->super_options = rest;
	if (mount->source == NULL || rest == NULL)
		return false;
	unescape(mount->root);
	unescape(mount->point);
	unescape(mount->source);
	return true;
}
