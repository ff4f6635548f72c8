/* pawl demo crash: a server that is killed again and again, and what it kept. */
#include "cli/demo/crash_load.h"
#include "cli/demo/demo.h"
#include "cli/private_server.h"
#include "cli/term/term.h"

#include <errno.h>
#include <unistd.h>

enum { KILLS_DEFAULT = 5, BETWEEN_MS_MIN = 300, BETWEEN_MS_SPREAD = 500, QUIET_MS_MAX = 60 * 1000 };

const struct option OPTIONS_DEMO_CRASH[] = {
    {.name = "kills",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .max = 1000,
     .help = "Kill the server this often (default 5)"},
    {.name = NULL},
};

static const struct column COLUMNS[] = {
    {"CHECK", "check"}, {"CHECKED", "checked"}, {"WRONG", "wrong"}};

struct crash {
    char folder[64];
    char store[96];
    struct private_server server;
    struct crash_load load;
    struct client client; /* for the checks */
    bool has_client;
    struct reply reply;
    json_t *answer;
    json_t *rows;
    int64_t wrong;
};

/* --- calls of the checks --- */

static bool call(struct crash *c, const char *method, const char *path, const char *body)
{
    struct request req = {.method = method, .path = str_of(path), .body = str_of(body)};
    json_decref(c->answer);
    c->answer = NULL;
    if (client_send(&c->client, &req, &c->reply) != CLI_DONE || c->reply.status >= 300)
        return false;
    c->answer = json_loadb(c->reply.body.ptr, c->reply.body.len, 0, NULL);
    return c->answer != NULL;
}

static bool start_server(struct crash *c)
{
    if (private_server_start(&c->server, c->store) != CLI_DONE)
        return false;
    struct client_setup setup = {.url = c->server.url,
                                 .api_key = c->server.key,
                                 .tenant = "default",
                                 .timeout_ms = QUIET_MS_MAX};
    if (c->has_client)
        client_close(&c->client);
    c->has_client = true;
    if (!client_open(&c->client, &setup))
        return false;
    crash_load_point_to(&c->load, c->server.url, c->server.key);
    return true;
}

static bool prepare(struct crash *c)
{
    return start_server(c) && call(c, "PUT", "/api/v1/tenants/default", "{}") &&
           call(c, "PUT", "/api/v1/workflows/crash",
                "{\"steps\":[{\"name\":\"work\",\"type\":\"task\",\"handler\":\"demo\","
                "\"input\":{\"n\":\"${input.n}\"},\"retry\":{\"max_attempts\":100,"
                "\"backoff_ms\":10}}]}");
}

/* --- crashing --- */

static bool kill_and_restart(struct crash *c, int64_t number, int64_t kills)
{
    uint32_t dice = 0;
    env_random(&ENV_SYSTEM, &dice, sizeof(dice));
    client_pause(BETWEEN_MS_MIN + dice % BETWEEN_MS_SPREAD);
    private_server_kill(&c->server);
    printf("kill -9 %lld of %lld: %d starts and %d results acknowledged so far\n",
           (long long)number, (long long)kills, atomic_load(&c->load.acknowledged),
           atomic_load(&c->load.completed));
    (void)fflush(stdout);
    return start_server(c);
}

/* Until no run is active. */
static bool await_end(struct crash *c)
{
    int64_t deadline = env_mono_ms(&ENV_SYSTEM) + QUIET_MS_MAX;
    while (env_mono_ms(&ENV_SYSTEM) < deadline) {
        if (call(c, "GET", "/api/v1/tenants/default", "") &&
            json_integer_value(json_object_get(c->answer, "active_runs")) == 0)
            return true;
        client_pause(50);
    }
    fprintf(stderr, "pawl: Some runs have not ended\n");
    return false;
}

/* --- checking --- */

static void add_check(struct crash *c, const char *check, int64_t checked, int64_t wrong)
{
    c->wrong += wrong;
    (void)json_array_append_new(c->rows,
                                json_pack("{s:s, s:I, s:I}", "check", check, "checked",
                                          (json_int_t)checked, "wrong", (json_int_t)wrong));
}

/* All runs by their number: {"17": [run, …]}. The caller owns it; NULL: they cannot be read. */
static json_t *fetch_runs(struct crash *c)
{
    json_t *runs = json_object(), *run, *next = NULL;
    size_t i;
    do {
        char path[256], number[32];
        (void)snprintf(path, sizeof(path), "/api/v1/runs?limit=200%s%s",
                       next != NULL ? "&cursor=" : "", next != NULL ? json_string_value(next) : "");
        if (!call(c, "GET", path, "")) {
            json_decref(runs);
            return NULL;
        }
        json_array_foreach (json_object_get(c->answer, "items"), i, run) {
            (void)snprintf(
                number, sizeof(number), "%lld",
                (long long)json_integer_value(json_object_get(json_object_get(run, "input"), "n")));
            if (json_object_get(runs, number) == NULL)
                (void)json_object_set_new(runs, number, json_array());
            (void)json_array_append(json_object_get(runs, number), run);
        }
        json_decref(next);
        next = json_incref(json_object_get(c->answer, "next_cursor"));
    } while (json_is_string(next));
    json_decref(next);
    return runs;
}

static const json_t *run_of(const json_t *runs, int number)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "%d", number);
    return json_array_get(json_object_get(runs, name), 0);
}

