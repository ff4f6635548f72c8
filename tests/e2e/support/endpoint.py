"""How the tests reach a server. With PAWL_E2E_TLS=1 every server serves TLS, with a certificate that is made once per session, and every client speaks
it; a server that is started with `tls=False`, because its test is about plain text, keeps its plain port."""
import atexit
import functools
import http.client
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import tempfile

TLS = os.environ.get("PAWL_E2E_TLS") == "1"
_FOLDER = "PAWL_E2E_TLS_FOLDER"  # of the certificate: a client that is a process of its own finds it by this variable
_plain_ports = set()


def make_certificate(folder, name):
    """(certificate file, key file), self-signed."""
    cert, key = pathlib.Path(folder) / f"{name}.crt", pathlib.Path(folder) / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-keyout", key,
                    "-out", cert, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1"], check=True, capture_output=True)
    return str(cert), str(key)


@functools.lru_cache(maxsize=None)
def certificate():
    """The session's."""
    if _FOLDER not in os.environ:
        folder = tempfile.mkdtemp(prefix="pawl-tls-")
        make_certificate(folder, "server")
        os.environ[_FOLDER] = folder
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder = pathlib.Path(os.environ[_FOLDER])
    return str(folder / "server.crt"), str(folder / "server.key")


@functools.lru_cache(maxsize=None)
def trust():
    return ssl.create_default_context(cafile=certificate()[0])


def server_flags():
    return ["--tls-cert", certificate()[0], "--tls-key", certificate()[1]] if TLS else []


def client_environment():
    """For programs that are clients: pawl itself, curl, Python and Node."""
    return dict.fromkeys(("PAWL_CA_FILE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"), certificate()[0]) if TLS else {}


def started(url):
    """A server says that it listens there."""
    port = int(url.rsplit(":", 1)[1])
    (_plain_ports.discard if url.startswith("https:") else _plain_ports.add)(port)
    return port


def is_secure(port):
    return TLS and port not in _plain_ports


def url(port):
    return f"{'https' if is_secure(port) else 'http'}://127.0.0.1:{port}"


def connect(port, timeout=60, receive_buffer=None):
    """A socket on which requests can be sent."""
    sock = socket.socket()
    if receive_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.settimeout(timeout)
    try:
        sock.connect(("127.0.0.1", port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return trust().wrap_socket(sock, server_hostname="localhost") if is_secure(port) else sock
    except BaseException:
        sock.close()
        raise


def http_connection(port, timeout=60, host="127.0.0.1"):
    if is_secure(port):
        return http.client.HTTPSConnection(host, port, timeout=timeout, context=trust())
    return http.client.HTTPConnection(host, port, timeout=timeout)
