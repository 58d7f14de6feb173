import { Check, LoaderCircle, MoveRight, X } from 'lucide-react';
import { memo, useMemo, type ReactNode } from 'react';
import { Badge } from '../../../ui/badge.tsx';
import { Markdown } from '../../../ui/markdown.tsx';
import type { Answer, Step, TaskState } from '../calls/answer.ts';
import { CallFacts } from '../calls/call-facts.tsx';
import { CallFaultNote } from '../calls/call-fault-note.tsx';
import { useCallRecord } from '../calls/call-record.ts';
import { CallTree } from '../../../calls/call-tree.tsx';
import { PartView, Picture } from '../parts/part-view.tsx';
import { splitParts } from '../parts/split-parts.ts';

/**
 * A growing text longer than this is shown without Markdown until it is complete, because parsing it again and again
 * takes long.
 */
const DRAWN_LIVE_MAX = 20_000;

/** The answer of a model or an agent, complete or growing, with its steps and its cost. */
export const AnswerView = memo(function AnswerView({
  answer,
  agent,
  estimate,
  onAgain,
  onCost,
}: {
  readonly answer: Answer;
  readonly agent: boolean;
  /** Estimated USD so far. */
  readonly estimate: number | null;
  readonly onAgain?: (() => void) | undefined;
  readonly onCost: (usd: number) => void;
}): ReactNode {
  const { running, task, steps, fault, startedAt, endedAt } = answer;
  const record = useCallRecord(answer.callId, agent);
  const state: TaskState | null = agent
    ? (task?.state ?? (answer.stopped ? 'canceled' : fault !== null ? 'failed' : running ? 'working' : null))
    : null;
  return (
    <div className="grid min-w-0 gap-3.5">
      {state !== null && (
        <div className="flex items-center gap-2.5" role="status">
          <StateBadge state={state} />
          {state === 'input-required' && <span className="text-sm text-soft">Your next message answers it.</span>}
        </div>
      )}
      {steps.length > 0 && <Steps steps={steps} />}
      {answer.thinking !== '' && (
        <details className="text-sm text-soft">
          <summary className="inline-block rounded py-0.5 hover:text-ink">Thoughts</summary>
          <p className="mt-1 max-h-96 overflow-y-auto border-l-2 border-line pl-3 whitespace-pre-wrap break-words">
            {answer.thinking}
          </p>
        </details>
      )}
      {agent ? <Parts pieces={answer.pieces} /> : <Words answer={answer} />}
      {answer.images.map((url, index) => (
        <Picture key={index} url={url} name="" />
      ))}
      {running && answer.length === 0 && steps.length === 0 && <Waiting />}
      {answer.note !== null && <p className="text-sm text-warn">{answer.note}</p>}
      {answer.stopped && (
        <p className="text-sm text-soft">
          {agent
            ? 'You canceled it. What the agent had given by then is charged.'
            : answer.stops === false
              ? 'You stopped it, but its provider goes on for a while. What it makes is charged.'
              : 'You stopped it. What had come by then is charged.'}
        </p>
      )}
      {fault !== null && <CallFaultNote fault={fault} onAgain={onAgain} />}
      {agent && record.data !== undefined && record.data.children.length > 0 && (
        <section aria-label="Calls it made" className="rounded-lg border border-line bg-card px-3.5 py-3 text-sm">
          <h2 className="mb-1.5 text-sm font-semibold">Calls it made</h2>
          <CallTree call={record.data} />
        </section>
      )}
      <CallFacts
        callId={fault !== null && fault.status !== 0 && answer.firstAt === null ? null : answer.callId}
        running={running}
        cost={answer.cost}
        estimate={agent ? (record.data?.run_cost ?? null) : estimate}
        tokens={answer.tokens}
        provider={answer.provider}
        pending={state === 'input-required'}
        onCost={onCost}
        ms={endedAt === null ? null : endedAt - startedAt}
      />
    </div>
  );
});

const STATES: Readonly<Record<TaskState, readonly [tone: 'plain' | 'good' | 'warn' | 'bad', text: string]>> = {
  working: ['plain', 'Working'],
  completed: ['good', 'Completed'],
  'input-required': ['warn', 'Waiting for you'],
  canceled: ['plain', 'Canceled'],
  failed: ['bad', 'Failed'],
};

function StateBadge({ state }: { readonly state: TaskState }): ReactNode {
  const [tone, text] = STATES[state] ?? STATES.working;
  return <Badge tone={tone}>{text}</Badge>;
}

function Words({ answer }: { readonly answer: Answer }): ReactNode {
  const text = answer.pieces.join('');
  if (text === '') return null;
  return (
    <div aria-live="off">
      {answer.running && text.length > DRAWN_LIVE_MAX ? (
        <p className="whitespace-pre-wrap break-words">{text.slice(-DRAWN_LIVE_MAX)}</p>
      ) : (
        <Markdown text={text} />
      )}
    </div>
  );
}

function Parts({ pieces }: { readonly pieces: readonly string[] }): ReactNode {
  const parts = useMemo(() => splitParts(pieces), [pieces]);
  return parts.map((part, index) => <PartView key={index} part={part} />);
}

const ICONS = { running: LoaderCircle, done: Check, failed: X } as const;

/** The steps that led to the answer. */
function Steps({ steps }: { readonly steps: readonly Step[] }): ReactNode {
  return (
    <ol aria-label="Steps" className="grid gap-1 text-sm text-soft">
      {steps.map(({ id, text, service, state }) => {
        const Icon = service === null && state === 'done' ? MoveRight : ICONS[state];
        return (
          <li key={id} className="flex items-start gap-2">
            <Icon
              size={15}
              aria-label={state}
              className={`mt-0.5 shrink-0 ${state === 'running' ? 'animate-spin' : state === 'failed' ? 'text-bad' : 'text-accent'}`}
            />
            <span className="min-w-0 break-words">
              {service === null ? text : <b className="font-medium text-ink">{text}</b>}
              {service !== null && ` of ${service}`}
            </span>
          </li>
        );
      })}
    </ol>
  );
}

function Waiting(): ReactNode {
  return (
    <span role="status" className="flex h-6 items-center gap-1.5">
      <span className="sr-only">Waiting for the answer</span>
      {[0, 1, 2].map((dot) => (
        <span
          key={dot}
          aria-hidden
          className="size-1.5 animate-pulse rounded-full bg-soft"
          style={{ animationDelay: `${dot * 180}ms` }}
        />
      ))}
    </span>
  );
}
