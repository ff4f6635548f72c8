/* Reader threads. */
#include "runtime/readers.h"

#include "base/limits.h"
#include "core/usecase/execute.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

struct reader {
    struct readers *readers;
    pthread_t thread;
    bool runs;
    struct db *db;
    struct read_tx tx;
};

struct readers {
    struct reader each[READERS];
    const struct env *env;
    struct durability *durability;
    int event_fd;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t filled;
    struct op *first, **last;
    struct op *done_first, **done_last;
    bool stopping;
};

static void answer(struct reader *r, struct op *op)
{
    op_clear_result(op);
    int64_t budget_ms = op->use_case->read_ms > 0 ? op->use_case->read_ms : READ_MS_MAX;
    enum err e = db_snapshot_begin(r->db, budget_ms);
    if (e == ERR_OK) {
        read_tx_start(&r->tx, env_now_ms(r->readers->env));
        e = op->use_case->read(op, &r->tx);
        db_snapshot_end(r->db);
        read_tx_clear(&r->tx);
    }
    op->seen = durability_seen(r->readers->durability);
    if (e == ERR_OK && !buf_ok(&op->answer.body))
        e = problem_set(&op->problem, ERR_NO_MEMORY,
                        "The answer is too large: request fewer items");
    if (e != ERR_OK && op->problem.err == ERR_OK)
        (void)problem_set(&op->problem, e, "The store could not be read");
    op->err = e;
}

static void give_back(struct readers *rs, struct op *op)
{
    pthread_mutex_lock(&rs->lock);
    bool was_empty = rs->done_first == NULL;
    op->next = NULL;
    *rs->done_last = op;
    rs->done_last = &op->next;
    pthread_mutex_unlock(&rs->lock);
    if (was_empty) {
        uint64_t one = 1;
        ssize_t n = write(rs->event_fd, &one, sizeof(one));
        assert(n == sizeof(one) || errno == EAGAIN);
    }
}

static void *reader_main(void *ctx)
{
    struct reader *r = ctx;
    struct readers *rs = r->readers;
    for (;;) {
        pthread_mutex_lock(&rs->lock);
        while (rs->first == NULL && !rs->stopping)
            pthread_cond_wait(&rs->filled, &rs->lock);
        struct op *op = rs->first;
        if (op != NULL) {
            rs->first = op->next;
            if (rs->first == NULL)
                rs->last = &rs->first;
        }
        pthread_mutex_unlock(&rs->lock);
        if (op == NULL)
            return NULL;
        answer(r, op);
        give_back(rs, op);
    }
}

void readers_push(struct readers *rs, struct op *op)
{
    op->next = NULL;
    pthread_mutex_lock(&rs->lock);
    assert(!rs->stopping);
    *rs->last = op;
    rs->last = &op->next;
    pthread_cond_signal(&rs->filled);
    pthread_mutex_unlock(&rs->lock);
}

struct op *readers_collect(struct readers *rs)
{
    pthread_mutex_lock(&rs->lock);
    struct op *first = rs->done_first;
    rs->done_first = NULL;
    rs->done_last = &rs->done_first;
    pthread_mutex_unlock(&rs->lock);
    return first;
}

static enum err reader_start(struct reader *r, const struct readers_config *config,
                             struct problem *p)
{
    struct db_config store = {.url = config->store_url, .access = DB_READER, .env = config->env};
    enum err e = db_open(&store, p, &r->db);
    if (e == ERR_OK)
        e = read_tx_init(&r->tx, r->db);
    if (e == ERR_OK)
        r->tx.polls = config->polls;
    if (e == ERR_OK)
        r->tx.minutes = config->minutes;
    if (e == ERR_OK && pthread_create(&r->thread, NULL, reader_main, r) != 0)
        e = problem_set(p, ERR_NO_MEMORY, "Cannot start a reader thread");
    r->runs = e == ERR_OK;
    return e;
}

enum err readers_start(const struct readers_config *config, struct problem *p, struct readers **ret)
{
    struct readers *rs = calloc(1, sizeof(*rs));
    if (rs == NULL)
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    rs->env = config->env;
    rs->durability = config->durability;
    rs->event_fd = config->event_fd;
    rs->last = &rs->first;
    rs->done_last = &rs->done_first;
    pthread_mutex_init(&rs->lock, NULL);
    pthread_cond_init(&rs->filled, NULL);
    enum err e = ERR_OK;
    for (size_t i = 0; i < READERS && e == ERR_OK; i++) {
        rs->each[i].readers = rs;
        e = reader_start(&rs->each[i], config, p);
    }
    if (e != ERR_OK) {
        readers_free(rs);
        return e;
    }
    *ret = rs;
    return ERR_OK;
}

void readers_set_keys(struct readers *rs, struct idem_keys *keys)
{
    pthread_mutex_lock(&rs->lock);
    for (size_t i = 0; i < READERS; i++)
        rs->each[i].tx.known_keys = keys;
    pthread_mutex_unlock(&rs->lock);
}

void readers_stop(struct readers *rs)
{
    pthread_mutex_lock(&rs->lock);
    rs->stopping = true;
    pthread_cond_broadcast(&rs->filled);
    pthread_mutex_unlock(&rs->lock);
    for (size_t i = 0; i < READERS; i++) {
        if (rs->each[i].runs)
            pthread_join(rs->each[i].thread, NULL);
        rs->each[i].runs = false;
    }
}

void readers_free(struct readers *rs)
{
    if (rs == NULL)
        return;
    readers_stop(rs);
    for (size_t i = 0; i < READERS; i++) {
        read_tx_release(&rs->each[i].tx);
        db_close(rs->each[i].db);
    }
    pthread_mutex_destroy(&rs->lock);
    pthread_cond_destroy(&rs->filled);
    free(rs);
}
