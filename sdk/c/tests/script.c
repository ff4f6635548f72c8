#include "script.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

int failures;
static int cases, failed_cases;
static const char *case_name = "";

void expect(bool holds, const char *what, const json_t *actual, const json_t *wanted)
{
    if (holds)
        return;
    char *a = actual ? json_text(actual) : NULL, *w = wanted ? json_text(wanted) : NULL;
    printf("FAIL %s: %s\n    is     %s\n    wanted %s\n", case_name, what, a ? a : "-",
           w ? w : "-");
    free(a);
    free(w);
    failures++;
}

bool same(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return fabs(json_number_value(a) - json_number_value(b)) < 1e-6;
    if (json_is_array(a) && json_is_array(b)) {
        bool equal = json_array_size(a) == json_array_size(b);
        for (size_t i = 0; equal && i < json_array_size(a); i++)
            equal = same(json_array_get(a, i), json_array_get(b, i));
        return equal;
    }
    return json_equal(a, b);
}

bool contains(const json_t *actual, const json_t *wanted)
{
    if (json_is_object(wanted)) {
        const char *name;
        json_t *value, *object = json_copy((json_t *)(uintptr_t)wanted);
        bool all = json_is_object(actual);
        json_object_foreach (object, name, value)
            all = all && json_object_get(actual, name) &&
                  contains(json_object_get(actual, name), value);
        json_decref(object);
        return all;
    }
    if (!json_is_array(wanted))
        return same(actual, wanted);
    bool all = json_is_array(actual) && json_array_size(actual) == json_array_size(wanted);
    for (size_t i = 0; all && i < json_array_size(wanted); i++)
        all = contains(json_array_get(actual, i), json_array_get(wanted, i));
    return all;
}

void each_case(const char *folder, const char *file, void (*run)(const json_t *test))
{
    char *path = format("%s/%s", folder, file);
    json_error_t wrong;
    json_t *document = json_load_file(path, 0, &wrong), *test;
    if (!document)
        fprintf(stderr, "%s: %s\n", path, wrong.text);
    size_t i;
    json_array_foreach (json_object_get(document, "cases"), i, test) {
        int before = failures;
        case_name = member_text(test, "name");
        run(test);
        cases++;
        failed_cases += failures > before;
    }
    expect(i > 0, file, NULL, NULL);
    json_decref(document);
    free(path);
}

/* --- requests and responses --- */

