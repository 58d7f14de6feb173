import { Search } from 'lucide-react';
import { useDeferredValue, useEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import { createSearch } from '../../search/ranking.ts';
import { placeOf, type ApiDocument, type Endpoint } from './document.ts';
import { Method } from './method.tsx';

const MOST_FOUND = 20;

const createEndpointSearch = (document: ApiDocument) =>
  createSearch(
    document.endpoints,
    [
      { name: 'summary', weight: 6, text: ({ summary }) => summary },
      { name: 'name', weight: 3, text: ({ operationId, path }) => `${operationId} ${path}` },
      { name: 'chapter', weight: 3, text: ({ chapter }) => chapter },
      { name: 'text', weight: 1, text: ({ description = '' }) => description },
    ],
    // Most readers are no operators. A question that only the admin API answers still finds it.
    { weightOf: ({ chapter }) => (chapter === 'Administration' ? 0.6 : 1) },
  );

/** The search box and the list of all endpoints. `/` and Ctrl-K focus the box. */
export function Contents({
  document: api,
  here,
}: {
  readonly document: ApiDocument;
  readonly here: Endpoint | null;
}): ReactNode {
  const [words, setWords] = useState('');
  const [open, setOpen] = useState(false);
  const late = useDeferredValue(words);
  const search = useMemo(() => createEndpointSearch(api), [api]);
  const found = useMemo(() => search(late).slice(0, MOST_FOUND), [search, late]);
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent) => {
      const typing = event.target instanceof Element && event.target.closest('input, textarea, select') !== null;
      const slash = event.key === '/' && !event.ctrlKey && !event.metaKey && !event.altKey && !typing;
      if (!slash && !((event.ctrlKey || event.metaKey) && event.key === 'k')) return;
      event.preventDefault();
      box.current?.querySelector('input')?.focus();
    };
    // Before the search over everything, which the frame opens with the same keys.
    addEventListener('keydown', onKey, { capture: true });
    return () => removeEventListener('keydown', onKey, { capture: true });
  }, []);
  const close = () => {
    setOpen(false);
    setWords('');
  };
  const move = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Escape') setWords('');
    if (step === undefined) return;
    event.preventDefault();
    const stops = [...(box.current?.querySelectorAll<HTMLElement>('input, a') ?? [])];
    stops[stops.indexOf(document.activeElement as HTMLElement) + step]?.focus();
  };
  return (
    <aside
      ref={box}
      className="min-w-0 lg:sticky lg:top-14 lg:-my-10 lg:h-[calc(100dvh-3.5rem)] lg:overflow-y-auto lg:border-r lg:border-line lg:py-8 lg:pr-5"
    >
      <search>
        <div className="relative">
          <Search size={16} aria-hidden className="absolute left-3 top-1/2 -translate-y-1/2 text-soft" />
          <input
            type="search"
            aria-label="Search the API"
            aria-keyshortcuts="/ Control+K"
            placeholder="Search"
            autoComplete="off"
            spellCheck={false}
            value={words}
            onChange={(event) => setWords(event.target.value)}
            onKeyDown={(event) => {
              move(event);
              if (event.key !== 'Enter' || !found[0]) return;
              location.hash = placeOf(found[0]);
              close();
            }}
            className="h-10 w-full rounded-md border border-edge bg-card pl-9 pr-14 text-base placeholder:text-soft"
          />
          <kbd className="pointer-events-none absolute right-2.5 top-1/2 -translate-y-1/2 rounded border border-line px-1.5 text-xs text-soft">
            Ctrl K
          </kbd>
        </div>
        {words.trim() !== '' && (
          <>
            <p role="status" className="mt-3 text-sm text-soft">
              {found.length === 0 ? `Nothing about “${words.trim()}”. Try fewer words.` : `${found.length} found`}
            </p>
            <ul className="mt-2 grid">
              {found.map((endpoint) => (
                <EndpointLink
                  key={endpoint.operationId}
                  endpoint={endpoint}
                  here={here}
                  onKeyDown={move}
                  onClick={close}
                />
              ))}
            </ul>
          </>
        )}
      </search>
      {words.trim() === '' && (
        <>
          <button
            type="button"
            aria-expanded={open}
            onClick={() => setOpen(!open)}
            className="mt-3 h-9 w-full rounded-md border border-line text-sm font-medium lg:hidden"
          >
            {open ? 'Hide the contents' : 'Contents'}
          </button>
          <nav aria-label="Endpoints" className={`mt-5 gap-4 ${open ? 'grid' : 'hidden'} lg:grid`}>
            {api.chapters.map(({ name, endpoints }) => (
              <details key={name} open={here?.chapter === name || (here === null && name === 'Chat')} className="group">
                <summary className="rounded py-0.5 text-sm font-semibold">
                  {name} <span className="figures font-normal text-soft">{endpoints.length}</span>
                </summary>
                <ul className="mt-1 grid">
                  {endpoints.map((endpoint) => (
                    <EndpointLink
                      key={endpoint.operationId}
                      endpoint={endpoint}
                      here={here}
                      onKeyDown={move}
                      onClick={close}
                    />
                  ))}
                </ul>
              </details>
            ))}
          </nav>
        </>
      )}
    </aside>
  );
}

function EndpointLink({
  endpoint,
  here,
  ...handlers
}: {
  readonly endpoint: Endpoint;
  readonly here: Endpoint | null;
  readonly onKeyDown: (event: KeyboardEvent) => void;
  readonly onClick: () => void;
}): ReactNode {
  return (
    <li className="min-w-0">
      <a
        {...handlers}
        href={placeOf(endpoint)}
        aria-current={endpoint === here ? 'page' : undefined}
        className="flex items-baseline gap-2 rounded-md px-2 py-1.5 text-sm text-soft -outline-offset-2 hover:bg-sunk hover:text-ink aria-[current=page]:bg-accent-wash aria-[current=page]:text-ink"
      >
        <Method name={endpoint.method} short />
        <span className="min-w-0 break-words">{endpoint.summary}</span>
      </a>
    </li>
  );
}
