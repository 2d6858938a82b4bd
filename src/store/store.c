/*-------------------------------------------------------------------------
 * store.c - the store that a request asks for.
 *-------------------------------------------------------------------------
 */
#include "store/store.h"

/*
 * Creates the store of context->request, in CurrentMemoryContext.  What the context points to
 * outlives it.
 */
WsStore *
ws_store_create(const WsStoreContext *context)
{
	switch (context->request->store)
	{
		case WS_KIND_HEAP:
			return ws_heap_store(context);
		case WS_KIND_KEYS:
			return ws_keys_store(context);
		case WS_KIND_SPOOL:
			break;
	}
	return ws_spool_store(context);
}
