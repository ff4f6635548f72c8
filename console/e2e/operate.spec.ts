// What an operator does at night: follow a link, copy what a button would do, work without a mouse.
import { expect, test, type Page } from "@playwright/test";
import { execFile } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { BINARY, REFUND, Server } from "./server";

const server = new Server();
const execute = promisify(execFile);

test.beforeAll(async () => {
  await server.start();
  await server.call("PUT", "workflows/refund", REFUND);
});
test.afterAll(() => server.end());

/** A run that waits for one approval, and its page. */
async function approvalFor(page: Page, approvers?: object): Promise<string> {
  const step = { name: "ok", type: "approval", prompt: "Pay?", content: { amount: 1 }, ...(approvers === undefined ? {} : { approvers }) };
  await server.call("PUT", "workflows/ask", { steps: [step] });
  const { run_id } = await server.call<{ run_id: string }>("POST", "workflows/ask/runs", {});
  const { steps } = await server.call<{ steps: Array<{ job_id: string }> }>("GET", `runs/${run_id}`);
  const job = steps[0]?.job_id ?? "";
  await page.goto(`${server.url}/console/approvals/${job}`);
  return job;
}

async function copied(page: Page, label: string, language: string): Promise<string> {
  await page.getByText(label, { exact: true }).click();
  await page.locator("details[open]").getByRole("button", { name: language }).click();
  await expect(page.getByText(`${language} copied`)).toBeVisible();
  return page.evaluate(() => navigator.clipboard.readText());
}

