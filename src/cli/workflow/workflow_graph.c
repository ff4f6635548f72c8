/* pawl workflow graph: which step needs which, as text or as SVG. */
#include "base/limits.h"
#include "cli/term/term.h"
#include "cli/workflow/workflow_verbs.h"

enum {
    BOX_WIDTH = 200,
    BOX_HEIGHT = 52,
    GAP_X = 60,
    GAP_Y = 24,
    MARGIN = 20,
    NAME_COLUMN = 4, /* after the number of the level */
};

const struct option OPTIONS_WORKFLOW_GRAPH[] = {
    {.name = "svg", .kind = OPTION_SWITCH, .help = "Print an SVG picture"},
    {.name = "version",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .help = "Draw this version (default: the newest)"},
    {.name = NULL},
};

struct node {
    const json_t *step;
    size_t level; /* 0: needs nothing */
    size_t row;   /* within its level */
};

struct graph {
    const json_t *steps;
    struct node *nodes;
    size_t count;
    size_t level_count;
    size_t row_count; /* of the fullest level */
    bool is_chain;    /* no step has needs: each needs the one before */
};

static const char *text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text != NULL ? text : "";
}

static size_t find_node(const struct graph *g, const char *name)
{
    size_t i = 0;
    while (i < g->count && strcmp(text_of(g->nodes[i].step, "name"), name) != 0)
        i++;
    return i;
}

/* The nodes that a node needs, one after the other; count at the end. */
static size_t next_need(const struct graph *g, size_t node, size_t *at)
{
    const json_t *needs = json_object_get(g->nodes[node].step, "needs");
    if (g->is_chain)
        return node > 0 && (*at)++ == 0 ? node - 1 : g->count;
    while (*at < json_array_size(needs)) {
        const char *name = json_string_value(json_array_get(needs, (*at)++));
        size_t found = name != NULL ? find_node(g, name) : g->count;
        if (found < g->count)
            return found;
    }
    return g->count;
}

/* A definition has no circles, so that this ends after as many rounds as there are levels. */
static void set_levels(struct graph *g)
{
    bool changed = true;
    for (size_t round = 0; changed && round < g->count; round++) {
        changed = false;
        for (size_t i = 0; i < g->count; i++) {
            size_t at = 0, need;
            while ((need = next_need(g, i, &at)) < g->count)
                if (g->nodes[i].level <= g->nodes[need].level) {
                    g->nodes[i].level = g->nodes[need].level + 1;
                    changed = true;
                }
        }
    }
}

static void set_rows(struct graph *g)
{
    for (size_t i = 0; i < g->count; i++) {
        for (size_t j = 0; j < i; j++)
            g->nodes[i].row += g->nodes[j].level == g->nodes[i].level;
        g->level_count = MAX(g->level_count, g->nodes[i].level + 1);
        g->row_count = MAX(g->row_count, g->nodes[i].row + 1);
    }
}

/* False when memory ran out; free g->nodes. */
static bool graph_make(struct graph *g, const json_t *definition)
{
    *g = (struct graph){.steps = json_object_get(definition, "steps"), .is_chain = true};
    g->count = json_array_size(g->steps);
    g->nodes = calloc(g->count + 1, sizeof(*g->nodes));
    if (g->nodes == NULL)
        return false;
    for (size_t i = 0; i < g->count; i++) {
        g->nodes[i].step = json_array_get(g->steps, i);
        g->is_chain &= json_object_get(g->nodes[i].step, "needs") == NULL;
    }
    set_levels(g);
    set_rows(g);
    return true;
}

/* --- text --- */

static void put_details(struct line *l, const struct graph *g, size_t node)
{
    const json_t *step = g->nodes[node].step;
    const char *undo = text_of(json_object_get(step, "compensate"), "handler");
    const char *const details[][2] = {{"  ", text_of(step, "handler")},
                                      {"  for each ", text_of(step, "for_each")},
                                      {"  when ", text_of(step, "when")},
                                      {"  undo ", undo}};
    size_t at = 0, need;
    const char *before = l->term->has_utf8 ? "  ← " : "  <- ";
    while ((need = next_need(g, node, &at)) < g->count) {
        line_put(l, STYLE_FAINT, str_of(before));
        line_put(l, STYLE_PLAIN, str_of(text_of(g->nodes[need].step, "name")));
        before = ", ";
    }
    for (size_t i = 0; i < ARRAY_LEN(details); i++)
        if (details[i][1][0] != '\0') {
            line_put(l, STYLE_FAINT, str_of(details[i][0]));
            line_put(l, STYLE_FAINT, str_of(details[i][1]));
        }
}

