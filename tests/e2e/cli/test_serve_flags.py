"""How the server is started: flags and their variables, mistakes, addresses, TLS."""
import http.client
import pathlib
import re
import signal
import ssl
import subprocess
import threading

import pytest

import harness
from cli import free_port, pawl


def flags():
    """{flag: (takes a value, variable)} as `pawl serve --help` lists them."""
    text = re.sub(r"\n {34}", "   ", pawl("serve", "--help").out)
    found = re.findall(r"^  (--[a-z-]+)( \S+)? .*\[(PAWL_\w+)\]$", text, re.M)
    return {flag: (bool(value.strip()), variable) for flag, value, variable in found}


@pytest.fixture
def serve(tmp_path):
    """serve(*flags, **variables): a server started with nothing but these. Ended with the test."""
    started = []

    class Bare(harness.Server):
        def command(self):
            return [harness.PAWL, "serve", *self.flags]

    def start(*args, **variables):
        server = Bare(tmp_path, *args, env=variables).start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.close()


# --- flags and variables ---

def test_every_flag_has_its_variable():
    listed = flags()
    assert set(listed) == {"--listen", "--metrics-listen", "--store", "--node", "--advertise", "--node-ca", "--gate", "--bus", "--bus-creds", "--bus-ca", "--bus-queues", "--otlp", "--dev", "--dev-insecure", "--allow-private-addresses", "--tls-cert", "--tls-key", "--tls-client-ca", "--log", "--log-level", "--log-requests", "--wal-max-mib", "--public-url",
                           "--oidc-issuer", "--oidc-client-id", "--oidc-client-secret-file", "--oidc-scope", "--oidc-actor-claim", "--oidc-role-claim", "--oidc-role-map",
                           "--oidc-tenant-claim", "--oidc-tenant"}
    for flag, (_, variable) in listed.items():
        assert variable == "PAWL_" + flag[2:].replace("-", "_").upper()


def test_variables_start_a_server_as_flags_do(serve, tmp_path):
    s = serve(PAWL_LISTEN="127.0.0.1:0", PAWL_STORE=f"sqlite:{tmp_path}/by-variable.db", PAWL_DEV="1", PAWL_LOG="json", PAWL_LOG_LEVEL="debug",
              PAWL_GATE="store", PAWL_WAL_MAX_MIB="64")
    assert s.client().get("/api/v1/runs").status == 200
    assert (tmp_path / "by-variable.db").exists()
    assert s.stop() == 0 and s.log().startswith("{")


def test_a_flag_wins_over_its_variable(serve, tmp_path):
    serve("--listen", "127.0.0.1:0", "--store=sqlite:by-flag.db", "--log=text", PAWL_LISTEN="nonsense", PAWL_STORE="nonsense", PAWL_LOG="nonsense", PAWL_DEV="1")
    assert (tmp_path / "by-flag.db").exists()


@pytest.mark.parametrize("off", ["", "0"])
def test_a_switch_is_off_when_its_variable_says_so(serve, off):
    s = serve("--listen", "127.0.0.1:0", PAWL_DEV=off)
    assert s.client().get("/api/v1/runs").status == 401


MISTAKES = [
    (("--colour",), "--colour"), (("--listen",), "--listen"), (("now",), "now"), (("--dev=yes",), "--dev"), (("--log", "xml"), "xml"),
    (("--log-level", "loud"), "loud"), (("--wal-max-mib", "0"), '"0"'), (("--wal-max-mib", "-5"), '"-5"'), (("--wal-max-mib", "many"), "many"),
    (("--gate", "rediss://127.0.0.1"), "TLS"), (("--gate", "redis://:secret@"), "redis://…@…"), (("--gate", "nats://127.0.0.1"), "redis://"), (("--bus", "redis://127.0.0.1"), "nats://"), (("--bus", "nats://127.0.0.1,"), "nats://"), (("--bus-queues", "q"), "--bus"), (("--bus-creds", "f"), "--bus"),
    (("--bus", "nats://127.0.0.1", "--bus-queues", "a,,b"), "queues"), (("--tls-cert", "x"), "--tls-key"), (("--tls-key", "x"), "--tls-cert"), (("--tls-client-ca", "x"), "--tls-cert"),
]


