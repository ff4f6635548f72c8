// All workflows of the tenant.
import { api, curlOf, must } from "../api/client";
import { href } from "../router";
import { Command, Curl, Empty, Loading, PageHead, ProblemBox, Time } from "../ui/bits";
import { useLoad, useTitle } from "../ui/hooks";

const EXAMPLE = { steps: [{ name: "greet", type: "task", queue: "hello", handler: "hello.greet" }] };

export function Workflows() {
  useTitle("Workflows");
  const { data, failure, reload } = useLoad(() => must(api.GET("/api/v1/workflows", { params: { query: { limit: 200 } } })), []);
  return (
    <>
      <PageHead title="Workflows">
        <Curl text={curlOf("GET", "workflows")} />
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
        <div class="scroll" tabIndex={0} role="region" aria-label="Workflows">
          <table>
            <thead>
              <tr>
                <th>Workflow</th>
                <th>Version</th>
                <th>Description</th>
                <th>Changed</th>
                <th>Runs</th>
              </tr>
            </thead>
            <tbody>
              {data.items.map((workflow) => (
                <tr key={workflow.id}>
                  <td>
                    <a href={href("workflows", workflow.id)} data-entry>
                      {workflow.id}
                    </a>
                    {workflow.archived && <span class="label">archived</span>}
                  </td>
                  <td>{workflow.version}</td>
                  <td>{workflow.description}</td>
                  <td>
                    <Time at={workflow.updated_at} />
                  </td>
                  <td>
                    <a href={`${href("runs")}?workflow=${encodeURIComponent(workflow.id)}`} aria-label={`Runs of ${workflow.id}`}>
                      Runs
                    </a>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
