// Renews the pictures of the documentation (docs/images) from those that the tests take: npm run pictures
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { useMade } from "../../tools/alone.mjs";
import { HERE, isReady, makeReady, tool } from "./install.mjs";

const PICTURES = {
  "console-run.png": "run-light-1440.png",
  "console-admission.png": "admission-light-1440.png",
  "console-approval.png": "approval-dark-390.png",
};

useMade(HERE, isReady, makeReady, () => tool("@playwright/test/cli.js", "test", "pages.spec"));
const images = join(HERE, "../docs/images");
mkdirSync(images, { recursive: true });
for (const [name, shot] of Object.entries(PICTURES)) copyFileSync(join(HERE, "test-results/shots", shot), join(images, name));
