/* A PostgreSQL server in memory: databases, sessions, transactions, locks. */
#include "sim/nodes/pg_tables.h"

#include "sim/fibers.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    SHARDS_MAX = 4,
    READERS_MAX = 24,
    IDLE_MS_MAX = 5000, /* as the driver sets it for writers */
    LOCK_POLL_MS = 20,
};

struct shard {
    struct pg_link writer; /* the transaction that is open */
    struct pg_link alone;  /* single statements; sees the directory too */
    struct pg_link readers[READERS_MAX];
    int reader_count;
    struct pg_conn *holder; /* whose transaction is open at `writer` */
    bool keys_changed;      /* in that transaction */
    /* As it was after the last statement. */
    int64_t epoch;
    char owner[80];
    int owner_group;
};

enum transaction { TX_NONE, TX_WRITE, TX_READ };

struct pg_conn {
    struct pg_conn *next;
    int group;
    int shard;
    bool lost; /* the client knows, or will */
    enum transaction tx;
    bool failed;          /* only a rollback is possible */
    bool fenced;          /* holds off whoever changes the shard's row */
    int before;           /* changes of the link when the transaction began */
    struct pg_link *link; /* of the transaction; NULL: it has not read or written yet */
    int64_t idle_since_ns;
    int64_t lock_ms; /* 0: waits as long as it takes */
    char shown[40];  /* the session of a node, by a lock; "": none */
    int fd;          /* -1: it does not listen */
    int notes;
};

static struct pg_config config;
static struct shard shards[SHARDS_MAX];
static struct pg_conn *conns;
static char nodes[PG_GROUPS_MAX][80];
static bool away_nodes[PG_GROUPS_MAX];
static bool is_away;

static int64_t now_ms(void)
{
    return fibers_now_ns() / 1000000;
}

/* --- notifications --- */

void pg_notify_all(void)
{
    static const uint64_t ONE = 1;
    for (struct pg_conn *c = conns; c != NULL; c = c->next) {
        if (c->fd < 0 || c->lost)
            continue;
        c->notes++;
        if (write(c->fd, &ONE, sizeof(ONE)) < 0)
            abort();
    }
}

/* --- locks of sessions --- */

bool pg_session_is_shown(const char *session)
{
    for (const struct pg_conn *c = conns; c != NULL; c = c->next) {
        if (strcmp(c->shown, session) == 0)
            return true;
    }
    return false;
}

/* --- databases --- */

static void on_update(void *ctx, int op, const char *db, const char *table, sqlite3_int64 row)
{
    struct shard *s = ctx;
    (void)op;
    (void)db;
    (void)row;
    s->keys_changed |= strcmp(table, "api_keys") == 0;
}

static void make_shard(int number)
{
    struct shard *s = &shards[number];
    char name[16];
    char sql[200];
    (void)snprintf(name, sizeof(name), "s%d", number);
    pg_make_tables(&config, name);
    pg_link_open(&s->writer, config.folder, name);
    pg_exec(s->writer.db, "CREATE TABLE commits (shard bigint NOT NULL, num bigint NOT NULL,"
                          " PRIMARY KEY (shard, num))");
    sqlite3_update_hook(s->writer.db, on_update, s);
    pg_link_open(&s->alone, config.folder, name);
    (void)snprintf(sql, sizeof(sql), "ATTACH '%s/dir.db' AS dir; PRAGMA dir.synchronous=NORMAL",
                   config.folder);
    pg_exec(s->alone.db, sql);
}

void pg_start(const struct pg_config *with)
{
    static char folder[100];
    config = *with;
    (void)snprintf(folder, sizeof(folder), "%s", with->folder);
    config.folder = folder;
    assert(config.shards <= SHARDS_MAX);
    pg_make_directory(&config);
    for (int i = 0; i < config.shards; i++)
        make_shard(i);
}

void pg_set_node(int group, const char *name)
{
    (void)snprintf(nodes[group], sizeof(nodes[group]), "%s", name);
}

/* --- transactions --- */

