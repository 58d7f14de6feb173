import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { api } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorNote } from '../../ui/error-note.tsx';
import { Field } from '../../ui/field.tsx';
import { useToast } from '../../ui/toast.tsx';
import { nameOf, newReference, useAccountChange, type Account } from './account.ts';

/** The form that gives money to an account. */
export function CreditForm({ account, onDone }: { readonly account: Account; readonly onDone: () => void }): ReactNode {
  const [usd, setUsd] = useState('');
  // The reference of the credit. It stays the same, so the credit is made only once, even if the form is sent again.
  const [reference, setReference] = useState(newReference);
  const toast = useToast();
  const credit = useAccountChange<{ readonly duplicate: boolean }>(({ duplicate }) => {
    toast(duplicate ? 'This reference was credited before: nothing was added.' : 'Credited.');
    onDone();
  });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    credit.mutate({
      confirm: `Credit ${usd.trim()} USD to ${nameOf(account)}.`,
      send: (headers) =>
        api.POST('/admin/v1/accounts/{id}/credit', {
          params: { path: account },
          body: { amount_usd: usd.trim(), reference: reference.trim() },
          headers,
        }),
    });
  };
  return (
    <form onSubmit={submit} className="grid gap-4">
      <p className="font-mono text-sm break-all text-soft">{account.id}</p>
      <Field
        label="USD"
        inputMode="decimal"
        required
        pattern="[0-9]+([.][0-9]{1,6})?"
        title="A number such as 25 or 2.50"
        value={usd}
        onChange={({ target }) => setUsd(target.value)}
      />
      <Field
        label="Reference"
        hint="Your name of the payment, such as an invoice number. It counts once."
        required
        maxLength={128}
        value={reference}
        onChange={({ target }) => setReference(target.value)}
      />
      {credit.error !== null && <ErrorNote error={credit.error} />}
      <Button type="submit" tone="primary" busy={credit.isPending} className="justify-self-end">
        Credit
      </Button>
    </form>
  );
}
