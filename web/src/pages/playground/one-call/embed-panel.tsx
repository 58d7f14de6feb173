import { useState, type ReactNode } from 'react';
import type { Schemas } from '../../../api/client.ts';
import { BOOT } from '../../../app/boot.ts';
import { openaiJs } from '../../../code/openai.ts';
import { jsonText } from '../../../code/snippet.ts';
import { TextArea } from '../../../ui/field.tsx';
import { formatNumber } from '../../../ui/number.ts';
import type { Service } from '../catalogue.ts';
import { OneCallPanel } from './one-call-panel.tsx';

const SHOWN_MAX = 48;

/** Numbers, because no text in base64 was asked for. */
const numbersOf = (found: string | readonly number[] | undefined) => (typeof found === 'object' ? found : []);

/** The panel that makes an embedding of a text. */
export default function EmbedPanel({ service }: { readonly service: Service }): ReactNode {
  const [text, setText] = useState('');
  return (
    <OneCallPanel
      path="/api/v1/embeddings"
      body={{ model: service.name, input: text }}
      example={{ model: service.name, input: 'A tollgate in the morning' }}
      ready={text.trim() !== ''}
      action="Make the vector"
      fields={
        <TextArea
          label="Text"
          hint="The model makes a vector of it, to compare it with other texts."
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
      }
      answerView={({ data }: Schemas['Embeddings']) => <VectorView numbers={numbersOf(data[0]?.embedding)} />}
      code={(body) => ({
        id: 'openai',
        name: 'openai',
        code: openaiJs(BOOT.base_url, `const { data } = await client.embeddings.create(${jsonText(body)});`),
      })}
    />
  );
}

function VectorView({ numbers }: { readonly numbers: readonly number[] }): ReactNode {
  return (
    <>
      <h2 className="mb-2 text-base">{formatNumber(numbers.length)} numbers</h2>
      <p className="figures font-mono text-[13px] leading-[21px] break-words text-soft">
        {numbers
          .slice(0, SHOWN_MAX)
          .map((each) => each.toFixed(4))
          .join('  ')}
        {numbers.length > SHOWN_MAX && ' …'}
      </p>
    </>
  );
}