@pytest.mark.parametrize("args,named", MISTAKES)
def test_a_mistake_exits_2_and_is_named(tmp_path, args, named):
    r = pawl("serve", *args, cwd=tmp_path)
    assert r.code == 2 and named in r.err and r.out == "" and not list(tmp_path.iterdir()), r


@pytest.mark.parametrize("args,named", [m for m in MISTAKES if len(m[0]) == 2])
def test_a_mistake_in_a_variable_exits_2_too(tmp_path, args, named):
    r = pawl("serve", cwd=tmp_path, **{"PAWL_" + args[0][2:].replace("-", "_").upper(): args[1]})
    assert r.code == 2 and named in r.err and not list(tmp_path.iterdir()), r


@pytest.mark.parametrize("key", ["a", "root-key", "x" * 31, "A" * 64, "abcdefg" * 8, "0123456789abcdef" * 2, "correct horse battery staple 1234567890", "ä" * 20,
                                 harness.ROOT_KEY[:31], harness.ROOT_KEY * 4])
def test_a_root_key_that_could_be_guessed_is_refused(tmp_path, key):
    r = pawl("serve", "--listen", "127.0.0.1:0", cwd=tmp_path, PAWL_ROOT_KEY=key)
    assert r.code == 2 and "PAWL_ROOT_KEY" in r.err and "openssl rand -hex 32" in r.err and r.out == "", r
    assert len(key) < 8 or key not in r.err
    assert not list(tmp_path.iterdir())


def test_a_random_root_key_is_taken(serve):
    made = subprocess.run(["openssl", "rand", "-hex", "32"], check=True, capture_output=True, text=True).stdout.strip()
    s = serve("--listen", "127.0.0.1:0", PAWL_ROOT_KEY=made)
    assert s.client(headers={"X-API-Key": made}).get("/api/v1/tenants").status == 200