static void print_text(const struct graph *g)
{
    struct buf out;
    struct term term = term_of(stdout);
    buf_init(&out, HTTP_REPLY_MAX);
    for (size_t level = 0; level < g->level_count; level++)
        for (size_t i = 0; i < g->count; i++) {
            struct line l = {.term = &term, .out = &out};
            if (g->nodes[i].level != level)
                continue;
            if (g->nodes[i].row == 0)
                line_printf(&l, STYLE_FAINT, "%zu", level + 1);
            line_pad(&l, NAME_COLUMN);
            line_put(&l, STYLE_STRONG, str_of(text_of(g->nodes[i].step, "name")));
            line_put(&l, STYLE_PLAIN, STR(" ("));
            line_put(&l, STYLE_PLAIN, str_of(text_of(g->nodes[i].step, "type")));
            line_put(&l, STYLE_PLAIN, STR(")"));
            put_details(&l, g, i);
            line_end(&l);
        }
    fwrite(out.ptr, 1, out.len, stdout);
    buf_release(&out);
}

/* --- SVG --- */

static void print_escaped(const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '<')
            fputs("&lt;", stdout);
        else if (*p == '&')
            fputs("&amp;", stdout);
        else if (*p == '"')
            fputs("&quot;", stdout);
        else
            putchar((unsigned char)*p < 0x20 ? ' ' : *p);
    }
}

static size_t left_of(const struct node *n)
{
    return MARGIN + n->level * (BOX_WIDTH + GAP_X);
}

static size_t top_of(const struct node *n)
{
    return MARGIN + n->row * (BOX_HEIGHT + GAP_Y);
}

static void print_box(const struct node *n)
{
    size_t x = left_of(n), y = top_of(n);
    printf("<g><title>");
    print_escaped(text_of(n->step, "name"));
    printf("</title><rect x=\"%zu\" y=\"%zu\" width=\"%d\" height=\"%d\" rx=\"8\"/>", x, y,
           BOX_WIDTH, BOX_HEIGHT);
    printf("<text class=\"name\" x=\"%zu\" y=\"%zu\">", x + 12, y + 22);
    print_escaped(text_of(n->step, "name"));
    printf("</text><text x=\"%zu\" y=\"%zu\">", x + 12, y + 40);
    print_escaped(text_of(n->step, "type"));
    if (text_of(n->step, "handler")[0] != '\0') {
        putchar(' ');
        print_escaped(text_of(n->step, "handler"));
    }
    fputs("</text></g>\n", stdout);
}

static void print_arrow(const struct node *from, const struct node *to)
{
    size_t x1 = left_of(from) + BOX_WIDTH, y1 = top_of(from) + BOX_HEIGHT / 2;
    size_t x2 = left_of(to), y2 = top_of(to) + BOX_HEIGHT / 2, middle = (x1 + x2) / 2;
    printf("<path d=\"M%zu %zu C%zu %zu %zu %zu %zu %zu\" marker-end=\"url(#tip)\"/>\n", x1, y1,
           middle, y1, middle, y2, x2, y2);
}

static void print_svg(const struct graph *g)
{
    size_t width = 2 * MARGIN + g->level_count * (BOX_WIDTH + GAP_X);
    size_t height = 2 * MARGIN + g->row_count * (BOX_HEIGHT + GAP_Y);
    printf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%zu\" viewBox=\"0 0 "
           "%zu %zu\">\n",
           width, height, width, height);
    fputs("<style>rect{fill:#f6f8fa;stroke:#57606a}path{fill:none;stroke:#57606a}"
          "text{font:12px sans-serif;fill:#57606a}.name{font-weight:bold;fill:#1f2328}</style>\n"
          "<defs><marker id=\"tip\" markerWidth=\"8\" markerHeight=\"8\" refX=\"8\" refY=\"4\" "
          "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" style=\"fill:#57606a\"/></marker></defs>\n",
          stdout);
    for (size_t i = 0; i < g->count; i++) {
        size_t at = 0, need;
        while ((need = next_need(g, i, &at)) < g->count)
            print_arrow(&g->nodes[need], &g->nodes[i]);
    }
    for (size_t i = 0; i < g->count; i++)
        print_box(&g->nodes[i]);
    fputs("</svg>\n", stdout);
}

enum cli_exit workflow_graph(struct session *s)
{
    struct graph g;
    session_path(s, WORKFLOWS_PATH, s->args[0], "");
    session_query(s, "version", options_text(&s->opt, "version"));
    enum cli_exit rc = session_call(s, "GET", NULL);
    if (rc != CLI_DONE || s->json)
        return rc;
    if (!graph_make(&g, json_object_get(s->answer, "definition"))) {
        fprintf(stderr, "pawl: Out of memory\n");
        return CLI_REFUSED;
    }
    if (options_has(&s->opt, "svg"))
        print_svg(&g);
    else
        print_text(&g);
    free(g.nodes);
    return CLI_DONE;
}
