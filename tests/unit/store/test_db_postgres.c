/* What only a store on PostgreSQL has: ownership, lost connections, commits in doubt. */
#include "store/cut_proxy.h"
#include "store/notes.h"

static struct path file_of(void **state)
{
    return path_in(*state, "p.db");
}

/* The directory's schema of the test's store. */
static struct path schema_of(void **state)
{
    char url[DB_PATH_MAX];
    struct path schema;
    test_store_url(file_of(state).text, url, sizeof(url));
    (void)snprintf(schema.text, sizeof(schema.text), "%s",
                   strstr(url, "&schema=") + strlen("&schema="));
    return schema;
}

static void run_outside(void **state, const char *format)
{
    char sql[512];
    struct raw raw = raw_open(file_of(state).text);
    struct path schema = schema_of(state);
    (void)snprintf(sql, sizeof(sql), "SET search_path = %s_0, %s", schema.text, schema.text);
    raw_exec(&raw, sql);
    raw_exec(&raw, format);
    raw_close(&raw);
}

static void end_session_of_writer(void **state)
{
    char sql[512];
    struct raw raw = raw_open(file_of(state).text);
    (void)snprintf(sql, sizeof(sql),
                   "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_locks"
                   " WHERE locktype = 'advisory' AND objid = hashtext('%s_0')::oid",
                   schema_of(state).text);
    assert_int_equal(raw_number(&raw, sql), 1);
    raw_close(&raw);
}

static enum err note_in_a_transaction(struct db *db, int64_t num)
{
    static const char SQL[] = "INSERT INTO notes (num, text) VALUES ($1, 'x')";
    enum err e = db_begin(db);
    if (e == ERR_OK)
        e = DB_EXEC(db, SQL, NULL, DB_I(num));
    if (e == ERR_OK)
        return db_commit(db);
    db_rollback(db);
    return e;
}

static const char TAKE_OVER[] = "UPDATE shards SET epoch = epoch + 1";

/* --- many rows --- */

static void a_statement_of_several_rows_inserts_each_of_them(void **state)
{
    static const char TWO[] = "INSERT INTO notes (num, text) VALUES ($1, $2), ($3, $4)";
    static const char MIXED[] = "INSERT INTO notes (num, text) VALUES ($1, $2), ($3, 'd')";
    struct db *db = open_writer(file_of(state).text);
    make_notes(db);
    assert_ok(db_begin(db));
    for (int64_t i = 0; i < 3; i++)
        assert_ok(
            DB_EXEC(db, TWO, NULL, DB_I(10 * i), DB_T(STR("a")), DB_I(10 * i + 1), DB_T(STR("b"))));
    assert_ok(DB_EXEC(db, MIXED, NULL, DB_I(100), DB_T(STR("c")), DB_I(101)));
    assert_ok(db_commit(db));
    db_close(db);
    struct raw raw = raw_open(file_of(state).text);
    assert_int_equal(raw_number(&raw, "SELECT sum(num) FROM notes WHERE text = 'a'"), 30);
    assert_int_equal(raw_number(&raw, "SELECT sum(num) FROM notes WHERE text = 'b'"), 33);
    assert_int_equal(raw_number(&raw, "SELECT sum(num) FROM notes WHERE text IN ('c', 'd')"), 201);
    raw_close(&raw);
}

static void add_notes(struct db *db, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        add_note(db, first + i, STR("x"));
}

/* The server passes over everything that comes after a failure, also what prepares a statement. */
static void rows_of_a_trip_that_failed_can_be_inserted_later(void **state)
{
    static const char FAILING[] = "UPDATE notes SET num = $1";
    struct db *db = open_writer(file_of(state).text);
    make_notes(db);
    assert_ok(db_begin(db));
    add_notes(db, 1, 2);
    assert_ok(DB_EXEC(db, FAILING, NULL, DB_I(3)));
    assert_int_not_equal(db_commit(db), ERR_OK);
    assert_ok(db_begin(db));
    add_notes(db, 1, 2);
    assert_ok(db_commit(db));
    assert_ok(db_begin(db));
    assert_ok(DB_EXEC(db, FAILING, NULL, DB_I(3))); /* it is sent together with the rows */
    add_notes(db, 10, 8);
    assert_int_not_equal(db_commit(db), ERR_OK);
    assert_ok(db_begin(db));
    add_notes(db, 10, 8);
    assert_ok(db_commit(db));
    assert_int_equal(count_notes(db), 10);
    db_close(db);
}

