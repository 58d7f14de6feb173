import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { call, ownApi } from '../../api/client.ts';
import { useSession } from '../../api/session.ts';
import { Link } from '../../app/link.tsx';
import { buttonStyle } from '../../ui/button-style.ts';
import { exactMicroUsd } from '../../ui/exact-usd.ts';

export const BALANCE_KEY = ['playground', 'balance'] as const;
const BALANCE_PAGE = '/dashboard/balance';

/** Whether somebody is signed in, so that calls can be made. */
export const useSignedIn = (): boolean => useSession().session !== null;

/** The address of the sign-in page, which leads back to this page. */
const signInHref = () => `/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`;

/** The balance of the account that pays, with a link to add money. null: the signed-in account. */
export function Balance({ of }: { readonly of: string | null }): ReactNode {
  const signedIn = useSignedIn();
  const balance = useQuery({
    queryKey: [...BALANCE_KEY, of],
    enabled: signedIn,
    queryFn: () =>
      call(ownApi.GET('/api/v1/session/balance', of === null ? {} : { headers: { 'x-tollgate-account': of } })),
  });
  if (!signedIn) return null;
  return (
    <Link href={BALANCE_PAGE} className={`${buttonStyle('plain')} figures max-sm:ml-auto`}>
      <span className="text-soft">Balance</span>
      {balance.data === undefined ? '…' : exactMicroUsd(balance.data.balance_micro_usdc)}
    </Link>
  );
}

/** Shown instead of the button that makes a call. */
export function SignInToRun({ what }: { readonly what: string }): ReactNode {
  return (
    <Link href={signInHref()} className={buttonStyle('primary')}>
      Sign in {what}
    </Link>
  );
}

/** Suggests what the reader can do after a failed call, depending on its status. */
export function NextStep({ status, again }: { readonly status: number; readonly again: ReactNode }): ReactNode {
  if (status === 402 || status === 424)
    return (
      <Link href={BALANCE_PAGE} className={buttonStyle('primary', 'small')}>
        Add money
      </Link>
    );
  if (status === 401)
    return (
      <Link href={signInHref()} className={buttonStyle('primary', 'small')}>
        Sign in
      </Link>
    );
  return again;
}
