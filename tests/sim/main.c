/* The simulator: runs histories by their seeds, and tells the shortest story of one that fails. */
#define _GNU_SOURCE
#include "domain/run.h"
#include "domain/timeline.h"
#include "sim/actions.h"
#include "sim/cover.h"
#include "sim/history.h"
#include "sim/world.h"

#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    WORKERS_MAX = 64,
    FOLDER_MAX = 40,
    HANGS_S = 30,   /* a history that computes for so long does not come to its end */
    CUT_STEPS = 15, /* of a history with a power cut at each change */
};

struct options {
    uint64_t first, last;
    int jobs;
    int64_t seconds; /* 0: no limit */
    struct plan plan;
    bool one;  /* --seed: told as a story */
    bool cuts; /* of each history, one for each change of its files, with a power cut there */
    bool nodes;
    bool shrinks;
    bool covers; /* prints what was reached */
    bool twice;  /* runs each history again and compares its answers */
};

static const char HELP[] =
    "usage: sim [--seed N | --seeds A..B] [options]\n"
    "  --seed N         run one history and print it step by step\n"
    "  --seeds A..B     run all these histories; stop at the first broken promise\n"
    "  --steps 3,8,9    with --seed: run only these steps\n"
    "  --cut N          with --seed: cut the power at the Nth file change, and nowhere else\n"
    "  --cuts           with --seeds: run each history once per file change, with a power cut "
    "there\n"
    "  --nodes          several nodes of a cluster instead of a server\n"
    "  --jobs N         number of processes (default and minimum: 2)\n"
    "  --seconds N      start no more histories after this time\n"
    "  --no-shrink      do not look for the shortest history that still fails\n"
    "  --twice          run each history twice, one at a time, and compare the responses\n"
    "  --cover          print what was reached, and what never was\n";

/* --- processes --- */

static void make_folder(char out[static FOLDER_MAX])
{
    (void)snprintf(out, FOLDER_MAX, "/dev/shm/pawl-sim-XXXXXX");
    if (mkdtemp(out) == NULL)
        abort();
}

static void remove_folder(const char *path)
{
    char command[80];
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", path);
    if (system(command) != 0)
        (void)fprintf(stderr, "sim: cannot remove %s\n", path);
}

static pid_t fork_child(void (*run)(void *ctx), void *ctx)
{
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid > 0)
        return pid;
    run(ctx);
    (void)fflush(stdout);
    _exit(0);
}

enum ending { ENDED_WELL, ENDED_WITHOUT_CUT, ENDED_BADLY };

static enum ending wait_child(pid_t pid)
{
    int status;
    if (waitpid(pid, &status, 0) != pid)
        abort();
    if (WIFEXITED(status) && WEXITSTATUS(status) == SIM_EXIT_NO_CUT)
        return ENDED_WITHOUT_CUT;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? ENDED_WELL : ENDED_BADLY;
}

/* Kills the process when it has computed for too long, from now on. */
static void limit_time(void)
{
    struct itimerval limit = {.it_value = {.tv_sec = HANGS_S}};
    if (setitimer(ITIMER_PROF, &limit, NULL) != 0)
        abort();
}

static void run_plan(const struct plan *plan, bool tells)
{
    limit_time();
    bool cut = history_run(plan, tells);
    (void)fflush(stdout);
    _exit(cut ? 0 : SIM_EXIT_NO_CUT);
}

/* --- shrinking --- */

struct trial {
    const struct plan *plan;
    bool tells;
    char folder[FOLDER_MAX];
};

static void run_trial(void *ctx)
{
    const struct trial *t = ctx;
    /* What a trial says about its own end interests nobody. */
    if (!t->tells && freopen("/dev/null", "w", stderr) == NULL)
        abort();
    history_warm(history_variant(t->plan->seed), t->folder);
    run_plan(t->plan, t->tells);
}

static enum ending try_plan(const struct plan *plan, bool tells)
{
    struct trial trial = {.plan = plan, .tells = tells};
    make_folder(trial.folder);
    enum ending ending = wait_child(fork_child(run_trial, &trial));
    remove_folder(trial.folder);
    return ending;
}

/* True when the history still fails. */
static bool fails(const struct plan *plan, bool tells)
{
    return try_plan(plan, tells) == ENDED_BADLY;
}

/* Leaves out runs of steps, shorter and shorter ones, while the history still fails. */
static void shrink(struct plan *plan)
{
    for (int size = plan->count / 2; size >= 1; size /= 2) {
        for (int at = 0; at + size <= plan->count;) {
            static struct plan shorter;
            shorter = *plan;
            memmove(&shorter.steps[at], &shorter.steps[at + size],
                    (size_t)(plan->count - at - size) * sizeof(int));
            shorter.count -= size;
            if (shorter.count > 0 && fails(&shorter, false))
                *plan = shorter;
            else
                at += size;
        }
    }
}

