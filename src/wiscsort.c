/*-------------------------------------------------------------------------
 * wiscsort.c - the library's entry point.
 *
 * Loaded by LOAD, session_preload_libraries, shared_preload_libraries or the
 * first call of a function of the extension; all have the same effect.
 *-------------------------------------------------------------------------
 */
/* Nothing but what the server looks up is seen from outside: calls between files need no table then. */
#ifndef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))
#endif

#include "guc.h"

#include "advise/advise.h"
#include "commands/extension.h"
#include "exec/exec.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "plan/plan.h"
#include "stat/stat.h"
#include "utils/builtins.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

const char *ws_loaded = "";
bool		ws_preloaded = false;

/* Defines the settings, registers the node, joins the hook chains. */
void
_PG_init(void)
{
	ws_preloaded = !IsNormalProcessingMode() || process_shared_preload_libraries_in_progress;
	ws_loaded = ws_preloaded ? "when it began" : creating_extension ? "by CREATE EXTENSION" :
		"by LOAD, or by a function";
	ws_define_settings();
	ws_register_node();
	ws_install_planner_hooks();
	ws_install_explain_option();
	ws_install_left_hooks();
	ws_install_gathered_hook();
	ws_stat_install();
}

/* The version, and what it was built with. */
char *
ws_version(void)
{
	return psprintf(
		"wiscsort %s, built for PostgreSQL %s; libhwy: %s; libaio: %s; liburing: %s; libpmem: %s; ICU: %s",
		WS_VERSION, PG_MAJORVERSION,
#ifdef HAVE_LIBHWY
		"yes (vqsort)",
#else
		"missing (sort_template instead of vqsort)",
#endif
#ifdef HAVE_LIBAIO
		"yes (many reads at once)",
#else
		"missing",
#endif
#ifdef HAVE_LIBURING
		"yes (many reads at once)",
#else
		"missing",
#endif
#ifdef HAVE_LIBPMEM
		"yes, loaded for tables on persistent memory",
#else
		"missing (tables on persistent memory are mapped as any other)",
#endif
#if defined(HAVE_ICU) && defined(USE_ICU)
		"yes"
#else
		"missing (PostgreSQL makes the keys of text under its collations)"
#endif
		);
}

PG_FUNCTION_INFO_V1(wiscsort_version);
PGDLLEXPORT Datum wiscsort_version(PG_FUNCTION_ARGS);

/* wiscsort.version() returns text. */
Datum
wiscsort_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(ws_version()));
}
