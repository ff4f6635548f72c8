// The console as a person uses it, against the real server in a real browser.
import { expect, test, type Page } from "@playwright/test";
import { proxyBelow, REFUND, Server } from "./server";

const server = new Server();

let failed = "";

/** A run that waits for approval, and one that failed after a step that was then undone. */
async function prepare(): Promise<void> {
  await server.call("PUT", "workflows/quick", { steps: [{ name: "t", type: "transform", output: 1 }] });
  await server.call("PUT", "workflows/refund", REFUND);
  const { run_id } = await server.call<{ run_id: string }>("POST", "workflows/refund/runs", { input: { order: "B-1", amount: 12 }, labels: { team: "shop" } });
  failed = run_id;
  await server.complete(await server.claim(), {});
  const { items } = await server.call<{ items: Array<{ job_id: string }> }>("GET", "approvals?status=pending");
  await server.call("POST", `approvals/${items[0]?.job_id}/approve`, {});
  for (let jobs = 0; jobs < 2; jobs++) {
    const job = await server.claim();
    if (job.step === "pay") await server.complete(job, { paid: 12 });
    else
      await server.call("POST", `jobs/${job.job_id}/fail`, {
        lease_token: job.lease_token,
        error: { code: "NO_SUCH_MAILBOX", message: "550", retryable: false },
      });
  }
  await server.complete(await server.claim(), { undone: true });
  // The client had no answer and asked again, with the same key.
  for (let tries = 0; tries < 2; tries++)
    await server.call("POST", "workflows/refund/runs", { input: { order: "B-2", amount: 99 }, labels: { team: "shop" }, idempotency_key: "order-99" });
  await server.complete(await server.claim(), {});
}

test.beforeAll(async () => {
  await server.start();
  await prepare();
});
test.afterAll(() => server.end());

async function shoot(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: `test-results/shots/${name}.png` });
}

const step = (page: Page, name: string) => page.locator(`[data-step="${name}"]`);

