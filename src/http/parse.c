/* The head of a request, by states; each reads as far as its class of bytes goes. */
#include "http/parse.h"

#include "http/chars.h"
#include "http/parse_rules.h"

enum state {
    AT_START, /* of the request, or of an empty line before it */
    AT_START_LF,
    AT_METHOD,
    AT_TARGET,
    AT_TARGET_HEX_1, /* after '%' */
    AT_TARGET_HEX_2,
    AT_VERSION,
    AT_VERSION_LF,
    AT_LINE, /* the start of a field or of the head's last line */
    AT_NAME,
    AT_BLANKS, /* before a value */
    AT_VALUE,
    AT_VALUE_LF,
    AT_LAST_LF,
    AT_END,
};

static_assert(HTTP_HEAD_MAX <= UINT16_MAX, "positions fit into a slice");
static_assert(HTTP_BODY_DISCARD_MAX <= UINT32_MAX, "lengths fit into a head");

enum err parse_fault_err(enum parse_fault fault)
{
    static const enum err ERRS[] = {
#define X(symbol, err, detail) err,
        PARSE_FAULTS(X)
#undef X
    };
    assert(fault < PARSE_FAULT_COUNT);
    return ERRS[fault];
}

const char *parse_fault_detail(enum parse_fault fault)
{
    static const char *const DETAILS[] = {
#define X(symbol, err, detail) detail,
        PARSE_FAULTS(X)
#undef X
    };
    assert(fault < PARSE_FAULT_COUNT);
    return DETAILS[fault];
}

void head_begin(struct head *h)
{
    memset(h, 0, offsetof(struct head, fields));
}

static struct slice from_mark(const struct head *h)
{
    return (struct slice){h->mark, (uint16_t)(h->at - h->mark)};
}

/* The present byte is of this state's last part: the next one begins the next part. */
static void go(struct head *h, enum state state)
{
    h->at++;
    h->mark = h->at;
    h->state = (uint8_t)state;
}

/* Reads on to the first byte that is not of this class; false: there is none yet. */
static inline bool skip(struct head *h, const char *bytes, size_t limit, unsigned class)
{
    size_t at = h->at;
    while (at + 4 <= limit && chars_are(bytes + at, class))
        at += 4;
    while (at < limit && char_is(bytes[at], class))
        at++;
    h->at = (uint16_t)at;
    return at < limit;
}

/* --- the request line --- */

static enum parse_fault on_start(struct head *h, char c)
{
    if (c == '\r') {
        if (h->count++ == HTTP_EMPTY_LINES_MAX)
            return PARSE_EMPTY_LINES;
        go(h, AT_START_LF);
        return PARSE_FINE;
    }
    h->mark = h->line = h->at;
    h->count = 0;
    h->state = AT_METHOD;
    return char_is(c, CHAR_TOKEN) ? PARSE_FINE : PARSE_REQUEST_LINE;
}

static enum parse_fault on_method(struct head *h, const char *bytes, size_t limit)
{
    bool ends = skip(h, bytes, MIN(limit, (size_t)h->mark + HTTP_METHOD_MAX + 1), CHAR_TOKEN);
    if (h->at - h->mark > HTTP_METHOD_MAX)
        return PARSE_METHOD_LONG;
    if (!ends)
        return PARSE_FINE;
    if (bytes[h->at] != ' ')
        return PARSE_REQUEST_LINE;
    h->method = from_mark(h);
    go(h, AT_TARGET);
    return PARSE_FINE;
}

static enum parse_fault on_target(struct head *h, const char *bytes, size_t limit)
{
    if (!skip(h, bytes, limit, CHAR_TARGET))
        return PARSE_FINE;
    char c = bytes[h->at];
    if (c == '%') {
        h->at++;
        h->state = AT_TARGET_HEX_1;
        return PARSE_FINE;
    }
    if (c == ' ' && h->at > h->mark) {
        h->path = from_mark(h); /* taken apart at the end of the line */
        go(h, AT_VERSION);
        return PARSE_FINE;
    }
    return c == ' ' || c == '\r' || c == '\n' ? PARSE_REQUEST_LINE : PARSE_TARGET;
}

static enum parse_fault on_target_hex(struct head *h, char c)
{
    if (!char_is(c, CHAR_HEX))
        return PARSE_TARGET;
    h->at++;
    h->state = h->state == AT_TARGET_HEX_1 ? AT_TARGET_HEX_2 : AT_TARGET;
    return PARSE_FINE;
}

static enum parse_fault on_version(struct head *h, const char *bytes, size_t limit)
{
    static const char FORM[] = "HTTP/1.1\r"; /* with any digits */
    size_t len = sizeof(FORM) - 1;
    if (h->count == 0 && limit - h->at >= len && memcmp(bytes + h->at, FORM, len) == 0) {
        h->at = (uint16_t)(h->at + len);
        h->count = (uint8_t)len;
        h->major = h->minor = '1';
        h->state = AT_VERSION_LF;
        return PARSE_FINE;
    }
    for (; h->at < limit && h->state == AT_VERSION; h->at++) {
        char c = bytes[h->at];
        char wanted = FORM[h->count];
        if (wanted == '1' ? !char_is(c, CHAR_DIGIT) : c != wanted)
            return PARSE_REQUEST_LINE;
        h->major = h->count == 5 ? c : h->major;
        h->minor = h->count == 7 ? c : h->minor;
        h->count++;
        if (wanted == '\r')
            h->state = AT_VERSION_LF;
    }
    return PARSE_FINE;
}

