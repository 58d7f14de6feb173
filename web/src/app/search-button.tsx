import { Search } from 'lucide-react';
import { lazy, Suspense, useEffect, useState, type ReactNode } from 'react';

const Everything = lazy(() => import('../search/everything.tsx'));

/** The address of a page with this part opens the search at once: pages outside of this app link to it. */
const SEARCH_HASH = '#search';
/** The letters that are typed after such a page has opened the search, and before this app runs. */
const TYPED = 'tollgate.search';

/** Opens the search over everything. Ctrl-K does the same, unless the page has used it for a search of its own. */
export function SearchButton(): ReactNode {
  const [open, setOpen] = useState(location.hash === SEARCH_HASH);
  const [words, setWords] = useState('');
  useEffect(() => {
    // Once the listener below is there. Until then the early script keeps what is typed.
    queueMicrotask(() => {
      const typed = sessionStorage.getItem(TYPED);
      sessionStorage.removeItem(TYPED);
      if (typed !== null) setWords(typed);
    });
  }, []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { key } = event;
      const isCommand = event.ctrlKey || event.metaKey;
      // Until the box is there, which is loaded first, what is typed for it is taken here.
      const isEarly = open && key.length === 1 && !event.altKey && !(event.target as Element).closest('dialog');
      if (event.defaultPrevented || !(isCommand ? key === 'k' : isEarly)) return;
      event.preventDefault();
      if (isCommand) setOpen(true);
      else setWords((before) => before + key);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [open]);
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
          <Everything
            words={words}
            onWords={setWords}
            onClose={() => {
              setOpen(false);
              setWords('');
            }}
          />
        </Suspense>
      )}
    </>
  );
}
