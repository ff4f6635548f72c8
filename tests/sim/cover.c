/* Counts in shared memory. */
#define _GNU_SOURCE
#include "sim/cover.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { COUNTS_MAX = 8192, NAME_MAX_LEN = 72, VARIANTS_MAX = 8 };

struct count {
    atomic_uint_fast64_t times;
    char name[NAME_MAX_LEN]; /* "kind what"; empty: free */
};

struct shared {
    atomic_flag lock; /* of new names */
    struct count counts[COUNTS_MAX];
    char failure[1200];
    atomic_uint_fast64_t next_seed[VARIANTS_MAX];
    atomic_uint_fast64_t digest;
    atomic_uint_fast64_t done;
    atomic_uint_fast64_t failed_seed;
};

static struct shared *shared;

void cover_setup(void)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        abort();
}

static unsigned hash_of(const char *name)
{
    unsigned hash = 2166136261u;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

/* The place of a name, or a free one. */
static struct count *find(const char *name)
{
    for (unsigned i = 0, at = hash_of(name); i < COUNTS_MAX; i++, at++) {
        struct count *c = &shared->counts[at % COUNTS_MAX];
        if (c->name[0] == '\0' || strcmp(c->name, name) == 0)
            return c;
    }
    abort(); /* names are few */
}

static void make_name(char *out, const char *kind, const char *what)
{
    (void)snprintf(out, NAME_MAX_LEN, "%.12s %.58s", kind, what);
}

/* --- pairs of faults --- */

enum { MET_MAX = 64 };

static const char *met[MET_MAX]; /* faults of the present history: literals */
static size_t met_count;

static void meet(const char *fault)
{
    for (size_t i = 0; i < met_count; i++) {
        if (strcmp(met[i], fault) == 0)
            return;
    }
    if (met_count < MET_MAX)
        met[met_count++] = fault;
}

static void pair_name(char *out, const char *a, const char *b)
{
    bool swap = strcmp(a, b) > 0;
    (void)snprintf(out, NAME_MAX_LEN, "%.28s + %.28s", swap ? b : a, swap ? a : b);
}

void cover_pairs(void)
{
    char name[NAME_MAX_LEN];
    for (size_t i = 0; i < met_count; i++) {
        for (size_t k = i + 1; k < met_count; k++) {
            pair_name(name, met[i], met[k]);
            cover_count("pair", name);
        }
    }
}

/* --- counts --- */

void cover_count(const char *kind, const char *what)
{
    char name[NAME_MAX_LEN];
    if (shared == NULL)
        return;
    if (strcmp(kind, "fault") == 0)
        meet(what);
    make_name(name, kind, what);
    struct count *c = find(name);
    if (c->name[0] == '\0') {
        while (atomic_flag_test_and_set(&shared->lock))
            ;
        c = find(name);
        memcpy(c->name, name, sizeof(name));
        atomic_flag_clear(&shared->lock);
    }
    atomic_fetch_add_explicit(&c->times, 1, memory_order_relaxed);
}

uint64_t cover_of(const char *kind, const char *what)
{
    char name[NAME_MAX_LEN];
    make_name(name, kind, what);
    return atomic_load(&find(name)->times);
}

static int by_times(const void *a, const void *b)
{
    const struct count *const *left = a;
    const struct count *const *right = b;
    uint64_t l = atomic_load(&(*left)->times);
    uint64_t r = atomic_load(&(*right)->times);
    return l < r ? 1 : l > r ? -1 : strcmp((*left)->name, (*right)->name);
}

static size_t find_kind(const char *kind, struct count *found[static COUNTS_MAX])
{
    size_t count = 0;
    size_t len = strlen(kind);
    for (size_t i = 0; i < COUNTS_MAX; i++) {
        struct count *c = &shared->counts[i];
        if (strncmp(c->name, kind, len) == 0 && c->name[len] == ' ')
            found[count++] = c;
    }
    qsort(found, count, sizeof(struct count *), by_times);
    return count;
}

void cover_print_sum(FILE *to, const char *kind)
{
    struct count *found[COUNTS_MAX];
    uint64_t times = 0;
    size_t count = find_kind(kind, found);
    for (size_t i = 0; i < count; i++)
        times += atomic_load(&found[i]->times);
    (void)fprintf(to, "%s: %zu different ones, %llu times\n", kind, count,
                  (unsigned long long)times);
}

void cover_print_pairs_missing(FILE *to)
{
    struct count *found[COUNTS_MAX];
    char name[NAME_MAX_LEN];
    size_t count = find_kind("fault", found);
    size_t missing = 0;
    size_t skip = strlen("fault ");
    (void)fprintf(to, "pairs of faults that never met:");
    for (size_t i = 0; i < count; i++) {
        for (size_t k = i + 1; k < count; k++) {
            pair_name(name, found[i]->name + skip, found[k]->name + skip);
            if (cover_of("pair", name) == 0)
                (void)fprintf(to, "%s %s", missing++ > 0 ? "," : "", name);
        }
    }
    (void)fprintf(to, "%s (%zu of %zu)\n", missing > 0 ? "" : " none", missing,
                  count * (count - 1) / 2);
}

void cover_print(FILE *to, const char *kind)
{
    struct count *found[COUNTS_MAX];
    size_t len = strlen(kind);
    size_t count = find_kind(kind, found);
    (void)fprintf(to, "%s (%zu):", kind, count);
    for (size_t i = 0; i < count; i++)
        (void)fprintf(to, "%s %s %llu", i > 0 ? "," : "", found[i]->name + len + 1,
                      (unsigned long long)atomic_load(&found[i]->times));
    (void)fputc('\n', to);
}

/* --- the end of a history --- */

void cover_failed(int promise, const char *text)
{
    if (shared != NULL)
        (void)snprintf(shared->failure, sizeof(shared->failure), "%s%d: %s",
                       promise > 0 ? "promise " : "rule ", promise, text);
}

const char *cover_failure(void)
{
    return shared->failure;
}

void cover_clear_failure(void)
{
    shared->failure[0] = '\0';
}

void cover_set_digest(uint64_t digest)
{
    atomic_store(&shared->digest, digest);
}

uint64_t cover_digest(void)
{
    return atomic_load(&shared->digest);
}

/* --- the progress of workers --- */

void cover_begin_seeds(int variant, uint64_t first)
{
    atomic_store(&shared->next_seed[variant], first);
}

uint64_t cover_next_seed(int variant)
{
    return atomic_fetch_add(&shared->next_seed[variant], 1);
}

void cover_count_done(void)
{
    atomic_fetch_add(&shared->done, 1);
}

uint64_t cover_done(void)
{
    return atomic_load(&shared->done);
}

void cover_note_failed_seed(uint64_t seed)
{
    uint64_t before = atomic_load(&shared->failed_seed);
    while ((before == 0 || seed < before) &&
           !atomic_compare_exchange_weak(&shared->failed_seed, &before, seed))
        ;
}

uint64_t cover_failed_seed(void)
{
    return atomic_load(&shared->failed_seed);
}
