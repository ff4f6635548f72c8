// A real OpenID provider: tests/oidc, as the end-to-end tests in Python use it.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("../../tests/oidc", import.meta.url));

const NPM_CI = fileURLToPath(new URL("../../tools/npm_ci.mjs", import.meta.url));

/** A port that nobody listens on right now, below those that the kernel gives to connections: one of them could take it meanwhile. */
export async function freePort(): Promise<number> {
  const lowest = parseInt(readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8"));
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * (lowest - 10_000));
    const socket = createServer();
    const free = await new Promise<boolean>((resolve) => {
      socket.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => socket.close(resolve));
    return port;
  }
}

export async function startProvider(redirectUri: string): Promise<{ issuer: string; child: ChildProcess }> {
  execFileSync(process.execPath, [NPM_CI, FOLDER], { stdio: "pipe" });
  const client = { client_id: "pawl", redirect_uris: [redirectUri], token_endpoint_auth_method: "none" };
  const child = spawn(process.execPath, ["provider.mjs", JSON.stringify(client)], { cwd: FOLDER, stdio: ["ignore", "pipe", "ignore"] });
  const issuer = await new Promise<string>((resolve, reject) => {
    child.on("exit", (code) => reject(new Error(`the provider ended with ${code}`)));
    createInterface({ input: child.stdout }).once("line", resolve);
  });
  return { issuer, child };
}
