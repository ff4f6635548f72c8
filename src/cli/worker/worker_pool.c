/* The state that a worker's slots share. */
#include "cli/worker/worker_pool.h"

#include "base/env.h"

enum {
    BACKOFF_FIRST_MS = 200,
    BACKOFF_MAX_MS = 5 * 1000,
};

int64_t worker_backoff_ms(int tries)
{
    uint32_t dice = 0;
    env_random(&ENV_SYSTEM, &dice, sizeof(dice));
    int64_t bound = MIN((int64_t)BACKOFF_FIRST_MS << MIN(tries, 10), BACKOFF_MAX_MS);
    return bound / 2 + (int64_t)dice % (bound / 2 + 1);
}

json_t *answer_json(const struct reply *reply)
{
    return reply->body.len > 0 ? json_loadb(reply->body.ptr, reply->body.len, 0, NULL) : NULL;
}

static enum answer judge(enum cli_exit rc, const struct reply *reply)
{
    if (rc != CLI_DONE || reply->status >= 500 || reply->status == 429)
        return ANSWER_LATER;
    if (reply->status < 300)
        return ANSWER_TAKEN;
    if (reply->status == 404)
        return ANSWER_LOST;
    if (reply->status != 409)
        return ANSWER_REFUSED;
    json_t *problem = answer_json(reply);
    bool lost = str_is(json_str(json_object_get(problem, "code")), "LEASE_LOST");
    json_decref(problem);
    return lost ? ANSWER_LOST : ANSWER_LATER;
}

enum answer worker_pool_judge(struct worker_pool *pool, const struct client *c, enum cli_exit rc)
{
    enum answer answer = judge(rc, c->reply);
    bool away = answer == ANSWER_LATER;
    if (away && !pool->away && rc == CLI_DONE)
        refusal_print(c->reply);
    else if (away && !pool->away)
        client_print_error(c, "; trying again");
    else if (!away && pool->away)
        fprintf(stderr, "pawl: %.*s answers again\n", STR_ARG(buf_str(&c->url)));
    pool->away = away;
    return answer;
}
