/* Replays and API keys, answered on the HTTP loop's thread. */
#include "runtime/loop_reader.h"

#include "base/limits.h"
#include "core/usecase/execute.h"
#include "runtime/login_log.h"
#include "store/tenants.h"

enum {
    TENANTS_KNOWN = 256, /* whose numbers are remembered; they never change */
    ANSWER_SETS = 64,    /* of answers of the last starts that were replayed, found by a hash; */
    ANSWER_WAYS = 4,     /* each set has this many, */
    ANSWER_KEPT_MAX = 8 * KIB, /* and each answer is at most this large */
    RECORDS_KEPT = 64,         /* of the last replays, found by a hash */
};

/* The answer of a start, rendered from its run: it never changes. */
struct kept_answer {
    int64_t num; /* of the key's record; 0: none */
    struct buf body;
};

struct answer_set {
    struct kept_answer answers[ANSWER_WAYS];
    unsigned oldest;
};

/* The record of a key as it was read. It holds until the next commit, which may remove it. */
struct kept_record {
    uint64_t seen; /* the last commit before it was read */
    struct idem_record record;
    struct buf texts; /* of the record: key, route and body; empty: none is kept */
};

struct known_tenant {
    int64_t num; /* 0: none is known here */
    size_t len;
    char id[TENANT_ID_MAX];
};

struct loop_reader {
    struct loop_reader_config config;
    struct db *db;
    struct read_tx tx;
    struct idem_keys *keys; /* NULL: not yet */
    bool snapshot;          /* one is open, until the round ends */
    uint64_t snapshot_seen; /* the last commit before it was opened */
    struct known_tenant tenants[TENANTS_KNOWN];
    struct answer_set answers[ANSWER_SETS];
    struct kept_record records[RECORDS_KEPT];
    struct login_log logins;
};

/* --- life --- */

enum err loop_reader_open(const struct loop_reader_config *config, struct problem *p,
                          struct loop_reader **ret)
{
    struct loop_reader *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    r->config = *config;
    r->logins.failures = config->auth_failures;
    for (size_t i = 0; i < ANSWER_SETS * ANSWER_WAYS; i++)
        buf_init(&r->answers[i / ANSWER_WAYS].answers[i % ANSWER_WAYS].body, ANSWER_KEPT_MAX);
    for (size_t i = 0; i < RECORDS_KEPT; i++)
        buf_init(&r->records[i].texts, ANSWER_KEPT_MAX + ROUTE_MAX + 4 * IDEM_KEY_MAX);
    struct db_config store = {.url = config->store_url,
                              .access = DB_READER,
                              .env = config->env,
                              .patience_ms = LOOP_READ_MS_MAX};
    enum err e = db_open(&store, p, &r->db);
    if (e == ERR_OK && read_tx_init(&r->tx, r->db) != ERR_OK)
        e = problem_set(p, ERR_NO_MEMORY, "Out of memory");
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
    for (size_t i = 0; i < ANSWER_SETS * ANSWER_WAYS; i++)
        buf_release(&r->answers[i / ANSWER_WAYS].answers[i % ANSWER_WAYS].body);
    for (size_t i = 0; i < RECORDS_KEPT; i++)
        buf_release(&r->records[i].texts);
    read_tx_release(&r->tx);
    db_close(r->db);
    free(r);
}

/* --- the snapshot --- */

/* One snapshot serves all look-ups of a round. */
static bool open_snapshot(struct loop_reader *r)
{
    if (!r->snapshot) {
        r->snapshot_seen = durability_seen(r->config.durability);
        r->snapshot = db_snapshot_begin(r->db, READ_MS_MAX) == ERR_OK;
    }
    return r->snapshot;
}

void loop_reader_round_end(struct loop_reader *r)
{
    if (r->snapshot)
        db_snapshot_end(r->db);
    r->snapshot = false;
}

/* --- replays --- */

void loop_reader_set_keys(struct loop_reader *r, struct idem_keys *keys)
{
    r->keys = keys;
}

