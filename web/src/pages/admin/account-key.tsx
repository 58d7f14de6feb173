import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { api, type Schemas } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorNote } from '../../ui/error-note.tsx';
import { Field } from '../../ui/field.tsx';
import { useToast } from '../../ui/toast.tsx';
import { useAccountChange } from './account.ts';

type Key = Schemas['ApiKey'];

const PERIODS = { daily: 'Each day.', weekly: 'Each week.', monthly: 'Each month.' } as const;
const textOf = (value: number | null | undefined) => (value == null ? '' : String(value));
const numberOrNull = (text: string) => (text.trim() === '' ? null : Number(text));

/** The button that changes the limits of a key, disables it or revokes it, with the form. */
export function KeyActs({ account: id, of }: { readonly account: string; readonly of: Key }): ReactNode {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button size="small" aria-label={`Change the key ${of.name}`} onClick={() => setOpen(true)}>
        Change
      </Button>
      <Dialog title={of.name} open={open} onClose={() => setOpen(false)}>
        {open && <KeyForms account={id} of={of} onDone={() => setOpen(false)} />}
      </Dialog>
    </>
  );
}

function KeyForms({
  account: id,
  of,
  onDone,
}: {
  readonly account: string;
  readonly of: Key;
  readonly onDone: () => void;
}): ReactNode {
  const before = {
    requests_per_minute: textOf(of.requests_per_minute),
    tokens_per_minute: textOf(of.tokens_per_minute),
    limit: textOf(of.limit),
  };
  const [draft, setDraft] = useState(before);
  const toast = useToast();
  const path = { id, hash: of.hash };
  const change = useAccountChange<object>(() => {
    toast('Changed.');
    onDone();
  });
  const patch = (confirm: string, body: Readonly<Record<string, boolean | number | null>>) =>
    change.mutate({
      confirm,
      send: (headers) => api.PATCH('/admin/v1/accounts/{id}/keys/{hash}', { params: { path }, body, headers }),
    });
  const revoke = () =>
    change.mutate({
      confirm: `Revoke the key ${of.name} for ever.`,
      send: async (headers) => {
        const { data: answer } = await api.DELETE('/admin/v1/accounts/{id}/keys/{hash}', { params: { path }, headers });
        return answer === undefined ? {} : { data: { data: answer } };
      },
    });
  const names = Object.keys(before) as (keyof typeof before)[];
  const changed = names.filter((name) => draft[name].trim() !== before[name]);
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    patch(
      `Change the limits of the key ${of.name}.`,
      Object.fromEntries(changed.map((name) => [name, numberOrNull(draft[name])])),
    );
  };
  const field = (name: keyof typeof before) => ({
    value: draft[name],
    onChange: ({ target }: { readonly target: { readonly value: string } }) =>
      setDraft({ ...draft, [name]: target.value }),
  });
  return (
    <div className="grid gap-4">
      <p className="font-mono text-xs break-all text-soft">{of.hash}</p>
      <form onSubmit={submit} className="grid gap-4">
        <p className="text-sm text-soft">
          Of this key alone, beside the limits of the account: the lower one counts. Empty: it has none of its own.
        </p>
        <div className="grid grid-cols-2 items-end gap-4">
          <Field
            label="Requests a minute"
            type="number"
            min={1}
            placeholder="the account’s"
            {...field('requests_per_minute')}
          />
          <Field
            label="Tokens a minute"
            type="number"
            min={1}
            placeholder="the account’s"
            {...field('tokens_per_minute')}
          />
        </div>
        <Field
          label="Spending limit in USD"
          hint={of.limit_reset === null ? 'In all, with what was spent before.' : PERIODS[of.limit_reset]}
          inputMode="decimal"
          pattern="[0-9]+([.][0-9]{1,6})?"
          title="A number such as 0.25"
          placeholder="no limit"
          {...field('limit')}
        />
        <Button
          type="submit"
          tone="primary"
          busy={change.isPending}
          disabled={changed.length === 0}
          className="justify-self-end"
        >
          Change the limits
        </Button>
      </form>
      {change.error !== null && <ErrorNote error={change.error} />}
      <div className="grid gap-3 border-t border-line pt-4">
        <p className="text-sm text-soft">
          A disabled key is refused within a second, and can be enabled again. A revoked key is gone: its calls end, are
          charged, and stay in the books. Revoke a key that somebody else may have.
        </p>
        <div className="flex flex-wrap justify-end gap-2">
          <Button
            busy={change.isPending}
            onClick={() =>
              patch(`${of.disabled ? 'Enable' : 'Disable'} the key ${of.name}.`, { disabled: !of.disabled })
            }
          >
            {of.disabled ? 'Enable' : 'Disable'}
          </Button>
          <Button tone="danger" busy={change.isPending} onClick={revoke}>
            Revoke
          </Button>
        </div>
      </div>
    </div>
  );
}
