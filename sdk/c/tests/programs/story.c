/* The story: orders that are paid, approved and shipped or refunded, and rewards that count each of them once. `worker` runs
 * them; `client` starts them, decides and waits. Both are killed, or their server is, at any moment.
 *
 * story worker BANK        story client ORDERS */
#include <errno.h>
#include <fcntl.h>
#include <pawl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *bank;
static struct pawl_client *client;
static const char *const customers[] = {"ada", "bob", "eve"};

static void must(bool holds, const char *what, const struct pawl_error *error)
{
    if (holds)
        return;
    fprintf(stderr, "%s: %s %s\n", what, error ? error->code : "", error ? error->message : "");
    exit(1);
}

/* A client that outlives every kill. */
static void connect_patiently(void)
{
    struct pawl_retry retry = PAWL_RETRY_DEFAULT;
    struct pawl_budget budget = {1e6, 1e6, 1};
    struct pawl_error error = {0};
    retry.deadline_ms = 300000;
    must(pawl_client_new(&(struct pawl_client_options){.retry = &retry, .budget = &budget}, &client,
                         &error) == PAWL_OK,
         "client", &error);
}

/* --- the worker --- */

static void append(const char *name, const char *line)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", bank, name);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
    must(fd >= 0 && write(fd, line, strlen(line)) == (ssize_t)strlen(line), path, NULL);
    close(fd);
}

/* A service of its own: does what it is asked once per key, and remembers every call. Every other first call fails. */
static enum pawl_err pay(struct pawl_ctx *ctx, void *what, json_t **ret_output)
{
    char line[256], path[512];
    snprintf(line, sizeof line, "%s %s\n", pawl_ctx_key(ctx), (const char *)what);
    append("calls", line);
    snprintf(path, sizeof path, "%s/%s", bank, pawl_ctx_key(ctx));
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    bool first = fd >= 0;
    if (first)
        close(fd);
    must(first || errno == EEXIST, path, NULL);
    if (first && strlen(pawl_ctx_key(ctx)) % 2 == 0 && pawl_ctx_key(ctx)[0] % 2 == 0)
        return pawl_ctx_fail(ctx, "NO_ANSWER", "the bank did not answer", true);
    *ret_output = json_pack("{s:s, s:s}", "what", what, "key", pawl_ctx_key(ctx));
    return PAWL_OK;
}

static enum pawl_err reward(struct pawl_ctx *ctx, void *customer, json_t **ret_output)
{
    struct pawl_error error = {0};
    (void)ret_output;
    enum pawl_err result =
        pawl_signal_entity(client, "account", customer, "add", json_pack("{s:i}", "points", 10),
                           pawl_ctx_key(ctx), NULL, &error);
    if (result != PAWL_OK)
        result = pawl_ctx_raise(ctx, &error);
    pawl_error_clear(&error);
    return result;
}

static enum pawl_err order(struct pawl_ctx *ctx, json_t *input, void *user, json_t **ret_output)
{
    static const struct pawl_step_retry retry = {
        .max_attempts = 1000, .backoff_ms = 20, .max_backoff_ms = 100};
    const char *customer = json_string_value(json_object_get(input, "customer"));
    char prompt[64], buyer[16];
    json_t *charge = NULL, *paid = NULL, *answer = NULL, *ship = NULL;
    (void)user;
    snprintf(buyer, sizeof buyer, "%s", customer);
    snprintf(prompt, sizeof prompt, "Ship order %d?",
             (int)json_integer_value(json_object_get(input, "n")));
    enum pawl_err result = pawl_ctx_step(ctx, "charge", pay, "charge", &retry, &charge);
    if (result == PAWL_OK)
        result = pawl_ctx_sleep(ctx, "cool-off", 50);
    if (result == PAWL_OK)
        result = pawl_ctx_wait_signal(ctx, "paid", 0, &paid);
    if (result == PAWL_OK)
        result = pawl_ctx_approval(ctx, "ok", prompt, &answer, "{s:O}", "content", charge);
    if (result == PAWL_ERR_REJECTED) { /* the compensation */
        result = pawl_ctx_step(ctx, "refund", pay, "refund", &retry, NULL);
        if (result == PAWL_OK)
            *ret_output = json_pack("{s:s, s:O}", "ended", "refunded", "paid", paid);
    } else if (result == PAWL_OK) {
        result = pawl_ctx_step(ctx, "ship", pay, "ship", &retry, &ship);
        if (result == PAWL_OK)
            result = pawl_ctx_step(ctx, "reward", reward, buyer, &retry, NULL);
        if (result == PAWL_OK)
            *ret_output = json_pack("{s:s, s:O}", "ended", "shipped", "paid", paid);
    }
    json_decref(charge);
    json_decref(paid);
    json_decref(answer);
    json_decref(ship);
    return result;
}

