/* Clock, dice, ids and the text of times. */
#include "support.h"

static const int64_t YEAR_1_MS = -62135596800000;    /* 0001-01-01T00:00:00.000Z */
static const int64_t YEAR_9999_MS = 253402300799999; /* 9999-12-31T23:59:59.999Z */

/* --- the world --- */

static void the_world_given_is_the_one_asked(void **state)
{
    (void)state;
    struct still_world world = {.now_us = 1234567, .dice = 0x5A};
    struct env env = still_env(&world);
    assert_true(env_now_ms(&env) == 1234);
    assert_true(env_mono_ns(&env) == 1234567000);
    assert_true(env_mono_ms(&env) == 1234);
    unsigned char bytes[3] = {0};
    env_random(&env, bytes, 2);
    assert_int_equal(bytes[0], 0x5A);
    assert_int_equal(bytes[1], 0x5A);
    assert_int_equal(bytes[2], 0);
}

static void the_machines_monotonic_clock_never_goes_back(void **state)
{
    (void)state;
    int64_t last = env_mono_ns(&ENV_SYSTEM);
    for (int i = 0; i < 10000; i++) {
        int64_t now = env_mono_ns(&ENV_SYSTEM);
        assert_true(now >= last);
        last = now;
    }
}

/* Draws of every size around those at which the pool is passed by or filled again: all of the bytes
 * asked for are written, no byte more, and no eight of them come twice. */
static void the_machines_dice_fill_what_is_asked_and_repeat_nothing(void **state)
{
    (void)state;
    enum { DRAWS = 600 };
    static uint64_t seen[DRAWS];
    for (size_t i = 0; i < DRAWS; i++) {
        unsigned char bytes[DRAWS + 8 + 1];
        size_t len = i + 8;
        memset(bytes, 0, sizeof(bytes));
        env_random(&ENV_SYSTEM, bytes, len);
        assert_int_equal(bytes[len], 0);
        uint64_t tail;
        memcpy(&tail, bytes + len - 8, sizeof(tail));
        uint64_t head;
        memcpy(&head, bytes, sizeof(head));
        assert_true(tail != 0 && head != 0);
        for (size_t k = 0; k < i; k++)
            assert_true(seen[k] != tail);
        seen[i] = tail;
    }
}

static void the_machines_ids_differ(void **state)
{
    (void)state;
    struct uuid last = env_new_id(&ENV_SYSTEM);
    for (int i = 0; i < 1000; i++) {
        struct uuid id = env_new_id(&ENV_SYSTEM);
        assert_false(uuid_eq(id, last));
        last = id;
    }
}

/* --- ids --- */

static void assert_id_text(struct uuid id, const char *wanted)
{
    struct buf b;
    buf_init(&b, UUID_TEXT_LEN);
    buf_put_uuid(&b, id);
    assert_true(buf_ok(&b));
    assert_str(buf_str(&b), wanted);
    buf_release(&b);
}

/* The time of the example in RFC 9562, appendix A.6. */
static void an_id_holds_the_time_its_fraction_and_dice(void **state)
{
    (void)state;
    struct still_world world = {.now_us = 1645557742000000, .dice = 0x00};
    struct env env = still_env(&world);
    assert_id_text(env_new_id(&env), "017f22e2-79b0-7000-8000-000000000000");
    world.dice = 0xFF;
    assert_id_text(env_new_id(&env), "017f22e2-79b0-7000-bfff-ffffffffffff");
    world.now_us += 500;
    assert_id_text(env_new_id(&env), "017f22e2-79b0-7800-bfff-ffffffffffff");
    world.now_us += 499;
    assert_id_text(env_new_id(&env), "017f22e2-79b0-7ffb-bfff-ffffffffffff");
    world.now_us += 1;
    assert_id_text(env_new_id(&env), "017f22e2-79b1-7000-bfff-ffffffffffff");
    world.now_us = 0;
    assert_id_text(env_new_id(&env), "00000000-0000-7000-bfff-ffffffffffff");
}

