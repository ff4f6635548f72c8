/* Random keys that belong to one store and stay in it. */
#ifndef PAWL_STORE_SECRETS_H
#define PAWL_STORE_SECRETS_H

#include "store/db.h"

struct secret {
    unsigned char bytes[SHA256_LEN];
};

/* The key of this name. A new random one is stored if there is none, or if it is damaged. By the
 * writer, between transactions. */
MUST_CHECK enum err secrets_get(struct db *db, const struct env *env, struct str name,
                                struct secret *ret);

/* The same for a reader, who stores none. */
MUST_CHECK enum err secrets_find(struct db *db, struct str name, bool *ret_found,
                                 struct secret *ret);

/* Other keys, named PREFIX and something, that came with rows of other stores. Returns how many of
 * them are in `ret`. */
MUST_CHECK enum err secrets_list(struct db *db, struct str prefix, struct secret *ret, size_t room,
                                 size_t *ret_count);

#endif
