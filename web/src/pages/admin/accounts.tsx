import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Plus } from 'lucide-react';
import { useRef, useState, type SyntheticEvent, type ReactNode } from 'react';
import { Link } from 'wouter';
import { AccountName } from '../../account/account-name.tsx';
import { withKey } from '../../api/operator.ts';
import { api, type BodyOf, call, data } from '../../api/client.ts';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Empty } from '../../ui/empty.tsx';
import { ErrorNote } from '../../ui/error-note.tsx';
import { Field } from '../../ui/field.tsx';
import { Money } from '../../ui/money.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { ACCOUNTS, nameOf, type Account } from './account.ts';
import { AccountChanges } from './account-changes.tsx';
import { CreditForm } from './credit-form.tsx';
import { useAdminKey } from './admin-key.tsx';

const PAGE = 50;

/**
 * The list of accounts with their balances, and forms to create, credit and change them. `pageOf`: the address of an
 * account's page.
 */
export function Accounts({ pageOf }: { readonly pageOf: (account: string) => string }): ReactNode {
  const [offset, setOffset] = useState(0);
  const [credited, setCredited] = useState<Account | null>(null);
  const [changed, setChanged] = useState<Account | null>(null);
  const [making, setMaking] = useState(false);
  const accounts = useQuery({
    queryKey: [...ACCOUNTS, offset],
    queryFn: () => data(api.GET('/admin/v1/accounts', { params: { query: { limit: PAGE, offset } } })),
    placeholderData: keepPreviousData,
  });
  const columns: readonly Column<Account>[] = [
    {
      id: 'account',
      head: 'Account',
      cell: (row) => (
        <>
          <p className="font-medium">
            <Link href={pageOf(row.id)} className="hover:underline">
              {row.label === '' ? <AccountName account={row.id} /> : row.label}
            </Link>
            {row.state !== 'open' && (
              <>
                {' '}
                <Badge tone={row.state === 'frozen' ? 'warn' : 'bad'}>{row.state}</Badge>
              </>
            )}
          </p>
          <p className="font-mono text-xs break-all text-soft">{row.id}</p>
          {row.state !== 'open' && <p className="text-sm break-words text-soft">{row.state_reason}</p>}
        </>
      ),
    },
    { id: 'since', head: 'Since', from: 'md', cell: (row) => row.created_at !== null && <Time at={row.created_at} /> },
    {
      id: 'locked',
      head: 'Locked',
      align: 'right',
      from: 'sm',
      cell: (row) => (row.locked_micro_usdc === 0 ? '–' : <Money micro={row.locked_micro_usdc} />),
    },
    { id: 'balance', head: 'Balance', align: 'right', cell: (row) => <Money micro={row.balance_micro_usdc} held /> },
    {
      id: 'changes',
      head: <span className="sr-only">Changes</span>,
      align: 'right',
      cell: (row) => (
        <span className="flex flex-wrap justify-end gap-2">
          <Button size="small" aria-label={`Credit ${nameOf(row)}`} onClick={() => setCredited(row)}>
            Credit
          </Button>
          <Button size="small" aria-label={`Change ${nameOf(row)}`} onClick={() => setChanged(row)}>
            Change
          </Button>
        </span>
      ),
    },
  ];
  return (
    <>
      <Card
        title="Accounts"
        flush
        action={
          <Button size="small" onClick={() => setMaking(true)}>
            <Plus size={15} aria-hidden />
            New account
          </Button>
        }
      >
        <QueryView query={accounts}>
          {(rows) => (
            <Table
              caption="Accounts"
              columns={columns}
              rows={rows}
              rowKey={({ id }) => id}
              empty={
                <Empty
                  title="No account"
                  text="Make one with New account. A wallet that pays in, or has a key, is here by itself."
                />
              }
            />
          )}
        </QueryView>
      </Card>
      <div className="mt-4 flex justify-center gap-2">
        {offset > 0 && <Button onClick={() => setOffset(Math.max(0, offset - PAGE))}>Newer accounts</Button>}
        {accounts.data?.length === PAGE && <Button onClick={() => setOffset(offset + PAGE)}>More accounts</Button>}
      </div>
      <Dialog title="Credit an account" open={credited !== null} onClose={() => setCredited(null)}>
        {credited !== null && <CreditForm account={credited} onDone={() => setCredited(null)} />}
      </Dialog>
      <Dialog title="Change an account" open={changed !== null} onClose={() => setChanged(null)}>
        {changed !== null && <AccountChanges id={changed.id} onDone={() => setChanged(null)} />}
      </Dialog>
      <Dialog title="New account" open={making} onClose={() => setMaking(false)}>
        <AccountForm onDone={() => setMaking(false)} />
      </Dialog>
    </>
  );
}

function AccountForm({ onDone }: { readonly onDone: () => void }): ReactNode {
  const name = useRef<HTMLFormElement>(null);
  const askKey = useAdminKey();
  const queries = useQueryClient();
  const make = useMutation({
    mutationFn: async (body: BodyOf<'createAnAccount'>) => {
      const key = await askKey(`Create the account ${body.name ?? body.account!}.`);
      return key === null ? null : call(api.POST('/admin/v1/accounts', { body, headers: withKey(key) }));
    },
    onSuccess: async (answer) => {
      if (answer === null) return;
      await queries.invalidateQueries({ queryKey: ACCOUNTS });
      onDone();
    },
  });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    const given = new FormData(name.current!);
    const text = String(given.get('account')).trim();
    const label = String(given.get('label')).trim();
    make.mutate({
      ...(text.includes(':') ? { account: text } : { name: text }),
      ...(label === '' ? {} : { label }),
    });
  };
  return (
    <form ref={name} onSubmit={submit} className="grid gap-4">
      <Field
        label="Name or wallet"
        hint="Small letters, digits and hyphens; or a wallet in CAIP-10, such as eip155:8453:0x…"
        name="account"
        required
        spellCheck={false}
        placeholder="acme"
      />
      <Field label="Label" hint="A name for people." name="label" maxLength={128} placeholder="Acme Ltd" />
      {make.error !== null && <ErrorNote error={make.error} />}
      <Button type="submit" tone="primary" busy={make.isPending} className="justify-self-end">
        Create the account
      </Button>
    </form>
  );
}
