#include "entity.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "util.h"

/* The entity while its handlers run. What they ask for is kept apart so that a rejection can undo
 * it. */
struct pawl_entity {
    const char *type, *id, *job_id;
    char *key;
    json_t *state;
    json_t *timers;    /* to set, by name */
    json_t *cancelled; /* names */
    json_t *emitted, *started, *results;
    bool finished;
    struct pawl_error error;
};

struct pawl_entity_type *entity_type_new(const char *type, json_t *initial, json_t *options)
{
    struct pawl_entity_type *made = calloc(1, sizeof *made);
    if (made)
        *made = (struct pawl_entity_type){
            .type = format("%s", type), .initial = initial, .options = options};
    return made;
}

static void free_handlers(struct entity_handler *handlers)
{
    while (handlers) {
        struct entity_handler *next = handlers->next;
        free(handlers->name);
        free(handlers);
        handlers = next;
    }
}

void entity_type_free(struct pawl_entity_type *type)
{
    free_handlers(type->signals);
    free_handlers(type->timers);
    free_handlers(type->migration);
    json_decref(type->initial);
    json_decref(type->options);
    free(type->type);
    free(type);
}

/* The newest handler of a name counts. */
static void add(struct entity_handler **handlers, const char *name, pawl_entity_fn *function,
                void *user)
{
    struct entity_handler *made = calloc(1, sizeof *made);
    if (!made)
        return;
    *made = (struct entity_handler){
        .next = *handlers, .name = format("%s", name), .handler = function, .user = user};
    *handlers = made;
}

void pawl_entity_on(struct pawl_entity_type *type, const char *name, pawl_entity_fn *handler,
                    void *user)
{
    if (type)
        add(&type->signals, name, handler, user);
}

void pawl_entity_on_timer(struct pawl_entity_type *type, const char *name, pawl_entity_fn *handler,
                          void *user)
{
    if (type)
        add(&type->timers, name, handler, user);
}

void pawl_entity_on_migrate(struct pawl_entity_type *type, pawl_entity_fn *handler, void *user)
{
    if (type)
        add(&type->migration, "", handler, user);
}

/* --- what handlers may do --- */

const char *pawl_entity_id(const struct pawl_entity *entity)
{
    return entity->id;
}

const char *pawl_entity_key(const struct pawl_entity *entity)
{
    return entity->key;
}

json_t *pawl_entity_state(struct pawl_entity *entity)
{
    return entity->state;
}

void pawl_entity_set_state(struct pawl_entity *entity, json_t *state)
{
    json_decref(entity->state);
    entity->state = state ? state : json_null();
}

static void forget_name(json_t *names, const char *name)
{
    for (size_t i = json_array_size(names); i-- > 0;)
        if (strcmp(json_string_value(json_array_get(names, i)), name) == 0)
            json_array_remove(names, i);
}

static void set_timer(struct pawl_entity *entity, const char *name, json_t *timer, json_t *payload)
{
    forget_name(entity->cancelled, name);
    set_text(timer, "name", name);
    set_given(timer, "payload", payload);
    json_object_set_new(entity->timers, name, timer);
}

void pawl_entity_set_timer(struct pawl_entity *entity, const char *name, int64_t after_ms,
                           json_t *payload)
{
    set_timer(entity, name, json_pack("{s:I}", "in_ms", (json_int_t)after_ms), payload);
}

void pawl_entity_set_timer_at(struct pawl_entity *entity, const char *name, int64_t unix_ms,
                              json_t *payload)
{
    char at[TIME_SIZE];
    time_text(unix_ms, at);
    set_timer(entity, name, json_pack("{s:s}", "at", at), payload);
}

void pawl_entity_cancel_timer(struct pawl_entity *entity, const char *name)
{
    json_object_del(entity->timers, name);
    forget_name(entity->cancelled, name);
    json_array_append_new(entity->cancelled, json_string(name));
}

void pawl_entity_emit(struct pawl_entity *entity, const char *event, json_t *payload)
{
    json_t *wish = json_pack("{s:s}", "event", event);
    set_given(wish, "payload", payload);
    json_array_append_new(entity->emitted, wish);
}

