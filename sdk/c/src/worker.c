#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "definition.h"
#include "entity.h"
#include "error.h"
#include "transport.h"

#define WAIT_MS 20000
#define CANCEL_MS 1000 /* for handlers that look at pawl_ctx_cancelled, after the grace */
#define WORKFLOW_ATTEMPTS 20

void worker_lock(struct pawl_worker *worker)
{
    pthread_mutex_lock(&worker->state.lock);
}

void worker_unlock(struct pawl_worker *worker)
{
    pthread_mutex_unlock(&worker->state.lock);
}

void worker_log(const struct pawl_worker *worker, const char *text, ...)
{
    if (!worker->log)
        return;
    char line[2048];
    va_list args;
    va_start(args, text);
    vsnprintf(line, sizeof line, text, args);
    va_end(args);
    worker->log(worker->log_user, line);
}

void worker_mistake(struct pawl_worker *worker, const char *mistake)
{
    if (!*worker->mistake)
        copy_text(worker->mistake, sizeof worker->mistake, mistake);
}

/* Stops claiming; the lock is held. */
static void stop(struct pawl_worker *worker)
{
    state_stop(&worker->state);
    if (worker->claim_abort)
        abort_now(worker->claim_abort);
    if (worker->wake_fd >= 0 && write(worker->wake_fd, "", 1) < 0)
        worker_log(worker, "The worker could not be woken: %s", strerror(errno));
}

void worker_fail(struct pawl_worker *worker, const struct pawl_error *error)
{
    if (worker->failure.kind == PAWL_OK)
        error_copy(&worker->failure, error);
    worker_log(worker, "The worker stops: %s %s", error->code, error->message);
    stop(worker);
}

/* --- waiting, and threads of handlers --- */

static struct timespec timespec_of(double at_ms)
{
    return (struct timespec){.tv_sec = (time_t)(at_ms / 1e3),
                             .tv_nsec = (long)(fmod(at_ms, 1e3) * 1e6)};
}

/* Waits until something happens, or until a time of the monotonic clock (0: none). The lock is
 * held. */
static void wait_change(struct worker_state *state, double until_ms)
{
    struct timespec at = timespec_of(until_ms);
    if (until_ms > 0)
        pthread_cond_timedwait(&state->changed, &state->lock, &at);
    else
        pthread_cond_wait(&state->changed, &state->lock);
}

static double now_of(const struct pawl_worker *worker)
{
    return worker->client->ports.now_ms(worker->client->ports.at);
}

static void free_worker(struct pawl_worker *worker)
{
    while (worker->tasks) {
        struct task *task = worker->tasks;
        worker->tasks = task->next;
        free(task->name);
        free(task);
    }
    while (worker->entities) {
        struct pawl_entity_type *type = worker->entities;
        worker->entities = type->next;
        entity_type_free(type);
    }
    for (int i = 0; i < LANES; i++)
        lane_end(&worker->lanes[i]);
    json_decref(worker->definitions);
    abort_free(worker->claim_abort);
    pawl_error_clear(&worker->failure);
    state_end(&worker->state);
    pawl_client_free(worker->client);
    free(worker);
}

static void drop_worker(struct pawl_worker *worker)
{
    worker_lock(worker);
    int left = --worker->users;
    worker_unlock(worker);
    if (left == 0)
        free_worker(worker);
}

struct job_thread {
    struct pawl_worker *worker;
    struct held *held;
};

static void *job_main(void *at)
{
    struct job_thread job = *(struct job_thread *)at;
    free(at);
    worker_run_job(job.worker, job.held);
    worker_lock(job.worker);
    held_drop(job.held);
    worker_unlock(job.worker);
    drop_worker(job.worker);
    return NULL;
}

/* Without a thread the job is forgotten: its lease expires. */
static void spawn(void *at, struct held *held)
{
    struct pawl_worker *worker = at;
    struct job_thread *job = malloc(sizeof *job);
    pthread_attr_t detached;
    pthread_t thread;
    worker_lock(worker);
    worker->users++;
    worker_unlock(worker);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (job)
        *job = (struct job_thread){.worker = worker, .held = held};
    if (!job || pthread_create(&thread, &detached, job_main, job) != 0) {
        worker_log(worker, "There is no thread for job %s", held->job_id);
        free(job);
        worker_lock(worker);
        worker->users--;
        state_finish(&worker->state, held, NULL);
        held_drop(held);
        worker_unlock(worker);
    }
    pthread_attr_destroy(&detached);
}

