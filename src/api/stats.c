/* Routes of figures: what happened in the last minutes, how full limits are. */
#include "core/usecase/stats.h"
#include "api/params.h"
#include "api/routes.h"

enum { STATS_MINUTES_DEFAULT = 60 };

static const char *waits_name(unsigned buckets)
{
    return buckets != 0 ? "buckets" : "percentiles";
}

static const struct param STATS[] = {
    QUERY("minutes", PARAM_INT, .min = 1, .max = MINUTES_OF_DAY, .initial = STATS_MINUTES_DEFAULT,
          INTO(struct get_stats_input, minutes)),
    QUERY("waits", PARAM_ENUM, WORDS(waits_name, 2), INTO(struct get_stats_input, buckets)),
};

static const struct param ADMISSION[] = {
    QUERY_LIMIT(struct get_admission_input),
};

/* --- of several shards --- */

static int64_t number_of(const struct json *object, const char *name)
{
    int64_t number = 0;
    return json_whole_of(json_member(object, str_of(name)), &number) ? number : 0;
}

/* Adds what render_figures() has put. */
static void read_figures(const struct json *from, struct minute_counts *c)
{
    const struct json *outcomes = json_member(from, STR("outcomes"));
    const struct json *buckets = json_member(json_member(from, STR("waits")), STR("buckets"));
    c->figures[MINUTE_STARTS] += number_of(from, "starts");
    for (enum run_status status = 0; status < RUN_STATUS_COUNT; status++) {
        if (run_has_ended(status))
            c->figures[minute_figure_of_end(status)] +=
                number_of(outcomes, run_status_name(status));
    }
    c->figures[MINUTE_REPLAYS] += number_of(from, "replays");
    c->figures[MINUTE_MISMATCHES] += number_of(from, "mismatches");
    c->figures[MINUTE_REFUSED] += number_of(from, "refused");
    for (size_t i = 0; i < MIN(json_length(buckets), (size_t)WAIT_BUCKETS); i++) {
        int64_t count = 0;
        if (json_whole_of(json_element(buckets, i), &count))
            c->waits[i] += count;
    }
}

static void put_sum(struct json_out *o, const struct json *a, const struct json *b, bool buckets)
{
    struct minute_counts sum = {0};
    read_figures(a, &sum);
    read_figures(b, &sum);
    render_figures(o, &sum, buckets);
}

/* Times are texts of the same form: their order is that of the texts. */
static int order_of(struct str a, struct str b)
{
    return a.ptr == NULL || b.ptr == NULL ? (a.ptr == NULL) - (b.ptr == NULL)
                                          : strcmp(a.ptr, b.ptr);
}

static void put_minutes(struct json_out *o, const struct json *a, const struct json *b,
                        bool buckets)
{
    size_t i = 0;
    size_t j = 0;
    json_open(o, "minutes", '[');
    while (i < json_length(a) || j < json_length(b)) {
        const struct json *first = json_element(a, i);
        const struct json *second = json_element(b, j);
        struct str first_at = json_text_of(json_member(first, STR("at")));
        struct str second_at = json_text_of(json_member(second, STR("at")));
        int order = order_of(first_at, second_at);
        json_open(o, NULL, '{');
        json_add_text(o, "at", order <= 0 ? first_at : second_at);
        put_sum(o, order <= 0 ? first : NULL, order >= 0 ? second : NULL, buckets);
        json_close(o, '}');
        i += order <= 0;
        j += order >= 0;
    }
    json_close(o, ']');
}

/* The earlier of the two, or the later. */
static void put_time(struct json_out *o, const char *name, const struct fold *f, bool later)
{
    struct str before = json_text_of(json_member(f->so_far, str_of(name)));
    struct str next = json_text_of(json_member(f->next, str_of(name)));
    int order = order_of(before, next);
    bool takes_next = before.ptr == NULL || (later ? order < 0 : order > 0);
    json_add_text_or_null(o, name, takes_next ? next : before);
}

static void fold_stats(const struct fold *f, struct json_out *o)
{
    bool buckets = !f->last || f->asked;
    put_time(o, "from", f, false);
    put_time(o, "to", f, true);
    json_open(o, "total", '{');
    put_sum(o, json_member(f->so_far, STR("total")), json_member(f->next, STR("total")), buckets);
    json_close(o, '}');
    put_minutes(o, json_member(f->so_far, STR("minutes")), json_member(f->next, STR("minutes")),
                buckets);
}

const struct route STATS_ROUTES[] = {
    {"GET", "/api/v1/admission", MAY_READ, .use_case = &UC_GET_ADMISSION,
     TAKES(struct get_admission_input, ADMISSION)},
    {"GET", "/api/v1/stats", MAY_READ, ROUTE_ANY_TENANT, &UC_GET_STATS,
     TAKES(struct get_stats_input, STATS), .join = JOIN_FOLD, .fold = fold_stats,
     .fold_query = "waits=buckets"},
    {.method = NULL},
};
