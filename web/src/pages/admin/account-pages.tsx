import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useSearchState } from '../../app/search.ts';
import { AccountPage } from './account-page.tsx';
import { Accounts } from './accounts.tsx';
import { FromTop } from './from-top.tsx';
import { OperatorCall } from './operator-call.tsx';
import { accountPage, callPage } from './paths.ts';

const START = { account: '', call: '' };

/** The list of accounts, one of them, or one of their calls: whichever the address names. */
export default function AccountPages(): ReactNode {
  const [{ account, call }] = useSearchState(START);
  if (account === '' && call === '') return <Accounts pageOf={accountPage} />;
  const pageOf = (id: string) => callPage(account, id);
  return (
    <>
      <p className="mb-4">
        <Link href="/admin?tab=accounts" className="link">
          All accounts
        </Link>
      </p>
      <FromTop key={`${account} ${call}`}>
        {call === '' ? (
          <AccountPage id={account} pageOf={pageOf} />
        ) : (
          <OperatorCall id={call} account={account} pageOf={pageOf} />
        )}
      </FromTop>
    </>
  );
}
