/* Claims of jobs of all tenants. */
#include "cluster/errand/errand.h"

#include "base/json/read.h"
#include "base/json/write.h"

enum { SLICE_MS = 100 }; /* how long a claim waits at one shard before it asks the next */

static bool is_number_in(const struct json *value, int64_t min, int64_t max, int64_t *ret)
{
    return value == NULL || json_is(value, JSON_KIND_NULL) ||
           (json_whole_of(value, ret) && *ret >= min && *ret <= max);
}

/* The body up to the members that are another for each shard. */
static struct str body_without(const struct json *body, const struct json *wait,
                               const struct json *max, struct arena *arena)
{
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    buf_put_char(&text, '{');
    for (size_t i = 0; i < json_members(body); i++) {
        const struct json *value = json_value_at(body, i);
        if (value == wait || value == max)
            continue;
        json_put_text(&text, json_name_at(body, i));
        buf_put_char(&text, ':');
        json_write_plain(&text, value);
        buf_put_char(&text, ',');
    }
    return arena_take(arena, &text);
}

/* What is not a claim is sent as it came, and refused. */
bool errand_read_claim(struct errand *e, struct http_request *req, int64_t now_ms)
{
    struct claim_errand *claim = &e->claim;
    struct json *body = NULL;
    struct problem ignored;
    int64_t wait_ms = 0;
    claim->most = 1;
    claim->has_key = errand_has_key(req);
    claim->is_empty = arena_alloc(&req->arena, e->count * sizeof(*claim->is_empty));
    buf_init(&claim->jobs, 2 * HTTP_REPLY_MAX);
    problem_init(&ignored);
    bool fine = json_read(req->body, &ignored, &body) == ERR_OK && json_is(body, JSON_KIND_OBJECT);
    const struct json *wait = fine ? json_member(body, STR("wait_ms")) : NULL;
    const struct json *max = fine ? json_member(body, STR("max")) : NULL;
    fine = fine && is_number_in(wait, 0, CLAIM_WAIT_MS_MAX, &wait_ms) &&
           is_number_in(max, 1, CLAIM_MAX, &claim->most);
    if (fine)
        claim->body = body_without(body, wait, max, &req->arena);
    claim->until_ms = now_ms + wait_ms;
    json_free(body);
    problem_release(&ignored);
    return claim->is_empty != NULL && (!fine || claim->body.ptr != NULL);
}

/* --- which shard is next --- */

/* What each shard that may have more is asked for. False: none may. */
static bool begin_round(struct errand *e)
{
    struct claim_errand *claim = &e->claim;
    int64_t open = 0;
    for (size_t i = 0; i < e->count; i++)
        open += !claim->is_empty[i];
    claim->at = 0;
    if (open > 0)
        claim->share = (claim->most - claim->count + open - 1) / open;
    if (claim->has_key) /* a shard answers the same key to another number as reused */
        claim->share = claim->most;
    return open > 0;
}

/* Does the claim need more, and has the answer room for it? */
static bool takes_more(const struct claim_errand *claim)
{
    return claim->count < claim->most && claim->jobs.len <= CLAIM_FILL_BYTES &&
           !(claim->has_key && claim->count > 0);
}

/* Of this round or the next; false: no shard has any more. */
static bool find_next(struct errand *e)
{
    struct claim_errand *claim = &e->claim;
    while (claim->share > 0 || begin_round(e)) {
        while (claim->at < e->count && claim->is_empty[claim->at])
            claim->at++;
        if (claim->at < e->count)
            return true;
        claim->share = 0;
    }
    return false;
}

static bool put_body(const struct errand *e, struct arena *arena, int64_t wait_ms, struct str *ret)
{
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    buf_put(&text, e->claim.body);
    buf_printf(&text, "\"max\":%lld,\"wait_ms\":%lld}", (long long)e->claim.asked,
               (long long)wait_ms);
    *ret = arena_take(arena, &text);
    return ret->ptr != NULL;
}

bool errand_next_claim(struct errand *e, struct arena *arena, int64_t now_ms,
                       struct errand_step *ret)
{
    struct claim_errand *claim = &e->claim;
    assert(e->count > 0);
    if (claim->body.ptr == NULL ? claim->at == e->count : !takes_more(claim))
        return false;
    if (claim->body.ptr == NULL) {
        ret->shard = e->order[claim->at++];
        return true;
    }
    int64_t wait_ms = 0;
    if (!claim->waits && !find_next(e)) {
        claim->waits = true;
        claim->at = 0;
    }
    claim->is_away = false;
    if (claim->waits) {
        if (claim->count > 0 || !claim->answered || now_ms >= claim->until_ms)
            return false;
        wait_ms = MIN(claim->until_ms - now_ms, (int64_t)SLICE_MS);
    }
    claim->asked_at = claim->at % e->count;
    claim->at = claim->waits ? (claim->at + 1) % e->count : claim->at + 1;
    claim->asked = claim->waits ? claim->most : MIN(claim->share, claim->most - claim->count);
    ret->shard = e->order[claim->asked_at];
    return put_body(e, arena, wait_ms, &ret->body);
}

/* --- what they answer --- */

static int64_t put_jobs(struct buf *out, const struct json *jobs)
{
    for (size_t i = 0; i < json_length(jobs); i++) {
        buf_put(out, out->len > 0 ? STR(",") : STR("{\"jobs\":["));
        json_write_plain(out, json_element(jobs, i));
    }
    return (int64_t)json_length(jobs);
}

static void shard_has_none(struct errand *e)
{
    e->claim.is_empty[e->claim.asked_at] = true;
}

void errand_shard_is_away(struct errand *e)
{
    e->claim.is_away = true;
    shard_has_none(e);
}

int64_t errand_rest_ms(const struct errand *e, int64_t now_ms)
{
    const struct claim_errand *claim = &e->claim;
    if (e->join != JOIN_CLAIM || !claim->waits || !claim->is_away)
        return 0;
    return MAX(MIN(claim->until_ms - now_ms, (int64_t)SLICE_MS), INT64_C(0));
}

void errand_wait_is_over(struct errand *e)
{
    e->claim.until_ms = 0;
}

bool errand_has_answer(const struct errand *e)
{
    return e->claim.answered;
}

bool errand_take_jobs(struct errand *e, const struct http_reply *reply)
{
    struct claim_errand *claim = &e->claim;
    struct json *answer = NULL;
    claim->is_away = reply->status == 503;
    claim->answered |= !claim->is_away;
    if (claim->body.ptr == NULL)
        return !claim->is_away;
    if (reply->status != 200) {
        shard_has_none(e);
        return claim->count == 0 && !claim->is_away;
    }
    if (json_read_kept(reply->body, &answer) != ERR_OK) {
        shard_has_none(e);        /* asked again, it would lease more jobs that nobody gets */
        return claim->count == 0; /* as it is */
    }
    const struct json *jobs = json_member(answer, STR("jobs"));
    int64_t count = (int64_t)json_length(jobs);
    bool as_it_is = claim->has_key && count > 0; /* it may be a replay, and says so */
    if (!as_it_is)
        claim->count += put_jobs(&claim->jobs, jobs);
    if (count < claim->asked)
        shard_has_none(e);
    json_free(answer);
    return as_it_is;
}

struct str errand_jobs(struct errand *e)
{
    struct buf *jobs = &e->claim.jobs;
    if (jobs->len == 0)
        buf_put(jobs, STR("{\"jobs\":["));
    if (!e->claim.is_whole)
        buf_put(jobs, STR("]}"));
    e->claim.is_whole = true;
    return buf_ok(jobs) ? buf_str(jobs) : STR_NONE;
}
