/** Schedules: runs at set times. */

import type { Deleted, PutSchedule, Schedule, Triggered } from "../wire.js";
import { Pages, Resource, segment, type ChangeOptions, type ListOptions, type RequestOptions } from "./resource.js";

const schedulePath = (id: string): string => `/api/v1/schedules/${segment(id)}`;

/** The routes of schedules: `client.schedules`. */
export class Schedules extends Resource {
  /**
   * Creates or replaces a schedule. Each of its times starts exactly one run.
   *
   * @example
   * ```ts
   * const nightly = { workflow_id: "greet", cron: "0 3 * * *", timezone: "Europe/Berlin", input: { name: "night" } };
   * console.log((await client.schedules.put("nightly", nightly)).next_times[0]);
   * ```
   */
  put(id: string, schedule: PutSchedule, options: ChangeOptions = {}): Promise<Schedule> {
    return this.change("PUT", schedulePath(id), schedule, options);
  }

  /**
   * A schedule with its next times.
   *
   * @example
   * ```ts
   * await client.schedules.put("hourly", { workflow_id: "greet", cron: "@hourly", paused: true });
   * console.log((await client.schedules.get("hourly")).cron); // @hourly
   * ```
   */
  get(id: string, options: RequestOptions = {}): Promise<Schedule> {
    return this.read(schedulePath(id), {}, options);
  }

  /**
   * The schedules by id.
   *
   * @example
   * ```ts
   * for await (const { id, last_error } of client.schedules.list()) console.log(id, last_error);
   * ```
   */
  list(options: ListOptions = {}): Pages<Schedule> {
    return this.pages("/api/v1/schedules", options);
  }

  /**
   * Starts a run of the schedule now, in addition to its times.
   *
   * @example
   * ```ts
   * await client.schedules.put("weekly", { workflow_id: "greet", cron: "@weekly", input: { name: "week" } });
   * console.log((await client.schedules.trigger("weekly")).run_id);
   * ```
   */
  trigger(id: string, options: ChangeOptions = {}): Promise<Triggered> {
    return this.change("POST", `${schedulePath(id)}/trigger`, {}, options);
  }

  /**
   * Deletes a schedule. Its runs stay.
   *
   * @example
   * ```ts
   * await client.schedules.put("once", { workflow_id: "greet", cron: "0 0 1 1 *", paused: true });
   * await client.schedules.delete("once");
   * ```
   */
  delete(id: string, options: ChangeOptions = {}): Promise<Deleted> {
    return this.change("DELETE", schedulePath(id), undefined, options);
  }
}
