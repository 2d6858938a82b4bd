/*-------------------------------------------------------------------------
 * helper.c - a helper thread that does chores for one sort.
 *
 * AlphaSort's root and worker: the backend reads rows and hands rows out, and
 * gives what needs nothing from PostgreSQL (writing a buffer, sorting an
 * array, copying rows out of a mapping) to a thread, as chores that are
 * done one after the other.
 *
 * PostgreSQL's backend knows of one thread only.  So a chore
 *	- calls nothing of PostgreSQL that does more than compute: no palloc, no ereport, no locks, no
 *	  interrupt check; it leaves its result, or its errno, in its own struct;
 *	- touches plain memory and descriptors that outlive it (duplicates, which
 *	  the virtual file layer cannot close);
 *	- is short, 100 ms at most, because an error has to wait for it.
 * All signals are blocked in the thread but those that it can raise itself.
 *
 * The helper lives in a memory context of its own below the one it is started
 * in.  Children go before their parents' memory and callbacks: when an error
 * unwinds, chores not begun are dropped, and the thread is joined before
 * anything that the parent context owns is released.  The context of a function's query, or of a cursor that
 * fails in a savepoint, stays for a while after the error: so a helper also ends when the resource owner that
 * it was started under is released by an abort, before its files are emptied (file/tempfile.c).
 *
 * A process has a bounded number of threads at a time (ws_thread_take); a sort that gets
 * none does without.
 *
 * Waking a sleeping thread costs some 5 us and, on a virtual machine, 50 us until
 * it runs; both sides therefore look for a short while before they sleep.  Where all processors are busy
 * it is some ms.  So a backend that waits for a chore does what the helper has not begun itself, in turn:
 * a sort waits for its own work, and never for the system to find a processor for somebody else.
 *-------------------------------------------------------------------------
 */
#include "os/os.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "storage/s_lock.h"
#include "utils/memutils.h"

#define SPINS			300		/* about 20 us */
#define POLL_MS			10		/* between two interrupt checks */
#define STACK_BYTES		((Size) 1024 * 1024)

struct WsHelper
{
	MemoryContext context;
	MemoryContextCallback callback;
	WsOwned		owned;			/* if it runs */
	pthread_t	thread;
	bool		running;
	pthread_mutex_t lock;		/* protects what follows */
	pthread_cond_t work;		/* a chore was queued, or stop was set */
	pthread_cond_t done;		/* a chore was done */
	WsChore    *head;			/* the one being done, then those queued */
	WsChore    *tail;
	bool		busy;			/* the first one is being done, by the thread or by the backend */
	volatile bool stop;			/* also looked at without the lock */
	bool		idle;			/* the thread sleeps */
	bool		awaited;		/* the backend sleeps */
	pg_atomic_uint32 queued;	/* chores in the list, to look at without the lock */
};

static pg_atomic_uint32 running;	/* threads of this process */

/* Counts a thread that is going to be started, unless there are `most` already. */
bool
ws_thread_take(int most)
{
	if (pg_atomic_fetch_add_u32(&running, 1) < (uint32) Max(most, 0))
		return true;
	ws_thread_give_back();
	return false;
}

/* Counts one less. */
void
ws_thread_give_back(void)
{
	pg_atomic_fetch_sub_u32(&running, 1);
}

/* The first chore in the list has been done.  The caller has the lock. */
static void
end_chore(WsHelper *h)
{
	WsChore    *chore = h->head;

	h->head = chore->next;
	h->busy = false;
	pg_atomic_fetch_sub_u32(&h->queued, 1);
	/* the lock and this make what the chore wrote visible */
	pg_atomic_write_u32(&chore->state, WS_CHORE_DONE);
}

static void *
work(void *arg)
{
	WsHelper   *h = arg;

	pthread_mutex_lock(&h->lock);
	while (!h->stop)
	{
		WsChore    *chore = h->head;

		if (chore == NULL || h->busy)
		{
			pthread_mutex_unlock(&h->lock);
			for (int i = 0; i < SPINS && pg_atomic_read_u32(&h->queued) == 0; i++)
				SPIN_DELAY();
			pthread_mutex_lock(&h->lock);
			while ((h->head == NULL || h->busy) && !h->stop)
			{
				h->idle = true;
				pthread_cond_wait(&h->work, &h->lock);
				h->idle = false;
			}
			continue;
		}
		h->busy = true;
		pthread_mutex_unlock(&h->lock);
		chore->run(chore);
		pthread_mutex_lock(&h->lock);
		end_chore(h);
		if (h->awaited)
			pthread_cond_signal(&h->done);
	}
	pthread_mutex_unlock(&h->lock);
#ifdef HAVE_LIBHWY
	ws_vqsort_thread_end();
#endif
	return NULL;
}

