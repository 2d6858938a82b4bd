/*-------------------------------------------------------------------------
 * compat.h - every difference between the supported PostgreSQL versions.
 *
 * This is the only file that tests PG_VERSION_NUM.  The rest of the source
 * is written against the names defined here, or against what 15 to 19 have
 * in common.
 *-------------------------------------------------------------------------
 */
#ifndef WS_COMPAT_H
#define WS_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 200000
#error "wiscsort supports PostgreSQL 15, 16, 17, 18 and 19: point PG_CONFIG at one of them"
#endif
#if SIZEOF_VOID_P != 8
#error "wiscsort needs a 64-bit platform: it reserves address space for its IndexMap"
#endif
#ifdef WORDS_BIGENDIAN
#error "wiscsort needs a little-endian platform: nobody has tried its spool on another"
#endif
#ifndef HAVE_INT128
#error "wiscsort needs a compiler with 128-bit integers (gcc or clang)"
#endif

#include "access/stratnum.h"
#include "commands/explain.h"
#include "miscadmin.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/paths.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/wait_event.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#include "access/cmptype.h"
#include "utils/relcache.h"
#endif

/* The btree family, declared input type and direction behind an ordering operator. */
static inline bool
ws_ordering_op(Oid op, Oid *opfamily, Oid *opcintype, bool *descending)
{
#if PG_VERSION_NUM >= 180000
	CompareType cmptype;

	if (!get_ordering_op_properties(op, opfamily, opcintype, &cmptype))
		return false;
	*descending = (cmptype == COMPARE_GT);
#else
	int16		strategy;

	if (!get_ordering_op_properties(op, opfamily, opcintype, &strategy))
		return false;
	*descending = (strategy == BTGreaterStrategyNumber);
#endif
	return true;
}

/* Does a pathkey order its class from the greatest value to the least? */
static inline bool
ws_descending(const PathKey *key)
{
#if PG_VERSION_NUM >= 180000
	return key->pk_cmptype == COMPARE_GT;
#else
	return key->pk_strategy == BTGreaterStrategyNumber;
#endif
}

/* The canonical ascending, nulls-last pathkey of an equivalence class. */
static inline PathKey *
ws_ascending_pathkey(PlannerInfo *root, EquivalenceClass *ec)
{
#if PG_VERSION_NUM >= 180000
	return make_canonical_pathkey(root, ec, linitial_oid(ec->ec_opfamilies),
								  COMPARE_LT, false);
#else
	return make_canonical_pathkey(root, ec, linitial_oid(ec->ec_opfamilies),
								  BTLessStrategyNumber, false);
#endif
}

/* Can an outer join below the level of this Var have set it to null? */
static inline bool
ws_var_nullable(PlannerInfo *root, Var *var)
{
#if PG_VERSION_NUM >= 160000
	return !bms_is_empty(var->varnullingrels);
#else
	RelOptInfo *rel = root->simple_rel_array[var->varno];

	/* above a partitionwise join, Vars are of partitions, and the set has their parents */
	return bms_is_member(var->varno, root->nullable_baserels) ||
		(rel != NULL && bms_overlap(rel->top_parent_relids, root->nullable_baserels));
#endif
}

/* Is the user the owner of the database, or a member of that role, or a superuser? */
#if PG_VERSION_NUM >= 160000
#define ws_owns_database()	object_ownercheck(DatabaseRelationId, MyDatabaseId, GetUserId())
#else
#define ws_owns_database()	pg_database_ownercheck(MyDatabaseId, GetUserId())
#endif

/* Is the column's NOT NULL constraint there and checked for every row? */
static inline bool
ws_attribute_notnull(TupleDesc desc, int attno)
{
#if PG_VERSION_NUM >= 180000
	return TupleDescCompactAttr(desc, attno - 1)->attnullability == ATTNULLABLE_VALID;
#else
	return TupleDescAttr(desc, attno - 1)->attnotnull;
#endif
}

/* The catalog row of a column's NOT NULL constraint, a copy; NULL where there is none. */
#if PG_VERSION_NUM >= 180000
#include "catalog/pg_constraint.h"
#define ws_notnull_constraint(table, column)	findNotNullConstraintAttnum((table), (column))
#else
#define ws_notnull_constraint(table, column)	((HeapTuple) NULL)
#endif

