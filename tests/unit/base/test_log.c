/* Log lines as they arrive at standard error. */
#include "support.h"

#include "base/log.h"

#include <pthread.h>
#include <sys/socket.h>

static struct still_world world = {.now_us = 1645557742123456};
static struct env world_env;

static int begin(void **state)
{
    (void)state;
    world_env = still_env(&world);
    log_setup(LOG_TEXT, LOG_DEBUG, &world_env);
    return 0;
}

/* --- standard error, caught --- */

struct catch
{
    int read_end;
    int stderr_before;
};

static struct catch catch_begin(int read_end, int write_end)
{
    struct catch c = {read_end, dup(STDERR_FILENO)};
    assert_true(c.stderr_before >= 0);
    assert_true(dup2(write_end, STDERR_FILENO) >= 0);
    close(write_end);
    return c;
}

static void catch_end(struct catch *c)
{
    (void)dup2(c->stderr_before, STDERR_FILENO);
    close(c->stderr_before);
}

/* What act() wrote. It must stay below what a pipe holds, 64 KiB. */
static void caught(void (*act)(void), struct buf *out)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct catch c = catch_begin(ends[0], ends[1]);
    act();
    catch_end(&c);
    buf_init(out, 1 << 20);
    char bytes[4096];
    ssize_t got;
    while ((got = read(c.read_end, bytes, sizeof(bytes))) > 0)
        buf_put_bytes(out, bytes, (size_t)got);
    close(c.read_end);
    assert_true(buf_ok(out));
}

#define assert_logged(act, wanted)            \
    do {                                      \
        struct buf out_;                      \
        caught((act), &out_);                 \
        assert_str(buf_str(&out_), (wanted)); \
        buf_release(&out_);                   \
    } while (0)

/* One line, and nothing after it. */
static void assert_one_line(const struct buf *out)
{
    assert_true(out->len > 0);
    assert_ptr_equal(memchr(out->ptr, '\n', out->len), out->ptr + out->len - 1);
}

/* --- text --- */

static void log_fields(void)
{
    LOG(LOG_INFO, "listening", LOG_Z("host", "127.0.0.1"), LOG_N("port", 8080),
        LOG_S("x", STR("a-b")));
}

static void text_lines_have_time_level_message_and_fields(void **state)
{
    (void)state;
    assert_logged(log_fields,
                  "2022-02-22T19:22:22.123Z info  listening host=127.0.0.1 port=8080 x=a-b\n");
}

static void log_bare(void)
{
    LOG(LOG_WARN, "nothing to add");
}

static void fields_may_be_left_out(void **state)
{
    (void)state;
    assert_logged(log_bare, "2022-02-22T19:22:22.123Z warn  nothing to add\n");
    log_setup(LOG_JSON, LOG_DEBUG, &world_env);
    assert_logged(log_bare, "{\"time\":\"2022-02-22T19:22:22.123Z\",\"level\":\"warn\","
                            "\"message\":\"nothing to add\"}\n");
}

static void log_numbers(void)
{
    LOG(LOG_ERROR, "numbers", LOG_N("least", INT64_MIN), LOG_N("most", INT64_MAX),
        LOG_N("none", 0));
}

static void numbers_are_whole(void **state)
{
    (void)state;
    assert_logged(log_numbers, "2022-02-22T19:22:22.123Z error numbers least=-9223372036854775808 "
                               "most=9223372036854775807 none=0\n");
}

static void log_awkward(void)
{
    LOG(LOG_INFO, "m", LOG_Z("newline", "a\nlevel=error"), LOG_Z("return", "a\rb"),
        LOG_Z("space", "a b"), LOG_Z("quote", "a\"b"), LOG_Z("equals", "a=b"), LOG_Z("empty", ""),
        LOG_Z("escape", "\x1B[2J"), LOG_Z("del", "\x7F"), LOG_S("nul", ((struct str){"a\0b", 3})),
        LOG_Z("path", "C:\\x"));
}

