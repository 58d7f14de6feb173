import { type RefObject, useLayoutEffect } from 'react';

/** The decimals of a formatted amount, with the point. A compact amount such as `$1.23M` has none. */
const DECIMALS = /\.\d+$/;

/**
 * Puts the amounts of each column of a table below each other by their points: an amount with fewer decimals than
 * others gets the rest as invisible text (`.money` in styles.css), and no amount has more digits than it needs.
 */
export function useAlignedMoney(body: RefObject<HTMLTableSectionElement | null>): void {
  useLayoutEffect(() => {
    const columns = new Map<string, { readonly amount: HTMLElement; readonly decimals: string }[]>();
    for (const cell of body.current?.querySelectorAll<HTMLTableCellElement>('td.figures') ?? [])
      cell.querySelectorAll<HTMLElement>('.money').forEach((amount, line) => {
        const column = `${cell.cellIndex} ${line}`;
        const decimals = DECIMALS.exec(amount.textContent)?.[0] ?? '';
        columns.set(column, [...(columns.get(column) ?? []), { amount, decimals }]);
      });
    for (const amounts of columns.values()) {
      const longest = amounts.reduce((most, { decimals }) => (decimals.length > most.length ? decimals : most), '');
      for (const { amount, decimals } of amounts) amount.dataset['rest'] = longest.slice(decimals.length);
    }
  });
}
