/* A gate outside the store that lets in, makes wait or does not answer, as the test says. It is
 * asked on the test's own thread, and answers at the next round of the loop. */
#ifndef PAWL_TESTS_FAKE_GATE_H
#define PAWL_TESTS_FAKE_GATE_H

#include "engine/fixture.h"

#include "gate/gate.h"

#include <unistd.h>

enum { FAKE_VISITS_MAX = 256, FOR_EVER = 1000000 };

struct fake_gate {
    struct gate gate; /* first, so that the engine's pointer finds all of it */
    struct fixture *fixture;
    int event_fd;
    struct gate_request *pending, *answered;

    int busy_left;     /* so many are told to come again */
    int reserved_left; /* so many find their key reserved */
    bool down;
    bool leaves_down; /* nothing can be given back */
    bool exclusive;   /* a lock indeed: busy while somebody is inside */
    bool holds;       /* answers nobody until fake_gate_release() */
    struct gate_found listed[4];
    size_t listed_count;

    size_t asked;
    int64_t asked_at_ms[FAKE_VISITS_MAX];
    int64_t lock_ttl_ms; /* of the last one who asked */
    int64_t key_ttl_ms;
    size_t entered;
    size_t left;     /* those who had entered */
    size_t withdrew; /* those who gave back without having entered */
    struct fake_visit {
        bool inside;
        char tenant[64];
        char key[64];
        char token[GATE_TOKEN_MAX + 1];
        int64_t runs_before;
        int64_t runs_after; /* what was on disk when it left */
    } visits[FAKE_VISITS_MAX];
};

static inline void fake_put(char out[static 64], struct str text)
{
    (void)snprintf(out, 64, "%.*s", STR_ARG(text));
}

static inline enum gate_answer fake_decide(struct fake_gate *f, const struct gate_request *r)
{
    if (f->down)
        return GATE_DOWN;
    if (f->reserved_left > 0) {
        f->reserved_left--;
        return GATE_RESERVED;
    }
    if (f->busy_left > 0) {
        f->busy_left--;
        return GATE_BUSY;
    }
    for (size_t i = 0; i < f->entered; i++) {
        if (f->exclusive && f->visits[i].inside && str_is(r->tenant, f->visits[i].tenant))
            return GATE_BUSY;
    }
    return GATE_DONE;
}

static inline void fake_enter(struct fake_gate *f, struct gate_request *r)
{
    assert_true(f->asked < FAKE_VISITS_MAX && f->entered < FAKE_VISITS_MAX);
    f->asked_at_ms[f->asked++] = fixture_mono_ns(f->fixture) / 1000000;
    f->lock_ttl_ms = r->lock_ttl_ms;
    f->key_ttl_ms = r->key_ttl_ms;
    r->answer = fake_decide(f, r);
    if (r->answer != GATE_DONE)
        return;
    struct fake_visit *visit = &f->visits[f->entered++];
    *visit = (struct fake_visit){.inside = true, .runs_after = -1};
    visit->runs_before = in_file(f->fixture, "SELECT count(*) FROM runs");
    fake_put(visit->tenant, r->tenant);
    fake_put(visit->key, r->key);
    memcpy(visit->token, r->token, sizeof(visit->token));
}

/* Nobody leaves twice. */
static inline void fake_leave(struct fake_gate *f, struct gate_request *r)
{
    r->answer = f->leaves_down ? GATE_DOWN : GATE_DONE;
    for (size_t i = 0; i < f->entered; i++) {
        struct fake_visit *visit = &f->visits[i];
        if (strcmp(visit->token, r->token) != 0)
            continue;
        assert_true(visit->inside);
        if (f->leaves_down)
            return;
        visit->inside = false;
        visit->runs_after = in_file(f->fixture, "SELECT count(*) FROM runs");
        f->left++;
        return;
    }
    f->withdrew++;
}

static inline void fake_list(struct fake_gate *f, struct gate_list *list)
{
    list->request.answer = f->down ? GATE_DOWN : GATE_DONE;
    list->count = f->listed_count;
    memcpy(list->found, f->listed, sizeof(f->listed));
}

static inline void fake_answer(struct fake_gate *f, struct gate_request *r)
{
    uint64_t one = 1;
    if (r->ask == GATE_ENTER)
        fake_enter(f, r);
    else if (r->ask == GATE_LEAVE)
        fake_leave(f, r);
    else
        fake_list(f, CONTAINER_OF(r, struct gate_list, request));
    r->next = f->answered;
    f->answered = r;
    assert_int_equal(write(f->event_fd, &one, sizeof(one)), sizeof(one));
}

static inline enum err fake_start(struct gate *gate, int event_fd)
{
    ((struct fake_gate *)gate)->event_fd = event_fd;
    return ERR_OK;
}

static inline void fake_submit(struct gate *gate, struct gate_request *r)
{
    struct fake_gate *f = (struct fake_gate *)gate;
    if (!f->holds || r->ask == GATE_LIST) {
        fake_answer(f, r);
        return;
    }
    r->next = f->pending;
    f->pending = r;
}

static inline void fake_gate_release(struct fake_gate *f)
{
    f->holds = false;
    while (f->pending != NULL) {
        struct gate_request *r = f->pending;
        f->pending = r->next;
        fake_answer(f, r);
    }
}

static inline struct gate_request *fake_collect(struct gate *gate)
{
    struct fake_gate *f = (struct fake_gate *)gate;
    struct gate_request *all = f->answered;
    f->answered = NULL;
    return all;
}

static inline void fake_state(struct gate *gate, struct gate_state *ret)
{
    *ret = (struct gate_state){.ok = !((struct fake_gate *)gate)->down};
}

static inline void fake_stop(struct gate *gate)
{
    assert_null(((struct fake_gate *)gate)->pending);
}

/* The fixture again, with this gate. */
static inline struct fake_gate *fake_gate_begin(struct fixture *fixture)
{
    static struct fake_gate f; /* outlives the engine that knows it */
    fixture_stop(fixture);
    f = (struct fake_gate){.gate = {.name = "fake",
                                    .start = fake_start,
                                    .submit = fake_submit,
                                    .collect = fake_collect,
                                    .state = fake_state,
                                    .stop = fake_stop},
                           .fixture = fixture};
    fixture->gate = &f.gate;
    fixture_start(fixture, 0);
    return &f;
}

#endif
