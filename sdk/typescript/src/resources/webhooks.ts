/** Webhooks: events sent to your URLs. {@link verifyWebhook} checks what arrives. */

import type { CreateWebhook, CreatedWebhook, DeletedWebhook, Delivery, PutWebhook, Webhook } from "../wire.js";
import { Pages, Resource, segment, type ChangeOptions, type ListOptions, type RequestOptions } from "./resource.js";

const hookPath = (id: string): string => `/api/v1/webhooks/${segment(id)}`;

/** The routes of webhooks: `client.webhooks`. */
export class Webhooks extends Resource {
  /**
   * Sends events to a URL from now on. Only this answer has the `secret`.
   *
   * @example
   * ```ts
   * const hook = await client.webhooks.create({ url: "https://hooks.example/pawl", events: ["run.*"] });
   * console.log(hook.secret?.startsWith("whsec_")); // true
   * await client.webhooks.delete(hook.id);
   * ```
   */
  create(webhook: CreateWebhook, options: ChangeOptions = {}): Promise<CreatedWebhook> {
    return this.change("POST", "/api/v1/webhooks", webhook, options);
  }

  /**
   * A webhook, and whether it fails or is disabled.
   *
   * @example
   * ```ts
   * const { id } = await client.webhooks.create({ url: "https://hooks.example/a", events: ["*"] });
   * console.log((await client.webhooks.get(id)).enabled); // true
   * await client.webhooks.delete(id);
   * ```
   */
  get(id: string, options: RequestOptions = {}): Promise<Webhook> {
    return this.read(hookPath(id), {}, options);
  }

  /**
   * The webhooks.
   *
   * @example
   * ```ts
   * for await (const hook of client.webhooks.list()) console.log(hook.url, hook.failing_since);
   * ```
   */
  list(options: ListOptions = {}): Pages<Webhook> {
    return this.pages("/api/v1/webhooks", options);
  }

  /**
   * Changes a webhook. Absent members stay unchanged.
   *
   * @example
   * ```ts
   * const { id } = await client.webhooks.create({ url: "https://hooks.example/b", events: ["*"] });
   * await client.webhooks.put(id, { enabled: false });
   * await client.webhooks.delete(id);
   * ```
   */
  put(id: string, webhook: PutWebhook, options: ChangeOptions = {}): Promise<Webhook> {
    return this.change("PUT", hookPath(id), webhook, options);
  }

  /**
   * Deletes a webhook with its log.
   *
   * @example
   * ```ts
   * const { id } = await client.webhooks.create({ url: "https://hooks.example/c", events: ["*"] });
   * await client.webhooks.delete(id);
   * ```
   */
  delete(id: string, options: ChangeOptions = {}): Promise<DeletedWebhook> {
    return this.change("DELETE", hookPath(id), undefined, options);
  }

  /**
   * Makes a new secret. The old one stays valid for `old_secret_s` seconds, a day unless you say otherwise.
   *
   * @example
   * ```ts
   * const { id } = await client.webhooks.create({ url: "https://hooks.example/d", events: ["*"] });
   * const { secret } = await client.webhooks.rotate(id, { old_secret_s: 3600 });
   * console.log(secret?.length);
   * await client.webhooks.delete(id);
   * ```
   */
  rotate(
    id: string,
    { old_secret_s, ...options }: ChangeOptions & { old_secret_s?: number } = {},
  ): Promise<CreatedWebhook> {
    return this.change("POST", `${hookPath(id)}/rotate`, { old_secret_s }, options);
  }

  /**
   * Sends an event of type `webhook.test` to this webhook.
   *
   * @example
   * ```ts
   * const { id } = await client.webhooks.create({ url: "http://127.0.0.1:9/", events: ["*"] });
   * console.log((await client.webhooks.test(id)).event_type); // webhook.test
   * await client.webhooks.delete(id);
   * ```
   */
  test(id: string, options: ChangeOptions = {}): Promise<Delivery> {
    return this.change("POST", `${hookPath(id)}/test`, {}, options);
  }

  /**
   * What was sent, newest first, and the outcome.
   *
   * @example
   * ```ts
   * const { id } = await client.webhooks.create({ url: "http://127.0.0.1:9/", events: ["*"] });
   * await client.webhooks.test(id);
   * console.log((await client.webhooks.deliveries(id).page()).items.length); // 1
   * await client.webhooks.delete(id);
   * ```
   */
  deliveries(id: string, options: ListOptions = {}): Pages<Delivery> {
    return this.pages(`${hookPath(id)}/deliveries`, options);
  }

  /**
   * Sends a delivery again, under the same `webhook-id`.
   *
   * @example
   * ```ts
   * const { id } = await client.webhooks.create({ url: "http://127.0.0.1:9/", events: ["*"] });
   * const delivery = await client.webhooks.test(id);
   * await client.webhooks.redeliver(id, delivery.id);
   * await client.webhooks.delete(id);
   * ```
   */
  redeliver(id: string, deliveryId: string, options: ChangeOptions = {}): Promise<Delivery> {
    return this.change("POST", `${hookPath(id)}/deliveries/${segment(deliveryId)}/redeliver`, {}, options);
  }
}
