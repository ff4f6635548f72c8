"""The web console's files: what they are sent as, how long they may be kept, and where they are. What they show: console/e2e."""
import gzip
import re

import pytest

import harness
from checks import assert_problem
from rawhttp import Wire

ROOT = "root-key-for-tests-0123456789abcdef"
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
          "base-uri 'self'; form-action 'none'; frame-ancestors 'none'")


@pytest.fixture(scope="module")
def browser(dev_server):
    return dev_server.client()


def assets(page):
    return re.findall(r'(?:src|href)="\./([^"]+)"', page)


@pytest.fixture(scope="module")
def script(browser):
    """The path of the page's script."""
    page = browser.get("/console/").raw.decode()
    return "/console/" + next(path for path in assets(page) if path.endswith(".js"))


@pytest.mark.parametrize("path, base", [("/console/", "./"), ("/console/runs", "./"), ("/console/runs/0190b3c4", "../"), ("/console/a/b/c/d", "../../../"),
                                        ("/console/workflows/a.b", "../"), ("/console/workflows/a%2Fb", "../"), ("/console/runs/", "../")])
def test_every_place_is_the_page_and_finds_its_way_back(browser, path, base):
    r = browser.get(path)
    assert r.status == 200 and r.header("Content-Type") == "text/html; charset=utf-8"
    assert f'<base href="{base}" />'.encode() in r.raw
    assert r.header("Cache-Control") == "no-cache"


def test_the_page_has_no_code_of_its_own_and_names_no_other_host(browser):
    page = browser.get("/console/").raw.decode()
    assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\son\w+=|\sstyle=|https?://|=\"//", page)
    assert len(assets(page)) >= 3


def test_everything_that_the_page_names_is_there_and_may_be_kept(browser):
    types = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
    for path in assets(browser.get("/console/").raw.decode()):
        r = browser.get(f"/console/{path}")
        assert r.status == 200 and r.header("Content-Type") == types[path.rsplit(".", 1)[1]], path
        hashed = path.startswith("assets/")
        assert r.header("Cache-Control") == ("public, max-age=31536000, immutable" if hashed else "no-cache"), path


def test_nothing_that_is_sent_names_another_host(browser, script):
    found = set(re.findall(rb"https?://[\w.-]+", browser.get(script).raw))
    shown = {b"https://example.com", b"http://127.0.0.1"}  # the example of a webhook, and where a server of one's own listens
    assert found <= {b"http://www.w3.org", *shown}, "only the names of XML namespaces, and what a page shows"


@pytest.mark.parametrize("path", ["/console/assets/nothing.js", "/console/assets/", "/console/a/b/c/d/e/f"])
def test_a_file_that_is_not_there_is_404_and_not_the_page(browser, path):
    assert_problem(browser.get(path), 404, "NOT_FOUND")


@pytest.mark.parametrize("path", ["/", "/console"])
def test_the_root_and_the_name_without_a_slash_lead_to_the_console_below_any_prefix(browser, path):
    r = browser.get(path)
    assert r.status == 308 and r.header("Location") == "console/"


@pytest.mark.parametrize("accepts, coding", [("br, gzip", "br"), ("gzip, br;q=0", "gzip"), ("GZIP;q=0.5", "gzip"), ("identity", None), ("br;q=0.000", None),
                                             ("deflate", None), ("", None)])
def test_the_best_form_that_the_client_accepts_is_sent(browser, script, accepts, coding):
    r = browser.get(script, headers={"Accept-Encoding": accepts})
    assert r.header("Content-Encoding") == coding and r.header("Vary") == "Accept-Encoding"
    plain = browser.get(script, headers={"Accept-Encoding": "identity"}).raw
    assert len(plain) > 50000 and (coding is None) == (r.raw == plain)
    if coding == "gzip":
        assert gzip.decompress(r.raw) == plain


def test_forms_have_tags_of_their_own_and_a_known_one_is_304(browser, script):
    tags = [browser.get(script, headers={"Accept-Encoding": a}).header("ETag") for a in ("br", "gzip", "identity")]
    assert len(set(tags)) == 3
    for known in (tags[1], f'"x", W/{tags[1]}', "*"):
        r = browser.get(script, headers={"Accept-Encoding": "gzip", "If-None-Match": known})
        assert r.status == 304 and r.raw == b"" and r.header("ETag") == tags[1] and r.header("Content-Encoding") is None
    assert browser.get(script, headers={"Accept-Encoding": "br", "If-None-Match": tags[1]}).status == 200


def test_head_tells_the_same_without_the_content(dev_server, browser, script):
    whole = browser.get(script)
    with Wire(dev_server.port) as wire:
        wire.send(f"HEAD {script} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        head = wire.answer(head_only=True)
    assert head.status == 200 and head.header("Content-Length") == str(len(whole.raw)) and head.header("ETag") == whole.header("ETag")
    assert_problem(browser.post("/console/", {}), 405, "METHOD_NOT_ALLOWED")


def test_every_file_has_the_policy(browser, script):
    for path in ("/console/", "/console/runs/x", "/console/icon.svg", script):
        r = browser.get(path)
        assert r.header("Content-Security-Policy") == POLICY, path
        assert r.header("X-Content-Type-Options") == "nosniff" and r.header("Referrer-Policy") == "no-referrer"


def test_a_link_on_another_site_opens_it_but_no_page_there_loads_its_files(browser, script):
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert browser.get("/console/approvals/0190b3c4", headers=link).status == 200
    assert_problem(browser.get(script, headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}), 403, "CROSS_SITE_REQUEST")


def test_the_files_need_no_key():
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": ROOT}) as s:
        assert s.client().get("/console/").status == 200
