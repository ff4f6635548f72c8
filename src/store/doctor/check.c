/* What must hold between the rows of a store. */
#include "store/doctor/check.h"

#include "base/limits.h"
#include "domain/approval.h"
#include "domain/job.h"
#include "domain/run.h"
#include "store/doctor/derived.h"
#include "store/owners.h"
#include "store/run/runs.h"

/* --- pieces of SQL --- */

/* The names of the statuses for which a column of the table of statuses says true or false. */
#define NAMES_IF_true(name) ", '" name "'"
#define NAMES_IF_false(name)
#define NAMES_IF_NOT_true(name)
#define NAMES_IF_NOT_false(name) ", '" name "'"
#define RUN_ANY(symbol, name, slot, terminal) ", '" name "'"
#define RUN_OVER(symbol, name, slot, terminal) NAMES_IF_##terminal(name)
#define JOB_ANY(symbol, name, terminal) ", '" name "'"
#define JOB_OVER(symbol, name, terminal) NAMES_IF_##terminal(name)
#define JOB_OPEN(symbol, name, terminal) NAMES_IF_NOT_##terminal(name)

#define APPROVAL_ANY(symbol, name, decided) ", '" name "'"
#define APPROVAL_DECIDED(symbol, name, decided) NAMES_IF_##decided(name)

#define IN_APPROVALS(which) "IN (''" APPROVAL_STATUSES(which) ")"
#define IN_RUNS(which) "IN (''" RUN_STATUSES(which) ")"
#define IN_JOBS(which) "IN (''" JOB_STATES(which) ")"

/* How many limits a list of scopes has. */
#define LIST_LENGTH(list)             \
    "(CASE WHEN " list " = '' THEN 0" \
    " ELSE length(" list ") - length(replace(" list ", ',', '')) + 1 END)"

/* The entries of the index of runs that are of a run, and how many there should be. CROSS keeps
 * SQLite from looking for the entry of each run instead, which has to pass all of its tenant. */
#define INDEXED_RUNS \
    "FROM runs_index x CROSS JOIN runs o WHERE o.num = x.num AND o.tenant = x.tenant"
#define RUNS_TO_INDEX "(SELECT count(*) FROM runs WHERE num <= " RUNS_THROUGH ")"

/* --- the table --- */

