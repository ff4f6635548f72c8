/* A small store in which every kind of row occurs, and every damage that breaks an invariant. */
#ifndef PAWL_TESTS_DAMAGES_H
#define PAWL_TESTS_DAMAGES_H

#include "store/checked_file.h"

#include "store/doctor/check.h"
#include "store/doctor/repair.h"

/* --- a small store in which every kind of row occurs --- */

/* acme: three active runs (1, 2, 3), three queued (4, 5, 6), one over (7). other: one active (8)
 * and one over (9), both behind the mark of the index, as is what follows. 10 starts later. 11 and
 * 12 are parts of 1: one waits for a signal and has a deadline, one has not begun. */
static const char SOUND[] =
    "INSERT INTO tenants (num, id, at_limit, weight, gate, active_runs, queued_runs, created_at,"
    " updated_at) VALUES (1, 'acme', 'queue', 1, '', 3, 3, 1, 1), (2, 'other', 'queue', 1, '', 1, "
    "0,"
    " 1, 1);"
    "INSERT INTO workflow_versions (tenant, workflow_id, version, digest, definition, created_at,"
    " created_by) VALUES (1, 'w', 1, zeroblob(32), '{}', 1, 'me'), (1, 'v', 1, zeroblob(32), '{}', "
    "1, 'me'),"
    " (2, 'w', 1, zeroblob(32), '{}', 1, 'me');"
    "INSERT INTO scopes (num, tenant, workflow_id, path, key, active_runs, queued_runs) VALUES"
    " (1, 1, 'w', '', '', 2, 2), (2, 1, 'w', 'input.c', 'a', 1, 2), (3, 1, 'w', 'input.c', 'b', 1,"
    " 0), (14, 2, 'w', '', '', 1, 0);"
    "INSERT INTO runs (num, id, tenant, workflow_id, workflow_version, status, version, priority,"
    " input, state, labels, created_by, created_at, finished_at, scopes) VALUES"
    " (1, x'00000000000000000000000000000001', 1, 'w', 1, 'running', 2, 0, '1', '{}', '{}', 'me', "
    "1,"
    "  NULL, '1,2'),"
    " (2, x'00000000000000000000000000000002', 1, 'w', 1, 'waiting', 3, 0, '1', '{}', '{}', 'me', "
    "1,"
    "  NULL, '1,3'),"
    " (3, x'00000000000000000000000000000003', 1, 'v', 1, 'pending', 1, 0, '1', '{}', '{}', 'me', "
    "1,"
    "  NULL, NULL),"
    " (4, x'00000000000000000000000000000004', 1, 'w', 1, 'queued', 1, 0, '1', '{}', '{}', 'me', 1,"
    "  NULL, '1,2'),"
    " (5, x'00000000000000000000000000000005', 1, 'w', 1, 'queued', 1, 5, '1', '{}', '{}', 'me', 1,"
    "  NULL, '1,2'),"
    " (6, x'00000000000000000000000000000006', 1, 'v', 1, 'queued', 1, 0, '1', '{}', '{}', 'me', 1,"
    "  NULL, NULL),"
    " (7, x'00000000000000000000000000000007', 1, 'w', 1, 'succeeded', 2, 0, '1', '{}', '{}', 'me',"
    "  1, 9, '1,2'),"
    " (8, x'00000000000000000000000000000008', 2, 'w', 1, 'paused', 1, 0, '1', '{}', '{}', 'me', 1,"
    "  NULL, '14'),"
    " (9, x'00000000000000000000000000000009', 2, 'w', 1, 'timed_out', 2, 0, '1', '{}', '{}', 'me',"
    "  1, 9, '14');"
    "INSERT INTO slots (scope, run) VALUES (1, 1), (2, 1), (1, 2), (3, 2), (14, 8);"
    "INSERT INTO lines (num, tenant, scopes, waits_for, urgency, run) VALUES"
    " (1, 1, '1,2', 2, -5, 5), (2, 1, '', 0, 0, 6);"
    "INSERT INTO line_scopes (scope, line) VALUES (1, 1), (2, 1);"
    "INSERT INTO queue (line, urgency, run, tenant) VALUES (1, 0, 4, 1), (1, -5, 5, 1),"
    " (2, 0, 6, 1);"
    "INSERT INTO jobs (run, ordinal, id, tenant, step, state, queue, urgency, attempt, lease_epoch,"
    " worker, due_at, created_at, finished_at) VALUES"
    " (1, 1, zeroblob(16), 1, 0, 'running', 'q', 0, 1, 1, 'me', 1000, 1, NULL),"
    " (2, 1, zeroblob(16), 1, 0, 'succeeded', 'q', 0, 1, 1, 'me', NULL, 1, 5),"
    " (2, 2, zeroblob(16), 1, 1, 'scheduled', '', 0, 1, 0, NULL, 2000, 1, NULL),"
    " (3, 1, zeroblob(16), 1, 0, 'pending', 'q', 0, 0, 0, NULL, NULL, 1, NULL),"
    " (7, 1, zeroblob(16), 1, 0, 'succeeded', 'q', 0, 1, 1, 'me', NULL, 1, 9),"
    " (8, 1, zeroblob(16), 2, 0, 'approval', '', 0, 0, 0, NULL, NULL, 1, NULL),"
    " (9, 1, zeroblob(16), 2, 0, 'skipped', 'q', 0, 1, 1, NULL, NULL, 1, 9);"
    "INSERT INTO timers (due_at, run, ordinal, generation) VALUES (1000, 1, 1, 1), (2000, 2, 2, 0);"
    "INSERT INTO timeline (run, seq, at, type) SELECT num, 1, 1, 'run.created' FROM runs;"
    "INSERT INTO timeline (run, seq, at, type) SELECT num, 2, 1, 'more' FROM runs WHERE num < 5;"
    "INSERT INTO timeline (run, seq, at, type) SELECT num, 3, 1, 'more' FROM runs WHERE num < 3;"
    "UPDATE indexed SET through = 7 WHERE name = 'runs';"
    "UPDATE indexed SET through = 2 WHERE name = 'idempotency';"
    "INSERT INTO run_blocks (tenant, num, runs) VALUES (1, 1, ',0,1,2,'), (1, 4, NULL),"
    " (1, 5, ',0,1,2,');"
    "INSERT INTO holding (tenant, run) VALUES (1, 1), (1, 2), (1, 3);"
    "INSERT INTO key_records (num, tenant, key, key_hash, route, fingerprint, raw_hash, status,"
    " says_created, body, replays, mismatches, created_at) VALUES"
    " (1, 1, 'a', 11, 'r', zeroblob(32), zeroblob(32), 200, 1, '{}', 0, 0, 1),"
    " (2, 2, 'b', 12, 'r', zeroblob(32), zeroblob(32), 200, 1, '{}', 0, 0, 1),"
    " (3, 1, 'c', 13, 'r', zeroblob(32), zeroblob(32), 200, 1, '{}', 0, 0, 1);";

