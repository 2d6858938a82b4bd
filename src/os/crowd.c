/*-------------------------------------------------------------------------
 * crowd.c - do others need the processors?
 *
 * Two threads take from others twice what core's sort takes, and gain nothing if they only wait for each
 * other's processors.  So a helper whose work can be left to the backend looks from time to time at how
 * long the two have waited in run queues, which Linux says (schedstat), and takes a rest if that is much.
 *
 * Where the system does not say, nobody rests.
 *-------------------------------------------------------------------------
 */
#include "os/os.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#define MS			UINT64CONST(1000000)	/* ns */
#define WATCH		(20 * MS)	/* between two looks at the run queues */
#ifndef REST_NS
#define REST_NS		(200 * MS)
#endif
#define MUCH(ns)	((ns) / 5 * 2)	/* waiting in that time is reason for a rest */

/* Time by a clock that only goes forward, in ns. */
uint64
ws_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * UINT64CONST(1000000000) + t.tv_nsec;
}

/* ns that a thread has been ready to run and did not, from its schedstat; 0 if the system does not say. */
static uint64
waited(const char *schedstat)
{
	char		text[128];
	uint64		running;
	uint64		waiting;
	ssize_t		n;
	int			fd = open(schedstat, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[Max(n, 0)] = '\0';
	return sscanf(text, UINT64_FORMAT " " UINT64_FORMAT, &running, &waiting) == 2 ? waiting : 0;
}

/* Have backend and helper waited for processors since the last look?  Then a rest begins.  For the helper. */
bool
ws_crowd_look(WsCrowd *crowd)
{
	uint64		time = ws_now();
	uint64		passed = time - crowd->watched;
	uint64		before = crowd->waited;

	if (passed < WATCH)
		return false;
	/* the process's first thread is the backend */
	crowd->waited = waited("/proc/self/schedstat") + waited("/proc/thread-self/schedstat");
	crowd->watched = time;
	if (passed == time || crowd->waited - before <= MUCH(passed))
		return false;
	crowd->rest_until = time + REST_NS;
	return true;
}

/* Is the helper to rest?  For the backend. */
bool
ws_crowd_rests(const WsCrowd *crowd)
{
	return crowd->rest_until > 0 && ws_now() < crowd->rest_until;
}
