import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { Link } from 'wouter';
import { useProof } from '../../../account/proof.tsx';
import { ApiError } from '../../../api/api-error.ts';
import { api, call } from '../../../api/client.ts';
import { BOOT } from '../../../app/boot.ts';
import { Button } from '../../../ui/button.tsx';
import { CodeBlock } from '../../../ui/code-block.tsx';
import { Dialog } from '../../../ui/dialog.tsx';
import { ErrorNote } from '../../../ui/error-note.tsx';
import { bodyOf, KeyFields, limitFault, NEW_KEY } from './key-fields.tsx';

/** The dialog that creates a key and shows it once. */
export function NewKey({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }): ReactNode {
  const [made, setMade] = useState<string | null>(null);
  const close = () => {
    setMade(null);
    onClose();
  };
  return (
    <Dialog title={made === null ? 'New key' : 'Your new key'} open={open} onClose={close}>
      {made === null ? <NewKeyForm onMade={setMade} /> : <Made text={made} onClose={close} />}
    </Dialog>
  );
}

/** The error message of a field, by the field's name. */
export const faultsOf = (error: unknown): Readonly<Record<string, string>> =>
  error instanceof ApiError && error.param !== null ? { [error.param]: error.message } : {};

/** `onMade` gets the text of the key, which is in no other answer. */
export function NewKeyForm({ onMade }: { readonly onMade: (text: string) => void }): ReactNode {
  const [draft, setDraft] = useState(NEW_KEY);
  const prove = useProof();
  const queries = useQueryClient();
  const create = useMutation({
    mutationFn: async () => {
      const headers = await prove(`Create the API key "${draft.label.trim()}".`);
      if (headers === null) return null;
      return call(api.POST('/api/v1/keys', { body: bodyOf(draft), headers }));
    },
    onSuccess: (made) => {
      if (made === null) return;
      onMade(made.key);
      void queries.invalidateQueries({ queryKey: ['keys'] });
    },
  });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (limitFault(draft) === null) create.mutate();
  };
  const faults = faultsOf(create.error);
  return (
    <form onSubmit={submit} className="grid gap-5">
      <KeyFields draft={draft} onChange={setDraft} faults={faults} />
      {create.error !== null && Object.keys(faults).length === 0 && <ErrorNote error={create.error} />}
      <Button type="submit" tone="primary" busy={create.isPending} className="justify-self-end">
        Create the key
      </Button>
    </form>
  );
}

/** Shows the text of a key, which no other page can show. */
export function Made({ text, onClose }: { readonly text: string; readonly onClose: () => void }): ReactNode {
  const code = [`curl ${BOOT.base_url}/api/v1/models \\`, `  -H "Authorization: Bearer $KEY"`].join('\n');
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
      <p className="rounded-lg bg-warn-wash px-4 py-3 text-warn">
        Copy it now. It cannot be shown again: the gateway keeps only its hash.
      </p>
      <CodeBlock code={text} label="The key" />
      <CodeBlock code={`export KEY=${text}`} label="The key for the commands of these pages" />
      <p className="text-soft">
        For clients of the OpenAI API, the base URL is <code className="font-mono text-sm">{BOOT.base_url}/api/v1</code>
      </p>
      <CodeBlock code={code} label="A first request" />
      <p className="text-soft">
        Each service has its code, for many clients, on its page in the{' '}
        <Link href="/marketplace" className="link">
          marketplace
        </Link>
        .
      </p>
      <Button tone="primary" onClick={onClose} className="justify-self-end">
        I have copied it
      </Button>
    </div>
  );
}
