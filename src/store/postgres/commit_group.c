/* Commits of several shards in one transaction. */
#include "store/postgres/commit_group.h"

#include "base/log.h"
#include "store/postgres/postgres_db.h"

#include <inttypes.h>
#include <pthread.h>

enum {
    MEMBERS_MAX = 64,
    FENCES_SQL_MAX = 128 + MEMBERS_MAX * 3 * 21,
    RETRY_MS = 5000, /* after a failure to connect: everybody commits alone meanwhile */
};

/* A writer that wants to commit, on its thread's stack while that waits. */
struct offer {
    struct offer *next;
    struct postgres_db *db;
    pthread_cond_t changed;
    enum { OFFER_WAITS, OFFER_LEADS, OFFER_OVER } state;
    enum group_result result;
};

/* A session for common transactions. */
struct lane {
    struct postgres_db *session;
    bool taken;
    bool stale; /* a writer has gone whose statements it knows */
};

struct commit_group {
    pthread_mutex_t lock; /* guards all below, but for the sessions of lanes that are taken */
    struct offer *first, **last;
    int under_way; /* commits, alone or together: as many as there are lanes */
    struct lane lanes[POSTGRES_LANES];
};

/* --- the common transaction --- */

/* Every session has its own names. */
static enum err open_lane(struct postgres_db *session)
{
    static const char FENCES[] =
        "PREPARE fences (bigint[], bigint[], bigint[]) AS"
        " SELECT fence(u.shard, u.epoch, u.num) FROM unnest($1, $2, $3) AS u (shard, epoch, num);"
        /* a table that somebody has locked holds up one shard, not all */
        "SET lock_timeout = 1000";
    struct problem p;
    if (env_mono_ms(session->env) < session->retry_at)
        return ERR_STORE_BUSY;
    problem_init(&p);
    PQfinish(session->conn);
    enum err e = postgres_open_session(session, &p);
    if (e == ERR_OK)
        e = postgres_run(session, FENCES, &p);
    if (e == ERR_OK &&
        (PQsetnonblocking(session->conn, 1) != 0 || PQenterPipelineMode(session->conn) != 1))
        e = problem_set(&p, ERR_STORE_BUSY, "PostgreSQL: %s", PQerrorMessage(session->conn));
    session->retry_at = e == ERR_OK ? 0 : env_mono_ms(session->env) + RETRY_MS;
    if (e != ERR_OK)
        LOG(LOG_WARN, "cannot commit for several shards together", LOG_Z("why", p.detail));
    problem_release(&p);
    return e;
}

static void close_lane(struct postgres_db *session)
{
    PQfinish(session->conn);
    session->conn = NULL;
    session->fenced = false;
    session->prelude_due = 0;
    session->names_sent = NULL; /* they are the writers', who may go; the next session knows none */
}

/* The first transaction of a writer in a session. A server that has lost the writer's last commit
 * in a crash has lost the writer's own session too, but the writer may not have noticed. From then
 * on the common session is lost with it. */
static enum err admit(struct lane *lane, int number, struct postgres_db *db)
{
    bool found = true;
    enum err e = ERR_OK;
    if (db->admitted_to[number] == lane->session->session)
        return ERR_OK;
    if (db->committed_num > 0)
        e = postgres_ask_whether_committed(lane->session, db->shard, db->committed_num, &found);
    if (e == ERR_OK && !found)
        e = ERR_STORE_FAILED;
    if (e == ERR_OK)
        db->admitted_to[number] = lane->session->session;
    return e;
}

static int64_t shard_of(const struct postgres_db *db)
{
    return db->shard;
}

static int64_t epoch_of(const struct postgres_db *db)
{
    return db->epoch;
}

static int64_t num_of(const struct postgres_db *db)
{
    return db->commit_num;
}

static void put_numbers(struct buf *out, const struct offer *first,
                        int64_t (*number_of)(const struct postgres_db *db))
{
    for (const struct offer *o = first; o != NULL; o = o->next)
        buf_printf(out, "%s%" PRId64, o != first ? "," : "", number_of(o->db));
}

