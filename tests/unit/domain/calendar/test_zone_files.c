/* Time zone files: the table and its rule, and files that are broken. */
#include "domain/calendar/zone_support.h"

/* --- zones made for a test --- */

static const int64_t TIMES[] = {-1000, 0, 5000};
static const unsigned char INDEXES[] = {1, 2, 1};
static const int32_t OFFSETS[] = {600, 3600, -7200};
static const struct file SOUND = {
    .version = '2',
    .time_count = 3,
    .type_count = 3,
    .char_count = 4,
    .times = TIMES,
    .indexes = INDEXES,
    .offsets = OFFSETS,
    .footer = "\n\n",
};

static void must_refuse(const struct file *f, const char *why)
{
    struct setup s;
    begin(&s);
    assert_int_equal(parse_file(&s, f), ERR_FIELD_INVALID);
    assert_contains(s.problem.detail, why);
    assert_contains(s.problem.detail, "timezone");
    assert_int_equal(s.zone.first_offset_s, 12345); /* untouched */
    end(&s);
}

/* --- the table --- */

static void the_table_is_read_in_both_widths(void **state)
{
    (void)state;
    for (int version = 0; version <= '4'; version += version == 0 ? '2' : 1) {
        struct setup s;
        begin(&s);
        struct file f = SOUND;
        f.version = (char)version;
        assert_int_equal(parse_file(&s, &f), ERR_OK);
        assert_int_equal(zone_offset_s(&s.zone, INT64_MIN), 600);
        assert_int_equal(zone_offset_s(&s.zone, -1001), 600);
        assert_int_equal(zone_offset_s(&s.zone, -1000), 3600);
        assert_int_equal(zone_offset_s(&s.zone, -1), 3600);
        assert_int_equal(zone_offset_s(&s.zone, 0), -7200);
        assert_int_equal(zone_offset_s(&s.zone, 4999), -7200);
        assert_int_equal(zone_offset_s(&s.zone, 5000), 3600);
        assert_int_equal(zone_offset_s(&s.zone, INT64_MAX), 3600);
        assert_int_equal(zone_span_at(&s.zone, -1).until_s, 0);
        assert_true(zone_span_at(&s.zone, 5000).until_s == INT64_MAX);
        end(&s);
    }
}

static void the_rule_holds_after_the_table_only(void **state)
{
    (void)state;
    struct setup s;
    begin(&s);
    struct file f = SOUND;
    f.footer = "\nAAA-3\nwhat follows is of no interest";
    assert_int_equal(parse_file(&s, &f), ERR_OK);
    assert_int_equal(zone_offset_s(&s.zone, -1001), 600);
    assert_int_equal(zone_offset_s(&s.zone, 4999), -7200);
    assert_int_equal(zone_offset_s(&s.zone, 5000), 10800);
    end(&s);
}

static void changes_may_lie_at_the_ends_of_time(void **state)
{
    (void)state;
    static const int64_t ENDS[] = {INT64_MIN, INT64_MAX - 1, INT64_MAX};
    struct setup s;
    begin(&s);
    struct file f = SOUND;
    f.times = ENDS;
    f.footer = "\nAAA-3\n";
    assert_int_equal(parse_file(&s, &f), ERR_OK);
    assert_int_equal(zone_offset_s(&s.zone, INT64_MIN), 3600);
    assert_int_equal(zone_offset_s(&s.zone, INT64_MAX - 1), -7200);
    assert_int_equal(zone_offset_s(&s.zone, INT64_MAX), 10800);
    int64_t first;
    int64_t second;
    assert_int_equal(zone_to_utc(&s.zone, 3600, &first, &second), 1);
    assert_int_equal(first, 0);
    for (int64_t d = 0; d < INT64_C(4) * DAY_S; d += 3599) {
        (void)zone_to_utc(&s.zone, INT64_MIN + d, &first, &second);
        (void)zone_to_utc(&s.zone, INT64_MAX - d, &first, &second);
    }
    end(&s);
}

static void files_that_contradict_themselves_are_refused(void **state)
{
    (void)state;
    static const int64_t EQUAL[] = {-1000, 0, 0};
    static const int64_t BACKWARDS[] = {0, -1000, 5000};
    static const unsigned char BEYOND[] = {1, 3, 1};
    static const int32_t TOO_FAR_EAST[] = {600, ZONE_OFFSET_MAX_S + 1, 0};
    static const int32_t TOO_FAR_WEST[] = {600, 0, ZONE_OFFSET_MIN_S - 1};
    static const int32_t LEAST[] = {INT32_MIN, 0, 0};
    struct file f;
#define REFUSED(why, ...)         \
    do {                          \
        f = SOUND;                \
        struct file *change = &f; \
        __VA_ARGS__;              \
        must_refuse(&f, why);     \
    } while (0)
    REFUSED("order", change->times = EQUAL);
    REFUSED("order", change->times = BACKWARDS);
    REFUSED("type", change->indexes = BEYOND);
    REFUSED("type", change->offsets = TOO_FAR_EAST);
    REFUSED("type", change->offsets = TOO_FAR_WEST);
    REFUSED("type", change->offsets = LEAST);
    REFUSED("type", change->is_dst = 2);
    REFUSED("type", change->name = 4);
    REFUSED("type", change->char_count = 0);
    REFUSED("type", change->type_count = 0);
    REFUSED("count", change->ut_count = 2);
    REFUSED("count", change->std_count = 1);
    REFUSED("leap", change->leap_count = 1);
    REFUSED("version", change->version = '1');
    REFUSED("version", change->version = (char)0xFF);
    REFUSED("last line", change->footer = NULL);
    REFUSED("last line", change->footer = "\n");
    REFUSED("last line", change->footer = "\nAAA3");
    REFUSED("last line", change->footer = "AAA3\n");
    REFUSED("rule", change->footer = "\nAAA\n");
#undef REFUSED
}

