import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { api } from '../../../api/client.ts';
import { actFor, actsFor } from '../../../api/acting.ts';
import { type Organisation, useOrganisations } from '../../../api/organisation.ts';
import { Badge } from '../../../ui/badge.tsx';
import { Button } from '../../../ui/button.tsx';
import { Card } from '../../../ui/card.tsx';
import { Dialog } from '../../../ui/dialog.tsx';
import { Empty } from '../../../ui/empty.tsx';
import { ErrorNote } from '../../../ui/error-note.tsx';
import { Field } from '../../../ui/field.tsx';
import { QueryView } from '../../../ui/query-view.tsx';
import { Table, type Column } from '../../../ui/table.tsx';
import { useAct } from './act.ts';

/** Reloads the page, because all shown data belongs to the previous account. */
function switchTo(account: string | null): void {
  actFor(account);
  window.location.assign('/dashboard/organisation');
}

/** The organisations of the signed-in account, with a button to act for each. */
export function Organisations(): ReactNode {
  const organisations = useOrganisations();
  const [making, setMaking] = useState(false);
  const acting = actsFor();
  const columns: readonly Column<Organisation>[] = [
    {
      id: 'name',
      head: 'Name',
      cell: ({ label, account }) => (
        <div className="min-w-0">
          <p className="font-medium">{label === '' ? account : label}</p>
          <p className="font-mono text-xs break-all text-soft">{account}</p>
        </div>
      ),
    },
    { id: 'role', head: 'Your role', from: 'sm', cell: ({ role }) => <Badge>{role}</Badge> },
    {
      id: 'act',
      head: <span className="sr-only">Act for it</span>,
      align: 'right',
      cell: ({ account, label }) =>
        account === acting ? (
          <Button size="small" onClick={() => switchTo(null)}>
            Stop
          </Button>
        ) : (
          <Button size="small" aria-label={`Act for ${label}`} onClick={() => switchTo(account)}>
            Act for it
          </Button>
        ),
    },
  ];
  const add = (
    <Button size="small" onClick={() => setMaking(true)}>
      New organisation
    </Button>
  );
  return (
    <Card title="Your organisations" action={add} flush>
      <QueryView query={organisations}>
        {(rows) => (
          <Table
            caption="Your organisations"
            columns={columns}
            rows={rows}
            rowKey={({ account }) => account}
            empty={
              <Empty
                title="No organisation yet"
                text="In an organisation several people share one balance, with keys, budgets and roles of their own. Others can also add you to theirs: give them the name of your account."
              />
            }
          />
        )}
      </QueryView>
      <Dialog title="New organisation" open={making} onClose={() => setMaking(false)}>
        <NewOrganisation onDone={() => setMaking(false)} />
      </Dialog>
    </Card>
  );
}

function NewOrganisation({ onDone }: { readonly onDone: () => void }): ReactNode {
  const [label, setLabel] = useState('');
  const [name, setName] = useState('');
  const create = useAct(onDone);
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    const own = name.trim() === '' ? {} : { name: name.trim() };
    const what = `Create the organisation "${label.trim()}".`;
    const body = { label: label.trim(), ...own };
    create.mutate({ what, send: (headers) => api.POST('/api/v1/organisations', { body, headers }) });
  };
  return (
    <form onSubmit={submit} className="grid gap-5">
      <Field
        label="Name of the organisation"
        required
        maxLength={128}
        placeholder="Acme Ltd"
        value={label}
        onChange={({ target }) => setLabel(target.value)}
      />
      <Field
        label="Your name in it"
        hint="For the other members. Empty: your account."
        maxLength={128}
        value={name}
        onChange={({ target }) => setName(target.value)}
      />
      {create.error !== null && <ErrorNote error={create.error} />}
      <Button type="submit" tone="primary" busy={create.isPending} className="justify-self-end">
        Create it
      </Button>
    </form>
  );
}