@pytest.mark.parametrize("listen", ["nonsense", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:x", "::1:80", "203.0.113.1:0", "no.such.host.invalid:0"])
def test_an_address_that_cannot_be_exits_1_and_is_named(tmp_path, listen):
    r = pawl("serve", "--listen", listen, cwd=tmp_path)
    assert r.code == 1 and listen in r.err and r.out == "", r


def test_a_port_in_use_exits_1(dev_server, tmp_path):
    r = pawl("serve", "--listen", f"127.0.0.1:{dev_server.port}", cwd=tmp_path)
    assert r.code == 1 and "in use" in r.err and str(dev_server.port) in r.err, r


@pytest.mark.parametrize("listen,host", [("127.0.0.1", "127.0.0.1"), ("localhost", "localhost"), ("[::1]", "[::1]")])
def test_it_listens_where_it_is_told_and_says_so(serve, listen, host):
    port = free_port()
    s = serve("--listen", f"{listen}:{port}", "--dev")
    assert s.url == f"http://{host}:{port}"
    conn = http.client.HTTPConnection(host.strip("[]"), port, timeout=harness.PATIENCE_S)
    conn.request("GET", "/healthz")
    assert conn.getresponse().status == 200
    conn.close()


def test_the_ready_line_is_the_only_output(serve):
    s = serve("--listen", "127.0.0.1:0", "--dev")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", s.url)
    process = s.process
    process.terminate()
    assert process.stdout.read() == b""


def test_pawl_dev_is_serve_with_dev(tmp_path):
    class Dev(harness.Server):
        def command(self):
            return [harness.PAWL, "dev", "--listen", "127.0.0.1:0"]

    s = Dev(tmp_path).start()
    try:
        assert s.client().get("/api/v1/runs").status == 200 and (tmp_path / "pawl.db").exists()
    finally:
        s.close()


# --- TLS ---


@pytest.fixture
def secure(serve, pem):
    cert, key = pem("server")
    return serve("--listen", "127.0.0.1:0", "--dev", "--tls-cert", cert, "--tls-key", key)


def https(server, cert, **context):
    trust = ssl.create_default_context(cafile=cert)
    for name, value in context.items():
        setattr(trust, name, value)
    return http.client.HTTPSConnection("127.0.0.1", server.port, timeout=harness.PATIENCE_S, context=trust)


def test_tls_serves_whoever_trusts_the_certificate(secure, pem):
    assert secure.url.startswith("https://")
    conn = https(secure, pem("server")[0])
    for method, path, body in (("GET", "/healthz", None), ("PUT", "/api/v1/workflows/w", '{"steps":[{"name":"a","type":"task","handler":"h"}]}'),
                               ("POST", "/api/v1/workflows/w/runs", '{"input":"%s"}' % ("x" * 300_000)), ("GET", "/api/v1/runs", None)):
        conn.request(method, path, body, {"Content-Type": "application/json"})
        r = conn.getresponse()
        data = r.read()
        assert r.status == 200, (path, data[:200])
    assert len(data) > 300_000  # and answers larger than a TLS record
    conn.close()


def test_tls_waits_and_wakes_as_plain_http_does(secure, pem):
    cert, got = pem("server")[0], []

    def call(method, path, body):
        conn = https(secure, cert)
        conn.request(method, path, body, {"Content-Type": "application/json"})
        out = conn.getresponse().read()
        conn.close()
        return out

    call("PUT", "/api/v1/workflows/w", '{"steps":[{"name":"a","type":"task","handler":"h"}]}')
    waiter = threading.Thread(target=lambda: got.append(call("POST", "/api/v1/jobs/claim", '{"worker_id":"w","wait_ms":30000}')))
    waiter.start()
    call("POST", "/api/v1/workflows/w/runs", "{}")
    waiter.join()
    assert b'"step":"a"' in got[0]


def test_plain_http_to_a_tls_port_is_told_to_use_https(secure, pem):
    r = pawl("run", "list", "--url", secure.url.replace("https:", "http:"))
    assert r.code != 0 and "This port speaks TLS: use https://" in r.err, r
    conn = https(secure, pem("server")[0])
    conn.request("GET", "/healthz")
    assert conn.getresponse().status == 200
    conn.close()


def test_a_stranger_to_the_certificate_does_not_trust_it(secure, pem):
    with pytest.raises(ssl.SSLCertVerificationError):
        https(secure, pem("stranger")[0]).request("GET", "/healthz")
    r = pawl("run", "list", "--url", secure.url)
    assert r.code == 3 and "certificate" in r.err.lower(), r


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_current_protocols_are_spoken(secure, pem, version):
    conn = https(secure, pem("server")[0], minimum_version=version, maximum_version=version)
    conn.request("GET", "/healthz")
    assert conn.getresponse().status == 200
    conn.close()


def handshake(server, *flags):
    """What `openssl s_client` agrees on with the server, or None. @SECLEVEL=0 lets it offer what it would not by itself."""
    r = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", *flags], input=b"", capture_output=True, timeout=harness.PATIENCE_S)
    agreed = re.search(rb"^New, (\S+), Cipher is (\S+)", r.stdout, re.M)
    assert agreed, r
    return None if agreed[2] == b"(NONE)" else agreed[2].decode()


@pytest.fixture(scope="module")
def rsa_pem(tmp_path_factory):
    """Static RSA key exchange is only on offer where the certificate's key is RSA."""
    folder = tmp_path_factory.mktemp("rsa")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", folder / "key", "-out", folder / "crt",
                    "-subj", "/CN=localhost"], check=True, capture_output=True)
    return str(folder / "crt"), str(folder / "key")


def test_old_protocols_and_suites_without_forward_secrecy_are_refused(serve, rsa_pem):
    server = serve("--listen", "127.0.0.1:0", "--dev", "--tls-cert", rsa_pem[0], "--tls-key", rsa_pem[1])
    for flags in (("-tls1",), ("-tls1_1",)):
        assert handshake(server, *flags, "-cipher", "ALL:@SECLEVEL=0") is None, flags
    for suite in ("AES128-SHA", "AES256-SHA256", "AES128-GCM-SHA256", "AES256-GCM-SHA384", "ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES256-SHA384",
                  "DHE-RSA-AES256-SHA", "CAMELLIA256-SHA", "kRSA", "aNULL", "eNULL"):
        assert handshake(server, "-tls1_2", "-cipher", f"{suite}:@SECLEVEL=0") is None, suite


