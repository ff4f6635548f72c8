/* Entities as rows, put there by hand. */
#ifndef PAWL_TESTS_STORE_ENTITY_ROWS_H
#define PAWL_TESTS_STORE_ENTITY_ROWS_H

#include "store/checked_file.h"

/* A tenant with a type of entities in two versions. */
#define ENTITY_STAGE                                                                              \
    "INSERT INTO tenants (num, id, at_limit, weight, gate, active_runs, queued_runs, created_at," \
    " updated_at) VALUES (1, 'acme', 'queue', 1, '', 0, 0, 1, 1);"                                \
    "INSERT INTO entity_types (num, tenant, id, latest_version, created_at, updated_at)"          \
    " VALUES (1, 1, 'member', 2, 1, 1);"                                                          \
    "INSERT INTO entity_type_versions (type, version, queue, handler, dedup_window_ms,"           \
    " dedup_max_keys, rollover_events, keep_generations, max_inbox, max_batch, max_attempts,"     \
    " backoff_ms, max_backoff_ms, created_by, created_at, updated_at) VALUES"                     \
    " (1, 1, 'q', 'h', 1000, 10, 5, 1, 10, 10, 0, 1, 1, 'me', 1, 1),"                             \
    " (1, 2, 'q', 'h', 1000, 10, 5, 1, 10, 10, 0, 1, 1, 'me', 1, 1);"

/* What an entity has in every generation. */
struct entity_plan {
    int64_t num;
    int64_t generations;
    int64_t events; /* of each */
    int64_t calls;  /* of each */
    int64_t before; /* calls that were made before all of these */
};

/* `plan` has one row: the generation, or with `events` and `calls` all of them. */
#define ENTITY_PLAN                                                              \
    "CREATE TEMP TABLE plan (num bigint, generation bigint, first_event bigint," \
    " first_call bigint, events bigint, calls bigint);"                          \
    "INSERT INTO plan VALUES (%lld, %lld, %lld, %lld, %lld, %lld);"

static const char PLANNED_GENERATION[] =
    "INSERT INTO entity_generations (entity, generation, type_version, reason, version,"
    " consumed_seq, timers, dedup, first_event, first_call, at)"
    " SELECT num, generation, 1, 'rolled_over', 1, 0, '[]', '{}', first_event, first_call, 1"
    " FROM plan;"
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n, plan WHERE i + 1 < events)"
    " INSERT INTO timeline (run, seq, at, type) SELECT num, first_event + i, 1, 'x' FROM n, plan;"
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n, plan WHERE i + 1 < calls)"
    " INSERT INTO jobs (run, ordinal, id, tenant, step, state, queue, urgency, attempt,"
    " lease_epoch, created_at, finished_at) SELECT num, (first_call + i - 1) % 16777215 + 1,"
    " x'00', 1, -1, 'succeeded', 'q', 0, 1, 1, 1, 2 FROM n, plan;"
    "DROP TABLE plan;";

static const char PLANNED_ENTITY[] =
    "INSERT INTO entities (num, id, tenant, type, name, type_version, version, generation,"
    " last_seq, consumed_seq, last_event, rolled_event, calls, created_at, active_at)"
    " SELECT num, CAST(printf('%016d', num) AS BLOB), 1, 1, 'e' || num, 1, 1, generation, 0, 0,"
    " events, first_event - 1, calls, 1, 1 FROM plan;"
    "DROP TABLE plan;";

static inline void put_planned(struct raw *raw, const int64_t plan[static 6], const char *sql)
{
    char text[512];
    (void)snprintf(text, sizeof(text), ENTITY_PLAN, (long long)plan[0], (long long)plan[1],
                   (long long)plan[2], (long long)plan[3], (long long)plan[4], (long long)plan[5]);
    raw_exec(raw, text);
    raw_exec(raw, sql);
}

/* With no signals, no timers, and no call under way. */
static inline void put_entity(const char *path, const struct entity_plan *p)
{
    struct raw raw = raw_open(path);
    int64_t of_all[] = {p->num,
                        p->generations,
                        (p->generations - 1) * p->events + 1,
                        0,
                        p->generations * p->events,
                        p->before + p->generations * p->calls};
    put_planned(&raw, of_all, PLANNED_ENTITY);
    for (int64_t g = 1; g <= p->generations; g++) {
        int64_t of_one[] = {
            p->num,    g,       (g - 1) * p->events + 1, p->before + (g - 1) * p->calls + 1,
            p->events, p->calls};
        put_planned(&raw, of_one, PLANNED_GENERATION);
    }
    raw_close(&raw);
}

#endif
