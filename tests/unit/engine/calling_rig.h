/* An engine that may call loopback, and a receiver there. The clock is the test's, the network is
 * not. */
#ifndef PAWL_TESTS_ENGINE_CALLING_RIG_H
#define PAWL_TESTS_ENGINE_CALLING_RIG_H

#include "engine/rig.h"

#include "bus/receiver.h"

struct calling_rig {
    struct rig *rig;
    struct receiver *receiver;
};

/* The engine again, on the same file, this time allowed to call loopback. */
static inline void open_engine(struct rig *rig)
{
    char url[160];
    test_store_url(rig->file.text, url, sizeof(url));
    rig->metrics = metrics_new();
    struct engine_config config = {.store_url = str_of(url),
                                   .root_key = STR(""),
                                   .env = &rig->env,
                                   .metrics = rig->metrics,
                                   .reach = REACH_ALL};
    struct problem p;
    problem_init(&p);
    assert_int_equal(engine_open(&config, &p, &rig->engine), ERR_OK);
    problem_release(&p);
}

static inline int calling_setup(void **state)
{
    struct calling_rig *c = calloc(1, sizeof(*c));
    assert_non_null(c);
    void *rig = NULL;
    (void)rig_setup(&rig);
    c->rig = rig;
    rig_stop(c->rig);
    open_engine(c->rig);
    c->receiver = receiver_start();
    *state = c;
    return 0;
}

static inline int calling_teardown(void **state)
{
    struct calling_rig *c = *state;
    receiver_stop(c->receiver); /* which ends what still waits */
    void *rig = c->rig;
    (void)rig_teardown(&rig);
    free(c);
    return 0;
}

#define calling_test(f) cmocka_unit_test_setup_teardown(f, calling_setup, calling_teardown)

#endif
