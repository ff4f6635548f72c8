#include "sim/entities.h"

#include <stdlib.h>

const struct entity_rules ENTITY_RULES[ENTITY_TYPES] = {
    {.body = "\"queue\":\"ents\",\"handler\":\"h\",\"dedup_window_s\":600,\"rollover_events\":3,"
             "\"keep_generations\":2,\"max_batch\":2",
     .window_ms = 600 * 1000,
     .keys_max = 10000},
    {.body = "\"queue\":\"ents\",\"handler\":\"h\",\"dedup_max_keys\":3,\"rollover_events\":2,"
             "\"keep_generations\":null,\"max_inbox\":6,\"retry\":{\"max_attempts\":3,"
             "\"backoff_ms\":50}",
     .window_ms = INT64_C(259200) * 1000,
     .keys_max = 3,
     .keeps_all = true},
};

struct entities *entities_state(struct sim *w)
{
    return w->states[ACTOR_ENTITIES_NUMBER];
}

struct entity *entity_named(struct sim *w, int place, const char *type, const char *id)
{
    for (int i = 0; i < ENTITIES; i++) {
        struct entity *e = &entities_state(w)->entities[i];
        if (e->inbox.place == place && e->type == type[1] - '0' && strcmp(e->id, id) == 0)
            return e;
    }
    return NULL;
}

void entity_target(const struct entity *e, char out[static 96], const char *rest)
{
    (void)snprintf(out, 96, "/api/v1/entities/e%d/%s%s", e->type, e->id, rest);
}

void entity_init(struct sim *w, struct entity *e, int place)
{
    char name[16];
    const struct entity_rules *rules = &ENTITY_RULES[e->type];
    (void)snprintf(name, sizeof(name), "entity e%d/%s", e->type, e->id);
    inbox_init(&e->inbox, &entities_state(w)->clocks, name, place, rules->window_ms,
               rules->keys_max);
    e->version = e->consumed = e->generation = e->shown_at = 0;
    e->job[0] = '\0';
}

/* --- states --- */

/* The log has every signal once, in order, up to the last. */
static void check_log(struct sim *w, struct entity *e, const char *log, int64_t last)
{
    int64_t first = 0, before = 0;
    while (*log != '\0') {
        char *end;
        int64_t seq = strtoll(log, &end, 10);
        int64_t mark = strtoll(end + 1, &end, 10);
        sim_check(w, 5, before == 0 || seq == before + 1, "%s applied signal %lld after %lld",
                  e->inbox.owner, (long long)seq, (long long)before);
        (void)inbox_consume(w, &e->inbox, mark, seq);
        first = first == 0 ? seq : first;
        before = seq;
        log = end + 1;
    }
    sim_check(w, 5, before == 0 || before == last, "%s has applied %lld, but its log ends at %lld",
              e->inbox.owner, (long long)last, (long long)before);
    for (int i = 0; i < e->inbox.count; i++) { /* what was acknowledged is not passed over */
        const struct inbox_signal *s = &e->inbox.sent[i];
        bool within = first > 0 && s->seq >= first && s->seq <= last;
        sim_check(w, 5, s->consumed || !within, "%s has passed over signal %lld", e->inbox.owner,
                  (long long)s->seq);
    }
}

/* Who wrote it, and may have. */
static void check_writer(struct sim *w, struct entity *e, const json_t *state, int64_t version)
{
    int64_t by = json_number(state, "by");
    struct entities *s = entities_state(w);
    sim_check(w, 3, by >= 0 && by < s->result_count, "%s has a state that nobody wrote",
              e->inbox.owner);
    struct entity_result *r = &s->results[by];
    sim_check(w, 3, r->version >= 0 && r->entity == e->number && r->incarnation == e->incarnation,
              "%s has the state of result %lld, which was refused", e->inbox.owner, (long long)by);
    sim_check(w, 3, r->version == 0 || r->version == version,
              "%s has version %lld with the state of version %lld", e->inbox.owner,
              (long long)version, (long long)r->version);
    for (int i = 0; i < s->result_count; i++)
        sim_check(w, 3,
                  i == by || s->results[i].entity != e->number ||
                      s->results[i].incarnation != e->incarnation ||
                      s->results[i].version != version,
                  "two results are version %lld of %s", (long long)version, e->inbox.owner);
    r->version = version;
}

void entity_check_state(struct sim *w, struct entity *e, const struct call *c, const json_t *state,
                        int64_t version, int64_t consumed)
{
    bool later = c->sent > e->shown_at;
    sim_check(w, 6, !later || version >= e->version, "%s has version %lld, but %lld was shown",
              e->inbox.owner, (long long)version, (long long)e->version);
    sim_check(w, 6, !later || consumed >= e->consumed, "%s has applied %lld, but %lld was shown",
              e->inbox.owner, (long long)consumed, (long long)e->consumed);
    inbox_consume_none(&e->inbox);
    if (json_is_object(state)) {
        check_writer(w, e, state, version);
        check_log(w, e, json_text(state, "log"), json_number(state, "last"));
        sim_check(w, 5, json_number(state, "last") <= consumed, "%s has applied %lld, shows %lld",
                  e->inbox.owner, (long long)json_number(state, "last"), (long long)consumed);
    }
    if (version > e->version || consumed > e->consumed) {
        e->version = MAX(version, e->version);
        e->consumed = MAX(consumed, e->consumed);
        e->shown_at = c->answered;
    }
}

/* --- the whole entity --- */

/* The timers are those that the state says. */
static void check_timers(struct sim *w, const struct entity *e, const json_t *shown)
{
    const json_t *state = json_object_get(shown, "state");
    const json_t *timers = json_object_get(shown, "timers");
    size_t i;
    json_t *timer;
    int64_t set =
        json_is_object(state) ? (json_number(state, "a") > 0) + (json_number(state, "b") > 0) : 0;
    sim_check(w, 5, (int64_t)json_array_size(timers) == set, "%s has %d timers, its state %lld",
              e->inbox.owner, (int)json_array_size(timers), (long long)set);
    json_array_foreach (timers, i, timer) {
        int64_t payload = json_integer_value(json_object_get(timer, "payload"));
        sim_check(w, 5, json_number(state, json_text(timer, "name")) == payload,
                  "timer %s of %s has payload %lld", json_text(timer, "name"), e->inbox.owner,
                  (long long)payload);
    }
}

void entity_observe(struct sim *w, struct entity *e, const struct call *c, const json_t *shown)
{
    int64_t last = json_number(shown, "last_seq");
    int64_t consumed = json_number(shown, "consumed_seq");
    int64_t generation = json_number(shown, "generation");
    sim_cover(w, "entity", json_text(shown, "status"));
    sim_check(w, 5, json_number(shown, "inbox") == last - consumed,
              "%s has %lld signals in its inbox, from %lld to %lld", e->inbox.owner,
              (long long)json_number(shown, "inbox"), (long long)consumed, (long long)last);
    sim_check(w, 6, c->sent < e->shown_at || generation >= e->generation,
              "%s has generation %lld, but %lld was shown", e->inbox.owner, (long long)generation,
              (long long)e->generation);
    entity_check_state(w, e, c, json_object_get(shown, "state"), json_number(shown, "version"),
                       consumed);
    e->generation = MAX(e->generation, generation);
    check_timers(w, e, shown);
}