/* --- ownership --- */

static void an_owner_that_was_replaced_cannot_commit(void **state)
{
    struct db *db = open_writer(file_of(state).text);
    make_notes(db);
    assert_ok(note_in_a_transaction(db, 1));
    run_outside(state, TAKE_OVER);
    assert_int_equal(note_in_a_transaction(db, 2), ERR_STORE_FAILED);
    assert_int_equal(db_commit_outcome(db), DB_FENCED);
    db_close(db);
    db = open_writer(file_of(state).text);
    assert_int_equal(count_notes(db), 1);
    db_close(db);
}

static void an_owner_that_was_replaced_reads_nothing_either(void **state)
{
    static const char SQL[] = "SELECT num FROM notes";
    struct db *db = open_writer(file_of(state).text);
    make_notes(db);
    assert_ok(note_in_a_transaction(db, 1));
    run_outside(state, TAKE_OVER);
    assert_ok(db_begin(db));
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    assert_false(db_next(rows));
    assert_int_equal(db_rows_end(rows), ERR_STORE_FAILED);
    db_rollback(db);
    db_close(db);
}

static void a_new_owner_waits_for_the_transaction_of_the_old_one(void **state)
{
    struct db *db = open_writer(file_of(state).text);
    make_notes(db);
    assert_ok(db_begin(db));
    add_note(db, 1, STR("x"));
    assert_int_equal(count_notes(db), 1); /* it is under way */
    struct raw raw = raw_open(file_of(state).text);
    char sql[512];
    (void)snprintf(sql, sizeof(sql), "SET lock_timeout = 100; UPDATE %s.shards SET epoch = 7",
                   schema_of(state).text);
    PGresult *result = PQexec(raw.server, sql);
    assert_string_equal(PQresultErrorField(result, PG_DIAG_SQLSTATE), "55P03");
    PQclear(result);
    raw_close(&raw);
    assert_ok(db_commit(db));
    run_outside(state, TAKE_OVER);
    assert_int_equal(note_in_a_transaction(db, 2), ERR_STORE_FAILED);
    db_close(db);
}

/* --- lost connections --- */

static void a_lost_connection_aborts_and_the_next_transaction_has_another(void **state)
{
    struct db *db = open_writer(file_of(state).text);
    make_notes(db);
    assert_ok(db_begin(db));
    add_note(db, 1, STR("lost"));
    assert_int_equal(count_notes(db), 1);
    end_session_of_writer(state);
    assert_int_equal(db_commit(db), ERR_STORE_BUSY);
    assert_int_equal(db_commit_outcome(db), DB_ABORTED);
    assert_ok(note_in_a_transaction(db, 1));
    assert_int_equal(count_notes(db), 1);
    db_close(db);
}

static void who_was_replaced_while_away_does_not_come_back(void **state)
{
    struct db *db = open_writer(file_of(state).text);
    make_notes(db);
    end_session_of_writer(state);
    run_outside(state, TAKE_OVER);
    assert_int_equal(note_in_a_transaction(db, 1), ERR_STORE_FAILED);
    db_close(db);
}

static void a_reader_connects_again(void **state)
{
    struct db *writer = open_writer(file_of(state).text);
    make_notes(writer);
    struct db *reader = open_reader(file_of(state).text);
    assert_int_equal(count_notes(reader), 0);
    struct raw raw = raw_open(file_of(state).text);
    raw_exec(&raw, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                   " WHERE application_name = 'pawl' AND query LIKE '%FROM notes%'");
    raw_close(&raw);
    assert_ok(db_snapshot_begin(reader, 60000));
    assert_int_equal(count_notes(reader), 0);
    db_snapshot_end(reader);
    db_close(reader);
    db_close(writer);
}

/* --- commits in doubt --- */

/* What the writers of these tests count. */
static struct metrics *registry;
static struct metric *reconnects, *in_doubt;