/* Drops what has not begun, waits for what has, and ends the thread. */
static void
stop(void *arg)
{
	WsHelper   *h = arg;

	if (!h->running)
		return;
	ws_owned_drop(&h->owned);
	pthread_mutex_lock(&h->lock);
	h->stop = true;
	pthread_cond_signal(&h->work);
	pthread_mutex_unlock(&h->lock);
	pthread_join(h->thread, NULL);
	h->running = false;
	ws_thread_give_back();
	pthread_cond_destroy(&h->work);
	pthread_cond_destroy(&h->done);
	pthread_mutex_destroy(&h->lock);
}

/* A helper's resource owner goes.  At abort, nobody wants what it is doing. */
static void
owner_goes(WsOwned *owned, bool after, bool commits)
{
	if (!after && !commits)
		stop((char *) owned - offsetof(WsHelper, owned));
}

/* Processors this process may run on. */
int
ws_processors(void)
{
#ifdef CPU_COUNT
	cpu_set_t	set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		return CPU_COUNT(&set);
#endif
	return (int) sysconf(_SC_NPROCESSORS_ONLN);
}

/*
 * Do `threads`, one of WsThreads, and the circumstances ask for a thread?  0 never, 1 always, -1 if
 * there is work enough (`worthwhile`).
 */
bool
ws_thread_wanted(int threads, bool worthwhile)
{
	return threads > 0 || (threads < 0 && worthwhile);
}

/*
 * Starts a helper below CurrentMemoryContext, if ws_thread_wanted.  Returns NULL if
 * there is to be none, if this process has `most` threads already, or if the system has no
 * thread to give: the backend does the work itself then.
 */
WsHelper *
ws_helper_start(int threads, int most, bool worthwhile)
{
	MemoryContext context;
	WsHelper   *h;
	pthread_attr_t attr;
	pthread_condattr_t clock;
	sigset_t	block;
	sigset_t	before;

	if (!ws_thread_wanted(threads, worthwhile))
		return NULL;
	context = AllocSetContextCreate(CurrentMemoryContext, "WiscSort helper",
									ALLOCSET_SMALL_SIZES);
	h = MemoryContextAllocZero(context, sizeof(WsHelper));
	h->context = context;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->work, NULL);
	/* who waits for it looks for interrupts now and then, even if the time of day is set back */
	pthread_condattr_init(&clock);
	(void) pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&h->done, &clock);
	pthread_condattr_destroy(&clock);
	pg_atomic_init_u32(&h->queued, 0);
	pthread_attr_init(&attr);
	(void) pthread_attr_setstacksize(&attr, STACK_BYTES);

	/* nothing is raised from here on until it is counted as running, or not */
	if (!ws_thread_take(most))
	{
		pthread_attr_destroy(&attr);
		MemoryContextDelete(context);
		return NULL;
	}
	sigfillset(&block);
	sigdelset(&block, SIGBUS);
	sigdelset(&block, SIGSEGV);
	sigdelset(&block, SIGFPE);
	sigdelset(&block, SIGILL);
	sigdelset(&block, SIGABRT);
	pthread_sigmask(SIG_SETMASK, &block, &before);
	h->running = pthread_create(&h->thread, &attr, work, h) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);

	if (!h->running)
	{
		ws_thread_give_back();
		MemoryContextDelete(context);
		return NULL;
	}
	ws_owned_take(&h->owned, owner_goes);
	h->callback.func = stop;
	h->callback.arg = h;
	MemoryContextRegisterResetCallback(context, &h->callback);
	return h;
}

/*
 * Queues a chore, and wakes the helper if it sleeps and `enough` chores are waiting
 * for it.  Signals without the lock, which the helper would only wait for.
 */
static void
queue(WsHelper *h, WsChore *chore, uint32 enough)
{
	bool		wake;

	Assert(pg_atomic_read_u32(&chore->state) != WS_CHORE_QUEUED);
	pg_atomic_write_u32(&chore->state, WS_CHORE_QUEUED);
	chore->next = NULL;
	pthread_mutex_lock(&h->lock);
	if (h->head == NULL)
		h->head = chore;
	else
		h->tail->next = chore;
	h->tail = chore;
	wake = pg_atomic_fetch_add_u32(&h->queued, 1) + 1 >= enough && h->idle;
	pthread_mutex_unlock(&h->lock);
	if (wake)
		pthread_cond_signal(&h->work);
}

