/*-------------------------------------------------------------------------
 * status.c - wiscsort.status(): what is loaded where, built with what, and what is wrong.
 *
 * One row for each thing: its name, its value, and a hint if something should be done about it.  Reads
 * settings and catalogs that everybody may read, and the files of the system that tell its memory and
 * devices.
 *-------------------------------------------------------------------------
 */
#include "advise/advise.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_db_role_setting.h"
#include "catalog/pg_type.h"
#include "commands/tablespace.h"
#include "common/relpath.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "os/os.h"
#include "stat/stat.h"
#include "storage/fd.h"
#include "utils/array.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "utils/tuplestore.h"

#include <limits.h>
#include <unistd.h>

/* effective_cache_size that is so many times the memory there is gets a hint. */
#define FAR_ABOVE		2

/* Columns of wiscsort.status(). */
#define COLUMNS			3

/* Temporary tablespaces that are looked at, at most. */
#define MOST_SPACES		64

static const char hidden[] = "Only members of pg_read_all_settings may see it.";
static const char library_setting[] = "session_preload_libraries=";

static void
say(ReturnSetInfo *result, const char *name, const char *value, const char *hint)
{
	Datum		values[COLUMNS] = {CStringGetTextDatum(name), 0, 0};
	bool		nulls[COLUMNS] = {false, value == NULL, hint == NULL};

	if (value != NULL)
		values[1] = CStringGetTextDatum(value);
	if (hint != NULL)
		values[2] = CStringGetTextDatum(hint);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

static char *
setting(const char *name)
{
	return GetConfigOptionByName(name, NULL, false);
}

/* The list of libraries in a row of pg_db_role_setting, or NULL. */
static char *
list_in(TupleDesc desc, HeapTuple tuple)
{
	bool		isnull;
	Datum		config = heap_getattr(tuple, Anum_pg_db_role_setting_setconfig, desc, &isnull);
	Datum	   *elements;
	int			n;

	if (isnull)
		return NULL;
	deconstruct_array(DatumGetArrayTypeP(config), TEXTOID, -1, false, TYPALIGN_INT, &elements, NULL, &n);
	for (int i = 0; i < n; i++)
	{
		char	   *element = TextDatumGetCString(elements[i]);

		if (strncmp(element, library_setting, strlen(library_setting)) == 0)
			return element + strlen(library_setting);
	}
	return NULL;
}

/* A list of libraries that a role has, in this database or else in all. */
typedef struct RoleList
{
	Oid			role;
	bool		here;
	bool		names_us;
} RoleList;

/* Remembers a role's list, unless there is one that goes before it. */
static List *
note_list(List *lists, Oid role, bool here, bool names_us)
{
	RoleList   *found;
	ListCell   *lc;

	foreach(lc, lists)
	{
		found = lfirst(lc);
		if (found->role != role)
			continue;
		if (here)
			*found = (RoleList) {role, here, names_us};
		return lists;
	}
	found = palloc(sizeof(RoleList));
	*found = (RoleList) {role, here, names_us};
	return lappend(lists, found);
}

/*
 * What new sessions of this database load: *database is set to its own list, or NULL, *roles to the names of
 * roles that have a list without wiscsort for it, and *own to whether the session's role has one with it.
 */
static void
look_up_lists(char **database, StringInfo roles, bool *own)
{
	Relation	rel = table_open(DbRoleSettingRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	tuple;
	List	   *lists = NIL;
	ListCell   *lc;

	*database = NULL;
	*own = false;
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_db_role_setting form = (Form_pg_db_role_setting) GETSTRUCT(tuple);
		char	   *list = list_in(RelationGetDescr(rel), tuple);

		if (list == NULL || (OidIsValid(form->setdatabase) && form->setdatabase != MyDatabaseId))
			continue;
		if (!OidIsValid(form->setrole))
		{
			/* not one of ALTER ROLE ALL */
			if (OidIsValid(form->setdatabase))
				*database = list;
		}
		else
			lists = note_list(lists, form->setrole, OidIsValid(form->setdatabase), ws_names_wiscsort(list));
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	foreach(lc, lists)
	{
		const RoleList *found = lfirst(lc);
		char	   *role = found->names_us ? NULL : GetUserNameFromId(found->role, true);

		*own = *own || (found->names_us && found->role == GetSessionUserId());
		if (role != NULL)		/* it has not been dropped in the meantime */
			appendStringInfo(roles, "%s%s", roles->len > 0 ? ", " : "", quote_identifier(role));
	}
}

/* Is the library where local_preload_libraries looks for it? */
static bool
is_plugin(void)
{
	return access(psprintf("%s/plugins/wiscsort" DLSUFFIX, pkglib_path), F_OK) == 0;
}

/* Which libraries are loaded where. */
static void
say_loaded(ReturnSetInfo *result)
{
	static const char *const lists[] = {"shared_preload_libraries", "session_preload_libraries",
	"local_preload_libraries"};
	bool		visible = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS);
	const char *missing;
	bool		next = ws_new_sessions_load(&missing) || (!visible && ws_preloaded);
	bool		shared = false;
	bool		own;
	char	   *database;
	StringInfoData roles;

	initStringInfo(&roles);
	look_up_lists(&database, &roles, &own);
	next = next || own;
	say(result, "loaded in this session", ws_loaded, NULL);
	for (int i = 0; i < (int) lengthof(lists); i++)
	{
		char	   *list = visible || i == 2 ? setting(lists[i]) : NULL;

		if (list == NULL)
		{
			say(result, lists[i], NULL, hidden);
			continue;
		}
		shared = shared || (i == 0 && ws_names_wiscsort(list));
		if (ws_names_wiscsort(list) && (i == 0 || (i == 2 && is_plugin())))
			next = true;
		say(result, lists[i], list, NULL);
	}
	say(result, "session_preload_libraries of the database", database,
		next ? NULL : "New sessions do not load wiscsort: SELECT wiscsort.enable_in_database();");
	if (missing != NULL)
		say(result, "libraries that the database's list hides", missing,
			"They are in the server's list, which it goes before. Add them, or ALTER DATABASE ... RESET "
			"session_preload_libraries and enable_in_database() again.");
	if (roles.len > 0 && !shared)
		say(result, "roles with a list without wiscsort", roles.data,
			"Their sessions do not load it: ALTER ROLE ... SET session_preload_libraries goes before "
			"that of the database.");
}

/* The memory that was found, and what bounds it. */
static void
say_memory(ReturnSetInfo *result)
{
	const WsPageCache *cache = ws_page_cache();
	const WsMemory *found = ws_memory_once(0, 0);
	double		setting_bytes = (double) effective_cache_size * BLCKSZ;
	char	   *hint = NULL;

	if (setting_bytes > FAR_ABOVE * (double) found->bytes)
		hint = psprintf("effective_cache_size is %s, and there are %.0f MB (%s): correct it.",
						setting("effective_cache_size"), (double) found->bytes / (1024 * 1024),
						ws_memory_bound_name(found->bound));
	say(result, "page cache", psprintf("%.0f MB", cache->bytes / (1024 * 1024)), hint);
	say(result, "page cache bound", cache->bound, NULL);
	say(result, "processors", psprintf("%d", ws_processors()),
		ws_processors() < 2 ? "Without a second processor there are no helper threads." : NULL);
}

/* What a directory is on, and how much room there is: "/dev/nvme0n1p1 (ext4, NVMe), 73210 MB free". */
static char *
describe(const char *directory)
{
	char		resolved[PATH_MAX];
	WsDevice	found;
	StringInfoData text;

	if (realpath(directory, resolved) == NULL || !ws_device_find("", resolved, &found))
		return NULL;
	initStringInfo(&text);
	appendStringInfo(&text, "%s (%s", found.name, found.type);
	if (found.kind != NULL)
		appendStringInfo(&text, ", %s", found.kind);
	appendStringInfoChar(&text, ')');
	if (found.free_bytes >= 0)
		appendStringInfo(&text, ", %lld MB free", (long long) found.free_bytes / (1024 * 1024));
	return text.data;
}

/* The devices of the database's own tablespace, and of all that its temporary files go to. */
static void
say_devices(ReturnSetInfo *result)
{
	bool		visible = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS);
	char	   *database = GetDatabasePath(MyDatabaseId, MyDatabaseTableSpace);
	Oid			spaces[MOST_SPACES];
	int			n;

	say(result, "device of the database", visible ? describe(database) : NULL, visible ? NULL : hidden);
	PrepareTempTablespaces();
	n = GetTempTablespaces(spaces, lengthof(spaces));
	if (n <= 0)
		spaces[0] = InvalidOid;
	for (int i = 0; i < Max(n, 1); i++)
	{
		Oid			space = OidIsValid(spaces[i]) ? spaces[i] : MyDatabaseTableSpace;
		char		directory[MAXPGPATH];
		char	   *name;

		/* that of the files, or before the first of them that which it will be made in */
		TempTablespacePath(directory, space);
		if (access(directory, F_OK) != 0)
			get_parent_directory(directory);
		name = psprintf("device of temporary files in %s", get_tablespace_name(space));
		say(result, name, visible ? describe(directory) : NULL, visible ? NULL : hidden);
	}
}

