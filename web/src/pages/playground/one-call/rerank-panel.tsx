import { useState, type ReactNode } from 'react';
import type { Schemas } from '../../../api/client.ts';
import { BOOT } from '../../../app/boot.ts';
import { jsonText } from '../../../code/snippet.ts';
import { Field, TextArea } from '../../../ui/field.tsx';
import type { Service } from '../catalogue.ts';
import { OneCallPanel } from './one-call-panel.tsx';

const linesOf = (text: string) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');

/** The panel that sorts texts by their relevance to a query. */
export default function RerankPanel({ service }: { readonly service: Service }): ReactNode {
  const [query, setQuery] = useState('');
  const [text, setText] = useState('');
  const documents = linesOf(text);
  const model = service.name;
  return (
    <OneCallPanel
      path="/api/v1/rerank"
      body={{ model, query, documents }}
      example={{
        model,
        query: 'What is a tollgate?',
        documents: ['A gate on a road where travellers pay.', 'An apple.'],
      }}
      ready={query.trim() !== '' && documents.length > 0}
      action="Sort the documents"
      fields={
        <>
          <Field label="Query" value={query} onChange={({ target }) => setQuery(target.value)} />
          <TextArea
            label="Documents"
            hint="One on each line. The model says how relevant each is to the query."
            value={text}
            onChange={({ target }) => setText(target.value)}
          />
        </>
      }
      answerView={({ results }: Schemas['Rerank']) => <Ranks of={results} />}
      code={(body) => ({
        id: 'cohere',
        name: 'cohere-ai',
        code: `import { CohereClientV2 } from 'cohere-ai';\n\nconst client = new CohereClientV2({ environment: '${BOOT.base_url}', token: process.env.KEY });\nconst { results } = await client.rerank(${jsonText(body)});`,
      })}
    />
  );
}

function Ranks({ of: results }: { readonly of: Schemas['Rerank']['results'] }): ReactNode {
  return (
    <>
      <h2 className="mb-2 text-base">The most relevant first</h2>
      <ol className="grid gap-2">
        {results.map(({ index, relevance_score: score, document }) => (
          <li key={index} className="flex items-baseline gap-3">
            <span className="figures text-sm text-soft">{score.toFixed(3)}</span>
            <span className="min-w-0 break-words">
              {typeof document?.['text'] === 'string' ? document['text'] : `Document ${index + 1}`}
            </span>
          </li>
        ))}
      </ol>
    </>
  );
}
