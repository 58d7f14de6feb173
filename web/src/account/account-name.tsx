import type { ReactNode } from 'react';

const START = 6;
const END = 4;

/** Shortens an account's id: `0x52e9…cefa`, or the last part of a name that the gateway gave. */
export function shortAccount(account: string): string {
  const last = account.split(':').at(-1) ?? account;
  return last.length > START + END + 6 ? `${last.slice(0, START)}…${last.slice(-END)}` : last;
}

/** A shortened account id, with the full id as its title. */
export function AccountName({ account }: { readonly account: string }): ReactNode {
  return (
    <span title={account} className="font-mono text-[0.93em] whitespace-nowrap">
      {shortAccount(account)}
    </span>
  );
}
