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

void people_watch(const struct sim *w, struct wall_clocks *clocks)
{
    for (int i = 0; i < w->place_count; i++)
        clocks->latest_ms[i] = MAX(clocks->latest_ms[i], place_wall_ms(w, &w->places[i]));
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

void people_put(struct sim *w, struct place *p, const char *target, const char *body)
{
    for (int t = 0; t < TENANTS; t++) {
        char tenant[8];
        tenant_name(tenant, t);
        struct call *c = sim_ask(w, p, tenant, "PUT", target, body);
        assert(c != NULL && c->status == 200);
        call_free(c);
    }
}

struct call *people_ask(struct sim *w, struct place *p, const char *tenant, const char *target)
{
    struct call *c = sim_ask(w, p, tenant, "GET", target, NULL);
    if (c == NULL || (c->status == 404 && sim_on(w, ON_RETENTION))) {
        call_free(c);
        return NULL;
    }
    sim_check(w, 6, c->status == 200, "%s is answered %d %s", target, c->status, c->code);
    return c;
}
