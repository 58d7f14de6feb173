import { useState, useSyncExternalStore, type ReactNode } from 'react';
import { Card } from '../../ui/card.tsx';
import { Heading } from '../../ui/heading.tsx';
import { Markdown } from '../../ui/markdown.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { useTitle } from '../../app/title.ts';
import { Contents } from './contents.tsx';
import { placeOf, useApiDocument, type ApiDocument, type Endpoint } from './document.ts';
import { EndpointView } from './endpoint-view.tsx';
import { Method } from './method.tsx';

/** The last part after `#` that begins with a slash. `#main` of "Skip to the content" doesn't change it. */
let place = location.hash;
function subscribe(changed: () => void): () => void {
  const onChange = () => {
    if (location.hash === '' || location.hash.startsWith('#/')) place = location.hash;
    changed();
  };
  onChange();
  addEventListener('hashchange', onChange);
  return () => removeEventListener('hashchange', onChange);
}

/** The endpoint of `#/Chat/createChatCompletion`, or null if there is no such endpoint. */
const endpointAt = ({ endpoints }: ApiDocument, at: string): Endpoint | null => {
  const name = decodeURIComponent(at.split('/')[2] ?? '');
  return endpoints.find(({ operationId }) => operationId === name) ?? null;
};

export default function ReferencePage(): ReactNode {
  const query = useApiDocument();
  return <QueryView query={query}>{(document) => <Reference document={document} />}</QueryView>;
}

function Reference({ document }: { readonly document: ApiDocument }): ReactNode {
  const at = useSyncExternalStore(subscribe, () => place);
  const here = endpointAt(document, at);
  const [apiKey, setApiKey] = useState('');
  useTitle(here === null ? 'API reference' : here.summary);
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-x-8 gap-y-6 lg:grid-cols-[270px_minmax(0,1fr)]">
      <Contents document={document} here={here} />
      {here === null ? (
        <Start document={document} chapter={decodeURIComponent(at.split('/')[1] ?? '')} />
      ) : (
        <EndpointView key={placeOf(here)} document={document} endpoint={here} apiKey={apiKey} onKey={setApiKey} />
      )}
    </div>
  );
}

/** The introduction and all chapters. With the name of a chapter, only this one. */
function Start({ document, chapter }: { readonly document: ApiDocument; readonly chapter: string }): ReactNode {
  const { chapters, description, version } = document;
  const only = chapters.filter(({ name }) => name === chapter);
  return (
    <div className="min-w-0">
      <Heading
        title={only[0]?.name ?? 'API reference'}
        lead={only[0]?.description ?? `Version ${version}. Every endpoint, to read and to try.`}
        action={
          <a href="/openapi.json" className="link text-sm">
            OpenAPI document
          </a>
        }
      />
      {only.length === 0 && (
        <div className="mb-8 max-w-[75ch]">
          <Markdown text={description} />
        </div>
      )}
      <div className="grid gap-5">
        {(only.length > 0 ? only : chapters).map(({ name, description: about, endpoints }) => (
          <Card key={name} title={name} flush>
            <p className="px-4 pt-3 text-sm text-soft sm:px-5">{about}</p>
            <ul className="grid py-2">
              {endpoints.map((endpoint) => (
                <li key={endpoint.operationId}>
                  <a
                    href={placeOf(endpoint)}
                    className="flex flex-wrap items-baseline gap-x-3 px-4 py-1.5 text-sm -outline-offset-2 hover:bg-sunk sm:px-5"
                  >
                    <Method name={endpoint.method} short />
                    <span className="font-medium">{endpoint.summary}</span>
                    <code className="min-w-0 font-mono text-xs break-all text-soft">{endpoint.path}</code>
                  </a>
                </li>
              ))}
            </ul>
          </Card>
        ))}
      </div>
    </div>
  );
}