static void awkward_text_is_quoted(void **state)
{
    (void)state;
    assert_logged(log_awkward,
                  "2022-02-22T19:22:22.123Z info  m newline=\"a\\nlevel=error\" return=\"a\\rb\" "
                  "space=\"a b\" quote=\"a\\\"b\" equals=\"a=b\" empty=\"\" escape=\"\\u001b[2J\" "
                  "del=\"\x7F\" nul=\"a\\u0000b\" path=C:\\x\n");
}

static struct str given_field;

static void log_given_field(void)
{
    LOG(LOG_INFO, "given", LOG_S("field", given_field), LOG_N("after", 1));
}

/* One awkward byte makes it, wherever it stands. */
static void awkward_bytes_are_found_at_any_place(void **state)
{
    (void)state;
    static const char AWKWARD[] = " \"=\n\t\x01\x1F\x7F";
    for (size_t i = 0; i < sizeof(AWKWARD) - 1; i++) {
        for (size_t at = 0; at < 3; at++) {
            char text[3] = {'a', 'b', 'c'};
            text[at] = AWKWARD[i];
            given_field = (struct str){text, 3};
            struct buf out;
            caught(log_given_field, &out);
            assert_one_line(&out);
            assert_contains(out.ptr, " field=\"");
            assert_contains(out.ptr, "\" after=1\n");
            buf_release(&out);
        }
    }
}

static void log_newline_in_message(void)
{
    log_line(LOG_INFO, "first\nsecond", NULL, 0);
}

static void a_message_never_makes_two_lines(void **state)
{
    (void)state;
    struct buf out;
    caught(log_newline_in_message, &out);
    assert_one_line(&out);
    assert_contains(out.ptr, "first\\nsecond");
    buf_release(&out);
    log_setup(LOG_JSON, LOG_DEBUG, &world_env);
    caught(log_newline_in_message, &out);
    assert_one_line(&out);
    assert_contains(out.ptr, "\"message\":\"first\\nsecond\"}");
    buf_release(&out);
}

/* --- JSON --- */

static void json_lines_hold_the_same_as_text(void **state)
{
    (void)state;
    log_setup(LOG_JSON, LOG_DEBUG, &world_env);
    assert_logged(log_fields, "{\"time\":\"2022-02-22T19:22:22.123Z\",\"level\":\"info\","
                              "\"message\":\"listening\",\"host\":\"127.0.0.1\",\"port\":8080,"
                              "\"x\":\"a-b\"}\n");
}

static void awkward_text_is_escaped_in_json(void **state)
{
    (void)state;
    log_setup(LOG_JSON, LOG_DEBUG, &world_env);
    assert_logged(
        log_awkward,
        "{\"time\":\"2022-02-22T19:22:22.123Z\",\"level\":\"info\",\"message\":\"m\","
        "\"newline\":\"a\\nlevel=error\",\"return\":\"a\\rb\",\"space\":\"a b\","
        "\"quote\":\"a\\\"b\",\"equals\":\"a=b\",\"empty\":\"\",\"escape\":\"\\u001b[2J\","
        "\"del\":\"\x7F\",\"nul\":\"a\\u0000b\",\"path\":\"C:\\\\x\"}\n");
}

static void each_kind_of_bad_utf8_still_makes_a_json_line(void **state)
{
    (void)state;
    log_setup(LOG_JSON, LOG_DEBUG, &world_env);
    for (size_t i = 0; i < ARRAY_LEN(BAD_UTF8); i++) {
        char text[16];
        int len = snprintf(text, sizeof(text), "ok%.*sok", STR_ARG(BAD_UTF8[i]));
        given_field = (struct str){text, (size_t)len};
        struct buf out;
        caught(log_given_field, &out);
        assert_one_line(&out);
        if (!str_is_utf8(buf_str(&out)))
            fail_msg("kind %zu is passed on", i);
        json_t *line = parsed_str(buf_str(&out));
        struct str logged = json_str(json_object_get(line, "field"));
        assert_true(str_starts_with(logged, STR("ok")));
        assert_true(str_ends_with(logged, STR("ok")));
        assert_int_equal(json_integer_value(json_object_get(line, "after")), 1);
        json_decref(line);
        buf_release(&out);
    }
}

