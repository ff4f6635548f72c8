/* A chunked body (RFC 9112 7.1). Extensions and trailers are checked and dropped. */
#include "http/chars.h"
#include "http/parse.h"

enum state {
    AT_SIZE, /* its first digit */
    AT_SIZE_DIGITS,
    AT_BLANKS_BEFORE_EXT, /* after which an extension must follow */
    AT_EXT,               /* after ';' */
    AT_EXT_NAME,
    AT_BLANKS_AFTER_NAME, /* after which '=' or ';' must follow */
    AT_EXT_EQUALS,        /* after '=' */
    AT_EXT_TOKEN,
    AT_EXT_QUOTED,
    AT_EXT_ESCAPED,
    AT_EXT_UNQUOTED, /* after the closing quote */
    AT_SIZE_LF,
    AT_DATA,
    AT_DATA_CR,
    AT_DATA_LF,
    AT_TRAILER, /* the start of a line */
    AT_TRAILER_NAME,
    AT_TRAILER_VALUE,
    AT_TRAILER_LF,
    AT_LAST_LF,
    AT_END,
};

static_assert(HTTP_CHUNK_LINE_MAX + HTTP_CHUNK_EXTENSIONS_MAX <= UINT16_MAX, "counters fit");
static_assert(HTTP_TRAILERS_MAX < UINT16_MAX, "counters fit");

void chunks_begin(struct chunks *c)
{
    *c = (struct chunks){.fault = PARSE_FINE, .state = AT_SIZE};
}

static enum parse_fault go(struct chunks *c, enum state state)
{
    c->state = (uint8_t)state;
    return PARSE_FINE;
}

/* --- the line with the size --- */

static enum parse_fault on_digit(struct chunks *c, char digit)
{
    if (c->left > UINT64_MAX / 16)
        return PARSE_CHUNK_SIZE;
    c->left = c->left * 16 + char_hex_value(digit);
    return go(c, AT_SIZE_DIGITS);
}

/* Where the size, or an extension, may be over. */
static enum parse_fault on_end_or_ext(struct chunks *c, char byte, enum parse_fault otherwise)
{
    if (byte == '\r')
        return go(c, AT_SIZE_LF);
    if (byte == ';')
        return go(c, AT_EXT);
    if (char_is(byte, CHAR_BLANK))
        return go(c, AT_BLANKS_BEFORE_EXT);
    return otherwise;
}

static enum parse_fault on_size(struct chunks *c, char byte)
{
    if (char_is(byte, CHAR_HEX))
        return on_digit(c, byte);
    if (c->left > HTTP_BODY_DISCARD_MAX - c->total)
        return PARSE_CHUNK_LARGE;
    return c->state == AT_SIZE ? PARSE_CHUNK_SIZE : on_end_or_ext(c, byte, PARSE_CHUNK_SIZE);
}

static enum parse_fault on_size_lf(struct chunks *c, char byte)
{
    if (byte != '\n')
        return PARSE_CHUNK_SIZE;
    c->line = 0;
    c->total += (uint32_t)c->left;
    return go(c, c->left > 0 ? AT_DATA : AT_TRAILER);
}

/* ;name, ;name=token or ;name="text", with blanks around ; and = but not at the end. */
static enum parse_fault on_ext_name(struct chunks *c, char byte)
{
    if (char_is(byte, CHAR_TOKEN))
        return go(c, AT_EXT_NAME);
    if (c->state == AT_EXT)
        return char_is(byte, CHAR_BLANK) ? PARSE_FINE : PARSE_CHUNK_EXTENSION;
    if (byte == '=')
        return go(c, AT_EXT_EQUALS);
    if (char_is(byte, CHAR_BLANK))
        return go(c, AT_BLANKS_AFTER_NAME);
    return on_end_or_ext(c, byte, PARSE_CHUNK_EXTENSION);
}

static enum parse_fault on_ext_blanks(struct chunks *c, char byte)
{
    if (byte == ';')
        return go(c, AT_EXT);
    if (byte == '=' && c->state == AT_BLANKS_AFTER_NAME)
        return go(c, AT_EXT_EQUALS);
    return char_is(byte, CHAR_BLANK) ? PARSE_FINE : PARSE_CHUNK_EXTENSION;
}

static enum parse_fault on_ext_value(struct chunks *c, char byte)
{
    if (char_is(byte, CHAR_TOKEN))
        return go(c, AT_EXT_TOKEN);
    if (c->state == AT_EXT_TOKEN)
        return on_end_or_ext(c, byte, PARSE_CHUNK_EXTENSION);
    if (byte == '"')
        return go(c, AT_EXT_QUOTED);
    return char_is(byte, CHAR_BLANK) ? PARSE_FINE : PARSE_CHUNK_EXTENSION;
}