json_t *request_json(const struct request *request)
{
    json_t *json = json_pack("{s:s, s:s, s:O, s:{}}", "method", request->method, "path",
                             request->path, "query", request->query, "headers");
    const char *name;
    json_t *value;
    json_object_foreach (request->headers, name, value) {
        char lower[64];
        copy_text(lower, sizeof lower, name);
        for (char *c = lower; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        json_object_set(json_object_get(json, "headers"), lower, value);
    }
    if (request->body) {
        char *text = json_text(request->body);
        json_object_set_new(json, "body", json_loads(text, JSON_DECODE_ANY, NULL));
        free(text);
    }
    return json;
}

void expect_request(const json_t *sent, const json_t *wanted)
{
    expect(same(json_object_get(sent, "method"), json_object_get(wanted, "method")), "method", sent,
           wanted);
    expect(same(json_object_get(sent, "path"), json_object_get(wanted, "path")), "path", sent,
           wanted);
    json_t *query = json_object_get(wanted, "query"), *none = json_object();
    expect(json_equal(json_object_get(sent, "query"), query ? query : none), "query", sent, wanted);
    json_decref(none);
    const char *name;
    json_t *value;
    json_object_foreach (json_object_get(wanted, "headers"), name, value) {
        const json_t *header = json_object_get(json_object_get(sent, "headers"), name);
        expect(json_is_null(value) ? !header : same(header, value), name, sent, wanted);
    }
    const json_t *body = json_object_get(sent, "body"),
                 *wanted_body = json_object_get(wanted, "body");
    expect(wanted_body ? body && same(body, wanted_body) : !body, "body", sent, wanted);
    if (!wanted_body)
        expect(!json_object_get(json_object_get(sent, "headers"), "content-type"), "content-type",
               sent, wanted);
}

struct response response_of(const json_t *answer)
{
    const json_t *headers = json_object_get(answer, "headers"),
                 *body = json_object_get(answer, "body");
    struct response response = {
        .status = (int)json_integer_value(json_object_get(answer, "status")),
        .retry_after_s = retry_after_of(member_text(headers, "retry-after"))};
    copy_text(response.content_type, sizeof response.content_type,
              member_text(headers, "content-type"));
    char *text = !body                  ? NULL
                 : json_is_string(body) ? format("%s", json_string_value(body))
                                        : json_text(body);
    if (text)
        buffer_text(&response.body, text);
    free(text);
    return response;
}

/* --- ports --- */

static double now_ms(void *at)
{
    return ((struct script *)at)->now_ms;
}

static double draw(void *at)
{
    struct script *script = at;
    if (!script->numbers)
        return 0.5;
    expect(script->drawn < json_array_size(script->numbers), "a random number too many", NULL,
           NULL);
    return json_number_value(json_array_get(script->numbers, script->drawn++));
}

static void pause_ms(void *at, double ms)
{
    struct script *script = at;
    json_array_append_new(script->pauses, json_real(ms));
    script->now_ms += ms;
}

static void new_key(void *at, char key[KEY_SIZE])
{
    struct script *script = at;
    const char *next = json_string_value(json_array_get(script->keys, script->made++));
    copy_text(key, KEY_SIZE, next ? next : "made-up");
}

static const json_t *next_answer(struct script *script, const struct request *request)
{
    json_t *sent = request_json(request);
    json_array_append_new(script->sent, sent);
    const json_t *entry = json_array_get(script->answers, script->answered++);
    expect(entry != NULL, "a request too many", sent, NULL);
    if (json_object_get(entry, "request"))
        expect_request(sent, json_object_get(entry, "request"));
    return entry;
}

static const json_t *answer_of(const json_t *entry)
{
    const json_t *answer = json_object_get(entry, "answer");
    return answer ? answer : entry;
}

static enum pawl_err exchange(void *at, const struct request *request, struct abort *abort,
                              struct response *ret_response, struct pawl_error *error)
{
    struct script *script = at;
    (void)abort;
    const json_t *answer = answer_of(next_answer(script, request));
    script->now_ms += json_number_value(json_object_get(answer, "took_ms"));
    if (!answer || json_object_get(answer, "lost"))
        return error_set(error, PAWL_ERR_NO_ANSWER, "the connection broke");
    *ret_response = response_of(answer);
    return PAWL_OK;
}

static enum pawl_err open_stream(void *at, const struct request *request, void **ret_stream,
                                 struct response *ret_response, struct pawl_error *error)
{
    struct script *script = at;
    const json_t *entry = next_answer(script, request), *answer = answer_of(entry);
    if (!answer || json_object_get(answer, "lost"))
        return error_set(error, PAWL_ERR_NO_ANSWER, "the connection broke");
    *ret_response = response_of(answer);
    script->stream = entry;
    script->chunks_read = 0;
    *ret_stream = script;
    return PAWL_OK;
}

static enum pawl_err read_stream(void *at, void *stream, double timeout_ms, struct buffer *chunk,
                                 struct pawl_error *error)
{
    struct script *script = stream;
    (void)at;
    (void)timeout_ms;
    const json_t *next =
        json_array_get(json_object_get(script->stream, "chunks"), script->chunks_read++);
    if (next) {
        buffer_text(chunk, json_string_value(next));
        return PAWL_OK;
    }
    bool lost = strcmp(member_text(script->stream, "ends"), "lost") == 0;
    return lost ? error_set(error, PAWL_ERR_NO_ANSWER, "the stream broke") : PAWL_OK;
}

static void close_stream(void *at, void *stream)
{
    (void)at;
    (void)stream;
}

struct ports script_ports(struct script *script)
{
    return (struct ports){.at = script,
                          .now_ms = now_ms,
                          .random = draw,
                          .pause = pause_ms,
                          .new_key = new_key,
                          .exchange = exchange,
                          .open = open_stream,
                          .read = read_stream,
                          .close = close_stream};
}

void script_begin(struct script *script, json_t *answers)
{
    *script = (struct script){.answers = answers, .sent = json_array(), .pauses = json_array()};
}

void script_end(struct script *script)
{
    json_decref(script->sent);
    json_decref(script->pauses);
}

struct pawl_client *script_client(struct script *script, const json_t *config)
{
    struct pawl_client_options options = {
        .url = json_string_value(json_object_get(config, "url")),
        .api_key = json_string_value(json_object_get(config, "api_key")),
        .tenant = json_string_value(json_object_get(config, "tenant")),
        .actor = json_string_value(json_object_get(config, "actor"))};
    struct pawl_client *client = NULL;
    if (pawl_client_new(&options, &client, NULL) != PAWL_OK)
        abort();
    client->ports = script_ports(script);
    return client;
}

int main(int argc, char **argv);
void client_fixtures(const char *folder);

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "sdk/fixtures";
    client_fixtures(folder);
    worker_fixtures(folder);
    printf("%d passed, %d failed\n", cases - failed_cases, failed_cases);
    return failures ? 1 : 0;
}