static void ids_have_version_7_and_the_rfc_variant(void **state)
{
    (void)state;
    struct rng rng = {9562};
    struct still_world world = {0};
    struct env env = still_env(&world);
    for (int i = 0; i < 10000; i++) {
        world.now_us = (int64_t)rng_below(&rng, (uint64_t)1 << 55);
        world.dice = (unsigned char)rng_next(&rng);
        struct uuid id = env_new_id(&env);
        assert_int_equal(id.bytes[6] >> 4, 7);
        assert_int_equal(id.bytes[8] >> 6, 2);
    }
}

/* A microsecond later is greater, whatever the dice say; the text sorts as the bytes do. */
static void ids_are_in_the_order_of_time(void **state)
{
    (void)state;
    struct still_world world = {.now_us = 1700000000123000 - 5000, .dice = 0xFF};
    struct env env = still_env(&world);
    struct uuid last = env_new_id(&env);
    for (int i = 0; i < 10000; i++) {
        world.now_us++;
        world.dice = i % 2 == 0 ? 0x00 : 0xFF;
        struct uuid id = env_new_id(&env);
        assert_true(memcmp(last.bytes, id.bytes, sizeof(id.bytes)) < 0);
        struct buf a;
        struct buf b;
        buf_init(&a, UUID_TEXT_LEN);
        buf_init(&b, UUID_TEXT_LEN);
        buf_put_uuid(&a, last);
        buf_put_uuid(&b, id);
        assert_true(strcmp(a.ptr, b.ptr) < 0);
        buf_release(&a);
        buf_release(&b);
        last = id;
    }
}

static void ids_read_back_from_their_text_in_either_case(void **state)
{
    (void)state;
    struct rng rng = {3};
    struct buf b;
    buf_init(&b, UUID_TEXT_LEN);
    for (int i = 0; i < 2000; i++) {
        struct uuid id;
        for (size_t k = 0; k < sizeof(id.bytes); k++)
            id.bytes[k] = (unsigned char)rng_next(&rng);
        buf_clear(&b);
        buf_put_uuid(&b, id);
        struct uuid back = {{0}};
        assert_true(uuid_parse(buf_str(&b), &back));
        assert_true(uuid_eq(id, back));
        for (size_t k = 0; k < b.len; k++) {
            if (b.ptr[k] >= 'a')
                b.ptr[k] = (char)(b.ptr[k] - 'a' + 'A');
        }
        struct uuid upper = {{0}};
        assert_true(uuid_parse(buf_str(&b), &upper));
        assert_true(uuid_eq(id, upper));
    }
    buf_release(&b);
}

static void ids_that_differ_in_one_bit_are_not_equal(void **state)
{
    (void)state;
    struct uuid a = {{0}};
    assert_true(uuid_eq(a, a));
    for (size_t bit = 0; bit < 128; bit++) {
        struct uuid b = a;
        b.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_false(uuid_eq(a, b));
    }
}

static void text_that_is_no_id_is_refused(void **state)
{
    (void)state;
    static const char GOOD[] = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
    static const char *const BAD[] = {
        "",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398f0",
        "017f22e279b07cc398c4dc0c0c07398f",
        "{017f22e2-79b0-7cc3-98c4-dc0c0c0739}",
        "urn:uuid:017f22e2-79b0-7cc3-98c4-dc0",
        "017f22e-279b0-7cc3-98c4-dc0c0c07398f",
        " 017f22e2-79b0-7cc3-98c4-dc0c0c07398",
        "017f22e2 79b0 7cc3 98c4 dc0c0c07398f",
        "+17f22e2-79b0-7cc3-98c4-dc0c0c07398f",
    };
    struct uuid untouched = {{1, 2, 3}};
    struct uuid id = untouched;
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        if (uuid_parse(str_of(BAD[i]), &id))
            fail_msg("<%s> was read", BAD[i]);
    }
    assert_false(uuid_parse(STR_NONE, &id));
    /* Every byte of a good text, in turn, made into every other that is no hex digit or hyphen
     * there. */
    for (size_t at = 0; at < UUID_TEXT_LEN; at++) {
        for (int c = 0; c < 256; c++) {
            bool hyphen = GOOD[at] == '-';
            bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
            if (hyphen ? c == '-' : hex)
                continue;
            char text[UUID_TEXT_LEN];
            memcpy(text, GOOD, sizeof(text));
            text[at] = (char)c;
            if (uuid_parse((struct str){text, sizeof(text)}, &id))
                fail_msg("byte %zu as 0x%02x was read", at, (unsigned)c);
        }
    }
    assert_true(uuid_eq(id, untouched));
    assert_true(uuid_parse(str_of(GOOD), &id));
}