static void end_tx(struct pg_conn *c, const char *how)
{
    struct shard *s = &shards[c->shard];
    if (c->link != NULL) {
        pg_exec(c->link->db, how);
        if (c->tx == TX_WRITE)
            s->holder = NULL;
        else
            c->link->taken = false;
    }
    if (c->tx == TX_WRITE)
        s->keys_changed = false;
    c->link = NULL;
    c->tx = TX_NONE;
    c->failed = c->fenced = false;
}

static void terminate(struct pg_conn *c)
{
    if (c->tx != TX_NONE)
        end_tx(c, "ROLLBACK");
    c->lost = true;
    c->shown[0] = '\0';
}

static void wait_a_little(void)
{
    fibers_nap_ns(LOCK_POLL_MS * INT64_C(1000000));
}

static void end_idle(struct pg_conn *holder)
{
    if (holder != NULL && fibers_now_ns() - holder->idle_since_ns >= IDLE_MS_MAX * INT64_C(1000000))
        terminate(holder);
}

static void begin_writing(struct pg_conn *c)
{
    struct shard *s = &shards[c->shard];
    while (s->holder != NULL) {
        end_idle(s->holder);
        if (s->holder != NULL)
            wait_a_little();
    }
    s->holder = c;
    s->keys_changed = false;
    c->link = &s->writer;
    pg_exec(c->link->db, "BEGIN IMMEDIATE");
    c->before = sqlite3_total_changes(c->link->db);
}

static struct pg_link *free_reader(struct shard *s)
{
    int i = 0;
    while (i < s->reader_count && s->readers[i].taken)
        i++;
    assert(i < READERS_MAX);
    if (i == s->reader_count) {
        char name[16];
        (void)snprintf(name, sizeof(name), "s%d", (int)(s - shards));
        pg_link_open(&s->readers[i], config.folder, name);
        s->reader_count++;
    }
    return &s->readers[i];
}

static void begin_reading(struct pg_conn *c)
{
    c->link = free_reader(&shards[c->shard]);
    c->link->taken = true;
    pg_exec(c->link->db, "BEGIN");
}

static void tell_keys_changed(void)
{
    pg_exec(shards[0].alone.db, "UPDATE directory SET auth_epoch = auth_epoch + 1");
    pg_notify_all();
}

/* Rules of ownership that the server itself can see. */
static void check_owner(struct pg_conn *c)
{
    const struct shard *s = &shards[c->shard];
    char why[200];
    if (c->link == NULL || sqlite3_total_changes(c->link->db) == c->before)
        return;
    if (c->group == s->owner_group && strcmp(nodes[c->group], s->owner) == 0)
        return;
    (void)snprintf(why, sizeof(why), "node %s commits to shard %d, which belongs to %s",
                   nodes[c->group], c->shard, s->owner[0] != '\0' ? s->owner : "nobody");
    config.broken(config.ctx, why);
}

static struct pg_result *commit(struct pg_conn *c)
{
    if (c->tx == TX_NONE)
        return pg_result_new(PGRES_COMMAND_OK, "COMMIT");
    if (c->failed) {
        end_tx(c, "ROLLBACK");
        return pg_result_new(PGRES_COMMAND_OK, "ROLLBACK");
    }
    bool keys = c->tx == TX_WRITE && c->shard == 0 && shards[0].keys_changed;
    if (c->tx == TX_WRITE)
        check_owner(c);
    end_tx(c, "COMMIT");
    if (keys)
        tell_keys_changed();
    return pg_result_new(PGRES_COMMAND_OK, "COMMIT");
}

/* --- the directory --- */

static int64_t epoch_of(int shard)
{
    static const char SQL[] = "SELECT epoch FROM shards WHERE shard = ?1";
    struct pg_value value = {.type = PG_INT8, .number = shard};
    struct pg_result *r = pg_link_step(&shards[0].alone, SQL, &value, 1);
    int64_t epoch = r->rows == 1 ? r->values[0].number : -1;
    pg_result_free(r);
    return epoch;
}

