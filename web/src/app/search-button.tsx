import { Search } from 'lucide-react';
import { lazy, Suspense, useEffect, useState, type ReactNode } from 'react';

const Everything = lazy(() => import('../search/everything.tsx'));

/** The address of a page with this part opens the search at once: pages outside of this app link to it. */
const SEARCH_HASH = '#search';

/** Opens the search over everything. Ctrl-K does the same, unless the page has used it for a search of its own. */
export function SearchButton(): ReactNode {
  const [open, setOpen] = useState(location.hash === SEARCH_HASH);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.key !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setOpen(true);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <>
      <button
        type="button"
        aria-label="Search"
        aria-haspopup="dialog"
        aria-keyshortcuts="Control+K"
        title="Search (Ctrl K)"
        onClick={() => setOpen(true)}
        className="grid size-9 place-items-center rounded-md text-soft hover:bg-sunk hover:text-ink"
      >
        <Search size={18} aria-hidden />
      </button>
      {open && (
        <Suspense>
          <Everything onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}
