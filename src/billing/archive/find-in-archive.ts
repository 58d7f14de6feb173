import { receiptText } from '../receipt.ts';
import { rowOfCall, type ArchivedCall } from './archive-lines.ts';
import { receiptOfCall } from './matched-calls.ts';
import { verifyArchive } from './verify-archive.ts';

interface FoundCall {
  /** The columns of its lock. Amounts are texts in micro-USD, times are epoch milliseconds. */
  readonly call: ArchivedCall;
  /** Its receipt as compact JWS; null for a call that was not charged. */
  readonly receipt: string | null;
}

/** Proves an archive, and finds a call in it; null if it has no such call. Rejects with ArchiveError. */
export async function findInArchive(path: string, id: string): Promise<FoundCall | null> {
  let call = null as ArchivedCall | null;
  let signed = null as readonly [string, string, string] | null;
  const { kid } = await verifyArchive(path, {
    onLine(line) {
      if (line[0] === 'call' && line[1]['id'] === id) [, call, signed] = line;
    },
  });
  if (call === null) return null;
  if (signed === null) return { call, receipt: null };
  const [account, primitive, signature] = signed;
  const receipt = `${receiptText(receiptOfCall(rowOfCall(call), account, primitive), kid)}.${signature}`;
  return { call, receipt };
}
