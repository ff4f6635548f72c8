// For whoever opens the console of a tenant that has nothing yet: the shortest way to a run that is done.
import { curlOf, DEFAULT_TENANT, ROOT, tenant } from "../api/client";
import { href } from "../router";
import { Card, Command } from "../ui/bits";

const HELLO = { steps: [{ name: "greet", type: "task", queue: "hello", handler: "hello.greet" }] };

const USUAL_ROOT = "http://127.0.0.1:7295/";

/** What the command line must be told: nothing, if the server is where it looks by itself. */
function optionsFor(root: string, name: string): string {
  const url = root === USUAL_ROOT ? "" : ` --url ${root.replace(/\/$/, "")}`;
  return url + (name === DEFAULT_TENANT ? "" : ` --tenant ${name}`);
}

export function FirstSteps() {
  return (
    <Card title="Start here">
      <p>Three commands in a terminal, and your first run is done. This page shows each as it happens.</p>
      <ol class="first-steps">
        <li>
          <p>Define a workflow: one step, for workers that poll the queue “hello”.</p>
          <Command text={curlOf("PUT", "workflows/hello", HELLO)} />
        </li>
        <li>
          <p>
            Start a run. The key makes it safe to send again: the same key never starts a second run. The page of the <a href={href("workflows")}>workflow</a>{" "}
            has a form for it too.
          </p>
          <Command text={`${curlOf("POST", "workflows/hello/runs", { input: { name: "Ada" } })} -H 'Idempotency-Key: hello-1'`} />
        </li>
        <li>
          <p>Be the worker for one job: any command that reads the input and prints the result.</p>
          <Command text={`pawl worker${optionsFor(ROOT, tenant.value)} --queue hello --once -- echo '{"said":"Hello, Ada"}'`} />
        </li>
      </ol>
    </Card>
  );
}
