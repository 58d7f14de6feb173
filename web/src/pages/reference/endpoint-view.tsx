import { useEffect, useMemo, useRef, type ReactNode } from 'react';
import { BOOT } from '../../app/boot.ts';
import { CodeTabs } from '../../code/code-tabs.tsx';
import { Card } from '../../ui/card.tsx';
import { CodeBlock } from '../../ui/code-block.tsx';
import { Fold } from '../../ui/fold.tsx';
import { Markdown } from '../../ui/markdown.tsx';
import { exampleOf, type ApiDocument, type Content, type Endpoint } from './document.ts';
import { FieldList, Prose, SchemaFields } from './fields.tsx';
import { Method } from './method.tsx';
import { sampleCall, samplesOf } from './samples.ts';
import { Trial } from './trial.tsx';

const WAYS: Readonly<Record<string, string>> = {
  bearer: 'an API key',
  apiKey: 'an API key as x-api-key',
  wallet: 'a wallet',
};

/** Everything about one endpoint. */
export function EndpointView({
  document: { resolve },
  endpoint,
  apiKey,
  onKey,
}: {
  readonly document: ApiDocument;
  readonly endpoint: Endpoint;
  readonly apiKey: string;
  readonly onKey: (key: string) => void;
}): ReactNode {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    window.scrollTo(0, 0);
    heading.current?.focus({ preventScroll: true });
  }, []);
  const parameters = (endpoint.parameters ?? []).map((each) => resolve(each));
  const fallback = endpoint.responses?.['default'];
  const common = Object.values((fallback && resolve(fallback).content) ?? {})[0]?.schema?.$ref;
  const call = useMemo(() => sampleCall(endpoint, resolve), [endpoint, resolve]);
  const samples = useMemo(() => samplesOf(call, BOOT.base_url), [call]);
  return (
    <article className="grid min-w-0 grid-cols-[minmax(0,1fr)] gap-6">
      <header>
        <p className="mb-2 text-sm text-soft">{endpoint.chapter}</p>
        <h1 ref={heading} tabIndex={-1} className="text-2xl break-words outline-none sm:text-3xl">
          {endpoint.summary}
        </h1>
        <p className="mt-3 flex flex-wrap items-baseline gap-x-2.5 font-mono text-sm break-all">
          <Method name={endpoint.method} /> <span className="min-w-0">{endpoint.path}</span>
        </p>
      </header>
      {endpoint.description !== undefined && (
        <div className="max-w-[75ch]">
          <Markdown text={endpoint.description} />
        </div>
      )}
      <p className="text-sm text-soft">{accessOf(endpoint)}</p>
      <Card title="Example">
        <CodeTabs snippets={samples} />
      </Card>
      {call.form === null && (
        <Card title="Try it">
          <Trial endpoint={endpoint} parameters={parameters} call={call} apiKey={apiKey} onKey={onKey} />
        </Card>
      )}
      {parameters.length > 0 && (
        <Card title="Parameters">
          {(['path', 'query', 'header'] as const).map((place) => {
            const some = parameters.filter((each) => each.in === place);
            return (
              some.length > 0 && (
                <section key={place} className="mt-5 first:mt-0">
                  <h3 className="text-sm text-soft">{PLACES[place]}</h3>
                  <FieldList
                    resolve={resolve}
                    fields={some.map(({ name, schema = {}, required = false, description }) => ({
                      name,
                      schema,
                      required,
                      ...(description === undefined ? {} : { description }),
                    }))}
                  />
                </section>
              )
            );
          })}
        </Card>
      )}
      {Object.entries(endpoint.requestBody?.content ?? {}).map(([type, { schema }]) => (
        <Card key={type} title="Body" action={<code className="font-mono text-xs text-soft">{type}</code>}>
          {schema !== undefined && <SchemaFields schema={schema} resolve={resolve} />}
        </Card>
      ))}
      <Card title="Answers">
        <ul className="grid gap-5">
          {Object.entries(endpoint.responses ?? {}).map(([status, answer]) => {
            const { description = '', content = {}, headers = {} } = resolve(answer);
            return (
              <li key={status} className="min-w-0 border-t border-line pt-4 first:border-t-0 first:pt-0">
                <h3 className="text-sm font-normal">
                  <code className={`font-mono font-semibold ${status.startsWith('2') ? 'text-accent' : 'text-bad'}`}>
                    {status === 'default' ? 'other' : status}
                  </code>{' '}
                  <span className="text-soft">
                    <Prose text={description} />
                  </span>
                </h3>
                {status.startsWith('2') ? (
                  <div className="mt-3 grid gap-3">
                    {Object.entries(content).map(([type, each]) => (
                      <AnswerContent key={type} type={type} content={each} resolve={resolve} />
                    ))}
                    {Object.keys(headers).length > 0 && (
                      <Fold name="Headers">
                        <FieldList
                          resolve={resolve}
                          fields={Object.entries(headers).map(([name, header]) => ({
                            name,
                            required: false,
                            ...(resolve(header) as { readonly description: string; readonly schema: object }),
                          }))}
                        />
                      </Fold>
                    )}
                  </div>
                ) : (
                  // Most errors have one form, which is shown once.
                  Object.entries(content).map(
                    ([type, { schema }]) =>
                      schema !== undefined &&
                      (status === 'default' || schema.$ref !== common) && (
                        <div key={type} className="mt-2">
                          <Fold name="Fields">
                            <SchemaFields schema={schema} resolve={resolve} />
                          </Fold>
                        </div>
                      ),
                  )
                )}
              </li>
            );
          })}
        </ul>
      </Card>
    </article>
  );
}

const PLACES = { path: 'In the path', query: 'In the query', header: 'Headers' } as const;

function accessOf({ chapter, security = [] }: Endpoint): string {
  const ways = security.flatMap((way) => Object.keys(way));
  const open = security.some((way) => Object.keys(way).length === 0);
  if (ways.length === 0) return 'Open to everybody, without a credential.';
  if (chapter === 'Administration') return 'Needs the admin key.';
  const words = ways.map((way) => WAYS[way] ?? way);
  return `Needs ${words.join(', or ')}${open ? ', or a payment' : ''}.`;
}

function AnswerContent({
  type,
  content,
  resolve,
}: {
  readonly type: string;
  readonly content: Content;
  readonly resolve: ApiDocument['resolve'];
}): ReactNode {
  const example = exampleOf(content, resolve);
  const text = typeof example === 'string' ? example : JSON.stringify(example, null, 2);
  return (
    <section className="grid min-w-0 gap-2">
      <h4 className="font-mono text-xs text-soft">{type}</h4>
      {example !== null && (
        <div className="max-h-80 min-w-0 overflow-y-auto">
          <CodeBlock code={text} label={`Example of ${type}`} />
        </div>
      )}
      {content.schema !== undefined && (
        <Fold name="Fields" open={example === null}>
          <SchemaFields schema={content.schema} resolve={resolve} />
        </Fold>
      )}
    </section>
  );
}
