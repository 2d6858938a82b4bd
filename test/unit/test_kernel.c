/*-------------------------------------------------------------------------
 * test_kernel.c - the kernel that sorts entries, against qsort of the C library.
 *
 * Entries in order, the other way round, and nearly so; equal ones, as rows have that are nothing but their
 * keys, at the beginning, at the end and everywhere.  Both must give the same.  (vqsort is C++, and compared with
 * it by the tests in SQL: here qsort is in its place, and counted.)
 *-------------------------------------------------------------------------
 */
#include "server.h"
#define HAVE_LIBHWY				/* which server.h takes away */
#include "sorting.c"

#define MOST	20000

/* Entry i of n, of `distinct` values; `alike`: those of one value do not differ in their pointers. */
static WsEntry
entry(int order, Size i, Size n, Size distinct, bool alike)
{
	Size		place = order == 0 ? i : order == 1 ? n - 1 - i : next_random() % n;
	Size		value;

	if (order == 3)
		place = i == n - 1 ? 0 : i;		/* all but the last one in order */
	if (order == 4)
		place = i == 0 ? 0 : n - i;		/* all but the first one the other way round */
	value = place * distinct / n;
	if (order == 5)
	{
		/* the other way round, but for those of one value */
		value = (n - 1 - i) * distinct / n;
		place = i;
	}
	return ws_entry_make((ws_uint128) value << 40, alike ? 0 : place);
}

static int
by_value(const void *a, const void *b)
{
	const ws_uint128 x = ws_entry_int(*(const WsEntry *) a);
	const ws_uint128 y = ws_entry_int(*(const WsEntry *) b);

	return (x > y) - (x < y);
}

static long vqsorted;

void
ws_vqsort(WsEntry *entries, Size n)
{
	vqsorted++;
	qsort(entries, n, sizeof(WsEntry), by_value);
}

void
ws_vqsort_numbers(uint64 *numbers, Size n)
{
	abort();
}

void
ws_vqsort_thread_end(void)
{
}

static void
compare_kernels(void *arg)
{
	static const Size sizes[] = {0, 1, 2, 3, 63, 64, 65, 1000, MOST};
	static const Size values[] = {1, 2, 5, 300, MOST};
	WsEntry    *a = MemoryContextAllocHuge(CurrentMemoryContext, (MOST + 1) * sizeof(WsEntry));
	WsEntry    *b = MemoryContextAllocHuge(CurrentMemoryContext, (MOST + 1) * sizeof(WsEntry));

	a = (WsEntry *) TYPEALIGN(16, (uintptr_t) a);
	b = (WsEntry *) TYPEALIGN(16, (uintptr_t) b);
	for (int order = 0; order < 6; order++)
		for (int v = 0; v < (int) lengthof(values); v++)
			for (int way = 0; way < 4; way++)
			{
				bool		alike = way % 2 != 0;
				bool		vectorised = way / 2 != 0;
				long		wrong = 0;

				vqsorted = 0;
				for (int s = 0; s < (int) lengthof(sizes); s++)
				{
					Size		n = sizes[s];

					for (Size i = 0; i < n; i++)
						a[i] = b[i] = entry(order, i, n, values[v], alike);
					ws_sort_entries(a, n, vectorised);
					qsort(b, n, sizeof(WsEntry), by_value);
					wrong += memcmp(a, b, n * sizeof(WsEntry)) != 0;
					for (Size i = 1; i < n; i++)
						wrong += ws_entry_int(a[i - 1]) > ws_entry_int(a[i]);
				}
				CHECK(wrong == 0 && (vqsorted == 0 || (order != 0 && order != 5)),
					  "order %d, %zu values, pointers %s: %ld wrong, vqsort %ld times", order, values[v],
					  alike ? "alike" : "their own", wrong, vqsorted);
			}
}

int
main(void)
{
	if (!server_try(compare_kernels, NULL))
		server_die("%s", server.message);
	return failures != 0;
}