/*
 * Queues a chore; with `h` NULL it is done at once.  The chore's struct and
 * all it touches must stay until ws_helper_wait, or belong to the context the
 * helper was started in.
 */
void
ws_helper_submit(WsHelper *h, WsChore *chore)
{
	if (h != NULL)
	{
		queue(h, chore, 1);
		return;
	}
	chore->run(chore);
	pg_atomic_write_u32(&chore->state, WS_CHORE_DONE);
}

/*
 * The same for a chore that has time, and a helper that there is: one that sleeps is woken
 * for `enough` of them, or when one is waited for.
 */
void
ws_helper_submit_lazily(WsHelper *h, WsChore *chore, int enough)
{
	queue(h, chore, (uint32) enough);
}

/*
 * Does a chore, and those queued before it, as long as the helper does none, and none is lengthy; then wakes
 * it, if there are more.
 */
static void
take_over(WsHelper *h, WsChore *chore)
{
	bool		more;

	pthread_mutex_lock(&h->lock);
	while (!h->busy && pg_atomic_read_u32(&chore->state) == WS_CHORE_QUEUED && !h->head->lengthy)
	{
		WsChore    *first = h->head;

		h->busy = true;
		pthread_mutex_unlock(&h->lock);
		first->run(first);
		pthread_mutex_lock(&h->lock);
		end_chore(h);
	}
	more = h->idle && h->head != NULL && !h->busy;
	pthread_mutex_unlock(&h->lock);
	if (more)
		pthread_cond_signal(&h->work);
}

/* Sleeps until something was done, or for POLL_MS. */
static void
sleep_until_done(WsHelper *h, WsChore *chore)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += POLL_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;

	pgstat_report_wait_start(PG_WAIT_EXTENSION);
	pthread_mutex_lock(&h->lock);
	if (pg_atomic_read_u32(&chore->state) == WS_CHORE_QUEUED)
	{
		h->awaited = true;
		(void) pthread_cond_timedwait(&h->done, &h->lock, &until);
		h->awaited = false;
	}
	pthread_mutex_unlock(&h->lock);
	pgstat_report_wait_end();
}

/*
 * Waits for a chore that was submitted, and returns whether there was one
 * (false: it was never submitted, or has been waited for).  Sees interrupts.
 */
bool
ws_helper_wait(WsHelper *h, WsChore *chore)
{
	if (pg_atomic_read_u32(&chore->state) == WS_CHORE_IDLE)
		return false;
	if (pg_atomic_read_u32(&chore->state) == WS_CHORE_QUEUED)
	{
		take_over(h, chore);
		CHECK_FOR_INTERRUPTS();
	}
	for (int i = 0; i < SPINS && pg_atomic_read_u32(&chore->state) == WS_CHORE_QUEUED; i++)
		SPIN_DELAY();
	while (pg_atomic_read_u32(&chore->state) == WS_CHORE_QUEUED)
	{
		sleep_until_done(h, chore);
		CHECK_FOR_INTERRUPTS();
		take_over(h, chore);
	}
	pg_read_barrier();
	pg_atomic_write_u32(&chore->state, WS_CHORE_IDLE);
	return true;
}

/* Is a chore that was submitted done, so that waiting for it takes no time? */
bool
ws_chore_is_done(const WsChore *chore)
{
	return pg_atomic_read_u32((pg_atomic_uint32 *) &chore->state) == WS_CHORE_DONE;
}

/* Has it been submitted, and is not done? */
bool
ws_chore_is_queued(const WsChore *chore)
{
	return pg_atomic_read_u32((pg_atomic_uint32 *) &chore->state) == WS_CHORE_QUEUED;
}

/* Has it never been submitted, or been waited for since? */
bool
ws_chore_is_idle(const WsChore *chore)
{
	return pg_atomic_read_u32((pg_atomic_uint32 *) &chore->state) == WS_CHORE_IDLE;
}

/* For chores that last: must they come to an end? */
bool
ws_helper_is_stopping(WsHelper *h)
{
	return h->stop;
}

/* Ends a helper: drops its queue, waits for the chore in hand.  NULL is fine. */
void
ws_helper_stop(WsHelper *h)
{
	if (h != NULL)
		MemoryContextDelete(h->context);
}
