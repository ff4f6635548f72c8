/* Texts that requests may use. */
#include "samples.h"

#include "base/macros.h"

enum { PER_NAME = 8 };

struct samples {
    const char *name;
    const char *texts[PER_NAME + 1];
};

static const struct samples TEXTS[] = {
    {"workflow_id", {"task", "saga", "map", "wait", "ask", "call", "child", "limited"}},
    {"definitionId", {"task", "wait", "limited", "none"}},
    {"type", {"cart", "none"}},
    {"id", {"c1", "c2", "c3", "%E6%97%A5"}},
    {"tenant_id", {"acme", "other", "new"}},
    {"tenant", {"acme", "other", "*", "new"}},
    {"key", {"k1", "k2", "k3"}},
    {"seq", {"2", "1", "0"}},
    {"schedule_id", {"night", "day"}},
    {"cron", {"0 3 * * *", "*/5 * * * *", "@daily", "0 0 31 2 *", "1-5,7 * 1 JAN MON-FRI"}},
    {"timezone", {"UTC", "Europe/Berlin", "America/New_York", "Nowhere/At"}},
    {"name", {"go", "stop", "add", "sum", "later"}},
    {"worker_id", {"w", "v"}},
    {"dedup_key", {"d1", "e1", "u1", "d2"}},
    {"label", {"team:x", "l", ":"}},
    {"url", {"https://hooks.test/a", "http://[::1]:80/", "http://user@x/", "ftp://x"}},
    {"from_step", {"a", "b", "none"}},
    {"types", {"run.*", "*", "run.created,job.failed"}},
    {"after", {"1-0", "0-0", "99999-1"}},
    {"action", {"tenant.set", "workflow.put"}},
    {"actor", {"root", "dev"}},
    {"cursor", {"1", "0", "a", "999999999999"}},
    {"Last-Event-ID", {"1", "2", "1-0", "0"}},
    {"If-Match", {"\"1\"", "\"2\"", "\"3\"", "*"}},
    {"If-None-Match", {"\"1\"", "\"2\", W/\"3\"", "*"}},
};

static const struct samples VALUES[] = {
    {"queues", {"[\"q\"]", "[\"ents\"]", "[\"q\",\"ents\",\"slow\"]", "[]", "[\"*\"]"}},
    {"events", {"[\"*\"]", "[\"run.*\",\"job.failed\"]", "[]", "[\"\"]"}},
    {"error", {"{\"code\":\"BAD\",\"message\":\"m\"}", "{\"code\":\"BAD\",\"retryable\":false}"}},
    {"labels", {"{\"team\":\"x\"}", "{}", "{\"a\":\"1\",\"b\":\"2\"}"}},
    {"input",
     {"{\"n\":1}", "{\"list\":[1,2,3]}", "{\"k\":\"a\"}", "{\"k\":\"b\",\"id\":\"7\"}", "null"}},
    {"output",
     {"{\"x\":1}", "{\"state\":{\"n\":1}}", "{\"state\":null,\"finished\":true}",
      "{\"results\":[{\"seq\":2,\"result\":3}],\"set_timers\":[{\"name\":\"t\",\"in_ms\":5}]}",
      "{\"start\":[{\"workflow_id\":\"task\",\"input\":1}],\"emit\":[{\"event\":\"a.b\"}]}",
      "{\"cancel_timers\":[\"idle\"],\"state\":[]}", "null", "[1,2]"}},
    {"filter", {"{}", "{\"status\":\"running\"}", "{\"workflow_id\":\"task\"}"}},
    {"state", {"{\"n\":2}", "{}"}},
    {"edited", {"{\"n\":2}", "null"}},
};

static const char *const ANY_JSON[] = {"null",
                                       "true",
                                       "0",
                                       "-1",
                                       "1.5",
                                       "\"\"",
                                       "\"x\"",
                                       "[]",
                                       "{}",
                                       "[null]",
                                       "1e308",
                                       "{\"a\":{}}",
                                       "[1,\"2\"]",
                                       "9223372036854775807",
                                       "\"\\u0041\\ud83d\\ude00\""};

/* The part of a pattern, and the bodies of routes that have it. */
static const struct samples DOCUMENTS[] = {
    {"/workflows/",
     {"{\"steps\":[{\"name\":\"a\",\"type\":\"task\",\"handler\":\"h\",\"queue\":\"q\"}]}",
      "{\"steps\":[{\"name\":\"a\",\"type\":\"transform\",\"output\":{\"v\":\"${input.n + 1}\"}},"
      "{\"name\":\"b\",\"type\":\"sleep\",\"duration_ms\":1000}]}",
      "{\"concurrency\":[{\"limit\":1,\"at_limit\":\"coalesce\"}],\"steps\":[{\"name\":\"a\","
      "\"type\":\"wait_signal\",\"signal\":[\"go\",\"stop\"],\"wait_for\":\"all\"}]}",
      "{\"timeout_s\":5,\"steps\":[{\"name\":\"a\",\"type\":\"task\",\"handler\":\"h\",\"for_"
      "each\":"
      "\"input.list\",\"on_error\":\"continue\"},{\"name\":\"b\",\"type\":\"workflow\","
      "\"workflow_id\":\"child\"}]}",
      "{\"input_schema\":{\"type\":\"object\",\"required\":[\"n\"]},\"steps\":[{\"name\":\"a\","
      "\"type\":\"approval\",\"prompt\":\"ok?\",\"expires_s\":60,\"on_expire\":\"approve\"}]}"}},
    {"/tenants/",
     {"{\"max_concurrent_runs\":1}",
      "{\"max_concurrent_runs\":null,\"at_limit\":\"cancel_oldest\"}",
      "{\"rate_limit\":{\"per_second\":1,\"burst\":1}}", "{\"run_retention_s\":1,\"weight\":3}",
      "{\"idempotency_retention_s\":1,\"max_queued_runs\":0}", "{\"at_limit\":\"coalesce\"}"}},
    {"/entity-types/",
     {"{\"queue\":\"ents\",\"handler\":\"cart\"}",
      "{\"queue\":\"ents\",\"handler\":\"cart\",\"version\":2,\"rollover_events\":2}",
      "{\"queue\":\"q\",\"handler\":\"c\",\"dedup_max_keys\":1,\"max_inbox\":1,\"max_batch\":1}",
      "{\"queue\":\"q\",\"handler\":\"c\",\"retry\":{\"max_attempts\":1},\"keep_generations\":"
      "null}"}},
};

static struct str pick(const struct samples *table, size_t count, struct str name, size_t number)
{
    for (size_t i = 0; i < count; i++) {
        if (!str_is(name, table[i].name))
            continue;
        size_t texts = 0;
        while (table[i].texts[texts] != NULL)
            texts++;
        return str_of(table[i].texts[number % texts]);
    }
    return STR_NONE;
}

struct str sample_text(struct str param, size_t number)
{
    return pick(TEXTS, ARRAY_LEN(TEXTS), param, number);
}

struct str sample_json(struct str param, size_t number)
{
    struct str own = pick(VALUES, ARRAY_LEN(VALUES), param, number);
    return own.ptr != NULL ? own : str_of(ANY_JSON[number % ARRAY_LEN(ANY_JSON)]);
}

struct str sample_document(struct str pattern, size_t number)
{
    for (size_t i = 0; i < ARRAY_LEN(DOCUMENTS); i++) {
        if (strstr(pattern.ptr, DOCUMENTS[i].name) != NULL)
            return pick(DOCUMENTS, ARRAY_LEN(DOCUMENTS), str_of(DOCUMENTS[i].name), number);
    }
    return STR_NONE;
}
