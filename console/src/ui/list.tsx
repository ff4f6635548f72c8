// A page's list in all its states: being read, refused, empty, and with a way to more of it.
import type { ComponentChildren } from "preact";
import { Loading, ProblemBox } from "./bits";
import type { Paged } from "./hooks";
import { Table, type TableProps } from "./table";

export function PagedTable<T>({ list, empty, ...table }: Omit<TableProps<T>, "items"> & { list: Paged<T>; empty: ComponentChildren }) {
  const { items, failure } = list;
  return (
    <>
      {failure !== null && <ProblemBox failure={failure} retry={list.reload} />}
      {items === null && failure === null && <Loading />}
      {items?.length === 0 && empty}
      {items !== null && items.length > 0 && <Table {...table} items={items} />}
      {list.hasMore && (
        <button type="button" class="more" onClick={list.more}>
          Show more
        </button>
      )}
    </>
  );
}
