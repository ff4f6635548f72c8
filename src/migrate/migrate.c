/* pawl migrate: options, progress and the report. store/copy does the work. */
#include "migrate/migrate.h"

#include "base/log.h"
#include "cli/term/progress.h"
#include "cluster/source.h"
#include "cluster/spread.h"
#include "store/copy/copy.h"

static const struct option OPTIONS[] = {
    {.name = "from",
     .value = "STORE",
     .help = "The store to copy: sqlite:PATH or postgres://…; all shards of a cluster",
     .required = true},
    {.name = "to",
     .value = "STORE",
     .help = "The new store, which must be empty; a cluster, or set up if it does not exist",
     .required = true},
    {.name = "json", .kind = OPTION_SWITCH, .help = "Print the report as JSON on one line"},
    {.name = NULL},
};

static enum cli_exit migrate(struct session *s);

const struct verb MIGRATE_VERBS[MIGRATE_VERB_COUNT] = {
    {.about = "Copy a store into another one, of any kind",
     .notes = "Stop the server first: no server may use either store. Everything is copied as it "
              "is, with all ids and keys, and then compared by digest; the shards of a cluster "
              "become one store, or are spread over those of another one. If the command is "
              "interrupted, run it again: it goes on where it was. Until it has finished, no "
              "server opens the new store. The old one stays as it is.",
     .options = OPTIONS,
     .run = migrate,
     .local = true},
};

/* --- progress --- */

static const char *const DOING[] = {[COPY_WRITES] = "copied", [COPY_COMPARES] = "compared"};

enum { URLS_BYTES_MAX = 4 * MIB };

struct display {
    struct progress bar; /* on a terminal; lines elsewhere */
    bool has_begun;
    enum copy_phase phase;
    int64_t rows_shown;
};

struct migration {
    const char *from;
    const char *to;
    struct store_copy copy;
    bool is_open;                               /* copy is to be closed */
    struct cluster_source *source;              /* NULL: it is one store */
    struct arena arena;                         /* has the texts below */
    struct str shards_from[CLUSTER_SHARDS_MAX]; /* URLs of the source's shards, if it has several */
    size_t from_count;                          /* of them, 1 or more */
    size_t shards;                              /* of the target */
    int64_t moved;                              /* tenants, to other shards than the first */
    struct display display;
};

static void show_progress(void *ctx, const struct copy_progress *progress)
{
    struct migration *m = ctx;
    struct display *d = &m->display;
    if (!d->has_begun || d->phase != progress->phase) {
        progress_end(&d->bar);
        d->bar = progress_begin("rows", progress->total);
        d->has_begun = true;
        d->phase = progress->phase;
        d->rows_shown = 0;
    }
    if (d->bar.is_shown)
        progress_update(&d->bar, progress->rows);
    else if (progress->table_is_done && progress->rows > d->rows_shown)
        fprintf(stderr, "pawl: %s %.*s, %lld of %lld rows\n", DOING[progress->phase],
                STR_ARG(progress->table), (long long)progress->rows, (long long)progress->total);
    if (progress->table_is_done)
        d->rows_shown = progress->rows;
}

static void show_moved(void *ctx, const char *tenant, size_t shard, int64_t rows)
{
    int64_t *count = ctx;
    ++*count;
    fprintf(stderr, "pawl: moved %s to shard %zu, %lld rows\n", tenant, shard, (long long)rows);
}

/* --- the report --- */

static json_t *hex_of(const struct sha256 *hash)
{
    struct buf text;
    buf_init(&text, 2 * SHA256_LEN);
    buf_put_hex(&text, hash->bytes, SHA256_LEN);
    json_t *hex = json_string(buf_ok(&text) ? text.ptr : "");
    buf_release(&text);
    return hex;
}

static json_t *tables_of(const struct store_copy *copy, bool also_empty)
{
    json_t *tables = json_array();
    for (size_t i = 0; i < copy->tables.count; i++) {
        const struct copy_digest *d = &copy->digests[i];
        if (d->rows == 0 && !also_empty)
            continue;
        (void)json_array_append_new(
            tables, json_pack("{s:s, s:I, s:o}", "table", copy->tables.list[i].name.ptr, "rows",
                              (json_int_t)d->rows, "sha256", hex_of(&d->hash)));
    }
    return tables;
}

/* Rows that have gone to their shards were copied before. */
static int64_t copied(const struct store_copy *copy)
{
    return copy->was_compared || copy->was_whole ? 0 : copy->rows - copy->rows_kept;
}

