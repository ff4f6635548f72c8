#include "wire.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

#define KEY_CHARACTERS_MAX 255
#define DETAIL_BYTES_MAX 200

void request_free(struct request *request)
{
    free(request->path);
    json_decref(request->query);
    json_decref(request->headers);
    json_decref(request->body);
    *request = (struct request){0};
}

void response_free(struct response *response)
{
    buffer_free(&response->body);
    *response = (struct response){0};
}

static bool is_plain(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (c && strchr("-_.!~*'()", c));
}

void add_segment(struct buffer *path, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        char escaped[] = {'%', digits[byte >> 4], digits[byte & 15]};
        if (is_plain(*text))
            buffer_add(path, text, 1);
        else
            buffer_add(path, escaped, sizeof escaped);
    }
}

char *request_target(const struct request *request)
{
    struct buffer target = {0};
    buffer_text(&target, request->path);
    const char *name;
    json_t *value;
    json_object_foreach (request->query, name, value) {
        buffer_text(&target, strchr(target.data, '?') ? "&" : "?");
        add_segment(&target, name);
        buffer_text(&target, "=");
        add_segment(&target, json_string_value(value));
    }
    if (target.failed)
        buffer_free(&target);
    return target.data;
}

struct key_shape {
    size_t characters;
    bool visible, printable, control;
};

static struct key_shape shape_of(const char *key)
{
    struct key_shape shape = {.visible = *key != '"', .printable = true};
    for (const unsigned char *c = (const unsigned char *)key; *c; c++) {
        shape.characters += (*c & 0xC0) != 0x80;
        shape.visible &= *c >= '!' && *c <= '~';
        shape.printable &= *c >= ' ' && *c <= '~';
        /* C0 and DEL, and C1, which UTF-8 writes as C2 80 to C2 9F. */
        shape.control |= *c < 0x20 || *c == 0x7F || (*c == 0xC2 && c[1] < 0xA0);
    }
    return shape;
}

enum pawl_err key_header(const char *key, char **ret_header, struct pawl_error *error)
{
    struct key_shape shape = shape_of(key);
    if (shape.characters < 1 || shape.characters > KEY_CHARACTERS_MAX)
        return error_set(error, PAWL_ERR_BAD_ARGUMENT,
                         "An idempotency key has 1 to 255 characters");
    if (shape.control)
        return error_set(error, PAWL_ERR_BAD_ARGUMENT,
                         "An idempotency key has no control characters");
    if (!shape.printable) {
        *ret_header = NULL;
        return PAWL_OK;
    }
    struct buffer header = {0};
    if (shape.visible) {
        buffer_text(&header, key);
    } else {
        buffer_text(&header, "\"");
        for (; *key; key++) {
            if (*key == '"' || *key == '\\')
                buffer_text(&header, "\\");
            buffer_add(&header, key, 1);
        }
        buffer_text(&header, "\"");
    }
    if (header.failed) {
        buffer_free(&header);
        return error_no_memory(error);
    }
    *ret_header = header.data;
    return PAWL_OK;
}

double retry_after_of(const char *header)
{
    return *header && strspn(header, "0123456789") == strlen(header) ? strtod(header, NULL) : 0;
}

static json_t *parse(const struct buffer *body)
{
    return json_loadb(body->data ? body->data : "", body->size, JSON_DECODE_ANY | JSON_ALLOW_NUL,
                      NULL);
}

enum pawl_err response_error(const struct response *response, struct pawl_error *error)
{
    static const char type[] = "application/problem+json";
    json_t *problem =
        strncmp(response->content_type, type, sizeof type - 1) == 0 ? parse(&response->body) : NULL;
    char text[DETAIL_BYTES_MAX + 1];
    copy_text(text, sizeof text, response->body.data ? response->body.data : "");
    enum pawl_err kind =
        error_refused(error, response->status, problem, text, response->retry_after_s);
    json_decref(problem);
    return kind;
}

enum pawl_err response_json(const struct response *response, json_t **ret_value,
                            struct pawl_error *error)
{
    json_t *value = response->body.size ? parse(&response->body) : json_null();
    if (!value)
        return error_set(error, PAWL_ERR_NO_ANSWER,
                         "The answer is not JSON, so not from pawl: %.80s", response->body.data);
    *ret_value = value;
    return PAWL_OK;
}
