/* Fibers: contexts with stacks of their own, in one thread. */
#define _GNU_SOURCE
#include "sim/fibers.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

enum {
    FIBERS_MAX = 256,
    GROUPS_MAX = 64,
    STACK_BYTES = 512 * 1024,
    TURNS_MAX = 1000 * 1000,
};

enum state {
    FIBER_FREE,
    FIBER_READY,
    FIBER_LOCKS, /* waits for a mutex */
    FIBER_WAITS, /* for a condition, until a time */
    FIBER_JOINS, /* waits for the end of another */
    FIBER_POLLS, /* waits for a descriptor, until a time */
    FIBER_IDLES, /* runs when nobody else can */
    FIBER_OVER,
};

struct fiber {
    enum state state;
    const void *on; /* the mutex, the condition or the fiber that it waits for */
    int64_t until_ns;
    bool timed_out;
    int group;
    bool (*ready)(void *ctx); /* of one that waits for a descriptor */
    void *ready_ctx;
    ucontext_t context;
    char *stack; /* NULL: the caller's own */
    void *(*run)(void *);
    void *arg;
    void *fake_stack; /* the sanitizer's */
};

static struct fiber fibers[FIBERS_MAX];
static int used;    /* places from here on were never used */
static int current; /* 0 is the simulator itself */
static bool paused[GROUPS_MAX];
static int64_t now_ns;
static uint64_t yield_in;
static uint64_t switches;
static uint64_t turns; /* since the simulator has let the others run */
static fibers_draw *draw_fn;
static void *draw_ctx;
#if defined(__SANITIZE_ADDRESS__)
static const void *main_stack;
static size_t main_stack_size;
#endif

int __real_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);

int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);
int __wrap_pthread_join(pthread_t thread, void **ret);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_signal(pthread_cond_t *cond);
int __wrap_pthread_cond_broadcast(pthread_cond_t *cond);
struct timespec __wrap_env_wait_until(int64_t ms);

void fibers_begin(int64_t now, uint64_t yield_one_in, fibers_draw *draw, void *ctx)
{
    assert(current == 0 && fibers_count() == 0);
    fibers[0].state = FIBER_READY;
    used = 1;
    now_ns = now;
    yield_in = yield_one_in;
    draw_fn = draw;
    draw_ctx = ctx;
}

void fibers_yield_one_in(uint64_t locks)
{
    yield_in = locks;
}

int64_t fibers_now_ns(void)
{
    return now_ns;
}

void fibers_pass_ns(int64_t ns)
{
    assert(ns >= 0);
    now_ns += ns;
}

int fibers_count(void)
{
    int count = 0;
    for (int i = 1; i < used; i++)
        count += fibers[i].state != FIBER_FREE;
    return count;
}

static bool sleeps(const struct fiber *f)
{
    return f->state == FIBER_WAITS || f->state == FIBER_POLLS;
}

/* What it polls for is there. */
static bool sees(const struct fiber *f)
{
    return f->state == FIBER_POLLS && f->ready(f->ready_ctx);
}

int64_t fibers_next_wake_ns(void)
{
    int64_t next = INT64_MAX;
    for (int i = 1; i < used; i++) {
        if (paused[fibers[i].group])
            continue;
        if (sleeps(&fibers[i]) && fibers[i].until_ns < next)
            next = fibers[i].until_ns;
        if (fibers[i].state == FIBER_READY || sees(&fibers[i]))
            return now_ns;
    }
    return next;
}

int64_t fibers_sleepers_wake_ns(void)
{
    int64_t next = INT64_MAX;
    for (int i = 1; i < used; i++) {
        if (!paused[fibers[i].group] && fibers[i].state == FIBER_WAITS && fibers[i].on == NULL &&
            fibers[i].until_ns < next)
            next = fibers[i].until_ns;
    }
    return next;
}

uint64_t fibers_switches(void)
{
    return switches;
}

/* --- switching --- */

#if defined(__SANITIZE_ADDRESS__)
/* The sanitizer has to know which stack is in use. */
static void leave_stack(struct fiber *from, const struct fiber *to)
{
    __sanitizer_start_switch_fiber(from->state == FIBER_OVER ? NULL : &from->fake_stack,
                                   to->stack != NULL ? to->stack : main_stack,
                                   to->stack != NULL ? STACK_BYTES : main_stack_size);
}

