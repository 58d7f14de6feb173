import { useQuery } from '@tanstack/react-query';
import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { api, data } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';
import { Choice } from '../../ui/choice.tsx';
import { ErrorNote } from '../../ui/error-note.tsx';
import { Field } from '../../ui/field.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { useToast } from '../../ui/toast.tsx';
import { ACCOUNTS, nameOf, useAccountChange, type Account } from './account.ts';
import { CloseForm } from './close-form.tsx';
import { DebitForm } from './debit-form.tsx';

type Act = 'debit' | 'freeze' | 'unfreeze' | 'rename' | 'close' | 'reopen';
type StateAct = 'freeze' | 'unfreeze' | 'reopen';

/** The changes that an account allows, by its state. Money that comes to a closed account can be debited. */
const ACTS: Readonly<Record<Account['state'], readonly Act[]>> = {
  open: ['debit', 'freeze', 'rename', 'close'],
  frozen: ['debit', 'unfreeze', 'rename', 'close'],
  closed: ['debit', 'rename', 'reopen'],
};
const NAMES: Readonly<Record<Act, string>> = {
  debit: 'Debit',
  freeze: 'Freeze',
  unfreeze: 'Unfreeze',
  rename: 'Rename',
  close: 'Close',
  reopen: 'Reopen',
};

const optionOf = (value: Act) => ({
  value,
  // The button that closes the dialog is named Close, too.
  text: value === 'close' ? CLOSE_ACCOUNT : NAMES[value],
});
const CLOSE_ACCOUNT = (
  <>
    Close<span className="sr-only"> account</span>
  </>
);

/** The forms that change the account `id`. The account is read anew, so that amounts are those of now. */
export function AccountChanges({ id, onDone }: { readonly id: string; readonly onDone: () => void }): ReactNode {
  const account = useQuery({
    queryKey: [...ACCOUNTS, 'one', id],
    queryFn: () => data(api.GET('/admin/v1/accounts/{id}', { params: { path: { id } } })),
    // Locked money keeps the account from being closed until the running calls end.
    refetchInterval: ({ state }) => ((state.data?.locked_micro_usdc ?? 0) > 0 ? 2_000 : false),
    // What was read when the dialog was open before is not shown again: its amounts may be old.
    gcTime: 0,
  });
  return (
    <QueryView query={account} loading={<Skeleton className="h-64 w-full" />}>
      {(found) => <Forms account={found} onDone={onDone} />}
    </QueryView>
  );
}

function Forms({ account, onDone }: { readonly account: Account; readonly onDone: () => void }): ReactNode {
  const acts = ACTS[account.state];
  const [chosen, setChosen] = useState<Act>('debit');
  const act = acts.includes(chosen) ? chosen : 'debit';
  return (
    <div className="grid gap-4">
      <div>
        {account.label !== '' && <p className="font-medium break-words">{account.label}</p>}
        <p className="font-mono text-sm break-all text-soft">{account.id}</p>
        {account.state !== 'open' && (
          <p className="mt-1 break-words">
            This account is {account.state}: {account.state_reason}
          </p>
        )}
      </div>
      <div>
        <Choice label="The change" options={acts.map(optionOf)} chosen={act} onChoose={setChosen} />
      </div>
      {act === 'debit' && <DebitForm account={account} onDone={onDone} />}
      {act === 'rename' && <RenameForm account={account} onDone={onDone} />}
      {act === 'close' && <CloseForm account={account} onDone={onDone} />}
      {(act === 'freeze' || act === 'unfreeze' || act === 'reopen') && (
        <StateForm key={act} act={act} account={account} onDone={onDone} />
      )}
    </div>
  );
}

const WHAT_HAPPENS: Readonly<Record<StateAct, string>> = {
  freeze:
    'Within a second, new calls and withdrawals of this account are refused, whatever its credential is. Running calls go on to their end and are charged. Deposits arrive.',
  unfreeze: 'The account can call and withdraw again, with the same keys.',
  reopen: 'The account can be used again, with new keys: its former keys stay deleted.',
};
const DONE: Readonly<Record<StateAct, string>> = { freeze: 'Frozen.', unfreeze: 'Unfrozen.', reopen: 'Reopened.' };

function StateForm({
  act,
  account,
  onDone,
}: {
  readonly act: StateAct;
  readonly account: Account;
  readonly onDone: () => void;
}): ReactNode {
  const [reason, setReason] = useState('');
  const toast = useToast();
  const change = useAccountChange<Account>(() => {
    toast(DONE[act]);
    onDone();
  });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    change.mutate({
      confirm: `${NAMES[act]} ${nameOf(account)}.`,
      send: (headers) =>
        api.POST(`/admin/v1/accounts/{id}/${act}`, {
          params: { path: account },
          body: { reason: reason.trim() },
          headers,
        }),
    });
  };
  return (
    <form onSubmit={submit} className="grid gap-4">
      <p className="text-soft">{WHAT_HAPPENS[act]}</p>
      <Field
        label="Reason"
        hint="For you and other operators. The owner of the account does not see it."
        required
        maxLength={500}
        value={reason}
        onChange={({ target }) => setReason(target.value)}
      />
      {change.error !== null && <ErrorNote error={change.error} />}
      <Button type="submit" tone="primary" busy={change.isPending} className="justify-self-end">
        {NAMES[act]} the account
      </Button>
    </form>
  );
}

function RenameForm({ account, onDone }: { readonly account: Account; readonly onDone: () => void }): ReactNode {
  const [label, setLabel] = useState(account.label);
  const toast = useToast();
  const rename = useAccountChange<Account>(() => {
    toast('Renamed.');
    onDone();
  });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    const given = label.trim();
    rename.mutate({
      confirm: `Rename ${nameOf(account)} to ${given}.`,
      send: (headers) =>
        api.PATCH('/admin/v1/accounts/{id}', { params: { path: account }, body: { label: given }, headers }),
    });
  };
  return (
    <form onSubmit={submit} className="grid gap-4">
      <Field
        label="Label"
        hint="A name for people. The id of the account stays: keys, receipts and the books refer to it."
        required
        maxLength={128}
        value={label}
        onChange={({ target }) => setLabel(target.value)}
      />
      {rename.error !== null && <ErrorNote error={rename.error} />}
      <Button type="submit" tone="primary" busy={rename.isPending} className="justify-self-end">
        Rename the account
      </Button>
    </form>
  );
}
