import type { GatewayHere } from '../../../support/gateway-here.ts';
import type { Json } from '../../contract/shapes.ts';

/** What became of the lock of a call. */
export interface CallMoney {
  readonly state: string;
  /** Micro-USD. */
  readonly charged: number;
}

/** A gateway in another process as the operator and the owner of an account see it. */
export interface Books {
  call(id: string): Promise<CallMoney>;
  /** In the order of `ids`; a few at a time. */
  calls(ids: readonly string[]): Promise<readonly CallMoney[]>;
  /** Micro-USD of the account. */
  account(): Promise<{ readonly balance: number; readonly locked: number }>;
  /** What the audit finds wrong. */
  faults(): Promise<readonly unknown[]>;
}

const AT_ONCE = 16;

export function booksOf(gateway: GatewayHere, owner: { readonly account: string; readonly key: string }): Books {
  const books: Books = {
    async call(id) {
      const response = await fetch(`${gateway.baseUrl}/api/v1/generation?id=${id}`, {
        headers: { authorization: `Bearer ${owner.key}` },
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`/generation answered ${response.status}: ${text}`);
      const { data } = JSON.parse(text) as { data: { state: string; cost_micro_usdc: number } };
      return { state: data.state, charged: data.cost_micro_usdc };
    },
    calls: (ids) => inTurn(ids, AT_ONCE, books.call),
    async account() {
      const { data } = (await gateway.admin('GET', `/accounts/${encodeURIComponent(owner.account)}`)) as {
        data: Record<string, number>;
      };
      return { balance: data['balance_micro_usdc']!, locked: data['locked_micro_usdc']! };
    },
    async faults() {
      const { data } = (await gateway.admin('GET', '/audit')) as { data: { checks: { ok: boolean }[] } };
      return data.checks.filter(({ ok }) => !ok);
    },
  };
  return books;
}

/** Runs `work` for each, so many at once; the results are in the order of `items`. */
export async function inTurn<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const index = next++;
      results[index] = await work(items[index]!, index);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return results;
}

/** What an answer says of the call that it is about. `charged` is in micro-USD; null while it is not over. */
export function callOf({ metadata }: { readonly metadata: Json }): {
  readonly id: string;
  readonly charged: number | null;
} {
  const said = metadata['tollgate/generation'] as { readonly id?: string; readonly cost?: string } | undefined;
  if (typeof said?.id !== 'string') throw new Error(`no call is named in ${JSON.stringify(metadata)}`);
  return { id: said.id, charged: said.cost === undefined ? null : Math.round(Number(said.cost) * 1e6) };
}