static void declare_metrics(void)
{
    static const struct metric_spec RECONNECTS = {"reconnects", "", METRIC_COUNTER, {NULL}, NULL};
    static const struct metric_spec IN_DOUBT = {"in_doubt", "", METRIC_COUNTER, {"outcome"}, NULL};
    registry = metrics_new();
    reconnects = metrics_declare(registry, &RECONNECTS);
    in_doubt = metrics_declare(registry, &IN_DOUBT);
    assert_non_null(reconnects);
    assert_non_null(in_doubt);
}

static void assert_counted(double replaced, const char *outcome, double doubts)
{
    assert_true(metric_value(reconnects, STR_NONE, STR_NONE) == replaced);
    assert_true(metric_value(in_doubt, str_of(outcome), STR_NONE) == doubts);
    metrics_free(registry);
    registry = NULL;
}

static struct db *open_through(const struct cut_proxy *p, void **state)
{
    char url[512];
    struct problem problem;
    struct db *db = NULL;
    problem_init(&problem);
    (void)snprintf(url, sizeof(url), "postgres:///postgres?host=%s&user=pawl&schema=%s",
                   p->folder.text, schema_of(state).text);
    declare_metrics();
    struct db_config config = {.url = str_of(url),
                               .access = DB_WRITER,
                               .env = &ENV_SYSTEM,
                               .reconnects = reconnects,
                               .in_doubt = in_doubt};
    if (db_open(&config, &problem, &db) != ERR_OK)
        fail_msg("%s", problem.detail);
    problem_release(&problem);
    return db;
}

static void a_commit_that_never_arrived_is_aborted(void **state)
{
    struct cut_proxy p;
    cut_proxy_start(&p, *state);
    struct db *db = open_through(&p, state);
    make_notes(db);
    atomic_store(&p.cut, CUT_COMMIT);
    assert_int_equal(note_in_a_transaction(db, 1), ERR_STORE_BUSY);
    assert_int_equal(db_commit_outcome(db), DB_ABORTED);
    assert_int_equal(count_notes(db), 0);
    assert_ok(note_in_a_transaction(db, 1));
    db_close(db);
    assert_counted(1, "aborted", 1);
    cut_proxy_stop(&p);
}

static void a_commit_whose_answer_was_lost_is_found_out(void **state)
{
    struct cut_proxy p;
    cut_proxy_start(&p, *state);
    struct db *db = open_through(&p, state);
    make_notes(db);
    atomic_store(&p.cut, CUT_ANSWER);
    assert_ok(note_in_a_transaction(db, 1));
    assert_int_equal(db_commit_outcome(db), DB_COMMITTED);
    assert_int_equal(count_notes(db), 1);
    db_close(db);
    assert_counted(1, "committed", 1);
    cut_proxy_stop(&p);
}

/* The number of the lost transaction is given again: to the one that takes the store back. */
static void a_commit_that_the_server_lost_in_a_crash_is_aborted(void **state)
{
    struct cut_proxy p;
    cut_proxy_start(&p, *state);
    struct db *db = open_through(&p, state);
    make_notes(db);
    struct raw raw = raw_open(file_of(state).text);
    raw_exec(&raw, "CHECKPOINT");
    p.victim = (pid_t)raw_number(&raw, "SELECT pg_backend_pid()");
    atomic_store(&p.cut, CUT_SERVER);
    assert_int_equal(note_in_a_transaction(db, 1), ERR_STORE_BUSY);
    assert_int_equal(db_commit_outcome(db), DB_ABORTED);
    assert_int_equal(count_notes(db), 0);
    assert_ok(note_in_a_transaction(db, 1));
    PQfinish(raw.server);
    db_close(db);
    assert_counted(1, "aborted", 1);
    cut_proxy_stop(&p);
}

static void a_server_that_has_lost_a_commit_is_not_written_to(void **state)
{
    struct db *db = open_writer(file_of(state).text);
    make_notes(db);
    assert_ok(note_in_a_transaction(db, 1));
    assert_ok(note_in_a_transaction(db, 2));
    end_session_of_writer(state);
    run_outside(state, "DELETE FROM commits WHERE num = (SELECT max(num) FROM commits)");
    assert_int_equal(note_in_a_transaction(db, 3), ERR_STORE_FAILED);
    db_close(db);
}

