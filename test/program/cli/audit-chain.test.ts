import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { startAnvil, type Anvil } from '../../support/chain/anvil.ts';
import { deployEvmToken, freshKey, type EvmToken } from '../../support/chain/evm-token.ts';
import { makePlace, type Place } from './tollgate.ts';

// tollgate audit --chain against a real chain: what the treasury holds, with and without a gateway that runs.

let anvil: Anvil;
let token: EvmToken;
let place: Place;
beforeAll(async () => {
  anvil = await startAnvil();
  token = await deployEvmToken(anvil);
});
afterAll(() => anvil.stop());
beforeEach(async () => {
  place = await makePlace();
});
afterEach(() => place.clear());

/** A gateway's file with a treasury of its own, and the environment that it names. */
async function configured(more = '') {
  const treasury = freshKey();
  await anvil.setBalance(treasury.address, 10n ** 18n);
  const file = join(place.dir, 'tollgate.toml');
  await writeFile(
    file,
    `[payments]\nwatch_ms = 100\n[[chains]]\nnetwork = "eip155:${anvil.chainId}"\nrpc_url = "std::env::RPC_URL"\nprivate_key = "std::env::KEY"
asset = "${token.address}"\nasset_name = "${token.name}"\nasset_version = "${token.version}"\nfinality = 1\n${more}`,
  );
  const env = { RPC_URL: anvil.url, KEY: Buffer.from(treasury.secret).toString('hex') };
  return { treasury, file, env };
}

/** One statement on the database of the gateway, which may be writing at that moment. */
function change(sql: string): number {
  const database = new DatabaseSync(join(place.data, 'tollgate.db'), { timeout: 10_000 });
  try {
    return Number(database.prepare(sql).run().changes);
  } finally {
    database.close();
  }
}

const rowOf = (output: string) =>
  output
    .split('\n')
    .find((line) => line.startsWith('eip155:'))!
    .split(/ {2,}/);

