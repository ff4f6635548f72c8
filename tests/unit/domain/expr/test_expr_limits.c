/* Expressions and templates: what they cannot reach, what they cost at most, and failures around
 * them. */
#include "domain/expr/expr_support.h"

#include <sys/resource.h>

/* --- what cannot be reached --- */

static void the_world_is_out_of_reach(void **state)
{
    static const char *const NAMES[] = {
        "os",     "io",      "package",  "debug",        "coroutine", "utf8",
        "_G",     "require", "load",     "loadstring",   "dofile",    "loadfile",
        "print",  "error",   "assert",   "pcall",        "xpcall",    "getmetatable",
        "rawget", "rawset",  "rawequal", "setmetatable", "rawlen",    "collectgarbage",
        "next",   "warn",    "_VERSION", "table",        "unpack",
    };
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        assert_outcome(NAMES[i], value_of(w, NAMES[i]), "!there is no '");
    ASSERT_VALUES(state, {"string.dump", "!there is no 'string.dump'"},
                  {"string.rep", "!there is no 'string.rep'"},
                  {"string.format", "!there is no 'string.format'"},
                  {"string.find", "!there is no 'string.find'"},
                  {"string.gsub", "!there is no 'string.gsub'"},
                  {"string.gmatch", "!there is no 'string.gmatch'"},
                  {"string.match", "!there is no 'string.match'"},
                  {"(''):rep(1e9)", "!call a nil value (method 'rep')"},
                  {"math.random", "!there is no 'math.random'"},
                  {"math.huge", "!there is no 'math.huge'"}, {"('').dump", "null"},
                  {"_ENV", "!_ENV cannot be used in expressions"}, {"_ENV.os", "!_ENV cannot"},
                  {"(function() local _ENV = {} return x end)()", "!_ENV cannot"},
                  {"(function() _ENV = nil end)()", "!_ENV cannot"},
                  {"(function() local s=[[x]]_ENV=nil end)()", "!_ENV cannot"},
                  {"'_ENV'", "`_ENV`"}, {"(function(_ENV) return os end)({})", "!_ENV cannot"},
                  {"(function() local _ENV <const> = 1 return x end)()", "!_ENV cannot"},
                  {"input.__index", "null"}, {"input.__gc", "null"},
                  {"string.__index", "!there is no 'string.__index'"},
                  {"math[1]", "!'math' contains only functions"}, {"(nil).__index", "null"},
                  {"('').__index", "null"}, {"steps.__index", "null"});
}

static void nothing_is_left_for_the_next_evaluation(void **state)
{
    ASSERT_VALUES(
        state, {"(function() x = 1 end)()", "!'x' cannot be set: only local variables can"},
        {"(function() string = nil end)()", "!'string' cannot be set"},
        {"(function() string.lower = nil end)()", "!'lower' cannot be set"},
        {"(function() math.floor = function() return 5 end end)()", "!'floor' cannot be set"},
        {"(function() string[1] = 1 end)()", "!cannot be changed"},
        {"(function() input.amount = 1 end)()", "!object values cannot be changed"},
        {"(function() input.tags[1] = 1 end)()", "!list values cannot be changed"},
        {"(function() steps.x = 1 end)()", "!object values cannot be changed"},
        {"(function() local s = '' s.x = 1 end)()", "!attempt to index a string value"},
        {"(function() local s = nil s.x = 1 end)()", "!attempt to index a nil value"},
        {"(function() input = 5 end)()", "!'input' cannot be set"},
        {"(function() local s = select(2, pairs({})) s.x = 1 end)()", "!cannot be changed"},
        {"('A'):lower()", "`a`"}, {"string.lower('A')", "`a`"}, {"math.floor(1.5)", "1"},
        {"input.amount", "150"});
    struct world *w = *state;
    /* The same compiled function each time: its locals are new. */
    for (int i = 0; i < 3; i++)
        assert_outcome("n", value_of(w, "(function() local n = (n_ or 0) return n end)"),
                       "!a function");
    for (int i = 0; i < 3; i++)
        assert_outcome(
            "n", value_of(w, "(function() local t = {} t.n = (t.n or 0) + 1 return t.n end)()"),
            "1");
}

/* --- limits --- */