/* The handler sees pawl_ctx_cancelled; a thread cannot be stopped from outside. */
static void cancelled(void *at, struct held *held)
{
    worker_log(at, "Job %s is gone", held->job_id);
}

static void rest(void *at, struct held *held, double ms)
{
    struct pawl_worker *worker = at;
    double end_ms = now_of(worker) + ms;
    worker_lock(worker);
    while (!held->cancelled && !worker->grace_over && now_of(worker) < end_ms)
        wait_change(&worker->state, end_ms);
    worker_unlock(worker);
}

/* --- making and registering --- */

static json_t *queues_of(const struct pawl_worker_options *options)
{
    static const char *const usual[] = {"default", NULL};
    const char *const *queues = options->queues && options->queues[0] ? options->queues : usual;
    json_t *list = json_array();
    for (; *queues; queues++)
        json_array_append_new(list, json_string(*queues));
    return list;
}

static bool begin(struct pawl_worker *worker, const struct pawl_worker_options *options)
{
    char host[64] = "", key[KEY_SIZE];
    gethostname(host, sizeof host - 1);
    worker->client->ports.new_key(worker->client->ports.at, key);
    char *made = format("%s-%ld-%.8s", host, (long)getpid(), key);
    bool done = state_init(&worker->state,
                           options->worker_id ? options->worker_id
                           : made             ? made
                                              : key,
                           queues_of(options), options->concurrency > 0 ? options->concurrency : 10,
                           options->lease_ms > 0 ? options->lease_ms : 30000, WAIT_MS);
    free(made);
    worker->claim_abort = abort_new();
    for (enum lane_kind kind = 0; kind < LANES; kind++)
        lane_begin(&worker->lanes[kind], worker, kind);
    return done && worker->claim_abort && worker->definitions;
}

enum pawl_err pawl_worker_new(struct pawl_client *client, const struct pawl_worker_options *options,
                              struct pawl_worker **ret_worker, struct pawl_error *error)
{
    static const struct pawl_worker_options none;
    options = options ? options : &none;
    struct pawl_worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return error_no_memory(error);
    *worker = (struct pawl_worker){
        .client = client_share(client),
        .definitions = json_array(),
        .users = 1,
        .wake_fd = -1,
        .no_apply = options->no_apply,
        .log = options->log,
        .log_user = options->log_user,
        .grace_ms = options->grace_ms > 0 ? (double)options->grace_ms : 30000,
        .ports = {.at = worker, .spawn = spawn, .cancelled = cancelled, .rest = rest}};
    if (!begin(worker, options)) {
        free_worker(worker);
        return error_no_memory(error);
    }
    *ret_worker = worker;
    return PAWL_OK;
}

void pawl_worker_free(struct pawl_worker *worker)
{
    if (!worker)
        return;
    if (worker->started && !worker->joined) {
        pawl_worker_stop(worker);
        (void)!pawl_worker_join(worker, NULL);
    }
    drop_worker(worker);
}

void pawl_worker_task(struct pawl_worker *worker, const char *name, pawl_task_fn *handler,
                      void *user)
{
    struct task *task = calloc(1, sizeof *task);
    if (!task) {
        worker_mistake(worker, "Out of memory");
        return;
    }
    *task = (struct task){
        .next = worker->tasks, .name = format("%s", name), .handler = handler, .user = user};
    worker->tasks = task;
}

/* A definition with one step, which runs the function. */
static void add_definition(struct pawl_worker *worker, const char *id, json_t *options,
                           const char *problem)
{
    struct pawl_error error = {0};
    json_t *retry = json_incref(json_object_get(options, "retry")), *definition = NULL;
    json_object_del(options, "retry");
    if (options && !json_object_get(options, "queue"))
        json_object_set(options, "queue", json_array_get(worker->state.queues, 0));
    struct pawl_workflow *workflow = workflow_new(id, options, problem);
    json_t *step = json_pack("{s:s, s:o}", "handler", id, "retry",
                             retry ? retry : json_integer(WORKFLOW_ATTEMPTS));
    if (workflow)
        workflow_step(workflow, "task", id, step, "");
    if (pawl_workflow_json(workflow, &definition, &error) == PAWL_OK)
        json_array_append_new(worker->definitions, definition);
    else
        worker_mistake(worker, error.message);
    pawl_workflow_free(workflow);
    pawl_error_clear(&error);
}