/* 18 counts disabled nodes of a path beside its cost. */
static inline void
ws_path_copy_disabled(Path *to, const Path *from)
{
#if PG_VERSION_NUM >= 180000
	to->disabled_nodes = from->disabled_nodes;
#endif
}

/* The input of a node that removes adjacent duplicates; NULL for another path.  19 has one kind of two. */
static inline Path **
ws_unique_input(Path *path)
{
#if PG_VERSION_NUM < 190000
	if (IsA(path, UpperUniquePath))
		return &((UpperUniquePath *) path)->subpath;
#endif
	return IsA(path, UniquePath) ? &((UniquePath *) path)->subpath : NULL;
}

/* 19 tells the planner, and its hook, of the EXPLAIN that it plans for: a last parameter. */
#if PG_VERSION_NUM >= 190000
#define WS_PLANNER_PARAMETER	, ExplainState *explain
#define WS_PLANNER_ARGUMENT		, explain
#else
#define WS_PLANNER_PARAMETER
#define WS_PLANNER_ARGUMENT
#endif

/* 19 wants flags of a scan's slot, of which none is for us. */
#if PG_VERSION_NUM >= 190000
#define ws_init_scan_slot(estate, node, desc, ops) \
	ExecInitScanTupleSlot((estate), (node), (desc), (ops), 0)
#else
#define ws_init_scan_slot(estate, node, desc, ops) \
	ExecInitScanTupleSlot((estate), (node), (desc), (ops))
#endif

/* 19 wants to be told that a descriptor has all of its columns. */
#if PG_VERSION_NUM >= 190000
#define ws_tuple_desc_finalize(desc)	TupleDescFinalize(desc)
#else
#define ws_tuple_desc_finalize(desc)	((void) 0)
#endif

/* 19 takes it for granted that the first columns of a table that are NOT NULL are not null. */
#if PG_VERSION_NUM >= 190000
#define WS_SLOTS_TRUST_NOT_NULL		true
#define ws_slot_read_nulls(slot)	((slot)->tts_first_nonguaranteed = 0)
#else
#define WS_SLOTS_TRUST_NOT_NULL		false
#define ws_slot_read_nulls(slot)	((void) (slot))
#endif

/* ICU's collator of a locale of ICU: 19 has it in a union without a name. */
#if PG_VERSION_NUM >= 190000
#define ws_locale_collator(locale)	((locale)->icu.ucol)
#else
#define ws_locale_collator(locale)	((locale)->info.icu.ucol)
#endif

/*
 * 19 tells an iterator over an array of its elements when it is made, and not
 * each time.  Macros, because only key/nested.c includes utils/arrayaccess.h.
 */
#if PG_VERSION_NUM >= 190000
#define ws_array_iter_setup(it, array, length, byval, align) \
	array_iter_setup((it), (array), (length), (byval), (align))
#define ws_array_iter_next(it, isnull, i, length, byval, align) \
	array_iter_next((it), (isnull), (i))
#else
#define ws_array_iter_setup(it, array, length, byval, align) \
	array_iter_setup((it), (array))
#define ws_array_iter_next(it, isnull, i, length, byval, align) \
	array_iter_next((it), (isnull), (i), (length), (byval), (align))
#endif

/* The inputs of a set operation: one, or from 18 on two. */
#if PG_VERSION_NUM >= 180000
#define WS_SETOP_INPUTS 2
#else
#define WS_SETOP_INPUTS 1
#endif

static inline Path **
ws_setop_input(SetOpPath *setop, int i)
{
#if PG_VERSION_NUM >= 180000
	return i == 0 ? &setop->leftpath : &setop->rightpath;
#else
	return &setop->subpath;
#endif
}

/*
 * What direct reads (store/heap_direct.c) use of the buffer manager.  Macros,
 * because only that file includes buf_internals.h.
 */
#if PG_VERSION_NUM >= 160000
#define ws_buffer_tag(tag, rel, block) \
	InitBufferTag((tag), &(rel)->rd_locator, MAIN_FORKNUM, (block))
#define ws_direct_io()		((io_direct_flags & IO_DIRECT_DATA) != 0)
#else
#define ws_buffer_tag(tag, rel, block) \
	INIT_BUFFERTAG(*(tag), (rel)->rd_node, MAIN_FORKNUM, (block))
#define ws_direct_io()		false
#endif

/*
 * A share of the content lock of a buffer that is not pinned, without waiting.
 * In 19 that lock is a part of the buffer's state, and only who has a pin can
 * take it: there it cannot be had.
 */
