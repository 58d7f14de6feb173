import { useState, type ReactNode } from 'react';
import { AccountName } from '../../../account/account-name.tsx';
import { mayAdminister, type Member, type Role, useMembers } from '../../../api/organisation.ts';
import { Badge } from '../../../ui/badge.tsx';
import { Button } from '../../../ui/button.tsx';
import { Card } from '../../../ui/card.tsx';
import { Empty } from '../../../ui/empty.tsx';
import { formatUsd } from '../../../ui/usd.ts';
import { QueryView } from '../../../ui/query-view.tsx';
import { Table, type Column } from '../../../ui/table.tsx';
import { BudgetBars } from '../../../account/budget-bars.tsx';
import { MemberDialog } from './member-dialog.tsx';

/** The members of the account, with the spending of their keys. `role` is the user's role. */
export function Members({ role }: { readonly role: Role | null }): ReactNode {
  const members = useMembers();
  const [shown, setShown] = useState<Member | 'new' | null>(null);
  const changeable = mayAdminister(role);
  const columns: readonly Column<Member>[] = [
    {
      id: 'name',
      head: 'Name',
      cell: (member) => (
        <div className="min-w-0">
          <p className="flex flex-wrap items-center gap-x-2.5 gap-y-1">
            <span className="font-medium">{member.name}</span>
            <Badge>{member.role}</Badge>
          </p>
          <p className="text-sm text-soft">
            <AccountName account={member.caip_account_id} />
            <span className="block sm:hidden">{formatUsd(member.usage_monthly)} this month</span>
          </p>
          {member.budgets.length > 0 && (
            <div className="mt-2 max-w-56 md:hidden">
              <BudgetBars of={member.name} budgets={member.budgets} />
            </div>
          )}
        </div>
      ),
    },
    { id: 'keys', head: 'Keys', align: 'right', from: 'sm', cell: ({ keys }) => keys },
    {
      id: 'spent',
      head: 'Spent this month',
      align: 'right',
      from: 'sm',
      cell: ({ usage_monthly: spent }) => formatUsd(spent),
    },
    {
      id: 'budgets',
      head: 'Budgets',
      from: 'md',
      width: 'w-56',
      cell: ({ name, budgets }) =>
        budgets.length === 0 ? <span className="text-soft">none</span> : <BudgetBars of={name} budgets={budgets} />,
    },
    ...(changeable
      ? [
          {
            id: 'change',
            head: <span className="sr-only">Change</span>,
            align: 'right',
            cell: (member: Member) => (
              <Button size="small" aria-label={`Change ${member.name}`} onClick={() => setShown(member)}>
                Change
              </Button>
            ),
          } as const,
        ]
      : []),
  ];
  const add = changeable && (
    <Button size="small" onClick={() => setShown('new')}>
      Add a member
    </Button>
  );
  return (
    <Card title="Members" action={add} flush>
      <QueryView query={members}>
        {(rows) => (
          <Table
            caption="Members"
            columns={columns}
            rows={rows}
            rowKey={({ account }) => account}
            empty={
              <Empty
                title="No members"
                text="Only the credentials of the account itself act for it. A member acts with a wallet or a key of their own."
              />
            }
          />
        )}
      </QueryView>
      <MemberDialog shown={shown} role={role ?? 'viewer'} onClose={() => setShown(null)} />
    </Card>
  );
}
