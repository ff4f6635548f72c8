/* Replays and API keys, answered on the HTTP loop's thread. */
#include "runtime/loop_reader.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/usecase/execute.h"

enum {
    MISSES_MAX = 64, /* new keys in a row until look-ups for replays become rare */
    SAMPLE_EVERY = 16,
};

struct loop_reader {
    struct loop_reader_config config;
    struct db *db;
    bool snapshot;   /* one is open, until the round ends */
    uint64_t misses; /* keys in a row that were not known */

    int64_t login_log_at_ms; /* not before: a line about failed logins */
    int64_t logins_unlogged;
};

/* --- life --- */

enum err loop_reader_open(const struct loop_reader_config *config, struct problem *p,
                          struct loop_reader **ret)
{
    struct loop_reader *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    r->config = *config;
    struct db_config store = {.url = config->store_url, .access = DB_READER, .env = config->env};
    enum err e = db_open(&store, p, &r->db);
    if (e != ERR_OK) {
        loop_reader_close(r);
        return e;
    }
    *ret = r;
    return ERR_OK;
}

void loop_reader_close(struct loop_reader *r)
{
    if (r == NULL)
        return;
    loop_reader_round_end(r);
    db_close(r->db);
    free(r);
}

/* --- the snapshot --- */

/* One snapshot serves all look-ups of a round. */
static bool open_snapshot(struct loop_reader *r)
{
    if (!r->snapshot)
        r->snapshot = db_snapshot_begin(r->db, READ_MS_MAX) == ERR_OK;
    return r->snapshot;
}

void loop_reader_round_end(struct loop_reader *r)
{
    if (r->snapshot)
        db_snapshot_end(r->db);
    r->snapshot = false;
}

/* --- replays --- */

/* A new key costs a look-up here that finds nothing, and the writer looks again anyway. So a series
 * of misses makes look-ups rare until one finds its key. But a replay must not suffer when the
 * writer is busy or refuses. */
static bool worth_looking(const struct loop_reader *r, bool writer_is_busy)
{
    return r->misses < MISSES_MAX || writer_is_busy || r->misses % SAMPLE_EVERY == 0;
}

struct replay {
    const struct loop_reader *reader;
    struct op *op;
    bool answered;
};

static void try_record(void *ctx, const struct idem_record *record)
{
    struct replay *replay = ctx;
    const struct loop_reader_config *config = &replay->reader->config;
    int64_t now = env_now_ms(config->env);
    if (record->expires_at < 0 || record->expires_at > now)
        replay->answered = answer_from_record(replay->op, record);
    if (replay->answered)
        count_known(replay->op, config->stats, now);
}

bool loop_reader_replay(struct loop_reader *r, struct op *op, bool writer_is_busy)
{
    assert(op->idem.key.len > 0);
    r->misses++;
    if (!worth_looking(r, writer_is_busy) || !open_snapshot(r))
        return false;
    struct replay replay = {r, op, false};
    /* A failed look-up is no answer: the writer looks again, and reports the error if it fails too.
     */
    if (idempotency_find_named(r->db, op->caller.tenant, op->idem.key, op->idem.key_hash,
                               try_record, &replay) != ERR_OK)
        return false;
    if (replay.answered)
        loop_reader_note_replay(r);
    op->decided = replay.answered;
    return replay.answered;
}

void loop_reader_note_replay(struct loop_reader *r)
{
    r->misses = 0;
}

/* --- API keys --- */

/* A snapshot of this round may be older than a revocation that was answered in it. */
static struct db *fresh_db(void *ctx)
{
    struct loop_reader *r = ctx;
    loop_reader_round_end(r);
    return r->db;
}

static void note_failed_login(struct loop_reader *r, struct str peer, enum err why)
{
    bool throttled = why == ERR_LOGIN_THROTTLED;
    int64_t mono = env_mono_ms(r->config.env);
    metric_add(r->config.auth_failures, throttled ? STR("throttled") : STR("invalid"), STR_NONE, 1);
    r->logins_unlogged++;
    if (mono < r->login_log_at_ms)
        return;
    LOG(LOG_WARN, "API keys were refused", LOG_S("peer", peer),
        LOG_N("since_last_line", r->logins_unlogged), LOG_N("throttled", throttled));
    r->logins_unlogged = 0;
    r->login_log_at_ms = mono + LOGIN_LOG_MS;
}

enum err loop_reader_identify(struct loop_reader *r, struct str key, struct str peer,
                              uint64_t epoch, struct problem *p, struct auth_identity *ret)
{
    struct auth_question q = {key, peer, epoch, fresh_db, r};
    enum err e = auth_check(r->config.auth, &q, p, ret);
    if (peer.ptr != NULL && (e == ERR_UNAUTHENTICATED || e == ERR_LOGIN_THROTTLED))
        note_failed_login(r, peer, e);
    return e;
}

enum err loop_reader_identify_session(struct loop_reader *r, struct str text, uint64_t epoch,
                                      struct problem *p, struct auth_identity *ret)
{
    struct auth_question q = {text, STR_NONE, epoch, fresh_db, r};
    return auth_check_session(r->config.auth, &q, p, ret);
}
