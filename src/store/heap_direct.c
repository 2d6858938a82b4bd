/*-------------------------------------------------------------------------
 * heap_direct.c - direct reads: rows of a table without pins and evictions.
 *
 * A sort that fetches its rows from the table in key order comes to most
 * blocks many times.  Through the buffer manager each visit of a block that is
 * not in shared_buffers evicts another page and copies 8 kB for the sake of a
 * row or two.  A direct read copies the rows alone, out of a mapping of the
 * table's files, which is the page cache itself.
 *
 * It is safe only while nobody changes the block, and that is what the buffer
 * manager's mapping locks say (bufmgr.c).  With the partition lock of the
 * block's tag held in shared mode:
 *
 *	- if the tag is not in the mapping table, the block is in no buffer, so
 *	  that nobody can be changing it or writing it out: whoever evicted it
 *	  had written it first (15: BufferAlloc; 16 and later: GetVictimBuffer and
 *	  InvalidateVictimBuffer), and removed it under the same lock in exclusive
 *	  mode; whoever wants it back needs that lock in exclusive mode as well.
 *	  The file has the block's latest bytes, but perhaps not all hint bits.
 *	- if it is there, that buffer remains the block's for as long, without a
 *	  pin, and its page does not change under the buffer's content lock in shared
 *	  mode.  If that cannot be had at once, or the page is still being read in,
 *	  the block is left to the buffer manager.  So it always is from PostgreSQL 19
 *	  on, where only who has a pin can take a content lock (docs/heap.md).
 *
 * The caller touches the pages it is going to need before (ws_direct_touch),
 * so that I/O under the lock takes a page evicted in between; nothing under it allocates, looks for
 * interrupts, or raises errors, except for a page that the device cannot
 * deliver (os/sigbus.c), whose ERROR releases the locks.  They are held for at
 * most WS_DIRECT_BLOCKS blocks: some microseconds, unless the system takes the
 * processor away from the backend, or from its helper in the middle of an item.
 *
 * With data checksums, a block is copied at its first visit and verified; one
 * that fails is left to the buffer manager, which raises core's error.
 *
 * Refused: temporary tables, whose buffers are local; debug_io_direct, where
 * the page cache may be stale; limited address space; files that cannot be
 * mapped.
 *
 * Memory: a struct a segment, and with checksums, once blocks are read, two pages and a bit a block.
 *-------------------------------------------------------------------------
 */
#include "store/heap.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "access/htup_details.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "common/relpath.h"
#include "port/pg_bitutils.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/fd.h"
#include "utils/memdebug.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#define MEMORY_PAGE		4096	/* bytes, at least */

/* Of a block, in the place of a buffer. */
#define IN_FILE			(-1)
#define UNKNOWN			(-2)

typedef struct Segment
{
	WsMapping	mapping;		/* must be first; base NULL until asked for */
	BlockNumber nblocks;		/* mapped; 0 if it cannot be */
	bool		tried;
	bool		persistent;		/* mapped by libpmem */
	char	   *name;
} Segment;

struct WsDirect
{
	Relation	rel;
	char	   *path;			/* of the first segment */
	BlockNumber nblocks;		/* of the table, when this began */
	Segment    *segments;
	int			nsegments;
	uint64		held[NUM_BUFFER_PARTITIONS / 64];	/* partition locks: a bit each */
	int32	   *buffers;		/* by block: its buffer at the last visit, IN_FILE or UNKNOWN */
	BlockNumber nbuffers;		/* the first blocks of the table, so many */
	uint8	   *verified;		/* with checksums, once blocks are read: a bit a block */
	char	   *page;			/* the same: a copy, aligned */
	MemoryContextCallback callback;
};

static void
release_mappings(void *arg)
{
	WsDirect   *d = arg;

	for (int i = 0; i < d->nsegments; i++)
	{
		Segment    *s = &d->segments[i];

		if (s->mapping.base == NULL)
			continue;
		ws_sigbus_forget(&s->mapping);
		if (s->persistent)
			ws_pmem_unmap(s->mapping.base, s->mapping.bytes);
		else
			munmap(s->mapping.base, s->mapping.bytes);
		s->mapping.base = NULL;
	}
}

/* Are direct reads of this table refused, whatever the settings? */
bool
ws_direct_refused(Relation rel)
{
	struct rlimit limit;

	/*
	 * Another storage manager than md.c need not keep pages as they are, be the access method that of heaps:
	 * it may encrypt them.  Where address space is limited, it is not for a whole table.
	 */
	return rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP || ws_direct_io() ||
		RelationGetSmgr(rel)->smgr_which != 0 ||
		(getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY);
}

/*
 * Prepares direct reads of `rel`, which stays open and locked.  Allocates in
 * CurrentMemoryContext, whose reset undoes it.  Returns NULL where direct
 * reads are refused.
 */