static double cpu_seconds(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Well above what a limit costs even under a sanitizer, and well below what it prevents. */
static const double SECONDS_MAX = 10;

static void assert_runs_out(void **state, const char *const *sources, size_t count,
                            const char *wanted)
{
    for (size_t i = 0; i < count; i++) {
        double before = cpu_seconds();
        assert_outcome(sources[i], value_of(*state, sources[i]), wanted);
        double took = cpu_seconds() - before;
        if (took > SECONDS_MAX)
            fail_msg("%.300s\ntook %.1f s", sources[i], took);
        assert_outcome("after", value_of(*state, "input.tags[2] .. 1"), "`a1`");
    }
}

#define F(body) "(function() " body " end)()"

static void runaway_loops_are_stopped(void **state)
{
    static const char *const SOURCES[] = {
        F("while true do end"),
        F("repeat until false"),
        F("::top:: goto top"),
        F("for i = 1, 1e18 do end"),
        F("for i = 1, math.tointeger(2^62) do end"),
        F("local function f() return f() end return f()"),
        F("while true do local x = input.order.id end"),
        F("while true do local x = steps.lookup.output end"),
        F("while true do local x = type(1) end"),
        F("local f, s = pairs(input) while true do f(s) end"),
        F("while true do local a = input.order == input.same end"),
        "map(input.tags, function() while true do end end)",
        "sort(input.tags, function() while true do end end)",
        "reduce(input.tags, function() while true do end end)",
        F("local s = input.name while true do if s:contains('zz') then return end end"),
    };
    assert_runs_out(state, SOURCES, ARRAY_LEN(SOURCES), "!takes more than 200000 steps");
}

/* One instruction or one call each, which work on a lot. */
static void long_work_of_one_instruction_is_counted(void **state)
{
    static const char *const SOURCES[] = {
#define BIG "local s = ('x') for i = 1, 20 do s = s .. s end "
        F(BIG "local t = s .. 'a' local u = s .. 'b' while true do local x = t < u end"),
        F(BIG "local t = 'a' .. s local u = 'b' .. s while true do local x = t == u end"),
        F(BIG "local t = {[s .. 'a'] = 1} local u = s .. 'a' while true do local x = t[u] end"),
        F(BIG "while true do local x = s:contains('xxxxxxxxxy') end"),
        F(BIG "while true do local x = s:len() end"),
        F(BIG "while true do local x = s:sub(5, 6) end"),
        F(BIG "local t = {s} while true do local x = contains(t, 'y') end"),
        F(BIG "while true do local x = s:starts_with(s) end"),
        F("local t = {} for i = 1, 20000 do t[i] = i end for i = 1, 20000 do t[i] = nil end "
          "while true do for k in pairs(t) do break end end"),
        F("local t = {} for i = 1, 5000 do t[i] = 0.1 end while true do json.encode(t) end"),
        F("local l = list(1) while true do local x = l == list(1.0) end"),
        F("local t = '[' for i = 1, 12 do t = t .. '0,' .. t:sub(2) end t = t .. '0]' "
          "while true do local x = #json.decode(t) end"),
        F("local t = {} for i = 1, 3000 do t[i] = 3000 - i end while true do sort(t) end"),
    };
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(SOURCES); i++) {
        double before = cpu_seconds();
        char *got = value_of(w, SOURCES[i]);
        /* Whichever limit is met first. */
        if (strstr(got, "takes more than") == NULL)
            fail_msg("%s\n%s", SOURCES[i], got);
        free(got);
        double took = cpu_seconds() - before;
        if (took > SECONDS_MAX)
            fail_msg("%s\ntook %.1f s", SOURCES[i], took);
    }
}

static void memory_is_bounded(void **state)
{
    static const char *const SOURCES[] = {
        F("local s = 'x' while true do s = s .. s end"),
        F("local s = 'xxxxxxxx' for i = 1, 15 do s = s .. s end local t = {} "
          "for i = 1, 1000 do t[i] = s .. i end"),
    };
    assert_runs_out(state, SOURCES, ARRAY_LEN(SOURCES), "!takes more than 16 MiB of memory");
}

static void recursion_is_bounded(void **state)
{
    static const char *const SOURCES[] = {
        F("local function f() return 1 + f() end return f()"),
        F("local function f(a, b, c, d) local e, g, h = f(a, b, c, d) return e end return f()"),
        F("local function f() return map({1}, f) end return f()"),
        F("local function f(a, b) return sort({1, 2}, f) end return f()"),
        F("local function f() return reduce({1}, f) end return f()"),
    };
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(SOURCES); i++) {
        assert_outcome(SOURCES[i], value_of(w, SOURCES[i]), "!");
        assert_outcome("after", value_of(w, "input.amount"), "150");
    }
}