/* Two whose first jobs are part of their rows: one in its queue, one asleep. */
static const char SOUND_FIRST[] =
    "INSERT INTO runs (num, id, tenant, workflow_id, workflow_version, status, version, priority,"
    " input, state, labels, created_by, created_at, parent_run, parent_ordinal, depth, first_queue,"
    " first_due) VALUES"
    " (13, x'0000000000000000000000000000000d', 1, 'v', 1, 'running', 1, 3, '1', '{}', '{}', 'me',"
    "  1, 1, 2, 1, 'q', NULL),"
    " (14, x'0000000000000000000000000000000e', 1, 'v', 1, 'waiting', 1, 0, '1', '{}', '{}', 'me',"
    "  1, 1, 2, 1, '', 7000);"
    "INSERT INTO first_jobs (queue, tenant, urgency, run) VALUES ('q', 1, -3, 13);"
    "INSERT INTO timers (due_at, run, ordinal, generation) VALUES (7000, 14, 1, 0);"
    "INSERT INTO timeline (run, seq, at, type) SELECT num, 1, 1, 'run.created' FROM runs"
    " WHERE num >= 13;";

static const char SOUND_TOO[] =
    "INSERT INTO runs (num, id, tenant, workflow_id, workflow_version, status, version, priority,"
    " input, state, labels, created_by, created_at, start_at, deadline_at, parent_run,"
    " parent_ordinal, depth) VALUES"
    " (10, x'0000000000000000000000000000000a', 2, 'w', 1, 'queued', 1, 0, '1', '{}', '{}', 'me',"
    "  1, 5000, NULL, NULL, NULL, 0),"
    " (11, x'0000000000000000000000000000000b', 1, 'v', 1, 'waiting', 1, 0, '1', '{}', '{}', 'me',"
    "  1, NULL, 9000, 1, 2, 1),"
    " (12, x'0000000000000000000000000000000c', 1, 'v', 1, 'pending', 1, 0, '1', '{}', '{}', 'me',"
    "  1, NULL, NULL, 1, 3, 1);"
    /* two that wait for their children, an HTTP call, and one that waits for a signal */
    "INSERT INTO jobs (run, ordinal, id, tenant, step, state, queue, urgency, attempt, lease_epoch,"
    " due_at, created_at, child) VALUES"
    " (1, 2, zeroblob(16), 1, 0, 'dispatched', '', 0, 1, 0, NULL, 1,"
    "  x'0000000000000000000000000000000b'),"
    " (1, 3, zeroblob(16), 1, 0, 'dispatched', '', 0, 1, 0, NULL, 1,"
    "  x'0000000000000000000000000000000c'),"
    " (1, 4, zeroblob(16), 1, 0, 'dispatched', 'pawl:http', 0, 1, 1, 3000, 1, NULL),"
    " (11, 1, zeroblob(16), 1, 0, 'scheduled', '', 0, 1, 0, NULL, 1, NULL);"
    /* a durable function that waits for a signal until a time, and one that asks a question */
    "INSERT INTO jobs (run, ordinal, id, tenant, step, state, queue, urgency, attempt, lease_epoch,"
    " worker, due_at, created_at) VALUES"
    " (11, 2, zeroblob(16), 1, 0, 'suspended', 'q', 0, 1, 1, 'me', 4000, 1),"
    " (11, 3, zeroblob(16), 1, 0, 'suspended', 'q', 0, 1, 1, 'me', NULL, 1),"
    " (11, 4, zeroblob(16), 1, 0, 'approval', 'pawl:approval', 0, 1, 0, NULL, NULL, 1);"
    "INSERT INTO checkpoints (run, ordinal, seq, name, bytes, at, output, error) VALUES"
    " (11, 2, 1, 'a', 2, 1, '1', NULL), (11, 2, 2, 'b', 5, 1, NULL, '{}');"
    "INSERT INTO suspensions (run, ordinal, num, lease, until, signal, question, at) VALUES"
    " (11, 2, 1, 1, 4000, 'go', NULL, 1), (11, 3, 1, 1, NULL, NULL, 4, 1);"
    "INSERT INTO approvals (run, ordinal, tenant, status, prompt, content, content_hash,"
    " requested_by, requested_at, asker, ask) VALUES"
    " (11, 4, 1, 'pending', 'p', 'null', 'h', 'me', 1, 3, '{}');"
    "INSERT INTO run_signals (run, seq, name, payload, at, taken_by) VALUES"
    " (11, 1, 'go', '1', 1, 1), (11, 2, 'other', '1', 1, NULL);"
    "INSERT INTO timers (due_at, run, ordinal, generation) VALUES (4000, 11, 2, 1);"
    /* the last four: a child's end is told, a start, a deadline, more than one turn could do */
    "INSERT INTO timers (due_at, run, ordinal, generation) VALUES (3000, 1, 4, 1),"
    " (1, 1, 2, 0), (5000, 10, 0, 0), (9000, 11, 0, 0), (1, 12, -1, 0);"
    "INSERT INTO timeline (run, seq, at, type) SELECT num, 1, 1, 'run.created' FROM runs"
    " WHERE num >= 10;"
    /* one that somebody is asked about, and one that was let go */
    "INSERT INTO approvals (run, ordinal, tenant, status, prompt, content, content_hash,"
    " requested_by, requested_at, votes, decided_by, decided_at) VALUES"
    " (8, 1, 2, 'pending', 'p', 'null', 'h', 'me', 1, 1, NULL, NULL),"
    " (7, 1, 1, 'approved', 'p', 'null', 'h', 'me', 1, 1, 'ann', 5);"
    "INSERT INTO approval_votes (run, ordinal, actor, at) VALUES (8, 1, 'ann', 2),"
    " (7, 1, 'ann', 5);"
    "INSERT INTO timeline (run, seq, at, type, data) VALUES (7, 2, 5, 'approval.decided', '{}'),"
    " (7, 3, 5, 'job.approved', '{\"job_id\":1}');"
    /* a webhook with a delivery in each state, and one that was deleted and is not swept yet */
    "INSERT INTO webhooks (num, id, tenant, url, events, secret, feed_from, created_by, created_at,"
    " updated_at, deleted_at) VALUES"
    " (1, x'00000000000000000000000000000001', 1, 'http://a.test/', '*', "
    "zeroblob(32), 0, 'me', 1, 1, NULL),"
    " (2, x'00000000000000000000000000000002', 2, 'http://a.test/', '*', "
    "zeroblob(32), 0, 'me', 1, 1, 5);"
    "INSERT INTO feed_marks (name, through) VALUES ('webhooks', 0);"
    "INSERT INTO deliveries (num, id, webhook, tenant, event_id, event_type, body, state, attempts,"
    " schedule_from, next_at, created_at, finished_at) VALUES"
    " (1, zeroblob(16), 1, 1, 'e', 't', '{}', 'pending', 0, 0, 5, 1, NULL),"
    " (2, zeroblob(16), 1, 1, 'e', 't', '{}', 'sending', 1, 0, 5, 1, NULL),"
    " (3, zeroblob(16), 1, 1, 'e', 't', '{}', 'delivered', 1, 0, NULL, 1, 5),"
    " (4, zeroblob(16), 2, 2, 'e', 't', '{}', 'failed', 1, 0, NULL, 1, 5);";

