/*-------------------------------------------------------------------------
 * test_region.c - regions (os/region.c): what is new in one is zero, whatever a region before had there, and
 * those that are kept for the next sort are few, small, and given back where address space is short.
 *-------------------------------------------------------------------------
 */
#include "server.c"

#include "../../src/os/region.c"

#define KB		((Size) 1024)
#define MANY	(3 * SPARES)

static WsAccount account;

/* Commits and fills `bytes` bytes; were they zero? */
static bool
fill(WsRegion *region, Size bytes)
{
	Size		before = region->committed;
	bool		zero = true;

	ws_region_commit(region, bytes);
	for (Size i = before; i < region->committed; i++)
		zero &= region->base[i] == 0;
	memset(region->base, 0x7e, region->committed);
	return zero;
}

static void
again(void *arg)
{
	Size		expected = *(Size *) arg;
	Size		mapped = 0;
	bool		zero = true;

	for (int i = 0; i < 20; i++)
	{
		WsRegion   *region = ws_region_create(&account, expected, 1024 * KB);

		zero &= fill(region, 8 * KB);
		zero &= fill(region, (i % 3 + 1) * 16 * KB);
		if (i % 4 == 1)
			ws_region_shrink(region, 4 * KB);
		if (i % 4 == 2)
			ws_region_release(region, 8 * KB);
		if (i == 0)
			mapped = server.mapped;
		CHECK(server.mapped == mapped, "the same memory, time %d", i + 1);
		ws_region_destroy(region);
	}
	CHECK(zero, "%zu kB: what is new is zero", expected / KB);
	CHECK(account.now == 0, "nothing is counted any more");
}

static void
at_once(void *arg)
{
	WsRegion   *regions[MANY];

	for (int i = 0; i < MANY; i++)
	{
		regions[i] = ws_region_create(&account, 64 * KB + i * 4 * KB, 4096 * KB);
		CHECK(fill(regions[i], 4 * KB), "region %d of many", i + 1);
	}
	for (int i = 0; i < MANY; i++)
		ws_region_destroy(regions[i]);
	CHECK(nspares == SPARES && spares[SPARES - 1].reserved == 64 * KB + (MANY - 1) * 4 * KB, "the last are kept, and no more");
}

static void
large(void *arg)
{
	WsRegion   *region = ws_region_create(&account, 1024 * KB, 1024 * KB);
	int			before = nspares;

	(void) fill(region, SPARE_BYTES + 4 * KB);
	ws_region_destroy(region);
	CHECK(nspares == before, "one of which much was touched is not kept");
	region = ws_region_create(&account, SPARE_SPACE + 64 * KB, 2 * SPARE_SPACE);
	(void) fill(region, 4 * KB);
	ws_region_destroy(region);
	CHECK(nspares == before, "nor one with much address space");
	region = ws_region_create(&account, 128 * KB, 2048 * KB);
	(void) fill(region, 16 * KB);
	CHECK(ws_region_reserve(region, 1024 * KB) && region->base[16 * KB - 1] == 0x7e, "it grows");
	ws_region_destroy(region);
	region = ws_region_create(&account, 128 * KB, 2048 * KB);
	CHECK(region->reserved == 128 * KB && fill(region, 64 * KB), "and the next one of its first size is new");
}

/* One of which more is expected than comes is kept as any small one, and one that fills is moved once. */
static void
small(void *arg)
{
	Size		expected[] = {16 * KB, 700 * KB, 4096 * KB, 300 * KB};
	char	   *base = NULL;
	WsRegion   *region;

	for (int i = 0; i < (int) lengthof(expected); i++)
	{
		region = ws_region_create_small(&account, expected[i], 8192 * KB);
		if (i == 0)
			base = region->base;
		CHECK(region->base == base, "%zu kB are expected: the same memory", expected[i] / KB);
		CHECK(fill(region, 16 * KB), "and it is new");
		ws_region_destroy(region);
	}
	region = ws_region_create_small(&account, 700 * KB, 8192 * KB);
	(void) fill(region, 60 * KB);
	server.reserves_fail_from = server.reserves + 1;
	CHECK(!ws_region_reserve(region, 200 * KB) && region->base[60 * KB - 1] == 0x7e,
		  "where the system has no address space, it stays as it is");
	server.reserves_fail_from = 0;
	CHECK(ws_region_reserve(region, 200 * KB) && region->reserved == 700 * KB, "else it is moved to what is expected");
	CHECK(region->base[60 * KB - 1] == 0x7e, "with what is in it");
	CHECK(fill(region, 200 * KB), "the rest is new");
	CHECK(ws_region_reserve(region, 701 * KB) && region->reserved >= 1400 * KB, "and then to twice as much");
	CHECK(region->base[200 * KB - 1] == 0x7e, "with what is in it");
	ws_region_destroy(region);
}

static void
nothing(void *arg)
{
	(void) ws_region_create(&account, 64 * KB, 64 * KB);
}

int
main(void)
{
	Size		sizes[] = {16, 64 * KB, 128 * KB};

	for (int i = 0; i < (int) lengthof(sizes); i++)
		CHECK(server_try(again, &sizes[i]), "sorts one behind the other");
	CHECK(server_try(at_once, NULL), "regions at once");
	CHECK(server_try(large, NULL), "large ones");
	CHECK(server_try(small, NULL), "more is expected than comes");
	CHECK(server_try(nothing, NULL), "one that is left to its memory context");
	CHECK(server_left() == NULL, "nothing is left");
	return failures != 0;
}
