/* What must hold between the rows of entities. */
#include "store/doctor/check.h"

#include "store/doctor/derived.h"

/* A table is read by its columns. */
/* clang-format off */
const struct invariant ENTITY_INVARIANTS[] = {
    {CHECK_ENTITIES, CHECK_FULL,
     "a run and an entity have the same number",
     "SELECT e.tenant, e.num, NULL, NULL FROM entities e JOIN runs r ON r.num = e.num"},
    {CHECK_ENTITIES, CHECK_FULL,
     "the tenant of an entity, its type, or its version of the type, is not there",
     "SELECT e.tenant, e.num, e.type_version, NULL FROM entities e"
     " LEFT JOIN tenants t ON t.num = e.tenant"
     " LEFT JOIN entity_types y ON y.num = e.type AND y.tenant = e.tenant"
     " LEFT JOIN entity_type_versions v ON v.type = e.type AND v.version = e.type_version"
     " WHERE t.num IS NULL OR y.num IS NULL OR v.version IS NULL"},
    {CHECK_ENTITIES, CHECK_FULL,
     "the latest version of a type is not there",
     "SELECT y.tenant, NULL, y.latest_version, NULL FROM entity_types y"
     " LEFT JOIN entity_type_versions v ON v.type = y.num AND v.version = y.latest_version"
     " WHERE v.version IS NULL"},
    {CHECK_ENTITIES, CHECK_FULL,
     "rows are of an entity that is neither there nor being removed",
     "WITH named AS (SELECT entity FROM inbox UNION SELECT entity FROM entity_updates"
     " UNION SELECT entity FROM entity_timers UNION SELECT entity FROM entity_starts"
     " UNION SELECT entity FROM entity_states UNION SELECT entity FROM entity_generations)"
     " SELECT NULL, NULL, n.entity, NULL FROM named n LEFT JOIN entities e ON e.num = n.entity"
     " LEFT JOIN entity_sweeps s ON s.entity = n.entity AND s.deleted = 1"
     " WHERE e.num IS NULL AND s.entity IS NULL"},
    {CHECK_ENTITIES, CHECK_FULL,
     "an entity was deleted, and is there; or it does not say who it was",
     "SELECT s.tenant, s.entity, NULL, NULL FROM entity_sweeps s"
     " LEFT JOIN entities e ON e.num = s.entity LEFT JOIN tenants t ON t.num = s.tenant"
     " LEFT JOIN entity_types y ON y.num = s.type AND y.tenant = s.tenant"
     " WHERE s.deleted = 1 AND (e.num IS NOT NULL OR t.num IS NULL OR y.num IS NULL"
     " OR s.id IS NULL OR s.name IS NULL OR s.deleted_at IS NULL)"},

    /* signals */
    {CHECK_ENTITIES, CHECK_FULL,
     "the inbox of an entity does not hold just the signals that wait",
     "WITH held AS (SELECT entity, count(*) AS n, min(seq) AS lowest, max(seq) AS highest"
     " FROM inbox GROUP BY entity)"
     " SELECT e.tenant, e.num, e.last_seq - e.consumed_seq, COALESCE(h.n, 0)"
     " FROM entities e LEFT JOIN held h ON h.entity = e.num"
     " WHERE COALESCE(h.n, 0) <> e.last_seq - e.consumed_seq"
     " OR h.lowest <> e.consumed_seq + 1 OR h.highest <> e.last_seq"},
    {CHECK_ENTITIES, CHECK_FULL,
     "an update waits that is not in the inbox",
     "SELECT e.tenant, e.num, u.seq, NULL FROM entity_updates u JOIN entities e ON e.num = u.entity"
     " LEFT JOIN inbox i ON i.entity = u.entity AND i.seq = u.seq"
     " WHERE u.decided_at IS NULL AND i.seq IS NULL"},

    /* calls */
    {CHECK_ENTITIES, CHECK_FULL,
     "an entity does not name the one call that is open, or is a dead letter",
     "WITH under_way AS (SELECT run, count(*) AS n, min(ordinal) AS ordinal FROM jobs"
     " WHERE step = -1 AND finished_at IS NULL GROUP BY run)"
     " SELECT e.tenant, e.num, e.open_job, u.ordinal FROM entities e"
     " LEFT JOIN under_way u ON u.run = e.num"
     " LEFT JOIN jobs j ON j.run = e.num AND j.ordinal = e.open_job AND j.step = -1"
     " WHERE u.n > 1 OR (u.n IS NOT NULL AND (e.open_job IS NULL OR e.open_job <> u.ordinal))"
     " OR (u.n IS NULL AND e.open_job IS NOT NULL AND j.dead_at IS NULL)"},
    {CHECK_ENTITIES, CHECK_FULL,
     "a call was given signals that were applied before, or never came",
     "SELECT e.tenant, e.num, e.given_seq, e.consumed_seq FROM entities e"
     " WHERE e.given_seq < e.consumed_seq OR e.given_seq > e.last_seq"
     " OR (e.given_seq IS NOT NULL AND e.open_job IS NULL)"},

    /* timers */
    {CHECK_ENTITIES, CHECK_FULL,
     "an entity does not name the time of its next timer",
     "WITH due AS (SELECT entity, min(due_at) AS at FROM entity_timers WHERE given = 0"
     " GROUP BY entity)"
     " SELECT e.tenant, e.num, e.timer_at, d.at FROM entities e LEFT JOIN due d ON d.entity = e.num"
     " WHERE COALESCE(e.timer_at, -1) <> COALESCE(d.at, -1)"},
    {CHECK_ENTITIES, CHECK_FULL | CHECK_DERIVED,
     "an entity that no call is under way for has a timer that is not armed",
     "WITH armed AS (SELECT run FROM timers WHERE ordinal = " ENTITY_TIMER ")"
     " SELECT e.tenant, e.num, e.timer_at, NULL FROM entities e LEFT JOIN armed a ON a.run = e.num"
     " WHERE " ENTITY_IS_ARMED " AND a.run IS NULL"},
    {CHECK_ENTITIES, CHECK_FULL | CHECK_DERIVED,
     "a timer is armed for an entity that does not wait for it",
     "SELECT e.tenant, e.num, t.due_at, e.timer_at FROM timers t LEFT JOIN entities e ON e.num = t.run"
     " WHERE t.ordinal = " ENTITY_TIMER
     " AND (e.num IS NULL OR NOT " ENTITY_IS_ARMED " OR e.timer_at > t.due_at)"},
    {CHECK_ENTITIES, CHECK_FULL | CHECK_DERIVED,
     "runs are to be started for an entity, and no timer says when",
     "WITH armed AS (SELECT run FROM timers WHERE ordinal = " ENTITY_START_TIMER "),"
     " wanted AS (SELECT entity, count(*) AS n FROM entity_starts GROUP BY entity)"
     " SELECT e.tenant, e.num, w.n, NULL FROM wanted w JOIN entities e ON e.num = w.entity"
     " LEFT JOIN armed a ON a.run = w.entity WHERE a.run IS NULL"},

    /* history */
    {CHECK_ENTITIES, CHECK_FULL,
     "the record of an entity's generation is not there, or says otherwise where it began",
     "SELECT e.tenant, e.num, e.rolled_event + 1, g.first_event FROM entities e"
     " LEFT JOIN entity_generations g ON g.entity = e.num AND g.generation = e.generation"
     " WHERE g.entity IS NULL OR g.first_event <> e.rolled_event + 1"},
    {CHECK_ENTITIES, CHECK_FULL,
     "the generations of an entity have gaps, or go on behind the current one",
     "WITH kept AS (SELECT entity, count(*) AS n, min(generation) AS oldest,"
     " max(generation) AS newest FROM entity_generations GROUP BY entity)"
     " SELECT e.tenant, e.num, k.n, e.generation - k.oldest + 1 FROM entities e"
     " JOIN kept k ON k.entity = e.num WHERE k.n <> k.newest - k.oldest + 1"
     " OR k.newest > e.generation"},
    {CHECK_ENTITIES, CHECK_FULL,
     "the timeline of an entity has gaps, or does not end with its last event",
     "SELECT e.tenant, e.num, e.last_event, max(v.seq) FROM entities e"
     " LEFT JOIN events v ON v.run = e.num GROUP BY e.num"
     " HAVING count(v.seq) = 0 OR max(v.seq) <> e.last_event OR min(v.seq) > e.rolled_event + 1"
     " OR max(v.seq) - min(v.seq) + 1 <> count(v.seq)"},

    /* keys, of runs too; those of a run that is over may be on their way out */
    {CHECK_ENTITIES, CHECK_FULL,
     "a window of known keys does not fit the keys that are kept",
     "WITH kept AS (SELECT owner, count(*) AS n, min(num) AS lowest, max(num) AS highest FROM dedup"
     " GROUP BY owner)"
     " SELECT COALESCE(e.tenant, r.tenant), w.owner, w.last - w.forgotten + 1, COALESCE(k.n, 0)"
     " FROM dedup_windows w LEFT JOIN entities e ON e.num = w.owner"
     " LEFT JOIN runs r ON r.num = w.owner LEFT JOIN kept k ON k.owner = w.owner"
     " WHERE (e.num IS NOT NULL OR (r.num IS NOT NULL AND r.finished_at IS NULL))"
     " AND (w.forgotten < 1 OR w.forgotten > w.emptied OR w.emptied > w.first"
     " OR w.first > w.last + 1 OR COALESCE(k.n, 0) <> w.last - w.forgotten + 1"
     " OR k.lowest <> w.forgotten OR k.highest <> w.last)"},
    {CHECK_ENTITIES, CHECK_FULL,
     "keys are kept without a window, or of nobody",
     "WITH named AS (SELECT owner FROM dedup UNION SELECT owner FROM dedup_windows)"
     " SELECT COALESCE(e.tenant, r.tenant), COALESCE(e.num, r.num), n.owner, NULL FROM named n"
     " LEFT JOIN dedup_windows w ON w.owner = n.owner LEFT JOIN entities e ON e.num = n.owner"
     " LEFT JOIN runs r ON r.num = n.owner"
     " LEFT JOIN entity_sweeps s ON s.entity = n.owner AND s.deleted = 1"
     " WHERE s.entity IS NULL AND (w.owner IS NULL OR (e.num IS NULL AND r.num IS NULL))"},
};
/* clang-format on */

const size_t ENTITY_INVARIANT_COUNT = ARRAY_LEN(ENTITY_INVARIANTS);
