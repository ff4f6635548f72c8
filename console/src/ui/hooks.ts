// What pages share: the present time, data that is loaded, and work that is done once for many calls.
import { signal } from "@preact/signals";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Failure } from "../api/client";

/** The present, once a second. */
export const now = signal(Date.now());
setInterval(() => {
  if (document.visibilityState === "visible") now.value = Date.now();
}, 1_000);

export interface Loaded<T> {
  data: T | null;
  failure: Failure | null;
  reload: () => void;
}

const asFailure = (e: unknown): Failure => (e instanceof Failure ? e : new Failure({ title: String(e), status: 0, code: "INTERNAL" }));

/** Loads when a dependency changes, and again on reload(); what was loaded stays until then. An answer that a newer one has overtaken is dropped. */
export function useLoad<T>(load: () => Promise<T>, deps: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<{ data: T | null; failure: Failure | null }>({ data: null, failure: null });
  const turn = useRef(0);
  const latest = useRef(load);
  latest.current = load;
  const reload = useCallback(() => {
    const mine = ++turn.current;
    latest.current().then(
      (data) => mine === turn.current && setState({ data, failure: null }),
      (e: unknown) => mine === turn.current && setState((old) => ({ data: old.data, failure: asFailure(e) })),
    );
  }, []);
  useEffect(() => {
    reload();
    return () => {
      turn.current++;
    };
  }, deps);
  return { ...state, reload };
}

/** Calls `work` at most once per `ms`, also for the last call. */
export function useThrottled(work: () => void, ms: number): () => void {
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const latest = useRef(work);
  latest.current = work;
  useEffect(() => () => clearTimeout(timer.current ?? undefined), []);
  return useCallback(() => {
    timer.current ??= setTimeout(() => {
      timer.current = null;
      latest.current();
    }, ms);
  }, [ms]);
}

/** Is the window at least this wide? */
export function useWide(px: number): boolean {
  const query = `(min-width: ${px}px)`;
  const [wide, setWide] = useState(() => window.matchMedia(query).matches);
  useEffect(() => {
    const media = window.matchMedia(query);
    const changed = (): void => setWide(media.matches);
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  }, [query]);
  return wide;
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · pawl`;
  }, [title]);
}

/** Loads again every `ms` while the page is looked at: for what has no events of its own. */
export function usePolled<T>(load: () => Promise<T>, ms: number, deps: readonly unknown[] = []): Loaded<T> {
  const loaded = useLoad(load, deps);
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && loaded.reload(), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return loaded;
}

export interface Paged<T> {
  items: T[] | null;
  /** Is there more? */
  hasMore: boolean;
  failure: Failure | null;
  more: () => void;
  reload: () => void;
}

interface PageOf<T> {
  items: T[];
  next_cursor: string | null;
}

async function readPages<T>(read: (cursor: string | undefined) => Promise<PageOf<T>>, count: number): Promise<PageOf<T>> {
  const items: T[] = [];
  let cursor: string | null = null;
  for (let pages = 0; pages < count; pages++) {
    const page: PageOf<T> = await read(cursor ?? undefined);
    items.push(...page.items);
    cursor = page.next_cursor;
    if (cursor === null) break;
  }
  return { items, next_cursor: cursor };
}

/** A list that is read a page at a time. What is read again is as long as it was. */
export function usePages<T>(read: (cursor: string | undefined) => Promise<PageOf<T>>, deps: readonly unknown[]): Paged<T> {
  const count = useRef(1);
  const asked = useRef(deps);
  if (deps.some((dep, i) => dep !== asked.current[i])) {
    asked.current = deps;
    count.current = 1;
  }
  const { data, failure, reload } = useLoad(() => readPages(read, count.current), deps);
  const more = (): void => {
    count.current++;
    reload();
  };
  return { items: data?.items ?? null, hasMore: data !== null && data.next_cursor !== null, failure, more, reload };
}
