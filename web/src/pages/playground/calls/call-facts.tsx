import { ChevronDown } from 'lucide-react';
import { useEffect, useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { actsFor, payer } from '../../../api/acting.ts';
import type { CallDetail } from '../../../api/own.ts';
import { CallTree } from '../../../calls/call-tree.tsx';
import { exactUsd } from '../../../ui/exact-usd.ts';
import { MoneyLines } from '../../../calls/money-lines.tsx';
import { Copy } from '../../../ui/copy.tsx';
import { ErrorNote } from '../../../ui/error-note.tsx';
import { formatUsd } from '../../../ui/usd.ts';
import { formatNumber } from '../../../ui/number.ts';
import { Skeleton } from '../../../ui/skeleton.tsx';
import { formatDuration } from '../../../ui/time.tsx';
import { useCallRecord } from './call-record.ts';

/** A line below an answer with its cost. It unfolds to the ledger entries, the calls under it and the receipt. */
// oxlint-disable-next-line complexity -- one list of facts, each shown if it is known
export function CallFacts({
  callId,
  running,
  cost,
  estimate = null,
  tokens = null,
  provider = null,
  ms = null,
  pending = false,
  onCost,
}: {
  readonly callId: string | null;
  readonly running: boolean;
  /** USD. null if the answer didn't state it. */
  readonly cost: number | null;
  /** Estimated USD so far, while the call runs. */
  readonly estimate?: number | null;
  readonly tokens?: number | null;
  readonly provider?: string | null;
  readonly ms?: number | null;
  /** The charge comes later, because a task continues. */
  readonly pending?: boolean;
  /** Called with the cost from the record, if the answer didn't state it. */
  readonly onCost?: ((usd: number) => void) | undefined;
}): ReactNode {
  const [open, setOpen] = useState(false);
  // The answer of a stopped call doesn't state its cost, so the record is read.
  const asked = callId !== null && !running && (open || cost === null);
  const record = useCallRecord(callId, asked);
  const known = record.data;
  const settled = known !== undefined && known.state !== 'held' ? known.run_cost : null;
  useEffect(() => {
    if (cost === null && settled !== null) onCost?.(settled);
  }, [cost, settled, onCost]);
  const charged = settled ?? cost;
  if (callId === null && !running) return null;
  return (
    <div className="rounded-lg border border-line bg-card text-sm">
      <button
        type="button"
        aria-expanded={open}
        disabled={callId === null || running}
        onClick={() => setOpen(!open)}
        className="flex min-h-10 w-full items-center gap-x-4 px-3.5 py-2 text-left"
      >
        <span className="figures font-semibold">
          {running ? (
            <>
              {estimate === null ? 'Running' : `≈ ${formatUsd(estimate)}`}
              <span className="font-normal text-soft">{estimate === null ? '' : ' so far'}</span>
            </>
          ) : charged === null ? (
            <span className="font-normal text-soft">{pending ? 'Charged when the task ends' : 'Settling'}</span>
          ) : (
            <>
              {exactUsd(charged)} <span className="font-normal text-soft">charged</span>
            </>
          )}
        </span>
        <span className="figures flex flex-wrap gap-x-4 text-soft">
          {tokens !== null && tokens > 0 && <span>{formatNumber(tokens)} tokens</span>}
          {ms !== null && <span>{formatDuration(ms)}</span>}
          {provider !== null && provider !== '' && <span className="hidden sm:inline">by {provider}</span>}
        </span>
        {callId !== null && !running && (
          <span className="ml-auto inline-flex items-center gap-1 text-soft">
            Receipt
            <ChevronDown size={15} aria-hidden className={`transition-transform ${open ? 'rotate-180' : ''}`} />
          </span>
        )}
      </button>
      {open && !running && (
        <div className="border-t border-line px-3.5 py-3.5">
          {known !== undefined ? (
            <RecordView record={known} />
          ) : record.error ? (
            <ErrorNote error={record.error} />
          ) : (
            <Skeleton className="h-28 w-full" />
          )}
        </div>
      )}
    </div>
  );
}

function RecordView({ record }: { readonly record: CallDetail }): ReactNode {
  // The pages of calls show those of the account that this tab acts for.
  const linked = actsFor() === payer();
  return (
    <div className="grid gap-4">
      <MoneyLines call={record} />
      {record.children.length > 0 && (
        <div>
          <p className="mb-1.5 font-semibold">The call and those under it</p>
          <CallTree call={record} linked={linked} />
        </div>
      )}
      <dl className="grid items-center gap-x-4 gap-y-1.5 sm:grid-cols-[auto_minmax(0,1fr)]">
        <dt className="text-soft">Generation</dt>
        <dd className="flex items-center gap-1">
          {linked ? (
            <Link href={`/dashboard/calls/${record.id}`} className="link font-mono text-[13px] break-all">
              {record.id}
            </Link>
          ) : (
            <code className="font-mono text-[13px] break-all">{record.id}</code>
          )}
          <Copy text={record.id} label="Copy the id" />
        </dd>
        {record.receipt !== null && (
          <>
            <dt className="text-soft">Signed receipt</dt>
            <dd className="flex min-w-0 items-center gap-1">
              <code className="min-w-0 truncate font-mono text-[13px]">{record.receipt}</code>
              <Copy text={record.receipt} label="Copy the receipt" />
            </dd>
          </>
        )}
        {record.tokens_prompt + record.tokens_completion > 0 && (
          <>
            <dt className="text-soft">Tokens</dt>
            <dd className="figures">
              {formatNumber(record.tokens_prompt)} read, {formatNumber(record.tokens_completion)} written
            </dd>
          </>
        )}
      </dl>
      {record.error !== null && <p className="break-words text-bad">{record.error}</p>}
    </div>
  );
}