/* --- times --- */

#define assert_time_text(ms, wanted)          \
    do {                                      \
        struct buf out_;                      \
        buf_init(&out_, TIME_TEXT_LEN);       \
        buf_put_time(&out_, (ms));            \
        assert_true(buf_ok(&out_));           \
        assert_str(buf_str(&out_), (wanted)); \
        buf_release(&out_);                   \
    } while (0)

#define assert_time(text, wanted_ms)                                   \
    do {                                                               \
        int64_t ms_ = 77;                                              \
        if (!time_parse(str_of(text), &ms_))                           \
            fail_msg("<%s> was refused", (text));                      \
        if (ms_ != (wanted_ms))                                        \
            fail_msg("<%s> was read as %lld", (text), (long long)ms_); \
    } while (0)

#define assert_no_time(text)                                           \
    do {                                                               \
        int64_t ms_ = 77;                                              \
        if (time_parse(str_of(text), &ms_))                            \
            fail_msg("<%s> was read as %lld", (text), (long long)ms_); \
        assert_true(ms_ == 77);                                        \
    } while (0)

static void known_times_are_written_and_read(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } ROWS[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {1, "1970-01-01T00:00:00.001Z"},
        {-1, "1969-12-31T23:59:59.999Z"},
        {-86400000, "1969-12-31T00:00:00.000Z"},
        {86399999, "1970-01-01T23:59:59.999Z"},
        {951782400000, "2000-02-29T00:00:00.000Z"},
        {951868800000, "2000-03-01T00:00:00.000Z"},
        {1709164800000, "2024-02-29T00:00:00.000Z"},
        {4107542400000, "2100-03-01T00:00:00.000Z"},
        {4107456000000, "2100-02-28T00:00:00.000Z"},
        {1645557742123, "2022-02-22T19:22:22.123Z"},
        {2147483648000, "2038-01-19T03:14:08.000Z"},
        {-2208988800000, "1900-01-01T00:00:00.000Z"},
        {-62135596800000, "0001-01-01T00:00:00.000Z"},
        {253402300799999, "9999-12-31T23:59:59.999Z"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        assert_time_text(ROWS[i].ms, ROWS[i].text);
        assert_time(ROWS[i].text, ROWS[i].ms);
    }
}

/* The calendar repeats itself every 400 years. */
static void every_day_of_the_calendars_cycle_reads_back(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, TIME_TEXT_LEN);
    char last[TIME_TEXT_LEN + 1] = "";
    for (int64_t day = 0; day < 146097; day++) {
        int64_t ms = YEAR_1_MS + day * 86400000;
        int64_t back = 0;
        buf_clear(&b);
        buf_put_time(&b, ms);
        assert_true(time_parse(buf_str(&b), &back));
        assert_true(back == ms);
        assert_true(strcmp(last, b.ptr) < 0);
        memcpy(last, b.ptr, sizeof(last));
    }
    assert_string_equal(last, "0400-12-31T00:00:00.000Z");
    buf_release(&b);
}