static bool send_fences(struct lane *lane, const struct offer *first)
{
    struct buf sql;
    buf_init(&sql, FENCES_SQL_MAX);
    buf_put(&sql, STR("EXECUTE fences('{"));
    put_numbers(&sql, first, shard_of);
    buf_put(&sql, STR("}', '{"));
    put_numbers(&sql, first, epoch_of);
    buf_put(&sql, STR("}', '{"));
    put_numbers(&sql, first, num_of);
    buf_put(&sql, STR("}')"));
    lane->session->prelude_due = 2;
    bool sent = buf_ok(&sql) && postgres_send_text(lane->session, "BEGIN") &&
                postgres_send_text(lane->session, sql.ptr);
    buf_release(&sql);
    return sent;
}

/* As for one shard, COMMIT is not sent before the fences have let the transaction in. */
static enum group_result commit_in(struct lane *lane, int number, struct offer *first)
{
    struct postgres_db *session = lane->session;
    enum err e = postgres_is_lost(session) ? open_lane(session) : ERR_OK;
    for (const struct offer *o = first; o != NULL && e == ERR_OK; o = o->next)
        e = admit(lane, number, o->db);
    if (e != ERR_OK)
        return GROUP_NONE;
    for (const struct offer *o = first; o != NULL; o = o->next)
        postgres_next_commit_num(o->db);
    bool sent = send_fences(lane, first);
    for (const struct offer *o = first; o != NULL && sent; o = o->next)
        sent = postgres_batch_send_in(o->db, session, number);
    e = sent ? postgres_await_fence(session) : ERR_STORE_BUSY;
    if (e != ERR_OK)
        return GROUP_NONE;
    struct trip trip = postgres_finish_trip(session, postgres_send_text(session, "COMMIT"));
    bool committed = trip.err == ERR_OK && strcmp(PQcmdStatus(trip.last), "COMMIT") == 0;
    PQclear(trip.last);
    return committed ? GROUP_COMMITTED : postgres_is_lost(session) ? GROUP_IN_DOUBT : GROUP_NONE;
}

/* --- taking turns --- */

static int take_lane(struct commit_group *g)
{
    int i = 0;
    pthread_mutex_lock(&g->lock);
    while (g->lanes[i].taken)
        i++;
    assert(i < POSTGRES_LANES);
    struct lane *lane = &g->lanes[i];
    bool stale = lane->stale;
    lane->taken = true;
    lane->stale = false;
    pthread_mutex_unlock(&g->lock);
    if (stale)
        close_lane(lane->session);
    return i;
}

/* A session in which something failed is in a state that nobody knows. */
static void free_lane(struct commit_group *g, int number, bool failed)
{
    struct lane *lane = &g->lanes[number];
    if (failed)
        close_lane(lane->session);
    pthread_mutex_lock(&g->lock);
    lane->taken = false;
    pthread_mutex_unlock(&g->lock);
}

void postgres_group_pass_on(struct postgres_db *db)
{
    struct commit_group *g = db->group;
    pthread_mutex_lock(&g->lock);
    struct offer *next = g->first;
    if (next == NULL) {
        g->under_way--;
    } else {
        g->first = next->next;
        if (g->first == NULL)
            g->last = &g->first;
        next->next = NULL;
        next->state = OFFER_LEADS;
        pthread_cond_signal(&next->changed);
    }
    pthread_mutex_unlock(&g->lock);
}

/* Those that have come until now go with it. */
static void take_others(struct commit_group *g, struct offer *own)
{
    struct offer **at = &own->next;
    pthread_mutex_lock(&g->lock);
    for (int count = 1; g->first != NULL && count < MEMBERS_MAX; count++) {
        *at = g->first;
        g->first = g->first->next;
        at = &(*at)->next;
    }
    *at = NULL;
    if (g->first == NULL)
        g->last = &g->first;
    pthread_mutex_unlock(&g->lock);
}

