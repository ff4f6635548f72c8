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

/** A list that is read a page at a time. */
export function usePages<T>(read: (cursor: string | undefined) => Promise<PageOf<T>>, deps: readonly unknown[]): Paged<T> {
  const [older, setOlder] = useState<PageOf<T> | null>(null); // what follows the first page
  const first = useLoad(() => read(undefined), deps);
  const reload = (): void => {
    setOlder(null);
    first.reload();
  };
  useEffect(() => setOlder(null), deps);
  const cursor = (older ?? first.data)?.next_cursor ?? null;
  const more = (): void => {
    if (cursor === null) return;
    void read(cursor).then((page) => setOlder((old) => ({ items: [...(old?.items ?? []), ...page.items], next_cursor: page.next_cursor })));
  };
  const items = first.data === null ? null : [...first.data.items, ...(older?.items ?? [])];
  return { items, hasMore: cursor !== null, failure: first.failure, more, reload };
}
