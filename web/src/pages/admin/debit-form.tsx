import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { exactMicroUsd } from '../../ui/exact-usd.ts';
import { Button } from '../../ui/button.tsx';
import { type AnswerOf, api } from '../../api/client.ts';
import { ErrorNote } from '../../ui/error-note.tsx';
import { Field } from '../../ui/field.tsx';
import { nameOf, newReference, useAccountChange, type Account } from './account.ts';

type Debited = AnswerOf<'debitAnAccount'>['data'];

/** The form that takes money from an account. After the debit it shows the balance before and after. */
export function DebitForm({ account, onDone }: { readonly account: Account; readonly onDone: () => void }): ReactNode {
  const [usd, setUsd] = useState('');
  const [reason, setReason] = useState('');
  // It stays the same while the form is open, so the debit is made only once, even if the form is sent again.
  const [reference, setReference] = useState(newReference);
  const [debited, setDebited] = useState<Debited | null>(null);
  const debit = useAccountChange<Debited>(setDebited);
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    debit.mutate({
      confirm: `Debit ${usd.trim()} USD from ${nameOf(account)}.`,
      send: (headers) =>
        api.POST('/admin/v1/accounts/{id}/debit', {
          params: { path: account },
          body: { amount_usd: usd.trim(), reason: reason.trim(), reference: reference.trim() },
          headers,
        }),
    });
  };
  if (debited !== null) return <Answer debited={debited} onDone={onDone} />;
  return (
    <form onSubmit={submit} className="grid gap-4">
      <Field
        label="USD"
        hint={<WhatCanBeTaken account={account} />}
        inputMode="decimal"
        required
        pattern="[0-9]+([.][0-9]{1,6})?"
        title="A number such as 25 or 2.50"
        value={usd}
        onChange={({ target }) => setUsd(target.value)}
      />
      <Field
        label="Reason"
        hint="The owner of the account reads it in the movements."
        required
        maxLength={500}
        value={reason}
        onChange={({ target }) => setReason(target.value)}
      />
      <Field
        label="Reference"
        hint="Your name of the correction. It counts once, and the owner of the account sees it."
        required
        maxLength={128}
        value={reference}
        onChange={({ target }) => setReference(target.value)}
      />
      {debit.error !== null && <ErrorNote error={debit.error} />}
      <Button type="submit" tone="primary" busy={debit.isPending} className="justify-self-end">
        Debit the account
      </Button>
    </form>
  );
}

function WhatCanBeTaken({ account }: { readonly account: Account }): ReactNode {
  const { balance_micro_usdc: available, locked_micro_usdc: locked } = account;
  return (
    <>
      At most {exactMicroUsd(available)} can be taken.
      {locked > 0 && ` Running calls have locked ${exactMicroUsd(locked)} more.`}
    </>
  );
}

function Answer({ debited, onDone }: { readonly debited: Debited; readonly onDone: () => void }): ReactNode {
  const { amount_micro_usdc, balance_before_micro_usdc, balance_after_micro_usdc, duplicate } = debited;
  return (
    <div className="grid gap-4">
      <p role="status" className="font-medium">
        {duplicate
          ? `This reference was debited before: nothing was taken. The balance is ${exactMicroUsd(balance_after_micro_usdc)}.`
          : `${exactMicroUsd(amount_micro_usdc)} were taken.`}
      </p>
      {!duplicate && (
        <dl className="grid grid-cols-2 gap-4">
          {(
            [
              ['Balance before', balance_before_micro_usdc],
              ['Balance after', balance_after_micro_usdc],
            ] as const
          ).map(([name, micro]) => (
            <div key={name}>
              <dt className="text-sm text-soft">{name}</dt>
              <dd className="figures">{exactMicroUsd(micro)}</dd>
            </div>
          ))}
        </dl>
      )}
      <Button tone="primary" className="justify-self-end" onClick={onDone}>
        Done
      </Button>
    </div>
  );
}
