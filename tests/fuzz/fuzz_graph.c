/* Any graph as the needs of a definition: it is accepted exactly when no step waits for itself,
 * judged here by another method, and then runs to its end.
 * The input: the number of steps, then pairs of bytes, each an edge. A high bit makes a sleep. */
#include "domain/workflow/definition.h"
#include "drive.h"

enum { NODES_MAX = 32 };

struct graph {
    size_t count;
    uint32_t needs[NODES_MAX]; /* bit n: needs step n */
    bool sleeps[NODES_MAX];
};

static void read_graph(struct graph *g, const uint8_t *data, size_t size)
{
    *g = (struct graph){.count = 1 + data[0] % NODES_MAX};
    for (size_t i = 1; i + 1 < size; i += 2) {
        size_t step = (data[i] & 0x7F) % g->count;
        g->sleeps[step] |= (data[i] & 0x80) != 0;
        g->needs[step] |= 1u << (data[i + 1] % g->count);
    }
}

/* Warshall's closure: does any step come after itself? */
static bool has_cycle(const struct graph *g)
{
    uint32_t reach[NODES_MAX];
    memcpy(reach, g->needs, sizeof(reach));
    for (size_t via = 0; via < g->count; via++) {
        for (size_t from = 0; from < g->count; from++)
            reach[from] |= reach[from] >> via & 1 ? reach[via] : 0;
    }
    bool found = false;
    for (size_t i = 0; i < g->count; i++)
        found |= reach[i] >> i & 1;
    return found;
}

static struct json *definition_of(const struct graph *g)
{
    json_t *steps = json_array();
    for (size_t i = 0; i < g->count; i++) {
        json_t *needs = json_array();
        for (size_t n = 0; n < g->count; n++) {
            if (g->needs[i] >> n & 1)
                (void)json_array_append_new(needs, json_sprintf("step-%zu", n));
        }
        json_t *step = g->sleeps[i] ? json_pack("{s:s,s:i}", "type", "sleep", "duration_ms", 1)
                                    : json_pack("{s:s,s:s}", "type", "task", "handler", "h");
        (void)json_object_set_new(step, "name", json_sprintf("step-%zu", i));
        (void)json_object_set_new(step, "needs", needs);
        (void)json_array_append_new(steps, step);
    }
    return fuzz_value_of(json_pack("{s:o}", "steps", steps));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct graph g;
    read_graph(&g, data, size);
    struct problem p;
    problem_init(&p);
    struct definition *def = NULL;
    struct json *source = definition_of(&g);
    enum err e = definition_parse(source, STR("fuzz"), &p, &def);
    assert(e == (has_cycle(&g) ? ERR_DEFINITION_INVALID : ERR_OK));
    if (e == ERR_OK)
        (void)drive_to_end(def, str_hash(fuzz_text(data, size)), 0);
    else
        assert(fuzz_check_faults(buf_str(&p.faults)) > 0);
    definition_free(def);
    json_free(source);
    problem_release(&p);
    return 0;
}
