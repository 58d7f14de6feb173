import { useQuery } from '@tanstack/react-query';
import { useDeferredValue, useMemo, type ReactNode } from 'react';
import { useLocation } from 'wouter';
import { toolsQuery, toolTable, useServices } from '../api/catalogue.ts';
import { request } from '../api/request.ts';
import { useSession } from '../api/session.ts';
import { isElsewhere } from '../app/link.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Finder } from '../ui/finder.tsx';
import { createPlaceSearch, type Place } from './places.ts';

type GuideParts = Parameters<typeof createPlaceSearch>[0]['guide'];

const guideQuery = {
  queryKey: ['guide'],
  staleTime: Number.POSITIVE_INFINITY,
  queryFn: async () => (await (await request('/docs/guide/assets/search.json')).json()) as GuideParts,
};

interface Search {
  /** The words of the search. */
  readonly words: string;
  readonly onWords: (words: string) => void;
  readonly onClose: () => void;
}

/** The search over everything, in its dialog. What it searches is loaded when it opens. */
export default function Everything(search: Search): ReactNode {
  return (
    <Dialog title="Search" open onClose={search.onClose}>
      <Places {...search} />
    </Dialog>
  );
}

function Places({ words, onWords, onClose }: Search): ReactNode {
  const [, navigate] = useLocation();
  const { session } = useSession();
  const { data: services = NONE } = useServices();
  const { data: tools } = useQuery(toolsQuery);
  const { data: guide = NONE, isPending } = useQuery(guideQuery);
  const late = useDeferredValue(words);
  const signedIn = session !== null;
  const find = useMemo(
    () => createPlaceSearch({ services, toolsOf: toolTable(tools), guide, signedIn }),
    [services, tools, guide, signedIn],
  );
  const found = useMemo(() => find(late), [find, late]);
  const go = ({ href }: Place) => {
    onClose();
    // The guide is not part of this app.
    if (href.startsWith('/docs/guide') || isElsewhere(href)) location.assign(href);
    else navigate(href);
  };
  return (
    <Finder
      label="Search everything"
      listLabel="Places"
      placeholder="A service, a page, a question, the id of a call"
      words={words}
      onWords={onWords}
      items={found}
      isLate={late !== words}
      keyOf={({ href }) => href}
      onChoose={go}
      empty={isPending ? 'Loading' : 'Nothing about this. Try fewer words.'}
      line={({ title, about, kind }) => (
        <>
          <span className="min-w-0 grow">
            <span className="block truncate font-medium">{title}</span>
            {about !== '' && <span className="block truncate text-sm text-soft">{about}</span>}
          </span>
          <span className="shrink-0 text-sm text-soft">{kind}</span>
        </>
      )}
    />
  );
}

const NONE: readonly never[] = [];