static inline int fixture_setup(void **state)
{
    static const char *const ROWS[] = {SOUND, SOUND_TOO, SOUND_FIRST};
    return checked_file_setup(state, ROWS, ARRAY_LEN(ROWS));
}

/* --- what was found --- */

enum { KINDS_MAX = 16 };

struct kinds {
    const char *what[KINDS_MAX]; /* each once, in the order of the table */
    size_t count;
    size_t shown;
    struct finding last;
    char last_tenant[32];
};

static inline void take(void *ctx, const struct finding *f)
{
    struct kinds *k = ctx;
    k->shown++;
    k->last = *f;
    (void)snprintf(k->last_tenant, sizeof(k->last_tenant), "%.*s", STR_ARG(f->tenant));
    if (k->count > 0 && strcmp(k->what[k->count - 1], f->what) == 0)
        return;
    assert_true(k->count < KINDS_MAX);
    k->what[k->count++] = f->what;
}

static inline struct check_result check_file(const char *path, unsigned depth, struct kinds *k)
{
    struct db *db = open_reader(path);
    struct check_result result = {0};
    *k = (struct kinds){.count = 0};
    for (enum check_area area = 0; area < CHECK_AREA_COUNT; area++)
        assert_ok(check_area(db, area, depth, take, k, &result));
    db_close(db);
    return result;
}

/* --- damages --- */