test("what is copied does what the button does", async ({ page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await approvalFor(page);
  const rejects = await copied(page, "Copy reject as", "JavaScript");
  await execute("sh", ["-c", await copied(page, "Copy approve as", "curl")]);
  await expect(page.locator(".page-head .status")).toContainText("approved");
  const refused = await execute(process.execPath, ["--input-type=module", "-e", rejects]).catch((e: Error) => e.message);
  expect(refused).toContain("APPROVAL_CONFLICT");
});

test("a quorum fills up while one looks at it", async ({ page }) => {
  const job = await approvalFor(page, { count: 2 });
  await page.getByRole("button", { name: "Approve" }).click();
  await expect(page.locator(".outcome")).toContainText("Your approval is recorded: 1 of 2.");
  await page.getByRole("button", { name: "Approve" }).click();
  await expect(page.locator(".outcome")).toContainText("Your vote counts once");
  await expect(page.getByText("1 of 2", { exact: true })).toBeVisible();
  const headers = { "Content-Type": "application/json", "X-Actor": "ann" };
  expect((await fetch(`${server.url}/api/v1/approvals/${job}/approve`, { method: "POST", headers, body: "{}" })).status).toBe(200);
  await expect(page.getByText("2 of 2", { exact: true })).toBeVisible();
  await expect(page.getByText("ann approved")).toBeVisible();
});

test("an address says which tenant, step and version it means", async ({ page, browser }) => {
  const headers = { "Content-Type": "application/json", "X-Tenant-ID": "acme" };
  const put = (path: string, method: string, body: unknown): Promise<Response> =>
    fetch(`${server.url}/api/v1/${path}`, { method, headers, body: JSON.stringify(body) });
  await put("workflows/refund", "PUT", REFUND);
  await put("workflows/refund", "PUT", { ...REFUND, timeout_s: 60 });
  await put("workflows/refund/runs", "POST", { input: { order: "T-1", amount: 3 } });
  await page.goto(`${server.url}/console/?tenant=acme`);
  await page.getByRole("link", { name: "Runs", exact: true }).click();
  await expect(page).toHaveURL(`${server.url}/console/runs?tenant=acme`);
  await page.locator("[data-entry]").first().click();
  await page.locator('[data-step="pay"]').click();
  await expect(page).toHaveURL(/\/runs\/[0-9a-f-]{36}\?step=pay&tenant=acme$/);

  const colleague = await browser.newPage();
  await colleague.goto(page.url());
  await expect(colleague.getByRole("region", { name: "Step pay" })).toBeVisible();
  await colleague.goto(`${server.url}/console/workflows/refund?diff=2&tenant=acme`);
  await expect(colleague.getByRole("region", { name: "Version 1 against 2" })).toContainText('+   "timeout_s": 60');
  await colleague.goto(`${server.url}/console/workflows/refund`);
  await expect(colleague.getByText("version 1", { exact: true })).toBeVisible(); // the default tenant's
  await colleague.close();
});

test("a delivery is sent again under the same id", async ({ page }) => {
  const seen: unknown[] = [];
  const receiver = createServer((request, response) => {
    seen.push(request.headers["webhook-id"]);
    request.resume();
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  try {
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
    const { id } = await server.call<{ id: string }>("POST", "webhooks", { url, events: ["run.*"] });
    await page.goto(`${server.url}/console/webhooks/${id}`);
    await page.getByRole("button", { name: "Send a test" }).click();
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await expect.poll(() => seen).toHaveLength(1);
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByRole("button", { name: "Resend" }).click();
    await page.getByRole("button", { name: "Send again" }).click();
    await expect.poll(() => seen).toHaveLength(2);
    expect(seen[0]).toMatch(/./);
    expect(seen[1]).toBe(seen[0]);
  } finally {
    receiver.closeAllConnections();
    receiver.close();
  }
});

test("a dead letter is found, redriven and an old limit restored with the keyboard alone", async ({ page }) => {
  await server.call("PUT", "workflows/flaky", { steps: [{ name: "t", type: "task", queue: "flaky", handler: "flaky.do" }] });
  await server.call("POST", "workflows/flaky/runs", {});
  const job = await server.claim("flaky");
  await server.call("POST", `jobs/${job.job_id}/fail`, { lease_token: job.lease_token, error: { code: "DOWN", message: "503", retryable: false } });
  for (const max_concurrent_runs of [7, 8]) await server.call("PUT", "tenants/default", { max_concurrent_runs });

  await page.goto(`${server.url}/console/`);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await page.keyboard.press("g");
  await page.keyboard.press("d");
  await expect(page.getByText("DOWN: 503")).toBeVisible();
  await page.keyboard.press("j"); // its run
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("dialog", { name: "Redrive this job?" })).toBeVisible();
  await page.keyboard.press("Enter");
  await expect(page.getByText("No dead letters")).toBeVisible();
  await server.complete(await server.claim("flaky"), {});

  await page.keyboard.press("g");
  await page.keyboard.press("l");
  await expect(page.getByLabel("Active runs at once")).toHaveValue("8");
  await page.getByRole("button", { name: "Restore" }).first().focus();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("dialog", { name: "Restore version 2?" })).toBeVisible();
  await page.keyboard.press("Enter");
  await expect(page.getByText("active runs 8 → 7")).toBeVisible();
  await expect(page.getByLabel("Active runs at once")).toHaveValue("7");
});

test("the overview leads a new tenant to its first run, and tells of the last day after a restart too", async ({ page }) => {
  await page.goto(`${server.url}/console/?tenant=newcomer`);
  await expect(page.getByRole("heading", { name: "Start here" })).toBeVisible();
  const commands = await page.locator(".first-steps pre").allTextContents();
  expect(commands).toHaveLength(3);
  const path = `${dirname(BINARY)}:${process.env["PATH"] ?? ""}`;
  for (const command of [...commands.slice(0, 2), ...commands.slice(1)]) await execute("sh", ["-c", command], { env: { ...process.env, PATH: path } });
  const tile = (title: string) => page.locator(".tile", { hasText: title }).locator(".tile-value");
  for (let looks = 0; looks < 2; looks++) {
    await page.goto(`${server.url}/console/?tenant=newcomer&minutes=60`);
    await expect(tile("Runs started")).toHaveText("1");
    await expect(tile("Succeeded")).toHaveText("1");
    await expect(tile("Starts replayed")).toHaveText("1");
    await expect(page.getByRole("img", { name: "Runs started, succeeded and failed per minute" }).locator("canvas")).toBeVisible();
    await expect(page.getByRole("heading", { name: "Start here" })).toHaveCount(0);
    await server.stop("SIGTERM");
    await server.start();
  }
});

test("a run is found by key, id, label and error, and says where it comes from and what came of it", async ({ page }) => {
  await server.call("PUT", "workflows/child", { steps: [{ name: "boom", type: "transform", output: "${1 / input.zero}" }] });
  await server.call("PUT", "workflows/mother", { steps: [{ name: "kid", type: "workflow", workflow_id: "child", input: { zero: 0 } }] });
  const start = { idempotency_key: "family-7", labels: { team: "night" } };
  const { run_id } = await server.call<{ run_id: string }>("POST", "workflows/mother/runs", start);
  await server.call("POST", "workflows/mother/runs", start);
  const rows = page.getByRole("table", { name: "Runs" }).locator("[data-entry]");
  const found = async (word: string, count: number): Promise<void> => {
    await page.goto(`${server.url}/console/runs`);
    await page.getByLabel("Search").fill(word);
    await page.getByLabel("Search").press("Enter");
    await expect(page).toHaveURL(/\?q=/);
    await expect(rows).toHaveCount(count);
  };
  await found(run_id.slice(0, 23), 1);
  await found("team=night", 2); // the child has the labels of its mother
  await found("NOT FINITE", 2);
  await found("family-7", 1);
  await rows.click();

  await expect(page.getByText("repeated once, answered with this run")).toBeVisible();
  const children = page.getByRole("table", { name: "Child runs" });
  await children.getByRole("link").click();
  await expect(page.getByText("Child of")).toBeVisible();
  await page.getByRole("button", { name: "Rerun", exact: true }).click();
  await page.getByRole("button", { name: "Rerun the run" }).click();
  await expect(page.getByText("Rerun of")).toBeVisible();
  await page
    .locator("dd", { has: page.getByRole("link") })
    .locator("a code")
    .first()
    .click();
  await expect(page.getByRole("table", { name: "Reruns" }).getByRole("link")).toHaveCount(1);
});

test("admission shows the slots of a key, who waits longest and how long others waited", async ({ page }) => {
  const steps = [{ name: "t", type: "task", queue: "keyed", handler: "keyed.do" }];
  await server.call("PUT", "workflows/keyed", { steps, concurrency: { key: "input.customer", limit: 1, at_limit: "queue" } });
  for (let n = 0; n < 2; n++) await server.call("POST", "workflows/keyed/runs", { input: { customer: "ada" } });
  await page.goto(`${server.url}/console/admission`);
  const row = page.getByRole("table", { name: "Limits of workflows and keys" }).getByRole("row", { name: "input.customer = ada" });
  await expect(row).toContainText("1 of 1");
  const oldest = page.locator(".tile", { hasText: "Oldest waiting run" });
  await expect(oldest).toContainText("keyed");
  await page.goto(`${server.url}/console/`);
  await expect(oldest).toContainText("keyed");
  await expect(page.locator(".tile", { hasText: "Queues without workers" })).toContainText("keyed");
  for (let n = 0; n < 2; n++) await server.complete(await server.claim("keyed"), {});
  await page.goto(`${server.url}/console/admission`);
  await expect(page.locator(".tile", { hasText: "Queued runs waited" })).toContainText("of 1 run");
  await expect(row).toHaveCount(0);
});

test("what is typed into the search stays while runs come in", async ({ page }) => {
  const start = (): Promise<{ run_id: string }> => server.call("POST", "workflows/refund/runs", { input: { order: "L-1", amount: 1 } });
  const rowOf = (id: string) => page.locator(`[data-entry][href*="${id}"]`);
  const { run_id: first } = await start();
  await page.goto(`${server.url}/console/runs`);
  await expect(rowOf(first)).toBeVisible();
  await page.getByLabel("Search").pressSequentially("live");
  const { run_id: second } = await start();
  await expect(rowOf(second)).toBeVisible();
  await expect(page.getByLabel("Search")).toHaveValue("live");
});

test("an entity shows the signals that wait, until they are applied", async ({ page }) => {
  await server.call("PUT", "entity-types/cart", { queue: "carts", handler: "cart.apply" });
  await server.call("POST", "entities/cart/ada/signals", { name: "add", payload: { item: "book" } });
  await page.goto(`${server.url}/console/entities/cart/ada`);
  const inbox = page.getByRole("table", { name: "Inbox" });
  await expect(inbox.getByText("add")).toBeVisible();
  await inbox.getByText("Show").click();
  await expect(inbox.getByText("book")).toBeVisible();
  await server.complete(await server.claim("carts"), { state: { items: ["book"] } });
  await expect(page.getByText("Nothing waits.")).toBeVisible();
});

test("what waits longest for a person comes first", async ({ page }) => {
  await server.call("PUT", "workflows/asks", { steps: [{ name: "ok", type: "approval", prompt: "Number ${input.n}?" }] });
  for (const n of [1, 2, 3]) await server.call("POST", "workflows/asks/runs", { input: { n } });
  await page.goto(`${server.url}/console/approvals`);
  await expect(page.locator("[data-entry]")).toHaveText(["Number 1?", "Number 2?", "Number 3?"]);
});

test("a server that is not ready yet is waited for, in words", async ({ page }) => {
  let isReady = false;
  const problem = { type: "about:blank", title: "Not ready", status: 503, code: "STORE_UNAVAILABLE", detail: "Nobody serves this tenant right now" };
  await page.route("**/api/v1/me", (route) => (isReady ? route.continue() : route.fulfill({ status: 503, json: problem })));
  await page.goto(`${server.url}/console/runs`);
  await expect(page.getByText("Nobody serves this tenant right now")).toBeVisible();
  isReady = true;
  await expect(page.getByRole("heading", { name: "Runs", exact: true })).toBeVisible();
});

test("a server with a data file is a cluster of one", async ({ page }) => {
  await page.goto(`${server.url}/console/server`);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await page.keyboard.press("g");
  await page.keyboard.press("c");
  await expect(page.getByRole("table", { name: "Nodes" }).getByRole("row")).toContainText(["Node", "live"]);
  await expect(page.getByRole("table", { name: "Shards" }).getByRole("row")).toContainText(["Shard", "serving"]);
  await expect(page.getByText("This server has its store to itself.")).toBeVisible();
});
