/*-------------------------------------------------------------------------
 * preload.c - the library in, and out of, session_preload_libraries of a database.
 *
 * ALTER DATABASE ... SET replaces a list, and hides the one that the database had from the cluster until
 * then.  So that nothing is lost, the new list is the present one (the database's own, or else the cluster's)
 * with wiscsort at its end, or without it.  A list that is the cluster's again is taken away.
 *
 * What this session has is no guide to the cluster's list: a role or PGOPTIONS may have set it, and
 * PGOPTIONS is the way into a database whose list names what is not there.  Then the configuration files are
 * read.
 *
 * The value is set by FROM CURRENT: as a literal, the empty list would become a list of one empty name.
 *
 * The commands are executed with the rights of the caller: an owner of the database, who may set the
 * parameter.
 *-------------------------------------------------------------------------
 */
#include "advise/advise.h"

#include "access/xact.h"
#include "catalog/pg_database.h"
#include "catalog/pg_db_role_setting.h"
#include "commands/dbcommands.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/value.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"
#include "utils/varlena.h"

#define SETTING		"session_preload_libraries"

/* The names in a list of libraries, as strings.  One that cannot be read has none. */
List *
ws_split_libraries(const char *list)
{
	List	   *names;

	if (!SplitDirectoriesString(pstrdup(list), ',', &names))
		return NIL;
	return names;
}

/* The same, as nodes, which can be compared. */
static List *
string_nodes(const char *list)
{
	List	   *nodes = NIL;
	ListCell   *lc;

	foreach(lc, ws_split_libraries(list))
		nodes = lappend(nodes, makeString(lfirst(lc)));
	return nodes;
}

/* Does a library's name, with or without folder and ending, mean this one? */
static bool
is_wiscsort(const char *name)
{
	const char *slash = strrchr(name, '/');
	const char *base = slash != NULL ? slash + 1 : name;

	return strcmp(base, "wiscsort") == 0 || strcmp(base, "wiscsort.so") == 0;
}

/* Is it in a list of libraries? */
bool
ws_names_wiscsort(const char *list)
{
	ListCell   *lc;

	foreach(lc, ws_split_libraries(list))
		if (is_wiscsort(lfirst(lc)))
			return true;
	return false;
}

/* The list without wiscsort, and with it at its end if `with`. */
static char *
list_with(const char *list, bool with)
{
	StringInfoData buf;
	ListCell   *lc;

	initStringInfo(&buf);
	foreach(lc, ws_split_libraries(list))
		if (!is_wiscsort(lfirst(lc)))
			appendStringInfo(&buf, "%s%s", buf.len > 0 ? ", " : "", quote_identifier(lfirst(lc)));
	if (with)
		appendStringInfo(&buf, "%swiscsort", buf.len > 0 ? ", " : "");
	return buf.data;
}

/* Do two lists have the same names in the same order? */
static bool
same_lists(const char *a, const char *b)
{
	return strcmp(list_with(a, false), list_with(b, false)) == 0 &&
		ws_names_wiscsort(a) == ws_names_wiscsort(b);
}

