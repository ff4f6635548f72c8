// All workflows of the tenant.
import { api, curlOf, must, requestOf } from "../api/client";
import { href } from "../router";
import { Command, CopyAs, Empty, Loading, PageHead, ProblemBox, Time } from "../ui/bits";
import { useLoad, useTitle } from "../ui/hooks";
import { Table } from "../ui/table";

const EXAMPLE = { steps: [{ name: "greet", type: "task", queue: "hello", handler: "hello.greet" }] };

export function Workflows() {
  useTitle("Workflows");
  const { data, failure, reload } = useLoad(() => must(api.GET("/api/v1/workflows", { params: { query: { limit: 200 } } })), []);
  return (
    <>
      <PageHead title="Workflows" lead="What runs are made of: steps, what each needs, and how it is retried and undone.">
        <CopyAs request={requestOf("GET", "workflows")} />
      </PageHead>
      {failure !== null && <ProblemBox failure={failure} retry={reload} />}
      {data === null && failure === null && <Loading />}
      {data?.items.length === 0 && (
        <Empty title="No workflows yet">
          <p>A workflow is a list of steps with what each needs. Define one in a terminal:</p>
          <Command text={curlOf("PUT", "workflows/hello", EXAMPLE)} />
        </Empty>
      )}
      {data !== null && data.items.length > 0 && (
        <Table
          label="Workflows"
          items={data.items}
          keyOf={(workflow) => workflow.id}
          columns={[
            {
              title: "Workflow",
              cell: (workflow) => (
                <>
                  <a href={href("workflows", workflow.id)} data-entry>
                    {workflow.id}
                  </a>{" "}
                  {workflow.archived && <span class="label">archived</span>}
                </>
              ),
            },
            { title: "Version", cell: (workflow) => workflow.version, numeric: true },
            { title: "Description", cell: (workflow) => workflow.description ?? <span class="faint">–</span> },
            { title: "Changed", cell: (workflow) => <Time at={workflow.updated_at} /> },
            {
              title: "Runs",
              cell: (workflow) => (
                <a href={`${href("runs")}?workflow=${encodeURIComponent(workflow.id)}`} aria-label={`Runs of ${workflow.id}`}>
                  Show
                </a>
              ),
            },
          ]}
        />
      )}
    </>
  );
}
