// A real server for a test file: the binary, a folder of its own, a free port. And a worker that does what it is told.
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request as ask } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const BINARY = process.env["PAWL_BIN"] ?? fileURLToPath(new URL("../../build/pawl", import.meta.url));

export interface Claimed {
  job_id: string;
  lease_token: string;
  step: string;
}

export class Server {
  url = "";
  private child: ChildProcess | null = null;
  private readonly folder = mkdtempSync(join(tmpdir(), "pawl-console-"));

  /** With a root key the server asks for keys; without one it runs with --dev. */
  constructor(
    private readonly rootKey?: string,
    private readonly flags: string[] = [],
  ) {}

  async start(): Promise<void> {
    const listen = this.url === "" ? "127.0.0.1:0" : new URL(this.url).host;
    const mode = this.rootKey === undefined ? ["--dev"] : [];
    const child = spawn(BINARY, ["serve", ...mode, "--listen", listen, "--store", `sqlite:${join(this.folder, "pawl.db")}`, ...this.flags], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...(this.rootKey === undefined ? {} : { PAWL_ROOT_KEY: this.rootKey }) },
    });
    this.child = child;
    this.url = await new Promise<string>((resolve, reject) => {
      child.on("exit", (code) => reject(new Error(`pawl ended with ${code}`)));
      for (const stream of [child.stdout, child.stderr])
        createInterface({ input: stream }).on("line", (line) => {
          const found = /listening on (http:\S+)/.exec(line);
          if (found?.[1] !== undefined) resolve(found[1]);
        });
    });
  }

  /** kill -9, or the signal that is named. */
  async stop(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = this.child;
    if (child === null) return;
    await new Promise((resolve) => {
      child.removeAllListeners("exit");
      child.once("exit", resolve);
      child.kill(signal);
    });
    this.child = null;
  }

  async end(): Promise<void> {
    await this.stop("SIGTERM");
    rmSync(this.folder, { recursive: true, force: true });
  }

  async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const key = this.rootKey === undefined ? {} : { "X-API-Key": this.rootKey, "X-Tenant-ID": "default" };
    const init = body === undefined ? { headers: key } : { body: JSON.stringify(body), headers: { ...key, "Content-Type": "application/json" } };
    const response = await fetch(`${this.url}/api/v1/${path}`, { method, ...init });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }

  async claim(queue = "default"): Promise<Claimed> {
    const { jobs } = await this.call<{ jobs: Claimed[] }>("POST", "jobs/claim", { worker_id: "w1", queues: [queue], wait_ms: 20_000 });
    const [job] = jobs;
    if (job === undefined) throw new Error("no job came");
    return job;
  }

  complete(job: Claimed, output: unknown): Promise<unknown> {
    return this.call("POST", `jobs/${job.job_id}/complete`, { lease_token: job.lease_token, output });
  }

  fail(job: Claimed, message: string): Promise<unknown> {
    return this.call("POST", `jobs/${job.job_id}/fail`, { lease_token: job.lease_token, error: { code: "TRY_AGAIN", message } });
  }
}

/** A proxy that serves pawl below a path of its own; the function ends it. */
export async function proxyBelow(prefix: string, target: () => string): Promise<{ url: string; end: () => void }> {
  const proxy = createServer((request, response) => {
    if (request.url?.startsWith(prefix) !== true) {
      response.writeHead(404).end();
      return;
    }
    const options = { method: request.method, headers: request.headers };
    const onward = ask(target() + request.url.slice(prefix.length), options, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      response.flushHeaders(); // a stream may be silent for long
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const end = (): void => {
    proxy.closeAllConnections();
    proxy.close();
  };
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${prefix}`, end };
}

export const REFUND = {
  description: "Looks an order up, asks a person, pays",
  input_schema: {
    type: "object",
    required: ["order", "amount"],
    properties: {
      order: { type: "string", description: "The number on the invoice" },
      amount: { type: "integer", minimum: 1 },
      currency: { enum: ["EUR", "USD"] },
    },
  },
  steps: [
    { name: "lookup", type: "task", handler: "orders.lookup", retry: { max_attempts: 3, backoff_ms: 10 } },
    { name: "ok", type: "approval", needs: ["lookup"], prompt: "Refund ${input.amount}?", content: { amount: "${input.amount}" } },
    { name: "pay", type: "task", handler: "payments.pay", needs: ["ok"], compensate: { handler: "payments.undo" } },
    { name: "mail", type: "task", handler: "mail.send", needs: ["ok"] },
    { name: "done", type: "transform", needs: ["pay", "mail"], output: { paid: true } },
  ],
};