WsDirect *
ws_direct_create(Relation rel)
{
	WsDirect   *d;

	if (ws_direct_refused(rel))
		return NULL;
	d = palloc0(sizeof(WsDirect));
	d->rel = rel;
	d->path = ws_relation_path(rel);
	d->nblocks = RelationGetNumberOfBlocks(rel);
	d->nsegments = (int) (d->nblocks / RELSEG_SIZE) + 1;
	d->segments = palloc0(d->nsegments * sizeof(Segment));
	d->callback.func = release_mappings;
	d->callback.arg = d;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &d->callback);
	return d;
}

/* The file's bytes, through the page cache; NULL if it cannot be mapped. */
static char *
map_file(const char *name, Size *bytes)
{
	struct stat st;
	char	   *base = NULL;
	int			fd = BasicOpenFile(name, O_RDONLY | PG_BINARY);	/* also if no transient one is left */

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && st.st_size >= BLCKSZ)
	{
		base = mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, fd, 0);
		if (base == MAP_FAILED)
			base = NULL;
		*bytes = st.st_size;
	}
	close(fd);
	return base;
}

/* Maps a segment.  One that cannot be mapped has no blocks. */
static void
map_segment(WsDirect *d, int number)
{
	Segment    *s = &d->segments[number];

	s->tried = true;
	if (s->name == NULL)
	{
		/* an error at any time later names it, and the caller's memory may be that of a tie */
		MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(d));

		s->name = number == 0 ? d->path : psprintf("%s.%d", d->path, number);
		MemoryContextSwitchTo(old);
	}
	s->mapping.base = ws_pmem_map(s->name, &s->mapping.bytes);
	s->persistent = s->mapping.base != NULL;
	if (!s->persistent)
		s->mapping.base = map_file(s->name, &s->mapping.bytes);
	if (s->mapping.base == NULL)
		return;
	s->nblocks = (BlockNumber) Min(s->mapping.bytes / BLCKSZ, RELSEG_SIZE);
	s->mapping.name = s->name;
	s->mapping.table = true;
	ws_sigbus_register(&s->mapping);
}

/* Has any of the table's files been found on persistent memory? */
bool
ws_direct_persistent(const WsDirect *d)
{
	for (int i = 0; i < d->nsegments; i++)
		if (d->segments[i].persistent)
			return true;
	return false;
}

/* Where a block is mapped, or NULL. */
static inline const char *
mapped(WsDirect *d, BlockNumber block)
{
	Segment    *s;

	if (unlikely(block >= d->nblocks))
		return NULL;
	s = &d->segments[block / RELSEG_SIZE];
	if (unlikely(!s->tried))
		map_segment(d, (int) (block / RELSEG_SIZE));
	if (unlikely(block % RELSEG_SIZE >= s->nblocks))
		return NULL;
	return s->mapping.base + (Size) (block % RELSEG_SIZE) * BLCKSZ;
}

/*
 * Brings the line pointer of a row into memory and cache.  Without a lock, nothing
 * that is read here can be relied on.  Called by helpers, too.
 */
void
ws_direct_touch(const char *page, OffsetNumber offset)
{
	(void) *(const volatile char *) page;
	__builtin_prefetch(page + SizeOfPageHeaderData + (offset - 1) * sizeof(ItemIdData));
}

static inline ItemIdData
line_pointer(const char *page, OffsetNumber offset)
{
	return ((const PageHeaderData *) page)->pd_linp[(OffsetNumber) (offset - 1) % MaxHeapTuplesPerPage];
}

/* Asks the CPU for the row itself.  What is not in memory stays where it is. */
void
ws_direct_prefetch_row(const char *page, OffsetNumber offset)
{
	ItemIdData	lp = line_pointer(page, offset);
	const char *row = page + lp.lp_off % BLCKSZ;

	/* a row may begin anywhere in its first cache line */
	for (Size i = 0; i < Min(lp.lp_len, (Size) 512) + 56 && row + i < page + BLCKSZ; i += 64)
		__builtin_prefetch(row + i);
}

/* Brings the row into memory. */
void
ws_direct_touch_row(const char *page, OffsetNumber offset)
{
	ItemIdData	lp = line_pointer(page, offset);
	Size		first = lp.lp_off % BLCKSZ;
	Size		last = Min(first + lp.lp_len, BLCKSZ - 1);

	(void) *(const volatile char *) (page + first);
	(void) *(const volatile char *) (page + last);
}

static inline LWLock *
partition_lock(int partition)
{
	return BufMappingPartitionLockByIndex(partition);
}

/*
 * Is this the buffer of a block whose partition lock is held?  The mapping table would say the same: tags
 * come to buffers and go from them with that lock held in exclusive mode, too (docs/heap.md).  The header
 * lock is for buffers that are getting the tag of another partition meanwhile.
 */