#if PG_VERSION_NUM >= 190000
#define ws_buffer_is_valid(desc)	((pg_atomic_read_u64(&(desc)->state) & BM_VALID) != 0)
#define ws_buffer_try_share(desc)	((void) (desc), false)
#define ws_buffer_unshare(desc)		((void) (desc))
#define WS_SHARES_BUFFERS			0
#else
#define ws_buffer_is_valid(desc)	((pg_atomic_read_u32(&(desc)->state) & BM_VALID) != 0)
#define ws_buffer_try_share(desc) \
	LWLockConditionalAcquire(BufferDescriptorGetContentLock(desc), LW_SHARED)
#define ws_buffer_unshare(desc)		LWLockRelease(BufferDescriptorGetContentLock(desc))
#define WS_SHARES_BUFFERS			1
#endif
#if PG_VERSION_NUM >= 160000
#define ws_same_tag(a, b)			BufferTagsEqual((a), (b))
#else
#define ws_same_tag(a, b)			BUFFERTAGS_EQUAL(*(a), *(b))
#endif

#if PG_VERSION_NUM >= 180000
#define ws_relation_path(rel) \
	pstrdup(relpathperm((rel)->rd_locator, MAIN_FORKNUM).str)
#define ws_page_is_verified(page, block) \
	PageIsVerified((page), (block), 0, NULL)
#elif PG_VERSION_NUM >= 160000
#define ws_relation_path(rel)	relpathperm((rel)->rd_locator, MAIN_FORKNUM)
#define ws_page_is_verified(page, block)	PageIsVerifiedExtended((page), (block), 0)
#else
#define ws_relation_path(rel)	relpathperm((rel)->rd_node, MAIN_FORKNUM)
#define ws_page_is_verified(page, block)	PageIsVerifiedExtended((page), (block), 0)
#endif

/* Counts blocks that were visited without the buffer manager. */
#if PG_VERSION_NUM >= 180000
#define ws_count_io_read(n) \
	pgstat_count_io_op(IOOBJECT_RELATION, IOCONTEXT_NORMAL, IOOP_READ, (n), (uint64) (n) * BLCKSZ)
#define ws_count_io_hit(n) \
	pgstat_count_io_op(IOOBJECT_RELATION, IOCONTEXT_NORMAL, IOOP_HIT, (n), 0)
#elif PG_VERSION_NUM >= 160000
#define ws_count_io_read(n) \
	pgstat_count_io_op_n(IOOBJECT_RELATION, IOCONTEXT_NORMAL, IOOP_READ, (n))
#define ws_count_io_hit(n) \
	pgstat_count_io_op_n(IOOBJECT_RELATION, IOCONTEXT_NORMAL, IOOP_HIT, (n))
#else
#define ws_count_io_read(n)		((void) 0)
#define ws_count_io_hit(n)		((void) 0)
#endif

/* storage/read_stream.h */
#if PG_VERSION_NUM >= 170000
#define WS_HAVE_READ_STREAM 1
#endif

/* Can rows that a snapshot has seen vanish while it is in use? */
#if PG_VERSION_NUM >= 170000
#define ws_snapshots_expire()	false
#else
#include "utils/snapmgr.h"
#define ws_snapshots_expire()	(old_snapshot_threshold >= 0)
#endif

/* What ExplainOneQuery does if nobody has hooked it: plans the query, and explains the plan. */
#if PG_VERSION_NUM >= 170000
#define ws_explain_one_query(query, options, into, es, text, params, env) \
	standard_ExplainOneQuery((query), (options), (into), (es), (text), (params), (env))
#else
#include "executor/instrument.h"
#include "tcop/tcopprot.h"

static inline void
ws_explain_one_query(Query *query, int options, IntoClause *into, ExplainState *es,
					 const char *text, ParamListInfo params, QueryEnvironment *env)
{
	BufferUsage before = pgBufferUsage;
	BufferUsage used;
	instr_time	start;
	instr_time	duration;
	PlannedStmt *stmt;

	memset(&used, 0, sizeof(used));
	INSTR_TIME_SET_CURRENT(start);
	stmt = pg_plan_query(query, text, options, params);
	INSTR_TIME_SET_CURRENT(duration);
	INSTR_TIME_SUBTRACT(duration, start);
	BufferUsageAccumDiff(&used, &pgBufferUsage, &before);
	ExplainOnePlan(stmt, into, es, text, params, env, &duration, es->buffers ? &used : NULL);
}
#endif

