import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
import { startSpine, type Spine } from '../support/spine.ts';
import { SIGN_IN_TOML, signInHeaders, solanaWallet } from '../support/wallets.ts';

// Anybody can have any number of wallets, and each has a rate of its own. As long as they have had no money, all of a
// network have together what one account has.

const RATE = 12;

let spine: Spine;
beforeAll(async () => {
  const limits = `[limits]\naccount_requests_per_minute = ${RATE}\nburst = 0\n[server]\ntrusted_proxies = ["127.0.0.1"]\n`;
  spine = await startSpine({ toml: `${limits}${SIGN_IN_TOML}` });
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

const read = async (wallet: ReturnType<typeof solanaWallet>, from: string, path = '/session/balance') => {
  const answer = await fetch(spine.url + path, {
    headers: { ...(await signInHeaders(wallet)), 'x-forwarded-for': from },
  });
  return { status: answer.status, text: await answer.text() };
};
/** An account may lower its own rate. */
async function slowed() {
  const wallet = solanaWallet();
  const { nonce } = (await (await spine.get('/auth/nonce')).json()) as { nonce: string };
  const headers = { ...(await signInHeaders(wallet, { nonce })), 'content-type': 'application/json' };
  const body = JSON.stringify({ requests_per_minute: 1 });
  const answer = await fetch(`${spine.url}/limits`, { method: 'PATCH', headers, body });
  expect(answer.status).toBe(200);
  return wallet;
}
const many = (count: number, from: string, path?: string) =>
  Promise.all(Array.from({ length: count }, () => read(solanaWallet(), from, path)));
const refusedOf = (answers: readonly { readonly status: number }[]) =>
  answers.filter(({ status }) => status === 429).length;

test('wallets without money share the rate of one account at their network, and those with money do not', async () => {
  const slow = await slowed();
  const answers = await many(3 * RATE, '203.0.113.7');
  const refused = refusedOf(answers);
  // The window moves on while they come.
  expect(refused).toBeGreaterThan(RATE);
  expect(refused).toBeLessThanOrEqual(2 * RATE);
  expect(answers.find(({ status }) => status === 429)!.text).toContain('accounts without money at your network');
  expect((await read(solanaWallet(), '203.0.113.7', '/generations')).status).toBe(429);
  // A rate of its own is that of an account alone.
  await read(slow, '203.0.113.7');
  expect(refusedOf(await many(4, '203.0.113.7'))).toBeGreaterThanOrEqual(3);
  expect((await read(solanaWallet(), '198.51.100.1')).status).toBe(200);

  // What is less than 0.10 USD costs nothing either.
  for (const [amount, status] of [
    [99_999n, 429],
    [100_000n, 200],
  ] as const) {
    const funded = solanaWallet();
    const transfer = { id: `${amount}`, from: treasuryOf('operator'), to: escrowOf(funded.account), amount, memo: '' };
    await spine.app.ledger.transfer(transfer);
    await many(RATE, '203.0.113.7');
    expect((await read(funded, '203.0.113.7')).status).toBe(status);
  }
});