/* As in schema/directory/001_shards.directory.sql and 002. */
static struct pg_result *fence(struct pg_conn *c, int shard, int64_t wanted, int64_t number)
{
    char sql[100];
    assert(shard == c->shard);
    if (epoch_of(shard) != wanted)
        return pg_error("PW001", "the shard has another owner");
    if (c->tx == TX_WRITE)
        c->fenced = true;
    if (number == 0)
        return NULL;
    (void)snprintf(sql, sizeof(sql), "INSERT INTO commits VALUES (%d, %lld)", shard,
                   (long long)number);
    struct pg_result *r = pg_link_step(c->link, sql, NULL, 0);
    if (r->status == PGRES_FATAL_ERROR)
        return r;
    pg_result_free(r);
    return NULL;
}

static bool lease_lives(const char *node)
{
    static const char SQL[] = "SELECT count(*) FROM nodes WHERE name = ?1 AND lease_until > now()";
    struct pg_value value = {.type = PG_TEXT, .bytes = node, .len = (int)strlen(node)};
    struct pg_result *r = pg_link_step(&shards[0].alone, SQL, &value, 1);
    bool lives = r->values[0].number > 0;
    pg_result_free(r);
    return lives;
}

static void note_owner(const struct pg_conn *c, struct shard *s, const struct pg_value *row)
{
    char why[200];
    char owner[80] = "";
    if (!row[1].is_null)
        (void)snprintf(owner, sizeof(owner), "%s", row[1].bytes);
    bool taken = s->owner[0] != '\0' && strcmp(owner, s->owner) != 0 && row[0].number > s->epoch;
    if (taken && lease_lives(s->owner)) {
        (void)snprintf(why, sizeof(why), "node %s takes shard %d from %s, whose lease lives", owner,
                       (int)(s - shards), s->owner);
        config.broken(config.ctx, why);
    }
    if (row[0].number > s->epoch)
        s->owner_group = c->group;
    s->epoch = row[0].number;
    memcpy(s->owner, owner, sizeof(owner));
}

static void look_at_owners(const struct pg_conn *c)
{
    struct pg_result *r =
        pg_link_step(&shards[0].alone, "SELECT epoch, owner FROM shards ORDER BY shard", NULL, 0);
    for (int i = 0; i < r->rows; i++)
        note_owner(c, &shards[i], &r->values[i * 2]);
    pg_result_free(r);
}

bool pg_shards_have_owners(void)
{
    for (int i = 0; i < config.shards; i++) {
        if (shards[i].owner[0] == '\0' || !lease_lives(shards[i].owner))
            return false;
    }
    return true;
}

int pg_owner_of(int shard)
{
    return shards[shard].owner[0] != '\0' ? shards[shard].owner_group : 0;
}

/* The number of the shard whose row the statement changes; -1: of none. */
static int changed_shard(const char *sql, const struct pg_value *values, int count)
{
    const char *update = strstr(sql, "UPDATE shards");
    const char *where = update != NULL ? strstr(update, "shard = $") : NULL;
    if (where == NULL)
        return -1;
    int parameter = (int)strtol(where + strlen("shard = $"), NULL, 10);
    assert(parameter >= 1 && parameter <= count);
    return (int)strtol(values[parameter - 1].bytes, NULL, 10);
}

/* NULL: nobody is in the middle of a transaction with that shard. */
static struct pg_result *await_row(const struct pg_conn *c, int shard)
{
    const struct shard *s = &shards[shard];
    int64_t until = now_ms() + c->lock_ms;
    while (s->holder != NULL && s->holder->fenced) {
        end_idle(s->holder);
        if (s->holder == NULL)
            break;
        if (c->lock_ms > 0 && now_ms() >= until)
            return pg_error("55P03", "canceling statement due to lock timeout");
        wait_a_little();
    }
    return NULL;
}

/* --- sessions --- */

struct pg_conn *pg_connect(void)
{
    int group = fibers_group();
    if (is_away || away_nodes[group])
        return NULL;
    struct pg_conn *c = calloc(1, sizeof(*c));
    assert(c != NULL);
    c->group = group;
    c->fd = -1;
    c->idle_since_ns = fibers_now_ns();
    c->next = conns;
    conns = c;
    return c;
}