/* Against the C library, which counts days in its own way. */
static void random_times_are_written_as_the_c_library_has_them_and_read_back(void **state)
{
    (void)state;
    struct rng rng = {3339};
    struct buf b;
    buf_init(&b, TIME_TEXT_LEN);
    for (int i = 0; i < 100000; i++) {
        int64_t ms = YEAR_1_MS + (int64_t)rng_below(&rng, (uint64_t)(YEAR_9999_MS - YEAR_1_MS) + 1);
        int64_t fraction = (ms % 1000 + 1000) % 1000;
        time_t seconds = (time_t)((ms - fraction) / 1000);
        struct tm tm;
        assert_non_null(gmtime_r(&seconds, &tm));
        char wanted[80];
        (void)snprintf(wanted, sizeof(wanted), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                       tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
                       tm.tm_sec, (int)fraction);
        buf_clear(&b);
        buf_put_time(&b, ms);
        assert_str(buf_str(&b), wanted);
        int64_t back = 0;
        assert_true(time_parse(buf_str(&b), &back));
        assert_true(back == ms);
    }
    buf_release(&b);
}

/* The text of a second is kept for the next time. */
static void times_around_a_second_are_written_in_any_order(void **state)
{
    (void)state;
    for (int64_t second = -2; second <= 2; second++) {
        for (int64_t ms = -1; ms <= 1; ms++) {
            struct buf b;
            int64_t back = 0;
            buf_init(&b, TIME_TEXT_LEN);
            buf_put_time(&b, 1000 * second + ms);
            assert_true(time_parse(buf_str(&b), &back));
            assert_int_equal(back, 1000 * second + ms);
            buf_release(&b);
        }
    }
}

static void offsets_are_taken_off(void **state)
{
    (void)state;
    assert_time("1970-01-01T00:00:00+00:00", 0);
    assert_time("1970-01-01T00:00:00-00:00", 0);
    assert_time("1970-01-01T01:00:00+01:00", 0);
    assert_time("1969-12-31T23:00:00-01:00", 0);
    assert_time("1970-01-01T05:45:00+05:45", 0);
    assert_time("1969-12-31T00:01:00-23:59", 0);
    assert_time("1970-01-01T23:59:00+23:59", 0);
    /* RFC 3339, section 5.8. */
    assert_time("1985-04-12T23:20:50.52Z", 482196050520);
    assert_time("1996-12-19T16:39:57-08:00", 851042397000);
    assert_time("1996-12-20T00:39:57Z", 851042397000);
    assert_time("1937-01-01T12:00:27.87+00:20", -1041337172130);
}

static void fractions_count_to_the_millisecond(void **state)
{
    (void)state;
    assert_time("1970-01-01T00:00:00.5Z", 500);
    assert_time("1970-01-01T00:00:00.05Z", 50);
    assert_time("1970-01-01T00:00:00.005Z", 5);
    assert_time("1970-01-01T00:00:00.0005Z", 0);
    assert_time("1970-01-01T00:00:00.1239999999999999999999999999999Z", 123);
    assert_time("1970-01-01T00:00:00.999999Z", 999);
    assert_time("1969-12-31T23:59:59.9Z", -100);
    assert_time("1970-01-01T00:00:00Z", 0);
    assert_time("1970-01-01T01:00:00.25+01:00", 250);
}

static void small_letters_and_a_space_are_allowed(void **state)
{
    (void)state;
    assert_time("1970-01-01t00:00:01z", 1000);
    assert_time("1970-01-01 00:00:01Z", 1000);
}

