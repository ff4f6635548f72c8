/* Tokens between nodes: believed once, by the node they are for, for the request they are on. */
#include "testing.h"

#include "cluster/node_auth.h"
#include "cluster/replay_window.h"

static const struct str SECRET = {"0123456789abcdef0123456789abcdef", 32};
enum { NOW = 1000 * 1000 };

struct scene {
    struct node_auth *sender, *receiver;
    struct http_request req;
    struct node_claim claim;
};

static int open_scene(void **state)
{
    static struct scene s;
    memset(&s, 0, sizeof(s));
    s.sender = node_auth_new(SECRET, STR("session-a"));
    s.receiver = node_auth_new(SECRET, STR("session-b"));
    assert_non_null(s.sender);
    assert_non_null(s.receiver);
    s.req = (struct http_request){.method = STR("POST"),
                                  .path = STR("/api/v1/jobs/claim"),
                                  .query = STR("a=b"),
                                  .body = STR("{\"worker_id\":\"w\"}")};
    arena_init(&s.req.arena, 1024 * 1024);
    s.claim = (struct node_claim){.shard = 7,
                                  .has_caller = true,
                                  .caller = {.tenant = STR("acme"),
                                             .actor = STR("Zoë B."),
                                             .peer = STR("10.0.0.1"),
                                             .role = ROLE_OPERATOR}};
    *state = &s;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *s = *state;
    node_auth_free(s->sender);
    node_auth_free(s->receiver);
    arena_release(&s->req.arena);
    return 0;
}

static struct str sign_by(struct scene *s, struct node_auth *sender, struct str to, int64_t now)
{
    struct node_message m = {s->req.method, s->req.path, s->req.query, s->req.body};
    return node_auth_sign(sender, &m, to, now, &s->claim, &s->req.arena);
}

static struct str sign(struct scene *s)
{
    struct str token = sign_by(s, s->sender, STR("session-b"), NOW);
    assert_non_null(token.ptr);
    return token;
}

static enum node_verdict check(struct scene *s, struct str token)
{
    struct node_claim ignored;
    return node_auth_check(s->receiver, &s->req, token, NOW, &ignored);
}

static void a_token_says_who_sends_the_request(void **state)
{
    struct scene *s = *state;
    struct node_claim got;
    assert_int_equal(node_auth_check(s->receiver, &s->req, sign(s), NOW, &got), NODE_BELIEVED);
    assert_int_equal(got.shard, 7);
    assert_true(got.has_caller);
    assert_true(str_is(got.caller.tenant, "acme") && str_is(got.caller.actor, "Zoë B."));
    assert_true(str_is(got.caller.peer, "10.0.0.1"));
    assert_int_equal(got.caller.role, ROLE_OPERATOR);
    assert_false(got.caller.all_tenants || got.caller.creates_tenant || got.identifies);

    s->claim = (struct node_claim){
        .identifies = true,
        .caller = {
            .tenant = STR("*"), .role = ROLE_ADMIN, .all_tenants = true, .creates_tenant = true}};
    assert_int_equal(node_auth_check(s->receiver, &s->req, sign(s), NOW, &got), NODE_BELIEVED);
    assert_true(str_is(got.caller.tenant, "*") && got.caller.actor.len == 0);
    assert_true(got.caller.all_tenants && got.caller.creates_tenant);
    assert_true(got.identifies && !got.has_caller);
}

static void a_token_is_good_for_its_request_only(void **state)
{
    struct scene *s = *state;
    struct http_request *req = &s->req;
    struct str token = sign(s);
    struct str *const PARTS[] = {&req->method, &req->path, &req->query, &req->body};
    for (size_t i = 0; i < ARRAY_LEN(PARTS); i++) {
        struct str kept = *PARTS[i];
        *PARTS[i] = STR("other");
        assert_int_equal(check(s, token), NODE_FORGED);
        *PARTS[i] = kept;
    }
    req->path = STR("/api/v1/jobs/claim?a=b"); /* the same bytes, cut elsewhere */
    req->query = STR("");
    assert_int_equal(check(s, token), NODE_FORGED);
    req->path = STR("/api/v1/jobs/claim");
    req->query = STR("a=b");
    assert_int_equal(check(s, token), NODE_BELIEVED);
}

static void a_changed_token_is_forged(void **state)
{
    struct scene *s = *state;
    struct str token = sign(s);
    char text[NODE_TOKEN_MAX];
    for (size_t i = 0; i < token.len; i++) {
        memcpy(text, token.ptr, token.len);
        text[i] = text[i] == '1' ? '2' : '1';
        assert_int_equal(check(s, (struct str){text, token.len}), NODE_FORGED);
    }
    for (size_t len = 0; len < token.len; len++)
        assert_int_equal(check(s, (struct str){token.ptr, len}), NODE_FORGED);
    static const char *const ODD[] = {"", " ", "a b c d e f g h i j", "          ", "\n"};
    for (size_t i = 0; i < ARRAY_LEN(ODD); i++)
        assert_int_equal(check(s, str_of(ODD[i])), NODE_FORGED);
    assert_int_equal(check(s, token), NODE_BELIEVED);
}