/* 0: it is not stored, or cannot be read. */
static int64_t tenant_num(struct loop_reader *r, struct str id)
{
    struct known_tenant *known = &r->tenants[str_hash(id) % TENANTS_KNOWN];
    if (known->num != 0 && str_eq((struct str){known->id, known->len}, id))
        return known->num;
    int64_t num = 0;
    if (id.len > TENANT_ID_MAX || !open_snapshot(r) || tenants_num(r->db, id, &num) != ERR_OK ||
        num == 0)
        return 0;
    *known = (struct known_tenant){.num = num, .len = id.len};
    memcpy(known->id, id.ptr, id.len);
    return num;
}

static bool has_expired(const struct idem_record *record, int64_t now)
{
    return record->expires_at >= 0 && record->expires_at <= now;
}

/* The answer that is kept of a record, or else the one of its set that was kept first, to be
 * replaced. Numbers of runs are times: their low bits are not spread. */
static struct kept_answer *place_of_answer(struct loop_reader *r, int64_t num)
{
    uint64_t hash = (uint64_t)num * UINT64_C(0x9E3779B97F4A7C15);
    struct answer_set *set = &r->answers[hash >> 32 & (ANSWER_SETS - 1)];
    for (size_t i = 0; i < ANSWER_WAYS; i++) {
        if (set->answers[i].num == num)
            return &set->answers[i];
    }
    return &set->answers[set->oldest++ % ANSWER_WAYS];
}

/* Rendering reads the run and its jobs, so the answer is kept for the next of many retries. */
static enum err answer_kept(struct loop_reader *r, struct op *op, struct idem_record *record,
                            bool *ret_answered)
{
    if (record->born.ptr == NULL)
        return answer_from_record(op, &r->tx, record, ret_answered);
    struct kept_answer *kept = place_of_answer(r, record->num);
    bool renders = kept->num != record->num;
    if (!renders) {
        record->body = buf_str(&kept->body);
        record->born = STR_NONE;
    }
    enum err e = answer_from_record(op, &r->tx, record, ret_answered);
    if (e != ERR_OK || !renders || !*ret_answered || op->err != ERR_OK)
        return e;
    buf_clear(&kept->body);
    buf_put(&kept->body, answer_to_keep(&op->answer));
    kept->num = buf_ok(&kept->body) ? record->num : 0;
    return ERR_OK;
}

/* --- records of the last replays --- */

static struct kept_record *place_of_record(struct loop_reader *r, int64_t tenant, struct str key)
{
    return &r->records[(str_hash(key) ^ (uint64_t)tenant) % RECORDS_KEPT];
}

/* A client that has lost its answer asks again and again, and many do so after an outage: as long
 * as nothing is committed, the record need not be read again. NULL: it has to be. In a database
 * that others write to, too, the marks do not tell that. */
static const struct idem_record *kept_record(struct loop_reader *r, int64_t tenant, struct str key)
{
    const struct kept_record *kept = place_of_record(r, tenant, key);
    const struct db_marks *marks = &r->config.durability->marks;
    bool holds = kept->texts.len > 0 && kept->seen == atomic_load(&marks->written) &&
                 kept->seen <= atomic_load(&marks->durable);
    return holds && kept->record.tenant == tenant && str_eq(kept->record.key, key) ? &kept->record
                                                                                   : NULL;
}

/* The copy of a text at the end of what was copied so far. */
static struct str copied(struct buf *texts, struct str text)
{
    size_t from = texts->len;
    buf_put(texts, text);
    return buf_ok(texts) ? (struct str){texts->ptr + from, text.len} : STR_NONE;
}

/* It was read from the snapshot, and has its body. */
static void keep_record(struct loop_reader *r, const struct idem_record *record)
{
    if (!db_has_log(r->db) || record->born.ptr != NULL)
        return;
    struct kept_record *kept = place_of_record(r, record->tenant, record->key);
    size_t len = record->key.len + record->route.len + record->body.len;
    buf_clear(&kept->texts);
    char *room = buf_extend(&kept->texts, len); /* the texts stay where they are then */
    buf_clear(&kept->texts);
    if (room == NULL)
        return;
    kept->seen = r->snapshot_seen;
    kept->record = *record;
    kept->record.key = copied(&kept->texts, record->key);
    kept->record.route = copied(&kept->texts, record->route);
    kept->record.body = copied(&kept->texts, record->body);
}

