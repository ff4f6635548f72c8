#include "sim/people.h"

#include <stdio.h>
#include <time.h>

const char *const PEOPLE[PERSON_COUNT] = {"ann", "bob", "cat", "eve"};

enum person person_of(const char *name)
{
    int i = 0;
    while (i < PERSON_COUNT && strcmp(PEOPLE[i], name) != 0)
        i++;
    return (enum person)i;
}

enum person any_person(struct sim *w)
{
    return (enum person)lot_below(&w->lot, PERSON_COUNT);
}

int64_t place_wall_ms(const struct sim *w, const struct place *p)
{
    return sim_now_ms(w) + p->skew_us / 1000;
}

int64_t time_of(const char *text)
{
    struct tm tm = {0};
    int ms = 0;
    if (sscanf(text, "%d-%d-%dT%d:%d:%d.%dZ", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
               &tm.tm_min, &tm.tm_sec, &ms) != 7)
        return -1;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    return (int64_t)timegm(&tm) * 1000 + ms;
}

static void put_done(struct sim *w, struct call *c)
{
    sim_check(w, 0, c->status == 200, "%s is refused: %d %s %s", c->spec.target, c->status, c->code,
              json_text(c->json, "detail"));
}

void people_put(struct sim *w, struct place *p, const char *tenant, const char *target,
                const char *body)
{
    struct call_spec spec = {.place = p,
                             .method = "PUT",
                             .target = target,
                             .tenant = tenant,
                             .body = body,
                             .retries = true,
                             .doubles = true,
                             .done = put_done};
    (void)sim_send(w, &spec);
}

struct call *people_ask(struct sim *w, struct place *p, const char *tenant, const char *target)
{
    struct call *c = sim_ask(w, p, tenant, "GET", target, NULL);
    sim_check(w, 0, c != NULL, "server %d went down although nothing is wrong", p->number);
    sim_check(w, 6, c->status == 200, "%s is answered %d %s", target, c->status, c->code);
    return c;
}