/* The beginnings of what is said; each must be unique in the table of invariants. */
#define TENANT_ACTIVE "active_runs of the tenant"
#define COUNTER_LOG "a row of the log of counters"
#define COUNTER_MARK "counters are marked as folded"
#define LIMIT_ACTIVE "active_runs of a limit"
#define SLOT_STRAY "a slot under a limit"
#define SLOT_MISSING "an active run does not hold"
#define SCOPE_MISSING "an active run is under"
#define SCOPE_EMPTY "a limit by workflow"
#define TENANT_QUEUED "queued_runs of the tenant"
#define LIMIT_QUEUED "queued_runs of a limit"
#define NOT_IN_LINE "a queued run is not"
#define PLACE_STRAY "a place in the queue"
#define FIRST_WRONG "a queue does not name"
#define LINE_EMPTY "an empty queue"
#define LISTED_STRAY "a limit lists"
#define LISTED_MISSING "a queue is not listed"
#define LINE_SCOPE_MISSING "a queue is under"
#define WAITS_WRONG "a queue waits"
#define STATUS_UNKNOWN "the status of a run"
#define RUN_END "a run is over"
#define RUN_VERSION "the version of a run"
#define RUN_OWNER "the tenant of a run"
#define TIMELINE "the timeline of a run"
#define TIMELINE_STRAY "a timeline is of"
#define NO_OPEN_JOB "an active run has no"
#define QUEUED_JOB "a queued run has a job"
#define JOB_STRAY "a job is of a run"
#define CALL_STRAY "a call is of an entity"
#define STATE_UNKNOWN "the state of a job"
#define JOB_OPEN "a job is open"
#define JOB_LEASE "a running job lacks"
#define JOB_END "a job is over"
#define TIMER_MISSING "a job that waits for a time has no"
#define START_MISSING "a run that is to start later has no"
#define TIMER_STRAY "a timer is of"
#define OFFER_MISSING "the first job of a run is not in its queue"
#define OFFER_STRAY "a queue has the first job of a run that does not wait in it"
#define CHECKPOINT_STRAY "a checkpoint is of no"
#define CHECKPOINT_VALUE "a checkpoint has not just one"
#define CHECKPOINT_GAP "the numbers of a job's checkpoints"
#define WAIT_MISSING "a suspended job does not say"
#define SIGNAL_IGNORED "a suspended job waits for a signal"
#define QUESTION_MISSING "a suspended job waits for a decision"
#define QUESTION_STRAY "a question is open"
#define APPROVAL_UNKNOWN "the status of an approval"
#define APPROVAL_END "an approval is decided"
#define APPROVAL_JOB "an approval is of no job"
#define APPROVAL_IDLE "an approval is pending"
#define APPROVAL_MISSING "a job waits for an approval"
#define VOTES_WRONG "an approval counts"
#define DECISION_EVENTS "an approval's decisions"
#define APPROVED_TWICE "a job was approved"
#define DELIVERY_STRAY "a delivery is of no"
#define DELIVERY_STATE "the state of a delivery"
#define DELIVERY_END "a delivery is over"
#define WEBHOOK_MARK "there are webhooks"
#define MARK_LOST "an index has lost"
#define INDEX_MISSING "the index of runs lacks"
#define INDEX_STRAY "the index of runs has an entry"
#define INDEX_TWICE "the index of runs has a run twice"
#define INDEX_UNREAD "a block of the index of runs"
#define HOLDING_MISSING "the index of active runs lacks"
#define HOLDING_STRAY "the index of active runs has"

/* A pack of the feed with counters. */
#define LOGGED \
    "INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at, counters) VALUES "

struct damage {
    const char *sql;
    const char *found[6]; /* all of it, in the order of the table */
};