static void good_utf8_is_passed_on(void **state)
{
    (void)state;
    given_field = STR("caf\xC3\xA9 \xF0\x9F\x98\x80");
    log_setup(LOG_JSON, LOG_DEBUG, &world_env);
    struct buf out;
    caught(log_given_field, &out);
    assert_contains(out.ptr, "\"field\":\"caf\xC3\xA9 \xF0\x9F\x98\x80\",\"after\":1}\n");
    buf_release(&out);
}

/* --- levels --- */

static void log_each_level(void)
{
    LOG(LOG_DEBUG, "d");
    LOG(LOG_INFO, "i");
    LOG(LOG_WARN, "w");
    LOG(LOG_ERROR, "e");
}

static void lines_below_the_least_level_are_not_written(void **state)
{
    (void)state;
    static const char *const ALL[] = {
        "2022-02-22T19:22:22.123Z debug d\n",
        "2022-02-22T19:22:22.123Z info  i\n",
        "2022-02-22T19:22:22.123Z warn  w\n",
        "2022-02-22T19:22:22.123Z error e\n",
    };
    for (enum log_level least = LOG_DEBUG; least <= LOG_ERROR; least++) {
        log_setup(LOG_TEXT, least, &world_env);
        struct buf wanted;
        buf_init(&wanted, 1024);
        for (size_t i = least; i < ARRAY_LEN(ALL); i++)
            buf_put(&wanted, str_of(ALL[i]));
        assert_logged(log_each_level, wanted.ptr);
        buf_release(&wanted);
    }
}

/* --- length --- */

static char long_text[20000];

static void give_long_field(size_t len, char c)
{
    assert_true(len < sizeof(long_text));
    memset(long_text, c, sizeof(long_text));
    given_field = (struct str){long_text, len};
}

/* At every length around the bound there is one whole line: with the field while it fits, without
 * it after. */
static void a_line_of_any_length_is_whole(void **state)
{
    (void)state;
    for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
        log_setup(format == LOG_TEXT ? LOG_TEXT : LOG_JSON, LOG_DEBUG, &world_env);
        size_t with_field = 0;
        size_t without_field = 0;
        for (size_t len = 8000; len < 8300; len++) {
            give_long_field(len, 'x');
            struct buf out;
            caught(log_given_field, &out);
            assert_one_line(&out);
            assert_contains(out.ptr, "2022-02-22T19:22:22.123Z");
            assert_contains(out.ptr, "info");
            assert_contains(out.ptr, "given");
            assert_true(out.len <= 8192);
            if (format == LOG_JSON)
                json_decref(parsed_str(buf_str(&out)));
            if (strstr(out.ptr, "xxx") != NULL) {
                assert_int_equal(without_field, 0);
                assert_contains(out.ptr, "after");
                with_field++;
            } else {
                without_field++;
            }
            buf_release(&out);
        }
        assert_true(with_field > 0);
        assert_true(without_field > 0);
    }
}

static void log_long_message(void)
{
    log_line(LOG_ERROR, long_text, NULL, 0);
}