void pawl_worker_workflow(struct pawl_worker *worker, const char *id, pawl_task_fn *function,
                          void *user, const char *options, ...)
{
    char problem[256] = "";
    va_list args;
    va_start(args, options);
    json_t *packed = pack_options(options, args, problem, sizeof problem);
    va_end(args);
    add_definition(worker, id, packed, problem);
    pawl_worker_task(worker, id, function, user);
}

struct pawl_entity_type *pawl_worker_entity(struct pawl_worker *worker, const char *type,
                                            json_t *initial, const char *options, ...)
{
    char problem[256] = "";
    va_list args;
    va_start(args, options);
    json_t *packed = pack_options(options, args, problem, sizeof problem);
    va_end(args);
    if (!packed)
        worker_mistake(worker, problem);
    struct pawl_entity_type *made = entity_type_new(type, initial, packed ? packed : json_object());
    if (!made)
        return NULL;
    made->next = worker->entities;
    worker->entities = made;
    return made;
}

/* --- serving --- */

static enum pawl_err apply_all(struct pawl_worker *worker, struct pawl_error *error)
{
    size_t i;
    json_t *definition;
    enum pawl_err result = PAWL_OK;
    json_array_foreach (worker->definitions, i, definition)
        if (result == PAWL_OK)
            result = pawl_apply(worker->client, json_incref(definition), NULL, error);
    for (const struct pawl_entity_type *type = worker->entities; type && result == PAWL_OK;
         type = type->next) {
        json_t *args = json_copy(type->options);
        set_text(args, "type", type->type);
        set_text(args, "handler", type->type);
        json_object_set(args, "queue", json_array_get(worker->state.queues, 0));
        result = pawl_call(worker->client, "putEntityType", args, NULL, error);
    }
    return result;
}

static void wait_as_wished(struct pawl_worker *worker, const struct lane_wish *wish)
{
    struct worker_state *state = &worker->state;
    worker_lock(worker);
    while (state->version == wish->version && !state_done(state) &&
           !(wish->until_ms > 0 && now_of(worker) >= wish->until_ms))
        wait_change(state, wish->until_ms);
    worker_unlock(worker);
}

static void *lane_main(void *at)
{
    struct lane *lane = at;
    const struct ports *ports = &lane->worker->client->ports;
    for (;;) {
        struct lane_wish wish = lane_next(lane);
        if (wish.kind == LANE_END)
            return NULL;
        if (wish.kind == LANE_WAIT) {
            wait_as_wished(lane->worker, &wish);
            continue;
        }
        struct response response = {0};
        struct pawl_error error = {0};
        enum pawl_err result =
            ports->exchange(ports->at, &wish.request, wish.abort, &response, &error);
        request_free(&wish.request);
        lane_answer(lane, result == PAWL_OK ? &response : NULL, &error);
        response_free(&response);
        pawl_error_clear(&error);
    }
}

enum pawl_err pawl_worker_start(struct pawl_worker *worker, struct pawl_error *error)
{
    worker_lock(worker);
    bool first = !worker->started;
    worker->started = true;
    worker_unlock(worker);
    if (!first)
        return error_set(error, PAWL_ERR_BAD_ARGUMENT,
                         "This worker has been started before: make another one");
    worker->joined = true; /* until there is something to join */
    if (*worker->mistake)
        return error_set(error, PAWL_ERR_BAD_ARGUMENT, "%s", worker->mistake);
    enum pawl_err result = worker->no_apply ? PAWL_OK : apply_all(worker, error);
    int threads = 0;
    while (result == PAWL_OK && threads < LANES) {
        if (pthread_create(&worker->threads[threads], NULL, lane_main, &worker->lanes[threads]) !=
            0)
            result = error_set(error, PAWL_ERR_NO_MEMORY, "There are no threads for the worker");
        else
            threads++;
    }
    if (result == PAWL_OK) {
        worker->joined = false;
        return PAWL_OK;
    }
    worker_lock(worker);
    stop(worker);
    state_abandon(&worker->state);
    worker_unlock(worker);
    while (threads > 0)
        pthread_join(worker->threads[--threads], NULL);
    return result;
}

