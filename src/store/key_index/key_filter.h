/* A blocked Bloom filter over hashes: twelve bits a key, all bits of a key in one line of the
 * processor's cache. About one key in two hundred that it does not have passes it; no key that it
 * has is ever held back. Lines are in the order of the hashes. */
#ifndef PAWL_STORE_KEY_INDEX_KEY_FILTER_H
#define PAWL_STORE_KEY_INDEX_KEY_FILTER_H

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEY_LINE_WORDS = 8, KEY_LINE_BYTES = 64, KEY_FILTER_BITS = 12 };

struct key_filter {
    size_t lines;
    uint64_t (*words)[KEY_LINE_WORDS]; /* NULL: there is none, and every key passes */
};

/* The lines for so many keys. */
size_t key_filter_lines(uint64_t keys);
/* Empty. False when memory ran out. */
MUST_CHECK bool key_filter_init(struct key_filter *f, size_t lines);
void key_filter_release(struct key_filter *f);

void key_filter_add(struct key_filter *f, uint64_t hash);
bool key_filter_passes(const struct key_filter *f, uint64_t hash);

#endif
