/* Time, crashes and failing disks. */
#include "sim/actions.h"

static int64_t some_time_ms(struct sim *w)
{
    switch (lot_below(&w->lot, sim_on(w, ON_YEARS) ? 8 : 6)) {
    case 0:
        return lot_between(&w->lot, 1, 20);
    case 1:
    case 2:
        return lot_between(&w->lot, 20, 1500);
    case 3:
        return lot_between(&w->lot, 1000, 40 * 1000);
    case 4:
        return lot_between(&w->lot, 30 * 1000, 600 * 1000);
    case 5:
        return lot_between(&w->lot, 600 * 1000, 4 * 3600 * 1000);
    case 6:
        return lot_between(&w->lot, 3600 * 1000, INT64_C(7) * 86400 * 1000);
    default:
        return lot_between(&w->lot, INT64_C(7) * 86400 * 1000, INT64_C(200) * 86400 * 1000);
    }
}

static void pass_time(struct sim *w)
{
    int64_t ms = some_time_ms(w);
    sim_tell(w, "  %lld ms pass", (long long)ms);
    sim_pass_ms(w, ms);
}

/* --- crashes --- */

static void restart(struct sim *w, struct place *p)
{
    if (!place_start(w, p))
        return;
    for (int i = 0; i < ACTOR_COUNT; i++) {
        if (ACTORS[i]->restarted != NULL)
            ACTORS[i]->restarted(w, p);
    }
}

static void end_place(struct sim *w, enum place_end how, const char *fault)
{
    struct place *p = sim_any_place(w);
    if (!p->up)
        return;
    sim_cover(w, "fault", fault);
    place_end(w, p, how);
    if (lot_percent(&w->lot, 60))
        restart(w, p);
}

static void stop_server(struct sim *w)
{
    end_place(w, END_STOP, "stop");
}

static void kill_server(struct sim *w)
{
    end_place(w, END_KILL, "kill");
}

static void cut_power(struct sim *w)
{
    end_place(w, END_CUT, "power cut");
}

static void start_server(struct sim *w)
{
    restart(w, sim_any_place(w));
}

/* --- the disk --- */

static uint64_t draw(void *ctx, uint64_t below)
{
    return lot_bits(&((struct sim *)ctx)->chaos) % below;
}

static void arm(struct sim *w, struct place *p, enum crash_kind kind, enum crash_result result,
                int64_t within, const char *fault)
{
    struct crash_fault f = {
        .kind = kind,
        .nth = (uint64_t)lot_between(&w->lot, 1, within),
        .result = result,
        .cut = CRASH_CUT_ANY,
        .draw = draw,
        .ctx = w,
    };
    crash_disk_clear_faults(p->disk); /* one at a time */
    crash_disk_fail(p->disk, &f);
    p->reads_fail |= kind == CRASH_READ;
    sim_cover(w, "fault", fault);
    sim_tell(w, "  disk %d: %s at call %d from now", p->number, fault, (int)f.nth);
}

/* The power fails in the middle of some call to the disk. */
static void cut_soon(struct sim *w)
{
    arm(w, sim_any_place(w), CRASH_ANY, CRASH_POWER_CUT, 60, "power cut at a call");
}

static void kill_soon(struct sim *w)
{
    if (sim_on(w, ON_NODES)) /* actors/nodes.c */
        return;
    arm(w, sim_any_place(w), CRASH_ANY, CRASH_KILL, 60, "kill at a call");
}

static void fail_disk(struct sim *w)
{
    static const struct {
        enum crash_kind kind;
        enum crash_result result;
        const char *fault;
    } FAULTS[] = {
        {CRASH_WRITE, CRASH_EIO, "write fails"},
        {CRASH_WRITE, CRASH_SHORT, "short write"},
        {CRASH_WRITE, CRASH_ENOSPC, "disk full"},
        {CRASH_SYNC, CRASH_EIO, "sync fails"},
        {CRASH_READ, CRASH_EIO, "read fails"},
        {CRASH_SYNC, CRASH_ENOSPC, "sync finds no room"},
        {CRASH_TRUNCATE, CRASH_EIO, "truncate fails"},
    };
    int i = lot_below(&w->lot, (int)ARRAY_LEN(FAULTS));
    arm(w, sim_any_place(w), FAULTS[i].kind, FAULTS[i].result, 20, FAULTS[i].fault);
}

