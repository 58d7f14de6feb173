import { useQueryClient } from '@tanstack/react-query';
import { Code } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { request } from '../../../api/request.ts';
import type { Snippet } from '../../../code/snippet.ts';
import { Button } from '../../../ui/button.tsx';
import { BALANCE_KEY, SignInToRun, useSignedIn } from '../account-state.tsx';
import { BarActions } from '../bar-actions.tsx';
import { type CallFault, faultOf } from '../calls/answer.ts';
import { CallFacts } from '../calls/call-facts.tsx';
import { CallFaultNote } from '../calls/call-fault-note.tsx';
import { asCurl, asSent } from '../code/as-sent.ts';
import { CodeDialog } from '../code/code-dialog.tsx';
import { MostCost, type QuoteBody } from '../most-cost.tsx';

interface OneCall<Body, Answer> {
  readonly path: string;
  readonly body: Body;
  /** A body to show as code while `ready` is false. */
  readonly example: Body;
  readonly ready: boolean;
  /** The words of the button. */
  readonly action: string;
  readonly fields: ReactNode;
  readonly answerView: (answer: Answer) => ReactNode;
  readonly code: (body: Body) => Snippet;
}

interface Reply<Body, Answer> {
  readonly sent: Body;
  readonly answer: Answer;
  readonly callId: string | null;
  readonly provider: string | null;
  readonly ms: number;
}

/** A panel that sends one request and shows its whole answer. */
export function OneCallPanel<
  Body extends Omit<QuoteBody, 'primitive'>,
  Answer extends { readonly usage?: { readonly cost?: number } },
>({ path, body, example, ready, action, fields, answerView, code }: OneCall<Body, Answer>): ReactNode {
  const queries = useQueryClient();
  const signedIn = useSignedIn();
  const [busy, setBusy] = useState(false);
  const [reply, setReply] = useState<Reply<Body, Answer> | null>(null);
  const [fault, setFault] = useState<CallFault | null>(null);
  const [showsCode, setShowsCode] = useState(false);

  const run = async () => {
    if (!ready || busy) return;
    setBusy(true);
    setFault(null);
    const begun = Date.now();
    try {
      const response = await request(path, { method: 'POST', json: body });
      setReply({
        sent: body,
        answer: (await response.json()) as Answer,
        callId: response.headers.get('x-generation-id'),
        provider: response.headers.get('x-provider'),
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
        <Button onClick={() => setShowsCode(true)}>
          <Code size={15} aria-hidden /> <span className="max-sm:sr-only">Show code</span>
        </Button>
      </BarActions>
      <form
        className="grid gap-4 rounded-xl border border-line bg-card p-4 sm:p-5"
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        {fields}
        <div className="flex flex-wrap items-center gap-3">
          {signedIn ? (
            <Button tone="primary" type="submit" busy={busy} disabled={!ready}>
              {action}
            </Button>
          ) : (
            <SignInToRun what="to run it" />
          )}
          <span className="figures text-sm text-soft">
            <MostCost body={ready ? { primitive: 'model', ...body } : null} />
          </span>
        </div>
      </form>
      {fault !== null && <CallFaultNote fault={fault} onAgain={() => void run()} />}
      {reply !== null && (
        <>
          <section className="rounded-xl border border-line bg-card p-4 sm:p-5">{answerView(reply.answer)}</section>
          <CallFacts
            callId={reply.callId}
            running={false}
            cost={reply.answer.usage?.cost ?? null}
            provider={reply.provider}
            ms={reply.ms}
          />
        </>
      )}
      <CodeDialog
        open={showsCode}
        onClose={() => setShowsCode(false)}
        samples={() => {
          const shown = ready ? body : example;
          return [asCurl(path, shown), code(shown), asSent(path, shown)];
        }}
      />
    </div>
  );
}
