import type { ReactNode } from 'react';
import type { CallDetail } from '../api/own.ts';
import { Time } from '../ui/time.tsx';
import { alignedMicroUsd, exactMicroUsd } from '../ui/exact-usd.ts';
import { costLine, endOfLines } from './cost-lines.ts';

interface Meaning {
  readonly name: string;
  readonly text: string;
  readonly sign?: string;
  /** Class for the colour of this line's part of the bar. */
  readonly fill?: string;
}

const MEANINGS: Readonly<Record<string, Meaning>> = {
  lock: { name: 'Locked', text: 'The most that the call could cost, taken before it was forwarded.', sign: '−' },
  draw: { name: 'Drawn', text: 'Taken beyond the lock.', sign: '−' },
  settle: { name: 'Charged', text: 'What it used, by the price that was agreed.', fill: 'bg-accent' },
  lend: { name: 'Calls under it', text: 'Paid from this lock.', fill: 'bg-gold' },
  refund: { name: 'Released', text: 'The rest of the lock.', sign: '+' },
};
const ALL_BACK = 'All of the lock: nothing was charged.';

/** How the lock of a call became a charge and a rest, as a bar and as lines. */
export function MoneyLines({ call }: { readonly call: CallDetail }): ReactNode {
  const sum = (...types: readonly string[]) =>
    call.entries.reduce((all, { type, amount_micro_usdc: micro }) => all + (types.includes(type) ? micro : 0), 0);
  const locked = sum('lock', 'draw');
  const spent = sum('settle', 'lend');
  if (call.entries.length === 0) return <p className="text-soft">This call moved no money.</p>;
  return (
    <div>
      {locked > 0 && call.state !== 'held' && (
        <div className="mb-4">
          <div aria-hidden className="flex h-2.5 gap-px overflow-hidden rounded-full bg-sunk">
            {Object.entries(MEANINGS).map(([type, { fill }]) => {
              const share = Math.min(1, sum(type) / locked);
              return (
                fill !== undefined &&
                share > 0 && <span key={type} className={fill} style={{ width: `${Math.max(0.8, share * 100)}%` }} />
              );
            })}
          </div>
          <p className="figures mt-1.5 text-sm text-soft">
            {exactMicroUsd(spent)} of {exactMicroUsd(locked)} locked
          </p>
        </div>
      )}
      <ol className="grid">
        {call.entries.map(({ type, amount_micro_usdc: micro, at }, index) => {
          const { name, text, sign = '' } = MEANINGS[type] ?? { name: type, text: '' };
          return (
            <li
              key={index}
              className="grid grid-cols-[minmax(0,1fr)_auto] gap-x-4 border-t border-line py-2.5 first:border-0 first:pt-0"
            >
              <span className="font-medium">{name}</span>
              <span className={`figures text-right font-medium ${type === 'settle' ? 'text-ink' : 'text-soft'}`}>
                {sign}
                {alignedMicroUsd(micro)}
              </span>
              <span className="text-sm text-soft">{type === 'refund' && spent === 0 ? ALL_BACK : text}</span>
              <span className="text-right text-sm text-soft">
                <Time at={at} />
              </span>
            </li>
          );
        })}
        {call.refund && (
          <li className="grid grid-cols-[minmax(0,1fr)_auto] gap-x-4 border-t border-line py-2.5">
            <span className="font-medium">Refunded</span>
            <span className="figures text-right font-medium">+{alignedMicroUsd(call.refund.amount_micro_usdc)}</span>
            <span className="text-sm break-words text-soft">By the operator: {call.refund.reason}</span>
            <span className="text-right text-sm text-soft">
              <Time at={call.refund.at} />
            </span>
          </li>
        )}
      </ol>
      {call.cost_lines !== undefined && call.cost_lines.length > 0 && (
        <p className="figures mt-3 text-sm break-words text-soft">
          {call.cost_lines.map(costLine).join(' + ')}
          {endOfLines(call.cost_lines, call.cost_micro_usdc)}{' '}
          <a href={`/api/v1/prices/${call.price}`} className="link">
            The price that was agreed
          </a>
        </p>
      )}
      {call.fee_micro_usdc > 0 && (
        <p className="mt-3 text-sm text-soft">
          The charge has the fee of the operator in it: {exactMicroUsd(call.fee_micro_usdc)}.
        </p>
      )}
    </div>
  );
}
