// A list of any length of which only the visible rows exist. It scrolls in a box of its own.
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useReducer, useRef } from "preact/hooks";

export interface VirtualProps<T> {
  items: readonly T[];
  rowHeight: number;
  label: string;
  head?: ComponentChildren;
  row: (item: T) => ComponentChildren;
  keyOf: (item: T) => string;
  /** The end is in sight. */
  onEnd?: () => void;
}

const OVERSCAN = 12;

export function VirtualList<T>({ items, rowHeight, label, head, row, keyOf, onEnd }: VirtualProps<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const options = {
    count: items.length,
    estimateSize: () => rowHeight,
    overscan: OVERSCAN,
    getScrollElement: () => box.current,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    getItemKey: (i: number) => {
      const item = items[i];
      return item === undefined ? i : keyOf(item);
    },
    onChange: () => redraw(0),
  };
  const made = useRef<Virtualizer<HTMLDivElement, Element> | null>(null);
  made.current ??= new Virtualizer(options);
  const list = made.current;
  list.setOptions(options);
  useEffect(() => list._didMount(), [list]);
  useLayoutEffect(() => list._willUpdate());
  useLayoutEffect(() => list.measure(), [rowHeight]);
  const shown = list.getVirtualItems();
  const last = shown.at(-1)?.index ?? -1;
  useEffect(() => {
    if (items.length > 0 && last >= items.length - OVERSCAN) onEnd?.();
  }, [last, items.length]);
  return (
    <div class="virtual" role="table" aria-label={label} aria-rowcount={items.length + 1}>
      {head}
      <div class="virtual-scroll" ref={box} tabIndex={-1} role="rowgroup" style={{ height: `${list.getTotalSize()}px` }}>
        <div class="virtual-room" role="presentation" style={{ height: `${list.getTotalSize()}px` }}>
          {shown.map((place) => {
            const item = items[place.index];
            return (
              <div
                key={place.key}
                role="row"
                aria-rowindex={place.index + 2}
                class="virtual-row"
                style={{ transform: `translateY(${place.start}px)`, height: `${rowHeight}px` }}
              >
                {item !== undefined && row(item)}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
