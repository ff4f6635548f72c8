"""A real OpenID provider from npm (tests/oidc), and a browser that follows its redirects and fills in its forms."""
import contextlib
import html
import http.client
import json
import re
import subprocess
import urllib.parse

import foreign
import harness

FOLDER = harness.ROOT / "tests" / "oidc"


def install():
    foreign.npm_ci(FOLDER)


@contextlib.contextmanager
def provider(redirect_uri, alg="RS256", **client):
    """Its issuer."""
    install()
    told = json.dumps({"client_id": "pawl", "redirect_uris": [redirect_uri], **client})
    process = subprocess.Popen(["node", "provider.mjs", told, alg], cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


class Browser:
    """Keeps cookies by host and path as browsers do, and follows no redirect by itself."""

    def __init__(self):
        self.cookies, self.lines = {}, []

    def keep(self, url, line):
        parts = [part.strip() for part in line.split(";")]
        name, _, value = parts[0].partition("=")
        said = {key.lower(): v for key, _, v in (part.partition("=") for part in parts[1:])}
        path = said.get("path") or url.path.rsplit("/", 1)[0] or "/"
        self.cookies[url.netloc, path, name] = None if said.get("max-age") == "0" or value == "" else value

    def sent_to(self, url):
        return "; ".join(f"{name}={value}" for (host, path, name), value in self.cookies.items()
                         if value is not None and host == url.netloc and (url.path + "/").startswith(path.rstrip("/") + "/"))

    def ask(self, method, address, form=None, headers=None):
        url = urllib.parse.urlsplit(address)
        conn = http.client.HTTPConnection(url.hostname, url.port, timeout=harness.PATIENCE_S)
        head = {"Accept": "text/html", **({"Cookie": self.sent_to(url)} if self.sent_to(url) else {}), **(headers or {})}
        body = None if form is None else urllib.parse.urlencode(form)
        if body is not None:
            head["Content-Type"] = "application/x-www-form-urlencoded"
        conn.request(method, url.path + ("?" + url.query if url.query else ""), body, head)
        r = conn.getresponse()
        raw = r.read()
        self.lines = r.headers.get_all("Set-Cookie") or []
        for line in self.lines:
            self.keep(url, line)
        conn.close()
        to = r.headers.get("Location")
        return harness.Reply(r.status, {k.lower(): v for k, v in r.getheaders()}, raw), to and urllib.parse.urljoin(address, to)

    def until(self, address, stop):
        """Follows redirects until one leads to a place that begins with `stop`, or to a page."""
        for _ in range(12):
            if address.startswith(stop):
                return None, address
            r, to = self.ask("GET", address)
            if to is None:
                return r, address
            address = to
        raise AssertionError(f"redirects without end: {address}")

    def sign_in_as(self, name, address, stop):
        """From the first redirect through the provider's two forms: name, consent. The address that it sends back to."""
        while True:
            page, address = self.until(address, stop)
            if page is None:
                return address
            assert page.status == 200, page
            action = html.unescape(re.search(rb'action="([^"]+)"', page.raw)[1].decode())
            prompt = re.search(rb'name="prompt" value="(\w+)"', page.raw)[1].decode()
            form = {"prompt": prompt, **({"login": name, "password": "x"} if prompt == "login" else {})}
            _, address = self.ask("POST", urllib.parse.urljoin(address, action), form)
