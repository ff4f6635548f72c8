/* src/bus/http_caller.h in memory. */
#include "sim/sim_caller.h"

#include "base/env.h"
#include "base/limits.h"
#include "sim/fibers.h"

#include <stdlib.h>
#include <unistd.h>

struct http_caller {
    struct http_caller_config config;
    const struct sim_receiver *receiver;
    struct http_call *under_way; /* deadline_ms is when it ends */
    struct http_call *ended, **ended_last;
    size_t count;
    bool cut;
    int group; /* of the process */
    struct http_caller *next;
};

static const struct sim_receiver *used;
static struct http_caller *callers;

void sim_caller_use(const struct sim_receiver *receiver)
{
    used = receiver;
}

struct http_caller *http_caller_new(const struct http_caller_config *config)
{
    struct http_caller *c = calloc(1, sizeof(*c));
    assert(c != NULL && used != NULL);
    c->config = *config;
    c->receiver = used;
    c->group = fibers_group();
    c->ended_last = &c->ended;
    c->next = callers;
    callers = c;
    return c;
}

static void free_list(struct http_call *call)
{
    while (call != NULL) {
        struct http_call *next = call->next;
        http_call_free(call);
        call = next;
    }
}

void http_caller_free(struct http_caller *caller)
{
    if (caller == NULL)
        return;
    struct http_caller **at = &callers;
    while (*at != caller)
        at = &(*at)->next;
    *at = caller->next;
    free_list(caller->under_way);
    free_list(caller->ended);
    free(caller);
}

/* The call is over: its maker may collect it. */
static void end_call(struct http_caller *c, struct http_call *call)
{
    static const uint64_t ONE = 1;
    call->next = NULL;
    c->count--;
    if (c->config.over != NULL)
        c->config.over(call);
    *c->ended_last = call;
    c->ended_last = &call->next;
    if (write(c->config.event_fd, &ONE, sizeof(ONE)) < 0)
        abort();
}

bool http_caller_submit(struct http_caller *c, struct http_call *call)
{
    if (c->count >= CALLS_WAITING_MAX)
        return false;
    c->count++;
    if (c->cut) {
        http_call_end(call, CALL_ABORTED, "the machine is gone");
        end_call(c, call);
        return true;
    }
    int64_t ms = c->receiver->receive(c->receiver->ctx, call);
    if (ms >= call->request.timeout_ms) {
        ms = call->request.timeout_ms;
        http_call_end(call, CALL_TIMED_OUT, "no answer in time");
    }
    call->deadline_ms = fibers_now_ns() / 1000000 + ms;
    call->next = c->under_way;
    c->under_way = call;
    return true;
}

struct http_call *http_caller_collect(struct http_caller *c)
{
    struct http_call *first = c->ended;
    c->ended = NULL;
    c->ended_last = &c->ended;
    return first;
}

static bool end_due(struct http_caller *c, int64_t now_ms)
{
    bool any = false;
    for (struct http_call **at = &c->under_way; *at != NULL;) {
        struct http_call *call = *at;
        if (call->deadline_ms > now_ms) {
            at = &call->next;
            continue;
        }
        *at = call->next;
        end_call(c, call);
        any = true;
    }
    return any;
}

void http_caller_abort(struct http_caller *c)
{
    for (struct http_call *call = c->under_way; call != NULL; call = call->next)
        http_call_end(call, CALL_ABORTED, "aborted");
    (void)end_due(c, INT64_MAX);
}

void sim_caller_cut(const struct sim_receiver *receiver)
{
    for (struct http_caller *c = callers; c != NULL; c = c->next) {
        if (c->receiver != receiver)
            continue;
        c->cut = true;
        http_caller_abort(c);
    }
}

bool sim_caller_turn(const struct sim_receiver *receiver, int64_t now_ns)
{
    bool any = false;
    for (struct http_caller *c = callers; c != NULL; c = c->next)
        any |=
            c->receiver == receiver && !fibers_is_paused(c->group) && end_due(c, now_ns / 1000000);
    return any;
}

int64_t sim_caller_next_ns(const struct sim_receiver *receiver)
{
    int64_t next = INT64_MAX;
    for (struct http_caller *c = callers; c != NULL; c = c->next) {
        for (struct http_call *call = c->under_way; call != NULL; call = call->next) {
            if (c->receiver == receiver && !fibers_is_paused(c->group))
                next = MIN(next, call->deadline_ms * 1000000);
        }
    }
    return next;
}
