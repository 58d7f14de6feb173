import { type RefObject, useLayoutEffect } from 'react';

/** As many decimals as an amount can have, with the point. */
const DECIMALS = '.000000';

/** How many characters of a formatted amount are its decimals, with the point. A compact `$1.23M` has none. */
const decimalsOf = ({ textContent: text }: HTMLElement): number => /\.\d+$/.exec(text)?.[0].length ?? 0;

/**
 * Puts the first amounts of each column of a table below each other by their points: an amount with fewer decimals than
 * others gets the rest as invisible text (`.money` in styles.css), and no amount has more digits than it needs.
 */
export function useAlignedMoney(body: RefObject<HTMLElement | null>): void {
  useLayoutEffect(() => {
    const columns: HTMLElement[][] = [];
    body.current?.querySelectorAll<HTMLTableCellElement>('td.figures').forEach((cell) => {
      const amount = cell.querySelector<HTMLElement>('.money');
      if (amount !== null) (columns[cell.cellIndex] ??= []).push(amount);
    });
    columns.forEach((amounts) => {
      const most = Math.max(...amounts.map(decimalsOf));
      for (const amount of amounts) amount.dataset['rest'] = DECIMALS.slice(decimalsOf(amount), most);
    });
  });
}