void pawl_worker_stop(struct pawl_worker *worker)
{
    worker_lock(worker);
    stop(worker);
    worker_unlock(worker);
}

/* Waits until nothing is left to do, until a time, or until the worker has failed. The lock is
 * held. */
static void wait_until_done(struct pawl_worker *worker, double end_ms)
{
    while (!state_done(&worker->state) && worker->failure.kind == PAWL_OK &&
           now_of(worker) < end_ms)
        wait_change(&worker->state, end_ms);
}

static enum pawl_err failure_of(struct pawl_worker *worker, struct pawl_error *error)
{
    worker_lock(worker);
    enum pawl_err kind = worker->failure.kind;
    if (kind != PAWL_OK)
        error_copy(error, &worker->failure);
    worker_unlock(worker);
    return kind;
}

enum pawl_err pawl_worker_join(struct pawl_worker *worker, struct pawl_error *error)
{
    if (worker->joined || !worker->started)
        return failure_of(worker, error);
    worker_lock(worker);
    while (!worker->state.stopping)
        wait_change(&worker->state, 0);
    double end_ms = now_of(worker) + worker->grace_ms;
    wait_until_done(worker, end_ms);
    worker->grace_over = true;
    state_touch(&worker->state);
    wait_until_done(worker, fmin(end_ms, now_of(worker)) + CANCEL_MS);
    state_abandon(&worker->state);
    worker_unlock(worker);
    for (int i = 0; i < LANES; i++)
        abort_now(worker->lanes[i].abort);
    for (int i = 0; i < LANES; i++)
        pthread_join(worker->threads[i], NULL);
    worker->joined = true;
    return failure_of(worker, error);
}

/* --- signals --- */

static _Atomic int signal_fd = -1;

static void on_signal(int number)
{
    int saved = errno;
    (void)number;
    if (write(signal_fd, "", 1) < 0)
        signal_fd = -1; /* a pipe of ours has room for one byte */
    errno = saved;
}

static void wait_for_byte(int fd)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    while (poll(&polled, 1, -1) < 0 && errno == EINTR)
        continue;
}

/* Serves until the pipe has a byte: from a signal, or because the worker stops. */
static enum pawl_err serve(struct pawl_worker *worker, const int fds[2], struct pawl_error *error)
{
    worker_lock(worker);
    bool stopping = worker->state.stopping;
    worker->wake_fd = fds[1];
    worker_unlock(worker);
    enum pawl_err result = pawl_worker_start(worker, error);
    if (result != PAWL_OK)
        return result;
    if (!stopping)
        wait_for_byte(fds[0]);
    pawl_worker_stop(worker);
    return pawl_worker_join(worker, error);
}

enum pawl_err pawl_worker_run(struct pawl_worker *worker, struct pawl_error *error)
{
    int fds[2], none = -1;
    if (pipe(fds) != 0)
        return error_set(error, PAWL_ERR_NO_MEMORY, "There is no pipe for the worker: %s",
                         strerror(errno));
    for (int i = 0; i < 2; i++) {
        fcntl(fds[i], F_SETFD, FD_CLOEXEC);
        fcntl(fds[i], F_SETFL, O_NONBLOCK);
    }
    enum pawl_err result = PAWL_ERR_BAD_ARGUMENT;
    if (!atomic_compare_exchange_strong(&signal_fd, &none, fds[1])) {
        error_set(error, result, "Another worker of this process runs: use pawl_worker_start");
    } else {
        struct sigaction ours = {.sa_handler = on_signal}, term, interrupt;
        sigaction(SIGTERM, &ours, &term);
        sigaction(SIGINT, &ours, &interrupt);
        result = serve(worker, fds, error);
        sigaction(SIGTERM, &term, NULL);
        sigaction(SIGINT, &interrupt, NULL);
        signal_fd = -1;
    }
    worker_lock(worker);
    worker->wake_fd = -1;
    worker_unlock(worker);
    close(fds[0]);
    close(fds[1]);
    return result;
}
