/* Routes of entities and their types. */
#include "api/call.h"
#include "api/routes.h"
#include "api/signal.h"
#include "api/streams.h"

#define ENTITY(struct_)                                                                  \
    PATH_NAME("type", struct_, type),                                                    \
        PATH("id", PARAM_TEXT, .max = ENTITY_ID_MAX, .valid = entity_id_ok,              \
             .must = "must be text of at least one byte and without control characters", \
             INTO(struct_, id))

/* --- types --- */

static const struct param TYPE[] = {
    PATH_NAME("type", struct entity_type_input, type),
};

static const struct param PUT_TYPE[] = {
    PATH_NAME("type", struct put_entity_type_input, type),
};

static enum err prepare_put_type(struct call *c, void *input)
{
    struct put_entity_type_input *in = input;
    return entity_rules_parse(c->body, &c->defaults, &c->op.problem, &in->rules, &in->version);
}

static const struct param LIST_TYPES[] = {
    QUERY_PAGE(struct list_input),
};

/* --- signals and updates --- */

static const struct param SIGNAL[] = {
    ENTITY(struct signal_entity_input),
    SIGNAL_MEMBERS(struct signal_entity_input, false),
};

static const struct param UPDATE[] = {
    ENTITY(struct signal_entity_input),
    QUERY("wait_ms", PARAM_INT, .max = RUN_WAIT_MS_MAX, .initial = ASK_WAIT_MS_DEFAULT,
          INTO_CALL(op.wait_ms)),
    SIGNAL_MEMBERS(struct signal_entity_input, true),
};

static enum err prepare_signal(struct call *c, void *input)
{
    struct signal_entity_input *in = input;
    return signal_request(c, in->name, in->dedup_key, &in->request);
}

static const struct param GET_UPDATE[] = {
    ENTITY(struct get_update_input),
    PATH("seq", PARAM_INT, .min = 1, .max = INT64_MAX, .missing = ERR_UPDATE_NOT_FOUND,
         INTO(struct get_update_input, seq)),
};

/* --- one entity --- */

static const struct param ONE[] = {
    ENTITY(struct entity_input),
};

static const struct param MIGRATE[] = {
    ENTITY(struct migrate_entity_input),
    BODY("version", PARAM_INT, .min = 1, .max = INT32_MAX, .initial = -1,
         INTO(struct migrate_entity_input, version)),
};

static const struct param LIST_OF_ENTITY[] = {
    ENTITY(struct list_of_entity_input),
    QUERY_PAGE(struct list_of_entity_input),
};

static const struct param EVENTS[] = {
    ENTITY(struct list_of_entity_input),
    QUERY_PAGE(struct list_of_entity_input),
    LAST_EVENT_ID,
};

/* --- the entities of a type --- */

static const struct param LIST[] = {
    PATH_NAME("type", struct list_entities_input, type),
    QUERY("version", PARAM_INT, .min = 1, .max = INT32_MAX, .initial = -1,
          INTO(struct list_entities_input, type_version)),
    QUERY_PAGE(struct list_entities_input),
};

static int hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The cursor of a list of entities is an id in hexadecimal: ids are any text, and cursors stand in
 * URLs. */
static enum err prepare_list(struct call *c, void *input)
{
    struct str *cursor = &((struct list_entities_input *)input)->cursor;
    if (cursor->ptr == NULL)
        return ERR_OK;
    size_t len = cursor->len / 2;
    char *id = call_alloc(c, len + 1);
    if (id == NULL)
        return c->op.problem.err;
    bool fits = cursor->len % 2 == 0 && len <= ENTITY_ID_MAX;
    for (size_t i = 0; i < len && fits; i++) {
        int high = hex_value(cursor->ptr[2 * i]);
        int low = hex_value(cursor->ptr[2 * i + 1]);
        fits = high >= 0 && low >= 0;
        id[i] = (char)(high * 16 + low);
    }
    *cursor = (struct str){id, len};
    if (fits && entity_id_ok(*cursor))
        return ERR_OK;
    return problem_set(&c->op.problem, ERR_CURSOR_INVALID,
                       "The cursor does not belong to this list");
}

const struct route ENTITY_ROUTES[] = {
    {"POST", "/api/v1/entities/{}/{}/signals", MAY_RUN, .use_case = &UC_SIGNAL_ENTITY,
     TAKES(struct signal_entity_input, SIGNAL), .prepare = prepare_signal},
    {"POST", "/api/v1/entities/{}/{}/updates", MAY_RUN, ROUTE_ASKS, &UC_UPDATE_ENTITY,
     TAKES(struct signal_entity_input, UPDATE), .prepare = prepare_signal},
    {"GET", "/api/v1/entities/{}/{}/updates/{}", MAY_READ, .use_case = &UC_GET_UPDATE,
     TAKES(struct get_update_input, GET_UPDATE)},
    {"GET", "/api/v1/entities/{}/{}/events", MAY_READ, .use_case = &UC_LIST_ENTITY_EVENTS,
     TAKES(struct list_of_entity_input, EVENTS), .stream = stream_entity},
    {"GET", "/api/v1/entities/{}/{}/inbox", MAY_READ, .use_case = &UC_LIST_INBOX,
     TAKES(struct list_of_entity_input, LIST_OF_ENTITY)},
    {"GET", "/api/v1/entities/{}/{}/generations", MAY_READ, .use_case = &UC_LIST_GENERATIONS,
     TAKES(struct list_of_entity_input, LIST_OF_ENTITY)},
    {"POST", "/api/v1/entities/{}/{}/migrate", MAY_RUN, .use_case = &UC_MIGRATE_ENTITY,
     TAKES(struct migrate_entity_input, MIGRATE)},
    {"GET", "/api/v1/entities/{}/{}", MAY_READ, .use_case = &UC_GET_ENTITY,
     TAKES(struct entity_input, ONE)},
    {"DELETE", "/api/v1/entities/{}/{}", MAY_RUN, .use_case = &UC_DELETE_ENTITY,
     TAKES(struct entity_input, ONE)},
    {"GET", "/api/v1/entities/{}", MAY_READ, .use_case = &UC_LIST_ENTITIES,
     TAKES(struct list_entities_input, LIST), .prepare = prepare_list},
    {"GET", "/api/v1/entity-types", MAY_READ, .use_case = &UC_LIST_ENTITY_TYPES,
     TAKES(struct list_input, LIST_TYPES)},
    {"PUT", "/api/v1/entity-types/{}", MAY_RUN, ROUTE_DOCUMENT, &UC_PUT_ENTITY_TYPE,
     TAKES(struct put_entity_type_input, PUT_TYPE), .prepare = prepare_put_type},
    {"GET", "/api/v1/entity-types/{}", MAY_READ, .use_case = &UC_GET_ENTITY_TYPE,
     TAKES(struct entity_type_input, TYPE)},
    {"GET", "/api/v1/entity-types/{}/stats", MAY_READ, .use_case = &UC_ENTITY_STATS,
     TAKES(struct entity_type_input, TYPE)},
    {.method = NULL},
};
