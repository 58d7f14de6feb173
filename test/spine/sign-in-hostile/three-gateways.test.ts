import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { freshDatabase, type FreshDatabase } from '../../support/fresh-database.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { evmWallet, SIGN_IN_TOML, signInHeaders, solanaWallet } from '../../support/wallets.ts';

// Three gateways that share a database and the seed of their identity: a nonce of any is good at each, and once in all.

let database: FreshDatabase;
let gateways: readonly Spine[];
beforeAll(async () => {
  database = await freshDatabase(inject('postgresUrl'));
  const start = () => startSpine({ databaseUrl: database.url, toml: UNHURRIED + SIGN_IN_TOML });
  gateways = [await start(), await start(), await start()];
});
afterAll(async () => {
  for (const gateway of gateways) await gateway.stop();
  await database.drop();
});

const createKey = async (gateway: Spine, headers: Record<string, string>) =>
  (
    await fetch(`${gateway.url}/keys`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: '{}',
    })
  ).status;
const nonceOf = async (gateway: Spine) =>
  ((await (await fetch(`${gateway.url}/auth/nonce`)).json()) as { nonce: string }).nonce;
const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 200 : 6;

it('a nonce that is used on three gateways at once makes one key', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    // A new one, as an account has only so many keys.
    const wallet = round % 2 === 0 ? solanaWallet() : evmWallet();
    const headers = await signInHeaders(wallet, { nonce: await nonceOf(gateways[round % 3]!) });
    const statuses = await Promise.all(
      Array.from({ length: 12 }, (_, index) => createKey(gateways[index % 3]!, headers)),
    );
    expect(statuses.filter((status) => status === 201)).toHaveLength(1);
    expect(statuses.filter((status) => status === 401)).toHaveLength(11);
    for (const gateway of gateways) expect(await createKey(gateway, headers)).toBe(401);
  }
});
