/* Starters and workers that outlive their server. */
#include "cli/demo/crash_load.h"

#include "base/json_tree.h"
#include "base/limits.h"

enum {
    LEASE_MS = 1000, /* a claim whose answer died with the server is handed out again soon */
    CLAIM_WAIT_MS = 200,
    TIMEOUT_MS = 5000,
    PAUSE_MS = 20, /* while there is no server */
    START_PAUSE_MS = 3,
};

/* One thread's connection. */
struct caller {
    struct crash_load *load;
    struct client client;
    bool is_open;
    int generation;
    struct reply reply;
    struct buf body;
    struct json_out out;
};

static void caller_init(struct caller *c, struct crash_load *load)
{
    *c = (struct caller){.load = load};
    reply_init(&c->reply);
    buf_init(&c->body, HTTP_BODY_MAX);
}

static void caller_release(struct caller *c)
{
    if (c->is_open)
        client_close(&c->client);
    reply_release(&c->reply);
    buf_release(&c->body);
}

/* Turns to the server of today. */
static bool reach(struct caller *c)
{
    char url[sizeof(c->load->url)], key[sizeof(c->load->key)];
    pthread_mutex_lock(&c->load->lock);
    int generation = c->load->generation;
    memcpy(url, c->load->url, sizeof(url));
    memcpy(key, c->load->key, sizeof(key));
    pthread_mutex_unlock(&c->load->lock);
    if (c->is_open && generation == c->generation)
        return true;
    if (c->is_open)
        client_close(&c->client);
    struct client_setup setup = {
        .url = url, .api_key = key, .tenant = "default", .timeout_ms = TIMEOUT_MS};
    c->is_open = true;
    c->generation = generation;
    return client_open(&c->client, &setup);
}

static void begin_body(struct caller *c)
{
    buf_clear(&c->body);
    c->out = json_out_to(&c->body);
    json_open(&c->out, NULL, '{');
}

/* Tries until a server has answered and meant it; false when `stop` came first. */
static bool send_request(struct caller *c, const char *path, const char *key,
                         const atomic_bool *stop)
{
    for (;;) {
        struct request req = {.method = "POST",
                              .path = str_of(path),
                              .body = buf_str(&c->body),
                              .idempotency_key = key,
                              .wait_ms = CLAIM_WAIT_MS};
        bool answered = reach(c) && client_send(&c->client, &req, &c->reply) == CLI_DONE;
        if (answered && c->reply.status != 503 && c->reply.status != 429)
            return true;
        if (stop != NULL && atomic_load(stop))
            return false;
        client_pause(PAUSE_MS);
    }
}

/* --- starting --- */

static void start_one(struct caller *c, int number)
{
    char key[32];
    const struct crash_start *known = &c->load->starts[number];
    begin_body(c);
    json_open(&c->out, "input", '{');
    json_add_int(&c->out, "n", number);
    json_close(&c->out, '}');
    json_close(&c->out, '}');
    (void)snprintf(key, sizeof(key), "order-%d", number);
    if (!send_request(c, "/api/v1/workflows/crash/runs", key, NULL))
        return;
    json_t *answer = json_loadb(c->reply.body.ptr, c->reply.body.len, 0, NULL);
    const char *id = json_string_value(json_object_get(answer, "run_id"));
    if (id != NULL && known->run_id[0] == '\0') {
        (void)snprintf(c->load->starts[number].run_id, sizeof(known->run_id), "%s", id);
        atomic_fetch_add(&c->load->acknowledged, 1);
    } else {
        atomic_fetch_add(&c->load->repeated, 1);
        if (id == NULL || strcmp(id, known->run_id) != 0)
            atomic_fetch_add(&c->load->different, 1);
    }
    json_decref(answer);
}