/* --- answering --- */

/* Answers from the record that the hints lead to. False: there is none, or it is no answer; then
 * the writer looks again, and reports the error if it fails too. */
static bool answer_by(struct loop_reader *r, struct op *op, int64_t tenant,
                      const struct key_hints *hints, int64_t now)
{
    struct idem_record record = {0};
    bool found = false;
    bool answered = false;
    read_tx_start(&r->tx, now);
    enum err e = idempotency_follow(r->db, r->keys, tenant, op->idem.key, hints, &r->tx.arena,
                                    &found, &record);
    if (e == ERR_OK && found && !has_expired(&record, now))
        e = answer_kept(r, op, &record, &answered);
    answered &= e == ERR_OK;
    if (answered)
        keep_record(r, &record);
    read_tx_clear(&r->tx);
    return answered;
}

static bool answer_again(struct loop_reader *r, struct op *op, const struct idem_record *record,
                         int64_t now)
{
    bool answered = false;
    if (has_expired(record, now))
        return false;
    enum err e = answer_from_record(op, &r->tx, record, &answered);
    return answered && e == ERR_OK;
}

bool loop_reader_replay(struct loop_reader *r, struct op *op)
{
    assert(op->idem.key.len > 0);
    struct key_hints hints;
    int64_t now = env_now_ms(r->config.env);
    int64_t tenant = r->keys != NULL ? tenant_num(r, op->caller.tenant) : 0;
    const struct idem_record *kept = kept_record(r, tenant, op->idem.key);
    bool answered = false;
    if (kept != NULL)
        answered = answer_again(r, op, kept, now);
    else if (tenant != 0 && idem_keys_glance(r->keys, tenant, op->idem.key, &hints) &&
             open_snapshot(r))
        answered = answer_by(r, op, tenant, &hints, now);
    if (!answered)
        return false;
    op->decided = true;
    op->tenant_num = tenant;
    op->seen = durability_seen(r->config.durability);
    count_answer(op, r->config.stats, r->config.minutes, now);
    return true;
}

bool loop_reader_knows_key(struct loop_reader *r, struct str tenant_id, struct str key)
{
    struct key_hints hints;
    struct idem_record record = {0};
    bool found = false;
    int64_t tenant = tenant_num(r, tenant_id);
    if (tenant == 0 || !idem_keys_glance(r->keys, tenant, key, &hints) || !open_snapshot(r))
        return false;
    read_tx_start(&r->tx, env_now_ms(r->config.env));
    enum err e =
        idempotency_follow(r->db, r->keys, tenant, key, &hints, &r->tx.arena, &found, &record);
    read_tx_clear(&r->tx);
    return e == ERR_OK && found;
}

/* --- API keys --- */

/* A snapshot of this round may be older than a revocation that was answered in it. */
static struct db *fresh_db(void *ctx)
{
    struct loop_reader *r = ctx;
    loop_reader_round_end(r);
    return r->db;
}

enum err loop_reader_identify(struct loop_reader *r, struct str key, struct str peer,
                              uint64_t epoch, struct problem *p, struct auth_identity *ret)
{
    struct auth_question q = {key, peer, epoch, fresh_db, r};
    enum err e = auth_check(r->config.auth, &q, p, ret);
    login_log_note(&r->logins, peer, e, env_mono_ms(r->config.env));
    return e;
}

enum err loop_reader_identify_session(struct loop_reader *r, struct str text, uint64_t epoch,
                                      struct problem *p, struct auth_identity *ret)
{
    struct auth_question q = {text, STR_NONE, epoch, fresh_db, r};
    return auth_check_session(r->config.auth, &q, p, ret);
}
