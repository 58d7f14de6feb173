import type { ReactNode } from 'react';
import type { Budget } from '../api/organisation.ts';
import { formatUsd } from '../ui/usd.ts';
import { Time } from '../ui/time.tsx';

const PERIODS = { daily: 'Each day', weekly: 'Each week', monthly: 'Each month' } as const;

export const periodName = (reset: Budget['limit_reset']): string => (reset === null ? 'In all' : PERIODS[reset]);

/** Budgets as bars that show how much is spent. `of` names their owner, for screen readers. */
export function BudgetBars({ of, budgets }: { readonly of: string; readonly budgets: readonly Budget[] }): ReactNode {
  return (
    <ul className="grid gap-4">
      {budgets.map((budget) => (
        <Bar key={budget.limit_reset ?? 'ever'} of={of} budget={budget} />
      ))}
    </ul>
  );
}

function Bar({ of, budget }: { readonly of: string; readonly budget: Budget }): ReactNode {
  const { usage, limit, limit_soft: soft, limit_reset: reset, resets_at: resets } = budget;
  const part = limit > 0 ? Math.min(100, (usage / limit) * 100) : 100;
  const tone = part >= 100 ? 'bg-bad' : part >= 80 ? 'bg-gold' : 'bg-accent';
  return (
    <li>
      <p className="flex flex-wrap justify-between gap-x-4 text-sm">
        <span className="font-medium">
          {periodName(reset)}
          {soft && <span className="font-normal text-soft">, tells only</span>}
        </span>
        <span className="figures">
          {formatUsd(usage)} of {formatUsd(limit)}
        </span>
      </p>
      <div
        role="meter"
        aria-label={`${of}, ${periodName(reset).toLowerCase()}`}
        aria-valuemin={0}
        aria-valuemax={limit}
        aria-valuenow={Math.min(usage, limit)}
        aria-valuetext={`${formatUsd(usage)} of ${formatUsd(limit)}`}
        className="mt-1.5 h-2 overflow-hidden rounded-full bg-sunk"
      >
        <div className={`h-full rounded-full ${tone}`} style={{ width: `${part}%` }} />
      </div>
      {resets !== null && (
        <p className="mt-1 text-xs text-soft">
          starts anew <Time at={resets} />
        </p>
      )}
    </li>
  );
}
