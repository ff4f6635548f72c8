// All tenants of the server, as far as the caller may see them.
import { useState } from "preact/hooks";
import { api, chooseTenant, curlOf, must, requestOf, tenant } from "../api/client";
import { go, href } from "../router";
import { AskButton } from "../ui/ask";
import { Command, CopyAs, Empty, PageHead, Time } from "../ui/bits";
import { usePages, useTitle } from "../ui/hooks";
import { PagedTable } from "../ui/list";

function NewTenant({ onDone }: { onDone: () => void }) {
  const [id, setId] = useState("");
  const [limit, setLimit] = useState("");
  const body = { max_concurrent_runs: limit === "" ? null : Number(limit) };
  return (
    <AskButton
      label="New tenant"
      needs="rule_server"
      title="New tenant"
      verb="Create"
      request={requestOf("PUT", `tenants/${id || "NAME"}`, body)}
      run={(key) =>
        must(api.PUT("/api/v1/tenants/{tenant_id}", { params: { path: { tenant_id: id }, header: { "Idempotency-Key": key } }, body })).then(
          () => "The tenant exists",
        )
      }
      onDone={onDone}
    >
      <label>
        Name
        <input required value={id} maxLength={64} pattern="[A-Za-z0-9_.:\-]+" spellcheck={false} onInput={(e) => setId(e.currentTarget.value)} />
      </label>
      <label>
        Active runs at once <span class="faint">empty: no limit</span>
        <input type="number" min={0} value={limit} onInput={(e) => setLimit(e.currentTarget.value)} />
      </label>
    </AskButton>
  );
}

export function Tenants() {
  useTitle("Tenants");
  const list = usePages((cursor) => must(api.GET("/api/v1/tenants", { params: { query: { limit: 200, ...(cursor === undefined ? {} : { cursor }) } } })), []);
  const open = (id: string): void => {
    chooseTenant(id);
    go(href("admission"));
  };
  return (
    <>
      <PageHead title="Tenants" lead="Each has its own runs, limits, keys and events. No request reaches another one's.">
        <CopyAs request={requestOf("GET", "tenants")} />
        <NewTenant onDone={list.reload} />
      </PageHead>
      <PagedTable
        label="Tenants"
        list={list}
        keyOf={(t) => t.id}
        columns={[
          {
            title: "Tenant",
            cell: (t) => (
              <>
                <button type="button" class="linkish" data-entry onClick={() => open(t.id)}>
                  {t.id}
                </button>{" "}
                {t.id === tenant.value && <span class="label">shown now</span>}
              </>
            ),
          },
          { title: "Active", cell: (t) => `${t.active_runs}${t.max_concurrent_runs === null ? "" : ` of ${t.max_concurrent_runs}`}`, numeric: true },
          { title: "Queued", cell: (t) => `${t.queued_runs}${t.max_queued_runs === null ? "" : ` of ${t.max_queued_runs}`}`, numeric: true },
          { title: "At the limit", cell: (t) => t.at_limit.replace("_", " ") },
          { title: "Weight", cell: (t) => t.weight, numeric: true },
          { title: "Created", cell: (t) => <Time at={t.created_at} /> },
        ]}
        empty={
          <Empty title="No tenants yet">
            <p>A tenant comes into being with its first run, or when its settings are written:</p>
            <Command text={curlOf("PUT", "tenants/acme", { max_concurrent_runs: 10 })} />
          </Empty>
        }
      />
    </>
  );
}
