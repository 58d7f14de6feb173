import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { exactMicroUsd } from '../../ui/exact-usd.ts';
import { Button } from '../../ui/button.tsx';
import { api } from '../../api/client.ts';
import { ErrorNote } from '../../ui/error-note.tsx';
import { Field, Select } from '../../ui/field.tsx';
import { useToast } from '../../ui/toast.tsx';
import { nameOf, useAccountChange, type Account } from './account.ts';

const REMAINDERS = [
  { value: 'paid_out', text: 'Paid out' },
  { value: 'written_off', text: 'Written off' },
] as const;
type Remainder = (typeof REMAINDERS)[number]['value'];

/** The form that closes a frozen account, and says what becomes of the money that the account still has. */
export function CloseForm({ account, onDone }: { readonly account: Account; readonly onDone: () => void }): ReactNode {
  const [reason, setReason] = useState('');
  const [remainder, setRemainder] = useState<Remainder>('paid_out');
  const [reference, setReference] = useState('');
  const toast = useToast();
  const close = useAccountChange<Account>(() => {
    toast('Closed.');
    onDone();
  });
  if (account.state === 'open')
    return <p className="text-soft">Freeze the account before you close it, so that no new call begins.</p>;
  if (account.locked_micro_usdc > 0)
    return (
      <p className="text-soft">
        Running calls have locked {exactMicroUsd(account.locked_micro_usdc)}. The account can be closed when they end.
      </p>
    );
  const usd = exactMicroUsd(account.balance_micro_usdc);
  const hasMoney = account.balance_micro_usdc > 0;
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    const becomes = remainder === 'paid_out' ? 'paid out' : 'written off';
    close.mutate({
      confirm: `Close ${nameOf(account)}${hasMoney ? `, with ${usd} ${becomes}` : ''}.`,
      send: (headers) =>
        api.POST('/admin/v1/accounts/{id}/close', {
          params: { path: account },
          body: {
            reason: reason.trim(),
            ...(hasMoney
              ? { remainder, amount_micro_usdc: account.balance_micro_usdc, reference: reference.trim() }
              : {}),
          },
          headers,
        }),
    });
  };
  return (
    <form onSubmit={submit} className="grid gap-4">
      <p className="text-soft">
        The keys of the account are deleted, and all its requests are refused. Its history and its name stay.
      </p>
      {hasMoney ? (
        <>
          <p className="font-medium">The account still has {usd}.</p>
          <Select
            label="What becomes of it"
            hint={
              remainder === 'paid_out'
                ? 'You pay it to the customer outside of this gateway. No money is sent.'
                : 'You keep it.'
            }
            options={REMAINDERS}
            value={remainder}
            onChange={({ target }) => setRemainder(target.value as Remainder)}
          />
          <Field
            label="Reference"
            hint="Your name of the payment or the write-off. It counts once."
            required
            maxLength={128}
            value={reference}
            onChange={({ target }) => setReference(target.value)}
          />
        </>
      ) : (
        <p className="font-medium">The account has no money left.</p>
      )}
      <Field
        label="Reason"
        hint={
          hasMoney && remainder === 'written_off'
            ? 'If the account is opened again, its owner reads it in the movements.'
            : 'For you and other operators. The owner of the account does not see it.'
        }
        required
        maxLength={500}
        value={reason}
        onChange={({ target }) => setReason(target.value)}
      />
      {close.error !== null && <ErrorNote error={close.error} />}
      <Button type="submit" tone="primary" busy={close.isPending} className="justify-self-end">
        Close the account
      </Button>
    </form>
  );
}