static void all_steps(struct plan *plan)
{
    if (plan->count > 0)
        return;
    plan->count = history_steps(plan->seed);
    if (plan->cut_at > 0)
        plan->count = MIN(plan->count, CUT_STEPS);
    for (int i = 0; i < plan->count; i++)
        plan->steps[i] = i + 1;
}

/* Where the power fails in the first history of a seed that fails. */
static void find_cut(struct plan *plan)
{
    enum ending ending = ENDED_WELL;
    for (plan->cut_at = 1; ending == ENDED_WELL; plan->cut_at++) {
        all_steps(plan);
        ending = try_plan(plan, false);
    }
    plan->cut_at--;
}

static void tell_failure(struct plan *plan, bool shrinks, bool nodes)
{
    all_steps(plan);
    int before = plan->count;
    if (shrinks)
        shrink(plan);
    (void)printf("seed %llu, %d of %d steps:\n", (unsigned long long)plan->seed, plan->count,
                 before);
    cover_clear_failure();
    (void)fails(plan, true);
    (void)printf("%s\n  again: sim --seed %llu --steps ",
                 cover_failure()[0] != '\0' ? cover_failure() : "the process died or hangs",
                 (unsigned long long)plan->seed);
    for (int i = 0; i < plan->count; i++)
        (void)printf("%s%d", i > 0 ? "," : "", plan->steps[i]);
    if (nodes)
        (void)printf(" --nodes");
    if (plan->cut_at > 0)
        (void)printf(" --cut %llu", (unsigned long long)plan->cut_at);
    (void)printf("\n");
}

/* --- many histories --- */

/* Runs histories of one variant, each in a child of its own, until there are no more. */
struct worker {
    int number;
    int variant;
    const struct options *options;
    time_t until;
    char folder[FOLDER_MAX];
};

static void run_one(void *ctx)
{
    run_plan(ctx, false);
}

/* A power cut at each change of the files, or none at all. */
static void run_seed(uint64_t seed, bool cuts)
{
    struct plan plan = {.seed = seed, .cut_at = cuts};
    enum ending ending = ENDED_WELL;
    if (cuts)
        all_steps(&plan);
    do {
        ending = wait_child(fork_child(run_one, &plan));
        cover_count_done();
        plan.cut_at++;
    } while (cuts && ending == ENDED_WELL);
    if (ending == ENDED_BADLY)
        cover_note_failed_seed(seed);
}

static void work(void *ctx)
{
    struct worker *self = ctx;
    const struct options *o = self->options;
    uint64_t seed;
    history_warm(self->variant, self->folder);
    while ((seed = cover_next_seed(self->variant)) <= o->last && cover_failed_seed() == 0 &&
           (o->seconds == 0 || time(NULL) < self->until)) {
        if (history_variant(seed) != self->variant)
            continue;
        run_seed(seed, o->cuts);
    }
}

/* 0, or the seed that failed. */
static uint64_t run_many(const struct options *o)
{
    static struct worker workers[WORKERS_MAX];
    pid_t pids[WORKERS_MAX];
    int count = MAX(o->jobs, (int)HISTORY_VARIANTS);
    for (int v = 0; v < HISTORY_VARIANTS; v++)
        cover_begin_seeds(v, o->first);
    for (int i = 0; i < count; i++) {
        workers[i] = (struct worker){.number = i,
                                     .variant = i % HISTORY_VARIANTS,
                                     .options = o,
                                     .until = time(NULL) + o->seconds};
        make_folder(workers[i].folder);
        pids[i] = fork_child(work, &workers[i]);
    }
    bool well = true;
    for (int i = 0; i < count; i++) {
        well &= wait_child(pids[i]) == ENDED_WELL;
        remove_folder(workers[i].folder);
    }
    if (!well)
        (void)fprintf(stderr, "sim: a worker died\n");
    return well ? cover_failed_seed() : o->first;
}

/* --- the command line --- */

static _Noreturn void usage(void)
{
    (void)fputs(HELP, stderr);
    exit(2);
}

static void read_steps(struct plan *plan, const char *text)
{
    char *end;
    do {
        if (plan->count == STEPS_MAX)
            usage();
        plan->steps[plan->count++] = (int)strtol(text, &end, 10);
        text = end + 1;
    } while (*end == ',');
}

