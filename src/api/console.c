/* The web console: files that travel inside the binary, sent from there. They need no key; what
 * they show comes from the API, which does. */
#include "api/call.h"
#include "api/console_files.h"
#include "api/routes.h"

/* A page of our own scripts, styles and font, which talks to this server only and is framed by
 * none. */
#define POLICY                                                                        \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " \
    "font-src 'self'; connect-src 'self'; base-uri 'self'; form-action 'none'; "      \
    "frame-ancestors 'none'"

/* --- which file --- */

static const struct console_file *find_file(struct str path)
{
    for (size_t i = 0; i < CONSOLE_FILE_COUNT; i++) {
        if (str_is(path, CONSOLE_FILES[i].path))
            return &CONSOLE_FILES[i];
    }
    return NULL;
}

/* Every path that is no file's is a place within the console, which the page itself looks up. NULL
 * when it is deeper than any. `raw` is as sent: an encoded slash is no level. */
static const struct console_file *find_page(struct str path, struct str raw)
{
    size_t depth = 0;
    for (size_t i = 0; i < raw.len; i++)
        depth += raw.ptr[i] == '/' ? 1 : 0;
    if (str_starts_with(path, STR("assets/")) || depth >= CONSOLE_PAGE_COUNT)
        return NULL;
    return &CONSOLE_PAGES[depth];
}

/* --- which form --- */

/* Is the weight of a coding zero, as in "br;q=0"? */
static bool is_refused(struct str weight)
{
    weight = str_trim(weight);
    if (!str_starts_with(weight, STR("q=0")))
        return false;
    for (size_t i = 3; i < weight.len; i++) {
        if (weight.ptr[i] != '0' && weight.ptr[i] != '.')
            return false;
    }
    return true;
}

static bool accepts(struct str accepted, struct str coding)
{
    while (accepted.len > 0) {
        struct str one;
        struct str name;
        struct str weight;
        (void)str_cut(accepted, ',', &one, &accepted);
        (void)str_cut(one, ';', &name, &weight);
        if (str_eq_nocase(str_trim(name), coding))
            return !is_refused(weight);
    }
    return false;
}

static enum console_form choose_form(struct call *c)
{
    struct str accepted = http_header_list(c->req, "Accept-Encoding");
    if (accepts(accepted, STR("br")))
        return CONSOLE_BROTLI;
    return accepts(accepted, STR("gzip")) ? CONSOLE_GZIP : CONSOLE_PLAIN;
}

/* --- the answer --- */

static void send_file(struct call *c, const struct console_file *file)
{
    static const char *const CODING[CONSOLE_FORMS] = {"br", "gzip", NULL};
    enum console_form form = choose_form(c);
    struct str etag = str_of(file->form[form].etag);
    bool known = call_tags_name(http_header_list(c->req, "If-None-Match"), etag);
    struct http_reply reply = call_reply(c, known ? 304 : 200, known ? STR("") : str_of(file->type),
                                         known ? STR("") : file->form[form].body);
    reply.cache_control =
        file->hashed ? STR("public, max-age=31536000, immutable") : STR("no-cache");
    http_reply_add(&reply, "ETag", etag);
    http_reply_add(&reply, "Vary", STR("Accept-Encoding"));
    http_reply_add(&reply, "Content-Security-Policy", STR(POLICY));
    http_reply_add(&reply, "Referrer-Policy", STR("no-referrer"));
    http_reply_add(&reply, "Cross-Origin-Opener-Policy", STR("same-origin"));
    http_reply_add(&reply, "Cross-Origin-Resource-Policy", STR("same-origin"));
    if (!known && CODING[form] != NULL)
        http_reply_add(&reply, "Content-Encoding", str_of(CODING[form]));
    http_send(c->req, &reply);
}

static void direct_file(struct call *c)
{
    struct str path = c->params[0];
    struct str raw = {c->req->path.ptr + strlen("/console/"),
                      c->req->path.len - strlen("/console/")};
    const struct console_file *file = find_file(path);
    if (file == NULL)
        file = find_page(path, raw);
    if (file != NULL) {
        send_file(c, file);
        return;
    }
    (void)problem_set(&c->op.problem, ERR_NOT_FOUND, "The console has no such file");
    call_send_problem(c);
}

/* Relative, so that it holds behind a proxy that serves pawl below a path of its own. */
static void direct_redirect(struct call *c)
{
    static const char TEXT[] =
        "pawl " PAWL_VERSION ". The console is at console/, the API under api/v1/, its "
        "description at openapi.json.\n";
    struct http_reply reply = call_reply(c, 308, STR("text/plain; charset=utf-8"), str_of(TEXT));
    http_reply_add(&reply, "Location", STR("console/"));
    http_send(c->req, &reply);
}

const struct route CONSOLE_ROUTES[] = {
    {"GET", "/", 0, ROUTE_OPEN, .direct = direct_redirect, .scope = OF_NODE},
    {"GET", "/console", 0, ROUTE_OPEN, .direct = direct_redirect, .scope = OF_NODE},
    {"GET", "/console/{*}", 0, ROUTE_OPEN, .direct = direct_file, .scope = OF_NODE},
    {.method = NULL},
};
