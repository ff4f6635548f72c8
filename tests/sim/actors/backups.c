/* Backups that are taken while work goes on: a server that starts on the copy finds a sound store,
 * with everything that somebody had seen before it was asked for. */
#include "sim/actors/script.h"
#include "sim/runs.h"

enum { KNOWN_MAX = 24, STARTS_MAX = 3 };

/* Runs as they were known before. */
struct known {
    int count;
    struct {
        const struct seen_run *run;
        int64_t version;
    } runs[KNOWN_MAX];
};

/* --- taking it --- */

/* Retention may be ahead on the copy: nothing holds a run back there that the bus has not got. */
static struct known what_is_known(struct sim *w, const struct place *p)
{
    struct known known = {0};
    const struct seen_run *first = sim_on(w, ON_RETENTION) ? NULL : runs_first(w);
    for (const struct seen_run *r = first; r != NULL && known.count < KNOWN_MAX; r = r->next) {
        if (r->place != p->number)
            continue;
        known.runs[known.count].run = r;
        known.runs[known.count++].version = r->version;
    }
    return known;
}

static struct sim_exchange *request(struct sim_server *s, const char *tenant, const char *target)
{
    struct sim_header headers[] = {{"Host", "127.0.0.1:7295"}, {"X-Tenant-ID", tenant}};
    struct sim_request request = {.method = "GET",
                                  .target = target,
                                  .headers = headers,
                                  .header_count = tenant != NULL ? 2 : 1};
    return sim_http_send(s->http, &request);
}

/* NULL: there is no answer, or none of success. */
static struct sim_exchange *take_copy(struct sim *w, struct place *p)
{
    struct sim_exchange *x = request(&p->server, NULL, "/api/v1/backup");
    for (int i = lot_below(&w->lot, STARTS_MAX); i > 0; i--)
        (void)script_send(w, "POST", "/api/v1/workflows/sleep/runs", "{}");
    place_settle(w, p);
    sim_tell(w, "  a backup of %zu bytes is answered %d", x->body.len, x->status);
    if (p->up && x->answered && x->status == 200)
        return x;
    sim_http_close(x);
    return NULL;
}

/* --- a server on the copy --- */

/* What the copy would call has been called, or is not its business. */
static int64_t receive_nothing(void *ctx, struct http_call *call)
{
    (void)ctx;
    http_call_end(call, CALL_CONNECT_FAILED, "nobody is there");
    return 1;
}

static const struct sim_receiver NOBODY = {receive_nothing, NULL};

/* The answer; the caller releases it. */
static json_t *ask(struct sim *w, struct sim_server *s, const char *tenant, const char *target)
{
    struct sim_exchange *x = request(s, tenant, target);
    sim_server_settle(s);
    sim_check(w, 6, x->answered && x->status == 200, "on a backup, %s is answered %d", target,
              x->status);
    json_t *json = json_loadb(x->body.ptr, x->body.len, 0, NULL);
    sim_http_close(x);
    return json;
}

static void check_known(struct sim *w, struct sim_server *s, const struct known *known)
{
    for (int i = 0; i < known->count; i++) {
        const struct seen_run *r = known->runs[i].run;
        char tenant[8], target[80];
        tenant_name(tenant, r->tenant);
        (void)snprintf(target, sizeof(target), "/api/v1/runs/%s", r->id);
        json_t *run = ask(w, s, tenant, target);
        sim_check(w, 6, json_number(run, "version") >= known->runs[i].version,
                  "run %s has version %lld in a backup, but %lld was seen before", r->id,
                  (long long)json_number(run, "version"), (long long)known->runs[i].version);
        json_decref(run);
    }
}

static void check_copy(struct sim *w, struct sim_server *s, const struct known *known)
{
    json_t *doctor = ask(w, s, NULL, "/api/v1/doctor");
    doctor_check(w, doctor);
    json_decref(doctor);
    check_known(w, s, known);
}

static void restore(struct sim *w, const struct place *p, struct str bytes,
                    const struct known *known)
{
    struct sim_server s;
    char folder[64];
    char mount[68];
    struct sim_server_config config = p->server.config;
    struct crash_disk *disk = crash_disk_new();
    config.receiver = &NOBODY;
    config.bus = NULL;
    (void)snprintf(folder, sizeof(folder), "%.50s-copy", p->server.folder);
    (void)snprintf(mount, sizeof(mount), "%s/", folder);
    crash_disk_write_file(disk, "p.db", bytes.ptr, bytes.len);
    sim_server_init(&s, &config, disk, folder);
    crash_disk_mount(disk, mount);
    struct problem problem;
    problem_init(&problem);
    sim_check(w, 6, sim_server_start(&s, &problem), "a backup does not open: %s", problem.detail);
    problem_release(&problem);
    sim_server_settle(&s);
    check_copy(w, &s, known);
    sim_server_stop(&s);
    crash_disk_free(disk);
    sim_cover(w, "state", "backup restored");
}

static void back_up(struct sim *w)
{
    struct place *p = script_place(w);
    if (!p->up)
        return;
    /* A sync of the copy that fails would pass for one of the store. */
    crash_disk_clear_faults(p->disk);
    struct known known = what_is_known(w, p);
    struct sim_exchange *x = take_copy(w, p);
    if (x == NULL)
        return;
    restore(w, p, buf_str(&x->body), &known);
    sim_http_close(x);
}

static const struct action ACTIONS[] = {
    {"somebody takes a backup", 2, NEEDS(ON_SCRIPTS), back_up},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_BACKUPS = {.name = "backups", .actions = ACTIONS};