static enum parse_fault on_ext_quoted(struct chunks *c, char byte)
{
    if (c->state == AT_EXT_ESCAPED)
        return char_is(byte, CHAR_VALUE) ? go(c, AT_EXT_QUOTED) : PARSE_CHUNK_EXTENSION;
    if (byte == '"')
        return go(c, AT_EXT_UNQUOTED);
    if (byte == '\\')
        return go(c, AT_EXT_ESCAPED);
    return char_is(byte, CHAR_QUOTED) ? PARSE_FINE : PARSE_CHUNK_EXTENSION;
}

/* --- trailers --- */

static enum parse_fault on_trailer(struct chunks *c, char byte)
{
    if (byte == '\r')
        return go(c, AT_LAST_LF);
    if (char_is(byte, CHAR_BLANK))
        return PARSE_FOLDED;
    return char_is(byte, CHAR_TOKEN) ? go(c, AT_TRAILER_NAME) : PARSE_FIELD_NAME;
}

static enum parse_fault on_trailer_name(struct chunks *c, char byte)
{
    if (byte == ':')
        return go(c, AT_TRAILER_VALUE);
    return char_is(byte, CHAR_TOKEN) ? PARSE_FINE : PARSE_FIELD_NAME;
}

static enum parse_fault on_trailer_value(struct chunks *c, char byte)
{
    if (byte == '\r')
        return go(c, AT_TRAILER_LF);
    return char_is(byte, CHAR_VALUE) ? PARSE_FINE : PARSE_FIELD_VALUE;
}

/* --- all of it --- */

static enum parse_fault on_exact(struct chunks *c, char byte, char wanted, enum state next,
                                 enum parse_fault otherwise)
{
    return byte == wanted ? go(c, next) : otherwise;
}

static enum parse_fault step(struct chunks *c, char byte)
{
    switch ((enum state)c->state) {
    case AT_SIZE:
    case AT_SIZE_DIGITS:
        return on_size(c, byte);
    case AT_BLANKS_BEFORE_EXT:
    case AT_BLANKS_AFTER_NAME:
        return on_ext_blanks(c, byte);
    case AT_EXT:
    case AT_EXT_NAME:
        return on_ext_name(c, byte);
    case AT_EXT_EQUALS:
    case AT_EXT_TOKEN:
        return on_ext_value(c, byte);
    case AT_EXT_QUOTED:
    case AT_EXT_ESCAPED:
        return on_ext_quoted(c, byte);
    case AT_EXT_UNQUOTED:
        return on_end_or_ext(c, byte, PARSE_CHUNK_EXTENSION);
    case AT_SIZE_LF:
        return on_size_lf(c, byte);
    case AT_DATA_CR:
        return on_exact(c, byte, '\r', AT_DATA_LF, PARSE_CHUNK_END);
    case AT_DATA_LF:
        return on_exact(c, byte, '\n', AT_SIZE, PARSE_CHUNK_END);
    case AT_TRAILER:
        return on_trailer(c, byte);
    case AT_TRAILER_NAME:
        return on_trailer_name(c, byte);
    case AT_TRAILER_VALUE:
        return on_trailer_value(c, byte);
    case AT_TRAILER_LF:
        return on_exact(c, byte, '\n', AT_TRAILER, PARSE_LINE_END);
    default:
        return on_exact(c, byte, '\n', AT_END, PARSE_LINE_END);
    }
}

/* Counts a byte that is no data against the limits. */
static enum parse_fault count(struct chunks *c)
{
    if (c->state >= AT_TRAILER)
        return ++c->trailers > HTTP_TRAILERS_MAX ? PARSE_TRAILERS_LONG : PARSE_FINE;
    if (c->state >= AT_BLANKS_BEFORE_EXT && c->state < AT_SIZE_LF)
        c->extensions++;
    bool long_line = c->state < AT_DATA && ++c->line > HTTP_CHUNK_LINE_MAX;
    return long_line || c->extensions > HTTP_CHUNK_EXTENSIONS_MAX ? PARSE_CHUNK_LINE_LONG
                                                                  : PARSE_FINE;
}

/* As much of the chunk's data as is there. */
static size_t take_data(struct chunks *c, char *to, const char *from, size_t len)
{
    size_t n = (size_t)MIN((uint64_t)len, c->left);
    memmove(to, from, n);
    c->left -= n;
    if (c->left == 0)
        (void)go(c, AT_DATA_CR);
    return n;
}

enum parse_status chunks_parse(struct chunks *c, char *bytes, size_t len, size_t *ret_used,
                               size_t *ret_data)
{
    assert(c->state != AT_END && c->fault == PARSE_FINE);
    size_t at = 0, data = 0;
    while (at < len && c->state != AT_END && c->fault == PARSE_FINE) {
        if (c->state == AT_DATA) {
            size_t n = take_data(c, bytes + data, bytes + at, len - at);
            at += n;
            data += n;
            continue;
        }
        c->fault = count(c);
        if (c->fault == PARSE_FINE)
            c->fault = step(c, bytes[at++]);
    }
    *ret_used = at;
    *ret_data = data;
    if (c->fault != PARSE_FINE)
        return PARSE_REFUSED;
    return c->state == AT_END ? PARSE_DONE : PARSE_MORE;
}