static void numbers_of_commits_go_on_with_the_next_owner_and_old_ones_go(void **state)
{
    enum { COMMITS = 2100 };
    struct db *db = open_writer(file_of(state).text);
    make_notes(db);
    for (int64_t i = 1; i <= COMMITS; i++)
        assert_ok(note_in_a_transaction(db, i));
    db_close(db);
    db = open_writer(file_of(state).text);
    assert_ok(note_in_a_transaction(db, COMMITS + 1));
    struct raw raw = raw_open(file_of(state).text);
    assert_true(raw_number(&raw, "SELECT max(num) FROM commits") > COMMITS);
    assert_true(raw_number(&raw, "SELECT count(*) FROM commits") <= 2001);
    raw_close(&raw);
    db_close(db);
}

/* --- commits that are put on disk later --- */

static struct db *open_that_puts_off(void **state, struct db_marks *marks)
{
    char url[DB_PATH_MAX];
    struct problem problem;
    struct db *db = NULL;
    problem_init(&problem);
    test_store_url(file_of(state).text, url, sizeof(url));
    struct db_config config = {
        .url = str_of(url), .access = DB_WRITER, .env = &ENV_SYSTEM, .marks = marks};
    if (db_open(&config, &problem, &db) != ERR_OK)
        fail_msg("%s", problem.detail);
    problem_release(&problem);
    make_notes(db);
    assert_ok(db_sync(db));
    atomic_store(&marks->work_waits, true); /* otherwise nothing is put off */
    return db;
}

static uint64_t commits_not_on_disk(struct db_marks *marks)
{
    return atomic_load(&marks->written) - atomic_load(&marks->durable);
}

static void a_commit_that_is_put_off_is_on_disk_after_the_sync(void **state)
{
    struct db_marks marks = {0};
    struct db *db = open_that_puts_off(state, &marks);
    assert_int_equal(commits_not_on_disk(&marks), 0);
    for (int64_t i = 1; i <= 3; i++)
        assert_ok(note_in_a_transaction(db, i));
    assert_int_equal(commits_not_on_disk(&marks), 3);
    assert_ok(db_sync(db));
    assert_int_equal(commits_not_on_disk(&marks), 0);
    db_close(db);
}

static void a_commit_that_no_work_waits_for_is_on_disk_at_once_with_those_before_it(void **state)
{
    struct db_marks marks = {0};
    struct db *db = open_that_puts_off(state, &marks);
    assert_ok(note_in_a_transaction(db, 1));
    atomic_store(&marks.work_waits, false);
    assert_ok(note_in_a_transaction(db, 2));
    assert_int_equal(commits_not_on_disk(&marks), 0);
    atomic_store(&marks.work_waits, true);
    assert_ok(note_in_a_transaction(db, 3));
    assert_int_equal(commits_not_on_disk(&marks), 1);
    assert_ok(db_sync(db));
    db_close(db);
}

static void a_commit_that_must_not_be_put_off_takes_those_before_it_to_disk(void **state)
{
    static const char SQL[] = "INSERT INTO notes (num, text) VALUES ($1, 'x')";
    struct db_marks marks = {0};
    struct db *db = open_that_puts_off(state, &marks);
    assert_ok(note_in_a_transaction(db, 1));
    assert_ok(db_begin(db));
    assert_ok(DB_EXEC(db, SQL, NULL, DB_I(2)));
    assert_ok(db_commit_now(db));
    assert_int_equal(commits_not_on_disk(&marks), 0);
    db_close(db);
}

static void a_commit_that_was_aborted_keeps_nobody_waiting(void **state)
{
    struct db_marks marks = {0};
    struct db *db = open_that_puts_off(state, &marks);
    assert_ok(note_in_a_transaction(db, 1));
    assert_int_equal(note_in_a_transaction(db, 1), ERR_INTERNAL); /* there is one already */
    assert_int_equal(commits_not_on_disk(&marks), 0);
    assert_int_equal(note_in_a_transaction(db, 1), ERR_INTERNAL);
    assert_int_equal(commits_not_on_disk(&marks), 0);
    db_close(db);
}

