/* Progress bars. */
#include "cli/term/progress.h"

#include "base/env.h"
#include "base/limits.h"
#include "cli/term/term.h"
#include "cli/term/when.h"

enum { REDRAW_MS = 100, BAR_WIDTH = 24, LINE_MAX_LEN = 1024 };

struct progress progress_begin(const char *what, int64_t total)
{
    int64_t now = env_mono_ms(&ENV_SYSTEM);
    return (struct progress){.what = what,
                             .total = total,
                             .began_ms = now,
                             .drawn_ms = now - REDRAW_MS,
                             .is_shown = term_of(stderr).is_terminal};
}

static void put_amount(struct line *l, const char *what, int64_t amount)
{
    if (strcmp(what, "bytes") == 0)
        line_printf(l, STYLE_PLAIN, "%lld.%lld MiB", (long long)(amount / MIB),
                    (long long)(amount % MIB * 10 / MIB));
    else
        line_printf(l, STYLE_PLAIN, "%lld %s", (long long)amount, what);
}

static void put_bar(struct line *l, int64_t done, int64_t total)
{
    int64_t filled = MIN(done, total) * BAR_WIDTH / total;
    line_put(l, STYLE_PLAIN, STR("["));
    for (int64_t i = 0; i < BAR_WIDTH; i++)
        line_put(l, STYLE_GOOD, i < filled ? STR("#") : STR(" "));
    line_printf(l, STYLE_PLAIN, "] %3lld%%  ", (long long)(MIN(done, total) * 100 / total));
}

static void draw(struct progress *p, int64_t done, int64_t now)
{
    char room[WHEN_MAX];
    struct buf text;
    struct term term = term_of(stderr);
    struct line l = {.term = &term, .out = &text};
    int64_t passed = MAX(now - p->began_ms, INT64_C(1));
    term.columns--; /* the last column would wrap the cursor */
    buf_init(&text, LINE_MAX_LEN);
    buf_put(&text, STR("\r\x1b[K"));
    if (p->total > 0)
        put_bar(&l, done, p->total);
    put_amount(&l, p->what, done);
    line_put(&l, STYLE_PLAIN, STR("  "));
    put_amount(&l, p->what, done * 1000 / passed);
    line_put(&l, STYLE_PLAIN, STR("/s"));
    if (p->total > done && done > 0 && passed >= 1000)
        line_printf(&l, STYLE_FAINT, "  %s left",
                    duration_text((p->total - done) * passed / done, room));
    fwrite(text.ptr, 1, text.len, stderr);
    (void)fflush(stderr);
    buf_release(&text);
}

void progress_update(struct progress *p, int64_t done)
{
    int64_t now = env_mono_ms(&ENV_SYSTEM);
    if (!p->is_shown || now - p->drawn_ms < REDRAW_MS)
        return;
    p->drawn_ms = now;
    draw(p, done, now);
}

void progress_end(struct progress *p)
{
    if (p->is_shown)
        fputs("\r\x1b[K", stderr);
    p->is_shown = false;
}
