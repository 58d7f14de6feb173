import type { ReactNode } from 'react';
import type { CallDetail } from '../../../api/own.ts';
import { Card } from '../../../ui/card.tsx';
import { Money } from '../../../ui/money.tsx';
import { Time } from '../../../ui/time.tsx';

const MEANINGS: Readonly<Record<string, { readonly name: string; readonly text: string; readonly sign: string }>> = {
  lock: { name: 'Locked', text: 'The most that the call could cost, taken before it was forwarded.', sign: '−' },
  settle: { name: 'Charged', text: 'What it used, by the price that was agreed.', sign: '' },
  refund: { name: 'Given back', text: 'The rest of the lock.', sign: '+' },
  release: { name: 'Given back', text: 'All of the lock: nothing was charged.', sign: '+' },
  expire: { name: 'Given back', text: 'All of the lock: the call did not end in time.', sign: '+' },
};

/** The movements of a call's money: the lock, and how it was resolved. */
export function CallMoney({ call }: { readonly call: CallDetail }): ReactNode {
  const locked = call.entries.find(({ type }) => type === 'lock')?.amount_micro_usdc ?? 0;
  const share = locked === 0 ? 0 : Math.min(1, call.cost_micro_usdc / locked);
  return (
    <Card title="Money">
      {locked > 0 && call.state !== 'held' && (
        <div className="mb-4">
          <div aria-hidden className="flex h-3 overflow-hidden rounded-full bg-sunk">
            <span className="bg-accent" style={{ width: `${Math.max(share > 0 ? 0.8 : 0, share * 100)}%` }} />
          </div>
          <p className="mt-1.5 text-sm text-soft">
            <Money micro={call.cost_micro_usdc} /> of <Money micro={locked} /> locked
          </p>
        </div>
      )}
      {call.entries.length === 0 ? (
        <p className="text-soft">This call moved no money.</p>
      ) : (
        <ol className="grid">
          {call.entries.map(({ type, amount_micro_usdc, at }, index) => {
            const { name, text, sign } = MEANINGS[type] ?? { name: type, text: '', sign: '' };
            return (
              <li
                key={index}
                className="grid grid-cols-[minmax(0,1fr)_auto] gap-x-4 border-t border-line py-2.5 first:border-0 first:pt-0"
              >
                <span className="font-medium">{name}</span>
                <span className={`figures text-right font-medium ${type === 'settle' ? 'text-ink' : 'text-soft'}`}>
                  {sign}
                  <Money micro={amount_micro_usdc} />
                </span>
                <span className="text-sm text-soft">{text}</span>
                <span className="text-right text-sm text-soft">
                  <Time at={at} />
                </span>
              </li>
            );
          })}
        </ol>
      )}
      {call.fee_micro_usdc > 0 && (
        <p className="mt-3 text-sm text-soft">
          The charge has the fee of the operator in it: <Money micro={call.fee_micro_usdc} />.
        </p>
      )}
    </Card>
  );
}
