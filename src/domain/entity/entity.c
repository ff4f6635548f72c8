/* What the entities of a type are held to: reading, showing, and how their calls are retried. */
#include "domain/entity/entity.h"

#include "base/limits.h"

enum {
    DEDUP_WINDOW_S_MAX = 365 * 86400, /* a year: longer is a matter for the state itself */
    DEDUP_KEYS_MAX = 1000 * 1000,     /* of one entity: about 150 MiB of rows */
    ROLLOVER_EVENTS_MIN = 2, /* the roll-over adds an event, which must not make the next one due */
    ROLLOVER_EVENTS_MAX = 1000 * 1000,
    KEEP_GENERATIONS_MAX = 1000 * 1000,
    INBOX_MAX = 10 * 1000 * 1000,
    BATCH_MAX = 1000,                       /* signals that are read and removed in one go */
    CALL_ATTEMPTS_MAX = 1000,               /* as those of steps */
    CALL_BACKOFF_MS_MAX = 24 * 3600 * 1000, /* by then a person should have looked */
};

struct entity_rules entity_rules_default(void)
{
    return (struct entity_rules){
        .dedup_window_ms = INT64_C(259200) * 1000,
        .dedup_max_keys = 10000,
        .rollover_events = 200,
        .keep_generations = 10,
        .max_inbox = 100000,
        .max_batch = 100,
        .max_attempts = 0,
        .backoff_ms = RETRY_BACKOFF_MS_DEFAULT,
        .max_backoff_ms = RETRY_BACKOFF_MS_MAX_DEFAULT,
    };
}

static bool is_control(struct str s, size_t at)
{
    unsigned char c = (unsigned char)s.ptr[at];
    /* U+0080 to U+009F are C2 80 to C2 9F. */
    bool c1 = c == 0xC2 && at + 1 < s.len && (unsigned char)s.ptr[at + 1] < 0xA0;
    return c < 0x20 || c == 0x7F || c1;
}

bool entity_id_ok(struct str id)
{
    if (id.len == 0 || id.len > ENTITY_ID_MAX || !str_is_utf8(id))
        return false;
    for (size_t i = 0; i < id.len; i++) {
        if (is_control(id, i))
            return false;
    }
    return true;
}

/* --- reading --- */

static void read_kept(struct fields *f, int64_t *ret)
{
    const struct json *kept;
    int64_t number;
    fields_any(f, "keep_generations", &kept);
    if (kept == NULL)
        return;
    if (json_is(kept, JSON_KIND_NULL))
        *ret = -1;
    else if (!json_whole_of(kept, &number) || number < 0 || number > KEEP_GENERATIONS_MAX)
        fields_fault(f, "keep_generations",
                     "must be a whole number from 0 to 1000000, or null for all");
    else
        *ret = number;
}

static void read_retry(struct fields *f, struct entity_rules *rules)
{
    const struct json *retry;
    fields_object(f, "retry", &retry);
    if (retry == NULL || f->err != ERR_OK)
        return;
    struct fields g;
    fields_begin(&g, retry, f->problem);
    g.defaults = f->defaults;
    fields_int(&g, "max_attempts", 0, CALL_ATTEMPTS_MAX, &rules->max_attempts);
    fields_int(&g, "backoff_ms", 0, CALL_BACKOFF_MS_MAX, &rules->backoff_ms);
    fields_int(&g, "max_backoff_ms", 0, CALL_BACKOFF_MS_MAX, &rules->max_backoff_ms);
    f->err = fields_end(&g);
}

enum err entity_rules_parse(const struct json *body, size_t *defaults, struct problem *p,
                            struct entity_rules *ret, int64_t *ret_version)
{
    struct entity_rules rules = entity_rules_default();
    int64_t version = -1;
    int64_t window_s = rules.dedup_window_ms / 1000;
    struct fields f;
    fields_begin(&f, body, p);
    f.defaults = defaults;
    fields_name(&f, "queue", NAME_MAX_LEN, &rules.queue);
    fields_require(&f, "queue");
    if (str_starts_with(rules.queue, STR(OWN_QUEUES)))
        fields_fault(&f, "queue",
                     "must not begin with " OWN_QUEUES ": those are pawl's own queues");
    fields_name(&f, "handler", NAME_MAX_LEN, &rules.handler);
    fields_require(&f, "handler");
    fields_int(&f, "version", 1, INT32_MAX, &version);
    fields_int(&f, "dedup_window_s", 1, DEDUP_WINDOW_S_MAX, &window_s);
    fields_int(&f, "dedup_max_keys", 1, DEDUP_KEYS_MAX, &rules.dedup_max_keys);
    fields_int(&f, "rollover_events", ROLLOVER_EVENTS_MIN, ROLLOVER_EVENTS_MAX,
               &rules.rollover_events);
    read_kept(&f, &rules.keep_generations);
    fields_int(&f, "max_inbox", 1, INBOX_MAX, &rules.max_inbox);
    fields_int(&f, "max_batch", 1, BATCH_MAX, &rules.max_batch);
    read_retry(&f, &rules);
    enum err e = fields_end(&f);
    if (e != ERR_OK)
        return e;
    rules.dedup_window_ms = window_s * 1000;
    *ret = rules;
    *ret_version = version;
    return ERR_OK;
}

/* --- showing --- */

void entity_rules_render(struct json_out *o, const struct entity_rules *rules)
{
    json_add_text(o, "queue", rules->queue);
    json_add_text(o, "handler", rules->handler);
    json_add_int(o, "dedup_window_s", rules->dedup_window_ms / 1000);
    json_add_int(o, "dedup_max_keys", rules->dedup_max_keys);
    json_add_int(o, "rollover_events", rules->rollover_events);
    if (rules->keep_generations < 0)
        json_add_null(o, "keep_generations");
    else
        json_add_int(o, "keep_generations", rules->keep_generations);
    json_add_int(o, "max_inbox", rules->max_inbox);
    json_add_int(o, "max_batch", rules->max_batch);
    json_open(o, "retry", '{');
    json_add_int(o, "max_attempts", rules->max_attempts);
    json_add_int(o, "backoff_ms", rules->backoff_ms);
    json_add_int(o, "max_backoff_ms", rules->max_backoff_ms);
    json_close(o, '}');
}

/* --- failures --- */

struct retry_policy entity_retry_policy(const struct entity_rules *rules)
{
    return (struct retry_policy){
        .max_attempts = rules->max_attempts > 0 ? rules->max_attempts : INT64_MAX,
        .backoff_ms = rules->backoff_ms,
        .max_backoff_ms = rules->max_backoff_ms,
        .multiplier = 2,
        .jitter = JITTER_FULL,
    };
}
