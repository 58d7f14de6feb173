import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { CallDetail } from '../api/own.ts';
import { KindTile } from '../ui/kind.tsx';
import { alignedMicroUsd } from '../ui/exact-usd.ts';
import { Outcome } from './outcome.tsx';

/** Deeper calls aren't indented further, because a phone has no more room. */
const INDENTED_MAX = 6;

/** A call and the calls under it, each with its own cost. With `linked`, they link to their pages. */
export function CallTree({ call, linked = true }: { readonly call: CallDetail; readonly linked?: boolean }): ReactNode {
  return (
    <ul>
      <Branch call={call} depth={0} linked={linked} />
    </ul>
  );
}

interface BranchProps {
  readonly call: CallDetail;
  readonly depth: number;
  readonly linked: boolean;
}

function Branch({ call, depth, linked }: BranchProps): ReactNode {
  const name = `${call.service}${call.tool === null ? '' : ` › ${call.tool}`}`;
  return (
    <li>
      <div className="flex items-center gap-2.5 py-1.5">
        <KindTile kind={call.primitive} size={28} />
        {depth === 0 ? (
          <span className="min-w-0 grow truncate">
            <span className="font-medium">{call.service}</span> <span className="text-soft">itself</span>
          </span>
        ) : !linked ? (
          <span className="min-w-0 grow truncate font-medium">{name}</span>
        ) : (
          <Link
            href={`/dashboard/calls/${encodeURIComponent(call.id)}`}
            className="min-w-0 grow truncate font-medium hover:underline"
          >
            {name}
          </Link>
        )}
        <span className={call.outcome === 'complete' ? 'max-sm:hidden' : ''}>
          <Outcome of={call} />
        </span>
        <span className="figures w-24 shrink-0 text-right">{alignedMicroUsd(call.cost_micro_usdc)}</span>
      </div>
      {call.children.length > 0 && (
        <ul className={depth < INDENTED_MAX ? 'ml-1.5 border-l border-line pl-3 sm:pl-5' : ''}>
          {call.children.map((child) => (
            <Branch key={child.id} call={child} depth={depth + 1} linked={linked} />
          ))}
        </ul>
      )}
    </li>
  );
}
