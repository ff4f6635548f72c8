// Every page with something on it: it fits, axe finds nothing, and a picture of it is kept (test-results/shots).
import AxeBuilder from "@axe-core/playwright";
import { expect, test, type Page } from "@playwright/test";
import { seed, type Seeded } from "./seed";
import { Server } from "./server";

const server = new Server();
let seeded: Seeded;

test.beforeAll(async () => {
  await server.start();
  seeded = await seed(server);
});
test.afterAll(async () => {
  seeded.end();
  await server.end();
});

const places = (): Record<string, string> => ({
  overview: "",
  runs: "runs",
  run: `runs/${seeded.failed}?step=mail`,
  "run-waiting": `runs/${seeded.waiting}`,
  approvals: "approvals",
  approval: `approvals/${seeded.approval}`,
  workflows: "workflows",
  workflow: "workflows/refund",
  schedules: "schedules",
  schedule: "schedules/every-morning",
  entities: "entities",
  "entity-type": "entities/cart",
  entity: "entities/cart/ada",
  queues: "queues",
  admission: "admission",
  "dead-letters": "dead-letters",
  keys: "keys?key=order-99",
  events: "events",
  webhooks: "webhooks",
  webhook: `webhooks/${seeded.webhook}`,
  audit: "audit",
  tenants: "tenants",
  access: "access",
  cluster: "cluster",
  server: "server",
  empty: "runs?workflow=none",
});

async function expectAccessible(page: Page, name: string): Promise<void> {
  const { violations } = await new AxeBuilder({ page })
    .setLegacyMode(true) // there are no frames
    .options({ resultTypes: ["violations"] })
    .analyze();
  expect(
    violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(" ")).join(", ")}`),
    name,
  ).toEqual([]);
}

for (const [scheme, width] of [
  ["light", 1440],
  ["dark", 390],
] as const)
  test(`every page is accessible and fits, ${scheme} at ${width} px`, async ({ page }) => {
    test.setTimeout(600_000); // axe is slow on a busy machine
    const errors: string[] = [];
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    page.on("pageerror", (error) => errors.push(error.message));
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await page.setViewportSize({ width, height: 900 });
    await page.goto(`${server.url}/console/`);
    for (const [name, path] of Object.entries(places())) {
      await page.goto(`${server.url}/console/${path}`);
      await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
      await expect(page.getByText("Loading…")).toHaveCount(0);
      await page.screenshot({ path: `test-results/shots/${name}-${scheme}-${width}.png` });
      expect(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth), `${name} is too wide`).toBeLessThanOrEqual(0);
      await expectAccessible(page, name);
    }
    expect(errors).toEqual([]);
  });
