import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { useProof } from '../../../account/proof.tsx';
import type { ApiKey } from '../../../api/own.ts';
import { api, call } from '../../../api/client.ts';
import { useSession } from '../../../api/session.ts';
import { Button } from '../../../ui/button.tsx';
import { Dialog } from '../../../ui/dialog.tsx';
import { ErrorNote } from '../../../ui/error-note.tsx';
import { bodyOf, draftOf, KeyFields, limitFault } from './key-fields.tsx';
import { faultsOf } from './new-key.tsx';

type Changes = Readonly<Record<string, unknown>>;

/** The dialog that changes a key. It is closed while `of` is null. */
export function EditKey({ of, onClose }: { readonly of: ApiKey | null; readonly onClose: () => void }): ReactNode {
  return (
    <Dialog title={of === null ? 'Key' : of.label} open={of !== null} onClose={onClose}>
      {of !== null && <Form of={of} onClose={onClose} />}
    </Dialog>
  );
}

/** The members that differ from the key's present values. Only these are sent. */
function changesOf(key: ApiKey, wanted: ReturnType<typeof bodyOf>): Changes {
  const now: Changes = bodyOf(draftOf(key));
  return Object.fromEntries(
    Object.entries(wanted).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(now[name])),
  );
}

function Form({ of, onClose }: { readonly of: ApiKey; readonly onClose: () => void }): ReactNode {
  const [draft, setDraft] = useState(() => draftOf(of));
  const [sure, setSure] = useState(false);
  const prove = useProof();
  const queries = useQueryClient();
  const isOwn = useSession().session?.key === of.hash;
  const params = { path: { hash: of.hash } };
  const done = {
    onSuccess: async (answer: unknown) => {
      if (answer === null) return;
      await queries.invalidateQueries({ queryKey: ['keys'] });
      onClose();
    },
  };
  const change = useMutation({
    mutationFn: async (changes: Changes) => {
      if (Object.keys(changes).length === 0) return {};
      // To rename a key or to disable the session's own key needs no proof, because neither gives a key more rights.
      const harmless = Object.entries(changes).every(
        ([name, value]) => name === 'label' || (isOwn && name === 'disabled' && value === true),
      );
      const headers = harmless ? {} : await prove(`Change the API key "${of.label}".`);
      return headers === null ? null : call(api.PATCH('/api/v1/keys/{hash}', { params, body: changes, headers }));
    },
    ...done,
  });
  const remove = useMutation({
    mutationFn: async () => {
      const headers = isOwn ? {} : await prove(`Delete the API key "${of.label}".`);
      return headers === null ? null : call(api.DELETE('/api/v1/keys/{hash}', { params, headers }));
    },
    ...done,
  });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (limitFault(draft) === null) change.mutate(changesOf(of, bodyOf(draft)));
  };
  const error = change.error ?? remove.error;
  const faults = faultsOf(change.error);
  const busy = change.isPending || remove.isPending;
  return (
    <form onSubmit={submit} className="grid gap-5">
      <KeyFields draft={draft} onChange={setDraft} faults={faults} />
      {error !== null && Object.keys(faults).length === 0 && <ErrorNote error={error} />}
      {sure ? (
        <div className="flex flex-wrap items-center justify-between gap-3 rounded-lg bg-bad-wash px-4 py-3">
          <p className="text-bad">Programs that use this key stop working. It cannot be undone.</p>
          <div className="flex gap-2">
            <Button size="small" onClick={() => setSure(false)}>
              Keep it
            </Button>
            <Button size="small" tone="danger" busy={remove.isPending} onClick={() => remove.mutate()}>
              Delete for ever
            </Button>
          </div>
        </div>
      ) : (
        <div className="flex flex-wrap items-center justify-between gap-3">
          <div className="flex gap-2">
            <Button disabled={busy} onClick={() => change.mutate({ disabled: !of.disabled })}>
              {of.disabled ? 'Enable' : 'Disable'}
            </Button>
            <Button tone="danger" disabled={busy} onClick={() => setSure(true)}>
              Delete
            </Button>
          </div>
          <Button type="submit" tone="primary" busy={change.isPending}>
            Save
          </Button>
        </div>
      )}
    </form>
  );
}
