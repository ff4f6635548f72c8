"""Who may connect to the bus: tokens, passwords, credentials files, TLS."""
import base64
import json
import subprocess

import pytest

import harness
from harness import wait_until
from nats import nats_server
from publishing import bus_of, publishing_server, waiting


def test_a_token_and_a_password_in_the_url_are_used():
    for flags, who in ((["--auth", "s3cret"], "s3cret"), (["--user", "pawl", "--pass", "s3cret"], "pawl:s3cret")):
        with nats_server(*flags) as nats:
            with publishing_server(nats.url) as (server, api, tenant):
                wait_until(lambda: "not connected" in bus_of(api)["detail"] and "yet" not in bus_of(api)["detail"], "it is refused")
            with publishing_server(nats.url.replace("//", f"//{who}@")) as (server, api, tenant):
                api.start(tenant, "now", {"input": {"n": 1}})
                wait_until(lambda: bus_of(api)["status"] == "ok" and waiting(api) == 0, "it is let in")
                assert "s3cret" not in server.log() and "s3cret" not in api.get("/readyz").raw.decode()


def test_tls_is_spoken_with_a_server_whose_certificate_is_trusted(tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-keyout", str(key),
                    "-out", str(cert), "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"], check=True, capture_output=True)
    with nats_server("--tls", "--tlscert", str(cert), "--tlskey", str(key)) as nats:
        url = nats.url.replace("nats://", "tls://")
        with publishing_server(url) as (server, api, tenant):
            wait_until(lambda: bus_of(api)["detail"].startswith("not connected: ") and bus_of(api)["status"] == "failing", "an unknown certificate is refused")
        with publishing_server(url, "--bus-ca", str(cert)) as (server, api, tenant):
            api.start(tenant, "now", {"input": {"n": 1}})
            wait_until(lambda: bus_of(api)["status"] == "ok" and waiting(api) == 0, "everything is published over TLS")


# --- credentials files, made with openssl alone ---

PREFIXES = {"operator": 14 << 3, "account": 0, "user": 20 << 3}


def crc16(data):
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021) & 0xFFFF if crc & 0x8000 else crc << 1
    return crc


def base32(raw):
    return base64.b32encode(raw + crc16(raw).to_bytes(2, "little")).decode().rstrip("=")


class Identity:
    """An Ed25519 key in the form that NATS calls an nkey."""

    def __init__(self, folder, kind, name):
        self.kind, self.name = kind, name
        self.file = folder / f"{name}.pem"
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", self.file], check=True)
        show = [["openssl", "pkey", "-in", self.file, "-outform", "DER", *more] for more in ([], ["-pubout"])]
        private, public = (subprocess.run(c, check=True, capture_output=True).stdout[-32:] for c in show)
        prefix = PREFIXES[kind]
        self.public = base32(bytes([prefix]) + public)
        self.seed = base32(bytes([18 << 3 | prefix >> 5, (prefix & 31) << 3]) + private)

    def sign(self, folder, data):
        (folder / "data").write_bytes(data)
        return subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", self.file, "-in", folder / "data"], check=True, capture_output=True).stdout

    def says(self, folder, about, **claims):
        """A token in which this one vouches for another."""
        def part(value):
            return base64.urlsafe_b64encode(value).rstrip(b"=")

        body = {"jti": about.name, "iat": 1700000000, "iss": self.public, "name": about.name, "sub": about.public,
                "nats": {"type": about.kind, "version": 2, **claims}}
        text = part(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode()) + b"." + part(json.dumps(body).encode())
        return (text + b"." + part(self.sign(folder, text))).decode()


def test_a_credentials_file_is_used(tmp_path):
    operator, account, system, user = (Identity(tmp_path, *who) for who in (("operator", "boss"), ("account", "acme"), ("account", "sys"), ("user", "pawl")))
    most = {"limits": {name: -1 for name in ("subs", "data", "payload", "imports", "exports", "conn", "leaf", "mem_storage", "disk_storage", "streams", "consumer")}
            | {"wildcards": True}}
    config = f"""operator: "{operator.says(tmp_path, operator)}"
resolver: MEMORY
system_account: {system.public}
resolver_preload: {{ {account.public}: "{operator.says(tmp_path, account, **most)}", {system.public}: "{operator.says(tmp_path, system)}" }}
"""
    creds = tmp_path / "pawl.creds"
    creds.write_text(f"-----BEGIN NATS USER JWT-----\n{account.says(tmp_path, user, subs=-1, data=-1, payload=-1)}\n------END NATS USER JWT------\n\n"
                     f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n")
    with nats_server(config=config) as nats:
        with publishing_server(nats.url) as (server, api, tenant):
            wait_until(lambda: "not connected" in bus_of(api)["detail"] and "yet" not in bus_of(api)["detail"], "it is refused")
        with publishing_server(nats.url, "--bus-creds", str(creds)) as (server, api, tenant):
            api.start(tenant, "now", {"input": {"n": 1}})
            wait_until(lambda: bus_of(api)["status"] == "ok" and waiting(api) == 0, "it is let in")


def test_files_that_cannot_be_read_are_named_at_the_start(tmp_path):
    for flag in ("--bus-creds", "--bus-ca"):
        with pytest.raises(AssertionError, match="nothing-here"), harness.server("--bus", "nats://127.0.0.1:4222", flag, str(tmp_path / "nothing-here")):
            pass
