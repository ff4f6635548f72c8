// The versions of a workflow, and what differs between two of them.
import { api, must, requestOf } from "../api/client";
import { diffOf, shortened, type Line } from "../logic/diff";
import { go, href, query } from "../router";
import { Card, CopyAs, Loading, Time } from "../ui/bits";
import { useLoad, usePages } from "../ui/hooks";
import { PagedTable } from "../ui/list";

const MARK: Record<Line["kind"], string> = { same: " ", added: "+", removed: "−" };

async function definitionOf(id: string, version: number): Promise<string> {
  const read = await must(api.GET("/api/v1/workflows/{workflow_id}", { params: { path: { workflow_id: id }, query: { version } } }));
  return JSON.stringify(read.definition, null, 2);
}

function Diff({ id, from, to }: { id: string; from: number; to: number }) {
  const { data } = useLoad(async () => diffOf(await definitionOf(id, from), await definitionOf(id, to)), [id, from, to]);
  if (data === null) return <Loading />;
  return (
    <pre class="diff" tabIndex={0} role="region" aria-label={`Version ${from} against ${to}`}>
      {shortened(data).map((line, i) =>
        line === null ? (
          <span key={i} class="gap">
            …{"\n"}
          </span>
        ) : (
          <span key={i} class={line.kind}>
            {MARK[line.kind]} {line.text}
            {"\n"}
          </span>
        ),
      )}
    </pre>
  );
}

export function Versions({ id }: { id: string }) {
  const asked = Number(query.value.get("diff"));
  const shown = asked > 1 ? asked : null;
  const list = usePages(
    (cursor) =>
      must(
        api.GET("/api/v1/workflows/{workflow_id}/versions", {
          params: { path: { workflow_id: id }, query: { limit: 20, ...(cursor === undefined ? {} : { cursor }) } },
        }),
      ),
    [id],
  );
  return (
    <Card title="Versions" aside={<CopyAs request={requestOf("GET", `workflows/${encodeURIComponent(id)}/versions`)} />}>
      <PagedTable
        label="Versions"
        list={list}
        keyOf={(v) => v.version}
        columns={[
          { title: "Version", cell: (v) => <strong>{v.version}</strong> },
          { title: "By", cell: (v) => v.created_by },
          { title: "When", cell: (v) => <Time at={v.created_at} /> },
          { title: "Digest", cell: (v) => <code>{v.digest.slice(0, 12)}</code> },
          {
            title: "Changes",
            cell: (v) =>
              v.version === 1 ? (
                <span class="faint">the first</span>
              ) : (
                <button
                  type="button"
                  class="small"
                  aria-expanded={shown === v.version}
                  onClick={() => go(href("workflows", id) + (shown === v.version ? "" : `?diff=${v.version}`), true)}
                >
                  Against version {v.version - 1}
                </button>
              ),
          },
        ]}
        empty={<p class="faint">None are kept.</p>}
      />
      {shown !== null && <Diff id={id} from={shown - 1} to={shown} />}
    </Card>
  );
}
