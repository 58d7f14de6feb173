import { useEffect, useRef, type RefObject } from 'react';

/** Scrolls a row of links or tabs horizontally to the current one, which may be out of view on a phone. */
export function useCurrentInView<Row extends HTMLElement>(current: string): RefObject<Row | null> {
  const row = useRef<Row>(null);
  const seen = useRef('');
  useEffect(() => {
    if (seen.current === current) return;
    seen.current = current;
    const list = row.current;
    const shown = list?.querySelector('[aria-current="page"], [aria-selected="true"], [aria-pressed="true"]');
    if (!list || !shown) return;
    const [outer, inner] = [list.getBoundingClientRect(), shown.getBoundingClientRect()];
    if (inner.left < outer.left || inner.right > outer.right)
      list.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
  }, [current]);
  return row;
}
