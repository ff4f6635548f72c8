// Signing in and out, and what each role is offered, against a server that asks for keys.
import AxeBuilder from "@axe-core/playwright";
import { expect, test, type Page } from "@playwright/test";
import { freePort, startProvider } from "./provider";
import { proxyBelow, REFUND, Server } from "./server";

const ROOT_KEY = "7f3Kq9ZtW2mXc8RbLd5HvNs4YpGj6AeU";
const server = new Server(ROOT_KEY);
const keys: Record<string, { id: string; key: string }> = {};
let run = "";
let approval = "";

test.beforeAll(async () => {
  await server.start();
  await server.call("PUT", "tenants/default", {});
  await server.call("PUT", "workflows/refund", REFUND);
  for (const role of ["viewer", "approver", "operator"]) keys[role] = await server.call("POST", "keys", { tenant: "default", role });
  run = (await server.call<{ run_id: string }>("POST", "workflows/refund/runs", { input: { order: "A-1", amount: 5 } })).run_id;
  await server.complete(await server.claim(), {});
  const { items } = await server.call<{ items: Array<{ job_id: string }> }>("GET", "approvals?status=pending");
  approval = items[0]?.job_id ?? "";
});
test.afterAll(() => server.end());

async function signIn(page: Page, role: string): Promise<void> {
  await page.getByLabel("API key").fill(keys[role]?.key ?? "");
  await page.getByRole("button", { name: "Sign in" }).click();
}

for (const scheme of ["light", "dark"] as const)
  test(`the sign-in is accessible in ${scheme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: scheme });
    await page.goto(`${server.url}/console/`);
    await expect(page.getByRole("heading", { name: "Sign in to pawl" })).toBeVisible();
    const { violations } = await new AxeBuilder({ page }).setLegacyMode(true).analyze();
    expect(violations.map((v) => v.id)).toEqual([]);
    await page.screenshot({ path: `test-results/shots/sign-in-${scheme}.png` });
  });

test("a deep link asks for a key and is there after signing in; signing out leads back", async ({ page }) => {
  await page.goto(`${server.url}/console/runs/${run}`);
  await page.getByLabel("API key").fill("pawl_nobodys");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("alert")).toContainText("The API key is not valid");
  await signIn(page, "operator");
  await expect(page.locator('[data-step="ok"]')).toHaveAttribute("data-status", "approval");
  await expect(page.locator(".link")).toHaveText(/Live/);
  expect(page.url()).toBe(`${server.url}/console/runs/${run}`);
  expect(await page.evaluate(() => document.cookie)).toBe("");
  await page.reload();
  await expect(page.locator('[data-step="ok"]')).toBeVisible();
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByLabel("API key")).toBeVisible();
  await page.reload();
  await expect(page.getByLabel("API key")).toBeVisible();
});

test("roles are offered what the server allows", async ({ page }) => {
  await page.goto(`${server.url}/console/workflows/refund`);
  await signIn(page, "viewer");
  await expect(page.getByText("Your role, viewer, does not allow starting runs.")).toBeVisible();
  await page.goto(`${server.url}/console/runs/${run}`);
  await expect(page.locator('[data-step="ok"]')).toBeVisible();
  await expect(page.getByRole("button", { name: "Cancel" })).toHaveCount(0);
  await page.goto(`${server.url}/console/`);
  await expect(page.locator(".tile", { hasText: "Runs started" })).toContainText("1");
  await expect(page.getByRole("alert")).toHaveCount(0);
  await page.goto(`${server.url}/console/approvals/${approval}`);
  await expect(page.getByText("Your role, viewer, does not allow decisions.")).toBeVisible();
  await page.getByRole("button", { name: "Sign out" }).click();
  await signIn(page, "approver");
  await page.getByRole("button", { name: "Approve" }).click();
  await expect(page.getByRole("status").filter({ hasText: "Approved by key:pawl_" })).toBeVisible();
});

test("a revoked key ends the session where it is", async ({ page }) => {
  const made = await server.call<{ id: string; key: string }>("POST", "keys", { tenant: "default", role: "viewer" });
  keys["short"] = made;
  await page.goto(`${server.url}/console/runs`);
  await signIn(page, "short");
  await expect(page.locator(".link")).toHaveText(/Live/);
  await server.call("DELETE", `keys/${made.id}`);
  await expect(page.getByLabel("API key")).toBeVisible();
});

test("the session works behind a path prefix", async ({ page }) => {
  const proxy = await proxyBelow("/tools/pawl", () => server.url);
  await page.goto(`${proxy.url}/console/runs/${run}`);
  await signIn(page, "operator");
  await expect(page.locator('[data-step="ok"]')).toBeVisible();
  const cookies = await page.context().cookies(`${proxy.url}/api/v1/me`);
  expect(cookies.map((c) => [c.path, c.httpOnly, c.sameSite])).toEqual([["/tools/pawl/api/v1", true, "Strict"]]);
  proxy.end();
});

test("a person signs in at an OpenID provider and is back at the link", async ({ page }) => {
  const url = `http://127.0.0.1:${await freePort()}`;
  const { issuer, child } = await startProvider(`${url}/api/v1/oidc-callback`);
  const flags = ["--oidc-issuer", issuer, "--oidc-client-id", "pawl", "--public-url", url, "--allow-private-addresses", "--oidc-role-map", "viewers=viewer"];
  const pawl = new Server(ROOT_KEY, flags);
  pawl.url = url;
  await pawl.start();
  try {
    await pawl.call("PUT", "tenants/default", {});
    await pawl.call("PUT", "workflows/refund", REFUND);
    await page.goto(`${url}/console/workflows/refund?x=1`);
    await page.getByRole("link", { name: `Sign in with ${new URL(issuer).host}` }).click();
    await page.getByPlaceholder("Enter any login").fill("ann.viewer");
    await page.getByPlaceholder("and password").fill("x");
    await page.getByRole("button", { name: "Sign-in" }).click();
    await page.getByRole("button", { name: "Continue" }).click();
    await expect(page.getByText("Your role, viewer, does not allow starting runs.")).toBeVisible();
    expect(page.url()).toBe(`${url}/console/workflows/refund?x=1`);
    await expect(page.getByText("user:ann.viewer@example.com")).toBeVisible();
    await expect(page.locator(".link")).toHaveText(/Live/);
    await page.getByRole("button", { name: "Sign out" }).click();
    await expect(page.getByLabel("API key")).toBeVisible();
  } finally {
    child.removeAllListeners("exit");
    child.kill();
    await pawl.end();
  }
});