/* A table is read by its columns. */
/* clang-format off */
const struct invariant INVARIANTS[] = {
    /* slots: who is active, by tenant and by limit */
    {CHECK_SLOTS, CHECK_FULL | CHECK_DERIVED,
     "active_runs of the tenant is not the number of its runs that hold a slot",
     "WITH counted AS (SELECT tenant, count(*) AS n FROM runs WHERE " RUN_HOLDS_SLOT
     " GROUP BY tenant)"
     " SELECT t.tenant, NULL, t.active_runs, COALESCE(c.n, 0)"
     " FROM tenant_counters t LEFT JOIN counted c ON c.tenant = t.tenant"
     " WHERE t.active_runs <> COALESCE(c.n, 0)"},
    /* The same from the runs that are known as active: one that ended and kept its slot is still
     * known. The plus keeps SQLite from looking up each run in `holding` instead. */
    {CHECK_SLOTS, CHECK_QUICK | CHECK_DERIVED,
     "active_runs of the tenant is not the number of its runs that hold a slot",
     "WITH held AS (SELECT h.tenant FROM holding h JOIN runs r ON r.num = +h.run"
     " AND r.tenant = +h.tenant WHERE " RUN_HOLDS_SLOT
     " UNION ALL SELECT r.tenant FROM runs r WHERE r.num > " RUNS_THROUGH " AND " RUN_HOLDS_SLOT "),"
     " counted AS (SELECT tenant, count(*) AS n FROM held GROUP BY tenant)"
     " SELECT t.tenant, NULL, t.active_runs, COALESCE(c.n, 0)"
     " FROM tenant_counters t LEFT JOIN counted c ON c.tenant = t.tenant"
     " WHERE t.active_runs <> COALESCE(c.n, 0)"},
    {CHECK_SLOTS, CHECK_FULL | CHECK_QUICK | CHECK_DERIVED,
     "a row of the log of counters is damaged, or is of no tenant",
     "SELECT NULL, NULL, num, NULL FROM feed_packs WHERE num > " COUNTERS_THROUGH
     " AND counters IS NOT NULL AND " LISTS_ARE_DAMAGED("counters")
     " UNION ALL SELECT NULL, NULL, c.tenant, NULL FROM logged_counters c"
     " LEFT JOIN tenants t ON t.num = c.tenant WHERE t.num IS NULL"
     " OR COALESCE(c.active_runs, -1) < 0 OR COALESCE(c.queued_runs, -1) < 0"
     " OR c.rate_full_at IS NULL"},
    /* With a mark that is too high, the counters of the next commits would be lost. */
    {CHECK_SLOTS, CHECK_FULL | CHECK_QUICK | CHECK_DERIVED,
     "counters are marked as folded past the end of the feed, or the mark is lost",
     "SELECT NULL, NULL, max(through), NULL FROM indexed WHERE name = 'counters'"
     " HAVING count(*) = 0 OR max(through) > " FEED_END},
    {CHECK_SLOTS, CHECK_FULL | CHECK_QUICK | CHECK_DERIVED,
     "active_runs of a limit is not the number of slots that are held under it",
     "WITH counted AS (SELECT scope, count(*) AS n FROM slots GROUP BY scope)"
     " SELECT s.tenant, NULL, s.active_runs, COALESCE(c.n, 0)"
     " FROM scopes s LEFT JOIN counted c ON c.scope = s.num"
     " WHERE s.active_runs <> COALESCE(c.n, 0)"},
    {CHECK_SLOTS, CHECK_FULL | CHECK_QUICK | CHECK_DERIVED,
     "a slot under a limit is held by a run that is not active or not under this limit",
     "SELECT r.tenant, r.num, s.scope, NULL FROM slots s LEFT JOIN runs r ON r.num = s.run"
     " WHERE r.num IS NULL OR NOT " RUN_HOLDS_SLOT
     " OR NOT " LIST_HAS("COALESCE(r.scopes, '')", "s.scope")},
    {CHECK_SLOTS, CHECK_FULL | CHECK_DERIVED,
     "an active run does not hold one slot under each of its limits",
     "WITH counted AS (SELECT s.run, count(*) AS n FROM slots s JOIN runs r ON r.num = s.run"
     " WHERE " LIST_HAS("r.scopes", "s.scope") " GROUP BY s.run)"
     " SELECT r.tenant, r.num, COALESCE(c.n, 0), " LIST_LENGTH("r.scopes")
     " FROM runs r LEFT JOIN counted c ON c.run = r.num"
     " WHERE r.scopes IS NOT NULL AND " RUN_HOLDS_SLOT
     " AND COALESCE(c.n, 0) <> " LIST_LENGTH("r.scopes")},
    {CHECK_SLOTS, CHECK_FULL | CHECK_DERIVED,
     "an active run is under a limit that is not there or not of its workflow",
     "SELECT r.tenant, r.num, s.scope, NULL FROM slots s JOIN runs r ON r.num = s.run"
     " LEFT JOIN scopes c ON c.num = s.scope"
     " WHERE c.num IS NULL OR c.tenant <> r.tenant OR c.workflow_id <> r.workflow_id"},
    {CHECK_SLOTS, CHECK_FULL | CHECK_DERIVED,
     "a limit by workflow or key is kept although no run is under it",
     "SELECT s.tenant, NULL, s.num, NULL FROM scopes s"
     " WHERE s.active_runs = 0 AND s.queued_runs = 0"
     " AND NOT EXISTS (SELECT 1 FROM slots x WHERE x.scope = s.num)"
     " AND NOT EXISTS (SELECT 1 FROM line_scopes x WHERE x.scope = s.num)"},

    /* queue: who waits, and in which line */
    {CHECK_QUEUE, CHECK_FULL | CHECK_QUICK | CHECK_DERIVED,
     "queued_runs of the tenant is not the number of its runs in the queue",
     "WITH counted AS (SELECT tenant, count(*) AS n FROM queue GROUP BY tenant)"
     " SELECT t.tenant, NULL, t.queued_runs, COALESCE(c.n, 0)"
     " FROM tenant_counters t LEFT JOIN counted c ON c.tenant = t.tenant"
     " WHERE t.queued_runs <> COALESCE(c.n, 0)"},
    {CHECK_QUEUE, CHECK_FULL | CHECK_QUICK | CHECK_DERIVED,
     "queued_runs of a limit is not the number of runs in its queues",
     "WITH counted AS (SELECT x.scope, count(*) AS n FROM line_scopes x"
     " JOIN queue q ON q.line = x.line GROUP BY x.scope)"
     " SELECT s.tenant, NULL, s.queued_runs, COALESCE(c.n, 0)"
     " FROM scopes s LEFT JOIN counted c ON c.scope = s.num"
     " WHERE s.queued_runs <> COALESCE(c.n, 0)"},
    {CHECK_QUEUE, CHECK_FULL | CHECK_DERIVED,
     "a queued run is not in its queue",
     "SELECT r.tenant, r.num, NULL, NULL FROM runs r"
     " LEFT JOIN lines l ON l.tenant = r.tenant AND l.scopes = COALESCE(r.scopes, '')"
     " LEFT JOIN queue q ON q.line = l.num AND q.urgency = -r.priority AND q.run = r.num"
     " WHERE " RUN_IS_IN_LINE " AND q.run IS NULL"},
    {CHECK_QUEUE, CHECK_FULL | CHECK_DERIVED,
     "a place in the queue is of a run that is not queued, or is not the run's own",
     "SELECT q.tenant, r.num, q.line, NULL FROM queue q LEFT JOIN runs r ON r.num = q.run"
     " LEFT JOIN lines l ON l.num = q.line"
     " WHERE r.num IS NULL OR NOT " RUN_IS_IN_LINE " OR q.tenant <> r.tenant"
     " OR q.urgency <> -r.priority OR l.num IS NULL OR l.tenant <> r.tenant"
     " OR l.scopes <> COALESCE(r.scopes, '')"},
    {CHECK_QUEUE, CHECK_FULL | CHECK_DERIVED,
     "a queue does not name its first run",
     "SELECT l.tenant, l.run, l.num, NULL FROM lines l"
     " WHERE l.urgency <> " FIRST_IN_LINE("l.num", "urgency")
     " OR l.run <> " FIRST_IN_LINE("l.num", "run")},
    {CHECK_QUEUE, CHECK_FULL | CHECK_DERIVED,
     "an empty queue was not removed",
     "SELECT l.tenant, NULL, l.num, NULL FROM lines l"
     " WHERE NOT EXISTS (SELECT 1 FROM queue q WHERE q.line = l.num)"},
    {CHECK_QUEUE, CHECK_FULL | CHECK_DERIVED,
     "a limit lists a queue that does not exist or is not under it",
     "SELECT l.tenant, NULL, x.scope, NULL FROM line_scopes x LEFT JOIN lines l ON l.num = x.line"
     " WHERE l.num IS NULL OR NOT " LIST_HAS("l.scopes", "x.scope")},
    {CHECK_QUEUE, CHECK_FULL | CHECK_DERIVED,
     "a queue is not listed by each of its limits",
     "WITH counted AS (SELECT x.line, count(*) AS n FROM line_scopes x"
     " JOIN lines l ON l.num = x.line WHERE " LIST_HAS("l.scopes", "x.scope") " GROUP BY x.line)"
     " SELECT l.tenant, l.run, COALESCE(c.n, 0), " LIST_LENGTH("l.scopes")
     " FROM lines l LEFT JOIN counted c ON c.line = l.num"
     " WHERE COALESCE(c.n, 0) <> " LIST_LENGTH("l.scopes")},
    {CHECK_QUEUE, CHECK_FULL | CHECK_DERIVED,
     "a queue is under a limit that does not exist or is not of its workflow",
     "SELECT l.tenant, l.run, x.scope, NULL FROM line_scopes x JOIN lines l ON l.num = x.line"
     " LEFT JOIN scopes s ON s.num = x.scope LEFT JOIN runs r ON r.num = l.run"
     " WHERE s.num IS NULL OR s.tenant <> l.tenant OR s.workflow_id <> r.workflow_id"},
    {CHECK_QUEUE, CHECK_FULL | CHECK_DERIVED,
     "a queue waits for a limit that is not its own",
     "SELECT l.tenant, l.run, l.waits_for, NULL FROM lines l"
     " WHERE l.waits_for <> 0 AND NOT " LIST_HAS("l.scopes", "l.waits_for")},

    /* runs: what each says about itself, and its timeline */
    {CHECK_RUNS, CHECK_FULL,
     "the status of a run does not exist",
     "SELECT tenant, num, NULL, NULL FROM runs WHERE NOT status " IN_RUNS(RUN_ANY)},
    {CHECK_RUNS, CHECK_FULL,
     "a run is over and does not say when, or says so too early",
     "SELECT tenant, num, NULL, NULL FROM runs"
     " WHERE (status " IN_RUNS(RUN_OVER) ") <> (finished_at IS NOT NULL)"},
    {CHECK_RUNS, CHECK_FULL,
     "the version of a run is below 1",
     "SELECT tenant, num, version, NULL FROM runs WHERE version < 1"},
    {CHECK_RUNS, CHECK_FULL,
     "the tenant of a run, or its version of the workflow, is not there",
     "SELECT r.tenant, r.num, r.workflow_version, NULL FROM runs r"
     " LEFT JOIN tenants t ON t.num = r.tenant"
     " LEFT JOIN workflow_versions v ON v.tenant = r.tenant AND v.workflow_id = r.workflow_id"
     " AND v.version = r.workflow_version WHERE t.num IS NULL OR v.version IS NULL"},
    {CHECK_RUNS, CHECK_FULL,
     "the timeline of a run is empty or has gaps",
     "SELECT r.tenant, r.num, count(e.seq), COALESCE(max(e.seq), 1) FROM runs r"
     " LEFT JOIN events e ON e.run = r.num GROUP BY r.num"
     " HAVING count(e.seq) = 0 OR min(e.seq) <> 1 OR max(e.seq) <> count(e.seq)"},
    {CHECK_RUNS, CHECK_FULL,
     "a timeline is of no run or entity that is there or being removed",
     "WITH told AS (SELECT run FROM timeline GROUP BY run)"
     " SELECT NULL, NULL, e.run, NULL FROM told e LEFT JOIN runs r ON r.num = e.run"
     " LEFT JOIN entities n ON n.num = e.run"
     " LEFT JOIN entity_sweeps s ON s.entity = e.run AND s.deleted = 1"
     " WHERE r.num IS NULL AND n.num IS NULL AND s.entity IS NULL"},
    {CHECK_RUNS, CHECK_FULL,
     "an active run has no open job",
     "SELECT r.tenant, r.num, NULL, NULL FROM runs r"
     " WHERE (r.status = 'pending' OR r.status = 'running' OR r.status = 'waiting')"
     " AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.run = r.num"
     " AND j.state " IN_JOBS(JOB_OPEN) ") AND NOT (" FIRST_IS_IN_RUN ")"
     " AND NOT EXISTS (SELECT 1 FROM timers t WHERE t.run = r.num AND t.ordinal < 0)"},
    {CHECK_RUNS, CHECK_FULL,
     "a queued run has a job already",
     "SELECT r.tenant, r.num, NULL, NULL FROM runs r WHERE r.status = 'queued'"
     " AND (r.first_queue IS NOT NULL OR EXISTS (SELECT 1 FROM jobs j WHERE j.run = r.num))"},

    /* jobs and the timers that wake them */
    {CHECK_JOBS, CHECK_FULL,
     "a job is of a run that is not there or another tenant's",
     "SELECT j.tenant, r.num, j.run, NULL FROM jobs j LEFT JOIN runs r ON r.num = j.run"
     " WHERE j.step >= 0 AND (r.num IS NULL OR r.tenant <> j.tenant)"},
    {CHECK_JOBS, CHECK_FULL,
     "a call is of an entity that is not there or another tenant's",
     "SELECT j.tenant, e.num, j.run, NULL FROM jobs j LEFT JOIN entities e ON e.num = j.run"
     " LEFT JOIN entity_sweeps s ON s.entity = j.run AND s.deleted = 1"
     " WHERE j.step < 0 AND s.entity IS NULL AND (e.num IS NULL OR e.tenant <> j.tenant)"},
    {CHECK_JOBS, CHECK_FULL,
     "the state of a job does not exist",
     "SELECT j.tenant, j.run, j.ordinal, NULL FROM jobs j WHERE NOT j.state " IN_JOBS(JOB_ANY)},
    {CHECK_JOBS, CHECK_FULL,
     "a job is open although its run is not active",
     "SELECT j.tenant, j.run, j.ordinal, NULL FROM jobs j JOIN runs r ON r.num = j.run"
     " WHERE j.state " IN_JOBS(JOB_OPEN) " AND NOT " RUN_IS_ACTIVE
     " UNION ALL SELECT r.tenant, r.num, 1, NULL FROM runs r"
     " WHERE NOT " RUN_IS_ACTIVE " AND " FIRST_IS_IN_RUN},
    {CHECK_JOBS, CHECK_FULL,
     "a running job lacks its worker, its time or its lease",
     "SELECT j.tenant, j.run, j.ordinal, NULL FROM jobs j WHERE j.state = 'running'"
     " AND (j.worker IS NULL OR j.due_at IS NULL OR j.lease_epoch < 1)"},
    {CHECK_JOBS, CHECK_FULL,
     "a job is over and does not say when, or says so too early",
     "SELECT j.tenant, j.run, j.ordinal, NULL FROM jobs j"
     " WHERE (j.state " IN_JOBS(JOB_OVER) ") <> (j.finished_at IS NOT NULL)"},
    {CHECK_JOBS, CHECK_FULL | CHECK_DERIVED,
     "a job that waits for a time has no timer",
     "SELECT j.tenant, j.run, j.ordinal, NULL FROM jobs j LEFT JOIN timers t"
     " ON t.due_at = j.due_at AND t.run = j.run AND t.ordinal = j.ordinal"
     " AND t.generation = j.lease_epoch"
     " WHERE " JOB_MAY_WAIT " AND j.due_at IS NOT NULL AND t.run IS NULL"
     " AND j.run NOT IN " OWNERS_AHEAD
     " UNION ALL SELECT r.tenant, r.num, 1, NULL FROM runs r WHERE r.first_due IS NOT NULL"
     " AND NOT EXISTS (SELECT 1 FROM timers t WHERE " IS_FIRST_TIMER ") AND " FIRST_IS_IN_RUN
     " AND r.num NOT IN " OWNERS_AHEAD},
    {CHECK_JOBS, CHECK_FULL | CHECK_DERIVED,
     "a run that is to start later has no timer",
     "SELECT r.tenant, r.num, NULL, NULL FROM runs r WHERE " RUN_IS_DELAYED
     " AND NOT EXISTS (SELECT 1 FROM timers t WHERE t.run = r.num AND t.ordinal = 0)"},
    {CHECK_JOBS, CHECK_FULL | CHECK_DERIVED,
     "a timer is of no job that waits for it",
     "SELECT j.tenant, j.run, t.due_at, NULL FROM timers t LEFT JOIN jobs j"
     " ON j.run = t.run AND j.ordinal = t.ordinal"
     " WHERE t.ordinal > 0 AND (j.run IS NULL OR NOT " JOB_HAS_CHILD
     " AND (NOT " JOB_MAY_WAIT
     " OR j.due_at IS NULL OR j.due_at <> t.due_at OR j.lease_epoch <> t.generation))"
     " AND NOT EXISTS (SELECT 1 FROM runs r WHERE " IS_FIRST_TIMER " AND " FIRST_IS_IN_RUN ")"},

    {CHECK_JOBS, CHECK_FULL | CHECK_DERIVED,
     "the first job of a run is not in its queue",
     "SELECT r.tenant, r.num, NULL, NULL FROM runs r WHERE r.first_queue <> '' AND " FIRST_IS_IN_RUN
     " AND NOT EXISTS (SELECT 1 FROM first_jobs f WHERE " IS_IN_QUEUE ")"},
    {CHECK_JOBS, CHECK_FULL | CHECK_DERIVED,
     "a queue has the first job of a run that does not wait in it",
     "SELECT f.tenant, f.run, f.run, NULL FROM first_jobs f WHERE NOT EXISTS"
     " (SELECT 1 FROM runs r WHERE " IS_IN_QUEUE " AND " FIRST_IS_IN_RUN ")"},

    /* durable functions: what is done of a job, and what it waits for */
    {CHECK_JOBS, CHECK_FULL,
     "a checkpoint is of no job of a run",
     "SELECT j.tenant, j.run, c.run, NULL FROM checkpoints c"
     " LEFT JOIN jobs j ON j.run = c.run AND j.ordinal = c.ordinal"
     " WHERE j.run IS NULL OR j.step < 0"},
    {CHECK_JOBS, CHECK_FULL,
     "a checkpoint has not just one of output and error",
     "SELECT NULL, c.run, c.ordinal, NULL FROM checkpoints c"
     " WHERE (c.output IS NULL) = (c.error IS NULL)"},
    {CHECK_JOBS, CHECK_FULL,
     "the numbers of a job's checkpoints have gaps",
     "SELECT NULL, run, max(seq), count(*) FROM checkpoints GROUP BY run, ordinal"
     " HAVING min(seq) <> 1 OR max(seq) <> count(*)"},
    {CHECK_JOBS, CHECK_FULL,
     "a suspended job does not say what it waits for, or that has come",
     "SELECT j.tenant, j.run, j.ordinal, NULL FROM jobs j"
     " LEFT JOIN suspensions s ON s.run = j.run AND s.ordinal = j.ordinal"
     " WHERE j.state = 'suspended' AND (s.run IS NULL OR s.resumed_by IS NOT NULL"
     " OR s.lease <> j.lease_epoch OR COALESCE(s.until, -1) <> COALESCE(j.due_at, -1)"
     " OR (s.until IS NULL AND s.signal IS NULL AND s.question IS NULL))"},
    {CHECK_JOBS, CHECK_FULL,
     "a suspended job waits for a signal that is there",
     "SELECT j.tenant, j.run, j.ordinal, min(g.seq) FROM jobs j"
     " JOIN suspensions s ON s.run = j.run AND s.ordinal = j.ordinal"
     " JOIN run_signals g ON g.run = j.run AND g.name = s.signal"
     " WHERE j.state = 'suspended' AND g.taken_by IS NULL GROUP BY j.tenant, j.run, j.ordinal"},
    {CHECK_JOBS, CHECK_FULL,
     "a suspended job waits for a decision that nobody is asked for",
     "SELECT j.tenant, j.run, j.ordinal, s.question FROM jobs j"
     " JOIN suspensions s ON s.run = j.run AND s.ordinal = j.ordinal"
     " LEFT JOIN approvals a ON a.run = j.run AND a.ordinal = s.question"
     " WHERE j.state = 'suspended' AND s.question IS NOT NULL"
     " AND (a.status IS NULL OR a.status <> 'pending' OR COALESCE(a.asker, 0) <> j.ordinal)"},
    {CHECK_JOBS, CHECK_FULL,
     "a question is open although the job that asked it does not wait for it",
     "SELECT a.tenant, a.run, a.ordinal, a.asker FROM approvals a"
     " LEFT JOIN suspensions s ON s.run = a.run AND s.ordinal = a.asker"
     " LEFT JOIN jobs j ON j.run = a.run AND j.ordinal = a.asker"
     " WHERE a.status = 'pending' AND a.asker IS NOT NULL"
     " AND (j.state IS NULL OR j.state <> 'suspended' OR COALESCE(s.question, 0) <> a.ordinal)"},

    /* approvals: who is asked, and that it is decided once */
    {CHECK_APPROVALS, CHECK_FULL,
     "the status of an approval does not exist",
     "SELECT a.tenant, a.run, a.ordinal, NULL FROM approvals a"
     " WHERE NOT a.status " IN_APPROVALS(APPROVAL_ANY)},
    {CHECK_APPROVALS, CHECK_FULL,
     "an approval is decided and does not say by whom and when, or says so too early",
     "SELECT a.tenant, a.run, a.ordinal, NULL FROM approvals a"
     " WHERE (a.status " IN_APPROVALS(APPROVAL_DECIDED) ") <> (a.decided_at IS NOT NULL)"
     " OR (a.decided_at IS NULL) <> (a.decided_by IS NULL)"},
    {CHECK_APPROVALS, CHECK_FULL,
     "an approval is of no job, or of another tenant's",
     "SELECT a.tenant, a.run, a.ordinal, NULL FROM approvals a"
     " LEFT JOIN jobs j ON j.run = a.run AND j.ordinal = a.ordinal"
     " WHERE j.run IS NULL OR j.tenant <> a.tenant"},
    {CHECK_APPROVALS, CHECK_FULL,
     "an approval is pending although its job does not wait for it",
     "SELECT a.tenant, a.run, a.ordinal, NULL FROM approvals a"
     " JOIN jobs j ON j.run = a.run AND j.ordinal = a.ordinal"
     " WHERE a.status = 'pending' AND j.state <> 'approval'"},
    {CHECK_APPROVALS, CHECK_FULL,
     "a job waits for an approval that is not pending",
     "SELECT j.tenant, j.run, j.ordinal, NULL FROM jobs j"
     " LEFT JOIN approvals a ON a.run = j.run AND a.ordinal = j.ordinal"
     " WHERE j.state = 'approval' AND (a.status IS NULL OR a.status <> 'pending')"},
    {CHECK_APPROVALS, CHECK_FULL,
     "an approval counts other votes than there are",
     "WITH counted AS (SELECT run, ordinal, count(*) AS n FROM approval_votes GROUP BY run, ordinal)"
     " SELECT a.tenant, a.run, a.votes, COALESCE(c.n, 0) FROM approvals a"
     " LEFT JOIN counted c ON c.run = a.run AND c.ordinal = a.ordinal"
     " WHERE a.votes <> COALESCE(c.n, 0)"},
    {CHECK_APPROVALS, CHECK_FULL,
     "an approval's decisions and its decision events differ in number",
     "WITH told AS (SELECT run, count(*) AS n FROM events WHERE type = 'approval.decided'"
     " GROUP BY run), made AS (SELECT run, count(*) AS n FROM approvals"
     " WHERE decided_at IS NOT NULL GROUP BY run),"
     " known AS (SELECT run FROM told UNION SELECT run FROM made)"
     " SELECT NULL, k.run, COALESCE(t.n, 0), COALESCE(m.n, 0) FROM known k"
     " LEFT JOIN told t ON t.run = k.run LEFT JOIN made m ON m.run = k.run"
     " WHERE COALESCE(t.n, 0) <> COALESCE(m.n, 0)"},
    {CHECK_APPROVALS, CHECK_FULL,
     "a job was approved more than once",
     "SELECT NULL, run, count(*), 1 FROM events WHERE type = 'job.approved'"
     " GROUP BY run, data HAVING count(*) > 1"},

    /* webhooks, and what is sent to them */
    {CHECK_WEBHOOKS, CHECK_FULL,
     "a delivery is of no webhook, or of another tenant's",
     "SELECT d.tenant, NULL, d.webhook, NULL FROM deliveries d"
     " LEFT JOIN webhooks w ON w.num = d.webhook"
     " WHERE w.num IS NULL OR w.tenant <> d.tenant"},
    {CHECK_WEBHOOKS, CHECK_FULL,
     "the state of a delivery does not exist",
     "SELECT d.tenant, NULL, d.num, NULL FROM deliveries d"
     " WHERE NOT d.state IN ('pending', 'sending', 'delivered', 'failed')"},
    {CHECK_WEBHOOKS, CHECK_FULL,
     "a delivery is over and does not say when, or is to be sent all the same",
     "SELECT d.tenant, NULL, d.num, NULL FROM deliveries d"
     " WHERE (d.state IN ('delivered', 'failed')) <> (d.finished_at IS NOT NULL)"
     " OR (d.finished_at IS NULL) <> (d.next_at IS NOT NULL)"},
    {CHECK_WEBHOOKS, CHECK_FULL,
     "there are webhooks, but their position in the feed is lost",
     "SELECT NULL, NULL, count(*), NULL FROM webhooks WHERE deleted_at IS NULL"
     " AND NOT EXISTS (SELECT 1 FROM feed_marks WHERE name = 'webhooks') HAVING count(*) > 0"},

    /* indexes that are filled later, up to their marks. What is wrong in the index of runs is looked
     * for where it has more or fewer than there should be, since to look for it is dear. */
    {CHECK_INDEXES, CHECK_FULL | CHECK_DERIVED,
     "an index has lost the mark of how far it reaches",
     "SELECT NULL, NULL, (SELECT count(*) FROM indexed), 4 WHERE (SELECT count(*) FROM indexed"
     " WHERE name = 'runs' OR name = 'idempotency' OR name = 'run_keys') <> 3"},
    {CHECK_INDEXES, CHECK_FULL | CHECK_DERIVED,
     "a block of the index of runs cannot be read",
     "SELECT tenant, NULL, num, NULL FROM run_blocks WHERE trim(runs, '0123456789,') <> ''"
     " OR runs NOT LIKE ',%_,' OR runs LIKE '%,,%'"},
    {CHECK_INDEXES, CHECK_FULL | CHECK_DERIVED,
     "the index of runs lacks a run",
     "SELECT r.tenant, r.num, NULL, NULL FROM runs r WHERE r.num <= " RUNS_THROUGH
     " AND CASE WHEN (SELECT count(*) " INDEXED_RUNS ") <> " RUNS_TO_INDEX
     " THEN r.num NOT IN (SELECT x.num " INDEXED_RUNS ") ELSE 1 = 0 END"},
    {CHECK_INDEXES, CHECK_FULL | CHECK_DERIVED,
     "the index of runs has a run twice",
     "SELECT min(x.tenant), x.num, count(*), 1 " INDEXED_RUNS
     " AND (SELECT count(*) FROM runs_index) <> " RUNS_TO_INDEX
     " GROUP BY x.num HAVING count(*) > 1"},
    {CHECK_INDEXES, CHECK_FULL | CHECK_DERIVED,
     "the index of runs has an entry of no run, or behind its mark",
     "SELECT x.tenant, r.num, x.num, NULL FROM runs_index x"
     " LEFT JOIN runs r ON r.num = x.num AND r.tenant = x.tenant"
     " WHERE (SELECT count(*) FROM runs_index) <> " RUNS_TO_INDEX
     " AND (r.num IS NULL OR x.num > " RUNS_THROUGH ")"},
    {CHECK_JOBS, CHECK_FULL | CHECK_DERIVED,
     "timers are marked as folded past the end of the feed",
     "SELECT NULL, NULL, through, NULL FROM indexed WHERE name = 'timers' AND through > " FEED_END},
    {CHECK_INDEXES, CHECK_FULL | CHECK_DERIVED,
     "the index of active runs lacks a run",
     "SELECT r.tenant, r.num, NULL, NULL FROM runs r"
     " LEFT JOIN holding h ON h.tenant = r.tenant AND h.run = r.num"
     " WHERE r.num <= " RUNS_THROUGH " AND " RUN_HOLDS_SLOT " AND h.run IS NULL"},
    {CHECK_INDEXES, CHECK_FULL | CHECK_DERIVED,
     "the index of active runs has an entry of a run that is not active, or behind its mark",
     "SELECT h.tenant, r.num, h.run, NULL FROM holding h"
     " LEFT JOIN runs r ON r.num = h.run AND r.tenant = h.tenant"
     " WHERE r.num IS NULL OR NOT " RUN_HOLDS_SLOT " OR h.run > " RUNS_THROUGH},
};
/* clang-format on */

