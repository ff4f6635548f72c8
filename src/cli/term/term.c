/* Terminals: what they can show, and lines that fit them. */
#include "cli/term/term.h"

#include "cli/term/width.h"

#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS_DEFAULT = 80, COLUMNS_MIN = 20, ROWS_DEFAULT = 24, PRINTF_MAX = 64 * 1024 };

static const char *const CODES[STYLE_COUNT] = {
    [STYLE_PLAIN] = "\x1b[0m",  [STYLE_STRONG] = "\x1b[1m", [STYLE_FAINT] = "\x1b[2m",
    [STYLE_GOOD] = "\x1b[32m",  [STYLE_BAD] = "\x1b[31m",   [STYLE_BUSY] = "\x1b[36m",
    [STYLE_WAITS] = "\x1b[33m",
};

static const struct {
    const char *words;
    enum style style;
} STATUSES[] = {
    {"|succeeded|approved|completed|ok|", STYLE_GOOD},
    {"|failed|denied|timed_out|rejected|dead|", STYLE_BAD},
    {"|running|active|claimed|dispatched|", STYLE_BUSY},
    {"|waiting|queued|paused|suspended|scheduled|pending|approval|held|", STYLE_WAITS},
    {"|cancelled|skipped|expired|void|", STYLE_FAINT},
};

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL && value[0] != '\0';
}

/* COLUMNS, if it is set, else what the terminal says. */
static void measure(int fd, struct term *t)
{
    struct winsize size = {0};
    int64_t wished = 0;
    (void)ioctl(fd, TIOCGWINSZ, &size);
    t->columns = size.ws_col > 0 ? size.ws_col : COLUMNS_DEFAULT;
    t->rows = size.ws_row > 0 ? size.ws_row : ROWS_DEFAULT;
    if (is_set("COLUMNS") && str_to_i64(str_of(getenv("COLUMNS")), &wished) && wished > 0)
        t->columns = (size_t)wished;
    t->columns = MAX(t->columns, (size_t)COLUMNS_MIN);
}

struct term term_of(FILE *file)
{
    int fd = fileno(file);
    struct term t = {.is_terminal = isatty(fd) == 1, .columns = SIZE_MAX, .rows = SIZE_MAX};
    if (!t.is_terminal)
        return t;
    const char *name = getenv("TERM");
    measure(fd, &t);
    t.has_color = !is_set("NO_COLOR") && name != NULL && strcmp(name, "dumb") != 0;
    (void)setlocale(LC_CTYPE, "");
    t.has_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    return t;
}

enum style style_of_status(struct str word)
{
    char wanted[40];
    (void)snprintf(wanted, sizeof(wanted), "|%.*s|", STR_ARG(word));
    for (size_t i = 0; i < ARRAY_LEN(STATUSES); i++)
        if (strstr(STATUSES[i].words, wanted) != NULL)
            return STATUSES[i].style;
    return STYLE_PLAIN;
}

const char *style_code(const struct term *t, enum style style)
{
    assert(style < STYLE_COUNT);
    return t->has_color ? CODES[style] : "";
}

/* --- lines --- */

void line_put(struct line *l, enum style style, struct str text)
{
    struct buf clean;
    if (l->is_full || text.len == 0)
        return;
    buf_init(&clean, PRINTF_MAX);
    put_clean(&clean, (struct str){text.ptr, MIN(text.len, (size_t)PRINTF_MAX)});
    struct str shown = buf_str(&clean);
    size_t room = l->term->columns - l->width;
    l->is_full = text_width(shown) > room;
    if (l->is_full)
        shown.len = text_prefix(shown, room - 1);
    bool styled = style != STYLE_PLAIN;
    buf_put(l->out, str_of(styled ? style_code(l->term, style) : ""));
    buf_put(l->out, shown);
    if (l->is_full)
        buf_put(l->out, l->term->has_utf8 ? STR("…") : STR("~"));
    buf_put(l->out, str_of(styled ? style_code(l->term, STYLE_PLAIN) : ""));
    l->width = l->is_full ? l->term->columns : l->width + text_width(shown);
    l->is_full |= l->width == l->term->columns;
    buf_release(&clean);
}

void line_printf(struct line *l, enum style style, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    assert(len >= 0 && (size_t)len < sizeof(text));
    line_put(l, style, str_of(text));
}

void line_pad(struct line *l, size_t column)
{
    while (l->width < column && !l->is_full)
        line_put(l, STYLE_PLAIN, STR(" "));
}

void line_end(struct line *l)
{
    while (l->out->len > 0 && l->out->ptr[l->out->len - 1] == ' ')
        l->out->len--;
    buf_put_char(l->out, '\n');
    l->width = 0;
    l->is_full = false;
}

void put_clean(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        unsigned char next = i + 1 < text.len ? (unsigned char)text.ptr[i + 1] : 0;
        bool c1 = c == 0xC2 && next >= 0x80 && next <= 0x9F;
        buf_put_char(out, c < 0x20 || c == 0x7f || c1 ? ' ' : text.ptr[i]);
        i += c1 ? 1 : 0;
    }
}
