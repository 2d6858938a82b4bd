/*-------------------------------------------------------------------------
 * collation.c - whose collation it is: libc's, ICU's or PostgreSQL's own.
 *
 * Asked of the catalogs, because a pg_locale_t does not say it from PostgreSQL 19 on.
 *
 * Memory: a name in CurrentMemoryContext.  Errors: those of reading catalogs.
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

static char *
text_attribute(int cache, HeapTuple tuple, AttrNumber attno)
{
	bool		isnull;
	Datum		datum = SysCacheGetAttr(cache, tuple, attno, &isnull);

	return isnull ? NULL : TextDatumGetCString(datum);
}

/*
 * The provider of a collation, or '\0' if there is none; *name is set to the name of its locale,
 * palloc'd, if it is libc's and deterministic, or to NULL.
 */
char
ws_collation_provider(Oid collation, char **name)
{
	char		provider = '\0';
	HeapTuple	tuple;

	*name = NULL;
	if (!OidIsValid(collation))
		return provider;
	if (collation == DEFAULT_COLLATION_OID)
	{
		tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));
		if (!HeapTupleIsValid(tuple))
			return provider;
		provider = ((Form_pg_database) GETSTRUCT(tuple))->datlocprovider;
		if (provider == COLLPROVIDER_LIBC)
			*name = text_attribute(DATABASEOID, tuple, Anum_pg_database_datcollate);
	}
	else
	{
		tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
		if (!HeapTupleIsValid(tuple))
			return provider;
		provider = ((Form_pg_collation) GETSTRUCT(tuple))->collprovider;
		if (provider == COLLPROVIDER_LIBC && ((Form_pg_collation) GETSTRUCT(tuple))->collisdeterministic)
			*name = text_attribute(COLLOID, tuple, Anum_pg_collation_collcollate);
	}
	ReleaseSysCache(tuple);
	return provider;
}