/*
 * From 18 on extensions may add options to EXPLAIN, and lines to its nodes.  ws_explain_flag tells whether
 * EXPLAIN has the option WISCSORT.
 */
#if PG_VERSION_NUM >= 180000
#define WS_EXPLAIN_OPTIONS
#define WS_EXPLAIN_ID	GetExplainExtensionId("wiscsort")
#define ws_explain_flag(es)		(GetExplainExtensionState((es), WS_EXPLAIN_ID) != NULL)
#else
#define ws_explain_flag(es)		false
#endif
#if PG_VERSION_NUM >= 190000
#define ws_register_explain_option(name, handler) \
	RegisterExtensionExplainOption((name), (handler), GUCCheckBooleanExplainOption)
#else
#define ws_register_explain_option(name, handler) RegisterExtensionExplainOption((name), (handler))
#endif

/* Does a range table have several relations, so that EXPLAIN says which a column is of?  GROUP BY is none. */
static inline bool
ws_several_relations(const List *rtable)
{
	int			number = list_length(rtable);

#if PG_VERSION_NUM >= 180000
	ListCell   *lc;

	foreach(lc, rtable)
		if (lfirst_node(RangeTblEntry, lc)->rtekind == RTE_GROUP)
			number--;
#endif
	return number > 1;
}

/* Runs a query to its end. */
#if PG_VERSION_NUM >= 180000
#define ws_executor_run(desc)	ExecutorRun((desc), ForwardScanDirection, 0)
#else
#define ws_executor_run(desc)	ExecutorRun((desc), ForwardScanDirection, 0, true)
#endif

/* Plans a query, without an EXPLAIN, of which 19 tells the planner.  With tcop/tcopprot.h. */
#if PG_VERSION_NUM >= 190000
#define ws_plan_query(query, text, options) pg_plan_query((query), (text), (options), NULL, NULL)
#else
#define ws_plan_query(query, text, options) pg_plan_query((query), (text), (options), NULL)
#endif

/* Seconds that a node took, all below it included: 19 has them as the system's clock does. */
#if PG_VERSION_NUM >= 190000
#define ws_node_seconds(node)	INSTR_TIME_GET_DOUBLE((node)->instrument->instr.total)
#else
#define ws_node_seconds(node)	((node)->instrument->total)
#endif

/* A stopwatch as a node has one.  With executor/instrument.h. */
#if PG_VERSION_NUM >= 190000
#define WsTimer				NodeInstrumentation
#define ws_timer_create()	InstrAllocNode(INSTRUMENT_TIMER, false)
#define ws_timer_seconds(timer)	INSTR_TIME_GET_DOUBLE((timer)->instr.total)
#else
#define WsTimer				Instrumentation
#define ws_timer_create()	InstrAlloc(1, INSTRUMENT_TIMER, false)
#define ws_timer_seconds(timer)	((timer)->total)
#endif

/* The next datum of core's sort, where it lies: 16 asks whether it is to be copied. */
#if PG_VERSION_NUM >= 160000
#define ws_tuplesort_getdatum(sort, value, isnull) \
	tuplesort_getdatum((sort), true, false, (value), (isnull), NULL)
#else
#define ws_tuplesort_getdatum(sort, value, isnull) \
	tuplesort_getdatum((sort), true, (value), (isnull), NULL)
#endif

/* Does core sort rows of one column as datums, whatever its type?  15 does so if it is passed by value. */
#define WS_CORE_SORTS_ANY_DATUM		(PG_VERSION_NUM >= 160000)

/* What a tuple in the memory of core's sort takes beside itself: the header of a chunk. */
#if PG_VERSION_NUM >= 170000
#define WS_CORE_CHUNK		0
#elif PG_VERSION_NUM >= 160000
#define WS_CORE_CHUNK		8
#else
#define WS_CORE_CHUNK		24
#endif

/*
 * What a value of `width` bytes, sorted alone and not passed by value, takes there beside its SortTuple.
 * Since 18 it does not count.
 */
#if PG_VERSION_NUM >= 180000
#define ws_core_datum_bytes(width)	0
#else
#define ws_core_datum_bytes(width)	(MAXALIGN(width) + WS_CORE_CHUNK)
#endif

