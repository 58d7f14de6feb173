import { ArrowDown, ArrowUp } from 'lucide-react';
import { memo, useMemo, useRef, type ReactNode } from 'react';
import { useAlignedMoney } from './aligned-money.ts';
import { useWindowOfRows } from './window-of-rows.ts';

export interface Column<Row> {
  readonly id: string;
  readonly head: ReactNode;
  readonly cell: (row: Row) => ReactNode;
  /** For numbers. */
  readonly align?: 'right';
  /** Makes the column sortable. null is always last. */
  readonly sort?: (row: Row) => number | string | null;
  /** Shows the column only on screens of at least this width. By default it is always shown. */
  readonly from?: 'sm' | 'md' | 'lg' | 'xl';
  /** A class for the column's width, such as `w-28`. */
  readonly width?: string;
}

export interface Sorting {
  readonly column: string;
  readonly down: boolean;
}

const FROM = {
  sm: 'hidden sm:table-cell',
  md: 'hidden md:table-cell',
  lg: 'hidden lg:table-cell',
  xl: 'hidden xl:table-cell',
} as const;

/**
 * The column that names the rows is the first one that is not for numbers. It has a least width, whatever other columns
 * say, and a long name wraps, so that it takes no width from them.
 */
const NAME = 'min-w-32 sm:min-w-44 wrap-anywhere';

/** From this many rows on, only rows near the screen are in the document. */
const WINDOW_ROWS = 120;

/**
 * A table. The caller keeps the state of the sorting, for instance in the address. In a long table every row is
 * `rowHeight` pixels high, and only the rows near the screen are rendered.
 */
export function Table<Row>({
  caption,
  columns,
  rows,
  rowKey,
  sorting,
  onSort,
  rowHeight = 64,
  empty,
}: {
  /** For screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string;
  readonly sorting?: Sorting;
  readonly onSort?: (sorting: Sorting) => void;
  readonly rowHeight?: number;
  /** Shown if there are no rows. */
  readonly empty?: ReactNode;
}): ReactNode {
  const sorted = useMemo(() => sortRows(rows, columns, sorting), [rows, columns, sorting]);
  const looks = useMemo(() => columns.map((_, at) => lookOf(columns, at)), [columns]);
  const body = useRef<HTMLTableSectionElement>(null);
  const windowed = sorted.length > WINDOW_ROWS;
  const { first, last } = useWindowOfRows(body, { count: sorted.length, rowHeight, enabled: windowed });
  useAlignedMoney(body);
  if (rows.length === 0 && empty !== undefined) return empty;
  return (
    <div className="relative overflow-x-auto">
      <table className="w-full border-collapse text-base" aria-rowcount={windowed ? sorted.length + 1 : undefined}>
        <caption className="sr-only">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column, at) => (
              <Head
                key={column.id}
                column={column}
                look={looks[at]!}
                {...(sorting ? { sorting } : {})}
                {...(onSort ? { onSort } : {})}
              />
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          <Spacer height={first * rowHeight} columns={columns.length} />
          {sorted.slice(first, last).map((row, index) => (
            <Row
              key={rowKey(row)}
              row={row}
              columns={columns as readonly Column<unknown>[]}
              looks={looks}
              place={windowed ? first + index + 2 : null}
              height={windowed ? rowHeight : null}
            />
          ))}
          <Spacer height={(sorted.length - last) * rowHeight} columns={columns.length} />
        </tbody>
      </table>
    </div>
  );
}

/** Memoised: a row is rendered again only if it has changed, because most rows stay the same while a search narrows. */
const Row = memo(function Row({
  row,
  columns,
  looks,
  place,
  height,
}: {
  readonly row: unknown;
  readonly columns: readonly Column<unknown>[];
  readonly looks: readonly string[];
  /** Index in the whole table, including the head. null if all rows are in the document. */
  readonly place: number | null;
  readonly height: number | null;
}): ReactNode {
  return (
    <tr
      aria-rowindex={place ?? undefined}
      style={height === null ? undefined : { height }}
      className="relative border-t border-line has-[.row-link]:hover:bg-sunk/60"
    >
      {columns.map((column, at) => (
        <td key={column.id} className={`py-2.5 ${looks[at]!}`}>
          {column.cell(row)}
        </td>
      ))}
    </tr>
  );
});

/** Classes of a column's cells. The padding is wider at the edges of the table, and in the last column of a phone. */
function lookOf(columns: readonly Pick<Column<never>, 'align' | 'from' | 'width'>[], at: number): string {
  const { align, from, width = '' } = columns[at]!;
  const isLastOnPhone = !columns.slice(at + 1).some((column) => column.from === undefined);
  const isName = at === columns.findIndex((column) => column.align === undefined);
  return `px-1.5 sm:px-3 first:pl-4 sm:first:pl-5 sm:last:pr-5 ${isLastOnPhone ? 'max-sm:pr-4' : ''} ${align === 'right' ? 'text-right figures' : ''} ${from ? FROM[from] : ''} ${isName ? NAME : ''} ${width}`;
}

function Head<Row>({
  column,
  look,
  sorting,
  onSort,
}: {
  readonly column: Column<Row>;
  readonly look: string;
  readonly sorting?: Sorting;
  readonly onSort?: (sorting: Sorting) => void;
}): ReactNode {
  const active = sorting?.column === column.id;
  const Arrow = sorting?.down === true ? ArrowDown : ArrowUp;
  const sortable = column.sort !== undefined && onSort !== undefined;
  return (
    <th
      scope="col"
      aria-sort={active ? (sorting.down ? 'descending' : 'ascending') : undefined}
      className={`h-10 text-left text-xs font-medium whitespace-nowrap text-soft ${look}`}
    >
      {sortable ? (
        <button
          type="button"
          onClick={() => onSort({ column: column.id, down: active ? !sorting.down : column.align === 'right' })}
          className={`inline-flex items-center gap-1 rounded align-middle hover:text-ink ${active ? 'text-ink' : ''} ${column.align === 'right' ? 'flex-row-reverse' : ''}`}
        >
          {column.head}
          <Arrow size={13} aria-hidden className={active ? '' : 'invisible max-sm:hidden'} />
        </button>
      ) : (
        column.head
      )}
    </th>
  );
}

function Spacer({ height, columns }: { readonly height: number; readonly columns: number }): ReactNode {
  return height > 0 ? (
    <tr aria-hidden>
      <td colSpan={columns} style={{ height, padding: 0 }} />
    </tr>
  ) : null;
}

function sortRows<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  sorting: Sorting | undefined,
): readonly Row[] {
  const by = columns.find(({ id }) => id === sorting?.column)?.sort;
  if (!by || !sorting) return rows;
  const sign = sorting.down ? -1 : 1;
  const keyed = rows.map((row) => ({ row, key: by(row) }));
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return Number(a.key === null) - Number(b.key === null);
    return a.key < b.key ? -sign : a.key > b.key ? sign : 0;
  });
  return keyed.map(({ row }) => row);
}