static void leap_years_have_a_29th_of_february(void **state)
{
    (void)state;
    static const struct {
        int year;
        bool leap;
    } ROWS[] = {
        {1, false},    {4, true},    {100, false},  {400, true},   {1600, true},  {1700, false},
        {1900, false}, {1996, true}, {1999, false}, {2000, true},  {2023, false}, {2024, true},
        {2100, false}, {2400, true}, {9996, true},  {9999, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        char text[64];
        (void)snprintf(text, sizeof(text), "%04d-02-29T00:00:00Z", ROWS[i].year);
        int64_t ms;
        if (time_parse(str_of(text), &ms) != ROWS[i].leap)
            fail_msg("%s", text);
        (void)snprintf(text, sizeof(text), "%04d-02-30T00:00:00Z", ROWS[i].year);
        assert_no_time(text);
    }
}

static void months_end_when_they_end(void **state)
{
    (void)state;
    static const int DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    for (int month = 1; month <= 12; month++) {
        char text[64];
        int64_t last = 0;
        (void)snprintf(text, sizeof(text), "2023-%02d-%02dT00:00:00Z", month, DAYS[month - 1]);
        assert_true(time_parse(str_of(text), &last));
        (void)snprintf(text, sizeof(text), "2023-%02d-%02dT00:00:00Z", month, DAYS[month - 1] + 1);
        assert_no_time(text);
        if (month < 12) {
            (void)snprintf(text, sizeof(text), "2023-%02d-01T00:00:00Z", month + 1);
            assert_time(text, last + 86400000);
        }
    }
}

static void dates_and_times_that_do_not_exist_are_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "0000-01-01T00:00:00Z",      "2024-00-01T00:00:00Z",      "2024-13-01T00:00:00Z",
        "2024-01-00T00:00:00Z",      "2024-01-32T00:00:00Z",      "2024-04-31T00:00:00Z",
        "2024-01-01T24:00:00Z",      "2024-01-01T00:60:00Z",      "2024-01-01T00:00:61Z",
        "2024-01-01T00:00:99Z",      "2024-01-01T00:00:00+24:00", "2024-01-01T00:00:00+00:60",
        "2024-01-01T00:00:00-24:00", "2024-01-01T99:00:00Z",
    };
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++)
        assert_no_time(BAD[i]);
}

static void malformed_times_are_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "",
        "Z",
        "2024-01-01",
        "2024-01-01T00:00Z",
        "2024-01-01T00:00:00",
        "2024-01-01T00:00:00.Z",
        "2024-01-01T00:00:00,5Z",
        "2024-01-01T00:00:00.5",
        "2024-01-01T00:00:00 Z",
        "2024-01-01T00:00:00Z ",
        " 2024-01-01T00:00:00Z",
        "2024-01-01T00:00:00ZZ",
        "2024-01-01T00:00:00Z+00:00",
        "2024-01-01T00:00:00+0000",
        "2024-01-01T00:00:00+00",
        "2024-01-01T00:00:00+00:0",
        "2024-01-01T00:00:00+00:000",
        "2024-01-01T00:00:00+-1:00",
        "2024-1-01T00:00:00Z",
        "2024-01-1T00:00:00Z",
        "2024/01/01T00:00:00Z",
        "20240101T000000Z",
        "24-01-01T00:00:00Z",
        "12024-01-01T00:00:00Z",
        "+2024-01-01T00:00:00Z",
        "-024-01-01T00:00:00Z",
        "2024-01-01_00:00:00Z",
        "2024-01-01T00:00:-1Z",
        "2024-01-01T00:00:00.-5Z",
        "2024-01-01T00:00:00\342\210\22201:00",
    };
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++)
        assert_no_time(BAD[i]);
    int64_t ms = 77;
    assert_false(time_parse(STR_NONE, &ms));
    assert_false(time_parse((struct str){"2024-01-01T00:00:00\0", 20}, &ms));
    assert_false(time_parse((struct str){"2024-01-01\0"
                                         "00:00:00Z",
                                         20},
                            &ms));
    assert_true(ms == 77);
}

static void a_time_cut_anywhere_is_refused(void **state)
{
    (void)state;
    static const char *const WHOLE[] = {"2024-02-29T12:34:56.789Z",
                                        "2024-02-29T12:34:56.789+05:30"};
    for (size_t i = 0; i < ARRAY_LEN(WHOLE); i++) {
        int64_t ms = 77;
        for (size_t len = 0; len < strlen(WHOLE[i]); len++)
            assert_false(time_parse((struct str){WHOLE[i], len}, &ms));
        assert_true(ms == 77);
        assert_true(time_parse(str_of(WHOLE[i]), &ms));
    }
}

