import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { useProof } from '../../../account/proof.tsx';
import type { ApiKey } from '../../../api/own.ts';
import { api, call } from '../../../api/client.ts';
import { useOwnRole } from '../../../api/organisation.ts';
import { signIn, useSession } from '../../../api/session.ts';
import { Button } from '../../../ui/button.tsx';
import { Dialog } from '../../../ui/dialog.tsx';
import { ErrorNote } from '../../../ui/error-note.tsx';
import { bodyOf, draftOf, KeyFields, limitFault } from './key-fields.tsx';
import { faultsOf, Made } from './new-key.tsx';

type Changes = Readonly<Record<string, unknown>>;

/** The dialog that changes a key. It is closed while `of` is null. */
export function EditKey({ of, onClose }: { readonly of: ApiKey | null; readonly onClose: () => void }): ReactNode {
  const [made, setMade] = useState<string | null>(null);
  const close = () => {
    setMade(null);
    onClose();
  };
  return (
    <Dialog title={of === null ? 'Key' : of.label} open={of !== null} onClose={close}>
      {made !== null ? (
        <Made text={made} onClose={close} />
      ) : (
        of !== null && <Form of={of} onClose={close} onRotated={setMade} />
      )}
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

/** Seconds that the text before works beside the new one, if its owner wants so. */
const A_DAY = 24 * 60 * 60;

interface FormProps {
  readonly of: ApiKey;
  readonly onClose: () => void;
  /** Gets the new text of the key. */
  readonly onRotated: (text: string) => void;
}

function Form({ of, onClose, onRotated }: FormProps): ReactNode {
  const [draft, setDraft] = useState(() => draftOf(of));
  const [act, setAct] = useState<'rotate' | 'delete' | null>(null);
  const prove = useProof();
  const queries = useQueryClient();
  const { session } = useSession();
  const isOwn = session?.key === of.hash;
  // Whoever rotates a key gets the rights of its holder.
  const mayRotate = useOwnRole() === 'owner' || of.member === session?.account;
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
  const rotate = useMutation({
    mutationFn: async (seconds: number) => {
      const headers = await prove(`Rotate the API key "${of.label}".`);
      if (headers === null) return null;
      const body = { grace_seconds: seconds };
      const { key } = await call(api.POST('/api/v1/keys/{hash}/rotate', { params, body, headers }));
      // It has ended the sessions that the key began, also this one. The new text is shown even if that fails.
      if (isOwn) await signIn({ api_key: key }).catch(() => null);
      return key;
    },
    onSuccess: (key) => {
      if (key === null) return;
      onRotated(key);
      void queries.invalidateQueries({ queryKey: ['keys'] });
    },
  });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (limitFault(draft) === null) change.mutate(changesOf(of, bodyOf(draft)));
  };
  const error = change.error ?? remove.error ?? rotate.error;
  const faults = faultsOf(change.error);
  const busy = change.isPending || remove.isPending || rotate.isPending;
  return (
    <form onSubmit={submit} className="grid gap-5">
      <KeyFields draft={draft} onChange={setDraft} faults={faults} />
      {error !== null && Object.keys(faults).length === 0 && <ErrorNote error={error} />}
      {act === 'rotate' && (
        <div className="grid gap-3 rounded-lg bg-warn-wash px-4 py-3">
          <p className="text-warn">
            The key gets another text, which programs that use it need. Its limits and figures stay. Browsers that
            signed in with it are signed out.
          </p>
          <div className="flex flex-wrap justify-end gap-2">
            <Button size="small" onClick={() => setAct(null)}>
              Keep it
            </Button>
            <Button size="small" disabled={busy} onClick={() => rotate.mutate(A_DAY)}>
              Old text works a day more
            </Button>
            <Button size="small" tone="danger" disabled={busy} onClick={() => rotate.mutate(0)}>
              Refuse the old text now
            </Button>
          </div>
        </div>
      )}
      {act === 'delete' && (
        <div className="flex flex-wrap items-center justify-between gap-3 rounded-lg bg-bad-wash px-4 py-3">
          <p className="text-bad">Programs that use this key stop working. It cannot be undone.</p>
          <div className="flex gap-2">
            <Button size="small" onClick={() => setAct(null)}>
              Keep it
            </Button>
            <Button size="small" tone="danger" busy={remove.isPending} onClick={() => remove.mutate()}>
              Delete for ever
            </Button>
          </div>
        </div>
      )}
      {act === null && (
        <div className="flex flex-wrap items-center justify-between gap-3">
          <div className="flex flex-wrap gap-2">
            <Button disabled={busy} onClick={() => change.mutate({ disabled: !of.disabled })}>
              {of.disabled ? 'Enable' : 'Disable'}
            </Button>
            <Button tone="danger" disabled={busy} onClick={() => setAct('delete')}>
              Delete
            </Button>
            {of.client === null && mayRotate && (
              <Button disabled={busy} onClick={() => setAct('rotate')}>
                Rotate
              </Button>
            )}
          </div>
          <Button type="submit" tone="primary" busy={change.isPending}>
            Save
          </Button>
        </div>
      )}
    </form>
  );
}
