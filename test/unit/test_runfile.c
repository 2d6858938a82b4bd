/*-------------------------------------------------------------------------
 * test_runfile.c - the checks on runs: every damaged byte is noticed.
 *
 * Compiled with a bytewise CRC-32C of its own (the Castagnoli polynomial),
 * since the server's is chosen at run time.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"
#include "port/pg_crc32c.h"

static pg_crc32c
slow_crc32c(pg_crc32c crc, const void *data, size_t n)
{
	const unsigned char *p = data;

	while (n-- > 0)
	{
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (0x82F63B78 & -(crc & 1));
	}
	return crc;
}

#undef COMP_CRC32C
#define COMP_CRC32C(crc, data, len) ((crc) = slow_crc32c((crc), (data), (len)))

#include "unit.h"
#include "../../src/run/runblock.h"

#define BLOCK_SIZE	512
#define RUN			7
#define BLOCK		3

static union
{
	WsBlockHeader header;
	char		bytes[BLOCK_SIZE];
	uint64		align;
}			block;

static void
fill_block(uint32 nentries)
{
	WsEntry    *e = (WsEntry *) (block.bytes + sizeof(WsBlockHeader));

	for (uint32 i = 0; i < nentries; i++)
		e[i] = ws_entry_make(((ws_uint128) next_random() << 16) | i, i);
	ws_block_seal(&block.header, nentries, RUN, BLOCK);
}

int
main(void)
{
	WsRunHeader header;
	uint32		n = (uint32) ws_block_capacity(BLOCK_SIZE);
	int			missed = 0;

	/* CRC-32C of "123456789", from RFC 3720's polynomial */
	CHECK((slow_crc32c(0xFFFFFFFF, "123456789", 9) ^ 0xFFFFFFFF) == 0xE3069283,
		  "the test's own CRC-32C is one");

	CHECK(n == 31, "a block of %d bytes holds %u entries", BLOCK_SIZE, n);
	CHECK(ws_block_bytes(BLOCK_SIZE, 100, 0) == BLOCK_SIZE, "a full block has its full size");
	CHECK(ws_block_bytes(BLOCK_SIZE, 100, 3) == sizeof(WsBlockHeader) + 7 * sizeof(WsEntry),
		  "the last block is as short as it can be");
	CHECK(ws_block_bytes(BLOCK_SIZE, 62, 1) == BLOCK_SIZE, "a last block may be full");

	ws_run_header_seal(&header, 100, BLOCK_SIZE, RUN);
	CHECK(ws_run_header_check(&header, 100, BLOCK_SIZE, RUN) == NULL, "a header is accepted");
	CHECK(ws_run_header_check(&header, 101, BLOCK_SIZE, RUN) != NULL, "another entry count is refused");
	CHECK(ws_run_header_check(&header, 100, BLOCK_SIZE * 2, RUN) != NULL, "another block size is refused");
	CHECK(ws_run_header_check(&header, 100, BLOCK_SIZE, RUN + 1) != NULL, "another run is refused");
	for (size_t i = 0; i < sizeof(header); i++)
	{
		((unsigned char *) &header)[i] ^= 0x40;
		missed += ws_run_header_check(&header, 100, BLOCK_SIZE, RUN) == NULL;
		((unsigned char *) &header)[i] ^= 0x40;
	}
	CHECK(missed == 0, "a damaged byte of a header is noticed, wherever (%d missed)", missed);
	memset(&header, 0, sizeof(header));
	CHECK(ws_run_header_check(&header, 0, 0, 0) != NULL, "zeroes are not a header");

	fill_block(n);
	CHECK(ws_block_check(&block.header, n, RUN, BLOCK) == NULL, "a block is accepted");
	CHECK(ws_block_check(&block.header, n - 1, RUN, BLOCK) != NULL, "another entry count is refused");
	CHECK(ws_block_check(&block.header, n, RUN + 1, BLOCK) != NULL, "a block of another run is refused");
	CHECK(ws_block_check(&block.header, n, RUN, BLOCK + 1) != NULL, "another block is refused");
	missed = 0;
	for (int i = 0; i < BLOCK_SIZE; i++)
	{
		block.bytes[i] ^= 1;
		missed += ws_block_check(&block.header, n, RUN, BLOCK) == NULL;
		block.bytes[i] ^= 1;
	}
	CHECK(missed == 0, "a damaged byte of a block is noticed, wherever (%d missed)", missed);
	fill_block(1);
	CHECK(ws_block_check(&block.header, 1, RUN, BLOCK) == NULL, "a short block is accepted");
	memset(&block, 0, sizeof(block));
	CHECK(ws_block_check(&block.header, n, RUN, BLOCK) != NULL, "zeroes are not a block");
	return failures != 0;
}