static void a_sync_goes_on_after_its_connection_was_lost(void **state)
{
    struct db_marks marks = {0};
    struct db *db = open_that_puts_off(state, &marks);
    struct raw raw = raw_open(file_of(state).text);
    raw_exec(&raw, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                   " WHERE application_name = 'pawl' AND query LIKE '%emit_message%'");
    raw_close(&raw);
    assert_ok(note_in_a_transaction(db, 1));
    assert_ok(db_sync(db));
    assert_int_equal(commits_not_on_disk(&marks), 0);
    db_close(db);
}

static void a_sync_after_which_the_commit_is_missing_fails_for_good(void **state)
{
    struct db_marks marks = {0};
    struct db *db = open_that_puts_off(state, &marks);
    assert_ok(note_in_a_transaction(db, 1));
    run_outside(state, "DELETE FROM commits WHERE num = (SELECT max(num) FROM commits)");
    assert_int_equal(db_sync(db), ERR_STORE_FAILED);
    assert_true(atomic_load(&marks.failed));
    assert_int_equal(commits_not_on_disk(&marks), 1);
    assert_int_equal(db_begin(db), ERR_STORE_FAILED);
    db_close(db);
}

/* A standby that lacked the commit was promoted, and another owner has gone on there. */
static void a_sync_does_not_take_the_commit_of_another_owner_for_the_lost_one(void **state)
{
    struct db_marks marks = {0};
    struct db *db = open_that_puts_off(state, &marks);
    assert_ok(note_in_a_transaction(db, 1));
    end_session_of_writer(state);
    run_outside(state, "DELETE FROM commits WHERE num = (SELECT max(num) FROM commits)");
    struct db *other = open_writer(file_of(state).text);
    assert_ok(note_in_a_transaction(other, 2));
    assert_ok(note_in_a_transaction(other, 3));
    assert_int_equal(db_sync(db), ERR_STORE_FAILED);
    assert_int_equal(commits_not_on_disk(&marks), 1);
    db_close(other);
    db_close(db);
}

/* Each finds the same last commit, because the server has lost those of all before it. The shard is
 * in another database than the directory, where epochs are a million apart. */
static void no_owner_gives_numbers_that_an_earlier_one_gave_and_lost(void **state)
{
    enum { OWNERS = 40 };
    char url[DB_PATH_MAX];
    char wanted[DB_PATH_MAX + 32];
    int64_t given[OWNERS];
    struct db *db = open_writer(file_of(state).text);
    make_notes(db);
    db_close(db);
    run_outside(state, "UPDATE directory SET part_of = 'x'");
    test_store_url(file_of(state).text, url, sizeof(url));
    for (int i = 0; i < OWNERS; i++) {
        struct problem problem;
        (void)snprintf(wanted, sizeof(wanted), "%s&epoch=%d", url, 2 + i);
        struct db_config config = {.url = str_of(wanted), .access = DB_WRITER, .env = &ENV_SYSTEM};
        problem_init(&problem);
        assert_ok(db_open(&config, &problem, &db));
        assert_ok(note_in_a_transaction(db, i));
        given[i] = number_of(db, "SELECT max(num) FROM commits");
        db_close(db);
        run_outside(state, "DELETE FROM commits WHERE num = (SELECT max(num) FROM commits)");
        for (int earlier = 0; earlier < i; earlier++)
            assert_int_not_equal(given[i], given[earlier]);
    }
}

/* --- several hosts --- */

/* The URL with other hosts before its own, as folders of sockets. */
static enum err open_after_hosts(void **state, const char *others)
{
    char url[DB_PATH_MAX];
    char wanted[2 * DB_PATH_MAX];
    struct problem problem;
    struct db *db = NULL;
    test_store_url(file_of(state).text, url, sizeof(url));
    char *host = strstr(url, "host=") + strlen("host=");
    (void)snprintf(wanted, sizeof(wanted), "%.*s%s,%s", (int)(host - url), url, others, host);
    struct db_config config = {.url = str_of(wanted), .access = DB_WRITER, .env = &ENV_SYSTEM};
    problem_init(&problem);
    enum err e = db_open(&config, &problem, &db);
    problem_release(&problem);
    db_close(db);
    return e;
}

