import type { ReactNode } from 'react';
import { explorerOf } from './networks.ts';

const START = 10;

/** A shortened transaction hash, linked to a public block explorer. */
export function TransactionLink({
  network,
  transaction,
}: {
  readonly network: string;
  readonly transaction: string | null;
}): ReactNode {
  if (transaction === null) return '–';
  const text = `${transaction.slice(0, START)}…`;
  const page = explorerOf(network, transaction);
  return page === null ? (
    <span title={transaction} className="font-mono text-sm">
      {text}
    </span>
  ) : (
    <a href={page} target="_blank" rel="noopener noreferrer" title={transaction} className="link font-mono text-sm">
      {text}
    </a>
  );
}
