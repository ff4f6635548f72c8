/* The thread that waits for an OpenID provider. */
#include "outbound/oidc.h"

#include "base/limits.h"
#include "outbound/form.h"
#include "outbound/oidc_provider.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

struct oidc {
    struct oidc_config config;
    struct oidc_provider provider; /* the thread's */
    size_t under_way;              /* the loop's */
    pthread_t thread;
    bool thread_runs;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t more;
    struct oidc_question *first, **last;
    struct oidc_question *done_first, **done_last;
    bool draining;
    bool stopping;
};

/* --- the thread --- */

/* The next question; NULL: the thread ends. *ret_draining: it is not to be asked any more. */
static struct oidc_question *take(struct oidc *o, bool *ret_draining)
{
    pthread_mutex_lock(&o->lock);
    while (o->first == NULL && !o->stopping)
        pthread_cond_wait(&o->more, &o->lock);
    struct oidc_question *q = o->first;
    if (q != NULL) {
        o->first = q->next;
        if (o->first == NULL)
            o->last = &o->first;
    }
    *ret_draining = o->draining;
    pthread_mutex_unlock(&o->lock);
    return q;
}

static void give_back(struct oidc *o, struct oidc_question *q)
{
    uint64_t one = 1;
    q->next = NULL;
    pthread_mutex_lock(&o->lock);
    *o->done_last = q;
    o->done_last = &q->next;
    pthread_mutex_unlock(&o->lock);
    ssize_t n = write(o->config.event_fd, &one, sizeof(one));
    assert(n == sizeof(one) || errno == EAGAIN); /* full: it is readable already */
}

static void *oidc_main(void *ctx)
{
    struct oidc *o = ctx;
    struct oidc_question *q;
    bool draining = false;
    while ((q = take(o, &draining)) != NULL) {
        if (draining)
            q->err = problem_set(&q->problem, ERR_DRAINING, "The server is shutting down");
        else
            oidc_provider_answer(&o->provider, q);
        give_back(o, q);
    }
    return NULL;
}

static bool start_thread(struct oidc *o)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return false;
    o->thread_runs = pthread_create(&o->thread, NULL, oidc_main, o) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return o->thread_runs;
}

/* --- the loop --- */

struct oidc *oidc_new(const struct oidc_config *config)
{
    struct oidc *o = calloc(1, sizeof(*o));
    if (o == NULL)
        return NULL;
    o->config = *config;
    o->provider.config = &o->config;
    o->last = &o->first;
    o->done_last = &o->done_first;
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->more, NULL);
    return o;
}

void oidc_free(struct oidc *o)
{
    if (o == NULL)
        return;
    pthread_mutex_lock(&o->lock);
    o->stopping = true;
    pthread_cond_signal(&o->more);
    pthread_mutex_unlock(&o->lock);
    if (o->thread_runs)
        pthread_join(o->thread, NULL);
    oidc_provider_release(&o->provider);
    pthread_mutex_destroy(&o->lock);
    pthread_cond_destroy(&o->more);
    free(o);
}

bool oidc_submit(struct oidc *o, struct oidc_question *q)
{
    if (o->under_way == OIDC_WAITING_MAX || (!o->thread_runs && !start_thread(o)))
        return false;
    o->under_way++;
    q->next = NULL;
    pthread_mutex_lock(&o->lock);
    *o->last = q;
    o->last = &q->next;
    pthread_cond_signal(&o->more);
    pthread_mutex_unlock(&o->lock);
    return true;
}

void oidc_collect(struct oidc *o)
{
    if (o == NULL)
        return;
    pthread_mutex_lock(&o->lock);
    struct oidc_question *q = o->done_first;
    o->done_first = NULL;
    o->done_last = &o->done_first;
    pthread_mutex_unlock(&o->lock);
    while (q != NULL) {
        struct oidc_question *next = q->next;
        o->under_way--;
        q->done(q);
        q = next;
    }
}

void oidc_drain(struct oidc *o)
{
    if (o == NULL)
        return;
    pthread_mutex_lock(&o->lock);
    o->draining = true;
    pthread_mutex_unlock(&o->lock);
}

bool oidc_idle(const struct oidc *o)
{
    return o == NULL || o->under_way == 0;
}

void oidc_put_request(const struct oidc *o, struct str endpoint, const struct oidc_words *words,
                      struct buf *out)
{
    const struct {
        const char *name;
        struct str value;
    } FIELDS[] = {
        {"response_type", STR("code")},
        {"client_id", o->config.client_id},
        {"redirect_uri", o->config.redirect_uri},
        {"scope", o->config.scope},
        {"state", str_of(words->state)},
        {"nonce", str_of(words->nonce)},
        {"code_challenge", str_of(words->challenge)},
        {"code_challenge_method", STR("S256")},
    };
    bool has_query = memchr(endpoint.ptr, '?', endpoint.len) != NULL;
    buf_put(out, endpoint);
    for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
        buf_put_char(out, i > 0 || has_query ? '&' : '?');
        form_put_field(out, FIELDS[i].name, FIELDS[i].value);
    }
}

const struct oidc_config *oidc_config_of(const struct oidc *o)
{
    return &o->config;
}