static void tell_others(struct commit_group *g, struct offer *own)
{
    pthread_mutex_lock(&g->lock);
    for (struct offer *o = own->next, *next; o != NULL; o = next) {
        next = o->next; /* its thread may be gone with it as soon as it is notified */
        o->result = own->result;
        o->state = OFFER_OVER;
        pthread_cond_signal(&o->changed);
    }
    pthread_mutex_unlock(&g->lock);
}

static void lead(struct commit_group *g, struct offer *own)
{
    take_others(g, own);
    own->result = GROUP_HAS_TURN;
    if (own->next == NULL)
        return;
    int number = take_lane(g);
    own->result = commit_in(&g->lanes[number], number, own);
    free_lane(g, number, own->result != GROUP_COMMITTED);
    postgres_group_pass_on(own->db);
    tell_others(g, own);
}

/* The writer's thread waits for others only while others commit. */
enum group_result postgres_group_offer(struct postgres_db *db)
{
    struct commit_group *g = db->group;
    struct offer own = {.db = db};
    if (g == NULL || db->begun || !postgres_batch_has_only_rows(&db->batch))
        return GROUP_NONE;
    pthread_mutex_lock(&g->lock);
    if (g->under_way < POSTGRES_LANES) {
        g->under_way++;
        pthread_mutex_unlock(&g->lock);
        return GROUP_HAS_TURN;
    }
    pthread_cond_init(&own.changed, NULL);
    *g->last = &own;
    g->last = &own.next;
    while (own.state == OFFER_WAITS)
        pthread_cond_wait(&own.changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
    if (own.state == OFFER_LEADS)
        lead(g, &own);
    pthread_cond_destroy(&own.changed);
    return own.result;
}

/* --- life --- */

void postgres_group_join(struct postgres_db *db, struct commit_group *g)
{
    const struct postgres_db *session = g != NULL ? g->lanes[0].session : NULL;
    if (session != NULL && db->access == DB_WRITER && strcmp(db->url, session->url) == 0 &&
        strcmp(db->schema, session->schema) == 0)
        db->group = g;
}

void postgres_group_leave(struct postgres_db *db)
{
    struct commit_group *g = db->group;
    if (g == NULL)
        return;
    pthread_mutex_lock(&g->lock);
    for (int i = 0; i < POSTGRES_LANES; i++)
        g->lanes[i].stale = true;
    pthread_mutex_unlock(&g->lock);
}

static enum err make_lane(struct lane *lane, struct str store, const struct env *env,
                          struct problem *p)
{
    lane->session = calloc(1, sizeof(*lane->session));
    if (lane->session == NULL)
        return problem_set(p, ERR_NO_MEMORY, "No memory for a connection");
    lane->session->access = DB_WRITER;
    lane->session->env = env;
    return postgres_read_url(lane->session, store, p);
}

enum err commit_group_new(struct str store, const struct env *env, struct problem *p,
                          struct commit_group **ret)
{
    struct commit_group *g = calloc(1, sizeof(*g));
    if (g == NULL)
        return problem_set(p, ERR_NO_MEMORY, "No memory for a group of commits");
    g->last = &g->first;
    pthread_mutex_init(&g->lock, NULL);
    enum err e = ERR_OK;
    for (int i = 0; i < POSTGRES_LANES && e == ERR_OK; i++)
        e = make_lane(&g->lanes[i], store, env, p);
    if (e != ERR_OK) {
        commit_group_free(g);
        return e;
    }
    *ret = g;
    return ERR_OK;
}

size_t commit_group_waiting(struct commit_group *g)
{
    size_t count = 0;
    pthread_mutex_lock(&g->lock);
    for (const struct offer *o = g->first; o != NULL; o = o->next)
        count++;
    pthread_mutex_unlock(&g->lock);
    return count;
}

void commit_group_free(struct commit_group *g)
{
    if (g == NULL)
        return;
    assert(g->first == NULL && g->under_way == 0);
    for (int i = 0; i < POSTGRES_LANES; i++) {
        if (g->lanes[i].session != NULL)
            PQfinish(g->lanes[i].session->conn);
        free(g->lanes[i].session);
    }
    pthread_mutex_destroy(&g->lock);
    free(g);
}