/* The step's result must be in the timeline once. */
static bool counted_once(struct crash *c, const char *run_id)
{
    char path[96];
    size_t i, count = 0;
    json_t *event;
    (void)snprintf(path, sizeof(path), "/api/v1/runs/%s/events?limit=200", run_id);
    if (!call(c, "GET", path, ""))
        return false;
    json_array_foreach (json_object_get(c->answer, "items"), i, event) {
        const json_t *type = json_object_get(event, "type");
        count += json_is_string(type) && str_is(json_str(type), "job.succeeded");
    }
    return count == 1;
}

static bool is_kept(const json_t *run, int number)
{
    const json_t *status = json_object_get(run, "status");
    json_int_t n = json_integer_value(json_object_get(json_object_get(run, "output"), "n"));
    return json_is_string(status) && str_is(json_str(status), "succeeded") && n == number;
}

static void check_runs(struct crash *c, json_t *runs)
{
    int64_t lost = 0, doubled = 0, kept = 0, forgotten = 0, twice = 0;
    int started = MIN(atomic_load(&c->load.next), (int)CRASH_STARTS_MAX);
    const char *number;
    json_t *same;
    json_object_foreach (runs, number, same)
        doubled += json_array_size(same) > 1;
    for (int i = 0; i < started; i++) {
        const struct crash_start *start = &c->load.starts[i];
        const json_t *run = run_of(runs, i);
        const char *id = json_string_value(json_object_get(run, "id"));
        if (start->run_id[0] == '\0')
            continue;
        lost += id == NULL || strcmp(id, start->run_id) != 0;
        twice += !counted_once(c, start->run_id);
        if (!atomic_load(&c->load.starts[i].is_completed))
            continue;
        kept++;
        forgotten += !is_kept(run, i);
    }
    int64_t acknowledged = atomic_load(&c->load.acknowledged);
    add_check(c, "Every acknowledged start is there", acknowledged, lost);
    add_check(c, "No key has made two runs", (int64_t)json_object_size(runs), doubled);
    add_check(c, "A repeated start got the same run", atomic_load(&c->load.repeated),
              atomic_load(&c->load.different));
    add_check(c, "Every acknowledged result is there", kept, forgotten);
    add_check(c, "Every step's result counted once", acknowledged, twice);
}

static void check_doctor(struct crash *c)
{
    int64_t checks = 0, wrong = 0;
    size_t i;
    const json_t *check;
    bool asked = call(c, "GET", "/api/v1/doctor", "");
    json_array_foreach (json_object_get(c->answer, "checks"), i, check) {
        checks++;
        wrong += !json_is_true(json_object_get(check, "ok"));
    }
    add_check(c, "`pawl doctor` finds the data in order", checks, asked ? wrong : 1);
}

static enum cli_exit check_all(struct crash *c)
{
    json_t *runs = fetch_runs(c);
    if (runs == NULL) {
        fprintf(stderr, "pawl: The runs cannot be read\n");
        return CLI_REFUSED;
    }
    check_runs(c, runs);
    check_doctor(c);
    json_decref(runs);
    putchar('\n');
    rows_print(stdout, COLUMNS, ARRAY_LEN(COLUMNS), c->rows);
    printf("\n%s\n", c->wrong == 0 ? "Nothing was lost, nothing was doubled."
                                   : "Something is wrong. Please report it.");
    return c->wrong == 0 ? CLI_DONE : CLI_REFUSED;
}

/* --- the demo --- */

static enum cli_exit crash_and_check(struct crash *c, int64_t kills)
{
    if (!prepare(c) || !crash_load_begin(&c->load))
        return CLI_REFUSED;
    printf("A server works in %s, %d clients start runs, %d workers complete them.\n", c->folder,
           CRASH_STARTERS, CRASH_WORKERS);
    for (int64_t i = 1; i <= kills; i++)
        if (!kill_and_restart(c, i, kills))
            return CLI_REFUSED;
    crash_load_stop_starting(&c->load);
    if (!await_end(c))
        return CLI_REFUSED;
    return check_all(c);
}

static void remove_folder(const struct crash *c)
{
    static const char *const ENDS[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++) {
        char path[128];
        (void)snprintf(path, sizeof(path), "%s/pawl.db%s", c->folder, ENDS[i]);
        (void)unlink(path);
    }
    (void)rmdir(c->folder);
}

enum cli_exit demo_crash(struct session *s)
{
    struct crash c = {.load = {.lock = PTHREAD_MUTEX_INITIALIZER}, .rows = json_array()};
    const char *temp = getenv("TMPDIR");
    (void)snprintf(c.folder, sizeof(c.folder), "%.40s/pawl-demo-XXXXXX",
                   temp != NULL && temp[0] == '/' && strlen(temp) <= 40 ? temp : "/tmp");
    if (mkdtemp(c.folder) == NULL) {
        fprintf(stderr, "pawl: %s: %s\n", c.folder, strerror(errno));
        return CLI_REFUSED;
    }
    (void)snprintf(c.store, sizeof(c.store), "sqlite:%s/pawl.db", c.folder);
    reply_init(&c.reply);
    enum cli_exit rc = crash_and_check(&c, options_number(&s->opt, "kills", KILLS_DEFAULT));
    crash_load_end(&c.load);
    if (c.has_client)
        client_close(&c.client);
    enum cli_exit stopped = private_server_stop(&c.server);
    reply_release(&c.reply);
    json_decref(c.answer);
    json_decref(c.rows);
    remove_folder(&c);
    return rc != CLI_DONE ? rc : stopped;
}
