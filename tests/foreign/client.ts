// A run from start to end with the types that openapi-typescript makes of docs/openapi.yaml. usage: client.js URL
import createClient from "openapi-fetch";
import type { components, paths } from "./pawl";

declare const process: { argv: string[] }; // node's own types are not needed for more

const api = createClient<paths>({ baseUrl: process.argv[2] });

function must<T>(answer: { data?: T; error?: components["schemas"]["Problem"] }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const workflow = { path: { workflow_id: "greet" } };
must(await api.PUT("/api/v1/workflows/{workflow_id}", {
  params: workflow,
  body: { steps: [{ name: "say", type: "task", queue: "ts", handler: "say" }] },
}));

const start = { params: { ...workflow, header: { "Idempotency-Key": "greet-1" } }, body: { input: { name: "Ada" } } };
const first = must(await api.POST("/api/v1/workflows/{workflow_id}/runs", start));
const again = must(await api.POST("/api/v1/workflows/{workflow_id}/runs", start));

const { jobs } = must(await api.POST("/api/v1/jobs/claim", { body: { worker_id: "w", queues: ["ts"], wait_ms: 10000 } }));
const [job] = jobs;
const completed = must(await api.POST("/api/v1/jobs/{job_id}/complete", {
  params: { path: { job_id: job.job_id } },
  body: { lease_token: job.lease_token, output: { greeting: "Hello, Ada!" } },
}));

const run = must(await api.GET("/api/v1/runs/{run_id}", { params: { path: { run_id: first.run_id } } }));
const missing = await api.GET("/api/v1/workflows/{workflow_id}", { params: { path: { workflow_id: "nothing" } } });

console.log(JSON.stringify({
  created: [first.created, again.created],
  same_run: first.run_id === again.run_id,
  input: job.input,
  completed: completed.status,
  run: [run.status, run.output],
  problem: missing.error?.code,
}));