/* Every third start is sent twice, as a client does that is not sure. */
static void *run_starter(void *ctx)
{
    struct caller c;
    caller_init(&c, ctx);
    while (!atomic_load(&c.load->stop_starting)) {
        int number = atomic_fetch_add(&c.load->next, 1);
        if (number >= CRASH_STARTS_MAX)
            break;
        start_one(&c, number);
        if (number % 3 == 0)
            start_one(&c, number);
        client_pause(START_PAUSE_MS);
    }
    caller_release(&c);
    return NULL;
}

/* --- working --- */

static void complete(struct caller *c, const json_t *job)
{
    char path[96];
    json_int_t number = json_integer_value(json_object_get(json_object_get(job, "input"), "n"));
    begin_body(c);
    json_add_text(&c->out, "lease_token", json_str(json_object_get(job, "lease_token")));
    json_open(&c->out, "output", '{');
    json_add_int(&c->out, "n", number);
    json_close(&c->out, '}');
    json_close(&c->out, '}');
    (void)snprintf(path, sizeof(path), "/api/v1/jobs/%s/complete",
                   json_string_value(json_object_get(job, "job_id")));
    if (!send_request(c, path, NULL, &c->load->stop_working))
        return;
    if (c->reply.status != 200) {
        atomic_fetch_add(&c->load->stale, 1);
        return;
    }
    atomic_fetch_add(&c->load->completed, 1);
    if (number >= 0 && number < CRASH_STARTS_MAX)
        atomic_store(&c->load->starts[number].is_completed, true);
}

static void *run_worker(void *ctx)
{
    struct caller c;
    caller_init(&c, ctx);
    while (!atomic_load(&c.load->stop_working)) {
        size_t i;
        json_t *job;
        begin_body(&c);
        json_add_text(&c.out, "worker_id", STR("demo"));
        json_add_int(&c.out, "max", 8);
        json_add_int(&c.out, "wait_ms", CLAIM_WAIT_MS);
        json_add_int(&c.out, "lease_ms", LEASE_MS);
        json_close(&c.out, '}');
        if (!send_request(&c, "/api/v1/jobs/claim", NULL, &c.load->stop_working))
            break;
        json_t *answer = json_loadb(c.reply.body.ptr, c.reply.body.len, 0, NULL);
        json_array_foreach (json_object_get(answer, "jobs"), i, job)
            complete(&c, job);
        json_decref(answer);
    }
    caller_release(&c);
    return NULL;
}

/* --- all of it --- */

bool crash_load_begin(struct crash_load *load)
{
    load->starts = calloc(CRASH_STARTS_MAX, sizeof(*load->starts));
    if (load->starts == NULL)
        return false;
    while (load->thread_count < ARRAY_LEN(load->threads)) {
        bool starts = load->thread_count < CRASH_STARTERS;
        if (pthread_create(&load->threads[load->thread_count], NULL,
                           starts ? run_starter : run_worker, load) != 0)
            return false;
        load->thread_count++;
    }
    return true;
}

void crash_load_point_to(struct crash_load *load, const char *url, const char *key)
{
    pthread_mutex_lock(&load->lock);
    load->generation++;
    (void)snprintf(load->url, sizeof(load->url), "%s", url);
    (void)snprintf(load->key, sizeof(load->key), "%s", key);
    pthread_mutex_unlock(&load->lock);
}

static void join(struct crash_load *load, size_t from, size_t to)
{
    for (size_t i = from; i < MIN(to, load->thread_count); i++)
        pthread_join(load->threads[i], NULL);
}

void crash_load_stop_starting(struct crash_load *load)
{
    atomic_store(&load->stop_starting, true);
    join(load, 0, CRASH_STARTERS);
}

void crash_load_end(struct crash_load *load)
{
    bool joined = atomic_load(&load->stop_starting);
    atomic_store(&load->stop_starting, true);
    atomic_store(&load->stop_working, true);
    join(load, joined ? CRASH_STARTERS : 0, ARRAY_LEN(load->threads));
    free(load->starts);
    load->starts = NULL;
}
