/* What no row may hold, whatever the others say: ids and hashes of another length, words that are
 * in no table, times that no clock shows. A request that meets such a row is refused (store/db.h).
 */
#include "store/doctor/check.h"

#include "base/env.h"
#include "domain/admission/admission.h"
#include "domain/calendar/schedule.h"
#include "domain/role.h"
#include "store/doctor/derived.h"

#define WORD(symbol, name) ", '" name "'"
#define WORD_OF_ROLE(symbol, name, may) ", '" name "'"
#define ID_IS_BAD(id) "length(" id ") <> 16"
#define HASH_IS_BAD(hash) "length(" hash ") <> 32"
#define TIME_IS_BAD(at) at " NOT BETWEEN -62135596800000 AND 253402300799999"
#define COUNT_IS_BAD(n) n " NOT BETWEEN 0 AND 1152921504606846975"
static_assert(DB_COUNT_END == 1152921504606846976, "as in db.h");
/* NOLINTNEXTLINE(misc-redundant-expression): that both are the same is what is asserted */
static_assert(TIME_MS_MIN == -62135596800000 && TIME_MS_MAX == 253402300799999, "as in env.h");

/* A table is read by its columns. */
/* clang-format off */
const struct invariant OBJECT_INVARIANTS[] = {
    {CHECK_OBJECTS, CHECK_FULL, "a tenant's row is damaged",
     "SELECT num, NULL, NULL, NULL FROM tenants WHERE at_limit NOT IN ('-'" AT_LIMITS(WORD) ")"
     " OR weight < 1 OR " COUNT_IS_BAD("active_runs") " OR " COUNT_IS_BAD("queued_runs")
     " OR " COUNT_IS_BAD("max_concurrent_runs") " OR " COUNT_IS_BAD("max_queued_runs")
     " OR " COUNT_IS_BAD("idempotency_retention_ms") " OR " COUNT_IS_BAD("run_retention_ms")
     " OR " TIME_IS_BAD("created_at") " OR " TIME_IS_BAD("updated_at")},
    {CHECK_OBJECTS, CHECK_FULL, "the row of an API key is damaged",
     "SELECT tenant, NULL, NULL, NULL FROM api_keys WHERE " ID_IS_BAD("id") " OR " HASH_IS_BAD("hash")
     " OR role NOT IN ('-'" ROLES(WORD_OF_ROLE) ")"
     " OR " TIME_IS_BAD("created_at") " OR " TIME_IS_BAD("last_used_at") " OR " TIME_IS_BAD("revoked_at")},
    {CHECK_OBJECTS, CHECK_FULL, "the row of a workflow's version is damaged",
     "SELECT tenant, NULL, version, NULL FROM workflow_versions WHERE " HASH_IS_BAD("digest")
     " OR version < 1 OR " TIME_IS_BAD("created_at")},
    {CHECK_OBJECTS, CHECK_FULL, "the record of an idempotency key is damaged",
     "SELECT tenant, NULL, num, NULL FROM key_records WHERE " HASH_IS_BAD("fingerprint")
     " OR length(raw_hash) NOT IN (8, 32) OR " ID_IS_BAD("run_id") " OR status NOT BETWEEN 200 AND 299"
     " OR " TIME_IS_BAD("created_at") " OR " TIME_IS_BAD("expires_at")},
    {CHECK_OBJECTS, CHECK_FULL, "a run's row is damaged",
     "SELECT tenant, num, NULL, NULL FROM runs WHERE " ID_IS_BAD("id") " OR " ID_IS_BAD("rerun_of")
     " OR " COUNT_IS_BAD("num") " OR " COUNT_IS_BAD("version") " OR " COUNT_IS_BAD("workflow_version")
     " OR " COUNT_IS_BAD("depth")
     " OR " TIME_IS_BAD("created_at") " OR " TIME_IS_BAD("started_at") " OR " TIME_IS_BAD("finished_at")
     " OR " TIME_IS_BAD("deadline_at") " OR " TIME_IS_BAD("start_at")
     " OR " COUNT_IS_BAD("key_replays") " OR " COUNT_IS_BAD("key_mismatches") " OR " TIME_IS_BAD("key_replayed_at")
     " OR " COUNT_IS_BAD("first_seq") " OR (first_seq IS NULL) <> (first_events IS NULL)"
     " OR (first_events IS NOT NULL AND NOT json_valid(first_events))"
     " OR (key IS NOT NULL AND (born IS NULL OR key_hashes IS NULL OR length(key_hashes) <> 40))"},
    {CHECK_OBJECTS, CHECK_FULL, "a job's row is damaged",
     "SELECT tenant, run, ordinal, NULL FROM jobs WHERE " ID_IS_BAD("id") " OR " ID_IS_BAD("child")
     " OR step < -1 OR step >= 500 OR " COUNT_IS_BAD("ordinal") " OR " COUNT_IS_BAD("attempt")
     " OR " COUNT_IS_BAD("lease_epoch") " OR " COUNT_IS_BAD("stale_epoch") " OR " COUNT_IS_BAD("item")
     " OR " COUNT_IS_BAD("lease_ms")
     " OR " TIME_IS_BAD("created_at") " OR " TIME_IS_BAD("started_at") " OR " TIME_IS_BAD("finished_at")
     " OR " TIME_IS_BAD("due_at") " OR " TIME_IS_BAD("dead_at")},
    {CHECK_OBJECTS, CHECK_FULL, "an approval's row is damaged",
     "SELECT tenant, run, ordinal, NULL FROM approvals WHERE " COUNT_IS_BAD("votes")
     " OR " COUNT_IS_BAD("reminded") " OR " COUNT_IS_BAD("replays") " OR " COUNT_IS_BAD("conflicts")
     " OR " TIME_IS_BAD("requested_at") " OR " TIME_IS_BAD("expires_at") " OR " TIME_IS_BAD("escalated_at")
     " OR " TIME_IS_BAD("decided_at")},
    {CHECK_OBJECTS, CHECK_FULL, "a schedule's row is damaged",
     "SELECT tenant, NULL, NULL, NULL FROM schedules WHERE " ID_IS_BAD("last_run") " OR catch_up_ms < 0"
     " OR overlap NOT IN ('-'" OVERLAPS(WORD) ")"
     " OR next_at > check_at OR (next_at IS NULL AND check_at IS NOT NULL)"
     " OR " TIME_IS_BAD("created_at") " OR " TIME_IS_BAD("updated_at") " OR " TIME_IS_BAD("next_at")
     " OR " TIME_IS_BAD("last_at")},
    {CHECK_OBJECTS, CHECK_FULL, "a webhook's row is damaged",
     "SELECT tenant, NULL, num, NULL FROM webhooks WHERE " ID_IS_BAD("id") " OR " HASH_IS_BAD("secret")
     " OR " HASH_IS_BAD("old_secret") " OR " TIME_IS_BAD("created_at") " OR " TIME_IS_BAD("updated_at")
     " OR " TIME_IS_BAD("disabled_at") " OR " TIME_IS_BAD("failing_since")},
    {CHECK_OBJECTS, CHECK_FULL, "a delivery's row is damaged",
     "SELECT tenant, run, num, NULL FROM deliveries WHERE " ID_IS_BAD("id")
     " OR attempts < schedule_from OR " COUNT_IS_BAD("schedule_from") " OR " COUNT_IS_BAD("attempts")
     " OR " COUNT_IS_BAD("num")
     " OR " TIME_IS_BAD("created_at") " OR " TIME_IS_BAD("finished_at") " OR " TIME_IS_BAD("next_at")},
    {CHECK_OBJECTS, CHECK_FULL, "an entity's row is damaged",
     "SELECT tenant, num, NULL, NULL FROM entities WHERE " ID_IS_BAD("id")
     " OR " COUNT_IS_BAD("num") " OR " COUNT_IS_BAD("last_seq") " OR " COUNT_IS_BAD("last_event")
     " OR " COUNT_IS_BAD("calls")
     " OR consumed_seq < 0 OR rolled_event < 0"
     " OR " TIME_IS_BAD("created_at") " OR " TIME_IS_BAD("active_at") " OR " TIME_IS_BAD("finished_at")
     " OR " TIME_IS_BAD("timer_at")},
    {CHECK_OBJECTS, CHECK_FULL, "a version of a type of entities is damaged",
     "SELECT t.tenant, NULL, v.version, NULL FROM entity_type_versions v JOIN entity_types t ON t.num = v.type"
     " WHERE v.dedup_window_ms < 1 OR v.dedup_max_keys < 1 OR v.rollover_events < 1 OR v.max_batch < 1"
     " OR " COUNT_IS_BAD("v.max_inbox") " OR " COUNT_IS_BAD("v.max_attempts") " OR " COUNT_IS_BAD("v.backoff_ms")
     " OR " COUNT_IS_BAD("v.max_backoff_ms") " OR " COUNT_IS_BAD("v.dedup_window_ms") " OR " COUNT_IS_BAD("v.dedup_max_keys")
     " OR " TIME_IS_BAD("v.created_at") " OR " TIME_IS_BAD("v.updated_at")},
    {CHECK_OBJECTS, CHECK_FULL, "a type of entities is damaged",
     "SELECT tenant, NULL, num, NULL FROM entity_types WHERE " TIME_IS_BAD("created_at") " OR " TIME_IS_BAD("updated_at")},
    {CHECK_OBJECTS, CHECK_FULL, "a generation of an entity is damaged",
     "SELECT NULL, entity, generation, NULL FROM entity_generations WHERE " TIME_IS_BAD("at")},
    {CHECK_OBJECTS, CHECK_FULL, "an update of an entity is damaged",
     "SELECT NULL, entity, seq, NULL FROM entity_updates WHERE " TIME_IS_BAD("at") " OR " TIME_IS_BAD("decided_at")},
    {CHECK_OBJECTS, CHECK_FULL, "a timer of an entity is damaged",
     "SELECT NULL, entity, NULL, NULL FROM entity_timers WHERE " TIME_IS_BAD("due_at")},
    {CHECK_OBJECTS, CHECK_FULL, "a key of a signal is damaged",
     "SELECT NULL, owner, num, NULL FROM dedup WHERE " TIME_IS_BAD("at") " OR " COUNT_IS_BAD("seq")},
    {CHECK_OBJECTS, CHECK_FULL, "an event's row is damaged",
     "SELECT NULL, run, seq, NULL FROM timeline WHERE seq < 1 OR " TIME_IS_BAD("at")
     " OR (type = '' AND (data IS NULL OR NOT json_valid(data)))"},
    {CHECK_OBJECTS, CHECK_FULL, "a pack of the feed is damaged",
     "SELECT tenant, NULL, num, NULL FROM feed_packs WHERE " LISTS_ARE_DAMAGED("earlier")
     " UNION ALL SELECT NULL, NULL, pack, NULL FROM feed WHERE tenant IS NULL OR run IS NULL"
     " OR first_seq IS NULL OR last_seq IS NULL OR " COUNT_IS_BAD("tenant") " OR " COUNT_IS_BAD("run")
     " OR " COUNT_IS_BAD("first_seq") " OR " COUNT_IS_BAD("last_seq") " OR last_seq < first_seq - 1"},
};
/* clang-format on */

const size_t OBJECT_INVARIANT_COUNT = ARRAY_LEN(OBJECT_INVARIANTS);