test("a run is started from a form, followed live, approved twice and done", async ({ page }) => {
  const errors: string[] = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(error.message));
  await page.setViewportSize({ width: 1440, height: 900 });

  await page.goto(`${server.url}/console/workflows/refund`);
  await page.getByLabel("order (required)").fill("A-1");
  await page.getByLabel("amount (required)").fill("250");
  await page.getByRole("button", { name: "Start" }).click();
  await expect(page).toHaveURL(/\/console\/runs\/[0-9a-f-]{36}$/);
  const runUrl = page.url();
  await expect(step(page, "lookup")).toHaveAttribute("data-status", "pending");

  const first = await server.claim();
  await expect(step(page, "lookup")).toHaveAttribute("data-status", "running");
  await server.fail(first, "The database is busy");
  await server.complete(await server.claim(), { amount: 250 });
  await expect(step(page, "ok")).toHaveAttribute("data-status", "approval");
  await expect(page.getByText("0 of 1 given").first()).toBeVisible();
  await shoot(page, "run-waiting-1440");

  await page.getByRole("link", { name: "Approval of step ok" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Refund 250?");
  await page.getByLabel("Reason").fill("Looks right");
  await page.getByRole("button", { name: "Approve" }).click();
  await expect(page.locator(".outcome")).toContainText("Approved by dev");
  await page.getByRole("button", { name: "Approve" }).click();
  await expect(page.locator(".outcome")).toContainText("Already approved by dev");
  await expect(page.locator(".outcome")).toContainText("Nothing happened twice");
  await shoot(page, "approval-1440");

  await page.goto(runUrl);
  for (const output of [{ paid: 1 }, { mailed: 1 }]) await server.complete(await server.claim(), output);
  await expect(step(page, "done")).toHaveAttribute("data-status", "succeeded");
  await expect(page.locator(".page-head .status")).toContainText("succeeded");
  await step(page, "lookup").click();
  await expect(page.getByRole("region", { name: "Attempts" })).toContainText("The database is busy");
  await shoot(page, "run-done-1440");
  expect(errors).toEqual([]);
});

test("an approver edits the content, and the opposite decision is refused with who decided", async ({ page }) => {
  await server.call("PUT", "workflows/ask", { steps: [{ name: "ok", type: "approval", prompt: "Pay?", content: { amount: 1 } }] });
  const { run_id } = await server.call<{ run_id: string }>("POST", "workflows/ask/runs", {});
  const { steps } = await server.call<{ steps: Array<{ job_id: string }> }>("GET", `runs/${run_id}`);
  await page.goto(`${server.url}/console/approvals/${steps[0]?.job_id}`);
  await page.getByText("Edit the content before you approve").click();
  await page.getByLabel("Content as JSON").fill('{"amount": ');
  await expect(page.getByRole("button", { name: "Approve with this content" })).toBeDisabled();
  await page.getByLabel("Content as JSON").fill('{"amount": 2}');
  await page.getByRole("button", { name: "Approve with this content" }).click();
  await expect(page.locator(".outcome")).toContainText("Approved by dev");
  await page.getByRole("button", { name: "Reject" }).click();
  await expect(page.getByRole("alert")).toContainText("APPROVAL_CONFLICT");
  await expect(page.getByText("Another one was refused once.")).toBeVisible();
  const run = await server.call<{ output: unknown }>("GET", `runs/${run_id}`);
  expect(run.output).toEqual({ amount: 2 });
});

test("the list of runs is live, filters, and pages through many runs", async ({ page }) => {
  const names = Array.from({ length: 120 }, (_, i) => i);
  for (const n of names) await server.call("POST", "workflows/quick/runs", { labels: { n: String(n) } });
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.goto(`${server.url}/console/runs?workflow=quick`);
  const table = page.getByRole("table", { name: "Runs" });
  await expect(table.getByText("n:119")).toBeVisible();
  await expect(page.locator(".link")).toHaveText(/Live/);
  await server.call("POST", "workflows/quick/runs", { labels: { n: "new" } });
  await expect(table.getByText("n:new")).toBeVisible();
  await shoot(page, "runs-1440");
  expect(await table.getByRole("row").count()).toBeLessThan(80);
  await expect(async () => {
    await page.locator(".virtual-scroll").evaluate((box) => (box.scrollTop = box.scrollHeight));
    await expect(table.getByText("n:0", { exact: true })).toBeVisible({ timeout: 500 });
  }).toPass();
});

test("after kill -9 of the server the page catches up without a reload", async ({ page }) => {
  const { run_id } = await server.call<{ run_id: string }>("POST", "workflows/refund/runs", { input: { order: "A-2", amount: 5 } });
  await page.goto(`${server.url}/console/runs/${run_id}`);
  await expect(step(page, "lookup")).toHaveAttribute("data-status", "pending");
  await page.evaluate(() => ((window as unknown as { same: boolean }).same = true));
  await server.stop();
  await expect(page.locator(".link")).toHaveText(/Reconnecting|Connecting/);
  await server.start();
  await server.complete(await server.claim(), {});
  await expect(step(page, "ok")).toHaveAttribute("data-status", "approval");
  await expect(page.locator(".link")).toHaveText(/Live/);
  expect(await page.evaluate(() => (window as unknown as { same: boolean }).same)).toBe(true);
});

test("a run is cancelled with a reason and rerun from a step", async ({ page }) => {
  const { run_id } = await server.call<{ run_id: string }>("POST", "workflows/refund/runs", { input: { order: "A-3", amount: 7 } });
  await page.goto(`${server.url}/console/runs/${run_id}`);
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByLabel("Reason").fill("A test");
  await page.getByRole("button", { name: "Cancel the run" }).click();
  await expect(page.locator(".page-head .status")).toContainText("cancelled");
  await step(page, "lookup").click();
  await page.getByRole("button", { name: "Rerun from here" }).click();
  await expect(page.getByText("Rerun of")).toBeVisible();
});

test("everything works below a path of a proxy, from a deep link on", async ({ page }) => {
  const proxy = await proxyBelow("/ops/pawl", () => server.url);
  try {
    await page.goto(`${proxy.url}/console`);
    await expect(page).toHaveURL(`${proxy.url}/console/`);
    await page.goto(`${proxy.url}/console/runs/${failed}`);
    await expect(step(page, "pay")).toHaveAttribute("data-status", "succeeded");
    await expect(page.locator(".link")).toHaveText(/Live/);
    await page.getByRole("link", { name: "Approvals" }).click();
    await expect(page).toHaveURL(`${proxy.url}/console/approvals`);
    await expect(page.getByRole("link", { name: "Refund 99?" })).toBeVisible();
  } finally {
    proxy.end();
  }
});

test("a run that failed is retried, and its page goes on", async ({ page }) => {
  await page.goto(`${server.url}/console/runs/${failed}`);
  await page.getByRole("button", { name: "Retry" }).click();
  await page.getByRole("button", { name: "Retry the run" }).click();
  await expect(page.locator(".page-head .status")).toContainText("running");
  for (let jobs = 0; jobs < 2; jobs++) await server.complete(await server.claim(), {});
  await expect(step(page, "done")).toHaveAttribute("data-status", "succeeded");
});

test("an idempotency key tells what it started and how often it was repeated", async ({ page }) => {
  await page.goto(`${server.url}/console/keys`);
  await page.getByLabel("Key", { exact: true }).fill("order-99");
  await page.getByRole("button", { name: "Look up" }).click();
  await expect(page.getByText("The request was repeated once")).toBeVisible();
  await page.locator(".facts a").click();
  await expect(page).toHaveURL(/\/console\/runs\/[0-9a-f-]{36}$/);
});

test("keys lead everywhere", async ({ page }) => {
  await page.goto(`${server.url}/console/`);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible(); // keys count from then on
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await expect(page).toHaveURL(/\/console\/runs$/);
  await expect(page.locator("[data-entry]").first()).toBeVisible();
  await page.keyboard.press("j");
  await expect(page.locator("[data-entry]:focus")).toHaveCount(1);
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/console\/runs\/[0-9a-f-]{36}$/);
});