test('tollgate audit --chain holds the books against the treasury, with and without a gateway that runs', async () => {
  const vault = freshKey().address;
  const { treasury, file, env } = await configured(`move_to = ["${vault}"]\n`);
  await token.mint(treasury.address, 2_000_000n);
  const gateway = await place.gateway(['serve', '--config', file], env);
  const running = await place.run(['audit', '--chain']);
  expect(running).toMatchObject({
    code: 0,
    output: expect.stringContaining('The treasuries hold what the books say.'),
  });
  expect(rowOf(running.output).slice(0, 8)).toEqual([`eip155:${anvil.chainId}`, '2', '2', '2', '0', '0', '0', '0']);

  // Its reference is told before anything is sent, and what is left to do with it.
  const network = `eip155:${anvil.chainId}`;
  const moved = await place.run(['treasury', 'move', network, network, '0.5', '--to', vault]);
  const [, reference] = /repeat it with --reference (cli-\S+):/.exec(moved.output)!;
  const [, id] = /^id +(\S+)/m.exec(moved.stdout)!;
  expect(moved.stdout).toContain(`treasury arrived ${id} <deposit>`);
  const list = await place.run(['treasury', 'list']);
  expect(list.stdout).toMatch(new RegExp(`move .* ${reference} +${id}$`, 'm'));
  await expect.poll(() => token.balanceOf(vault), { timeout: 60_000 }).toBe(500_000n);
  expect(await place.run(['treasury', 'cancel', id!])).toMatchObject({
    code: 1,
    output: expect.stringContaining('It is too late: its treasury has signed the move'),
  });

  expect((await place.run(['treasury', 'suspense'])).stdout.trim()).toBe('Nothing is in suspense.');
  const stranger = freshKey();
  await token.mint(stranger.address, 250_000n);
  await token.transfer(stranger, treasury.address, 250_000n);
  await token.mint(stranger.address, 1n);
  const suspense = async () => (await place.run(['treasury', 'suspense'])).stdout;
  await expect
    .poll(suspense, { timeout: 60_000 })
    .toMatch(new RegExp(`${network} +0\\.25 +${stranger.address} +\\S+$`, 'm'));

  // What a halt keeps from being signed can be taken back.
  expect(change("UPDATE chains SET halted = 'by this test'")).toBe(1);
  const waits = await place.run(['treasury', 'move', network, network, '0.25', '--to', vault]);
  const [, waiting] = /^id +(\S+)/m.exec(waits.stdout)!;
  const canceled = await place.run(['treasury', 'cancel', waiting!]);
  expect(canceled).toMatchObject({ code: 0, stdout: expect.stringMatching(/^status +refused$/m) });
  expect(canceled.stdout).toMatch(/^why +Canceled$/m);
  expect(change('UPDATE chains SET halted = NULL')).toBe(1);
  gateway.signal('SIGTERM');
  await gateway.exited;

  // What waits to be paid out waits on: who looks at the books moves nothing.
  change(`INSERT INTO withdrawals (id, network, account, source, address, amount, handed_out, state, created_at, updated_at, next_look_at, looks)
    VALUES ('w', 'eip155:${anvil.chainId}', 'a', 'escrow:a', '${freshKey().address}', 1, 0, 'queued', 0, 0, 0, 0)`);
  const sender = freshKey();
  await token.mint(sender.address, 1_000_000n);
  await token.transfer(sender, treasury.address, 1_000_000n);
  const stopped = await place.run(['audit', '--chain', '--config', file, '--json'], env);
  expect(stopped.code).toBe(0);
  expect(JSON.parse(stopped.stdout)).toMatchObject({
    ok: true,
    chains: {
      ok: true,
      suspense: 1_250_000,
      losses: 0,
      chains: [{ treasury: treasury.address, owed: 2_750_000, held: 2_750_000, booked: 2_750_000, difference: 0 }],
    },
  });

  // Without its file nobody looks at the treasury, and the audit does not say that it did.
  expect(await place.run(['audit', '--chain'])).toMatchObject({
    code: 2,
    output: expect.stringMatching(/the configuration does not have this chain.*Not every treasury could be compared/s),
  });

  expect(change("DELETE FROM withdrawals WHERE id = 'w' AND state = 'queued'")).toBe(1);

  const away = await place.run(['audit', '--chain', '--config', file], { ...env, RPC_URL: 'http://127.0.0.1:9' });
  expect(away).toMatchObject({ code: 2, output: expect.stringContaining('could not be compared') });

  // Somebody else has the key.
  await token.transfer(treasury, freshKey().address, 500_000n);
  const robbed = await place.run(['audit', '--chain', '--config', file], env);
  expect(robbed.code).toBe(1);
  expect(rowOf(robbed.output)).toContain('-0.5');
  expect(robbed.output).toContain('The books are right.');
  expect(robbed.output).toContain('withdrawals are stopped: the treasury holds 2.25 USDC, the books say 2.75');
  expect(robbed.output).toContain('The treasuries and the books differ.');

  for (const secret of [env.KEY, env.RPC_URL])
    expect([running, stopped, away, robbed].map(({ output }) => output).join() + gateway.output()).not.toContain(
      secret,
    );
});

test('a gateway with a treasury that cannot be used does not start, and says why without the key', async () => {
  const { file, env } = await configured();
  const wrong = await place.run(['serve', '--config', file], { ...env, KEY: '0'.repeat(64) });
  expect(wrong).toMatchObject({
    code: 1,
    output: expect.stringContaining(
      `The treasury of eip155:${anvil.chainId}: The private key holds a number that is no private key`,
    ),
  });
  expect(wrong.output).not.toContain('    at ');
  const valid = await place.run(['serve', '--config', file, '--validate'], env);
  expect(valid).toMatchObject({
    code: 0,
    output: expect.stringMatching(/✓ chain +eip155:\d+: money, with the treasury 0x/),
  });
  expect(valid.output).not.toContain(env.KEY);
});