static void counts_beyond_the_file_are_refused(void **state)
{
    (void)state;
    struct buf b = written(&SOUND);
    for (size_t head = 0; head <= 44; head += 44) { /* version 2 has two */
        for (size_t count = 0; count < 6; count++) {
            static const uint32_t LARGE[] = {1000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
            for (size_t i = 0; i < ARRAY_LEN(LARGE); i++) {
                struct setup s;
                begin(&s);
                char *copy = malloc(b.len);
                assert_non_null(copy);
                memcpy(copy, b.ptr, b.len);
                for (size_t n = 0; n < 4; n++)
                    copy[head + 20 + 4 * count + n] = (char)(LARGE[i] >> (24 - 8 * n));
                assert_int_equal(
                    zone_parse((struct str){copy, b.len}, &s.arena, &s.problem, &s.zone),
                    ERR_FIELD_INVALID);
                assert_int_equal(s.arena.used, 0);
                free(copy);
                end(&s);
            }
        }
    }
    buf_release(&b);
}

static struct str berlin(struct setup *s)
{
    struct str tzif = STR_NONE;
    assert_int_equal(zonefile_read(NULL, STR("Europe/Berlin"), &s->arena, &s->problem, &tzif),
                     ERR_OK);
    return tzif;
}

static void files_cut_short_are_refused(void **state)
{
    (void)state;
    struct setup whole;
    begin(&whole);
    struct str tzif = berlin(&whole);
    for (size_t len = 0; len < tzif.len; len++) {
        struct setup s;
        begin(&s);
        char *copy = malloc(len + 1);
        assert_non_null(copy);
        char *exact = copy + 1; /* its end is the end of the block */
        memcpy(exact, tzif.ptr, len);
        assert_int_equal(zone_parse((struct str){exact, len}, &s.arena, &s.problem, &s.zone),
                         ERR_FIELD_INVALID);
        free(copy);
        end(&s);
    }
    end(&whole);
}

static void broken_bytes_do_no_harm(void **state)
{
    (void)state;
    struct setup whole;
    begin(&whole);
    struct str tzif = berlin(&whole);
    struct rng g = {5};
    for (int i = 0; i < 20000; i++) {
        struct setup s;
        begin(&s);
        char *copy = malloc(tzif.len);
        assert_non_null(copy);
        memcpy(copy, tzif.ptr, tzif.len);
        for (uint64_t n = 1 + rng_below(&g, 3); n > 0; n--)
            copy[rng_below(&g, tzif.len)] = (char)rng_next(&g);
        if (zone_parse((struct str){copy, tzif.len}, &s.arena, &s.problem, &s.zone) == ERR_OK) {
            int64_t t = (int64_t)rng_next(&g) >> rng_below(&g, 64);
            assert_in_range(zone_offset_s(&s.zone, t) - ZONE_OFFSET_MIN_S, 0,
                            ZONE_OFFSET_MAX_S - ZONE_OFFSET_MIN_S);
            int64_t first;
            int64_t second;
            (void)zone_to_utc(&s.zone, t, &first, &second);
        } else {
            assert_int_equal(s.problem.err, ERR_FIELD_INVALID);
        }
        free(copy);
        end(&s);
    }
    end(&whole);
}

static void a_full_arena_is_no_memory(void **state)
{
    (void)state;
    struct setup s;
    begin(&s);
    arena_release(&s.arena);
    arena_init(&s.arena, 40); /* three changes need 48 */
    assert_int_equal(parse_file(&s, &SOUND), ERR_NO_MEMORY);
    assert_int_equal(s.zone.first_offset_s, 12345);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_read_in_both_widths),
        cmocka_unit_test(the_rule_holds_after_the_table_only),
        cmocka_unit_test(changes_may_lie_at_the_ends_of_time),
        cmocka_unit_test(files_that_contradict_themselves_are_refused),
        cmocka_unit_test(counts_beyond_the_file_are_refused),
        cmocka_unit_test(files_cut_short_are_refused),
        cmocka_unit_test(broken_bytes_do_no_harm),
        cmocka_unit_test(a_full_arena_is_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
