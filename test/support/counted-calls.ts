import { createPriceBook } from '#billing/compose';
import { escrowOf, treasuryOf, type Ledger, type PriceVersion } from '#billing';
import { priceId } from '#billing/amounts';
import type { Database } from '#store';

/** A call in the form in which the pipeline stores it, and its end. */
export interface CountedCall {
  readonly id: string;
  readonly account: string;
  readonly key: string | null;
  readonly primitive: 'model' | 'tool' | 'agent' | 'image' | 'video';
  readonly service: string;
  readonly provider: string;
  /** `free`: it is settled without a charge, because its provider failed. */
  readonly end: 'settle' | 'free' | 'release' | 'continue' | 'run' | 'expire' | 'hold';
  /** Micro-USD. */
  readonly charge: number;
  readonly prompt: number;
  readonly completion: number;
  readonly reasoning: number;
  readonly firstByteMs: number;
  readonly durationMs: number;
  readonly tags?: Readonly<Record<string, string>>;
}

const RATES = { call: 1_000_000n };

/** One micro-USD per call. */
export const COUNTED_PRICE: PriceVersion = {
  id: priceId('p', 'counted', RATES),
  provider: 'p',
  service: 'counted',
  rates: RATES,
};

/** Gives these accounts money, and stores the price with which calls are settled. */
export async function fund(database: Database, ledger: Ledger, accounts: readonly string[]): Promise<void> {
  await createPriceBook(database).remember([COUNTED_PRICE]);
  const credit = (account: string) =>
    ledger.transfer({
      id: `fund-${account}`,
      from: treasuryOf('test'),
      to: escrowOf(account),
      amount: 10n ** 12n,
      memo: '',
    });
  await Promise.all(accounts.map(credit));
}

/** Locks a call at `now` and ends it as `end` says. A call that expires or is held is left as it is. */
export async function makeCall(ledger: Ledger, call: CountedCall, now: number): Promise<void> {
  const { id, account, key, primitive, service, end, tags = {} } = call;
  const run = end === 'run' ? { run: true } : {};
  // A call that was not served has only the requested name, in its requested form.
  const asked = end === 'settle' || end === 'free' ? `asked/${service}` : `0x${'aB'.repeat(20)}:${service}:nitro`;
  const locked = ledger.lock({
    id,
    account,
    amount: BigInt(call.charge),
    prices: [COUNTED_PRICE.id],
    expiresAt: end === 'expire' ? now : now + 9e11,
    detail: JSON.stringify({
      primitive,
      service: asked,
      ...run,
      key,
      requestId: `r-${id}`,
      tags,
      stream: false,
    }),
  });
  const ended = endOf(ledger, call);
  const result = await locked;
  if (!result.ok) throw new Error(`${id} was refused: ${result.reason}`);
  await ended;
}

async function endOf(ledger: Ledger, call: CountedCall): Promise<void> {
  const { id, service, provider, charge, prompt, completion, reasoning, firstByteMs, durationMs, end } = call;
  if (end === 'expire' || end === 'hold') return;
  if (end !== 'settle' && end !== 'free') {
    const outcome = end === 'continue' ? 'continued' : 'failed';
    await ledger.release({ id, detail: JSON.stringify({ outcome, clientGone: false }) });
    return;
  }
  const settled = await ledger.settle({
    id,
    price: COUNTED_PRICE.id,
    provider,
    charge: end === 'free' ? 0n : BigInt(charge),
    draw: false,
    feeBps: 100,
    usage: JSON.stringify({ call: charge, prompt, completion }),
    detail: JSON.stringify({
      service,
      providerName: 'P',
      outcome: end === 'free' ? 'free' : 'complete',
      firstByteMs,
      durationMs,
      reasoning,
    }),
  });
  if (!settled.ok) throw new Error(`${id} was not settled: ${settled.reason}`);
}