static void read_seeds(struct options *o, const char *text)
{
    char *end;
    o->first = strtoull(text, &end, 10);
    if (strncmp(end, "..", 2) != 0)
        usage();
    o->last = strtoull(end + 2, NULL, 10);
}

static struct options read_options(int argc, char **argv)
{
    struct options o = {.first = 1, .last = 1000, .jobs = 2, .shrinks = true};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        bool takes = true;
        if (strcmp(argv[i], "--seed") == 0) {
            o.one = true;
            o.plan.seed = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--seeds") == 0) {
            read_seeds(&o, value);
        } else if (strcmp(argv[i], "--steps") == 0) {
            read_steps(&o.plan, value);
        } else if (strcmp(argv[i], "--cut") == 0) {
            o.plan.cut_at = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--jobs") == 0) {
            o.jobs = (int)strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--seconds") == 0) {
            o.seconds = strtoll(value, NULL, 10);
        } else {
            takes = false;
            if (strcmp(argv[i], "--no-shrink") == 0)
                o.shrinks = false;
            else if (strcmp(argv[i], "--nodes") == 0)
                o.nodes = true;
            else if (strcmp(argv[i], "--cuts") == 0)
                o.cuts = true;
            else if (strcmp(argv[i], "--cover") == 0)
                o.covers = true;
            else if (strcmp(argv[i], "--twice") == 0)
                o.twice = true;
            else
                usage();
        }
        i += takes;
    }
    if (o.jobs < 1 || o.jobs > WORKERS_MAX)
        usage();
    return o;
}

/* Names of a table that no history has reached. */
static void print_missing(const char *kind, const char *(*name_of)(int i), int count)
{
    int missing = 0;
    (void)printf("%s never reached:", kind);
    for (int i = 0; i < count; i++) {
        if (cover_of(kind, name_of(i)) == 0)
            (void)printf("%s %s", missing++ > 0 ? "," : "", name_of(i));
    }
    (void)printf("%s (%d of %d)\n", missing > 0 ? "" : " none", missing, count);
}

static const char *code_at(int i)
{
    return err_code((enum err)i);
}

static const char *status_at(int i)
{
    return run_status_name((enum run_status)i);
}

static const char *event_at(int i)
{
    return event_type_name((enum event_type)i).ptr; /* a literal */
}

static void print_cover(void)
{
    static const char *const KINDS[] = {"action",  "crash",    "fault",  "status", "transition",
                                        "error",   "event",    "state",  "lease",  "outcome",
                                        "control", "register", "retired"};
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        cover_print(stdout, KINDS[i]);
    cover_print_sum(stdout, "pair");
    cover_print_pairs_missing(stdout);
    print_missing("status", status_at, RUN_STATUS_COUNT);
    print_missing("event", event_at, EVENT_TYPE_COUNT);
    print_missing("error", code_at, ERR_COUNT);
}

/* The first seed that does not give the same answers each time; 0: none. */
static uint64_t run_twice(const struct options *o)
{
    for (uint64_t seed = o->first; seed <= o->last; seed++) {
        struct plan plan = {.seed = seed};
        uint64_t digests[2] = {0, 0};
        for (int i = 0; i < 2; i++) {
            if (fails(&plan, false))
                return seed;
            digests[i] = cover_digest();
        }
        if (digests[0] != digests[1]) {
            (void)printf("the answers of seed %llu differ from time to time\n",
                         (unsigned long long)seed);
            return seed;
        }
        cover_count_done();
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct options o = read_options(argc, argv);
    /* Memory that was given back would cost a page fault each time. */
    (void)mallopt(M_TRIM_THRESHOLD, 256 << 20);
    (void)mallopt(M_MMAP_THRESHOLD, 256 << 20);
    cover_setup();
    if (o.nodes)
        world_set_nodes();
    if (o.one) {
        all_steps(&o.plan);
        bool failed = fails(&o.plan, true);
        (void)printf("%s\n", failed ? "FAILED" : "no promise was broken");
        return failed;
    }
    uint64_t failed = o.twice ? run_twice(&o) : run_many(&o);
    uint64_t done = cover_done();
    if (o.covers)
        print_cover();
    if (failed != 0) {
        o.plan.seed = failed;
        if (o.cuts)
            find_cut(&o.plan);
        tell_failure(&o.plan, o.shrinks, o.nodes);
        (void)printf("FAILED at seed %llu after %llu histories\n", (unsigned long long)failed,
                     (unsigned long long)done);
        return 1;
    }
    (void)printf("%llu histories, no promise was broken\n", (unsigned long long)done);
    return 0;
}
