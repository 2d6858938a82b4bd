/*-------------------------------------------------------------------------
 * madeup.h - machines that a unit test makes up: the files with which a system tells of itself, below `root`.
 *-------------------------------------------------------------------------
 */
#ifndef WS_MADEUP_H
#define WS_MADEUP_H

#include <sys/stat.h>

static char root[MAXPGPATH];

/* Writes a file of the made-up machine, with the directories above it. */
static void
put(const char *name, const char *text)
{
	char		path[2 * MAXPGPATH];
	FILE	   *f;

	snprintf(path, sizeof(path), "%s%s", root, name);
	for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++)
	{
		*p = '\0';
		(void) mkdir(path, 0755);
		*p = '/';
	}
	f = fopen(path, "w");
	if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0)
		CHECK(false, "%s is written", path);
}

/* A machine without any file. */
static void
begin_machine(const char *what)
{
	char		command[2 * MAXPGPATH + 32];

	snprintf(command, sizeof(command), "rm -rf '%s'; mkdir '%s'", root, root);
	if (system(command) != 0)
		CHECK(false, "%s: a new directory", what);
}

static void
begin_machines(const char *name)
{
	snprintf(root, sizeof(root), "/tmp/wiscsort-%s-XXXXXX", name);
	if (mkdtemp(root) == NULL)
		exit(1);
}

static void
end_machines(void)
{
	char		command[MAXPGPATH + 16];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	CHECK(system(command) == 0, "nothing is left");
}

#endif							/* WS_MADEUP_H */
