"""Every number about slots and the queue, counted again from the runs alone and compared with what the file says."""
import collections
import hashlib
import json

import every_shard
import inspect_store

ACTIVE = ("pending", "running", "waiting", "paused")
Run = collections.namedtuple("Run", "num tenant workflow_id version status urgency input scopes")
Rule = collections.namedtuple("Rule", "path limit")
NO_LIMIT = float("inf")
KEY_BYTES_MAX = 256


def key_text(path, value):
    """The text that names a limit: what the path leads to in the input."""
    for part in path.split(".")[1:]:
        if isinstance(value, list):
            value = value[int(part)] if part.isdigit() and int(part) < len(value) else None
        else:
            value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)
    long = len(text.encode()) > KEY_BYTES_MAX
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest() if long else text


class Snapshot:
    """One moment of a store, also of one that a server has open."""

    def __init__(self, store):
        store.begin()
        self._read(store.rows)

    def _read(self, rows):
        self.runs = [Run(*row[:6], json.loads(row[6]), row[7]) for row in rows(
            "SELECT num, tenant, workflow_id, workflow_version, status, -priority, input, coalesce(scopes, '') FROM runs"
            " WHERE finished_at IS NULL AND parent_run IS NULL AND start_at IS NULL")]  # children and runs not yet due count nowhere
        self.tenants = {num: row for num, *row in rows("SELECT t.num, t.id, t.max_concurrent_runs, c.active_runs, c.queued_runs FROM tenants t JOIN tenant_counters c ON c.tenant = t.num")}
        self.rules = {(tenant, wid, version): self._rules_of(json.loads(text)) for tenant, wid, version, text in rows(
            "SELECT tenant, workflow_id, version, definition FROM workflow_versions")}
        self.newest = {(tenant, wid): version for tenant, wid, version in rows("SELECT tenant, id, latest_version FROM workflows")}
        self.scopes = {num: row for num, *row in rows("SELECT num, tenant, workflow_id, path, key, active_runs, queued_runs FROM scopes")}
        self.slots = rows("SELECT scope, run FROM slots")
        self.holding = rows("SELECT tenant, run FROM holding")
        self.indexed = {every_shard.shard_of(through): through for through, in rows("SELECT through FROM indexed WHERE name = 'runs'")}
        self.lines = {num: row for num, *row in rows("SELECT num, tenant, scopes, waits_for, urgency, run FROM lines")}
        self.line_scopes = rows("SELECT scope, line FROM line_scopes")
        self.queue = rows("SELECT line, urgency, run, tenant FROM queue")

    @staticmethod
    def _rules_of(definition):
        found = definition.get("concurrency") or []
        return [Rule(rule.get("key", ""), rule["limit"]) for rule in (found if isinstance(found, list) else [found])]

    # --- what the runs say ---

    @property
    def active(self):
        return [run for run in self.runs if run.status in ACTIVE]

    @property
    def queued(self):
        return [run for run in self.runs if run.status == "queued"]

    def scope_nums(self, run):
        return [int(num) for num in run.scopes.split(",") if num]

    def scope_names(self, run):
        """The limits that the run's own version puts it under."""
        rules = self.rules[run.tenant, run.workflow_id, run.version]
        return {(run.tenant, run.workflow_id, rule.path, key_text(rule.path, run.input) if rule.path else "") for rule in rules}

    def limit_of(self, scope):
        """That of the newest version of its workflow."""
        tenant, wid, path = self.scopes[scope][:3]
        newest = self.rules[tenant, wid, self.newest[tenant, wid]]
        return next((rule.limit for rule in newest if rule.path == path), NO_LIMIT)

    def limit_of_tenant(self, tenant):
        limit = self.tenants[tenant][1]
        return NO_LIMIT if limit is None else limit

    # --- comparisons: each a list of what differs ---

    def wrong_counters(self):
        """What the file says, by name, against what the runs say."""
        active = collections.Counter(run.tenant for run in self.active)
        queued = collections.Counter(run.tenant for run in self.queued)
        scope_active = collections.Counter(num for run in self.active for num in self.scope_nums(run))
        scope_queued = collections.Counter(num for run in self.queued for num in self.scope_nums(run))
        lines = collections.defaultdict(list)
        for run in self.queued:
            lines[run.tenant, run.scopes].append((run.urgency, run.num))
        line_of = {(tenant, scopes): num for num, (tenant, scopes, *_) in self.lines.items()}
        said = {
            "tenants": {num: (row[2], row[3]) for num, row in self.tenants.items()},
            "scopes": {num: (row[4], row[5]) for num, row in self.scopes.items()},
            "slots": sorted(self.slots),
            "holding": sorted(self.holding),
            "lines": {(row[0], row[1]): (row[3], row[4]) for row in self.lines.values()},
            "line_scopes": sorted(self.line_scopes),
            "queue": sorted(self.queue),
        }
        counted = {
            "tenants": {num: (active[num], queued[num]) for num in self.tenants},
            "scopes": {num: (scope_active[num], scope_queued[num]) for num in scope_active | scope_queued},
            "slots": sorted((num, run.num) for run in self.active for num in self.scope_nums(run)),
            "holding": sorted((run.tenant, run.num) for run in self.active if run.num <= self.indexed.get(every_shard.shard_of(run.num), 0)),
            "lines": {line: min(stand) for line, stand in lines.items()},
            "line_scopes": sorted((int(num), line_of.get((tenant, scopes))) for tenant, scopes in lines for num in scopes.split(",") if num),
            "queue": sorted((line_of.get((run.tenant, run.scopes)), run.urgency, run.num, run.tenant) for run in self.queued),
        }
        return [f"{name}: the file says {said[name]}, the runs say {counted[name]}" for name in said if said[name] != counted[name]]

    def wrong_scopes(self):
        """Runs that count under other limits than their definition and input say."""
        names = {num: tuple(row[:4]) for num, row in self.scopes.items()}
        return [f"run {run.num} counts under {run.scopes!r}" for run in self.runs
                if sorted(names.get(num, ()) for num in self.scope_nums(run)) != sorted(self.scope_names(run))]

    def wrong_lines(self):
        """Lines that wait for a limit which is not theirs."""
        return [f"line {num} waits for {waits_for}" for num, (_, scopes, waits_for, *_) in self.lines.items()
                if str(waits_for) not in ["0", *scopes.split(",")]]

    def differences(self):
        return self.wrong_counters() + self.wrong_scopes() + self.wrong_lines()

    def room(self):
        """({tenant: slots left}, {scope: slots left}), by the runs; negative after a limit was lowered."""
        of_tenant = {num: self.limit_of_tenant(num) for num in self.tenants}
        of_scope = {num: self.limit_of(num) for num in self.scopes}
        for run in self.active:
            of_tenant[run.tenant] -= 1
            for num in self.scope_nums(run):
                of_scope[num] -= 1
        return of_tenant, of_scope

    def startable(self):
        """Queued runs that fit under all their limits: none, once the server has come to rest."""
        of_tenant, of_scope = self.room()
        return [run for run in self.queued if of_tenant[run.tenant] > 0 and all(of_scope[num] > 0 for num in self.scope_nums(run))]


def snapshot(db):
    with inspect_store.opened(db) as store:
        return Snapshot(store)


def assert_store_recounted(store):
    """The counters, holders and lines of the store are exactly those of its runs."""
    wrong = Snapshot(store).differences()
    assert not wrong, "\n".join(wrong)


def assert_recounted(db):
    with inspect_store.opened(db) as store:
        assert_store_recounted(store)


def assert_within_limits(db, *tenants):
    """No limit of these tenants has more runs than it says. Only where limits were never lowered."""
    s = snapshot(db)
    of_tenant, of_scope = s.room()
    left = {f"tenant {s.tenants[num][0]}": room for num, room in of_tenant.items() if s.tenants[num][0] in tenants}
    left.update({f"{s.scopes[num][1:4]}": room for num, room in of_scope.items() if s.tenants[s.scopes[num][0]][0] in tenants})
    assert left and all(room >= 0 for room in left.values()), left
