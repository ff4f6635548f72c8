/* Any bytes as a TZif file: a zone that is taken answers for every instant, its answers fit each
 * other, and expressions go on firing in it. */
#include "domain/calendar/cron.h"
#include "fuzz.h"

static void check_instant(const struct zone *z, int64_t t)
{
    struct zone_span span = zone_span_at(z, t);
    assert(span.offset_s == zone_offset_s(z, t));
    assert(span.until_s > t || span.until_s == INT64_MAX);
    if (span.until_s != INT64_MAX)
        assert(zone_offset_s(z, span.until_s - 1) == span.offset_s);

    int64_t local;
    int64_t found[2] = {0, 0};
    if (__builtin_add_overflow(t, span.offset_s, &local))
        return;
    int count = zone_to_utc(z, local, &found[0], &found[1]);
    for (int i = 0; i < count; i++)
        assert(found[i] + zone_offset_s(z, found[i]) == local);
    bool at_the_ends = local < INT64_MIN + 4 * DAY_S || local > INT64_MAX - 4 * DAY_S;
    assert(at_the_ends || count > 0);
    if (count == 1)
        assert(found[0] == t);
    if (count == 2)
        assert(found[0] < found[1] && t >= found[0]);
}

static void check_cron(const struct zone *z, const char *text, int64_t t)
{
    struct problem p;
    struct cron c;
    problem_init(&p);
    enum err e = cron_parse(str_of(text), &p, &c);
    assert(e == ERR_OK);
    problem_release(&p);
    for (int i = 0; i < 4; i++) {
        int64_t next;
        int64_t same;
        if (!cron_next(&c, z, t, &next))
            return;
        assert(next > t);
        /* Nothing fires in between. */
        bool again = cron_next(&c, z, next - 1, &same);
        assert(again && same == next);
        t = next;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct problem p;
    struct zone z;
    arena_init(&arena, 64 * KIB);
    problem_init(&p);
    enum err e = zone_parse(fuzz_text(data, size), &arena, &p, &z);
    assert(e == ERR_OK || e == ERR_FIELD_INVALID || e == ERR_NO_MEMORY);
    assert(e == ERR_OK || (p.err == e && p.detail[0] != '\0'));
    if (e == ERR_OK) {
        static const int64_t SOME[] = {
            INT64_MIN,  INT64_MIN + 100000, -62135596800,       -1,       0,
            1767225600, 4102444800,         INT64_MAX - 100000, INT64_MAX};
        for (size_t i = 0; i < ARRAY_LEN(SOME); i++)
            check_instant(&z, SOME[i]);
        for (size_t i = 0; i < z.change_count && i < 16; i++) {
            int64_t at_s = z.changes[z.change_count - 1 - i].at_s;
            check_instant(&z, at_s);
            if (at_s > INT64_MIN)
                check_instant(&z, at_s - 1);
        }
        int64_t last = z.change_count > 0 ? z.changes[z.change_count - 1].at_s : 1767225600;
        check_cron(&z, "*/25 * * * *", MAX(last, INT64_MIN + DAY_S) - DAY_S);
        check_cron(&z, "30 2 * * *", MAX(last, INT64_MIN + DAY_S) - DAY_S);
        check_cron(&z, "0 0 29 2 *", last);
        check_cron(&z, "0 */6 29 2 */6", last);
    }
    problem_release(&p);
    arena_release(&arena);
    return 0;
}
