/* An engine that may call loopback, and a receiver there. The clock is the test's, the network is
 * not. */
#ifndef PAWL_TESTS_ENGINE_CALLING_FIXTURE_H
#define PAWL_TESTS_ENGINE_CALLING_FIXTURE_H

#include "engine/fixture.h"

#include "bus/receiver.h"

struct calling_fixture {
    struct fixture *fixture;
    struct receiver *receiver;
};

/* The engine again, on the same file, this time allowed to call loopback. `collector` gets its
 * spans; ptr NULL: they are not exported. */
static inline void open_engine_with(struct fixture *fixture, struct str collector)
{
    char url[160];
    test_store_url(fixture->file.text, url, sizeof(url));
    fixture->metrics = metrics_new();
    struct engine_config config = {.store_url = str_of(url),
                                   .root_key = STR(""),
                                   .env = &fixture->env,
                                   .metrics = fixture->metrics,
                                   .otlp_url = collector,
                                   .reach = REACH_ALL};
    struct problem p;
    problem_init(&p);
    assert_int_equal(engine_open(&config, &p, &fixture->engine), ERR_OK);
    problem_release(&p);
}

static inline void open_engine(struct fixture *fixture)
{
    open_engine_with(fixture, STR_NONE);
}

static inline int calling_setup(void **state)
{
    struct calling_fixture *c = calloc(1, sizeof(*c));
    assert_non_null(c);
    void *fixture = NULL;
    (void)fixture_setup(&fixture);
    c->fixture = fixture;
    fixture_stop(c->fixture);
    open_engine(c->fixture);
    c->receiver = receiver_start();
    *state = c;
    return 0;
}

static inline int calling_teardown(void **state)
{
    struct calling_fixture *c = *state;
    receiver_stop(c->receiver); /* which ends what still waits */
    void *fixture = c->fixture;
    (void)fixture_teardown(&fixture);
    free(c);
    return 0;
}

#define calling_test(f) cmocka_unit_test_setup_teardown(f, calling_setup, calling_teardown)

#endif