/* A leap second is the one after it: POSIX time has no name for it. */
static void leap_seconds_are_read_as_the_next_second(void **state)
{
    (void)state;
    assert_time("2016-12-31T23:59:60Z", 1483228800000);
    assert_time("2016-12-31T23:59:60.5Z", 1483228800500);
    assert_time("1990-12-31T15:59:60-08:00", 662688000000);
}

/* Whatever is read can be written: offsets and leap seconds must not lead out of the years 1 to
 * 9999. */
static void times_outside_of_the_years_1_to_9999_in_utc_are_refused(void **state)
{
    (void)state;
    assert_no_time("0001-01-01T00:00:00+00:01");
    assert_no_time("0001-01-01T00:59:59.999+01:00");
    assert_no_time("9999-12-31T23:59:59-00:01");
    assert_no_time("9999-12-31T23:00:00-01:00");
    assert_no_time("9999-12-31T23:59:60Z");
    assert_time("0001-01-01T01:00:00+01:00", YEAR_1_MS);
    assert_time("0001-01-01T00:00:00-01:00", YEAR_1_MS + 3600000);
    assert_time("9999-12-31T22:59:59.999-01:00", YEAR_9999_MS);
    assert_time("9999-12-31T23:59:59.999+01:00", YEAR_9999_MS - 3600000);
}

static void put_the_year_10000(void)
{
    struct buf b;
    buf_init(&b, 100);
    buf_put_time(&b, YEAR_9999_MS + 1);
}

static void put_the_year_0(void)
{
    struct buf b;
    buf_init(&b, 100);
    buf_put_time(&b, YEAR_1_MS - 1);
}

static void writing_a_time_outside_of_the_years_1_to_9999_stops_the_program(void **state)
{
    (void)state;
    assert_true(aborts(put_the_year_10000));
    assert_true(aborts(put_the_year_0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_world_given_is_the_one_asked),
        cmocka_unit_test(the_machines_monotonic_clock_never_goes_back),
        cmocka_unit_test(the_machines_dice_fill_what_is_asked_and_repeat_nothing),
        cmocka_unit_test(the_machines_ids_differ),
        cmocka_unit_test(an_id_holds_the_time_its_fraction_and_dice),
        cmocka_unit_test(ids_have_version_7_and_the_rfc_variant),
        cmocka_unit_test(ids_are_in_the_order_of_time),
        cmocka_unit_test(ids_read_back_from_their_text_in_either_case),
        cmocka_unit_test(ids_that_differ_in_one_bit_are_not_equal),
        cmocka_unit_test(text_that_is_no_id_is_refused),
        cmocka_unit_test(known_times_are_written_and_read),
        cmocka_unit_test(every_day_of_the_calendars_cycle_reads_back),
        cmocka_unit_test(random_times_are_written_as_the_c_library_has_them_and_read_back),
        cmocka_unit_test(times_around_a_second_are_written_in_any_order),
        cmocka_unit_test(offsets_are_taken_off),
        cmocka_unit_test(fractions_count_to_the_millisecond),
        cmocka_unit_test(small_letters_and_a_space_are_allowed),
        cmocka_unit_test(leap_years_have_a_29th_of_february),
        cmocka_unit_test(months_end_when_they_end),
        cmocka_unit_test(dates_and_times_that_do_not_exist_are_refused),
        cmocka_unit_test(malformed_times_are_refused),
        cmocka_unit_test(a_time_cut_anywhere_is_refused),
        cmocka_unit_test(leap_seconds_are_read_as_the_next_second),
        cmocka_unit_test(times_outside_of_the_years_1_to_9999_in_utc_are_refused),
        cmocka_unit_test(writing_a_time_outside_of_the_years_1_to_9999_stops_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