static void enter_stack(struct fiber *self)
{
    const void *from = NULL;
    size_t size = 0;
    __sanitizer_finish_switch_fiber(self->fake_stack, &from, &size);
    if (main_stack == NULL && self->stack != NULL) { /* the first switch is from there */
        main_stack = from;
        main_stack_size = size;
    }
}
#else
static void leave_stack(struct fiber *from, const struct fiber *to)
{
    (void)from;
    (void)to;
}

static void enter_stack(struct fiber *self)
{
    (void)self;
}
#endif

static void switch_to(int next)
{
    if (next == current)
        return;
    int from = current;
    current = next;
    switches++;
    leave_stack(&fibers[from], &fibers[next]);
    if (swapcontext(&fibers[from].context, &fibers[next].context) != 0)
        abort();
    enter_stack(&fibers[from]);
}

/* Time stands still while fibers run: one that never waits would run for ever. */
static void count_turns(void)
{
    if (++turns < TURNS_MAX)
        return;
    (void)fprintf(stderr, "sim: a thread is busy without end\n");
    abort();
}

static void wake_sleepers(void)
{
    for (int i = 0; i < used; i++) {
        if (paused[fibers[i].group])
            continue;
        if (sees(&fibers[i])) {
            fibers[i].state = FIBER_READY;
        } else if (sleeps(&fibers[i]) && fibers[i].until_ns <= now_ns) {
            fibers[i].state = FIBER_READY;
            fibers[i].timed_out = true;
        }
    }
}

/* Somebody who can run, by lot; -1: nobody. */
static int pick(void)
{
    int ready[FIBERS_MAX];
    uint64_t count = 0;
    wake_sleepers();
    for (int i = 0; i < used; i++) {
        if (fibers[i].state == FIBER_READY && !paused[fibers[i].group])
            ready[count++] = i;
    }
    return count == 0 ? -1 : ready[count == 1 ? 0 : draw_fn(draw_ctx, count)];
}

/* Lets others run until the current fiber is ready again. */
static void give_way(void)
{
    count_turns();
    int next = pick();
    if (next < 0 && fibers[0].state == FIBER_IDLES) {
        fibers[0].state = FIBER_READY;
        next = 0;
    }
    /* The simulator itself waits, as at the end of a server: time has to pass. */
    if (next < 0 && fibers_next_wake_ns() != INT64_MAX) {
        now_ns = fibers_next_wake_ns();
        next = pick();
    }
    if (next < 0) {
        (void)fprintf(stderr, "sim: every thread waits for another: a deadlock\n");
        abort();
    }
    switch_to(next);
}

static void maybe_give_way(void)
{
    if (yield_in > 0 && draw_fn(draw_ctx, yield_in) == 0)
        give_way();
}

void fibers_run(void)
{
    assert(current == 0);
    turns = 0;
    fibers[0].state = FIBER_IDLES;
    give_way();
    assert(fibers[0].state == FIBER_READY);
}

static void wait_on(enum state state, const void *on, int64_t until_ns)
{
    struct fiber *self = &fibers[current];
    self->state = state;
    self->on = on;
    self->until_ns = until_ns;
    self->timed_out = false;
    give_way();
}

void fibers_sleep_ns(int64_t ns)
{
    if (current == 0) { /* without the simulator nothing goes on but what is ready */
        now_ns += ns;
        give_way();
        return;
    }
    wait_on(FIBER_WAITS, NULL, now_ns + ns);
}

static const char NAP; /* what those wait for that nothing but time wakes */

void fibers_nap_ns(int64_t ns)
{
    if (current == 0)
        fibers_sleep_ns(ns);
    else
        wait_on(FIBER_WAITS, &NAP, now_ns + ns);
}

bool fibers_poll(bool (*ready)(void *ctx), void *ctx, int64_t ns)
{
    struct fiber *self = &fibers[current];
    if (ready(ctx))
        return true;
    if (current == 0 || ns == 0)
        return false;
    self->ready = ready;
    self->ready_ctx = ctx;
    wait_on(FIBER_POLLS, NULL, ns < 0 ? INT64_MAX : now_ns + ns);
    return !self->timed_out;
}

/* --- groups --- */

void fibers_enter_group(int group)
{
    assert(current == 0 && group >= 0 && group < GROUPS_MAX);
    fibers[0].group = group;
}

bool fibers_is_simulator(void)
{
    return current == 0;
}

bool fibers_simulator_rests(void)
{
    return fibers[0].state == FIBER_IDLES;
}