/* A session that is lost is the server's until it notices. */
void pg_disconnect(struct pg_conn *c)
{
    if (!c->lost)
        terminate(c);
    if (c->fd >= 0)
        (void)close(c->fd);
    c->fd = -1;
    if (c->tx != TX_NONE)
        return;
    struct pg_conn **at = &conns;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    free(c);
}

bool pg_is_lost(const struct pg_conn *c)
{
    return c->lost;
}

static void end_sessions(int group)
{
    for (struct pg_conn *c = conns; c != NULL; c = c->next) {
        if (group == 0 || c->group == group)
            terminate(c);
    }
}

void pg_cut(int group)
{
    assert(group > 0);
    end_sessions(group);
}

void pg_set_away(bool away)
{
    is_away = away;
    if (away)
        end_sessions(0);
}

void pg_set_node_away(int group, bool away)
{
    away_nodes[group] = away;
    if (away)
        end_sessions(group);
}

bool pg_has_notes(const struct pg_conn *c)
{
    return c->notes > 0;
}

void pg_take_notes(struct pg_conn *c)
{
    uint64_t ignored;
    c->notes = 0;
    if (c->fd >= 0 && read(c->fd, &ignored, sizeof(ignored)) < 0)
        return; /* it was read before */
}

int pg_fd(const struct pg_conn *c)
{
    return c->fd;
}

/* --- statements --- */

static bool begins(const char *sql, const char *with)
{
    return strncmp(sql, with, strlen(with)) == 0;
}

/* What the server answers without its tables. NULL: it is another statement. */
static struct pg_result *run_known(struct pg_conn *c, const char *sql)
{
    if (begins(sql, "BEGIN")) {
        c->tx = strstr(sql, "READ ONLY") != NULL ? TX_READ : TX_WRITE;
        return pg_result_new(PGRES_COMMAND_OK, "BEGIN");
    }
    if (begins(sql, "COMMIT"))
        return commit(c);
    if (begins(sql, "ROLLBACK")) {
        if (c->tx != TX_NONE)
            end_tx(c, "ROLLBACK");
        return pg_result_new(PGRES_COMMAND_OK, "ROLLBACK");
    }
    if (begins(sql, "SET ") || begins(sql, "CREATE OR REPLACE TRIGGER"))
        return pg_result_new(PGRES_COMMAND_OK, "SET");
    if (begins(sql, "EXECUTE commit_now") || begins(sql, "SELECT pg_advisory_unlock_all()"))
        return pg_one_value(PG_INT8, 1);
    if (begins(sql, "SELECT to_regclass(") || begins(sql, "SELECT pg_try_advisory_lock("))
        return pg_one_value(PG_BOOL, 1);
    if (begins(sql, "SELECT count(*), count(*) FILTER")) {
        struct pg_result *r = pg_one_value(PG_INT8, 1);
        r->columns = 2;
        free(r->values);
        r->values = calloc(2, sizeof(*r->values));
        assert(r->values != NULL);
        r->values[0] = r->values[1] = (struct pg_value){.type = PG_INT8, .number = 1};
        return r;
    }
    return NULL;
}

/* "EXECUTE fence(…)" of a transaction, and a query that is fenced. NULL: it is neither. */
static struct pg_result *run_fence(struct pg_conn *c, const char *sql,
                                   const struct pg_value *values)
{
    int shard;
    long long epoch;
    long long number = 0;
    struct pg_result *refused = NULL;
    if (sscanf(sql, "EXECUTE fence(%d, %lld, %lld)", &shard, &epoch, &number) == 3) {
        refused = fence(c, shard, epoch, number);
        return refused != NULL ? refused : pg_one_value(PG_INT8, 1);
    }
    if (strstr(sql, "fence($1, $2)") != NULL)
        return fence(c, (int)strtol(values[0].bytes, NULL, 10), strtoll(values[1].bytes, NULL, 10),
                     0);
    return NULL;
}