static enum pawl_err add(struct pawl_entity *entity, json_t *payload, void *user,
                         json_t **ret_result)
{
    json_t *state = pawl_entity_state(entity);
    (void)user;
    (void)ret_result;
    json_int_t points = json_integer_value(json_object_get(state, "points")) +
                        json_integer_value(json_object_get(payload, "points"));
    json_object_set_new(state, "points", json_integer(points));
    json_object_set_new(state, "signals",
                        json_integer(json_integer_value(json_object_get(state, "signals")) + 1));
    return PAWL_OK;
}

static int work(void)
{
    struct pawl_worker *worker = NULL;
    struct pawl_error error = {0};
    struct pawl_worker_options options = {
        .queues = (const char *const[]){"story", NULL}, .concurrency = 4, .lease_ms = 1000};
    must(pawl_worker_new(client, &options, &worker, &error) == PAWL_OK, "worker", &error);
    pawl_worker_workflow(worker, "order", order, NULL, "{s:{s:i, s:i, s:i}}", "retry",
                         "max_attempts", 1000, "backoff_ms", 50, "max_backoff_ms", 200);
    struct pawl_entity_type *account = pawl_worker_entity(
        worker, "account", json_pack("{s:i, s:i}", "points", 0, "signals", 0), NULL);
    pawl_entity_on(account, "add", add, NULL);
    must(pawl_worker_run(worker, &error) == PAWL_OK, "run", &error);
    pawl_worker_free(worker);
    return 0;
}

/* --- the client --- */

static atomic_bool over;

static int number_in(const char *prompt)
{
    return atoi(prompt + strcspn(prompt, "0123456789"));
}

/* A person who ships even orders and says no to odd ones, each of them twice. */
static bool decide(json_t *event, void *user)
{
    json_t *approval = NULL;
    struct pawl_error error = {0};
    (void)user;
    if (strcmp(json_string_value(json_object_get(event, "type")), "approval.requested") != 0)
        return !over;
    const char *job_id =
        json_string_value(json_object_get(json_object_get(event, "data"), "job_id"));
    must(pawl_call(client, "getApproval", json_pack("{s:s}", "job_id", job_id), &approval,
                   &error) == PAWL_OK,
         "approval", &error);
    bool ships = number_in(json_string_value(json_object_get(approval, "prompt"))) % 2 == 0;
    for (int i = 0; i < 2; i++) {
        enum pawl_err result = ships ? pawl_approve(client, job_id, NULL, NULL, NULL, &error)
                                     : pawl_reject(client, job_id, "no", NULL, NULL, &error);
        must(result == PAWL_OK, "decide", &error);
    }
    json_decref(approval);
    return true;
}

static void *person(void *user)
{
    struct pawl_error error = {0};
    (void)user;
    must(pawl_events(client, "approval.requested,run.succeeded", "0-0", decide, NULL, &error) ==
             PAWL_OK,
         "events", &error);
    return NULL;
}

/* An order that is started twice with one key is one order. The caller frees its id. */
static char *begin(int n)
{
    char key[32];
    json_t *first = NULL, *again = NULL;
    struct pawl_error error = {0};
    snprintf(key, sizeof key, "order-%d", n);
    for (json_t **started = &first; started; started = started == &first ? &again : NULL)
        must(pawl_start(client, "order",
                        json_pack("{s:i, s:s}", "n", n, "customer", customers[n % 3]),
                        &(struct pawl_start_options){.key = key}, started, &error) == PAWL_OK,
             "start", &error);
    must(json_equal(json_object_get(first, "run_id"), json_object_get(again, "run_id")),
         "two runs for one key", NULL);
    char *id = strdup(json_string_value(json_object_get(first, "run_id")));
    for (int i = 0; i < 2; i++)
        must(pawl_signal(client, id, "paid", json_pack("{s:i}", "n", n), "paid", NULL, &error) ==
                 PAWL_OK,
             "signal", &error);
    json_decref(first);
    json_decref(again);
    return id;
}

/* Prints each run as a line of JSON when all are over. */
static int buy(int orders)
{
    pthread_t thread;
    struct pawl_error error = {0};
    pthread_create(&thread, NULL, person, NULL);
    char *ids[1000];
    for (int n = 0; n < orders; n++)
        ids[n] = begin(n);
    for (int n = 0; n < orders; n++) {
        json_t *run = NULL;
        over = n == orders - 1;
        must(pawl_wait(client, ids[n], 300000, &run, &error) == PAWL_OK, "wait", &error);
        char *line = json_dumps(run, JSON_COMPACT);
        puts(line);
        free(line);
        json_decref(run);
        free(ids[n]);
    }
    return 0;
}

int main(int argc, char **argv)
{
    must(argc == 3, "usage: story worker BANK | client ORDERS", NULL);
    connect_patiently();
    bank = argv[2];
    if (strcmp(argv[1], "client") == 0) {
        int result = buy(atoi(argv[2]));
        fflush(stdout);
        _exit(result); /* the person still listens, with the client */
    }
    int result = work();
    pawl_client_free(client);
    return result;
}
