/*-------------------------------------------------------------------------
 * runblock.h - the bytes of a run on disk, and how they are checked.
 *
 *	header	32 bytes: magic, format version, block size, entry count, number
 *			of the run, CRC
 *	blocks	of `block size` bytes (the last one as short as it needs to be):
 *			16 bytes of header (CRC, entries, number of the run, number of the
 *			block), then entries
 *
 * CRC-32C as in WAL.  A block knows its run and its place, so that a block
 * that is intact but was written elsewhere is noticed too.  Temporary files
 * never travel between machines: native byte order.
 *
 * Pure, and inline because the unit tests compile it alone.
 *-------------------------------------------------------------------------
 */
#ifndef WS_RUNBLOCK_H
#define WS_RUNBLOCK_H

#include "entry.h"
#include "port/pg_crc32c.h"

#define WS_RUN_MAGIC	0x4E555257	/* "WRUN" */
#define WS_RUN_VERSION	1

typedef struct WsRunHeader
{
	uint32		magic;
	uint32		version;
	uint64		nentries;
	uint32		block_size;		/* bytes, with the block's header */
	uint32		number;			/* of the run, unique within its sort */
	uint32		unused;
	pg_crc32c	crc;			/* of all that precedes */
} WsRunHeader;

typedef struct WsBlockHeader
{
	pg_crc32c	crc;			/* of all that follows, entries included */
	uint32		nentries;
	uint32		run;			/* number of the run */
	uint32		block;			/* number of the block in the run, from 0 */
} WsBlockHeader;

StaticAssertDecl(sizeof(WsRunHeader) == 32 && sizeof(WsBlockHeader) == 16,
				 "headers must keep entries 16-byte aligned");

/* Entries that fit a block of block_size bytes. */
static inline Size
ws_block_capacity(Size block_size)
{
	return (block_size - sizeof(WsBlockHeader)) / sizeof(WsEntry);
}

/* Bytes of the block number `block` of a run of nentries entries. */
static inline Size
ws_block_bytes(Size block_size, uint64 nentries, uint64 block)
{
	uint64		capacity = ws_block_capacity(block_size);
	uint64		before = block * capacity;

	return sizeof(WsBlockHeader) + Min(capacity, nentries - before) * sizeof(WsEntry);
}

static inline pg_crc32c
ws_run_header_crc(const WsRunHeader *h)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, h, offsetof(WsRunHeader, crc));
	FIN_CRC32C(crc);
	return crc;
}

static inline pg_crc32c
ws_block_crc(const WsBlockHeader *b)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, (const char *) b + sizeof(pg_crc32c),
				sizeof(WsBlockHeader) - sizeof(pg_crc32c) + b->nentries * sizeof(WsEntry));
	FIN_CRC32C(crc);
	return crc;
}

static inline void
ws_run_header_seal(WsRunHeader *h, uint64 nentries, Size block_size, uint32 number)
{
	memset(h, 0, sizeof(*h));
	h->magic = WS_RUN_MAGIC;
	h->version = WS_RUN_VERSION;
	h->nentries = nentries;
	h->block_size = (uint32) block_size;
	h->number = number;
	h->crc = ws_run_header_crc(h);
}

/* What is wrong with a run header, as a sentence, or NULL. */
static inline const char *
ws_run_header_check(const WsRunHeader *h, uint64 nentries, Size block_size, uint32 number)
{
	if (h->magic != WS_RUN_MAGIC)
		return "A run in it does not start with the magic number of a run.";
	if (h->version != WS_RUN_VERSION)
		return "A run in it has another format version.";
	if (h->crc != ws_run_header_crc(h))
		return "The checksum of a run header in it is wrong.";
	if (h->nentries != nentries || h->block_size != block_size || h->number != number)
		return "It holds another run than was written there.";
	return NULL;
}

static inline void
ws_block_seal(WsBlockHeader *b, uint32 nentries, uint32 run, uint32 block)
{
	b->nentries = nentries;
	b->run = run;
	b->block = block;
	b->crc = ws_block_crc(b);
}

/* What is wrong with a block that was read, as a sentence, or NULL. */
static inline const char *
ws_block_check(const WsBlockHeader *b, uint32 nentries, uint32 run, uint32 block)
{
	/* the count first: it says how much the checksum covers */
	if (b->nentries != nentries)
		return "A run block in it has the wrong number of entries.";
	if (b->crc != ws_block_crc(b))
		return "The checksum of a run block in it is wrong.";
	if (b->run != run || b->block != block)
		return "It holds another run block than was written there.";
	return NULL;
}

#endif							/* WS_RUNBLOCK_H */
