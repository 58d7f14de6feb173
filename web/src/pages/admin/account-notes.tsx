import { useQuery } from '@tanstack/react-query';
import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { api, data, type Schemas } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { ErrorNote } from '../../ui/error-note.tsx';
import { TextArea } from '../../ui/field.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { Time } from '../../ui/time.tsx';
import { ACCOUNTS, type Account, nameOf, useAccountChange } from './account.ts';

type Note = Schemas['AccountNote'];

/** Notes of the operator's people about an account. */
export function AccountNotes({ account }: { readonly account: Account }): ReactNode {
  const { id } = account;
  const [text, setText] = useState('');
  const notes = useQuery({
    queryKey: [...ACCOUNTS, 'notes', id],
    queryFn: () =>
      data(api.GET('/admin/v1/accounts/{id}/notes', { params: { path: { id }, query: { limit: 50, offset: 0 } } })),
  });
  const add = useAccountChange<Note>(() => setText(''));
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    add.mutate({
      confirm: `Write a note on ${nameOf(account)}.`,
      send: (headers) =>
        api.POST('/admin/v1/accounts/{id}/notes', { params: { path: { id } }, body: { text: text.trim() }, headers }),
    });
  };
  return (
    <Card title="Notes">
      <QueryView query={notes}>
        {(rows) => (
          <ul className="mb-4 grid gap-3">
            {rows.map((note) => (
              <OneNote key={note.id} account={account} note={note} />
            ))}
          </ul>
        )}
      </QueryView>
      <form onSubmit={submit} className="grid gap-3">
        <TextArea
          label="New note"
          hint="For you and other operators. The owner of the account does not see it."
          required
          maxLength={2_000}
          rows={2}
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
        {add.error !== null && <ErrorNote error={add.error} />}
        <Button type="submit" busy={add.isPending} className="justify-self-start">
          Add the note
        </Button>
      </form>
    </Card>
  );
}

function OneNote({ account, note }: { readonly account: Account; readonly note: Note }): ReactNode {
  const remove = useAccountChange<{ readonly id: string }>(() => {});
  return (
    <li className="border-b border-line pb-3">
      <p className="break-words whitespace-pre-wrap">{note.text}</p>
      <p className="mt-1 flex flex-wrap items-center gap-x-3 text-sm text-soft">
        <span>
          {note.by === 'root' ? 'the admin key' : note.by}, <Time at={note.at} />
        </span>
        <button
          type="button"
          className="link"
          onClick={() =>
            remove.mutate({
              confirm: 'Delete this note.',
              send: (headers) =>
                api.DELETE('/admin/v1/accounts/{id}/notes/{note}', {
                  params: { path: { id: account.id, note: note.id } },
                  headers,
                }),
            })
          }
        >
          Delete<span className="sr-only"> the note “{note.text.slice(0, 40)}”</span>
        </button>
      </p>
      {remove.error !== null && <ErrorNote error={remove.error} />}
    </li>
  );
}
