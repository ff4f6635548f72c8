// Runs that this one has started through its steps, and runs that were made by rerunning it.
import { api, must, requestOf } from "../api/client";
import type { Run, RunSummary } from "../api/types";
import { elapsed } from "../logic/time";
import { Card, CopyAs, RunLink, Status, Time } from "../ui/bits";
import { now, usePages, type Paged } from "../ui/hooks";
import { PagedTable } from "../ui/list";

const PAGE = 20;

type Relation = "parent" | "rerun_of";

/** Read again with every change of the run: a step may have started another child. */
function useRelated(run: Run, relation: Relation): Paged<RunSummary> {
  return usePages(
    (cursor) => must(api.GET("/api/v1/runs", { params: { query: { [relation]: run.id, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) } } })),
    [run.id, run.version],
  );
}

function RunTable({ title, list, path }: { title: string; list: Paged<RunSummary>; path: string }) {
  if (list.items === null || list.items.length === 0) return null;
  return (
    <Card title={title} aside={<CopyAs request={requestOf("GET", path)} />}>
      <PagedTable
        label={title}
        list={list}
        keyOf={(run) => run.id}
        columns={[
          { title: "Run", cell: (run) => <RunLink id={run.id} /> },
          { title: "Workflow", cell: (run) => run.workflow_id },
          { title: "Status", cell: (run) => <Status of={run.status} /> },
          { title: "Created", cell: (run) => <Time at={run.created_at} /> },
          { title: "Took", cell: (run) => elapsed(run.started_at, run.finished_at, now.value) },
        ]}
        empty={null}
      />
    </Card>
  );
}

export function RelatedRuns({ run }: { run: Run }) {
  const children = useRelated(run, "parent");
  const reruns = useRelated(run, "rerun_of");
  return (
    <>
      <RunTable title="Child runs" list={children} path={`runs?parent=${run.id}`} />
      <RunTable title="Reruns" list={reruns} path={`runs?rerun_of=${run.id}`} />
    </>
  );
}
