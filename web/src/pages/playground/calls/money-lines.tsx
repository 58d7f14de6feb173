import type { ReactNode } from 'react';
import type { CallRecord } from './call-record.ts';
import { alignedMicroUsd, exactMicroUsd } from './exact-usd.ts';

const NAMES: Readonly<Record<string, readonly [name: string, what: string]>> = {
  lock: ['Lock', 'held before the call was made'],
  settle: ['Settle', 'paid to the provider'],
  lend: ['Calls under it', 'paid from this lock'],
  fee: ['Fee', 'of the gateway'],
  refund: ['Refund', 'back in your balance'],
};

const FILLS: Readonly<Record<string, string>> = { settle: 'bg-accent', lend: 'bg-gold', fee: 'bg-soft' };

/** The lines of the ledger for a call: how the lock became a charge and a refund, as a bar and as lines. */
export function MoneyLines({ record }: { readonly record: CallRecord }): ReactNode {
  const sum = (type: string) =>
    record.entries.filter((entry) => entry.type === type).reduce((all, entry) => all + entry.amount_micro_usdc, 0);
  const locked = sum('lock');
  return (
    <div>
      {locked > 0 && (
        <div
          role="img"
          aria-label={`Of ${exactMicroUsd(locked)} that were locked, ${exactMicroUsd(locked - sum('refund'))} were spent.`}
          className="mb-3 flex h-2 gap-px overflow-hidden rounded-full bg-line"
        >
          {Object.entries(FILLS).map(([type, fill]) => {
            const share = sum(type) / locked;
            return (
              share > 0 && <span key={type} className={fill} style={{ width: `${Math.max(0.8, share * 100)}%` }} />
            );
          })}
        </div>
      )}
      <dl className="grid grid-cols-[auto_minmax(0,1fr)_auto] gap-x-4 gap-y-1">
        {record.entries.map(({ type, amount_micro_usdc: micro }, index) => {
          const [name, what] = NAMES[type] ?? [type, ''];
          return (
            <div key={index} className="contents">
              <dt className="font-medium">{name}</dt>
              <dd className="text-soft">{what}</dd>
              <dd className="figures text-right">{alignedMicroUsd(micro)}</dd>
            </div>
          );
        })}
      </dl>
    </div>
  );
}
