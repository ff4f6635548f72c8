// API keys: who may do what.
import { useState } from "preact/hooks";
import { api, curlOf, must, requestOf } from "../api/client";
import type { ApiKey, Role } from "../api/types";
import { AskButton } from "../ui/ask";
import { Card, Command, CopyAs, Empty, PageHead, Time } from "../ui/bits";
import { usePages, useTitle } from "../ui/hooks";
import { PagedTable } from "../ui/list";

const ROLES: Record<Role, string> = {
  viewer: "reads",
  worker: "claims and completes jobs",
  approver: "decides approvals",
  operator: "starts, cancels and retries runs",
  admin: "changes limits, workflows and keys",
};

function NewKey({ onMade }: { onMade: (key: string) => void }) {
  const [role, setRole] = useState<Role>("viewer");
  const [label, setLabel] = useState("");
  const body = { role, ...(label === "" ? {} : { label }) };
  return (
    <AskButton
      label="New API key"
      needs="admin"
      title="New API key"
      verb="Create"
      request={requestOf("POST", "keys", body)}
      run={async (key) => {
        const made = await must(api.POST("/api/v1/keys", { params: { header: { "Idempotency-Key": key } }, body }));
        onMade(made.key ?? "");
        return "The key is active";
      }}
    >
      <label>
        Role
        <select value={role} onChange={(e) => setRole(e.currentTarget.value as Role)}>
          {Object.entries(ROLES).map(([name, may]) => (
            <option key={name} value={name}>
              {name}: {may}
            </option>
          ))}
        </select>
      </label>
      <label>
        Label <span class="faint">who or what uses it</span>
        <input value={label} maxLength={256} onInput={(e) => setLabel(e.currentTarget.value)} />
      </label>
    </AskButton>
  );
}

function Revoke({ of, onDone }: { of: ApiKey; onDone: () => void }) {
  if (of.revoked_at !== null)
    return (
      <span class="faint">
        revoked <Time at={of.revoked_at} />
      </span>
    );
  return (
    <AskButton
      label="Revoke"
      needs="admin"
      small
      danger
      title={`Revoke the key ${of.prefix}…?`}
      verb="Revoke"
      request={requestOf("DELETE", `keys/${of.id}`)}
      run={(key) =>
        must(api.DELETE("/api/v1/keys/{key_id}", { params: { path: { key_id: of.id }, header: { "Idempotency-Key": key } } })).then(() => "The key is revoked")
      }
      onDone={onDone}
    >
      <p>Requests with it are refused from now on. This cannot be undone.</p>
    </AskButton>
  );
}

export function Access() {
  useTitle("API keys");
  const [made, setMade] = useState<string | null>(null);
  const list = usePages((cursor) => must(api.GET("/api/v1/keys", { params: { query: { limit: 100, ...(cursor === undefined ? {} : { cursor }) } } })), []);
  return (
    <>
      <PageHead title="API keys" lead="Each key has a role and belongs to one tenant or to all.">
        <CopyAs request={requestOf("GET", "keys")} />
        <NewKey
          onMade={(key) => {
            setMade(key);
            list.reload();
          }}
        />
      </PageHead>
      {made !== null && (
        <Card
          title="The new key"
          aside={
            <button type="button" onClick={() => setMade(null)}>
              I have it
            </button>
          }
        >
          <p>Copy it now: it is not shown again.</p>
          <Command text={made} />
        </Card>
      )}
      <PagedTable
        label="API keys"
        list={list}
        keyOf={(key) => key.id}
        columns={[
          { title: "Key", cell: (key) => <code>{key.prefix}…</code> },
          { title: "Role", cell: (key) => <strong>{key.role}</strong> },
          { title: "Tenant", cell: (key) => (key.tenant === "*" ? "all" : key.tenant) },
          { title: "Label", cell: (key) => key.label ?? "–" },
          { title: "Last used", cell: (key) => <Time at={key.last_used_at} /> },
          { title: "Created", cell: (key) => <Time at={key.created_at} /> },
          { title: "Actions", cell: (key) => <Revoke of={key} onDone={list.reload} /> },
        ]}
        empty={
          <Empty title="No API keys yet">
            <p>
              A server that was started with <code>--dev</code> needs none. Otherwise make one for each program and each role:
            </p>
            <Command text={curlOf("POST", "keys", { role: "worker", label: "the worker of the shop" })} />
          </Empty>
        }
      />
    </>
  );
}
