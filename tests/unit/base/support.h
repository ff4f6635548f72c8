/* What the tests of src/base share: seeded randomness, a world that stands still, checks of text,
 * and a way to see that a broken contract stops the program. */
#ifndef PAWL_TESTS_BASE_SUPPORT_H
#define PAWL_TESTS_BASE_SUPPORT_H

#include "values.h"

#include "base/env.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define assert_str(actual, expected)                                                     \
    do {                                                                                 \
        struct str actual_ = (actual);                                                   \
        struct str expected_ = str_of(expected);                                         \
        if (!str_eq(actual_, expected_))                                                 \
            fail_msg("got <%.*s>, wanted <%.*s>", STR_ARG(actual_), STR_ARG(expected_)); \
    } while (0)

#define assert_contains(text, part)                        \
    do {                                                   \
        const char *text_ = (text);                        \
        const char *part_ = (part);                        \
        if (strstr(text_, part_) == NULL)                  \
            fail_msg("<%s> is not in <%s>", part_, text_); \
    } while (0)

/* --- randomness that is the same in every run (splitmix64) --- */

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline uint64_t rng_below(struct rng *r, uint64_t bound)
{
    assert(bound > 0);
    return rng_next(r) % bound;
}

static inline double double_of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint64_t bits_of_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* --- a world whose clock moves only when told, and whose dice show one byte --- */

struct still_world {
    int64_t now_us;
    unsigned char dice;
};

static inline int64_t still_now_us(void *ctx)
{
    return ((const struct still_world *)ctx)->now_us;
}

static inline int64_t still_mono_ns(void *ctx)
{
    return still_now_us(ctx) * 1000;
}

static inline void still_random(void *ctx, void *out, size_t len)
{
    memset(out, ((const struct still_world *)ctx)->dice, len);
}

static inline struct env still_env(struct still_world *world)
{
    return (struct env){still_now_us, still_mono_ns, still_random, world};
}

/* --- UTF-8 --- */

/* One of each kind that RFC 3629 forbids. */
static const struct str BAD_UTF8[] = {
    {"\x80", 1},             /* continuation without a lead */
    {"\xBF", 1},             /* the same, last of them */
    {"\xC0\x80", 2},         /* overlong NUL */
    {"\xC1\xBF", 2},         /* overlong DEL */
    {"\xC3", 1},             /* two bytes, cut short */
    {"\xC3(", 2},            /* lead, then ASCII */
    {"\xC3\xC3", 2},         /* lead, then lead */
    {"\xE0\x80\x80", 3},     /* overlong, three bytes */
    {"\xE0\x9F\xBF", 3},     /* the largest of those */
    {"\xE2\x82", 2},         /* three bytes, cut short */
    {"\xE2(\xAC", 3},        /* broken in the middle */
    {"\xED\xA0\x80", 3},     /* U+D800 */
    {"\xED\xBF\xBF", 3},     /* U+DFFF */
    {"\xF0\x80\x80\x80", 4}, /* overlong, four bytes */
    {"\xF0\x8F\xBF\xBF", 4}, /* the largest of those */
    {"\xF0\x9F\x98", 3},     /* four bytes, cut short */
    {"\xF0\x9F(\x80", 4},    /* broken in the middle */
    {"\xF4\x90\x80\x80", 4}, /* U+110000 */
    {"\xF5\x80\x80\x80", 4}, /* a lead past the last plane */
    {"\xF8\x88\x80\x80", 4}, /* a lead of five bytes */
    {"\xFE", 1},             /* never a byte of UTF-8 */
    {"\xFF", 1},             /* nor this one */
};

/* Writes the code point and returns the number of bytes. */
static inline size_t utf8_encode(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

/* --- JSON --- */

static inline json_t *parsed_str(struct str text)
{
    struct problem p;
    problem_init(&p);
    json_t *value = NULL;
    enum err e = json_parse(text, &p, &value);
    if (e != ERR_OK)
        fail_msg("%s: %s", err_code(e), p.detail);
    problem_release(&p);
    assert_non_null(value);
    return value;
}

static inline json_t *parsed(const char *text)
{
    return parsed_str(str_of(text));
}

/* --- memory --- */

/* Tests make an allocation fail by asking for more than there is. The sanitizers, when they are
 * linked in, ask these functions whether to let that pass. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* --- contracts --- */

/* True when act() ends the program with an abort, as a failed assertion does. */
static inline bool aborts(void (*act)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit no_core = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)signal(SIGABRT, SIG_DFL);
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(nowhere, STDERR_FILENO);
        act();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#endif
