import { useEffect, useState, type RefObject } from 'react';

/** Additional rows above and below the screen, so that quick scrolling shows no gap. */
const BESIDE = 8;

/** The range of a long table's rows that are near the screen, from `first` to before `last`. */
export function useWindowOfRows(
  body: RefObject<HTMLElement | null>,
  { count, rowHeight, enabled }: { readonly count: number; readonly rowHeight: number; readonly enabled: boolean },
): { readonly first: number; readonly last: number } {
  const [from, setFrom] = useState(0);
  const visible = Math.ceil(window.innerHeight / rowHeight) + 2 * BESIDE;
  useEffect(() => {
    if (!enabled) return;
    const look = () => {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const row = Math.floor(-top / rowHeight) - BESIDE;
      // Changes in steps, so that not every scrolled pixel renders the table again.
      setFrom(Math.max(0, row - (row % 5)));
    };
    look();
    addEventListener('scroll', look, { passive: true });
    addEventListener('resize', look);
    return () => {
      removeEventListener('scroll', look);
      removeEventListener('resize', look);
    };
  }, [body, rowHeight, enabled]);
  if (!enabled) return { first: 0, last: count };
  const first = Math.min(from, Math.max(0, count - visible));
  return { first, last: Math.min(count, first + visible + 5) };
}
