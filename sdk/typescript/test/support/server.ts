/** A real server in a folder of its own, on a port of its own. */

import { spawn, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Client, type ClientOptions } from "../../src/index.js";

export const PAWL_BIN = process.env.PAWL_BIN ?? fileURLToPath(new URL("../../../../../build/pawl", import.meta.url));

/** A file in the folder; where PAWL_TEST_POSTGRES names a database, a schema of its own instead. */
function storeOf(folder: string): string {
  const postgres = process.env.PAWL_TEST_POSTGRES;
  const name = createHash("sha256").update(folder).digest("hex").slice(0, 20);
  return postgres === undefined ? `sqlite:${folder}/pawl.db` : `${postgres}&schema=s${name}`;
}

export class PawlServer {
  url = "";
  readonly folder = mkdtempSync(join(tmpdir(), "pawl-ts-"));
  #process: ChildProcess | undefined;
  #port = "0";

  static async start(): Promise<PawlServer> {
    const server = new PawlServer();
    await server.start();
    return server;
  }

  /** Starts the server; again after a kill, with the same data and the same port. */
  async start(): Promise<void> {
    const args = ["serve", "--dev", "--listen", `127.0.0.1:${this.#port}`, "--store", storeOf(this.folder)];
    const child = spawn(PAWL_BIN, args, { stdio: ["ignore", "pipe", "pipe"] });
    this.#process = child;
    let said = "";
    for (const output of [child.stdout, child.stderr]) {
      createInterface({ input: output }).on("line", (line) => {
        said += `${line}\n`;
        const [, url, port] = /listening on (http:\/\/[^\s:]+:(\d+))/.exec(line) ?? [];
        if (url === undefined || port === undefined) return;
        this.url = url;
        this.#port = port;
        child.emit("ready");
      });
    }
    const ready = await Promise.race([once(child, "ready").then(() => true), once(child, "exit").then(() => false)]);
    if (!ready) throw new Error(`the server did not start:\n${said}`);
  }

  /** kill -9. */
  async kill(): Promise<void> {
    await end(this.#process, "SIGKILL");
  }

  async stop(): Promise<void> {
    await end(this.#process, "SIGTERM");
    rmSync(this.folder, { recursive: true, force: true });
  }

  client(options: ClientOptions = {}): Client {
    return new Client({ url: this.url, ...options });
  }
}

/** Ends a process, and waits until it is gone. */
export async function end(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (child?.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill(signal);
  await gone;
}
