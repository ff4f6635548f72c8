/* The writer, on the thread of the loop. */
#include "inline_threads.h"

#include "base/limits.h"
#include "core/usecase/use_cases.h"
#include "runtime/writer.h"

struct writer {
    struct writer_config config;
    struct core *core;
    struct op *done_first, **done_last;
    struct effect_parcel *parcels, **parcels_last;
    bool log_full;
};

static struct writer *only;

/* --- returning ops --- */

static void publish(struct writer *w, struct op *first, struct effect_parcel *parcels)
{
    *w->done_last = first;
    while (*w->done_last != NULL)
        w->done_last = &(*w->done_last)->next;
    *w->parcels_last = parcels;
    while (*w->parcels_last != NULL)
        w->parcels_last = &(*w->parcels_last)->next;
    if (first != NULL || parcels != NULL)
        wake_loop(w->config.receivers.event_fd);
}

static struct effect_parcel *hand_out_effects(struct writer *w)
{
    enum err e = db_sync(w->config.core.db);
    assert(e == ERR_OK);
    struct effect_parcel *parcel = effects_take(core_effects(w->core));
    return parcel != NULL ? publish_committed(&w->config.receivers, parcel) : NULL;
}

static struct core_call call_now(const struct writer *w)
{
    const struct env *env = w->config.core.meter;
    struct core_call call = {
        .now_us = env->now_us(env->ctx), .mono_ms = env_mono_ms(env), .log_full = w->log_full};
    env_random(env, &call.seed, sizeof(call.seed));
    return call;
}

/* --- ops --- */

static enum err not_in_a_batch(struct op *op, struct tx *tx)
{
    (void)tx;
    return problem_set(&op->problem, ERR_INTERNAL, "A backup cannot be part of a batch");
}

const struct use_case UC_BACKUP = {.name = "backup", .write = not_in_a_batch};

static void back_up(struct writer *w, struct op *op)
{
    struct db_backup *backup;
    char path[DB_PATH_MAX];
    op_clear_result(op);
    op->err = db_backup_begin(w->config.core.db, &op->problem, &backup);
    if (op->err == ERR_OK) {
        for (bool done = false; !done && op->err == ERR_OK;)
            op->err = db_backup_step(backup, &done);
        enum err ended = db_backup_end(backup, path);
        op->err = op->err == ERR_OK ? ended : op->err;
        assert(op->err == ERR_OK);
        buf_put(&op->answer.body, str_of(path));
    }
    publish(w, op, NULL);
}

void writer_push(struct writer *w, struct op *first)
{
    struct op **at = &first;
    while (*at != NULL) {
        struct op *op = *at;
        if (op->use_case != &UC_BACKUP) {
            at = &op->next;
            continue;
        }
        *at = op->next;
        op->next = NULL;
        back_up(w, op);
    }
    if (first == NULL)
        return;
    struct core_call call = call_now(w);
    (void)core_apply(w->core, &call, first);
    publish(w, first, hand_out_effects(w));
}

bool writer_try_inline(struct writer *w, struct op *op)
{
    struct core_call call = call_now(w);
    (void)core_apply(w->core, &call, op);
    publish(w, NULL, hand_out_effects(w));
    return true;
}

void writer_collect(struct writer *w, struct op **ret_ops, struct effect_parcel **ret_parcels)
{
    *ret_ops = w->done_first;
    *ret_parcels = w->parcels;
    w->done_first = NULL;
    w->done_last = &w->done_first;
    w->parcels = NULL;
    w->parcels_last = &w->parcels;
}

/* --- its own work --- */

void inline_writer_background(void)
{
    struct core_call call = call_now(only);
    (void)core_background(only->core, &call);
    publish(only, NULL, hand_out_effects(only));
    enum err e = db_housekeep(only->config.core.db);
    only->log_full = e == ERR_STORE_BUSY;
    core_note_failure(only->core, e);
}

int64_t inline_writer_wait_ms(void)
{
    const struct env *env = only->config.core.meter;
    if (core_wants_background(only->core))
        return 0;
    return core_background_wait_ms(only->core, env_now_ms(env), env_mono_ms(env));
}

struct db *inline_writer_db(void)
{
    return only->config.core.db;
}

struct idem_keys *writer_keys(struct writer *w)
{
    return core_keys(w->core);
}

/* --- figures --- */

bool writer_failed(struct writer *w)
{
    return core_failed(w->core);
}

bool writer_log_full(struct writer *w)
{
    return w->log_full;
}

int64_t writer_log_bytes(struct writer *w)
{
    return db_log_bytes(w->config.core.db);
}

/* --- life --- */

enum err writer_start(const struct writer_config *config, struct problem *p, struct writer **ret)
{
    struct writer *w = calloc(1, sizeof(*w));
    assert(w != NULL && only == NULL);
    w->config = *config;
    w->done_last = &w->done_first;
    w->parcels_last = &w->parcels;
    struct core_call call = call_now(w);
    enum err e = core_open(&config->core, &call, p, &w->core);
    if (e != ERR_OK) {
        free(w);
        return e;
    }
    *ret = only = w;
    return ERR_OK;
}

void writer_stop(struct writer *w)
{
    (void)w;
}

void writer_free(struct writer *w)
{
    if (w == NULL)
        return;
    while (w->parcels != NULL) {
        struct effect_parcel *old = w->parcels;
        w->parcels = old->next;
        effect_parcel_free(old);
    }
    core_close(w->core);
    only = NULL;
    free(w);
}