const size_t INVARIANT_COUNT = ARRAY_LEN(INVARIANTS);

/* --- looking --- */

enum err finding_show(struct db *db, struct finding f, int64_t tenant, int64_t run,
                      finding_each *each, void *ctx)
{
    static const char SQL_TENANT[] = "SELECT id FROM tenants WHERE num = $1";
    struct arena arena; /* the names are those of one */
    struct owner owner = {0};
    bool found = false;
    arena_init(&arena, 4 * KIB);
    enum err e = owners_find(db, run, &arena, &found, &owner);
    if (e == ERR_DAMAGED) { /* a finding all the same */
        found = false;
        e = ERR_OK;
    }
    f.has_run = found && !owner.is_entity;
    f.has_entity = found && owner.is_entity;
    f.run_id = owner.id;
    f.entity_type = owner.type;
    f.entity_id = owner.name;
    if (e == ERR_OK) {
        struct db_rows *rows = DB_QUERY(db, SQL_TENANT, DB_I(tenant));
        f.tenant = db_next(rows) ? db_str(rows, 0) : STR_NONE;
        each(ctx, &f);
        e = db_rows_end(rows);
    }
    arena_release(&arena);
    return e;
}

/* A row that should not be there. */
struct offence {
    struct finding finding;
    int64_t tenant;
    int64_t run;
};