void pawl_entity_start(struct pawl_entity *entity, const char *workflow_id, json_t *input,
                       const struct pawl_start_options *options)
{
    json_t *wish = json_pack("{s:s}", "workflow_id", workflow_id);
    set_given(wish, "input", input);
    if (options) {
        set_given(wish, "labels", options->labels);
        set_text(wish, "idempotency_key", options->key);
    }
    json_array_append_new(entity->started, wish);
}

void pawl_entity_finish(struct pawl_entity *entity)
{
    entity->finished = true;
}

static enum pawl_err fail(struct pawl_entity *entity, enum pawl_err kind, const char *code,
                          const char *message, bool retryable)
{
    error_set(&entity->error, kind, "%s", message ? message : "");
    copy_text(entity->error.code, sizeof entity->error.code, code);
    entity->error.retryable = retryable;
    return kind;
}

enum pawl_err pawl_entity_reject(struct pawl_entity *entity, const char *code, const char *message)
{
    return fail(entity, PAWL_ERR_REJECTED, code, message, false);
}

enum pawl_err pawl_entity_fail(struct pawl_entity *entity, const char *code, const char *message,
                               bool retryable)
{
    return fail(entity, PAWL_ERR_JOB_FAILED, code, message, retryable);
}

/* --- a call --- */

static void release(struct pawl_entity *entity)
{
    json_decref(entity->state);
    json_decref(entity->timers);
    json_decref(entity->cancelled);
    json_decref(entity->emitted);
    json_decref(entity->started);
}

/* A copy of all that a rejection undoes. */
static struct pawl_entity save(const struct pawl_entity *entity)
{
    struct pawl_entity saved = *entity;
    saved.state = json_deep_copy(entity->state);
    saved.timers = json_deep_copy(entity->timers);
    saved.cancelled = json_deep_copy(entity->cancelled);
    saved.emitted = json_deep_copy(entity->emitted);
    saved.started = json_deep_copy(entity->started);
    return saved;
}

static void restore(struct pawl_entity *entity, const struct pawl_entity *saved)
{
    struct pawl_error error = entity->error;
    release(entity);
    *entity = *saved;
    entity->error = error;
}

static const struct entity_handler *find(const struct entity_handler *handlers, const char *name)
{
    while (handlers && (!handlers->name || strcmp(handlers->name, name) != 0))
        handlers = handlers->next;
    return handlers;
}

/* A rejection is an outcome; any other error is that of the whole call. */
static enum pawl_err outcome_of(struct pawl_entity *entity, enum pawl_err result, json_t *output,
                                json_t **ret_outcome)
{
    if (result == PAWL_OK) {
        *ret_outcome = json_pack("{s:O?}", "result", output);
        return PAWL_OK;
    }
    if (entity->error.kind != result)
        pawl_entity_fail(entity, pawl_err_name(result), "", true);
    if (result != PAWL_ERR_REJECTED)
        return result;
    const char *message = *entity->error.message ? entity->error.message : NULL;
    *ret_outcome =
        json_pack("{s:{s:s, s:s*}}", "error", "code", entity->error.code, "message", message);
    return PAWL_OK;
}

static void set_key(struct pawl_entity *entity, const json_t *seq)
{
    free(entity->key);
    if (seq)
        entity->key =
            format("%s/%s:%lld", entity->type, entity->id, (long long)json_integer_value(seq));
    else
        entity->key = format("%s", entity->job_id);
}

