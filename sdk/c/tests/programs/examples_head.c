/* The examples of pawl.h as a program: this file, then a function for each example, then examples_main.c. */
#include <ctype.h>
#include <pawl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pawl_client *client;
static struct pawl_error err;
static const char *running = "";

#define check(what) check_true(what, #what)

static void check_true(bool holds, const char *what)
{
    if (holds)
        return;
    printf("FAIL %s: %s (%s: %s)\n", running, what, err.code, err.message);
    exit(1);
}

static bool count(json_t *item, void *user)
{
    (void)item;
    ++*(int *)user;
    return true;
}

static bool first_only(json_t *item, void *user)
{
    (void)item;
    ++*(int *)user;
    return false;
}

/* The id of a new run. */
static const char *started(const char *workflow_id)
{
    static char id[64];
    json_t *run = NULL;
    check(pawl_start(client, workflow_id, json_pack("{s:s}", "name", "Ada"), NULL, &run, &err) ==
          PAWL_OK);
    snprintf(id, sizeof id, "%s", json_string_value(json_object_get(run, "run_id")));
    json_decref(run);
    return id;
}

struct search {
    const char *run_id;
    char job_id[64];
};

static bool find_approval(json_t *approval, void *at)
{
    struct search *search = at;
    if (strcmp(json_string_value(json_object_get(approval, "run_id")), search->run_id) == 0)
        snprintf(search->job_id, sizeof search->job_id, "%s",
                 json_string_value(json_object_get(approval, "job_id")));
    return !*search->job_id;
}

/* The id of a question that waits for an answer. */
static const char *pending_approval(void)
{
    static struct search search;
    search = (struct search){.run_id = started("ask")};
    check(pawl_list(client, "listApprovals", json_pack("{s:s}", "status", "pending"), find_approval,
                    &search, &err) == PAWL_OK);
    check(*search.job_id);
    return search.job_id;
}

static enum pawl_err shout(struct pawl_ctx *ctx, json_t *input, void *user, json_t **ret_output)
{
    char text[64] = "";
    (void)ctx;
    (void)user;
    snprintf(text, sizeof text, "%s", json_string_value(json_object_get(input, "text")));
    for (char *c = text; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    *ret_output = json_string(text);
    return PAWL_OK;
}

static enum pawl_err stop_worker(struct pawl_ctx *ctx, json_t *input, void *worker,
                                 json_t **ret_output)
{
    (void)ctx;
    (void)input;
    (void)ret_output;
    pawl_worker_stop(worker);
    return PAWL_OK;
}

static enum pawl_err charge_card(struct pawl_ctx *ctx, void *data, json_t **ret_output)
{
    *ret_output = json_pack("{s:i, s:s}", "amount", *(int *)data, "key", pawl_ctx_key(ctx));
    return PAWL_OK;
}

static enum pawl_err add_points(struct pawl_entity *entity, json_t *payload, void *user,
                                json_t **ret_result)
{
    json_t *state = pawl_entity_state(entity), *points = json_object_get(payload, "points");
    (void)user;
    (void)ret_result;
    json_object_set_new(state, "points",
                        json_integer(json_integer_value(json_object_get(state, "points")) +
                                     json_integer_value(points)));
    return PAWL_OK;
}