static void a_message_of_any_length_is_logged_at_least_in_part(void **state)
{
    (void)state;
    static const char *const BITS[] = {"x", "\n", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
    for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
        log_setup(format == LOG_TEXT ? LOG_TEXT : LOG_JSON, LOG_DEBUG, &world_env);
        for (size_t i = 0; i < ARRAY_LEN(BITS); i++) {
            for (size_t total = 8140; total < 8200; total++) {
                size_t len = 0;
                (void)snprintf(long_text, sizeof(long_text), "start ");
                for (len = 6; len < total; len += strlen(BITS[i]))
                    memcpy(long_text + len, BITS[i], strlen(BITS[i]) + 1);
                struct buf out;
                caught(log_long_message, &out);
                assert_one_line(&out);
                assert_contains(out.ptr, "error");
                assert_contains(out.ptr, "start ");
                assert_true(out.len > 1000);
                assert_true(out.len <= 8192);
                assert_true(str_is_utf8(buf_str(&out)));
                if (format == LOG_JSON)
                    json_decref(parsed_str(buf_str(&out)));
                buf_release(&out);
            }
        }
    }
}

/* --- one call, any thread --- */

/* A socket of packets keeps apart what was written apart. */
static void each_line_is_written_with_one_call(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    give_long_field(7000, 'y');
    struct catch c = catch_begin(ends[0], ends[1]);
    log_fields();
    log_given_field();
    catch_end(&c);
    char packet[16384];
    ssize_t first = recv(c.read_end, packet, sizeof(packet), 0);
    assert_true(first > 0);
    assert_int_equal(packet[first - 1], '\n');
    ssize_t second = recv(c.read_end, packet, sizeof(packet), 0);
    assert_true(second > 7000);
    assert_int_equal(packet[second - 1], '\n');
    assert_int_equal(recv(c.read_end, packet, sizeof(packet), 0), 0);
    close(c.read_end);
}

enum { THREADS = 4, LINES = 100 };

static void *log_many(void *arg)
{
    for (int i = 0; i < LINES; i++)
        LOG(LOG_INFO, "from a thread", LOG_N("thread", *(const int *)arg), LOG_N("line", i));
    return NULL;
}

static void log_from_threads(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    size_t started = 0;
    for (; started < THREADS; started++) {
        numbers[started] = (int)started;
        if (pthread_create(&threads[started], NULL, log_many, &numbers[started]) != 0)
            break;
    }
    for (size_t i = 0; i < started; i++)
        (void)pthread_join(threads[i], NULL);
}

static void lines_of_threads_are_not_mixed(void **state)
{
    (void)state;
    log_setup(LOG_JSON, LOG_DEBUG, &world_env);
    struct buf out;
    caught(log_from_threads, &out);
    int next[THREADS] = {0};
    struct str line;
    struct str rest = buf_str(&out);
    while (str_cut(rest, '\n', &line, &rest)) {
        json_t *value = parsed_str(line);
        json_int_t thread = json_integer_value(json_object_get(value, "thread"));
        assert_in_range(thread, 0, THREADS - 1);
        assert_int_equal(json_integer_value(json_object_get(value, "line")), next[thread]);
        next[thread]++;
        json_decref(value);
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(next[i], LINES);
    buf_release(&out);
}

int main(void)
{
#define LOG_TEST(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest tests[] = {
        LOG_TEST(text_lines_have_time_level_message_and_fields),
        LOG_TEST(fields_may_be_left_out),
        LOG_TEST(numbers_are_whole),
        LOG_TEST(awkward_text_is_quoted),
        LOG_TEST(awkward_bytes_are_found_at_any_place),
        LOG_TEST(a_message_never_makes_two_lines),
        LOG_TEST(json_lines_hold_the_same_as_text),
        LOG_TEST(awkward_text_is_escaped_in_json),
        LOG_TEST(each_kind_of_bad_utf8_still_makes_a_json_line),
        LOG_TEST(good_utf8_is_passed_on),
        LOG_TEST(lines_below_the_least_level_are_not_written),
        LOG_TEST(a_line_of_any_length_is_whole),
        LOG_TEST(a_message_of_any_length_is_logged_at_least_in_part),
        LOG_TEST(each_line_is_written_with_one_call),
        LOG_TEST(lines_of_threads_are_not_mixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
