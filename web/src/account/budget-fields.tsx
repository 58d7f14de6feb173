import type { ReactNode } from 'react';
import type { Budget, Reset } from '../api/organisation.ts';
import { Checkbox, Field } from '../ui/field.tsx';

/** Budgets in the form, as typed: USD for each reset. Empty means no limit. */
interface BudgetDraft {
  readonly limits: Readonly<Record<'daily' | 'weekly' | 'monthly' | 'ever', string>>;
  /** Soft budgets only notify. They refuse no calls. */
  readonly soft: boolean;
}

const RESETS = [
  ['daily', 'Each day'],
  ['weekly', 'Each week'],
  ['monthly', 'Each month'],
  ['ever', 'In all'],
] as const;
const resetOf = (name: (typeof RESETS)[number][0]): Reset | null => (name === 'ever' ? null : name);

export function budgetDraft(budgets: readonly Budget[]): BudgetDraft {
  const limitOf = (reset: Reset | null) => String(budgets.find((one) => one.limit_reset === reset)?.limit ?? '');
  return {
    limits: { daily: limitOf('daily'), weekly: limitOf('weekly'), monthly: limitOf('monthly'), ever: limitOf(null) },
    soft: budgets.length > 0 && budgets.every(({ limit_soft: soft }) => soft),
  };
}

/**
 * The member `budgets` of the request's body, or nothing if the form was not changed. Percentages that were set before
 * are kept. If some budgets were soft and others not, each stays so until the checkbox is changed.
 */
export function budgetsBody(draft: BudgetDraft, before: readonly Budget[]) {
  const first = budgetDraft(before);
  if (JSON.stringify(draft) === JSON.stringify(first)) return {};
  const budgets = RESETS.filter(([name]) => draft.limits[name].trim() !== '').map(([name]) => {
    const known = before.find((one) => one.limit_reset === resetOf(name));
    return {
      limit: Number(draft.limits[name]),
      limit_reset: resetOf(name),
      limit_soft: known !== undefined && draft.soft === first.soft ? known.limit_soft : draft.soft,
      ...(known ? { limit_notify: known.limit_notify } : {}),
    };
  });
  return { budgets };
}

const fault = (text: string): string | null =>
  text.trim() === '' || Number(text) >= 0 ? null : 'A number of USD, such as 5 or 0.50.';
export const hasFault = ({ limits }: BudgetDraft): boolean =>
  Object.values(limits).some((text) => fault(text) !== null);

/** The form fields of budgets. */
export function BudgetFields({
  draft,
  onChange,
}: {
  readonly draft: BudgetDraft;
  readonly onChange: (draft: BudgetDraft) => void;
}): ReactNode {
  return (
    <fieldset className="grid gap-4">
      <legend className="mb-2 text-sm text-soft">
        The most that may be spent, in USD, with what was spent in the period before. Empty: no limit.
      </legend>
      <div className="grid grid-cols-2 gap-4">
        {RESETS.map(([name, label]) => (
          <Field
            key={name}
            label={label}
            inputMode="decimal"
            placeholder="no limit"
            value={draft.limits[name]}
            error={fault(draft.limits[name])}
            onChange={({ target }) => onChange({ ...draft, limits: { ...draft.limits, [name]: target.value } })}
          />
        ))}
      </div>
      <Checkbox
        label="Only send notices"
        hint="Calls are not refused. Notices come at 50, 80 and 100 percent, on this page and to the webhook."
        checked={draft.soft}
        onChange={({ target }) => onChange({ ...draft, soft: target.checked })}
      />
    </fieldset>
  );
}