/* Are sorts counted, for the views? */
static void
say_statistics(ReturnSetInfo *result)
{
	if (ws_shared() == NULL)
		say(result, "statistics", "not counted", ws_why_not_shared());
	else
		say(result, "statistics", ws_track_sorts ? "sorts are counted" : "not counted: wiscsort.track is off",
			NULL);
}

PG_FUNCTION_INFO_V1(wiscsort_status);
PGDLLEXPORT Datum wiscsort_status(PG_FUNCTION_ARGS);

/* wiscsort.status() */
Datum
wiscsort_status(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = ws_return_rows(fcinfo, COLUMNS);
	char	   *spaces = setting("temp_tablespaces");

	say(result, "library", ws_version(), NULL);
	say(result, "built for", "PostgreSQL " PG_VERSION, NULL);
	say(result, "server", psprintf("PostgreSQL %s", setting("server_version")), NULL);
	say_loaded(result);
	say_statistics(result);
	say(result, "wiscsort.enable", ws_enable ? "on" : "off",
		ws_enable ? NULL : "The library is loaded, and sorts nothing. Set it to on, or RESET it.");
	say(result, "enable_sort", enable_sort ? "on" : "off",
		enable_sort ? NULL : "While it is off WiscSort is not considered.");
	say(result, "work_mem", setting("work_mem"), NULL);
	say(result, "effective_cache_size", setting("effective_cache_size"), NULL);
	say_memory(result);
	say(result, "temp_tablespaces", spaces[0] != '\0' ? spaces : "the default tablespace", NULL);
	say(result, "temp_file_limit", setting("temp_file_limit"), NULL);
	say_devices(result);
	return (Datum) 0;
}
