/*-------------------------------------------------------------------------
 * rowblock.h - the bytes of a run of rows on disk, and how they are checked.
 *
 * A run of rows is a sequence of blocks, each of `block size` bytes at most, in units of 4 kB, or of more if
 * one row is larger than that:
 *
 *	header		48 bytes: CRC, magic, version, entries, number of the run, number of the block, its bytes,
 *				and where the next block begins, or something less than that
 *	rows		in order, each aligned as its columns want it
 *	entries		in order, up to the block's end: prefix, and where in the block the row is
 *
 * No row crosses a block.  That a block tells where the next one begins lets a merge go on, without it,
 * until that key is due (FMsort's Algorithm 2).
 *
 * CRC-32C as in WAL, over all bytes, gaps included.  Temporary files never travel between machines: native
 * byte order.  Pure, and inline because the unit tests compile it alone.
 *-------------------------------------------------------------------------
 */
#ifndef WS_ROWBLOCK_H
#define WS_ROWBLOCK_H

#include "entry.h"
#include "port/pg_crc32c.h"

#define WS_ROWS_MAGIC	0x574F5257	/* "WROW" */
#define WS_ROWS_VERSION	1

typedef struct WsRowBlock
{
	pg_crc32c	crc;			/* of all that follows */
	uint32		magic;
	uint32		version;
	uint32		nentries;
	uint32		run;			/* number of the run, unique within its sort */
	uint32		block;			/* number of the block in the run, from 0 */
	uint64		bytes;			/* this header included */
	WsEntry		next;			/* nothing less than this comes behind */
} WsRowBlock;

StaticAssertDecl(sizeof(WsRowBlock) == 48, "the header must keep rows and entries aligned");

static inline pg_crc32c
ws_rowblock_crc(const WsRowBlock *b)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, (const char *) b + sizeof(pg_crc32c), b->bytes - sizeof(pg_crc32c));
	FIN_CRC32C(crc);
	return crc;
}

/* The entries of a block: its last bytes. */
static inline WsEntry *
ws_rowblock_entries(WsRowBlock *b)
{
	return (WsEntry *) ((char *) b + b->bytes) - b->nentries;
}

/* Fills in a header but for its CRC, which is that of a block that is complete. */
static inline void
ws_rowblock_describe(WsRowBlock *b, uint32 nentries, uint32 run, uint32 block, uint64 bytes, WsEntry next)
{
	b->magic = WS_ROWS_MAGIC;
	b->version = WS_ROWS_VERSION;
	b->nentries = nentries;
	b->run = run;
	b->block = block;
	b->bytes = bytes;
	b->next = next;
}

/*
 * What is wrong with a block's header, as a sentence, or NULL.  `read` bytes of it are there, which is all
 * unless it is larger than `block_size`; `most`: bytes that the largest block of its run has.  After that the
 * header says how much there is to be read.
 */
static inline const char *
ws_rowblock_check_header(const WsRowBlock *b, uint64 read, uint64 block_size, uint64 most, uint32 run,
						 uint32 block)
{
	if (b->magic != WS_ROWS_MAGIC)
		return "A block of rows in it does not start with its magic number.";
	if (b->version != WS_ROWS_VERSION)
		return "A block of rows in it has another format version.";
	if (b->run != run || b->block != block)
		return "It holds another block of rows than was written there.";
	if (b->bytes > most || b->bytes % sizeof(WsEntry) != 0 || b->nentries == 0 ||
		b->bytes < read || (b->bytes > read && read < block_size) ||
		b->bytes < sizeof(WsRowBlock) + (uint64) b->nentries * sizeof(WsEntry))
		return "The header of a block of rows in it makes no sense.";
	return NULL;
}

/* The same for a whole block, whose header has been checked. */
static inline const char *
ws_rowblock_check(const WsRowBlock *b)
{
	return b->crc == ws_rowblock_crc(b) ? NULL : "The checksum of a block of rows in it is wrong.";
}

#endif							/* WS_ROWBLOCK_H */