static inline bool
has_tag(int buffer, const BufferTag *tag)
{
#if WS_SHARES_BUFFERS
	BufferDesc *desc = GetBufferDescriptor(buffer);
	uint32		state = LockBufHdr(desc);
	bool		same = (state & BM_TAG_VALID) != 0 && ws_same_tag(&desc->tag, tag);

	UnlockBufHdr(desc, state);
	return same;
#else
	return false;
#endif
}

/* Number of the buffer of a block whose partition lock is held, or -1. */
static inline int
lookup(WsDirect *d, BlockNumber block, uint32 hash)
{
	BufferTag	tag;
	int			buffer;

	ws_buffer_tag(&tag, d->rel, block);
	if (block >= d->nbuffers)
		return BufTableLookup(&tag, hash);
	buffer = d->buffers[block];
	if (buffer >= 0 && has_tag(buffer, &tag))
		return buffer;
	buffer = BufTableLookup(&tag, hash);
	d->buffers[block] = buffer >= 0 ? buffer : IN_FILE;
	return buffer;
}

static inline uint32
hash_block(WsDirect *d, BlockNumber block)
{
	BufferTag	tag;

	ws_buffer_tag(&tag, d->rel, block);
	return BufTableHashCode(&tag);
}

/*
 * With data checksums, verifies a block at its first visit, in a copy.  One that
 * fails is not read directly.
 */
static void
verify(WsDirect *d, BlockNumber block, const char *page)
{
	uint32		hash = hash_block(d, block);
	LWLock	   *lock = BufMappingPartitionLock(hash);
	bool		copied;

	/* what is not in memory is read before the lock is taken */
	for (Size i = 0; i < BLCKSZ; i += MEMORY_PAGE)
		(void) *(const volatile char *) (page + i);
	LWLockAcquire(lock, LW_SHARED);
	copied = lookup(d, block, hash) < 0;
	if (copied)
		memcpy(d->page, page, BLCKSZ);
	LWLockRelease(lock);
	if (copied && ws_page_is_verified(d->page, block))
		d->verified[block / 8] |= (uint8) (1 << block % 8);
}

static inline bool
trusted(const WsDirect *d, BlockNumber block)
{
	return d->verified == NULL || (d->verified[block / 8] & 1 << block % 8) != 0;
}

/* Takes the partition locks of d->held, in ascending order. */
static void
take_locks(WsDirect *d)
{
	for (int i = 0; i < (int) lengthof(d->held); i++)
		for (uint64 rest = d->held[i]; rest != 0; rest &= rest - 1)
			LWLockAcquire(partition_lock(i * 64 + pg_rightmost_one_pos64(rest)), LW_SHARED);
}

/* Memory for verifying blocks.  Who only asks about blocks, or announces them, does without. */
static void
prepare_verifying(WsDirect *d)
{
	MemoryContext context = GetMemoryChunkContext(d);

	d->page = MemoryContextAlloc(context, 2 * BLCKSZ);
	d->page = (char *) TYPEALIGN(BLCKSZ, (uintptr_t) d->page);
	d->verified = MemoryContextAllocZero(context, d->nblocks / 8 + 1);
}

/*
 * Prepares n <= WS_DIRECT_BLOCKS different blocks to be locked: sets `page` to where
 * they are mapped, to be touched, or to NULL.  Without `files`, only blocks in
 * shared_buffers are going to be had.
 */
void
ws_direct_find(WsDirect *d, WsDirectBlock *blocks, int n, bool files)
{
	if (unlikely(d->verified == NULL && DataChecksumsEnabled()))
		prepare_verifying(d);
	for (int i = 0; i < n; i++)
	{
		WsDirectBlock *b = &blocks[i];

		b->page = files ? mapped(d, b->block) : NULL;
		if (unlikely(b->page != NULL && !trusted(d, b->block)))
			verify(d, b->block, b->page);
		b->near = b->page;
	}
}

/*
 * From now on it is remembered, in `buffers`, in which buffer each of the table's first `blocks` blocks was
 * when it was visited last.  That spares a visit the look into the mapping table, and tells what to touch.
 */
void
ws_direct_remember(WsDirect *d, int32 *buffers, BlockNumber blocks)
{
	for (BlockNumber i = 0; i < blocks; i++)
		buffers[i] = UNKNOWN;
	d->buffers = buffers;
	d->nbuffers = blocks;
}

bool
ws_direct_remembers(const WsDirect *d)
{
	return d->buffers != NULL;
}

