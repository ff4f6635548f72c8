/* The steps of a history, and its end. */
#include "sim/history.h"

#include "sim/actions.h"
#include "sim/cover.h"
#include "sim/world.h"

#include <stdio.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

enum {
    AUDIT_EVERY = 20,
    CALM_ROUNDS_MAX = 200,    /* of the end, while something moves */
    CALM_MS_MAX = 600 * 1000, /* of one round: they become longer and longer */
};

const struct actor *const ACTORS[ACTOR_COUNT] = {
#define X(symbol) &symbol,
    SIM_ACTORS(X)
#undef X
};

/* Many short ones, which cost little and find most, and a few long ones. */
int history_steps(uint64_t seed)
{
    struct lot lot = lot_of(seed, 3);
    int size = lot_below(&lot, 100);
    if (size < 60)
        return 3 + lot_below(&lot, 7);
    if (size < 88)
        return 10 + lot_below(&lot, 20);
    return size < 99 ? 30 + lot_below(&lot, 46) : 75 + lot_below(&lot, 300);
}

/* --- one step --- */

static bool may(const struct sim *w, const struct action *a)
{
    return (a->needs & ~w->features) == 0;
}

static int weigh(const struct sim *w)
{
    int sum = 0;
    for (int i = 0; i < ACTOR_COUNT; i++) {
        for (const struct action *a = ACTORS[i]->actions; a->name != NULL; a++)
            sum += may(w, a) ? a->weight : 0;
    }
    return sum;
}

static const struct action *choose(struct sim *w)
{
    int at = lot_below(&w->lot, weigh(w));
    for (int i = 0; i < ACTOR_COUNT; i++) {
        for (const struct action *a = ACTORS[i]->actions; a->name != NULL; a++) {
            at -= may(w, a) ? a->weight : 0;
            if (at < 0)
                return a;
        }
    }
    return ACTORS[0]->actions;
}

#define EACH_ACTOR(function, ...)             \
    for (int i = 0; i < ACTOR_COUNT; i++) {   \
        if (ACTORS[i]->function != NULL)      \
            ACTORS[i]->function(__VA_ARGS__); \
    }

static void take_chance(struct sim *w, int step)
{
    w->step = step;
    w->leap_ms = 0;
    w->lot = lot_of(w->seed, 100 + (uint64_t)step);
    w->chaos = lot_of(w->seed, 1000000 + (uint64_t)step);
}

static void run_step(struct sim *w, int step)
{
    take_chance(w, step);
    const struct action *action = choose(w);
    sim_tell(w, "step %d: %s", step, action->name);
    sim_cover(w, "action", action->name);
    action->act(w);
    /* Sometimes several requests meet in one batch of the server. */
    if (lot_percent(&w->lot, 75)) {
        for (int i = 0; i < w->place_count; i++)
            place_settle_now(w, &w->places[i]);
    }
    sim_calls_turn(w);
    EACH_ACTOR(check, w);
    if (step % AUDIT_EVERY != 0)
        return;
    for (int i = 0; i < w->place_count; i++)
        place_settle(w, &w->places[i]);
    EACH_ACTOR(audit, w);
}

/* --- the end --- */

static bool unfinished(struct sim *w)
{
    bool waits = sim_calls_open(w) > 0;
    for (int i = 0; i < ACTOR_COUNT; i++)
        waits |= ACTORS[i]->finish != NULL && ACTORS[i]->finish(w);
    return waits;
}

/* No more faults: whatever can move must come to its end. */
static void calm_down(struct sim *w)
{
    sim_tell(w, "the faults stop");
    w->calm = true;
    world_calm(w);
    for (int i = 0; i < w->place_count; i++) {
        crash_disk_clear_faults(w->places[i].disk);
        crash_disk_set_options(w->places[i].disk,
                               &(struct crash_options){.powersafe_overwrite = true});
        bool up = place_start(w, &w->places[i]);
        sim_check(w, 0, up, "server %d does not start on a sound disk", i);
    }
    /* What ends last may begin something, as a delivery: twice in a row nothing may be left. */
    int rest = 0;
    for (int round = 0; rest < 2; round++) {
        rest = unfinished(w) ? 0 : rest + 1;
        sim_check(w, 0, round < CALM_ROUNDS_MAX,
                  "something that could move still waits when all faults are over");
        take_chance(w, STEPS_MAX + round);
        sim_pass_ms(w, MIN(INT64_C(4000) << MIN(2 * round, 20), (int64_t)CALM_MS_MAX));
        EACH_ACTOR(check, w);
    }
}

static struct sim world;

int history_variant(uint64_t seed)
{
    return (int)(world_features(seed) >> ON_BUS & 1);
}

void history_warm(int variant, const char *folder)
{
    world_warm(&world, folder, variant == 1);
}

bool history_run(const struct plan *plan, bool tells)
{
    struct sim *w = &world;
    world_begin(w, plan->seed, tells);
    w->cuts = plan->cut_at > 0;
    if (w->cuts)
        w->features &= ~(NEEDS(ON_KILLS) | NEEDS(ON_CUTS) | NEEDS(ON_DISK));
    int count = plan->count > 0 ? plan->count : history_steps(plan->seed);
    for (int i = 0; i < w->place_count; i++) {
        bool up = place_start(w, &w->places[i]);
        sim_check(w, 0, up, "server %d does not start", i);
        for (int a = 0; i > 0 && a < ACTOR_COUNT; a++) {
            if (ACTORS[a]->warm != NULL)
                ACTORS[a]->warm(w, &w->places[i]);
        }
    }
    EACH_ACTOR(begin, w);
    w->cuts_before = crash_disk_counts(w->places[0].disk)->cuts;
    if (w->cuts)
        place_cut_at(w, &w->places[0], plan->cut_at);
    for (int i = 0; i < count; i++)
        run_step(w, plan->count > 0 ? plan->steps[i] : i + 1);
    bool struck = !w->cuts || sim_was_cut(w);
    calm_down(w);
    EACH_ACTOR(audit, w);
    EACH_ACTOR(last, w);
    cover_pairs();
    cover_set_digest(w->digest);
#if defined(__SANITIZE_ADDRESS__) /* the process ends here in any case */
    if (sim_on(w, ON_NODES))      /* those that were killed were never closed */
        return struck;
    EACH_ACTOR(free, w);
    world_end(w);
    sim_check(w, 0, __lsan_do_recoverable_leak_check() == 0, "memory has leaked");
#endif
    return struck;
}