def test_forward_secret_suites_are_accepted_with_either_kind_of_certificate(serve, pem, rsa_pem):
    for kind, (cert, key) in {"ECDSA": pem("server"), "RSA": rsa_pem}.items():
        server = serve("--listen", "127.0.0.1:0", "--dev", "--tls-cert", cert, "--tls-key", key)
        for suite in ("AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"):
            assert handshake(server, "-tls1_2", "-cipher", f"ECDHE-{kind}-{suite}") == f"ECDHE-{kind}-{suite}"
        for suite in ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"):
            assert handshake(server, "-tls1_3", "-ciphersuites", suite) == suite
        server.stop()


@pytest.mark.parametrize("cert,key", [("missing", "good"), ("good", "missing"), ("garbage", "good"), ("good", "garbage"), ("good", "of another"), ("empty", "good")])
def test_a_bad_certificate_exits_1_and_says_so(tmp_path, pem, cert, key):
    good = pem("server")
    (tmp_path / "garbage").write_text("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
    (tmp_path / "empty").write_text("")
    names = {"missing": str(tmp_path / "missing"), "garbage": str(tmp_path / "garbage"), "empty": str(tmp_path / "empty"), "of another": pem("stranger")[1]}
    r = pawl("serve", "--dev", "--listen", "127.0.0.1:0", "--tls-cert", names.get(cert, good[0]), "--tls-key", names.get(key, good[1]), cwd=tmp_path)
    assert r.code == 1 and r.out == "" and re.search("certificate|missing|empty", r.err), r


def served_certificate(server):
    return ssl.get_server_certificate(("127.0.0.1", server.port), timeout=harness.PATIENCE_S).strip()


def test_sighup_reads_the_certificate_again(serve, pem, tmp_path):
    cert, key = tmp_path / "cert", tmp_path / "key"

    def put(name):
        for source, to in zip(pem(name), (cert, key)):
            to.write_text(pathlib.Path(source).read_text())

    put("server")
    server = serve("--listen", "127.0.0.1:0", "--dev", "--tls-cert", str(cert), "--tls-key", str(key))
    conn = https(server, pem("server")[0])
    conn.request("GET", "/healthz")
    assert conn.getresponse().read()
    put("renewed")
    server.process.send_signal(signal.SIGHUP)
    renewed = pathlib.Path(pem("renewed")[0]).read_text().strip()
    harness.wait_until(lambda: served_certificate(server) == renewed, "the renewed certificate is served")
    conn.request("GET", "/healthz")  # what was connected goes on
    assert conn.getresponse().status == 200
    conn.close()
    key.write_text("nonsense")
    server.process.send_signal(signal.SIGHUP)
    harness.wait_until(lambda: "cannot reload the certificate" in server.log(), "the failure is logged")
    assert served_certificate(server) == renewed


def test_sighup_without_a_certificate_changes_nothing_and_says_so(serve):
    server = serve("--listen", "127.0.0.1:0", "--dev")
    server.process.send_signal(signal.SIGHUP)
    harness.wait_until(lambda: "nothing to reload" in server.log(), "the signal is noted")
    assert "reloaded" not in server.log() and server.client().get("/healthz").status == 200


def test_only_clients_with_a_certificate_of_the_ca_are_served(serve, pem):
    cert, key = pem("server")
    server = serve("--listen", "127.0.0.1:0", "--dev", "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", pem("friend")[0])

    def ask(name):
        trust = ssl.create_default_context(cafile=cert)
        if name:
            trust.load_cert_chain(*pem(name))
        conn = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=harness.PATIENCE_S, context=trust)
        conn.request("GET", "/healthz")
        status = conn.getresponse().status
        conn.close()
        return status

    assert ask("friend") == 200
    for name in ("stranger", None):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            ask(name)


def test_a_tls_server_drains_too(secure, pem):
    conn = https(secure, pem("server")[0])
    conn.request("GET", "/healthz")
    assert conn.getresponse().read()
    assert secure.stop() == 0
    conn.close()