static enum parse_fault on_request_line(struct head *h, const char *bytes)
{
    if (h->major != '1')
        return PARSE_VERSION;
    h->is_1_0 = h->minor == '0';
    return rules_target(h, bytes);
}

/* --- fields --- */

static enum parse_fault on_name(struct head *h, const char *bytes, size_t limit)
{
    if (!skip(h, bytes, limit, CHAR_TOKEN))
        return PARSE_FINE;
    if (bytes[h->at] != ':')
        return PARSE_FIELD_NAME;
    h->fields[h->field_count].name = from_mark(h);
    go(h, AT_BLANKS);
    return PARSE_FINE;
}

static void on_blanks(struct head *h, const char *bytes, size_t limit)
{
    size_t at = h->at;
    while (at < limit && char_is(bytes[at], CHAR_BLANK))
        at++;
    h->at = h->mark = (uint16_t)at;
    if (at < limit)
        h->state = AT_VALUE;
}

static enum parse_fault on_value(struct head *h, const char *bytes, size_t limit)
{
    if (!skip(h, bytes, limit, CHAR_VALUE))
        return PARSE_FINE;
    if (bytes[h->at] != '\r')
        return bytes[h->at] == '\n' ? PARSE_LINE_END : PARSE_FIELD_VALUE;
    struct slice value = from_mark(h);
    while (value.len > 0 && char_is(bytes[value.at + value.len - 1], CHAR_BLANK))
        value.len--;
    h->fields[h->field_count].value = value;
    go(h, AT_VALUE_LF);
    return PARSE_FINE;
}

/* Goes on with a field, mostly from its first byte to the end of its value. */
static enum parse_fault on_field(struct head *h, const char *bytes, size_t limit)
{
    enum parse_fault fault = PARSE_FINE;
    if (h->state == AT_NAME)
        fault = on_name(h, bytes, limit);
    if (fault == PARSE_FINE && h->state == AT_BLANKS)
        on_blanks(h, bytes, limit);
    if (fault == PARSE_FINE && h->state == AT_VALUE)
        fault = on_value(h, bytes, limit);
    return fault;
}

static enum parse_fault on_line(struct head *h, const char *bytes, size_t limit)
{
    char c = bytes[h->at];
    if (c == '\r') {
        go(h, AT_LAST_LF);
        return PARSE_FINE;
    }
    if (char_is(c, CHAR_BLANK))
        return PARSE_FOLDED;
    if (c == '\n')
        return PARSE_LINE_END;
    if (h->field_count == HTTP_FIELDS_MAX)
        return PARSE_FIELDS;
    if (!char_is(c, CHAR_TOKEN))
        return PARSE_FIELD_NAME;
    h->state = AT_NAME;
    return on_field(h, bytes, limit);
}

/* --- lines --- */

/* The LF of a CR LF; then what the line says is judged. */
static enum parse_fault on_lf(struct head *h, const char *bytes)
{
    if (bytes[h->at] != '\n')
        return PARSE_LINE_END;
    enum state ended = (enum state)h->state;
    go(h, ended == AT_START_LF ? AT_START : ended == AT_LAST_LF ? AT_END : AT_LINE);
    h->line = h->at;
    if (ended == AT_VERSION_LF)
        return on_request_line(h, bytes);
    if (ended == AT_VALUE_LF)
        return rules_field(h, bytes, &h->fields[h->field_count++]);
    if (ended == AT_LAST_LF)
        return rules_head(h);
    return PARSE_FINE;
}

static enum parse_fault step(struct head *h, const char *bytes, size_t limit)
{
    switch ((enum state)h->state) {
    case AT_START:
        return on_start(h, bytes[h->at]);
    case AT_METHOD:
        return on_method(h, bytes, limit);
    case AT_TARGET:
        return on_target(h, bytes, limit);
    case AT_TARGET_HEX_1:
    case AT_TARGET_HEX_2:
        return on_target_hex(h, bytes[h->at]);
    case AT_VERSION:
        return on_version(h, bytes, limit);
    case AT_LINE:
        return on_line(h, bytes, limit);
    case AT_NAME:
    case AT_BLANKS:
    case AT_VALUE:
        return on_field(h, bytes, limit);
    default:
        return on_lf(h, bytes);
    }
}

/* Where the line has to end, or what has come of it. */
static size_t limit_of(const struct head *h, size_t len)
{
    return MIN(len, (size_t)MIN(h->line + HTTP_LINE_MAX, HTTP_HEAD_MAX));
}

/* At the limit: is the line or the head as long as it may be, and does not end here? */
static enum parse_fault too_long(const struct head *h)
{
    bool in_fields = h->state >= AT_LINE;
    if (h->at - h->line == HTTP_LINE_MAX)
        return in_fields ? PARSE_FIELD_LONG : PARSE_TARGET_LONG;
    return h->at == HTTP_HEAD_MAX ? PARSE_HEAD_LONG : PARSE_FINE;
}

enum parse_status head_parse(struct head *h, const char *bytes, size_t len)
{
    assert(h->state != AT_END && h->fault == PARSE_FINE && h->at <= len);
    size_t limit = limit_of(h, len);
    while (h->at < len) {
        uint16_t line = h->line;
        enum parse_fault fault = step(h, bytes, limit);
        if (fault == PARSE_FINE && h->state == AT_END) {
            h->size = h->at;
            return PARSE_DONE;
        }
        if (fault == PARSE_FINE && h->at == limit)
            fault = too_long(h);
        if (fault != PARSE_FINE) {
            h->fault = fault;
            return PARSE_REFUSED;
        }
        if (h->line != line)
            limit = limit_of(h, len);
    }
    return PARSE_MORE;
}
