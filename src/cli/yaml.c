/* Reads YAML with libyaml and writes JSON. */
#include "cli/yaml.h"

#include "base/json_tree.h"

#include <yaml.h>

enum { DEPTH_MAX = 64 };

struct level {
    bool is_mapping;
    json_t *name; /* of the value that comes next; NULL: none yet */
    json_t *seen; /* the names of a mapping */
};

struct reader {
    const char *source;
    struct json_out out;
    struct level levels[DEPTH_MAX];
    size_t depth;
    const char *fault; /* NULL: none */
    char fault_room[160];
};

/* --- scalars --- */

static bool skip_digits(const char **p)
{
    const char *from = *p;
    while (**p >= '0' && **p <= '9')
        ++*p;
    return *p > from;
}

/* By the grammar of JSON. */
static bool is_number(const char *p)
{
    p += *p == '-';
    if (*p == '0')
        p++;
    else if (!skip_digits(&p))
        return false;
    if (*p == '.' && (p++, !skip_digits(&p)))
        return false;
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '+' || *p == '-';
        if (!skip_digits(&p))
            return false;
    }
    return *p == '\0';
}

static bool is_json_word(const char *text)
{
    return strcmp(text, "true") == 0 || strcmp(text, "false") == 0 || strcmp(text, "null") == 0 ||
           is_number(text);
}

static void put_scalar(struct reader *r, const char *name, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    bool is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (is_plain && text[0] == '\0')
        json_add_null(&r->out, name);
    else if (is_plain && is_json_word(text))
        json_add_raw(&r->out, name, str_of(text));
    else
        json_add_text(&r->out, name, str_of(text));
}

/* --- structure --- */

static struct level *top(struct reader *r)
{
    return r->depth > 0 ? &r->levels[r->depth - 1] : NULL;
}

/* The name of the value that begins now. */
static const char *name_of(const struct level *l)
{
    return l != NULL && l->is_mapping ? json_string_value(l->name) : NULL;
}

static void value_done(struct level *l)
{
    if (l == NULL)
        return;
    json_decref(l->name);
    l->name = NULL;
}

static void take_name(struct reader *r, struct level *l, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.scalar.value;
    if (json_object_get(l->seen, name) != NULL) {
        (void)snprintf(r->fault_room, sizeof(r->fault_room), "the name \"%.80s\" is used twice",
                       name);
        r->fault = r->fault_room;
        return;
    }
    l->name = json_string(name);
    if (l->name == NULL || json_object_set_new(l->seen, name, json_true()) != 0)
        r->fault = "a name is not UTF-8, or memory ran out";
}

static void take_scalar(struct reader *r, const yaml_event_t *event)
{
    struct level *l = top(r);
    if (strlen((const char *)event->data.scalar.value) != event->data.scalar.length) {
        r->fault = "NUL characters are not allowed";
    } else if (l != NULL && l->is_mapping && l->name == NULL) {
        take_name(r, l, event);
    } else {
        put_scalar(r, name_of(l), event);
        value_done(l);
    }
}

static void open_level(struct reader *r, bool is_mapping)
{
    struct level *l = top(r);
    if (r->depth == DEPTH_MAX) {
        r->fault = "it is nested too deeply";
    } else if (l != NULL && l->is_mapping && l->name == NULL) {
        r->fault = "a name must be a text";
    } else {
        json_open(&r->out, name_of(l), is_mapping ? '{' : '[');
        struct level *fresh = &r->levels[r->depth++];
        assert(fresh->name == NULL);
        fresh->is_mapping = is_mapping;
        fresh->seen = is_mapping ? json_object() : NULL;
    }
}

static void close_level(struct reader *r)
{
    struct level *l = top(r);
    assert(l != NULL);
    json_close(&r->out, l->is_mapping ? '}' : ']');
    json_decref(l->seen);
    value_done(l);
    r->depth--;
    value_done(top(r));
}

static bool is_tagged(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.tag != NULL;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.tag != NULL;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.tag != NULL;
    default:
        return false;
    }
}

static bool is_anchored(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return true;
    case YAML_SCALAR_EVENT:
        return event->data.scalar.anchor != NULL;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.anchor != NULL;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.anchor != NULL;
    default:
        return false;
    }
}

static void take_event(struct reader *r, const yaml_event_t *event, int *documents)
{
    if (is_anchored(event)) {
        r->fault = "anchors and aliases are not allowed";
        return;
    }
    if (is_tagged(event)) {
        r->fault = "tags are not allowed";
        return;
    }
    if (event->type == YAML_DOCUMENT_START_EVENT && ++*documents > 1)
        r->fault = "there is more than one document";
    else if (event->type == YAML_SCALAR_EVENT)
        take_scalar(r, event);
    else if (event->type == YAML_MAPPING_START_EVENT || event->type == YAML_SEQUENCE_START_EVENT)
        open_level(r, event->type == YAML_MAPPING_START_EVENT);
    else if (event->type == YAML_MAPPING_END_EVENT || event->type == YAML_SEQUENCE_END_EVENT)
        close_level(r);
}

static void print_fault(const char *source, const yaml_mark_t *mark, const char *fault)
{
    fprintf(stderr, "pawl: %s:%zu:%zu: %s\n", source, mark->line + 1, mark->column + 1, fault);
}

/* One event; false at the end of the text or at the first fault. */
static bool read_event(struct reader *r, yaml_parser_t *parser, int *documents)
{
    yaml_event_t event;
    if (!yaml_parser_parse(parser, &event)) {
        r->fault = parser->problem != NULL ? parser->problem : "it is not YAML";
        print_fault(r->source, &parser->problem_mark, r->fault);
        return false;
    }
    bool more = event.type != YAML_STREAM_END_EVENT;
    take_event(r, &event, documents);
    if (r->fault != NULL)
        print_fault(r->source, &event.start_mark, r->fault);
    yaml_event_delete(&event);
    return more && r->fault == NULL;
}

enum cli_exit yaml_to_json(const char *source, struct str yaml, struct buf *out)
{
    yaml_parser_t parser;
    struct reader r = {.source = source, .out = json_out_to(out)};
    int documents = 0;
    if (!yaml_parser_initialize(&parser)) {
        fprintf(stderr, "pawl: Out of memory\n");
        return CLI_REFUSED;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)(yaml.len > 0 ? yaml.ptr : ""),
                                 yaml.len);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    while (read_event(&r, &parser, &documents))
        ;
    for (; r.depth > 0; r.depth--) {
        json_decref(r.levels[r.depth - 1].seen);
        json_decref(r.levels[r.depth - 1].name);
    }
    yaml_parser_delete(&parser);
    if (r.fault == NULL && documents == 0) {
        fprintf(stderr, "pawl: %s is empty\n", source);
        return CLI_REFUSED;
    }
    return r.fault == NULL ? CLI_DONE : CLI_REFUSED;
}