/* As ws_direct_find, but that `files` is for blocks of which nothing is remembered. */
void
ws_direct_recall(WsDirect *d, WsDirectBlock *blocks, int n, bool files)
{
	for (int i = 0; i < n; i++)
	{
		WsDirectBlock *b = &blocks[i];
		int32		buffer = b->block < d->nbuffers ? d->buffers[b->block] : UNKNOWN;

		ws_direct_find(d, b, 1, buffer == UNKNOWN ? files : buffer == IN_FILE);
		if (buffer < 0)
			continue;
		__builtin_prefetch(GetBufferDescriptor(buffer), 1);
		b->near = BufferGetBlock(buffer + 1);
		/* a server made for a memory checker forbids pages without a pin */
		VALGRIND_MAKE_MEM_DEFINED((void *) b->near, BLCKSZ);
	}
}

/* Where a block is mapped, or NULL: for ws_direct_announce alone, since nothing keeps it as it is. */
const char *
ws_direct_page(WsDirect *d, BlockNumber block)
{
	return mapped(d, block);
}

/* Is the block in shared_buffers? */
bool
ws_direct_is_shared(WsDirect *d, BlockNumber block)
{
	uint32		hash = hash_block(d, block);
	LWLock	   *lock = BufMappingPartitionLock(hash);
	bool		shared;

	LWLockAcquire(lock, LW_SHARED);
	shared = lookup(d, block, hash) >= 0;
	LWLockRelease(lock);
	return shared;
}

/* Tells the system that a block is going to be read from its file.  Called by helpers. */
void
ws_direct_announce(const char *page)
{
	ws_pages_announce(page, BLCKSZ);
}

/* Is the block in shared_buffers, or its file's page in memory?  Where that cannot be told, it is. */
bool
ws_direct_in_memory(WsDirect *d, BlockNumber block)
{
	const char *page = mapped(d, block);

	if (page == NULL || d->segments[block / RELSEG_SIZE].persistent)
		return true;
	return ws_direct_is_shared(d, block) || ws_pages_absent(page, BLCKSZ) <= 0;
}

/*
 * Allows to look at the page of a buffer, or does not if that would mean waiting.
 * The mapping lock keeps a buffer what it is without a pin; its content lock, only
 * tried here because holders of content locks wait for mapping locks, keeps its
 * page from changing.
 */
static bool
share_buffer(int buffer)
{
	BufferDesc *desc = GetBufferDescriptor(buffer);

	if (!ws_buffer_is_valid(desc) || !ws_buffer_try_share(desc))
		return false;
	if (ws_buffer_is_valid(desc))
		return true;
	ws_buffer_unshare(desc);
	return false;
}

/*
 * Keeps the pages of blocks that ws_direct_find has prepared as they are, until
 * ws_direct_unlock: sets `page` and `buffer`, or leaves `page` NULL where the
 * block cannot be had so.  Returns how many are in shared_buffers.  Nothing may be raised, allocated or
 * waited for meanwhile.
 *
 * All locks are taken together, in ascending order as everybody does who takes
 * two, so that rows in buffers, whose addresses are known only then, can be
 * prefetched for all blocks, and a helper can take its part.
 */
int
ws_direct_lock(WsDirect *d, WsDirectBlock *blocks, int n)
{
	uint32		hash[WS_DIRECT_BLOCKS];
	int			present = 0;

	for (int i = 0; i < n; i++)
	{
		int			partition;

		hash[i] = hash_block(d, blocks[i].block);
		partition = (int) BufTableHashPartition(hash[i]);
		d->held[partition / 64] |= UINT64CONST(1) << partition % 64;
	}
	take_locks(d);
	for (int i = 0; i < n; i++)
	{
		WsDirectBlock *b = &blocks[i];

		b->buffer = lookup(d, b->block, hash[i]);
		if (b->buffer >= 0)
		{
			present++;
			b->page = share_buffer(b->buffer) ? BufferGetBlock(b->buffer + 1) : NULL;
			/* a server made for a memory checker forbids pages without a pin */
			if (b->page != NULL)
				VALGRIND_MAKE_MEM_DEFINED((void *) b->page, BLCKSZ);
		}
		else if (b->page != NULL && !trusted(d, b->block))
			b->page = NULL;
	}
	return present;
}

/* Releases what ws_direct_lock has locked. */
void
ws_direct_unlock(WsDirect *d, const WsDirectBlock *blocks, int n)
{
	/* the last one taken is the first one that LWLockRelease looks at */
	for (int i = n - 1; i >= 0; i--)
		if (blocks[i].buffer >= 0 && blocks[i].page != NULL)
			ws_buffer_unshare(GetBufferDescriptor(blocks[i].buffer));
	for (int i = (int) lengthof(d->held) - 1; i >= 0; i--)
		while (d->held[i] != 0)
		{
			int			last = pg_leftmost_one_pos64(d->held[i]);

			LWLockRelease(partition_lock(i * 64 + last));
			d->held[i] &= ~(UINT64CONST(1) << last);
		}
}

/* Raises the error of a page that a helper could not read. */
void
ws_direct_failed(const WsDirect *d)
{
	ws_bad_table(d->path);
}
