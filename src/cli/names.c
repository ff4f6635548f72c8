/* Resolves short ids, and suggests names. */
#include "cli/names.h"

#include "base/env.h"
#include "base/suggest.h"

enum {
    PREFIX_MIN = 4,
    CANDIDATES_SHOWN = 6,
    PAGES_MAX = 20, /* of a list that the server cannot search */
};

const struct id_list IDS_OF_RUNS = {"run", "/api/v1/runs", "id", "id_prefix"};
const struct id_list IDS_OF_APPROVALS = {"approval", "/api/v1/approvals?limit=200", "job_id", NULL};
const struct id_list IDS_OF_DEAD = {"dead letter", "/api/v1/dead-letters?limit=200", "job_id",
                                    NULL};
const struct id_list IDS_OF_WEBHOOKS = {"webhook", "/api/v1/webhooks?limit=200", "id", NULL};
const struct id_list IDS_OF_KEYS = {"key", "/api/v1/keys", "id", NULL};

/* Which list has the names that a refusal is about. */
static const struct {
    const char *code;
    const char *path;
} NAMED[] = {
    {"WORKFLOW_NOT_FOUND", "/api/v1/workflows?limit=200"},
    {"SCHEDULE_NOT_FOUND", "/api/v1/schedules?limit=200"},
    {"ENTITY_TYPE_NOT_FOUND", "/api/v1/entity-types?limit=200"},
    {"TENANT_NOT_FOUND", "/api/v1/tenants?limit=200"},
};

/* --- short ids --- */

/* Only what cannot be a whole id, and can be the beginning of one. */
static bool is_prefix(const char *typed)
{
    struct uuid low, high;
    struct str text = str_of(typed);
    return text.len >= PREFIX_MIN && text.len < UUID_TEXT_LEN &&
           uuid_parse_prefix(text, &low, &high);
}

/* Adds the ids of a page that begin as typed. */
static void take_matches(const json_t *items, const char *member, struct str typed, json_t *found)
{
    size_t i;
    const json_t *item;
    json_array_foreach (items, i, item) {
        json_t *id = json_object_get(item, member);
        if (json_is_string(id) && str_starts_with(json_str(id), typed))
            (void)json_array_append(found, id);
    }
}

static enum cli_exit find_matches(struct session *s, const struct id_list *list, const char *typed,
                                  json_t *found)
{
    json_t *next = NULL;
    enum cli_exit rc = CLI_DONE;
    for (int page = 0; page < PAGES_MAX; page++) {
        session_path(s, list->path, "", "");
        if (list->prefix_query != NULL)
            session_query(s, list->prefix_query, typed);
        session_query(s, "cursor", json_string_value(next));
        rc = session_call_silently(s, "GET");
        if (rc != CLI_DONE)
            break;
        take_matches(json_object_get(s->answer, "items"), list->member, str_of(typed), found);
        json_decref(next);
        next = json_incref(json_object_get(s->answer, "next_cursor"));
        if (!json_is_string(next) || json_array_size(found) > CANDIDATES_SHOWN)
            break;
    }
    json_decref(next);
    return rc;
}

static enum cli_exit report(const struct id_list *list, const char *typed, const json_t *found)
{
    size_t i;
    const json_t *id;
    if (json_array_size(found) == 0) {
        fprintf(stderr, "pawl: No %s has an id that begins with %s\n", list->noun, typed);
        return CLI_REFUSED;
    }
    fprintf(stderr, "pawl: %s is the beginning of several ids. Type more of the one you mean:\n",
            typed);
    json_array_foreach (found, i, id) {
        if (i < CANDIDATES_SHOWN)
            fprintf(stderr, "  %s\n", json_string_value(id));
    }
    if (json_array_size(found) > CANDIDATES_SHOWN)
        fputs("  and more\n", stderr);
    return CLI_REFUSED;
}

enum cli_exit names_resolve(struct session *s, const struct id_list *list)
{
    char typed[UUID_TEXT_LEN + 1];
    if (s->args[0] == NULL || !is_prefix(s->args[0]))
        return CLI_DONE;
    for (size_t i = 0; i <= strlen(s->args[0]); i++) { /* ids are written in lower case */
        char c = s->args[0][i];
        typed[i] = (char)(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
    }
    json_t *found = json_array();
    enum cli_exit rc = find_matches(s, list, typed, found);
    if (rc == CLI_DONE && json_array_size(found) == 1) {
        (void)snprintf(s->resolved_id, sizeof(s->resolved_id), "%s",
                       json_string_value(json_array_get(found, 0)));
        s->opt.args[0] = s->resolved_id;
    } else if (rc == CLI_DONE) {
        rc = report(list, typed, found);
    }
    json_decref(found);
    return rc;
}

/* --- did you mean --- */

static const char *list_of_names(const struct reply *reply)
{
    const char *path = NULL;
    json_t *problem = json_loadb(reply->body.ptr, reply->body.len, 0, NULL);
    const json_t *code = json_object_get(problem, "code");
    for (size_t i = 0; json_is_string(code) && i < ARRAY_LEN(NAMED); i++)
        if (str_is(json_str(code), NAMED[i].code))
            path = NAMED[i].path;
    json_decref(problem);
    return path;
}

void names_suggest(struct session *s)
{
    size_t i;
    const json_t *item;
    if (s->reply.status != 404 || s->reply.body.len == 0 || s->args == NULL || s->args[0] == NULL)
        return;
    const char *path = list_of_names(&s->reply);
    if (path == NULL)
        return;
    struct request req = {.method = "GET", .path = str_of(path)};
    if (client_send(&s->client, &req, &s->reply) != CLI_DONE || s->reply.status != 200)
        return;
    json_t *answer = json_loadb(s->reply.body.ptr, s->reply.body.len, 0, NULL);
    struct suggestion best = suggest_for(str_of(s->args[0]));
    json_array_foreach (json_object_get(answer, "items"), i, item)
        if (json_is_string(json_object_get(item, "id")))
            suggest_consider(&best, json_str(json_object_get(item, "id")));
    if (best.best.len > 0)
        fprintf(stderr, "Did you mean \"%.*s\"?\n", STR_ARG(best.best));
    json_decref(answer);
}
