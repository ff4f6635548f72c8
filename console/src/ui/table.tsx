// A table that becomes a list of cards on narrow screens. Roles are written out because browsers forget those of tables
// that are laid out otherwise.
import type { ComponentChildren } from "preact";

export interface Column<T> {
  title: string;
  cell: (item: T) => ComponentChildren;
  /** Numbers are read from the right. */
  numeric?: boolean;
}

export interface TableProps<T> {
  label: string;
  columns: ReadonlyArray<Column<T>>;
  items: readonly T[];
  keyOf: (item: T) => string | number;
}

export function Table<T>({ label, columns, items, keyOf }: TableProps<T>) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table role="table" aria-label={label}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((column) => (
              <th key={column.title} role="columnheader" class={column.numeric === true ? "numeric" : ""}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {items.map((item) => (
            <tr key={keyOf(item)} role="row">
              {columns.map((column) => (
                <td key={column.title} role="cell" data-title={column.title} class={column.numeric === true ? "numeric" : ""}>
                  <div class="cell">{column.cell(item)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
