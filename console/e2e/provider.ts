// A real OpenID provider: tests/oidc, as the end-to-end tests in Python use it.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("../../tests/oidc", import.meta.url));

/** Once for each lock file. */
function install(): void {
  const stamp = `${FOLDER}/node_modules/.installed`;
  const wanted = createHash("sha256")
    .update(readFileSync(`${FOLDER}/package-lock.json`))
    .digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  execFileSync("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts"], { cwd: FOLDER, stdio: "pipe" });
  writeFileSync(stamp, wanted);
}

export async function freePort(): Promise<number> {
  const socket = createServer();
  await new Promise<void>((resolve) => socket.listen(0, "127.0.0.1", resolve));
  const { port } = socket.address() as AddressInfo;
  await new Promise((resolve) => socket.close(resolve));
  return port;
}

export async function startProvider(redirectUri: string): Promise<{ issuer: string; child: ChildProcess }> {
  install();
  const client = { client_id: "pawl", redirect_uris: [redirectUri], token_endpoint_auth_method: "none" };
  const child = spawn(process.execPath, ["provider.mjs", JSON.stringify(client)], { cwd: FOLDER, stdio: ["ignore", "pipe", "ignore"] });
  const issuer = await new Promise<string>((resolve, reject) => {
    child.on("exit", (code) => reject(new Error(`the provider ended with ${code}`)));
    createInterface({ input: child.stdout }).once("line", resolve);
  });
  return { issuer, child };
}