static void hosts_that_are_dead_or_silent_are_passed_over(void **state)
{
    struct path folder = path_in(*state, "silent");
    struct sockaddr_un address = socket_in(folder.text);
    int silent = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(mkdir(folder.text, 0700), 0);
    assert_int_equal(bind(silent, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(silent, 8), 0); /* connections are never accepted */
    assert_ok(open_after_hosts(state, folder.text));
    assert_ok(open_after_hosts(state, "/nowhere"));
    assert_ok(open_after_hosts(state, "/nowhere,/nowhere/else"));
    close(silent);
    assert_ok(open_after_hosts(state, folder.text));
}

/* --- servers that stand still --- */

static struct db *open_reader_at(const char *url, int64_t patience_ms)
{
    struct db *db = NULL;
    struct problem problem;
    struct db_config config = {
        .url = str_of(url), .access = DB_READER, .env = &ENV_SYSTEM, .patience_ms = patience_ms};
    problem_init(&problem);
    if (db_open(&config, &problem, &db) != ERR_OK)
        fail_msg("%s", problem.detail);
    problem_release(&problem);
    return db;
}

/* The process of the server that has this connection. */
static pid_t backend_of(struct db *reader)
{
    assert_ok(db_snapshot_begin(reader, 60000));
    int64_t pid = number_of(reader, "SELECT pg_backend_pid()::bigint");
    db_snapshot_end(reader);
    return (pid_t)pid;
}

static enum err read_notes(struct db *reader)
{
    enum err e = db_snapshot_begin(reader, 60000);
    if (e != ERR_OK)
        return e;
    struct db_rows *rows = db_query_values(reader, "SELECT num FROM notes", NULL, 0);
    while (db_next(rows))
        continue;
    e = db_rows_end(rows);
    db_snapshot_end(reader);
    return e;
}

static void who_must_not_wait_leaves_a_server_that_stands_still(void **state)
{
    char url[DB_PATH_MAX];
    struct db *writer = open_writer(file_of(state).text);
    make_notes(writer);
    test_store_url(file_of(state).text, url, sizeof(url));
    struct db *reader = open_reader_at(url, 200);
    pid_t backend = backend_of(reader);
    assert_int_equal(kill(backend, SIGSTOP), 0);
    assert_int_equal(read_notes(reader), ERR_STORE_BUSY);
    while (read_notes(reader) != ERR_OK)
        continue; /* another connection */
    assert_int_not_equal(backend_of(reader), backend);
    assert_int_equal(kill(backend, SIGCONT), 0);
    db_close(reader);
    db_close(writer);
}

/* The hosts x and y are the same server; at first it is reached by x only, and then by y only. */
static void a_server_that_stands_still_is_left_when_another_one_is_the_primary(void **state)
{
    char url[DB_PATH_MAX];
    char hosts[4 * DB_PATH_MAX];
    struct path x = path_in(*state, "x");
    struct path y = path_in(*state, "y");
    struct db *writer = open_writer(file_of(state).text);
    make_notes(writer);
    test_store_url(file_of(state).text, url, sizeof(url));
    char *host = strstr(url, "host=") + strlen("host=");
    char *rest = strchr(host, '&');
    struct path real;
    (void)snprintf(real.text, sizeof(real.text), "%.*s", (int)(rest - host), host);
    (void)snprintf(hosts, sizeof(hosts), "%.*s%s,%s%s", (int)(host - url), url, x.text, y.text,
                   rest);
    assert_int_equal(symlink(real.text, x.text), 0);
    struct db *reader = open_reader_at(hosts, 0);
    pid_t backend = backend_of(reader);
    assert_int_equal(unlink(x.text), 0);
    assert_int_equal(symlink(real.text, y.text), 0);
    assert_int_equal(kill(backend, SIGSTOP), 0);
    assert_int_equal(read_notes(reader), ERR_STORE_BUSY);
    assert_int_equal(kill(backend, SIGCONT), 0);
    while (read_notes(reader) != ERR_OK)
        continue;
    assert_int_equal(unlink(y.text), 0);
    db_close(reader);
    db_close(writer);
}

/* --- what is not ours --- */

static void assert_refused(const char *url, enum err expected, const char *why)
{
    struct problem p;
    struct db *db = NULL;
    problem_init(&p);
    struct db_config config = {.url = str_of(url), .access = DB_WRITER, .env = &ENV_SYSTEM};
    assert_int_equal(db_open(&config, &p, &db), expected);
    assert_contains(p.detail, why);
    problem_release(&p);
}

static void a_schema_of_another_program_is_refused(void **state)
{
    char url[DB_PATH_MAX];
    char sql[512];
    struct raw raw = raw_open(file_of(state).text);
    (void)snprintf(sql, sizeof(sql), "CREATE SCHEMA %s; CREATE TABLE %s.users (num bigint)",
                   schema_of(state).text, schema_of(state).text);
    raw_exec(&raw, sql);
    raw_close(&raw);
    test_store_url(file_of(state).text, url, sizeof(url));
    assert_refused(url, ERR_STORE_FAILED, "belongs to another program");
}

static void a_store_of_a_newer_pawl_is_refused(void **state)
{
    char url[DB_PATH_MAX];
    db_close(open_writer(file_of(state).text));
    test_store_url(file_of(state).text, url, sizeof(url));
    run_outside(state, "UPDATE shards SET version = 4000");
    assert_refused(url, ERR_STORE_FAILED, "written by a newer pawl");
    run_outside(state, "UPDATE directory SET version = 4000");
    assert_refused(url, ERR_STORE_FAILED, "written by a newer pawl");
}

static void a_url_that_names_no_store_is_refused(void **state)
{
    (void)state;
    assert_refused("postgres:pawl", ERR_BAD_REQUEST, "postgres://");
    assert_refused("postgres:///x?schema=Robert'); --", ERR_BAD_REQUEST, "lower-case letters");
    assert_refused("postgresql:///x?user=pawl&host=/nowhere", ERR_STORE_BUSY, "Cannot connect");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_statement_of_several_rows_inserts_each_of_them),
        folder_test(rows_of_a_trip_that_failed_can_be_inserted_later),
        folder_test(an_owner_that_was_replaced_cannot_commit),
        folder_test(an_owner_that_was_replaced_reads_nothing_either),
        folder_test(a_new_owner_waits_for_the_transaction_of_the_old_one),
        folder_test(a_lost_connection_aborts_and_the_next_transaction_has_another),
        folder_test(who_was_replaced_while_away_does_not_come_back),
        folder_test(a_reader_connects_again),
        folder_test(a_commit_that_never_arrived_is_aborted),
        folder_test(a_commit_whose_answer_was_lost_is_found_out),
        folder_test(a_commit_that_the_server_lost_in_a_crash_is_aborted),
        folder_test(a_server_that_has_lost_a_commit_is_not_written_to),
        folder_test(numbers_of_commits_go_on_with_the_next_owner_and_old_ones_go),
        folder_test(a_commit_that_is_put_off_is_on_disk_after_the_sync),
        folder_test(a_commit_that_no_work_waits_for_is_on_disk_at_once_with_those_before_it),
        folder_test(a_commit_that_must_not_be_put_off_takes_those_before_it_to_disk),
        folder_test(a_commit_that_was_aborted_keeps_nobody_waiting),
        folder_test(a_sync_goes_on_after_its_connection_was_lost),
        folder_test(a_sync_after_which_the_commit_is_missing_fails_for_good),
        folder_test(a_sync_does_not_take_the_commit_of_another_owner_for_the_lost_one),
        folder_test(no_owner_gives_numbers_that_an_earlier_one_gave_and_lost),
        folder_test(hosts_that_are_dead_or_silent_are_passed_over),
        folder_test(who_must_not_wait_leaves_a_server_that_stands_still),
        folder_test(a_server_that_stands_still_is_left_when_another_one_is_the_primary),
        folder_test(a_schema_of_another_program_is_refused),
        folder_test(a_store_of_a_newer_pawl_is_refused),
        folder_test(a_url_that_names_no_store_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