/* Calls the handler of a signal or timer, and undoes what one that rejects has done. */
static enum pawl_err handle_one(struct pawl_entity *entity, const struct entity_handler *handlers,
                                const json_t *event, const char *what)
{
    const struct entity_handler *handler = find(handlers, member_text(event, "name"));
    if (!handler) {
        char *message = format("Entity type %s has no handler for %s %s", entity->type, what,
                               member_text(event, "name"));
        pawl_entity_fail(entity, "NO_HANDLER", message, false);
        free(message);
        return PAWL_ERR_JOB_FAILED;
    }
    set_key(entity, json_object_get(event, "seq"));
    struct pawl_entity saved = save(entity);
    json_t *output = NULL, *outcome = NULL, *payload = json_object_get(event, "payload");
    enum pawl_err result =
        handler->handler(entity, payload ? payload : json_null(), handler->user, &output);
    if (result == PAWL_ERR_REJECTED) {
        saved.key = entity->key;
        restore(entity, &saved);
    } else {
        release(&saved);
    }
    result = outcome_of(entity, result, output, &outcome);
    json_decref(output);
    if (result == PAWL_OK && json_is_true(json_object_get(event, "update"))) {
        json_object_set(outcome, "seq", json_object_get(event, "seq"));
        json_array_append(entity->results, outcome);
    }
    json_decref(outcome);
    return result;
}

static enum pawl_err handle_all(struct pawl_entity *entity, const struct entity_handler *handlers,
                                const json_t *events, const char *what)
{
    size_t i;
    json_t *event;
    json_array_foreach (events, i, event) {
        enum pawl_err result = handle_one(entity, handlers, event, what);
        if (result != PAWL_OK)
            return result;
    }
    return PAWL_OK;
}

static enum pawl_err migrate(struct pawl_entity *entity, const struct pawl_entity_type *type,
                             const json_t *call)
{
    if (strcmp(member_text(call, "kind"), "migrate") != 0)
        return PAWL_OK;
    const struct entity_handler *handler = type->migration;
    if (!handler)
        return pawl_entity_fail(entity, "NO_HANDLER",
                                "This entity type has no handler for a migration", false);
    json_t *from = json_object_get(call, "from_version"), *output = NULL;
    enum pawl_err result =
        handler->handler(entity, from ? from : json_null(), handler->user, &output);
    json_decref(output);
    if (result != PAWL_OK && entity->error.kind != result)
        pawl_entity_fail(entity, pawl_err_name(result), "", true);
    return result;
}

static void add_list(json_t *answer, const char *name, json_t *list)
{
    if (json_array_size(list) > 0)
        json_object_set(answer, name, list);
}

static json_t *answer_of(const struct pawl_entity *entity)
{
    json_t *answer = json_pack("{s:O}", "state", entity->state), *timers = json_array(), *timer;
    const char *name;
    json_object_foreach (entity->timers, name, timer)
        json_array_append(timers, timer);
    add_list(answer, "set_timers", timers);
    json_decref(timers);
    add_list(answer, "cancel_timers", entity->cancelled);
    add_list(answer, "emit", entity->emitted);
    add_list(answer, "start", entity->started);
    add_list(answer, "results", entity->results);
    if (entity->finished)
        json_object_set_new(answer, "finished", json_true());
    return answer;
}

enum pawl_err entity_handle(const struct pawl_entity_type *type, const json_t *call,
                            const char *job_id, json_t **ret_answer, struct pawl_error *error)
{
    const json_t *who = json_object_get(call, "entity"), *state = json_object_get(call, "state");
    const json_t *begin = state && !json_is_null(state) ? state : type->initial;
    struct pawl_entity entity = {.type = member_text(who, "type"),
                                 .id = member_text(who, "id"),
                                 .job_id = job_id,
                                 .state = begin ? json_deep_copy(begin) : json_null(),
                                 .timers = json_object(),
                                 .cancelled = json_array(),
                                 .emitted = json_array(),
                                 .started = json_array(),
                                 .results = json_array()};
    set_key(&entity, NULL);
    enum pawl_err result = migrate(&entity, type, call);
    if (result == PAWL_OK)
        result = handle_all(&entity, type->timers, json_object_get(call, "timers"), "timer");
    if (result == PAWL_OK)
        result = handle_all(&entity, type->signals, json_object_get(call, "signals"), "signal");
    if (result == PAWL_OK)
        *ret_answer = answer_of(&entity);
    else
        error_copy(error, &entity.error);
    release(&entity);
    json_decref(entity.results);
    pawl_error_clear(&entity.error);
    free(entity.key);
    return result;
}
