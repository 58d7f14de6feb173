import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { KindTile } from '../../../ui/kind.tsx';
import type { CallRecord } from './call-record.ts';
import { alignedMicroUsd } from './exact-usd.ts';

const DEPTH_MAX = 6;

/** The calls under a call, each with its own cost. The first line is what the call itself cost. */
export function CallTree({ record, depth = 0 }: { readonly record: CallRecord; readonly depth?: number }): ReactNode {
  if (depth >= DEPTH_MAX) return null;
  return (
    <ul className={depth === 0 ? 'grid gap-1.5' : 'mt-1.5 grid gap-1.5 border-l border-line pl-4'}>
      {depth === 0 && record.cost_micro_usdc > 0 && (
        <li className="flex items-center gap-2.5">
          <KindTile kind={record.primitive} size={22} />
          <span className="min-w-0 break-words">
            {record.service} <span className="text-soft">itself</span>
          </span>
          <span aria-hidden className="min-w-4 grow border-b border-dotted border-line" />
          <span className="figures">{alignedMicroUsd(record.cost_micro_usdc)}</span>
        </li>
      )}
      {record.children.map((child) => (
        <li key={child.id}>
          <div className="flex items-center gap-2.5">
            <KindTile kind={child.primitive} size={22} />
            <Link href={`/dashboard/calls/${child.id}`} className="min-w-0 break-words hover:underline">
              {child.service}
              {child.tool !== null && <span className="text-soft"> · {child.tool}</span>}
            </Link>
            {child.state === 'held' && <span className="text-soft">running</span>}
            {child.error !== null && <span className="text-bad">failed</span>}
            <span aria-hidden className="min-w-4 grow border-b border-dotted border-line" />
            <span className="figures">{alignedMicroUsd(child.cost_micro_usdc)}</span>
          </div>
          {child.children.length > 0 && <CallTree record={child} depth={depth + 1} />}
        </li>
      ))}
    </ul>
  );
}