int fibers_group(void)
{
    return fibers[current].group;
}

void fibers_pause(int group, bool pause)
{
    assert(group > 0 && group < GROUPS_MAX);
    paused[group] = pause;
}

bool fibers_is_paused(int group)
{
    return paused[group];
}

void fibers_stand_still(void)
{
    if (current != 0 && paused[fibers[current].group])
        give_way();
}

/* Wakes those that wait for it: one, by lot, or all. */
static void wake(enum state state, const void *on, bool all)
{
    int found[FIBERS_MAX];
    uint64_t count = 0;
    for (int i = 0; i < used; i++) {
        if (fibers[i].state == state && fibers[i].on == on)
            found[count++] = i;
    }
    if (count == 0)
        return;
    /* Without interleaving always the same one: two readers with warm caches cost more time. */
    uint64_t chosen = count == 1 || all || yield_in == 0 ? 0 : draw_fn(draw_ctx, count);
    for (uint64_t i = 0; i < count; i++) {
        if (all || i == chosen)
            fibers[found[i]].state = FIBER_READY;
    }
}

/* --- threads --- */

static void fiber_main(void)
{
    struct fiber *self = &fibers[current];
    enter_stack(self);
    (void)self->run(self->arg);
    self->state = FIBER_OVER;
    wake(FIBER_JOINS, self, true);
    give_way();
    abort();
}

static char *new_stack(void)
{
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, 4096, PROT_NONE) != 0)
        abort();
    return stack;
}

static int free_place(void)
{
    int i = 1;
    while (i < used && fibers[i].state != FIBER_FREE)
        i++;
    return i;
}

static bool prepare(struct fiber *f)
{
    if (f->stack == NULL)
        f->stack = new_stack(); /* kept for the next fiber in this place */
    if (getcontext(&f->context) != 0)
        return false;
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = NULL;
    makecontext(&f->context, fiber_main, 0);
    return true;
}

int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg)
{
    (void)attr;
    int i = free_place();
    if (i == FIBERS_MAX || !prepare(&fibers[i]))
        return EAGAIN;
    used = i >= used ? i + 1 : used;
    fibers[i].group = fibers[current].group;
    fibers[i].run = run;
    fibers[i].arg = arg;
    fibers[i].fake_stack = NULL;
    fibers[i].state = FIBER_READY;
    *ret = (pthread_t)i;
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **ret)
{
    struct fiber *f = &fibers[thread];
    assert(thread > 0 && thread < FIBERS_MAX && f->state != FIBER_FREE);
    while (f->state != FIBER_OVER)
        wait_on(FIBER_JOINS, f, INT64_MAX);
    f->state = FIBER_FREE;
    if (ret != NULL)
        *ret = NULL;
    return 0;
}

/* --- locks --- */

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    maybe_give_way();
    while (__real_pthread_mutex_trylock(mutex) == EBUSY)
        wait_on(FIBER_LOCKS, mutex, INT64_MAX);
    return 0;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    maybe_give_way();
    return __real_pthread_mutex_trylock(mutex);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    int rc = __real_pthread_mutex_unlock(mutex);
    wake(FIBER_LOCKS, mutex, true);
    maybe_give_way();
    return rc;
}

static void lock_again(pthread_mutex_t *mutex)
{
    while (__real_pthread_mutex_trylock(mutex) == EBUSY)
        wait_on(FIBER_LOCKS, mutex, INT64_MAX);
}

static void unlock_for_wait(pthread_mutex_t *mutex)
{
    int rc = __real_pthread_mutex_unlock(mutex);
    assert(rc == 0);
    wake(FIBER_LOCKS, mutex, true);
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    unlock_for_wait(mutex);
    wait_on(FIBER_WAITS, cond, INT64_MAX);
    lock_again(mutex);
    return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    int64_t ns = (int64_t)until->tv_sec * 1000000000 + until->tv_nsec;
    unlock_for_wait(mutex);
    int self = current;
    wait_on(FIBER_WAITS, cond, ns);
    bool timed_out = fibers[self].timed_out;
    lock_again(mutex);
    return timed_out ? ETIMEDOUT : 0;
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
    wake(FIBER_WAITS, cond, false);
    return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
    wake(FIBER_WAITS, cond, true);
    return 0;
}

struct timespec __wrap_env_wait_until(int64_t ms)
{
    int64_t ns = now_ns + ms * 1000000;
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}
