/*-------------------------------------------------------------------------
 * team.c - loops whose items the backend and a helper do together.
 *
 * A chore is worth its hand-over if it takes tens of microseconds.  What must be
 * done under locks takes less.  A team is for that: for as long as it is on duty,
 * the helper looks for loops of the backend's and takes items from their end,
 * while the backend takes them from their beginning; they meet where they meet.  Each
 * item belongs to one of them.  A helper that is late, or is not running, costs
 * nothing: the backend does its items, too.  One that loses its processor in the middle
 * of an item is waited for.
 *
 * The helper of a modest team takes a rest if others need the processors (crowd.c).  A helper that has seen
 * no loop for a while is off duty until it is called again.
 *
 * At the end of a loop the backend waits for the one item that the helper may have
 * in hand.  It sees no interrupts there, and may hold locks: items are short.
 *
 * The rules for chores hold (helper.c); a fault in a mapping ends the item, and is
 * remembered.
 *-------------------------------------------------------------------------
 */
#include "os/os.h"

#include <sched.h>

#include "storage/s_lock.h"

#define SPINS		2000	/* between two looks at whether somebody else needs the processor */
#define LOOK		64		/* items between two looks at the clock */
/* ns without a loop: the backend may be waiting for its client */
#define ALONE		UINT64CONST(20000000)

/* Of a turn: number of the loop, its items, and those taken by each side. */
#define TURN(loop, items)	((uint64) (loop) << 24 | (uint64) (items) << 16)
#define ITEMS(turn)			((int) ((turn) >> 16 & 0xFF))
#define FRONT(turn)			((int) ((turn) >> 8 & 0xFF))
#define BACK(turn)			((int) ((turn) & 0xFF))
#define ONE_FRONT			((uint64) 1 << 8)
#define ONE_BACK			((uint64) 1)

static inline bool
exhausted(uint64 turn)
{
	return FRONT(turn) + BACK(turn) >= ITEMS(turn);
}

/* Do others need the processors, so that a modest helper takes a rest? */
static bool
crowded(WsTeam *team)
{
	return team->modest && ws_crowd_look(&team->crowd);
}

/* Does one item for the helper. */
static void
serve_item(WsTeam *team, int item)
{
	sigjmp_buf	jump;

	if (sigsetjmp(jump, 0) == 0)
	{
		ws_fault_jump = &jump;
		team->work(team->arg, item, WS_TEAM_HELPER);
	}
	else
		team->fault = true;
	ws_fault_jump = NULL;
	/* after all that the item has written */
	pg_atomic_fetch_add_u32(&team->served, 1);
}

static void
serve(WsChore *chore)
{
	WsTeam	   *team = (WsTeam *) chore;
	uint64		since = 0;		/* when the helper has been idle for SPINS turns */
	int			idle = 0;
	int			done = 0;

	while (!team->dismissed && !ws_helper_is_stopping(team->helper))
	{
		uint64		turn = pg_atomic_read_u64(&team->turn);

		if (exhausted(turn))
		{
			SPIN_DELAY();
			if (++idle % SPINS == 0)
			{
				sched_yield();
				if (idle == SPINS)
					since = ws_now();
				else if (ws_now() - since > ALONE)
					return;
				if (crowded(team))
					return;
			}
		}
		else if (pg_atomic_compare_exchange_u64(&team->turn, &turn, turn + ONE_BACK))
		{
			serve_item(team, ITEMS(turn) - 1 - BACK(turn));
			idle = 0;
			if (++done % LOOK == 0 && crowded(team))
				return;
		}
	}
}

/*
 * Prepares a team of the backend and `helper`, which is not on duty yet.  A modest one rests
 * while others need the processors.
 */
void
ws_team_init(WsTeam *team, WsHelper *helper, bool modest)
{
	memset(team, 0, sizeof(WsTeam));
	team->chore.run = serve;
	team->helper = helper;
	team->modest = modest;
	pg_atomic_init_u64(&team->turn, 0);
	pg_atomic_init_u32(&team->served, 0);
}

/* From now on the helper does nothing else, unless it takes a rest: to be called again from time to time. */
void
ws_team_call(WsTeam *team)
{
	if (team->on_duty && ws_chore_is_done(&team->chore))
		ws_team_end(team);
	if (team->on_duty || ws_crowd_rests(&team->crowd))
		return;
	team->dismissed = false;
	ws_helper_submit(team->helper, &team->chore);
	team->on_duty = true;
}

/* Ends the duty of the helper, if it has one. */
void
ws_team_end(WsTeam *team)
{
	team->dismissed = true;
	if (team->on_duty)
		(void) ws_helper_wait(team->helper, &team->chore);
	team->on_duty = false;
}

/*
 * Calls work(arg, item, side) once for each of the items 0 .. n - 1, n <=
 * WS_TEAM_ITEMS, in any order, for two of them at a time if the team is on duty.
 * Returns false if the helper met a fault, and then some item is not done.
 */
bool
ws_team_run(WsTeam *team, WsTeamWork work, void *arg, int n)
{
	uint64		turn;

	Assert(n <= WS_TEAM_ITEMS);
	if (!team->on_duty)
	{
		for (int i = 0; i < n; i++)
			work(arg, i, WS_TEAM_BACKEND);
		return true;
	}

	team->work = work;
	team->arg = arg;
	team->fault = false;
	pg_write_barrier();
	turn = TURN(++team->loop, n);
	pg_atomic_write_u64(&team->turn, turn);
	for (;;)
	{
		turn = pg_atomic_read_u64(&team->turn);
		if (exhausted(turn))
			break;
		if (pg_atomic_compare_exchange_u64(&team->turn, &turn, turn + ONE_FRONT))
			work(arg, FRONT(turn), WS_TEAM_BACKEND);
	}
	team->expected += BACK(turn);
	for (int i = 1; pg_atomic_read_u32(&team->served) != team->expected; i++)
	{
		SPIN_DELAY();
		if (i % SPINS == 0)
			sched_yield();
	}
	pg_read_barrier();
	return !team->fault;
}