static void results_are_bounded(void **state)
{
    ASSERT_VALUES(
        state, {F("local t = {} t[1] = t return t"), "!nested deeper than 64 levels"},
        {F("local t = {} for i = 1, 70 do t = {t} end return t"), "!nested deeper than 64"},
        {F("local t = 1 for i = 1, 64 do t = {t} end return #json.encode(t)"), "129"},
        {F("local t = list() for i = 1, 100000 do t = list(t) end return t"), "!nested deeper"},
        {F("local t = list() for i = 1, 63 do t = list(t) end return #json.encode(t)"), "128"},
        {F("local t = list() for i = 1, 63 do t = list(t) end return {t}"), "!nested deeper"},
        {F("local t = {1} for i = 1, 60 do t = {t, t} end return t"), "!takes more than"},
        {F("local t = list(1) for i = 1, 60 do t = list(t, t) end return t"), "!takes more than"},
        {F("local s = 'x' for i = 1, 20 do s = s .. s end return s"),
         "!has more than 1048576 bytes"},
        {F("local s = 'x' for i = 1, 20 do s = s .. s end return #json.encode(s:sub(3))"),
         "1048576"},
        {F("local s = 'x' for i = 1, 20 do s = s .. s end return json.encode(s:sub(2))"),
         "!has more than 1048576 bytes"},
        {F("local s = 'x' for i = 1, 19 do s = s .. s end return list(s,s,s,s,s,s,s,s,s,s,s,s,s,s,"
           "s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s)"),
         "!has more than 1048576 bytes"},
        {F("local s = 'x' for i = 1, 18 do s = s .. s end local t = list(s, s) return list(t, t)"),
         "!has more than 1048576 bytes"});
}

static void a_megabyte_passes_through(void **state)
{
    struct world *w = *state;
    struct buf text;
    buf_init(&text, 2 * MIB);
    buf_put_char(&text, '[');
    while (text.len < JSON_TEXT_MAX - 8)
        buf_put(&text, STR("1.0,0,"));
    buf_put(&text, STR("{}]"));
    see_input(w, buf_str(&text));
    buf_release(&text);
    struct json *filled = NULL;
    struct expr_vars vars = vars_of(w);
    struct json *template = json_of("'${input}'");
    assert_int_equal(expr_fill(w->x, template, &vars, &w->problem, &filled), ERR_OK);
    assert_true(json_same(filled, json_member(w->roots, STR("input"))));
    json_free(filled);
    json_free(template);
    filled = NULL;
    template = json_of("{'a':'${input}','b':'${input}'}");
    assert_int_equal(expr_fill(w->x, template, &vars, &w->problem, &filled), ERR_EXPRESSION);
    assert_contains(w->problem.detail, "more than 1048576 bytes");
    json_free(template);
    /* Reading one member of it costs nothing. */
    assert_outcome("", value_of(w, "input[2]"), "0");
    assert_outcome("", value_of(w, "#input > 1000"), "true");
}

static void a_long_text_is_used_many_times(void **state)
{
    struct world *w = *state;
    char *text = repeated("\"", "word ", 100 * 1000, "\"");
    see_input(w, str_of(text));
    assert_outcome("",
                   value_of(w, F("local n = 0 for i = 1, 100 do if input:starts_with('word') "
                                 "then n = n + 1 end end return n")),
                   "!steps");
    assert_outcome("",
                   value_of(w, F("local n = 0 for i = 1, 30 do if input:starts_with('word') "
                                 "then n = n + 1 end end return n")),
                   "30");
    assert_outcome("", value_of(w, "input:len()"), "500000");
    free(text);
}

static struct json *list_of(size_t count, const char *element)
{
    struct buf text;
    buf_init(&text, MIB);
    for (size_t i = 0; i < count; i++)
        buf_printf(&text, "%c%s", i == 0 ? '[' : ',', element);
    buf_put_char(&text, ']');
    assert_true(buf_ok(&text));
    struct json *list = json_value_of(buf_str(&text));
    buf_release(&text);
    return list;
}

/* All expressions of one call share the limits. */
static void a_template_of_many_expressions_is_bounded(void **state)
{
    struct world *w = *state;
    struct json *template = list_of(1000, "\"${(function() for i = 1, 1000 do end end)()}\"");
    struct json *filled = NULL;
    struct expr_vars vars = vars_of(w);
    assert_int_equal(expr_fill(w->x, template, &vars, &w->problem, &filled), ERR_EXPRESSION);
    assert_contains(w->problem.detail, "takes more than 200000 steps");
    json_free(template);
    template = list_of(1000, "\"${input.amount} and ${item + 1}\"");
    assert_int_equal(expr_fill(w->x, template, &vars, &w->problem, &filled), ERR_OK);
    assert_int_equal(json_length(filled), 1000);
    json_free(filled);
    json_free(template);
}