/* The disk is full for a while. */
static void fill_disk(struct sim *w)
{
    struct place *p = sim_any_place(w);
    bool full = lot_percent(&w->lot, 50);
    struct crash_options options = {.powersafe_overwrite = true,
                                    .bytes_max = full ? crash_disk_bytes(p->disk) + 8192 : 0};
    crash_disk_set_options(p->disk, &options);
    sim_cover(w, "fault", "disk full for a while");
    sim_tell(w, "  disk %d %s", p->number, full ? "is full" : "has room again");
}

/* --- the clock --- */

static void jump_clock(struct sim *w)
{
    struct place *p = sim_any_place(w);
    int64_t ms = lot_between(&w->lot, -3600 * 1000, 3600 * 1000);
    p->skew_us += ms * 1000;
    sim_cover(w, "fault", ms < 0 ? "clock jumps back" : "clock jumps ahead");
    sim_tell(w, "  the clock of server %d jumps by %lld ms", p->number, (long long)ms);
}

/* --- a power cut that the plan names --- */

/* The server starts again, by chance into the next power cut. */
static void recover(struct sim *w)
{
    struct place *p = &w->places[0];
    if (!w->cuts || w->calm || p->up || !sim_was_cut(w) || lot_percent(&w->chaos, 30))
        return;
    sim_cover(w, "fault", "power cut at a planned call");
    if (lot_percent(&w->chaos, 30))
        place_cut_at(w, p, 1 + lot_bits(&w->chaos) % 20);
    restart(w, p);
}

/* --- checks --- */

/* A timer that could not be fired, as on a full disk, is put off. It is then later than its job
 * says, which the doctor reports; by the end of the history it must have been fired. */
static bool is_put_off(const json_t *finding)
{
    const char *what = json_text(finding, "what");
    return strcmp(what, "a job that waits for a time has no timer") == 0 ||
           strcmp(what, "a timer is of no job that waits for it") == 0;
}

static bool only_put_off(const json_t *check)
{
    size_t i;
    json_t *finding;
    json_array_foreach (json_object_get(check, "found"), i, finding) {
        if (!is_put_off(finding))
            return false;
    }
    return true;
}

void doctor_check(struct sim *w, const json_t *answer)
{
    size_t i;
    json_t *check;
    json_array_foreach (json_object_get(answer, "checks"), i, check) {
        if (json_is_true(json_object_get(check, "ok")) || (!w->calm && only_put_off(check)))
            continue;
        char *text = json_dumps(check, JSON_COMPACT);
        sim_fail(w, 0, "the doctor finds: %s", text);
    }
}

static void audit(struct sim *w)
{
    for (int i = 0; i < w->place_count; i++) {
        bool skips = w->cuts ? !w->calm : lot_percent(&w->lot, w->calm ? 50 : 70);
        if (skips) /* it reads the whole store */
            continue;
        if (w->places[i].reads_fail)
            crash_disk_clear_faults(w->places[i].disk);
        w->places[i].reads_fail = false;
        struct call *c = sim_ask(w, &w->places[i], NULL, "GET", "/api/v1/doctor", NULL);
        if (c == NULL)
            continue;
        sim_check(w, 0, c->status == 200 || !w->calm, "the doctor answers %d %s", c->status,
                  c->code);
        doctor_check(w, c->json);
        call_free(c);
    }
}

static bool finish(struct sim *w)
{
    for (int i = 0; i < w->place_count; i++) {
        if (!w->places[i].up)
            restart(w, &w->places[i]);
    }
    return false;
}

static const struct action ACTIONS[] = {
    {"time passes", 30, 0, pass_time},
    {"a server stops", 3, NEEDS(ON_STOPS), stop_server},
    {"a server is killed", 4, NEEDS(ON_KILLS), kill_server},
    {"a server is killed soon", 4, NEEDS(ON_KILLS), kill_soon},
    {"the power fails", 4, NEEDS(ON_CUTS), cut_power},
    {"the power fails soon", 6, NEEDS(ON_CUTS), cut_soon},
    {"a server starts", 12, 0, start_server},
    {"the disk fails", 4, NEEDS(ON_DISK), fail_disk},
    {"the disk is full", 3, NEEDS(ON_DISK), fill_disk},
    {"a clock jumps", 3, NEEDS(ON_CLOCKS), jump_clock},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_WORLD = {
    .name = "world", .actions = ACTIONS, .check = recover, .audit = audit, .finish = finish};