/* The first column of the first row of a query, in `context`; NULL if there is none. */
static char *
one_value(const char *query, MemoryContext context)
{
	char	   *value;

	if (SPI_execute(query, true, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not execute: %s", query);
	if (SPI_processed == 0)
		return NULL;
	value = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	return value != NULL ? MemoryContextStrdup(context, value) : NULL;
}

/* The list that all roles have in a database, or in all if that is InvalidOid; NULL if there is none. */
static char *
set_for_all(Oid database, MemoryContext context)
{
	return one_value(psprintf("SELECT substr(c, length('" SETTING "=') + 1)"
							  " FROM pg_db_role_setting, unnest(setconfig) c"
							  " WHERE setrole = 0 AND c LIKE 'session\\_preload\\_libraries=%%'"
							  " AND setdatabase = %u", database), context);
}

/* The list that this session has, if it is the cluster's; else NULL. */
static char *
cluster_list_here(MemoryContext context)
{
	return one_value("SELECT setting FROM pg_settings WHERE name = '" SETTING "' AND source IN"
					 " ('default', 'configuration file', 'command line', 'environment variable')",
					 context);
}

/* The list that databases have without one of their own. */
static char *
cluster_list(MemoryContext context)
{
	char	   *list = set_for_all(InvalidOid, context);

	if (list == NULL)
		list = cluster_list_here(context);
	if (list == NULL)
		list = one_value("SELECT setting FROM pg_file_settings WHERE name = '" SETTING "' AND error IS NULL"
						 " ORDER BY seqno DESC", context);
	return list != NULL ? list : MemoryContextStrdup(context, "");
}

/* Makes `list` that of the database, or takes its own away. */
static void
set_list(const char *list)
{
	const char *database = quote_identifier(get_database_name(MyDatabaseId));
	char	   *command;
	int			nest;

	if (list == NULL)
		command = psprintf("ALTER DATABASE %s RESET " SETTING, database);
	else
		command = psprintf("ALTER DATABASE %s SET " SETTING " FROM CURRENT", database);
	nest = NewGUCNestLevel();
	if (list != NULL)
		(void) set_config_option(SETTING, list, superuser() ? PGC_SUSET : PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, ERROR, false);
	if (SPI_execute(command, false, 0) != SPI_OK_UTILITY)
		elog(ERROR, "could not execute: %s", command);
	AtEOXact_GUC(false, nest);
}

/*
 * Puts wiscsort into the list of the database, or takes it out.  Returns the list that new sessions have.
 *
 * The command replaces the newest list, whatever the snapshot of the transaction sees.  So the lists are read
 * as they are now, and nobody changes them until the transaction ends.
 */
static Datum
change_list(const char *function, bool with)
{
	MemoryContext context = CurrentMemoryContext;
	char	   *own;
	char	   *cluster;
	char	   *present;
	char	   *wanted;

	PreventCommandDuringRecovery(function);
	if (!ws_owns_database())
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_DATABASE, get_database_name(MyDatabaseId));
	LockRelationOid(DbRoleSettingRelationId, ShareRowExclusiveLock);
	CommandCounterIncrement();
	PushActiveSnapshot(GetLatestSnapshot());
	SPI_connect();
	own = set_for_all(MyDatabaseId, context);
	cluster = cluster_list(context);
	PopActiveSnapshot();
	MemoryContextSwitchTo(context);
	present = own != NULL ? own : cluster;
	wanted = list_with(present, with);
	if (ws_names_wiscsort(present) && wanted[0] == '\0')
		wanted = list_with(cluster, false); /* nothing else is in the database's own */
	if (ws_names_wiscsort(present) && wanted[0] == '\0' && cluster[0] != '\0')
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot take wiscsort out of " SETTING " of one database"),
				 errdetail("All databases have it, and nothing else is in the list.  An empty list of a "
						   "database cannot be restored from a dump, nor by pg_upgrade."),
				 errhint("Take it out of the list of the server (ALTER SYSTEM, ALTER ROLE ALL), or switch it "
						 "off: ALTER DATABASE %s SET wiscsort.enable = off.",
						 quote_identifier(get_database_name(MyDatabaseId)))));
	if (same_lists(wanted, cluster))
	{
		if (own != NULL)
			set_list(NULL);
		wanted = cluster;
	}
	else if (own != NULL && same_lists(wanted, own))
		wanted = own;
	else
		set_list(wanted);
	SPI_finish();
	return CStringGetTextDatum(wanted);
}

/* The cluster's list, or NULL if the caller may not know it: the files of settings are not for everybody. */
static char *
visible_cluster_list(MemoryContext context)
{
	char	   *list;

	if (superuser())
		return cluster_list(context);
	list = set_for_all(InvalidOid, context);
	return list != NULL ? list : cluster_list_here(context);
}

/*
 * Do sessions of this database load wiscsort, that begin now and whose roles have no lists?  *hidden is set
 * to the libraries that they would load if the database had no list of its own, and do not; NULL for none.
 */
bool
ws_new_sessions_load(const char **hidden)
{
	MemoryContext context = CurrentMemoryContext;
	char	   *own;
	char	   *cluster;
	StringInfoData missing;
	ListCell   *lc;

	SPI_connect();
	own = set_for_all(MyDatabaseId, context);
	cluster = visible_cluster_list(context);
	SPI_finish();
	initStringInfo(&missing);
	if (own != NULL && cluster != NULL)
		foreach(lc, list_difference(string_nodes(cluster), string_nodes(own)))
			appendStringInfo(&missing, "%s%s", missing.len > 0 ? ", " : "", strVal(lfirst(lc)));
	*hidden = missing.len > 0 ? missing.data : NULL;
	if (own == NULL)
		own = cluster;
	return own != NULL && ws_names_wiscsort(own);
}

PG_FUNCTION_INFO_V1(wiscsort_enable_in_database);
PGDLLEXPORT Datum wiscsort_enable_in_database(PG_FUNCTION_ARGS);

/* wiscsort.enable_in_database() */
Datum
wiscsort_enable_in_database(PG_FUNCTION_ARGS)
{
	return change_list("wiscsort.enable_in_database()", true);
}

PG_FUNCTION_INFO_V1(wiscsort_disable_in_database);
PGDLLEXPORT Datum wiscsort_disable_in_database(PG_FUNCTION_ARGS);

/* wiscsort.disable_in_database() */
Datum
wiscsort_disable_in_database(PG_FUNCTION_ARGS)
{
	return change_list("wiscsort.disable_in_database()", false);
}