static struct offence read_offence(struct db_rows *row, const struct invariant *inv)
{
    return (struct offence){
        .finding = {.what = inv->broken,
                    .derived = (inv->flags & CHECK_DERIVED) != 0,
                    .has_kept = !db_is_null(row, 2),
                    .kept = db_int(row, 2),
                    .has_counted = !db_is_null(row, 3),
                    .counted = db_int(row, 3)},
        .tenant = db_int_or(row, 0, 0),
        .run = db_int_or(row, 1, 0),
    };
}

static enum err look(struct db *db, const struct invariant *inv, finding_each *each, void *ctx,
                     struct check_result *result)
{
    struct offence shown[FINDINGS_SHOWN_MAX];
    struct db_rows *rows = db_query_values(db, inv->sql, NULL, 0);
    int64_t count = 0;
    for (; db_next(rows); count++) {
        if (count < FINDINGS_SHOWN_MAX)
            shown[count] = read_offence(rows, inv);
    }
    enum err e = db_rows_end(rows);
    for (int64_t i = 0; each != NULL && i < MIN(count, FINDINGS_SHOWN_MAX) && e == ERR_OK; i++)
        e = finding_show(db, shown[i].finding, shown[i].tenant, shown[i].run, each, ctx);
    result->found += count;
    if ((inv->flags & CHECK_DERIVED) != 0)
        result->derived += count;
    return e;
}

