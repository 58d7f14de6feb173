import type { ReactNode } from 'react';

const START = 6;
const END = 4;

/** An account as people recognise it: `0x52e9…cefa`, or the last part of the gateway's own names. */
export function shortAccount(account: string): string {
  const last = account.split(':').at(-1) ?? account;
  return last.length > START + END + 6 ? `${last.slice(0, START)}…${last.slice(-END)}` : last;
}

/** An account in short, with the whole name as its title. */
export function AccountName({ account }: { readonly account: string }): ReactNode {
  return (
    <span title={account} className="font-mono text-[0.93em] whitespace-nowrap">
      {shortAccount(account)}
    </span>
  );
}
