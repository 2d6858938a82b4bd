/*-------------------------------------------------------------------------
 * dictionaries.c - codes of values, and how they are learnt, for tests to include.
 *
 * With the hash that src/key/dictionary.c takes from PostgreSQL's common library, in the simplest form.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"

uint32
hash_bytes(const unsigned char *k, int keylen)
{
	uint32		hash = 2166136261u;

	for (int i = 0; i < keylen; i++)
		hash = (hash ^ k[i]) * 16777619;
	return hash;
}

#include "../../src/key/dictionary.c"
#include "../../src/key/trie.c"
#include "../../src/key/beginnings.c"
#include "../../src/key/packing.c"
#include "../../src/key/alphabet.c"
#include "../../src/key/letters.c"
#include "../../src/key/sample.c"
#include "../../src/key/aside.c"
#include "../../src/key/learntext.c"
#include "../../src/key/foretold.c"
#include "../../src/key/learn.c"
