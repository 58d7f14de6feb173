import { expect } from 'vitest';
import type { MoneyChain } from '../../../support/chain/money-chain.ts';

/** A gateway as its operator reaches it. */
export interface Operated {
  /** `http://127.0.0.1:<port>`. */
  readonly origin: string;
  readonly adminKey: string;
}

interface AuditView {
  readonly checks: readonly { readonly ok: boolean }[];
  readonly chains: {
    readonly chains: readonly {
      readonly network: string;
      readonly ok: boolean | null;
      readonly held: number | null;
      readonly owed: number;
      readonly open: Readonly<Record<string, number>>;
    }[];
  };
}

const BETWEEN_BLOCKS_MS = 300;
const BETWEEN_ASKING_MS = 20;
const WITHIN_MS = 60_000;

/** Asks until there is an answer, while blocks come on the chains, so that what was done becomes final. */
export async function later<T>(chains: readonly MoneyChain[], what: string, ask: () => Promise<T | null>): Promise<T> {
  const deadline = performance.now() + WITHIN_MS;
  let blocks = 0;
  for (;;) {
    // Blocks of an anvil are a second apart: too many, and its time runs away from the payments that are signed.
    if (performance.now() >= blocks) {
      await Promise.all(chains.map((chain) => chain.finalize()));
      blocks = performance.now() + BETWEEN_BLOCKS_MS;
    }
    const answer = await ask();
    if (answer !== null) return answer;
    if (performance.now() > deadline) throw new Error(`waited ${WITHIN_MS} ms in vain until ${what}`);
    // Nobody tells when.
    await new Promise((resolve) => setTimeout(resolve, BETWEEN_ASKING_MS));
  }
}

/**
 * Waits until nothing is on its way on any chain. Then the books are in order, and what they owe is what the
 * treasuries hold.
 */
export async function expectBalanced({ origin, adminKey }: Operated, chains: readonly MoneyChain[]): Promise<void> {
  const report = await later(chains, 'nothing is on its way, and the treasuries hold what is owed', async () => {
    const response = await fetch(`${origin}/admin/v1/audit?chain=true`, {
      headers: { authorization: `Bearer ${adminKey}` },
    });
    const { data } = (await response.json()) as { data: AuditView };
    // The balance of a treasury is read first: a payment may become final before the rest is.
    const isBalanced = data.chains.chains.every(
      ({ open, ok, held, owed }) => ok === true && held === owed && Object.values(open).every((count) => count === 0),
    );
    return isBalanced ? data : null;
  });
  expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
  expect(report.chains.chains.map(({ network }) => network)).toEqual(chains.map(({ network }) => network));
  for (const [index, { network, held, owed }] of report.chains.chains.entries()) {
    const { treasury, balanceOf } = chains[index]!;
    expect({ network, held, owed }).toEqual({ network, held: Number(await balanceOf(treasury)), owed: held });
  }
}