static struct pg_result *run_now(struct pg_conn *c, const char *sql, const struct pg_value *values,
                                 int count)
{
    bool ends = begins(sql, "COMMIT") || begins(sql, "ROLLBACK");
    if (c->failed && !ends)
        return pg_error("25P02", "current transaction is aborted");
    if (begins(sql, "SELECT pg_advisory_lock_shared(")) {
        (void)snprintf(c->shown, sizeof(c->shown), "%.*s", values[0].len, values[0].bytes);
        return pg_one_value(PG_BOOL, 1);
    }
    struct pg_result *r = run_known(c, sql);
    if (r != NULL)
        return r;
    if (c->tx == TX_WRITE && c->link == NULL)
        begin_writing(c);
    else if (c->tx == TX_READ && c->link == NULL)
        begin_reading(c);
    if (c->lost) /* while it waited */
        return pg_error("57P01", "terminating connection");
    r = run_fence(c, sql, values);
    if (r != NULL)
        return r;
    int changed = changed_shard(sql, values, count);
    r = changed >= 0 ? await_row(c, changed) : NULL;
    if (r != NULL)
        return r;
    r = pg_link_run(c->link != NULL ? c->link : &shards[c->shard].alone, sql, values, count);
    if (changed >= 0)
        look_at_owners(c);
    return r;
}

struct pg_result *pg_run(struct pg_conn *c, const char *sql, const struct pg_value *values,
                         int count)
{
    bool commits = begins(sql, "COMMIT");
    enum pg_fault fault =
        config.fault != NULL ? config.fault(config.ctx, c->group, commits) : PG_WELL;
    if (fault == PG_PAUSE_BEFORE)
        fibers_stand_still();
    if (c->lost)
        return pg_error("", "the connection is lost");
    if (fault == PG_LOST_BEFORE || fault == PG_GHOST) {
        c->lost = true;
        c->idle_since_ns = fibers_now_ns();
        if (fault == PG_LOST_BEFORE)
            terminate(c);
        return pg_error("", "the connection is lost");
    }
    struct pg_result *r = run_now(c, sql, values, count);
    c->idle_since_ns = fibers_now_ns();
    if (r->status == PGRES_FATAL_ERROR && c->tx != TX_NONE)
        c->failed = true;
    if (fault == PG_PAUSE_AFTER)
        fibers_stand_still();
    if (fault == PG_LOST_AFTER)
        terminate(c);
    if (c->lost) {
        pg_result_free(r);
        return pg_error("", "the connection is lost");
    }
    return r;
}

/* The settings of a session: the shard, the longest wait for a lock, whether it listens. */
struct pg_result *pg_run_script(struct pg_conn *c, const char *sql)
{
    const char *path = strstr(sql, "SET search_path = ");
    const char *lock = strstr(sql, "SET lock_timeout = ");
    if (c->lost)
        return pg_error("", "the connection is lost");
    if (path != NULL)
        c->shard = (int)strtol(strchr(path, '_') + strlen("_path = pawl_"), NULL, 10);
    if (lock != NULL)
        c->lock_ms = strtol(lock + strlen("SET lock_timeout = "), NULL, 10);
    if (strstr(sql, "LISTEN ") != NULL && c->fd < 0)
        c->fd = eventfd(0, EFD_NONBLOCK);
    return pg_result_new(PGRES_COMMAND_OK, "SET");
}

/* --- types of parameters --- */

/* A parameter has one type in all uses of a statement. */
struct pg_result *pg_describe(struct pg_conn *c, const char *sql, int count, enum pg_type *types)
{
    if (c->lost)
        return pg_error("", "the connection is lost");
    assert(count <= PG_PARAMETERS_MAX);
    struct pg_result *r = pg_result_new(PGRES_COMMAND_OK, "");
    pg_learn_types(shards[0].writer.db, sql, count, types);
    r->parameters = count;
    for (int i = 0; i < count; i++)
        r->types[i] = types[i];
    return r;
}