static void print_json(const struct store_copy *copy, size_t shards)
{
    struct sha256 digest = store_copy_digest(copy);
    json_t *all =
        json_pack("{s:I, s:I, s:I, s:I, s:o, s:o}", "rows", (json_int_t)copy->rows, "copied",
                  (json_int_t)copied(copy), "from_shards", (json_int_t)copy->source_count, "shards",
                  (json_int_t)shards, "sha256", hex_of(&digest), "tables", tables_of(copy, true));
    (void)json_dumpf(all, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(all);
}

static void print_report(const struct store_copy *copy, size_t shards, int64_t moved)
{
    static const struct column COLUMNS[] = {
        {"TABLE", "table"}, {"ROWS", "rows"}, {"SHA-256", "sha256"}};
    json_t *tables = tables_of(copy, false);
    rows_print(stdout, COLUMNS, ARRAY_LEN(COLUMNS), tables);
    json_decref(tables);
    if (copy->was_whole)
        printf("\nThe copy was finished before.");
    else
        printf("\nCopied %lld rows.", (long long)copied(copy));
    if (copy->source_count > 1)
        printf(" %zu shards became one store with %lld rows.", copy->source_count,
               (long long)copy->rows);
    if (shards == 1 && copy->source_count > 1)
        printf("\n");
    else if (shards == 1)
        printf(" Both stores have the same %lld rows.\n", (long long)copy->rows);
    else
        printf(" The tenants are in %zu shards; %lld were moved there now.\n", shards,
               (long long)moved);
}

/* --- the command --- */

static enum err check_target(const struct copy_config *config, struct problem *p)
{
    return cluster_spread_check_empty(config->to.ptr, p);
}

/* Each shard of the source is opened, and so locked, by itself. */
static enum err name_shards(struct migration *m, struct problem *p)
{
    bool kept = true;
    for (size_t i = 0; i < m->from_count && kept; i++) {
        struct buf url;
        buf_init(&url, 8 * KIB);
        cluster_source_put_url(m->source, i, &url);
        m->shards_from[i] = arena_take(&m->arena, &url);
        kept = m->shards_from[i].ptr != NULL;
    }
    return kept ? ERR_OK : problem_set(p, ERR_NO_MEMORY, "Out of memory");
}

static enum err look_at_source(struct migration *m, struct problem *p)
{
    enum err e = cluster_count_shards(m->from, p, &m->from_count);
    if (e != ERR_OK || m->from_count == 1)
        return e;
    e = cluster_source_open(m->from, p, &m->source);
    return e == ERR_OK ? name_shards(m, p) : e;
}

static enum err check_source(const struct copy_config *config, struct problem *p)
{
    const struct migration *m = config->ctx;
    return cluster_source_check(m->source, p);
}

static enum err copy_rows(struct migration *m, struct problem *p)
{
    bool of_shards = m->from_count > 1;
    struct copy_config config = {.from = of_shards ? m->shards_from[0] : str_of(m->from),
                                 .others = m->shards_from + 1,
                                 .other_count = m->from_count - 1,
                                 .to = str_of(m->to),
                                 .env = &ENV_SYSTEM,
                                 .is_first_shard = m->shards > 1,
                                 .check_target = m->shards > 1 ? check_target : NULL,
                                 .check_source = of_shards ? check_source : NULL,
                                 .on_progress = show_progress,
                                 .ctx = m};
    m->is_open = true;
    enum err e = store_copy_open(&m->copy, &config, p);
    if (e == ERR_OK && m->shards > 1 && !m->copy.was_whole)
        e = cluster_spread_prepare(m->to, p);
    if (e == ERR_OK)
        e = store_copy_run(&m->copy, p);
    progress_end(&m->display.bar);
    return e;
}

static enum err copy_store(struct migration *m, struct problem *p)
{
    if (strcmp(m->from, m->to) == 0)
        return problem_set(p, ERR_BAD_REQUEST, "The source and the target are the same store");
    enum err e = look_at_source(m, p);
    if (e == ERR_OK)
        e = cluster_count_shards(m->to, p, &m->shards);
    if (e == ERR_OK && m->shards > 1)
        e = cluster_spread_check(m->to, p);
    if (e == ERR_OK)
        e = copy_rows(m, p);
    if (e != ERR_OK || m->shards == 1 || m->copy.was_whole)
        return e;
    store_copy_close_target(&m->copy); /* the shard is taken again, with the others */
    return cluster_spread(m->to, show_moved, &m->moved, p);
}

static enum cli_exit migrate(struct session *s)
{
    static struct migration m; /* too large for a stack */
    struct problem p;
    m.from = options_text(&s->opt, "from");
    m.to = options_text(&s->opt, "to");
    arena_init(&m.arena, URLS_BYTES_MAX);
    problem_init(&p);
    log_setup(LOG_TEXT, LOG_WARN, &ENV_SYSTEM);
    enum err e = copy_store(&m, &p);
    if (e != ERR_OK)
        fprintf(stderr, "pawl: %s\n", p.detail);
    else if (options_has(&s->opt, "json"))
        print_json(&m.copy, m.shards);
    else
        print_report(&m.copy, m.shards, m.moved);
    if (m.is_open)
        store_copy_close(&m.copy);
    cluster_source_close(m.source);
    arena_release(&m.arena);
    problem_release(&p);
    return e == ERR_OK ? CLI_DONE : e == ERR_BAD_REQUEST ? CLI_USAGE : CLI_REFUSED;
}
