#include "store_support/decorated.h"

#include "store/sqlite/sqlite.h"

enum err decorated_open(struct decorated *d, const struct db_ops *ops,
                        const struct db_config *config, struct str address, struct problem *p)
{
    d->base.ops = ops;
    d->access = config->access;
    return DB_ENGINE_SQLITE.open(config, address, p, &d->inner);
}

struct db *decorated_inner(const struct db *base)
{
    return ((const struct decorated *)base)->inner; /* its first member */
}

enum err decorated_commit(struct db *base, enum db_outcome *ret_outcome)
{
    struct db *inner = decorated_inner(base);
    enum err e = base->commits_now ? db_commit_now(inner) : db_commit(inner);
    *ret_outcome = db_commit_outcome(inner);
    return e;
}

enum err decorated_sync(struct db *base)
{
    return db_sync(decorated_inner(base));
}

enum err decorated_snapshot_begin(struct db *base, int64_t ms)
{
    return db_snapshot_begin(decorated_inner(base), ms);
}

void decorated_snapshot_end(struct db *base)
{
    db_snapshot_end(decorated_inner(base));
}

bool decorated_is_only_writer(const struct db *base)
{
    return db_is_only_writer(decorated_inner(base));
}
