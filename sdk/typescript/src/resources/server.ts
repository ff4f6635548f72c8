/** The server itself. */

import type { Health, Readiness } from "../wire.js";
import { Resource, type RequestOptions } from "./resource.js";

/** The public routes of the server: `client.server`. */
export class Server extends Resource {
  /**
   * Whether the process is alive, and its version.
   *
   * @example
   * ```ts
   * console.log((await client.server.health()).version);
   * ```
   */
  health(options: RequestOptions = {}): Promise<Health> {
    return this.read("/healthz", {}, options);
  }

  /**
   * Whether the server can work, with the state of each dependency. An `UnavailableError` if it cannot.
   *
   * @example
   * ```ts
   * console.log((await client.server.ready()).dependencies);
   * ```
   */
  async ready(options: RequestOptions = {}): Promise<Readiness> {
    const request = { method: "GET" as const, path: "/readyz", signal: options.signal, retry: { maxAttempts: 1 } };
    return (await this.transport.send<Readiness>(request)).body;
  }

  /**
   * The metrics, as Prometheus reads them.
   *
   * @example
   * ```ts
   * console.log((await client.server.metrics()).includes("pawl_commit_seconds")); // true
   * ```
   */
  async metrics(options: RequestOptions = {}): Promise<string> {
    const request = { method: "GET" as const, path: "/metrics", signal: options.signal, text: true };
    return (await this.transport.send<string>(request)).body;
  }
}
