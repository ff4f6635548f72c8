/* GET /metrics. The text is made by a reader thread, one at a time: all requests that arrive while
 * one is being made share the next. After each there is a pause of several times its length, so
 * that scrapers, however many, take a small part of one processor. Nothing is cached: every answer
 * was made after its request came. */
#include "api/metrics.h"

#include "api/node.h"
#include "api/routes.h"

struct metrics_text {
    struct buf text;
    int holders; /* requests that are sent this text */
};

struct metrics_maker {
    struct api *api;
    struct op op;
    bool making;
    size_t engine;             /* that is being asked */
    int64_t begun_ns, next_ns; /* when it began, and when the next may */
    struct call *waiting;      /* for the next, linked by next_scraper */
    struct call *served;       /* by the one under way */
};

struct metrics_maker *metrics_maker_new(struct api *api)
{
    struct metrics_maker *m = calloc(1, sizeof(*m));
    if (m != NULL)
        m->api = api;
    return m;
}

void metrics_maker_free(struct metrics_maker *m)
{
    assert(m == NULL || (!m->making && m->waiting == NULL));
    free(m);
}

void metrics_text_drop(struct metrics_text *t)
{
    if (t == NULL || --t->holders > 0)
        return;
    buf_release(&t->text);
    free(t);
}

static void send_text(struct call *c, struct metrics_text *t)
{
    struct http_reply reply =
        call_reply(c, 200, STR("text/plain; version=0.0.4; charset=utf-8"), buf_str(&t->text));
    t->holders++;
    c->metrics_text = t;
    http_send(c->req, &reply);
}

/* Takes the text over from the op, with one holder; NULL with the op's problem set. */
static struct metrics_text *take_text(struct op *op)
{
    struct metrics_text *t = op->err == ERR_OK ? calloc(1, sizeof(*t)) : NULL;
    if (t == NULL && op->err == ERR_OK)
        op->err = problem_set(&op->problem, ERR_NO_MEMORY, "No memory for the metrics");
    if (t == NULL)
        return NULL;
    t->holders = 1;
    t->text = op->answer.body;
    buf_init(&op->answer.body, 0);
    return t;
}

static void make_if_due(struct metrics_maker *m);

static struct engine *engine_at(const struct api *api, size_t i)
{
    const struct api_node *node = api->config.node;
    if (node != NULL)
        return node->engine_at(node->ctx, i);
    return i == 0 ? api->config.engine : NULL;
}

static void made(struct op *op);

/* The engines one after the other; the last one renders. */
static void ask_next(struct metrics_maker *m)
{
    struct engine *engine = engine_at(m->api, m->engine);
    bool last = engine == NULL || engine_at(m->api, m->engine + 1) == NULL;
    m->engine++;
    op_init(&m->op, NULL);
    m->op.owner = m;
    m->op.done = made;
    if (engine != NULL) {
        engine_read_metrics(engine, &m->op, last);
        return;
    }
    metrics_put_text(m->api->config.metrics, &m->op.answer.body);
    made(&m->op);
}

static void made(struct op *op)
{
    struct metrics_maker *m = op->owner;
    if (op->err == ERR_OK && op->answer.body.len == 0) {
        op_release(op);
        ask_next(m);
        return;
    }
    struct metrics_text *t = take_text(op);
    while (m->served != NULL) {
        struct call *c = m->served;
        m->served = c->next_scraper;
        if (t != NULL)
            send_text(c, t);
        else
            call_send_other_problem(c, &op->problem);
        http_request_drop(c->req);
    }
    metrics_text_drop(t);
    op_release(op);
    int64_t now = env_mono_ns(m->api->config.env);
    m->next_ns =
        now + MIN((now - m->begun_ns) * METRICS_REST, METRICS_REST_MS_MAX * INT64_C(1000000));
    m->making = false;
    make_if_due(m);
}

static void make_if_due(struct metrics_maker *m)
{
    int64_t now = env_mono_ns(m->api->config.env);
    if (m->making || m->waiting == NULL || now < m->next_ns)
        return;
    m->making = true;
    m->begun_ns = now;
    m->served = m->waiting;
    m->waiting = NULL;
    m->engine = 0;
    ask_next(m);
}

static void direct_metrics(struct call *c)
{
    struct metrics_maker *m = c->api->metrics;
    http_request_hold(c->req); /* until made() */
    c->next_scraper = m->waiting;
    m->waiting = c;
    make_if_due(m);
}

const struct route METRICS_ROUTES[] = {
    {"GET", "/metrics", MAY_READ, ROUTE_NO_TENANT | ROUTE_SERVER_KEY | ROUTE_ASIDE,
     .direct = direct_metrics, .scope = OF_NODE},
    {.method = NULL},
};

void metrics_tick(struct api *api)
{
    make_if_due(api->metrics);
}

int metrics_timeout_ms(const struct api *api)
{
    const struct metrics_maker *m = api->metrics;
    if (m->making || m->waiting == NULL)
        return -1;
    int64_t left_ns = m->next_ns - env_mono_ns(api->config.env);
    return left_ns > 0 ? (int)(left_ns / 1000000 + 1) : 0;
}
