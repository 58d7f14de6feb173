import { useQueryClient } from '@tanstack/react-query';
import { Code } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import type { Schemas } from '../../../api/client.ts';
import { request } from '../../../api/request.ts';
import { BOOT } from '../../../app/boot.ts';
import { openaiJs } from '../../../code/openai.ts';
import { jsonText } from '../../../code/snippet.ts';
import { Button } from '../../../ui/button.tsx';
import { TextArea } from '../../../ui/field.tsx';
import { formatNumber } from '../../../ui/number.ts';
import { BALANCE_KEY, SignInToRun, useSignedIn } from '../account-state.tsx';
import { BarActions } from '../bar-actions.tsx';
import { type CallFault, faultOf } from '../calls/answer.ts';
import { CallFacts } from '../calls/call-facts.tsx';
import { CallFaultNote } from '../calls/call-fault-note.tsx';
import type { Service } from '../catalogue.ts';
import { MostCost } from '../most-cost.tsx';
import { asCurl, asSent } from '../code/as-sent.ts';
import { CodeDialog } from '../code/code-dialog.tsx';

const PATH = '/api/v1/embeddings';
const SHOWN_MAX = 48;

/** Numbers, because no text in base64 was asked for. */
const numbersOf = (found: string | readonly number[] | undefined) => (typeof found === 'object' ? found : []);

interface Vector {
  readonly numbers: readonly number[];
  readonly callId: string | null;
  readonly provider: string | null;
  readonly cost: number | null;
  readonly ms: number;
}

/** The panel that makes an embedding of a text. */
export default function EmbedPanel({ service }: { readonly service: Service }): ReactNode {
  const queries = useQueryClient();
  const signedIn = useSignedIn();
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const [made, setMade] = useState<Vector | null>(null);
  const [fault, setFault] = useState<CallFault | null>(null);
  const [code, setCode] = useState(false);
  const body = { model: service.name, input: text.trim() === '' ? 'A tollgate in the morning' : text };

  const embed = async () => {
    if (text.trim() === '' || busy) return;
    setBusy(true);
    setFault(null);
    const begun = Date.now();
    try {
      const reply = await request(PATH, { method: 'POST', json: body });
      const { data, usage } = (await reply.json()) as Schemas['Embeddings'];
      setMade({
        numbers: numbersOf(data[0]?.embedding),
        callId: reply.headers.get('x-generation-id'),
        provider: reply.headers.get('x-provider'),
        cost: usage?.cost ?? null,
        ms: Date.now() - begun,
      });
    } catch (error) {
      setFault(faultOf(error));
    } finally {
      setBusy(false);
      void queries.invalidateQueries({ queryKey: BALANCE_KEY });
    }
  };
  return (
    <div className="mx-auto grid max-w-[50rem] gap-5">
      <BarActions>
        <Button onClick={() => setCode(true)}>
          <Code size={15} aria-hidden /> <span className="max-sm:sr-only">Show code</span>
        </Button>
      </BarActions>
      <form
        className="grid gap-4 rounded-xl border border-line bg-card p-4 sm:p-5"
        onSubmit={(event) => {
          event.preventDefault();
          void embed();
        }}
      >
        <TextArea
          label="Text"
          hint="The model makes a vector of it, to compare it with other texts."
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <div className="flex flex-wrap items-center gap-3">
          {signedIn ? (
            <Button tone="primary" type="submit" busy={busy} disabled={text.trim() === ''}>
              Make the vector
            </Button>
          ) : (
            <SignInToRun what="to run it" />
          )}
          <span className="figures text-sm text-soft">
            <MostCost body={text.trim() === '' ? null : { primitive: 'model', ...body }} />
          </span>
        </div>
      </form>
      {fault !== null && <CallFaultNote fault={fault} onAgain={() => void embed()} />}
      {made !== null && (
        <>
          <section className="rounded-xl border border-line bg-card p-4 sm:p-5">
            <h2 className="mb-2 text-base">{formatNumber(made.numbers.length)} numbers</h2>
            <p className="figures font-mono text-[13px] leading-[21px] break-words text-soft">
              {made.numbers
                .slice(0, SHOWN_MAX)
                .map((each) => each.toFixed(4))
                .join('  ')}
              {made.numbers.length > SHOWN_MAX && ' …'}
            </p>
          </section>
          <CallFacts callId={made.callId} running={false} cost={made.cost} provider={made.provider} ms={made.ms} />
        </>
      )}
      <CodeDialog
        open={code}
        onClose={() => setCode(false)}
        samples={() => [
          asCurl(PATH, body),
          {
            id: 'openai',
            name: 'openai',
            code: openaiJs(BOOT.base_url, `const { data } = await client.embeddings.create(${jsonText(body)});`),
          },
          asSent(PATH, body),
        ]}
      />
    </div>
  );
}