/*
 * Shared memory: since 17 there is a registry of segments, by name, which are made when somebody asks for
 * them.  Before, it has to be asked for by a library that is preloaded.  19 hands what initializes a segment
 * an argument.
 */
#if PG_VERSION_NUM >= 190000
#include "storage/dsm_registry.h"
#define WS_HAVE_SEGMENTS	true
#define WS_INIT_PARAMETER	, void *unused
#define WS_INIT_ARGUMENT	, NULL
#define ws_segment(name, bytes, init, found) GetNamedDSMSegment((name), (bytes), (init), (found), NULL)
#elif PG_VERSION_NUM >= 170000
#include "storage/dsm_registry.h"
#define WS_HAVE_SEGMENTS	true
#define WS_INIT_PARAMETER
#define WS_INIT_ARGUMENT
#define ws_segment(name, bytes, init, found) GetNamedDSMSegment((name), (bytes), (init), (found))
#else
#define WS_HAVE_SEGMENTS	false
#define WS_INIT_PARAMETER
#define WS_INIT_ARGUMENT
#define ws_segment(name, bytes, init, found) ((void) (name), (void) (found), (void *) NULL)
#endif

/* A new tranche of locks: 19 is told its name once, before each backend told it.  With storage/lwlock.h. */
#if PG_VERSION_NUM >= 190000
#define ws_new_tranche(name)			LWLockNewTrancheId(name)
#define ws_register_tranche(id, name)	((void) 0)
#else
#define ws_new_tranche(name)			LWLockNewTrancheId()
#define ws_register_tranche(id, name)	LWLockRegisterTranche((id), (name))
#endif

/* The number of this backend, from 0; below MaxBackends.  With storage/proc.h. */
#if PG_VERSION_NUM >= 170000
#define ws_backend_number()		((int) MyProcNumber)
#else
#define ws_backend_number()		((int) MyProc->pgprocno)
#endif

/* The operator families that sort by an operator.  With utils/lsyscache.h. */
#if PG_VERSION_NUM >= 180000
#define ws_op_interpretation(opno)	get_op_index_interpretation(opno)
#else
#define ws_op_interpretation(opno)	get_op_btree_interpretation(opno)
#endif

/* Are the costs of a path hardly more than those of a node that a setting disables?  Not so from 18 on. */
static inline bool
ws_costs_of_disabled(const Path *path)
{
#if PG_VERSION_NUM >= 180000
	return false;
#else
	return path->startup_cost >= disable_cost;
#endif
}

/* Sets the costs of `path` to those of core's sort of rows of `input`; 18 hands on what is disabled in it. */
static inline void
ws_cost_core_sort(Path *path, const Path *input, double rows, int width)
{
#if PG_VERSION_NUM >= 180000
	cost_sort(path, NULL, NIL, input->disabled_nodes, input->total_cost, rows, width, 0, work_mem, -1.0);
#else
	cost_sort(path, NULL, NIL, input->total_cost, rows, width, 0, work_mem, -1.0);
#endif
}

/* Has `a` more nodes than `b` that a setting disables?  Until 17 that is a part of its costs. */
static inline bool
ws_more_disabled(const Path *a, const Path *b)
{
#if PG_VERSION_NUM >= 180000
	return a->disabled_nodes > b->disabled_nodes;
#else
	return false;
#endif
}

/* Conditions on the results of a window by which it stops: of the window until 16, of its functions since. */
static inline List *
ws_clause_run_condition(const WindowClause *clause)
{
#if PG_VERSION_NUM >= 170000
	return NIL;
#else
	return clause->runCondition;
#endif
}

static inline List *
ws_function_run_condition(const WindowFunc *function)
{
#if PG_VERSION_NUM >= 170000
	return function->runCondition;
#else
	return NIL;
#endif
}

/* An expression of a parent, as it is in one of its partitions.  With optimizer/appendinfo.h. */
#if PG_VERSION_NUM >= 160000
#define ws_expression_in_child(root, expr, rel) \
	adjust_appendrel_attrs_multilevel(root, (Node *) (expr), rel, (rel)->top_parent)
#else
#define ws_expression_in_child(root, expr, rel) \
	adjust_appendrel_attrs_multilevel(root, (Node *) (expr), (rel)->relids, (rel)->top_parent_relids)
#endif

#endif							/* WS_COMPAT_H */
