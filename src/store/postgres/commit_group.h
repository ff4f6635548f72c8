/* The writers of one process whose shards are in one database, and that may commit together: what
 * several of them want to commit at the same time becomes one transaction, which costs the server
 * less than one for each. Nobody waits for company. A commit goes its own way unless others are
 * under way; those that come meanwhile wait, and go together as soon as one of these is over.
 *
 * Each shard keeps its own fence, its own number of the commit and its own outcome. If the common
 * transaction does not get as far as its COMMIT, everybody commits alone.
 *
 * Threads: a writer's own. */
#ifndef PAWL_STORE_POSTGRES_COMMIT_GROUP_H
#define PAWL_STORE_POSTGRES_COMMIT_GROUP_H

#include "base/env.h"
#include "base/problem.h"

struct commit_group;

/* Of the store with this URL; it connects when it is first needed. Give it to the writers in their
 * db_config: those in other databases do not take part. The caller owns *ret. */
MUST_CHECK enum err commit_group_new(struct str store, const struct env *env, struct problem *p,
                                     struct commit_group **ret);
/* How many commits wait for those that are under way. Only a hint: it may change at any time. */
size_t commit_group_waiting(struct commit_group *group);
/* Its writers are closed. NULL is fine. */
void commit_group_free(struct commit_group *group);

#endif
