import { useState, type ReactNode } from 'react';
import type { Schemas } from '../../../api/client.ts';
import { BOOT } from '../../../app/boot.ts';
import { openaiJs } from '../../../code/openai.ts';
import { jsonText } from '../../../code/snippet.ts';
import { Badge } from '../../../ui/badge.tsx';
import { TextArea } from '../../../ui/field.tsx';
import type { Service } from '../catalogue.ts';
import { OneCallPanel } from './one-call-panel.tsx';

/** The panel that has a text judged. */
export default function ModerationPanel({ service }: { readonly service: Service }): ReactNode {
  const [text, setText] = useState('');
  return (
    <OneCallPanel
      path="/api/v1/moderations"
      body={{ model: service.name, input: text }}
      example={{ model: service.name, input: 'A text to judge.' }}
      ready={text.trim() !== ''}
      action="Judge the text"
      fields={
        <TextArea
          label="Text"
          hint="The model says whether it is harmful, and by which category."
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
      }
      answerView={({ results }: Schemas['Moderation']) => results[0] !== undefined && <Judgement of={results[0]} />}
      code={(body) => ({
        id: 'openai',
        name: 'openai',
        code: openaiJs(BOOT.base_url, `const { results } = await client.moderations.create(${jsonText(body)});`),
      })}
    />
  );
}

function Judgement({ of: result }: { readonly of: Schemas['Moderation']['results'][number] }): ReactNode {
  const { flagged, categories = {}, category_scores: scores = {} } = result;
  const rows = [...new Set([...Object.keys(categories), ...Object.keys(scores)])].toSorted(
    (a, b) => (scores[b] ?? 0) - (scores[a] ?? 0),
  );
  return (
    <>
      <h2 className="mb-3 flex items-center gap-2 text-base">
        Judgement <Badge tone={flagged ? 'bad' : 'good'}>{flagged ? 'harmful' : 'not harmful'}</Badge>
      </h2>
      <ul className="grid gap-1">
        {rows.map((name) => (
          <li key={name} className="flex flex-wrap items-baseline justify-between gap-x-3">
            <span className="break-words">
              {name}
              {categories[name] === true && <span className="text-bad"> applies</span>}
            </span>
            <span className="figures text-sm text-soft">{scores[name]?.toFixed(4) ?? '–'}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
