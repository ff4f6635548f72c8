/* Writers with limits of their own. */
#include "sim/budget.h"

#include "base/limits.h"
#include "core/txn/tx.h"
#include "store/key_index/key_index.h"

enum { WRITERS_MAX = 16 };

static size_t budget = OP_BYTES_MAX;
static struct tx *writers[WRITERS_MAX];

void budget_set(size_t bytes)
{
    budget = bytes;
    for (size_t i = 0; i < WRITERS_MAX; i++) {
        if (writers[i] != NULL)
            writers[i]->arena.limit = bytes;
    }
}

enum err __real_tx_init(struct tx *tx, struct db *db, const struct env *env);
enum err __wrap_tx_init(struct tx *tx, struct db *db, const struct env *env);
void __real_tx_release(struct tx *tx);
void __wrap_tx_release(struct tx *tx);

enum err __wrap_tx_init(struct tx *tx, struct db *db, const struct env *env)
{
    enum err e = __real_tx_init(tx, db, env);
    size_t i = 0;
    while (writers[i] != NULL)
        i++;
    assert(i < WRITERS_MAX);
    writers[i] = tx;
    tx->arena.limit = budget;
    return e;
}

void __wrap_tx_release(struct tx *tx)
{
    for (size_t i = 0; i < WRITERS_MAX; i++) {
        if (writers[i] == tx)
            writers[i] = NULL;
    }
    __real_tx_release(tx);
}

/* A dozen keys count as a full segment: they are sealed and merged all the time. */
size_t __real_key_index_tail(const struct key_index *x);
size_t __wrap_key_index_tail(const struct key_index *x);

size_t __wrap_key_index_tail(const struct key_index *x)
{
    return __real_key_index_tail(x) * (KEY_SEGMENT_KEYS / 12);
}