test("a limit is changed and the change is undone, at 390 px", async ({ page }) => {
  const limit = async (): Promise<number | null> => (await server.call<{ max_concurrent_runs: number | null }>("GET", "tenants/default")).max_concurrent_runs;
  await server.call("PUT", "tenants/default", { max_concurrent_runs: 40 });
  await page.setViewportSize({ width: 390, height: 850 });
  await page.goto(`${server.url}/console/admission`);
  await expect(page.getByLabel("Active runs at once")).toHaveValue("40");
  await page.getByLabel("Active runs at once").fill("30");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("The limits have changed.")).toBeVisible();
  expect(await limit()).toBe(30);
  const history = page.getByRole("table", { name: "Versions of the settings" });
  await expect(history.getByText("active runs 40 → 30")).toBeVisible();
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(page.getByLabel("Active runs at once")).toHaveValue("40");
  expect(await limit()).toBe(40);
  await expect(history.getByText("active runs 30 → 40")).toBeVisible();
});

/** Runs of one step that all failed for good. */
async function deadLetters(count: number): Promise<void> {
  await server.call("PUT", "workflows/flaky", { steps: [{ name: "t", type: "task", queue: "flaky", handler: "flaky.do" }] });
  for (let n = 0; n < count; n++) await server.call("POST", "workflows/flaky/runs", {});
  for (let n = 0; n < count; n++) {
    const job = await server.claim("flaky");
    await server.call("POST", `jobs/${job.job_id}/fail`, { lease_token: job.lease_token, error: { code: "DOWN", message: "503", retryable: false } });
  }
}

test("dead letters are redriven in bulk after a dry run, at 390 px", async ({ page }) => {
  await deadLetters(9);
  await page.setViewportSize({ width: 390, height: 850 });
  await page.goto(`${server.url}/console/dead-letters?workflow=flaky`);
  await page.getByRole("button", { name: "Redrive these…" }).click();
  await expect(page.getByText("nothing has changed yet")).toBeVisible();
  await expect(page.getByText("flaky · t: 9")).toBeVisible();
  const before = await server.call<{ items: unknown[] }>("GET", "runs?workflow_id=flaky&status=failed");
  expect(before.items).toHaveLength(9);
  await shoot(page, "redrive-390");
  await page.getByRole("button", { name: "Redrive 9 dead letters" }).click();
  await expect(page.getByText("9 of 9 redriven")).toBeVisible();
  for (let n = 0; n < 9; n++) await server.complete(await server.claim("flaky"), {});
  const after = await server.call<{ items: unknown[] }>("GET", "runs?workflow_id=flaky&status=succeeded");
  expect(after.items).toHaveLength(9);
  await page.getByRole("button", { name: "Close" }).click();
  await expect(page.getByText("flaky", { exact: true })).toHaveCount(0);
});

test("many runs are cancelled after a dry run, and a view is saved", async ({ page }) => {
  await server.call("PUT", "workflows/idle", { steps: [{ name: "t", type: "task", queue: "nobody", handler: "nobody.do" }] });
  for (let n = 0; n < 5; n++) await server.call("POST", "workflows/idle/runs", {});
  await page.goto(`${server.url}/console/runs?workflow=idle`);
  await page.getByRole("button", { name: "Save this view" }).click();
  await page.getByLabel("Name").fill("Idle ones");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("link", { name: "Idle ones" })).toHaveAttribute("aria-current", "true");
  await page.getByRole("button", { name: "Act on many…" }).click();
  await page.getByRole("button", { name: "Dry run" }).click();
  await expect(page.getByText("5 runs would be asked")).toBeVisible();
  await page.getByRole("button", { name: "Cancel 5 runs" }).click();
  await expect(page.getByText("5 runs asked: 5 changed")).toBeVisible();
  await page.getByRole("button", { name: "Close" }).click();
  await expect(page.getByRole("table", { name: "Runs" }).getByText("cancelled")).toHaveCount(5);
});

test("the audit trail is verified, and shows who decided", async ({ page }) => {
  await page.goto(`${server.url}/console/audit?action=approval.*`);
  await expect(page.getByRole("table", { name: "Audit entries" }).getByText("approval.approve").first()).toBeVisible();
  await page.getByRole("button", { name: "Verify" }).click();
  await expect(page.getByText(/entries checked, nothing is missing or changed/)).toBeVisible();
});

test("events appear while they happen, and wait while the page is paused", async ({ page }) => {
  await page.goto(`${server.url}/console/events?types=run.*`);
  await expect(page.getByText("listening")).toBeVisible();
  await server.call("POST", "workflows/quick/runs", {});
  await expect(page.getByText("run.succeeded").first()).toBeVisible();
  await page.getByRole("button", { name: "Pause" }).click();
  await server.call("POST", "workflows/quick/runs", {});
  await page.getByRole("button", { name: /Go on \([1-9]/ }).click();
  await expect(page.getByText("run.succeeded")).toHaveCount(2);
});
