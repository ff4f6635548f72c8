/* Large bodies are read one at a time, tenants by turns, within bounds, and none is lost. */
#include "base/support.h"

#include "base/limits.h"
#include "runtime/body_thread.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { TASKS_MAX = 16 };

/* Holds the thread up until the test has pushed all that it wants to. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static struct body_thread *thread;
static int event_fd;
static char order[TASKS_MAX + 1];
static size_t ran;

struct task {
    struct body_task task;
    char letter;
};

static void note(struct body_task *task)
{
    const struct task *t = task->owner;
    order[ran++] = t->letter;
}

static void wait_at_gate(struct body_task *task)
{
    (void)task;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
}

static void done(struct body_task *task)
{
    (void)task;
}

static struct body_task closed_gate;

static int begin(void **state)
{
    (void)state;
    struct problem p;
    problem_init(&p);
    event_fd = eventfd(0, EFD_NONBLOCK);
    ran = 0;
    memset(order, 0, sizeof(order));
    assert_int_equal(body_thread_start(event_fd, &p, &thread), ERR_OK);
    problem_release(&p);
    pthread_mutex_lock(&gate);
    closed_gate = (struct body_task){.run = wait_at_gate, .done = done, .tenant = STR("gate")};
    assert_true(body_thread_push(thread, &closed_gate));
    return 0;
}

static int end(void **state)
{
    (void)state;
    close(event_fd);
    return 0;
}

static size_t collect_one_or_more(void)
{
    struct pollfd at = {event_fd, POLLIN, 0};
    assert_true(poll(&at, 1, -1) == 1);
    uint64_t ignored;
    assert_true(read(event_fd, &ignored, sizeof(ignored)) == sizeof(ignored));
    size_t n = 0;
    for (const struct body_task *t = body_thread_collect(thread); t != NULL; t = t->next)
        n++;
    return n;
}

static void open_gate_and_collect(size_t tasks)
{
    pthread_mutex_unlock(&gate);
    for (size_t n = 0; n < tasks + 1;)
        n += collect_one_or_more();
}

static void push(struct task *t, const char *tenant, size_t bytes)
{
    t->task = (struct body_task){
        .run = note, .done = done, .tenant = str_of(tenant), .bytes = bytes, .owner = t};
    assert_true(body_thread_push(thread, &t->task));
}

static void tenants_take_turns_and_each_keeps_its_order(void **state)
{
    (void)state;
    struct task tasks[] = {{.letter = 'a'}, {.letter = 'b'}, {.letter = 'c'}, {.letter = 'd'},
                           {.letter = 'X'}, {.letter = 'Y'}, {.letter = '7'}};
    static const char *const TENANTS[] = {"one", "one", "one", "one", "two", "two", "three"};
    for (size_t i = 0; i < ARRAY_LEN(tasks); i++)
        push(&tasks[i], TENANTS[i], 1);
    open_gate_and_collect(ARRAY_LEN(tasks));
    assert_string_equal(order, "aXbYc7d");
    body_thread_free(thread);
}

static void a_tenant_keeps_only_its_share_waiting(void **state)
{
    (void)state;
    struct task tasks[4] = {{.letter = 'a'}, {.letter = 'b'}, {.letter = 'c'}, {.letter = 'd'}};
    push(&tasks[0], "one", BODIES_PER_TENANT_BYTES_MAX - 10);
    tasks[1].task =
        (struct body_task){.run = note, .done = done, .tenant = STR("one"), .bytes = 11};
    assert_false(body_thread_push(thread, &tasks[1].task));
    push(&tasks[2], "two", 11);
    push(&tasks[3], "one", 10);
    open_gate_and_collect(3);
    assert_string_equal(order, "acd");
    body_thread_free(thread);
}

static void free_itself(struct body_task *task)
{
    order[ran++] = 'f';
    free(task);
}

static void what_is_not_collected_is_done_before_the_end(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct body_task *task = calloc(1, sizeof(*task));
        assert_non_null(task);
        task->run = free_itself;
        assert_true(body_thread_push(thread, task));
    }
    pthread_mutex_unlock(&gate);
    body_thread_free(thread);
    assert_string_equal(order, "fff");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tenants_take_turns_and_each_keeps_its_order, begin, end),
        cmocka_unit_test_setup_teardown(a_tenant_keeps_only_its_share_waiting, begin, end),
        cmocka_unit_test_setup_teardown(what_is_not_collected_is_done_before_the_end, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