/* A table is read by its columns. */
/* clang-format off */
static const struct damage DAMAGES[] = {
    {"UPDATE tenants SET active_runs = 4 WHERE num = 1", {TENANT_ACTIVE}},
    {"UPDATE tenants SET active_runs = 0 WHERE num = 2", {TENANT_ACTIVE}},
    {LOGGED "(2, 1, 7, 1, 1, 5, '[[1,4,3,0],[2,0,0,0]]'), (3, 1, 7, 1, 1, 5, '[[1,3,3,0]]')", {TENANT_ACTIVE}},
    {LOGGED "(2, 1, 7, 1, 1, 5, '[[1,4,')", {COUNTER_LOG}},
    {LOGGED "(2, 1, 7, 1, 1, 5, '[[1,3,3]]')", {COUNTER_LOG}},
    {LOGGED "(2, 1, 7, 1, 1, 5, '[[1,x,3,0]]')", {COUNTER_LOG}},
    {LOGGED "(2, 1, 7, 1, 1, 5, '[[1,,3,0]]')", {COUNTER_LOG}},
    {LOGGED "(2, 1, 7, 1, 1, 5, '[[1,3,3,0]],[[2,1,0,0]]')", {COUNTER_LOG}},
    {LOGGED "(2, 1, 7, 1, 1, 5, '[[1,3,03,0]]')", {COUNTER_LOG}},
    {LOGGED "(2, 1, 7, 1, 1, 5, '[[1,99999999999999999999,3,0]]')", {COUNTER_LOG}},
    {LOGGED "(2, 1, 7, 1, 1, 5, '[[9,0,0,0]]')", {COUNTER_LOG}},
    {LOGGED "(2, 1, 7, 1, 1, 5, '[[1,-3,3,0]]')", {TENANT_ACTIVE, COUNTER_LOG}},
    {LOGGED "(2, 1, 7, 1, 1, 5, '[[1,4,'), (3, 1, 7, 1, 1, 5, '[[1,3,3,0]]')", {COUNTER_LOG}},
    {LOGGED "(2, 1, 7, 1, 1, 5, '[[1,4,');"
     "UPDATE indexed SET through = 2 WHERE name = 'counters'", {NULL}}, /* was folded */
    {"UPDATE indexed SET through = 1000000 WHERE name = 'counters'", {COUNTER_MARK}},
    {"DELETE FROM indexed WHERE name = 'counters'", {COUNTER_MARK}},
    {"UPDATE scopes SET active_runs = 3 WHERE num = 1", {LIMIT_ACTIVE}},
    {"INSERT INTO slots (scope, run) VALUES (2, 7)", {LIMIT_ACTIVE, SLOT_STRAY}},
    {"INSERT INTO slots (scope, run) VALUES (2, 4)", {LIMIT_ACTIVE, SLOT_STRAY}},
    {"INSERT INTO slots (scope, run) VALUES (2, 99)", {LIMIT_ACTIVE, SLOT_STRAY}},
    {"UPDATE slots SET run = 2 WHERE scope = 2", {SLOT_STRAY, SLOT_MISSING}},
    {"DELETE FROM slots WHERE scope = 3", {LIMIT_ACTIVE, SLOT_MISSING}},
    /* 4 is a part of 14, and not in its list */
    {"INSERT INTO slots (scope, run) VALUES (4, 8)", {SLOT_STRAY, SCOPE_MISSING}},
    {"UPDATE runs SET scopes = '1,3,3' WHERE num = 2", {SLOT_MISSING}},
    {"UPDATE runs SET scopes = '1,x' WHERE num = 2", {SLOT_STRAY, SLOT_MISSING}},
    {"UPDATE runs SET scopes = '1,,3' WHERE num = 2", {SLOT_MISSING}},
    {"UPDATE runs SET scopes = NULL WHERE num = 2", {SLOT_STRAY}},
    {"DELETE FROM scopes WHERE num = 3", {SCOPE_MISSING}},
    {"UPDATE scopes SET tenant = 2 WHERE num = 3", {SCOPE_MISSING}},
    {"UPDATE scopes SET workflow_id = 'v' WHERE num = 3", {SCOPE_MISSING}},
    {"INSERT INTO scopes (num, tenant, workflow_id, path, key, active_runs, queued_runs)"
     " VALUES (20, 1, 'w', 'input.c', 'z', 0, 0)", {SCOPE_EMPTY}},

    {"UPDATE tenants SET queued_runs = 2 WHERE num = 1", {TENANT_QUEUED}},
    {"UPDATE tenants SET queued_runs = 1 WHERE num = 2", {TENANT_QUEUED}},
    {"UPDATE scopes SET queued_runs = 1 WHERE num = 1", {LIMIT_QUEUED}},
    {"DELETE FROM queue WHERE run = 4", {TENANT_QUEUED, LIMIT_QUEUED, NOT_IN_LINE}},
    {"UPDATE queue SET urgency = 1 WHERE run = 4", {NOT_IN_LINE, PLACE_STRAY}},
    {"UPDATE queue SET line = 2 WHERE run = 4",
     {LIMIT_QUEUED, NOT_IN_LINE, PLACE_STRAY, FIRST_WRONG}},
    {"UPDATE queue SET tenant = 2 WHERE run = 4", {TENANT_QUEUED, PLACE_STRAY}},
    {"INSERT INTO queue (line, urgency, run, tenant) VALUES (2, 0, 4, 1)",
     {TENANT_QUEUED, PLACE_STRAY, FIRST_WRONG}},
    {"INSERT INTO queue (line, urgency, run, tenant) VALUES (1, 0, 99, 1)",
     {TENANT_QUEUED, LIMIT_QUEUED, PLACE_STRAY}},
    {"UPDATE lines SET run = 4, urgency = 0 WHERE num = 1", {FIRST_WRONG}},
    {"UPDATE lines SET urgency = -6 WHERE num = 1", {FIRST_WRONG}},
    {"INSERT INTO lines (num, tenant, scopes, waits_for, urgency, run) VALUES (3, 2, '', 0, 0, 9)",
     {LINE_EMPTY}},
    {"DELETE FROM lines WHERE num = 2", {NOT_IN_LINE, PLACE_STRAY}},
    {"UPDATE lines SET tenant = 2 WHERE num = 2", {NOT_IN_LINE, PLACE_STRAY}},
    {"INSERT INTO line_scopes (scope, line) VALUES (3, 1)", {LIMIT_QUEUED, LISTED_STRAY}},
    {"INSERT INTO line_scopes (scope, line) VALUES (3, 9)", {LISTED_STRAY}},
    {"DELETE FROM line_scopes WHERE scope = 2", {LIMIT_QUEUED, LISTED_MISSING}},
    {"DELETE FROM scopes WHERE num = 2", {SCOPE_MISSING, LINE_SCOPE_MISSING}},
    {"UPDATE lines SET waits_for = 3 WHERE num = 1", {WAITS_WRONG}},
    {"UPDATE lines SET waits_for = 1 WHERE num = 2", {WAITS_WRONG}},
    {"UPDATE runs SET start_at = NULL WHERE num = 10", {NOT_IN_LINE}},
    {"UPDATE runs SET start_at = 7 WHERE num = 4", {PLACE_STRAY, START_MISSING}},

    {"UPDATE runs SET status = 'lost', finished_at = NULL WHERE num = 9", {STATUS_UNKNOWN}},
    {"UPDATE runs SET finished_at = 9 WHERE num = 3", {RUN_END}},
    {"UPDATE runs SET finished_at = 9 WHERE num = 4", {RUN_END}},
    {"UPDATE runs SET finished_at = NULL WHERE num = 9", {RUN_END}},
    {"UPDATE runs SET version = 0 WHERE num = 9", {RUN_VERSION}},
    {"UPDATE runs SET workflow_version = 2 WHERE num = 9", {RUN_OWNER}},
    {"DELETE FROM tenants WHERE num = 2", {RUN_OWNER}},
    {"DELETE FROM timeline WHERE run = 1 AND seq = 2", {TIMELINE}},
    {"DELETE FROM timeline WHERE run = 1 AND seq = 1", {TIMELINE}},
    {"DELETE FROM timeline WHERE run = 9", {TIMELINE}},
    {"UPDATE timeline SET type = '', data = '[[\"a\"],[\"b\"]]' WHERE run = 1 AND seq = 3", {TIMELINE}},
    {"INSERT INTO timeline (run, seq, at, type) VALUES (99, 1, 1, 'x'), (99, 2, 1, 'x')",
     {TIMELINE_STRAY}},
    {"DELETE FROM jobs WHERE run = 3", {NO_OPEN_JOB}},
    {"DELETE FROM timers WHERE run = 12", {NO_OPEN_JOB}},
    {"INSERT INTO jobs (run, ordinal, id, tenant, step, state, queue, urgency, attempt,"
     " lease_epoch, created_at, finished_at) VALUES (4, 1, zeroblob(16), 1, 0, 'failed', 'q', 0, 0, 0, 1,"
     " 9)", {QUEUED_JOB}},

    {"UPDATE jobs SET run = 99 WHERE run = 9", {JOB_STRAY}},
    {"UPDATE jobs SET tenant = 1 WHERE run = 9", {JOB_STRAY}},
    {"UPDATE jobs SET step = -1 WHERE run = 9", {CALL_STRAY}}, /* more in test_check_entities.c */
    {"UPDATE jobs SET state = 'lost', finished_at = NULL WHERE run = 9", {STATE_UNKNOWN}},
    {"UPDATE jobs SET state = 'pending', finished_at = NULL WHERE run = 9", {JOB_OPEN}},
    {"UPDATE runs SET status = 'cancelled', finished_at = 9 WHERE num = 11", {JOB_OPEN}},
    {"UPDATE jobs SET worker = NULL WHERE state = 'running'", {JOB_LEASE}},
    {"UPDATE jobs SET lease_epoch = 0 WHERE state = 'running'",
     {JOB_LEASE, TIMER_MISSING, TIMER_STRAY}},
    {"UPDATE jobs SET due_at = NULL WHERE state = 'running'", {JOB_LEASE, TIMER_STRAY}},
    {"UPDATE jobs SET due_at = NULL WHERE state = 'scheduled'", {TIMER_STRAY}},
    {"UPDATE jobs SET child = NULL WHERE run = 1 AND ordinal = 2", {TIMER_STRAY}},
    {"UPDATE jobs SET finished_at = 9 WHERE run = 3", {JOB_END}},
    {"UPDATE jobs SET finished_at = NULL WHERE run = 9", {JOB_END}},
    {"UPDATE runs SET status = 'cancelled', finished_at = 9 WHERE num = 14", {JOB_OPEN}},
    {"UPDATE runs SET first_queue = 'q' WHERE num = 4", {QUEUED_JOB, JOB_OPEN, OFFER_MISSING}},
    {"UPDATE runs SET first_queue = NULL WHERE num = 13", {NO_OPEN_JOB, OFFER_STRAY}},
    {"DELETE FROM first_jobs", {OFFER_MISSING}},
    {"UPDATE first_jobs SET urgency = 0", {OFFER_MISSING, OFFER_STRAY}},
    {"UPDATE first_jobs SET queue = 'other'", {OFFER_MISSING, OFFER_STRAY}},
    {"INSERT INTO first_jobs (queue, tenant, urgency, run) VALUES ('q', 1, 0, 99)", {OFFER_STRAY}},
    {"INSERT INTO first_jobs (queue, tenant, urgency, run) VALUES ('q', 1, 0, 3)", {OFFER_STRAY}},
    {"DELETE FROM timers WHERE run = 14", {TIMER_MISSING}},
    {"UPDATE timers SET due_at = 7001 WHERE run = 14", {TIMER_MISSING, TIMER_STRAY}},
    {"UPDATE timers SET generation = 1 WHERE run = 14", {TIMER_MISSING, TIMER_STRAY}},
    {"DELETE FROM timers WHERE run = 1", {TIMER_MISSING}},
    {"DELETE FROM timers WHERE run = 2", {TIMER_MISSING}},
    {"DELETE FROM timers WHERE run = 1 AND ordinal = 4", {TIMER_MISSING}},
    {"DELETE FROM timers WHERE run = 10", {START_MISSING}},
    {"UPDATE timers SET due_at = 1500 WHERE run = 1", {TIMER_MISSING, TIMER_STRAY}},
    {"UPDATE timers SET generation = 2 WHERE run = 1", {TIMER_MISSING, TIMER_STRAY}},
    {"INSERT INTO timers (due_at, run, ordinal, generation) VALUES (5, 3, 1, 0)", {TIMER_STRAY}},
    {"INSERT INTO timers (due_at, run, ordinal, generation) VALUES (5, 99, 1, 0)", {TIMER_STRAY}},

    {"UPDATE checkpoints SET ordinal = 9", {CHECKPOINT_STRAY}},
    {"UPDATE checkpoints SET error = '{}' WHERE seq = 1", {CHECKPOINT_VALUE}},
    {"UPDATE checkpoints SET error = NULL WHERE seq = 2", {CHECKPOINT_VALUE}},
    {"DELETE FROM checkpoints WHERE seq = 1", {CHECKPOINT_GAP}},
    {"UPDATE checkpoints SET seq = 3 WHERE seq = 2", {CHECKPOINT_GAP}},
    {"DELETE FROM suspensions WHERE ordinal = 2", {WAIT_MISSING}},
    {"UPDATE suspensions SET resumed_by = '{}' WHERE ordinal = 2", {WAIT_MISSING}},
    {"UPDATE suspensions SET lease = 2 WHERE ordinal = 2", {WAIT_MISSING}},
    {"UPDATE suspensions SET until = 5000 WHERE ordinal = 2", {WAIT_MISSING}},
    {"UPDATE suspensions SET question = NULL WHERE ordinal = 3", {WAIT_MISSING, QUESTION_STRAY}},
    {"UPDATE run_signals SET taken_by = NULL WHERE seq = 1", {SIGNAL_IGNORED}},
    {"UPDATE approvals SET asker = NULL WHERE run = 11", {QUESTION_MISSING}},
    {"UPDATE suspensions SET question = 1 WHERE ordinal = 3", {QUESTION_MISSING, QUESTION_STRAY}},
    {"UPDATE jobs SET state = 'pending' WHERE run = 11 AND ordinal = 3", {QUESTION_STRAY}},
    {"DELETE FROM timers WHERE run = 11 AND ordinal = 2", {TIMER_MISSING}},

    {"UPDATE approvals SET status = 'asked' WHERE run = 8", {APPROVAL_UNKNOWN, APPROVAL_MISSING}},
    {"UPDATE approvals SET decided_at = NULL WHERE run = 7", {APPROVAL_END, DECISION_EVENTS}},
    {"UPDATE approvals SET decided_by = 'bob' WHERE run = 8", {APPROVAL_END}},
    {"UPDATE approvals SET tenant = 1 WHERE run = 8", {APPROVAL_JOB}},
    {"DELETE FROM jobs WHERE run = 7", {APPROVAL_JOB}},
    {"UPDATE jobs SET state = 'pending' WHERE run = 8", {APPROVAL_IDLE}},
    {"UPDATE approvals SET status = 'void' WHERE run = 8", {APPROVAL_MISSING}},
    {"DELETE FROM approvals WHERE run = 8", {APPROVAL_MISSING}},
    {"UPDATE approvals SET votes = 2 WHERE run = 8", {VOTES_WRONG}},
    {"DELETE FROM approval_votes WHERE run = 8", {VOTES_WRONG}},
    {"INSERT INTO timeline (run, seq, at, type, data) VALUES (7, 4, 6, 'approval.decided', '{}')",
     {DECISION_EVENTS}},
    {"UPDATE approvals SET status = 'rejected', decided_at = 5, decided_by = 'ann' WHERE run = 8",
     {APPROVAL_MISSING, DECISION_EVENTS}},
    {"INSERT INTO timeline (run, seq, at, type, data) VALUES (7, 4, 6, 'job.approved',"
     " '{\"job_id\":1}')", {APPROVED_TWICE}},
    {"INSERT INTO timeline (run, seq, at, type, data) VALUES (7, 4, 6, 'job.approved',"
     " '{\"job_id\":2}')", {NULL}},

    {"DELETE FROM indexed WHERE name = 'idempotency'", {MARK_LOST}},
    {"DELETE FROM indexed WHERE name = 'runs'", {MARK_LOST, INDEX_STRAY, HOLDING_STRAY}},
    {"UPDATE indexed SET through = 1000000 WHERE name = 'timers'",
     {"timers are marked as folded past the end of the feed"}},
    {"INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at) VALUES (2, 1, 7, 1, 1, 5)", {NULL}},
    {"INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at, earlier) VALUES"
     " (2, 1, 7, 1, 1, 5, '[[1,0,')", {"a pack of the feed is damaged"}},
    {"INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at, earlier) VALUES"
     " (2, 1, 7, 1, 1, 5, '')", {"a pack of the feed is damaged"}},
    {"INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at, earlier) VALUES"
     " (2, 1, 7, 1, 1, 5, '[]')", {"a pack of the feed is damaged"}},
    {"INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at, earlier) VALUES"
     " (2, 1, 7, 1, 1, 5, '[[]]')", {"a pack of the feed is damaged"}},
    {"INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at, earlier) VALUES"
     " (2, 1, 7, 1, 1, 5, '[[1,,1,1]]')", {"a pack of the feed is damaged"}},
    {"INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at, earlier) VALUES"
     " (2, 1, 7, 1, 1, 5, '[[1,0,1]]')", {"a pack of the feed is damaged"}},
    {"INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at, earlier) VALUES"
     " (2, 1, 7, 1, 1, 5, '[[1,0,1,1,1]]')", {"a pack of the feed is damaged"}},
    {"INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at, earlier) VALUES"
     " (2, 1, 7, 1, 1, 5, '[[1,0,1],[1,0,1,1,1]]')", {"a pack of the feed is damaged"}},
    {"INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at, earlier) VALUES"
     " (2, 1, 7, 1, 1, 5, '[[1,0,1,99999999999999999999]]')", {"a pack of the feed is damaged"}},
    {"INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at, earlier) VALUES"
     " (2, 1, 7, 1, 1, 5, '[[1,0,1,-]]')", {"a pack of the feed is damaged"}},
    {"INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at, earlier) VALUES"
     " (2, 1, 7, 1, 1, 5, '[[1,0,1,1]]]')", {"a pack of the feed is damaged"}},
    {"INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at, earlier) VALUES"
     " (2, 1, 7, 1, 1, 5, '[[1,0,1,1][1,0,1,1]]')", {"a pack of the feed is damaged"}},
    {"INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at, earlier) VALUES"
     " (2, 1, 7, 1, 1, 5, '[[1,00,1,1]]')", {"a pack of the feed is damaged"}},
    {"INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at, earlier) VALUES"
     " (2, 1, 7, 1, 1, 5, '[[1,-6,1,1],[1,0,1,10]]')", {NULL}},
    {"INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at) VALUES (2, 1, 7, 5, 3, 5)",
     {"a pack of the feed is damaged"}},
    {"INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at) VALUES (2, -1, 7, 1, 1, 5)",
     {"a pack of the feed is damaged"}},
    {"UPDATE indexed SET through = 10 WHERE name = 'runs'", {INDEX_MISSING, HOLDING_MISSING}},
    {"DELETE FROM run_blocks WHERE num = 4", {INDEX_MISSING}},
    {"UPDATE run_blocks SET runs = ',0,2,' WHERE num = 5", {INDEX_MISSING}},
    {"UPDATE run_blocks SET tenant = 2 WHERE num = 4", {INDEX_MISSING}},
    {"INSERT INTO run_blocks (tenant, num) VALUES (2, 8)", {INDEX_STRAY}},
    {"INSERT INTO run_blocks (tenant, num) VALUES (1, 0)", {INDEX_STRAY}},
    {"UPDATE run_blocks SET runs = ',0,90,' WHERE num = 4", {INDEX_STRAY}},
    {"UPDATE run_blocks SET runs = ',0,1,' WHERE num = 4", {INDEX_TWICE}},
    {"UPDATE run_blocks SET runs = ',0,1,2,and' WHERE num = 5", {INDEX_UNREAD, INDEX_MISSING}},
    {"UPDATE run_blocks SET runs = '' WHERE num = 4", {INDEX_UNREAD, INDEX_MISSING}},
    {"DELETE FROM holding WHERE run = 2", {HOLDING_MISSING}},
    {"INSERT INTO holding (tenant, run) VALUES (1, 7)", {HOLDING_STRAY}},
    {"INSERT INTO holding (tenant, run) VALUES (2, 8)", {HOLDING_STRAY}},
    {"INSERT INTO holding (tenant, run) VALUES (2, 3)", {HOLDING_STRAY}},

    {"DELETE FROM webhooks WHERE num = 2", {DELIVERY_STRAY}},
    {"UPDATE webhooks SET tenant = 1 WHERE num = 2", {DELIVERY_STRAY}},
    {"UPDATE deliveries SET state = 'lost' WHERE num = 1", {DELIVERY_STATE}},
    {"UPDATE deliveries SET finished_at = 5 WHERE num = 1", {DELIVERY_END}},
    {"UPDATE deliveries SET next_at = 5 WHERE num = 3", {DELIVERY_END}},
    {"UPDATE deliveries SET next_at = NULL WHERE num = 2", {DELIVERY_END}},
    {"UPDATE deliveries SET finished_at = NULL WHERE num = 4", {DELIVERY_END}},
    {"DELETE FROM feed_marks", {WEBHOOK_MARK}},
};

/* clang-format on */

/* There is such an invariant with this flag. */
static inline bool is_flagged(const char *what, unsigned flag)
{
    bool flagged = false;
    for (size_t i = 0; i < INVARIANT_COUNT; i++)
        flagged |= begins(INVARIANTS[i].broken, what) && (INVARIANTS[i].flags & flag) != 0;
    return flagged;
}

#endif
