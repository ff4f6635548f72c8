/* pawl serve: reads the options of the server, then runs it until it is asked to stop. */
#ifndef PAWL_SERVE_SERVE_H
#define PAWL_SERVE_SERVE_H

#include "base/options.h"

extern const struct option SERVE_OPTIONS[];
extern const struct option DEV_OPTIONS[]; /* of `pawl dev`, besides those */

/* argv[1] is the command, its options follow. `dev` turns --dev on. Returns the exit code. */
int serve_main(int argc, char **argv, bool dev);

/* `pawl cluster init`: makes a database a cluster of so many shards, and so many spare ones.
 * Returns the exit code. */
int serve_cluster_init(const char *store, int64_t shards, int64_t spares);
/* `pawl cluster move-tenant`: moves a tenant to a spare shard while nodes run. */
int serve_cluster_move_tenant(const char *store, const char *tenant, int64_t shard);
/* `pawl cluster place`: puts a shard into another database before it is used. */
int serve_cluster_place(const char *store, int64_t shard, const char *url);
/* `pawl cluster drain`: the node gives up its shards and takes none, or may take some again. */
int serve_cluster_drain(const char *store, const char *node, bool undo);

/* The storage engines in this binary, for `pawl version`. NULL at the end. */
const char *serve_store_name_at(size_t i);

#endif
