/* What a client has learned from answers: the latest texts of each member, by its name. So that
 * requests can name runs, jobs, leases and cursors that exist. */
#ifndef PAWL_FUZZ_KNOWN_H
#define PAWL_FUZZ_KNOWN_H

#include "base/json_tree.h"

enum { KNOWN_NAMES = 96, KNOWN_VALUES = 8, KNOWN_TEXT_MAX = 160 };

struct known_name {
    char name[32];
    char values[KNOWN_VALUES][KNOWN_TEXT_MAX];
    size_t count; /* of all so far; the last KNOWN_VALUES are kept */
};

struct known {
    struct known_name names[KNOWN_NAMES];
    size_t count;
};

/* Every member of every object of the value that is a text or a whole number. Long texts are left
 * out. `id_is` is what a member `id` is called in paths, as "run_id"; NULL: no more than id. The
 * job of a lease_token is known as leased_job, in the same place. */
void known_learn(struct known *k, const json_t *value, const char *id_is);
/* The latest but `ago`, or any other if there are fewer; ptr NULL: none is known. */
struct str known_text(const struct known *k, struct str name, size_t ago);

#endif
