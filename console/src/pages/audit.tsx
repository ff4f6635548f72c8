// Who changed what, and whether the record is whole.
import { useState } from "preact/hooks";
import { api, apiUrl, Failure, must, requestOf } from "../api/client";
import type { AuditEntry, AuditVerdict } from "../api/types";
import { plural } from "../logic/words";
import { go, href, query } from "../router";
import { Card, CopyAs, Empty, FullTime, Json, PageHead, ProblemBox } from "../ui/bits";
import { usePages, useTitle } from "../ui/hooks";
import { PagedTable } from "../ui/list";
import { TextFilter } from "../ui/text_filter";

function Verification() {
  const [verdict, setVerdict] = useState<AuditVerdict | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const verify = (): void =>
    void must(api.GET("/api/v1/audit/verify", {})).then(
      (found) => {
        setFailure(null);
        setVerdict(found);
      },
      (e: unknown) => setFailure(e as Failure),
    );
  return (
    <Card
      title="Is the record whole?"
      aside={
        <>
          <button type="button" class="primary" onClick={verify}>
            Verify
          </button>
          <CopyAs request={requestOf("GET", "audit/verify")} />
        </>
      }
    >
      <p class="faint">Each entry holds the hash of the one before it. An entry that was changed, removed or added later breaks the chain.</p>
      {failure !== null && <ProblemBox failure={failure} />}
      {verdict?.ok === true && (
        <p class="outcome" role="status">
          {plural(verdict.checked, "entry").replace("entrys", "entries")} checked, nothing is missing or changed.
          {verdict.head !== null && <code class="hash"> {verdict.head.hash}</code>}
        </p>
      )}
      {verdict?.ok === false && (
        <div class="problem" role="alert">
          <strong>The chain is broken</strong>
          <Json value={verdict.broken} label="Where it is broken" />
        </div>
      )}
    </Card>
  );
}

interface Asked {
  actor: string;
  action: string;
}

function Filters({ asked }: { asked: Asked }) {
  const put = (change: Partial<Asked>): void => {
    const next = new URLSearchParams(Object.entries({ ...asked, ...change }).filter(([, value]) => value !== ""));
    go(`${href("audit")}${next.size === 0 ? "" : `?${next.toString()}`}`, true);
  };
  return (
    <form class="filters" onSubmit={(e) => e.preventDefault()}>
      <label>
        Who
        <TextFilter data-filter value={asked.actor} placeholder="anyone" enter={(actor) => put({ actor })} />
      </label>
      <label>
        Action
        <TextFilter value={asked.action} placeholder="such as tenant.update" enter={(action) => put({ action })} />
      </label>
    </form>
  );
}

function Detail({ entry }: { entry: AuditEntry }) {
  if (entry.detail == null) return <span class="faint">–</span>;
  return (
    <details>
      <summary>Show</summary>
      <Json value={entry.detail} label={`Detail of entry ${entry.seq}`} />
    </details>
  );
}

export function Audit() {
  useTitle("Audit");
  const asked: Asked = { actor: query.value.get("actor") ?? "", action: query.value.get("action") ?? "" };
  const filter = { ...(asked.actor === "" ? {} : { actor: asked.actor }), ...(asked.action === "" ? {} : { action: asked.action }) };
  const list = usePages(
    (cursor) => must(api.GET("/api/v1/audit", { params: { query: { order: "newest", limit: 100, ...filter, ...(cursor === undefined ? {} : { cursor }) } } })),
    [asked.actor, asked.action],
  );
  return (
    <>
      <PageHead title="Audit" lead="Every change by people and programs, in a chain that shows tampering.">
        <a class="button" href={apiUrl("audit/export")} target="_blank" rel="noreferrer">
          Export
        </a>
        <CopyAs request={requestOf("GET", "audit")} />
      </PageHead>
      <Verification />
      <Filters asked={asked} />
      <PagedTable
        label="Audit entries"
        list={list}
        keyOf={(entry) => `${entry.shard ?? 0} ${entry.chain ?? 0} ${entry.seq}`}
        columns={[
          { title: "Entry", cell: (entry) => entry.seq, numeric: true },
          { title: "When", cell: (entry) => <FullTime at={entry.at} /> },
          { title: "Who", cell: (entry) => entry.actor },
          { title: "Action", cell: (entry) => <strong>{entry.action}</strong> },
          { title: "Target", cell: (entry) => <code class="hash">{entry.target}</code> },
          { title: "Detail", cell: (entry) => <Detail entry={entry} /> },
        ]}
        empty={
          <Empty title="No entries">
            <p>Cancelling a run, deciding an approval, changing a limit or a key: all of it is recorded here with who did it and from where.</p>
          </Empty>
        }
      />
    </>
  );
}
