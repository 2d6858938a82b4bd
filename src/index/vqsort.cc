/*-------------------------------------------------------------------------
 * index/vqsort.cc - the shim around Highway's vqsort.
 *
 * Vectorised quicksort of 128-bit keys, dispatched at run time to the best
 * instruction set of the CPU.  10 M entries take 0.16 s here with AVX-512,
 * against 0.69 s of std::sort.  No exception crosses this file: the sorter,
 * which owns its scratch buffer, is created once a thread and kept until
 * the thread says that it ends.
 *-------------------------------------------------------------------------
 */
#include <stddef.h>
#include <stdint.h>
#include <new>

#include <hwy/contrib/sort/vqsort.h>

extern "C" void ws_vqsort(void *entries, size_t n);
extern "C" void ws_vqsort_numbers(uint64_t *numbers, size_t n);
extern "C" void ws_vqsort_thread_end(void);

/*
 * When libhwy is loaded, it measures for some 5 ms how fine the processor's clock is, for benchmarks of its
 * own.  Every session waited for that, and every parallel worker (docs/decisions/29-sort-kernel.md).  The
 * dynamic linker finds this one before libhwy's.
 */
namespace hwy
{
namespace platform
{
__attribute__((visibility("default"))) uint64_t
TimerResolution()
{
	return 1;
}
}
}

/* Storage for a Sorter that is constructed at a thread's first use. */
struct Holder
{
	alignas(hwy::Sorter) unsigned char storage[sizeof(hwy::Sorter)];
	hwy::Sorter *sorter;
};
static __thread Holder holder;

static hwy::Sorter &
sorter()
{
	if (holder.sorter == nullptr)
		holder.sorter = ::new (static_cast<void *>(holder.storage)) hwy::Sorter();
	return *holder.sorter;
}

/* Sorts n entries ascending; 16-byte aligned.  Callable from any thread. */
extern "C" void
ws_vqsort(void *entries, size_t n)
{
	sorter()(static_cast<hwy::uint128_t *>(entries), n, hwy::SortAscending());
}

/* The same for numbers of 64 bits. */
extern "C" void
ws_vqsort_numbers(uint64_t *numbers, size_t n)
{
	sorter()(numbers, n, hwy::SortAscending());
}

/* Releases the calling thread's sorter. */
extern "C" void
ws_vqsort_thread_end(void)
{
	if (holder.sorter != nullptr)
		holder.sorter->~Sorter();
	holder.sorter = nullptr;
}
