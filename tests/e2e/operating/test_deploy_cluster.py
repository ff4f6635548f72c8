"""What deploy/cluster gives to people who run three nodes: files that their programs accept, that agree with each other, and that work."""
import re
import shutil
import subprocess
import sys

import pytest
import yaml

import deployment
from deployment import CLUSTER, NODES
from harness import PAWL, ROOT, wait_until

sys.path.append(str(ROOT / "tests/tools"))
import with_postgres  # noqa: E402

# Of the compose specification; a service with another word is a slip of the pen, which Compose refuses.
SERVICE_WORDS = {"image", "command", "restart", "stop_grace_period", "environment", "depends_on", "ports", "volumes", "healthcheck"}
LISTEN, METRICS = "7295", "7296"


@pytest.fixture(scope="module")
def postgres():
    with with_postgres.start() as cluster:
        yield cluster


def services():
    return deployment.compose()["services"]


def option(command, name):
    return command[command.index(name) + 1]


def help_of_serve():
    return subprocess.run([PAWL, "serve", "--help"], check=True, capture_output=True, text=True).stdout


# --- the compose file ---

def test_the_compose_file_has_only_words_that_compose_knows():
    document = deployment.compose()
    assert {word for word in document if not word.startswith("x-")} == {"name", "services", "volumes"}
    for name, service in document["services"].items():
        assert set(service) <= SERVICE_WORDS, (name, set(service) - SERVICE_WORDS)
        assert re.fullmatch(r"[a-z/]+:v?\d[\w.]*", service["image"]), f"{name}: an image without a version is another one tomorrow"


def test_what_the_compose_file_names_is_there():
    document = deployment.compose()
    for name, service in document["services"].items():
        assert set(service.get("depends_on", {})) <= set(document["services"]), name
        for source in [volume.split(":")[0] for volume in service.get("volumes", [])]:
            there = (CLUSTER / source).exists() if source.startswith(".") else source in document["volumes"]
            assert there, f"{name}: {source}"
    for name, service in document["services"].items():
        waits_for = {other for other, how in service.get("depends_on", {}).items() if how["condition"] == "service_healthy"}
        assert all("healthcheck" in document["services"][other] for other in waits_for), name


def test_every_secret_of_the_compose_file_is_in_the_example():
    wanted = set(re.findall(r"\$\{(\w+)", (CLUSTER / "compose.yml").read_text()))
    assert wanted == set(deployment.environment_file((CLUSTER / "example.env").read_text()))


