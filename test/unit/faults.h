/*-------------------------------------------------------------------------
 * faults.h - which call of memfiles.c or fakereader.c is to fail, and how.
 *-------------------------------------------------------------------------
 */
#ifndef WS_UNIT_FAULTS_H
#define WS_UNIT_FAULTS_H

#include "server.h"

typedef enum FaultKind
{
	FAULT_NONE,
	/* memfiles.c: writes and extensions by the backend, writes by helpers, reads */
	FAULT_WRITE_EIO,
	FAULT_WRITE_ENOSPC,
	FAULT_HELPER_EIO,
	FAULT_HELPER_ENOSPC,
	FAULT_FILE_EIO,
	FAULT_FILE_SHORT,
	FAULT_FILE_FLIP,
	/* fakereader.c: at a submit */
	FAULT_READER_EIO,
	FAULT_READER_SHORT,
	FAULT_READER_FLIP,
	/* server.c */
	FAULT_CANCEL,
	FAULT_COMMIT,
	FAULT_KINDS
} FaultKind;

/* A file's end was met: as file/tempfile.c has it. */
#define SHORT_FILE		(-1)

typedef struct Faults
{
	FaultKind	kind;
	long		at;				/* the call, from 1 */
	long		calls;			/* that could have failed so, by any thread */
} Faults;

extern Faults faults;

/* Is this call, which could have a fault of this kind, to have it? */
static inline bool
fault_due(FaultKind kind)
{
	return faults.kind == kind && __atomic_add_fetch(&faults.calls, 1, __ATOMIC_SEQ_CST) == faults.at;
}

/* Damages one byte of n, another one for each call. */
static inline void
fault_flip(void *data, Size n)
{
	((unsigned char *) data)[(Size) faults.at * 7919 % n] ^= 1 << faults.at % 8;
}

extern void faults_set(FaultKind kind, long at);
extern bool faults_met(void);
extern const char *faults_name(FaultKind kind);
extern int	faults_sqlstate(FaultKind kind);

#endif							/* WS_UNIT_FAULTS_H */