enum err check_area(struct db *db, enum check_area area, unsigned depth, finding_each *each,
                    void *ctx, struct check_result *result)
{
    assert(depth == CHECK_FULL || depth == CHECK_QUICK);
    const struct invariant *table = INVARIANTS;
    size_t count = INVARIANT_COUNT;
    if (area == CHECK_ENTITIES) {
        table = ENTITY_INVARIANTS;
        count = ENTITY_INVARIANT_COUNT;
    } else if (area == CHECK_OBJECTS) {
        table = OBJECT_INVARIANTS;
        count = OBJECT_INVARIANT_COUNT;
    }
    enum err e = ERR_OK;
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        if (table[i].area == area && (table[i].flags & depth) != 0)
            e = look(db, &table[i], each, ctx, result);
    }
    return e;
}

enum err check_extent(struct db *db, enum check_area area, int64_t *ret)
{
    static const char SQL_INDEXES[] = "SELECT (SELECT count(*) FROM runs_index)"
                                      " + (SELECT count(*) FROM holding)"
                                      " + (SELECT COALESCE(sum(entries), 0) FROM key_segments"
                                      " WHERE state = 'live')";
    static const char SQL_WEBHOOKS[] = "SELECT (SELECT count(*) FROM webhooks)"
                                       " + (SELECT count(*) FROM deliveries)";
    static const char SQL_OBJECTS[] = "SELECT (SELECT count(*) FROM runs)"
                                      " + (SELECT count(*) FROM jobs)"
                                      " + (SELECT count(*) FROM key_records)"
                                      " + (SELECT count(*) FROM entities)"
                                      " + (SELECT count(*) FROM timeline)";
    static const char *const SQL[] = {
        [CHECK_SLOTS] = "SELECT (SELECT count(*) FROM tenants) + (SELECT count(*) FROM scopes)",
        [CHECK_QUEUE] = "SELECT count(*) FROM queue",
        [CHECK_RUNS] = "SELECT count(*) FROM runs",
        [CHECK_JOBS] = "SELECT count(*) FROM job_rows",
        [CHECK_APPROVALS] = "SELECT count(*) FROM approvals",
        [CHECK_ENTITIES] = "SELECT count(*) FROM entities",
        [CHECK_WEBHOOKS] = SQL_WEBHOOKS,
        [CHECK_INDEXES] = SQL_INDEXES,
        [CHECK_OBJECTS] = SQL_OBJECTS,
    };
    static_assert(ARRAY_LEN(SQL) == CHECK_AREA_COUNT, "one question per area");
    struct db_rows *rows = db_query_values(db, SQL[area], NULL, 0);
    *ret = db_next(rows) ? db_int(rows, 0) : 0;
    return db_rows_end(rows);
}