def test_the_image_is_the_one_of_this_version():
    version = re.search(r"project\(pawl VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    assert {services()[name]["image"] for name in NODES} == {f"pawl:{version}"}


def test_every_option_of_a_node_is_one_of_pawl_serve():
    known = help_of_serve()
    for name in NODES:
        command, _ = deployment.compose_node(name)
        used = {word for word in command if word.startswith("--")}
        assert used <= set(re.findall(r"--[\w-]+", known)), name
        unit_command, environment = deployment.unit_node(name)
        assert {word for word in unit_command if word.startswith("--")} <= set(re.findall(r"--[\w-]+", known))
        assert {word for word in environment if word.startswith("PAWL_")} <= set(re.findall(r"PAWL_\w+", known))


def test_nodes_proxy_and_prometheus_agree_on_names_and_ports():
    for name in NODES:
        command, _ = deployment.compose_node(name)
        assert option(command, "--node") == name
        assert option(command, "--advertise") == f"http://{name}:{LISTEN}"
        assert [option(command, flag).rsplit(":", 1)[1] for flag in ("--listen", "--metrics-listen")] == [LISTEN, METRICS]
    proxy = re.findall(r"^\s+server (\S+) (\S+)$", (CLUSTER / "haproxy.cfg").read_text(), re.M)
    assert proxy == [(name, f"{name}:{LISTEN}") for name in NODES]
    assert services()["proxy"]["ports"] == [f"127.0.0.1:{LISTEN}:{LISTEN}"]
    scraped = yaml.safe_load((CLUSTER / "prometheus.yml").read_text())["scrape_configs"]
    assert [(s["job_name"], s["static_configs"][0]["targets"]) for s in scraped] == [("pawl", [f"{name}:{METRICS}" for name in NODES])]


def test_database_bus_and_data_source_are_services():
    hosts = {name: option(services()["node-1"]["command"], flag) for name, flag in (("postgres", "--store"), ("nats", "--bus"))}
    assert hosts == {"postgres": "postgres://pawl@postgres/pawl", "nats": "nats://nats:4222"}
    environment = services()["postgres"]["environment"]
    assert (environment["POSTGRES_USER"], environment["POSTGRES_DB"]) == ("pawl", "pawl")
    source = yaml.safe_load((CLUSTER / "grafana/datasources.yml").read_text())["datasources"][0]
    assert source["url"] == "http://prometheus:9090" and "prometheus" in services()
    folder = yaml.safe_load((CLUSTER / "grafana/dashboards.yml").read_text())["providers"][0]["options"]["path"]
    assert f"../grafana:{folder}:ro" in services()["grafana"]["volumes"]


# --- what other programs say of the files ---

def test_haproxy_accepts_its_configuration():
    done = subprocess.run(["haproxy", "-c", "-f", CLUSTER / "haproxy.cfg"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_prometheus_accepts_its_configuration(tmp_path):
    for volume in services()["prometheus"]["volumes"]:
        source, target = volume.split(":")[:2]
        if source.startswith("."):
            shutil.copy(CLUSTER / source, tmp_path / target.removeprefix("/etc/prometheus/"))
    done = subprocess.run(["promtool", "check", "config", tmp_path / "prometheus.yml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("unit", ["pawl.service", "cluster/pawl@.service"])
def test_systemd_accepts_the_unit(unit, tmp_path):
    text = (ROOT / "deploy" / unit).read_text()
    file = tmp_path / unit.rsplit("/", 1)[-1].replace("@", "@node-1")
    file.write_text(text.replace("/usr/local/bin/pawl", PAWL))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", file], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_systemd_accepts_the_unit_with_tls(tmp_path):
    (tmp_path / "pawl@.service").write_text((CLUSTER / "pawl@.service").read_text().replace("/usr/local/bin/pawl", PAWL))
    (tmp_path / "pawl@.service.d").mkdir()
    shutil.copy(CLUSTER / "tls.conf", tmp_path / "pawl@.service.d")
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", tmp_path / "pawl@node-1.service"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    variables = set(re.findall(r"PAWL_\w+", "".join(deployment.unit_settings((CLUSTER / "tls.conf").read_text(), "Environment"))))
    assert variables == {"PAWL_TLS_CERT", "PAWL_TLS_KEY", "PAWL_NODE_CA"} and variables <= set(re.findall(r"PAWL_\w+", help_of_serve()))


def test_a_node_has_more_time_to_stop_than_it_needs():
    text = (CLUSTER / "pawl@.service").read_text()
    grace = {services()[name]["stop_grace_period"] for name in NODES}
    assert grace == {"60s"} and deployment.unit_settings(text, "TimeoutStopSec") == ["60"]


# --- running ---

@pytest.mark.parametrize("node_of", [deployment.compose_node, deployment.unit_node], ids=["compose", "systemd"])
def test_three_nodes_behind_the_proxy_serve_while_one_of_them_restarts(postgres, tmp_path, node_of):
    with deployment.running(postgres, tmp_path, node_of) as d:
        through = {name: d.client(name) for name in (*NODES, "proxy")}
        tenants = [through["proxy"].tenant() for _ in range(4)]
        for tenant in tenants:
            through["proxy"].workflow(tenant)
            replies = [through[name].start(tenant, key="k") for name in (*NODES, "proxy")]
            assert [(r.status, r.json["created"]) for r in replies] == [(200, True)] + [(200, False)] * 3
        for name, port in d.metrics_ports.items():
            page = deployment.Client(port).get("/metrics").raw.decode()
            assert "\npawl_shards_unowned 0\n" in page and re.search(r"^pawl_directory_read_timestamp_seconds \d", page, re.M), name
            assert len(re.findall(r"^pawl_shard_owner\{.*\} 1$", page, re.M)) == deployment.SHARDS // len(NODES), name

        assert d.stop("node-2") == 0
        d.settle("node-1", "node-3")
        for tenant in tenants:
            replies = [through["proxy"].start(tenant, key=key) for key in ("k", "k2")]
            assert [(r.status, r.json["created"]) for r in replies] == [(200, False), (200, True)]

        d.start("node-2")
        wait_until(lambda: d.answering() == set(NODES), "the proxy sends it requests again", 60)
        d.settle(*NODES)
