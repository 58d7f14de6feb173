import { useQuery } from '@tanstack/react-query';
import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { BudgetBars } from '../../account/budget-bars.tsx';
import { budgetDraft, BudgetFields, budgetsBody, hasFault } from '../../account/budget-fields.tsx';
import { api, data, type Schemas } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorNote } from '../../ui/error-note.tsx';
import { Field } from '../../ui/field.tsx';
import { formatNumber } from '../../ui/number.ts';
import { QueryView } from '../../ui/query-view.tsx';
import { useToast } from '../../ui/toast.tsx';
import { ACCOUNTS, type Account, nameOf, useAccountChange } from './account.ts';

type Limits = Schemas['Limits'];

/** The limits that the operator has set for an account, with the form that changes them. */
export function AccountLimits({ account }: { readonly account: Account }): ReactNode {
  const [open, setOpen] = useState(false);
  const { id } = account;
  const limits = useQuery({
    queryKey: [...ACCOUNTS, 'limits', id],
    queryFn: () => data(api.GET('/admin/v1/accounts/{id}/limits', { params: { path: { id } } })),
  });
  const close = () => setOpen(false);
  return (
    <Card
      title="Limits"
      action={
        <Button size="small" onClick={() => setOpen(true)}>
          Change the limits
        </Button>
      }
    >
      <QueryView query={limits}>
        {(found) => (
          <>
            {found.budgets.length > 0 ? (
              <BudgetBars of="The operator’s" budgets={found.budgets} />
            ) : (
              <p className="text-soft">No budget of yours: it may spend its balance.</p>
            )}
            <p className="mt-4 text-sm text-soft">
              All its keys together: {rateOf('requests', found.requests_per_minute)},{' '}
              {rateOf('tokens', found.tokens_per_minute)}. A key with a lower rate keeps it: see <i>Keys</i>.
            </p>
            <Dialog title="Limits of an account" open={open} onClose={close}>
              {open && <LimitsForm account={account} limits={found} onDone={close} />}
            </Dialog>
          </>
        )}
      </QueryView>
    </Card>
  );
}

const rateOf = (unit: string, rate: number | null): string =>
  rate === null ? `the ${unit} a minute of the configuration` : `${formatNumber(rate)} ${unit} a minute`;

const numberOrNull = (text: string) => (text.trim() === '' ? null : Number(text));

function LimitsForm({
  account,
  limits,
  onDone,
}: {
  readonly account: Account;
  readonly limits: Limits;
  readonly onDone: () => void;
}): ReactNode {
  const [draft, setDraft] = useState(() => budgetDraft(limits.budgets));
  const [requests, setRequests] = useState(String(limits.requests_per_minute ?? ''));
  const [tokens, setTokens] = useState(String(limits.tokens_per_minute ?? ''));
  const toast = useToast();
  const change = useAccountChange<Limits>(() => {
    toast('Changed.');
    onDone();
  });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (hasFault(draft)) return;
    const body = {
      ...budgetsBody(draft, limits.budgets),
      requests_per_minute: numberOrNull(requests),
      tokens_per_minute: numberOrNull(tokens),
    };
    change.mutate({
      confirm: `Change the limits of ${nameOf(account)}.`,
      send: (headers) =>
        api.PATCH('/admin/v1/accounts/{id}/limits', { params: { path: { id: account.id } }, body, headers }),
    });
  };
  return (
    <form onSubmit={submit} className="grid gap-5">
      <BudgetFields draft={draft} onChange={setDraft} />
      <div className="grid grid-cols-2 items-end gap-4">
        <Field
          label="Requests a minute"
          type="number"
          min={1}
          placeholder="the default"
          value={requests}
          onChange={({ target }) => setRequests(target.value)}
        />
        <Field
          label="Tokens a minute"
          type="number"
          min={1}
          placeholder="the default"
          value={tokens}
          onChange={({ target }) => setTokens(target.value)}
        />
      </div>
      <p className="text-sm text-soft">
        The rates are of all keys together. A key that has a lower rate of its own keeps it: change it below, at{' '}
        <i>Keys</i>. The owner of the account sees these limits and cannot change them.
      </p>
      {change.error !== null && <ErrorNote error={change.error} />}
      <Button type="submit" tone="primary" busy={change.isPending} className="justify-self-end">
        Change the limits
      </Button>
    </form>
  );
}