static void compiled_expressions_give_way_to_new_ones(void **state)
{
    struct world *w = *state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3 * EXPR_CACHE_MAX; i++) {
            char source[64];
            char wanted[64];
            (void)snprintf(source, sizeof(source), "item + %d", i);
            (void)snprintf(wanted, sizeof(wanted), "%d", 7 + i);
            assert_outcome(source, value_of(w, source), wanted);
        }
    }
    /* Large ones too, past what they may weigh together. */
    for (int i = 0; i < 3 * EXPR_CACHE_MAX; i++) {
        char last[32];
        (void)snprintf(last, sizeof(last), "'', %d)", i);
        char *source = repeated("select('#', ", "#{{}},#{{}},#{{}},#{{}},", 40, last);
        assert_outcome(source, value_of(w, source), "162");
        free(source);
    }
}

/* --- failures of others --- */

static void a_root_that_cannot_be_read_ends_the_call(void **state)
{
    struct world *w = *state;
    w->refuses = ERR_STORE_BUSY;
    char *got = value_of(w, "state.count or 5");
    assert_true(strncmp(got, "STORE_BUSY: ", 12) == 0);
    free(got);
    w->refuses = ERR_OK;
    assert_outcome("", value_of(w, "state.count or 5"), "2");
    w->asked = 0;
    assert_outcome("", value_of(w, "input.yes or state.count"), "true");
    assert_int_equal(w->asked, 1);
}

static const char *const USES_ALL[] = {
    "map(input.items, function(i) return {sku = i.sku, text = tostring(i), n = {1, 2.5}} end)",
    "sort(input.tags, function(a, b) return a > b end)",
    "(function() local s = '' for k, v in pairs({b=1,a=input}) do s = s .. k end return s end)()",
    "json.decode(json.encode({a = input, b = keys(input), c = values(input.order)}))",
    "('a,b,c'):split(','), 1",
    "string.join(('a,b,c'):replace(',', ';'):upper():split(';'), '+')",
    "filter(input.items, function(i) return input.name:contains(i.sku .. '') or true end)",
    "(function() local t = {} for i = 1, 200 do t[i] = {i .. ''} end return t end)()",
    "1 +",
};

/* With ever more memory, until all is done: each allocation of Lua is the last once. */
static void every_refused_allocation_is_survived(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(USES_ALL); i++) {
        char *wanted = value_of(w, USES_ALL[i]);
        size_t failures = 0;
        for (size_t room = 0;; room += MAX(room / 256, 8)) {
            struct expr *known = w->x;
            w->x = expr_new(); /* has compiled nothing yet */
            assert_non_null(w->x);
            expr_limit(w->x, room);
            char *got = value_of(w, USES_ALL[i]);
            expr_limit(w->x, EXPR_MEMORY_MAX);
            assert_outcome(USES_ALL[i], value_of(w, "input.tags[1]"), "`b`");
            expr_free(w->x);
            w->x = known;
            bool done = strcmp(got, wanted) == 0;
            if (!done && !str_ends_with(str_of(got), STR("takes more than 16 MiB of memory")))
                fail_msg("%s\n%s", USES_ALL[i], got);
            free(got);
            if (done)
                break;
            failures++;
        }
        assert_true(failures > 20);
        free(wanted);
    }
}

static void a_state_that_finds_no_memory_is_not_made(void **state)
{
    (void)state;
    size_t room = 0;
    for (struct expr *x = NULL; x == NULL; room += 64) {
        x = expr_new_within(room);
        expr_free(x);
    }
    assert_true(room > 4 * KIB && room < 64 * KIB);
}

/* --- cost --- */

static void a_condition_costs_microseconds(void **state)
{
    struct world *w = *state;
    struct expr_vars vars = vars_of(w);
    enum { TIMES = 100 * 1000 };
    double before = cpu_seconds();
    for (int i = 0; i < TIMES; i++) {
        bool truth = false;
        assert_int_equal(
            expr_truth(w->x, STR("steps.lookup.output.amount > 100"), &vars, &w->problem, &truth),
            ERR_OK);
        assert_true(truth);
    }
    double each_us = (cpu_seconds() - before) * 1e6 / TIMES;
    print_message("steps.lookup.output.amount > 100: %.2f us\n", each_us);
    assert_true(each_us < 100); /* sanitizers and busy machines */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_world_is_out_of_reach),
        TEST(nothing_is_left_for_the_next_evaluation),
        TEST(runaway_loops_are_stopped),
        TEST(long_work_of_one_instruction_is_counted),
        TEST(memory_is_bounded),
        TEST(recursion_is_bounded),
        TEST(results_are_bounded),
        TEST(a_megabyte_passes_through),
        TEST(a_long_text_is_used_many_times),
        TEST(a_template_of_many_expressions_is_bounded),
        TEST(compiled_expressions_give_way_to_new_ones),
        TEST(a_root_that_cannot_be_read_ends_the_call),
        TEST(every_refused_allocation_is_survived),
        TEST(a_state_that_finds_no_memory_is_not_made),
        TEST(a_condition_costs_microseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
