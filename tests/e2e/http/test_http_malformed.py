"""Bytes that are no HTTP/1.1: answered as problem+json, and the connection is closed."""
import pytest

import harness
from checks import assert_alive, assert_problem
from rawhttp import CLOSED, Wire, exchange, request

POST = b"POST /api/v1/jobs/claim HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"

# Each is answered, and the connection ends: after such a request nobody knows where the next one begins.
ANSWERED = {
    "garbage": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    "one_word": (b"hello\r\n\r\n", 400),
    "blank_before_the_method": (b" GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "no_method": (b" /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "lone_lf_line_ends": (b"GET /healthz HTTP/1.1\nHost: localhost\n\n", 400),
    "connect": (b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\n\r\n", 400),
    "asterisk_for_get": (b"GET * HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "fragment_in_the_target": (b"GET /healthz#part HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "backslash_in_the_target": (b"GET /\\healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "nul_in_the_target": (b"GET /healthz\0x HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "host_with_a_user_and_a_path": (b"GET /healthz HTTP/1.1\r\nHost: a@b/..\r\n\r\n", 400),
    "empty_host": (b"GET /healthz HTTP/1.1\r\nHost:\r\n\r\n", 400),
    "unknown_expectation": (GET + b"Expect: 200-ok\r\n\r\n", 417),
    "empty_header_name": (GET + b": x\r\n\r\nGET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "folded_header_name": (GET + b"X-Ten: t9\r\n ant-ID: x\r\n\r\n", 400),
    "folded_transfer_encoding": (POST + b"Transfer: chunked\r\n -Encoding: x\r\n\r\n0\r\n\r\n", 400),
    "folded_length": (POST + b"Content-Length: 2\r\n 0\r\n\r\n{}", 400),
    "folded_idempotency_key": (POST + b"Idempotency-Key: a\r\n b\r\nContent-Length: 2\r\n\r\n{}", 400),
    "empty_length": (POST + b"Content-Length: \r\n\r\n", 400),
    "transfer_encoding_in_http_1_0": (b"POST /api/v1/jobs/claim HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "chunk_extension_of_64_kib": (POST + b"Transfer-Encoding: chunked\r\n\r\n2;" + b"a" * 65536 + b"\r\n{}\r\n0\r\n\r\n", 400),
    "chunk_extension_with_a_nul": (POST + b"Transfer-Encoding: chunked\r\n\r\n2;a\0\r\n{}\r\n0\r\n\r\n", 400),
    "chunk_extension_with_a_lone_cr": (POST + b"Transfer-Encoding: chunked\r\n\r\n2;a\rb\r\n{}\r\n0\r\n\r\n", 400),
    "chunk_line_with_a_lone_lf": (POST + b"Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n", 400),
    "folded_trailer": (POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n c\r\n\r\n", 400),
    "request_line_of_two_words": (b"GET /healthz\r\n\r\n", 400),
    "request_line_with_a_lone_cr": (b"GET /healthz HTTP/1.1\rHost: localhost\r\n\r\n", 400),
    "another_protocol": (b"GET /healthz HTPP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "http_9_9": (b"GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n", 505),
    "http_0_9": (b"GET /healthz HTTP/0.9\r\nHost: localhost\r\n\r\n", 505),
    "http_2_preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "header_without_colon": (GET + b"broken\r\n\r\n", 400),
    "header_with_blank_before_colon": (GET + b"Broken : x\r\n\r\n", 400),
    "header_name_with_a_slash": (GET + b"a/b: x\r\n\r\n", 400),
    "nul_in_a_header_name": (GET + b"A\0: x\r\n\r\n", 400),
    "lone_cr_in_a_header": (GET + b"A: x\ry\r\n\r\n", 400),
    "control_character_in_a_header": (GET + b"A: x\x01y\r\n\r\n", 400),
    "no_host": (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
    "two_hosts": (GET + b"Host: other\r\n\r\n", 400),
    "length_is_text": (POST + b"Content-Length: ten\r\n\r\n", 400),
    "length_is_negative": (POST + b"Content-Length: -1\r\n\r\n", 400),
    "length_with_sign": (POST + b"Content-Length: +2\r\n\r\n{}", 400),
    "length_is_hexadecimal": (POST + b"Content-Length: 0x2\r\n\r\n{}", 400),
    "length_is_a_list": (POST + b"Content-Length: 2, 2\r\n\r\n{}", 400),
    "two_lengths_alike": (POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400),
    "two_lengths_that_differ": (POST + b"Content-Length: 2\r\nContent-Length: 30\r\n\r\n{}", 400),
    "length_and_chunked": (POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400),
    "unknown_transfer_encoding": (POST + b"Transfer-Encoding: gzip\r\n\r\n{}", 400),
    "chunked_twice": (POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "chunked_after_another": (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400),
    "chunk_size_is_text": (POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", 400),
    "chunk_size_is_empty": (POST + b"Transfer-Encoding: chunked\r\n\r\n\r\n{}\r\n0\r\n\r\n", 400),
    "chunk_longer_than_said": (POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}xx0\r\n\r\n", 400),
    "chunk_size_out_of_range": (POST + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", 413),
    "chunk_size_past_64_bits": (POST + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400),
    "one_header_over_8_kib": (GET + b"A: " + b"x" * 9000 + b"\r\n\r\n", 431),
    "many_headers_over_8_kib": (GET + b"".join(b"X-%d: xxxxxxxxxxxxxxxxxxxx\r\n" % i for i in range(400)) + b"\r\n", 431),
    "target_over_8_kib": (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
    "target_of_100_kib": (b"GET /?" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
    "query_over_8_kib": (b"GET /api/v1/runs?cursor=" + b"a" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
}

# What the parser lets through, as RFC 9112 allows a recipient to.
TOLERATED = {
    "url_as_target": b"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "empty_lines_before_the_request": b"\r\n\r\n" + GET + b"\r\n",
    "http_1_0_without_host": b"GET /healthz HTTP/1.0\r\n\r\n",
    "http_1_2": b"GET /healthz HTTP/1.2\r\nHost: localhost\r\n\r\n",
    "every_mark_of_a_token_in_a_name": GET + b"!#$%&'*+-.^_`|~09azAZ: x\r\n\r\n",
    "header_just_below_8_kib": GET + b"A: " + b"x" * 8100 + b"\r\n\r\n",
    "head_just_below_16_kib": GET + (b"A: " + b"x" * 7000 + b"\r\n") * 2 + b"\r\n",
    "99_headers": GET + b"A: b\r\n" * 99 + b"\r\n",
    "blank_after_the_length": GET + b"Content-Type: application/json\r\nContent-Length: 2 \r\n\r\n{}",
    "bytes_above_127_in_a_header": GET + b"A: \xe4\xff\r\n\r\n",
}


@pytest.mark.parametrize("name", ANSWERED)
def test_a_malformed_request_is_answered_as_a_problem(dev_server, api, name):
    data, status = ANSWERED[name]
    with Wire(dev_server.port) as wire:
        wire.send(data)
        reply = wire.answer()
        assert reply is not CLOSED
        assert_problem(reply, status, retryable=False)
        assert reply.header("Connection") == "close"
        assert wire.closed()
    assert_alive(api)


@pytest.mark.parametrize("name", TOLERATED)
def test_what_a_recipient_may_tolerate_is_answered(dev_server, name):
    reply = exchange(dev_server.port, TOLERATED[name])
    assert reply is not CLOSED and reply.status == 200, reply


def test_a_blank_after_the_length_does_not_hide_the_body(dev_server):
    """The body must be read as a body: left over, it would be taken for the next request."""
    with Wire(dev_server.port) as wire:
        wire.send(POST + b"Content-Length: 2 \r\n\r\n{}" + request("GET", "/readyz"))
        assert_problem(wire.answer(), 400, "FIELD_INVALID")
        assert wire.answer().json["status"] == "ready"


@pytest.mark.parametrize("cut", [1, 10, len(GET), len(POST) + 20])
def test_a_client_that_leaves_half_way_harms_nobody(dev_server, api, cut):
    whole = POST + b"Content-Type: application/json\r\nContent-Length: 40\r\n\r\n{}"
    with Wire(dev_server.port) as wire:
        wire.send(whole[:cut])
    assert_alive(api)


@pytest.mark.parametrize("what", ["target", "header"])
def test_a_head_without_end_is_refused_while_it_is_sent(dev_server, api, what):
    """More than the limit, never finished: the server does not collect it."""
    with Wire(dev_server.port) as wire:
        wire.send(b"GET /" if what == "target" else GET + b"A: ")
        for _ in range(200):
            if not wire.send(b"a" * 4096):
                break
        reply = wire.answer()
        if reply is not CLOSED:  # a reset may outrun it
            assert_problem(reply, 414 if what == "target" else 431)
        assert wire.closed()
    assert_alive(api)


def test_malformed_requests_beside_good_ones(dev_server):
    """Every kind at once from eight threads, with good requests in between: each gets its own answer."""
    kinds = list(ANSWERED.values())

    def work(i):
        client = dev_server.client()
        for data, status in kinds[i::8] + kinds[(i + 3) % 8::8]:
            reply = exchange(dev_server.port, data)
            assert reply is not CLOSED
            assert_problem(reply, status)
            assert_alive(client)

    harness.together(8, work)


@pytest.mark.parametrize("header", [b"Idempotency-Key: a\0b", b"X-Tenant-ID: t\0u", b"X-Actor: me\0you", b"A\0B: c"])
def test_a_nul_does_not_cut_a_header_short(dev_server, header):
    """Two different values must not become one: `a` NUL `b` is not the key `a`."""
    body = b'{"steps":[{"name":"a","type":"task","handler":"h"}]}'
    head = b"PUT /api/v1/workflows/nul HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + header
    reply = exchange(dev_server.port, head + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert reply is not CLOSED
    assert_problem(reply, 400)


def test_150_query_parameters_are_answered(dev_server):
    target = "/api/v1/runs?" + "&".join(f"parameter_{i}=value" for i in range(150))
    reply = exchange(dev_server.port, request("GET", target))
    assert reply is not CLOSED
    assert_problem(reply, 400)


def test_what_follows_a_malformed_request_is_not_served(dev_server):
    with Wire(dev_server.port) as wire:
        wire.send(GET + b" folded: x\r\n\r\n" + request("GET", "/readyz"))
        assert_problem(wire.answer(), 400)
        assert wire.closed()


def test_trailers_are_dropped(dev_server):
    with Wire(dev_server.port) as wire:
        wire.send(POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Tenant-ID: other\r\nContent-Length: 9\r\n\r\n")
        assert_problem(wire.answer(), 400, "FIELD_INVALID")
        wire.send(request("GET", "/readyz"))
        assert wire.answer().json["status"] == "ready"