static void a_node_with_another_secret_is_not_believed(void **state)
{
    struct scene *s = *state;
    struct node_auth *other =
        node_auth_new(STR("another secret of thirty-two char"), STR("session-a"));
    struct str token = sign_by(s, other, STR("session-b"), NOW);
    assert_int_equal(check(s, token), NODE_FORGED);
    node_auth_free(other);
}

static void a_token_is_for_one_start_of_one_node(void **state)
{
    struct scene *s = *state;
    struct str token = sign_by(s, s->sender, STR("session-c"), NOW);
    assert_int_equal(check(s, token), NODE_FORGED);
}

static void a_token_is_taken_once(void **state)
{
    struct scene *s = *state;
    struct str first = sign(s);
    struct str second = sign(s);
    assert_int_equal(check(s, second), NODE_BELIEVED);
    assert_int_equal(check(s, first), NODE_BELIEVED); /* they may overtake each other */
    assert_int_equal(check(s, first), NODE_REPLAYED);
    assert_int_equal(check(s, second), NODE_REPLAYED);
}

static void a_token_has_its_time(void **state)
{
    struct scene *s = *state;
    struct node_claim got;
    struct str token = sign(s);
    assert_int_equal(node_auth_check(s->receiver, &s->req, token, NOW + NODE_CLOCK_MS + 1, &got),
                     NODE_OUTDATED);
    assert_int_equal(node_auth_check(s->receiver, &s->req, token, NOW - NODE_CLOCK_MS - 1, &got),
                     NODE_OUTDATED);
    assert_int_equal(node_auth_check(s->receiver, &s->req, token, NOW + NODE_CLOCK_MS, &got),
                     NODE_BELIEVED);
}

/* Nodes that start again and again take no more room; what they sent stays taken while it could be
 * sent again. */
static void many_starts_of_nodes_find_room(void **state)
{
    struct scene *s = *state;
    struct node_claim got;
    struct str kept = STR_NONE;
    for (int i = 0; i < 2 * NODE_SENDERS_MAX; i++) {
        char session[32];
        (void)snprintf(session, sizeof(session), "start-%d", i);
        int64_t now = i < NODE_SENDERS_MAX ? NOW : NOW + 3 * NODE_CLOCK_MS;
        struct node_auth *sender = node_auth_new(SECRET, str_of(session));
        struct str token = sign_by(s, sender, STR("session-b"), now);
        assert_int_equal(node_auth_check(s->receiver, &s->req, token, now, &got), NODE_BELIEVED);
        node_auth_free(sender);
        kept = token;
    }
    assert_int_equal(node_auth_check(s->receiver, &s->req, kept, NOW + 3 * NODE_CLOCK_MS, &got),
                     NODE_REPLAYED);
    assert_int_equal(/* no room: as if it were an old one */
                     node_auth_check(
                         s->receiver, &s->req,
                         sign_by(s, s->sender, STR("session-b"), NOW + 3 * NODE_CLOCK_MS),
                         NOW + 3 * NODE_CLOCK_MS, &got),
                     NODE_REPLAYED);
}

/* --- numbers --- */

static void each_number_is_taken_once(void **state)
{
    static struct replay_window w;
    (void)state;
    assert_false(replay_window_take(&w, 0));
    for (uint64_t i = 1; i < 3 * NODE_REPLAY_WINDOW; i += 2) {
        assert_true(replay_window_take(&w, i + 1));
        assert_true(replay_window_take(&w, i));
        assert_false(replay_window_take(&w, i));
        assert_false(replay_window_take(&w, i + 1));
    }
}

static void a_number_that_the_window_has_left_counts_as_taken(void **state)
{
    static struct replay_window w;
    (void)state;
    const uint64_t window = NODE_REPLAY_WINDOW;
    assert_true(replay_window_take(&w, window + 5));
    assert_false(replay_window_take(&w, 5));
    assert_true(replay_window_take(&w, 6));
    assert_true(replay_window_take(&w, 10 * window)); /* far ahead: all before is forgotten */
    assert_false(replay_window_take(&w, window + 5));
    assert_false(replay_window_take(&w, 9 * window));
    assert_true(replay_window_take(&w, 9 * window + 1));
    assert_false(replay_window_take(&w, 9 * window + 1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_token_says_who_sends_the_request),
        TEST(a_token_is_good_for_its_request_only),
        TEST(a_changed_token_is_forged),
        TEST(a_node_with_another_secret_is_not_believed),
        TEST(a_token_is_for_one_start_of_one_node),
        TEST(a_token_is_taken_once),
        TEST(a_token_has_its_time),
        TEST(many_starts_of_nodes_find_room),
        cmocka_unit_test(each_number_is_taken_once),
        cmocka_unit_test(a_number_that_the_window_has_left_counts_as_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
