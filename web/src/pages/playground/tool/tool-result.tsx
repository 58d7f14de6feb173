import { useMemo, type ReactNode } from 'react';
import { Skeleton } from '../../../ui/skeleton.tsx';
import { CallFacts } from '../calls/call-facts.tsx';
import { CallFaultNote } from '../calls/call-fault-note.tsx';
import { PartView } from '../parts/part-view.tsx';
import { splitParts } from '../parts/split-parts.ts';
import type { ShownRun } from './use-tool-run.ts';

/** The answer of a tool, with its cost. */
export function ToolResult({ shown }: { readonly shown: ShownRun | null }): ReactNode {
  const pieces = shown?.answer.pieces;
  const parts = useMemo(() => splitParts(pieces ?? []), [pieces]);
  if (shown === null)
    return (
      <p className="rounded-xl border border-dashed border-line px-5 py-14 text-center text-soft">
        Run the tool to see what it answers, and what that cost.
      </p>
    );
  const { answer } = shown;
  const { running, fault, endedAt, startedAt, steps } = answer;
  return (
    <div className="grid min-w-0 gap-4" aria-live="polite" aria-busy={running}>
      {running && parts.length === 0 && (
        <div role="status" className="rounded-xl border border-line bg-card p-5">
          <p className="mb-3 text-sm text-soft">{steps.at(-1)?.text ?? 'The tool runs.'}</p>
          <Skeleton className="h-4 w-2/3" />
          <Skeleton className="mt-2 h-4 w-1/2" />
        </div>
      )}
      {parts.length > 0 && (
        <div className="grid min-w-0 gap-4 rounded-xl border border-line bg-card p-4 sm:p-5">
          {parts.map((part, index) => (
            <PartView key={index} part={part} />
          ))}
        </div>
      )}
      {!running && parts.length === 0 && fault === null && !answer.stopped && (
        <p className="text-soft">The tool answered nothing.</p>
      )}
      {answer.stopped && <p className="text-soft">You stopped it.</p>}
      {answer.note !== null && <p className="text-sm text-warn">{answer.note}</p>}
      {fault !== null && <CallFaultNote fault={fault} />}
      <CallFacts
        callId={fault !== null && answer.cost === null ? null : answer.callId}
        running={running}
        cost={answer.cost}
        provider={answer.provider}
        ms={endedAt === null ? null : endedAt - startedAt}
      />
    </div>
  );
}
