import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { makePlace, type Place } from './tollgate.ts';

let place: Place;
beforeEach(async () => {
  place = await makePlace();
});
afterEach(() => place.clear());

it('a key for a service that nobody offers is made, with a warning', async () => {
  await place.gateway(['start']);
  const made = await place.run(['key', 'create', 'dev', '--allow', 'nope/model', 'demo/chat', '--json']);
  expect(made.code).toBe(0);
  const warning = 'No service has the name nope/model at the moment. Check the name';
  expect(JSON.parse(made.stdout)).toMatchObject({
    data: { allowed_services: ['nope/model', 'demo/chat'] },
    warnings: [warning],
  });
  const shown = await place.run(['key', 'create', 'dev', '--allow', 'nope/model']);
  expect(shown.output).toContain(`! ${warning}\n`);
  expect(shown.stdout).not.toContain(warning);
  const fine = await place.run(['key', 'create', 'dev', '--allow', 'demo/chat', 'demo/tools']);
  expect(fine.output).not.toContain('No service has the name');
});

it('an amount that cannot be meant is refused in the words of the command', async () => {
  await place.run(['account', 'create', 'acme']);
  for (const amount of ['1.1234567', '0', 'abc', '1e3']) {
    const { code, output } = await place.run(['account', 'credit', 'acme', amount]);
    expect.soft(code, amount).toBe(1);
    expect
      .soft(output, amount)
      .toContain(`<usd> is an amount in USD above 0 with at most 6 decimal places, such as 25 or 0.5, not ${amount}`);
    expect.soft(output, amount).not.toContain('amount_usd');
  }
  expect((await place.run(['audit'])).code).toBe(0);
});

it('an amount that is too large is told as that', async () => {
  const { code, output } = await place.run(['account', 'credit', 'acme', '99999999999999']);
  expect([code, output]).toEqual([1, expect.stringMatching(/too much: at most \d/)]);
});

it('a change that changes nothing says so', async () => {
  const account = (...args: string[]) => place.run(['account', ...args]);
  await account('create', 'acme', '--label', 'Acme Ltd');
  const again = await account('create', 'acme', '--label', 'Other');
  expect([again.code, again.stdout]).toEqual([
    0,
    expect.stringContaining('The account exists already, and keeps its label. Change it: '),
  ]);
  expect((await account('create', 'acme')).stdout).toContain('The account exists already. Nothing was changed.');
  expect((await account('freeze', 'acme', '--reason', 'first')).stdout).not.toContain('before');
  const frozen = await account('freeze', 'acme', '--reason', 'second');
  expect(frozen.stdout).toMatch(/frozen: first\n[\s\S]*It was frozen before\. The reason of that stays\./);
  expect((await account('credit', 'acme', '1')).stdout).toContain('The account is frozen.');
  expect((await place.run(['key', 'create', 'acme'])).output).toContain(
    '! The account is frozen: the key makes no calls',
  );
});

it('a wallet or a provider that was never seen is told, as it may be mistyped', async () => {
  const wallet = 'solana:8YbUNXxsq9osKhq27omurM7im7gZhL6jWZNWWsTQ1uZm';
  await place.run(['account', 'create', 'acme']);
  const banned = await place.run(['provider', 'ban', wallet, '--reason', 'x']);
  expect([banned.code, banned.output]).toEqual([0, expect.stringContaining('no such provider ever connected here')]);
  const mistyped = await place.run(['provider', 'ban', 'loudd', '--reason', 'x']);
  expect([mistyped.code, mistyped.output]).toEqual([
    1,
    expect.stringContaining('No provider has the name loudd. One that has never connected is named by its account, '),
  ]);
  expect((await place.run(['provider', 'list'])).output).not.toContain('loudd');
  for (const limit of ['abc', '0', '-1', '2.5'])
    expect(await place.run(['calls', 'acme', `--limit=${limit}`])).toMatchObject({
      code: 2,
      output: expect.stringContaining(`--limit is "${limit}", not a whole number from 1`),
    });
  const unseen = 'This account was never seen here. Check its id.';
  expect((await place.run(['account', 'freeze', wallet, '--reason', 'x'])).stdout).toContain(unseen);
  expect((await place.run(['account', 'freeze', 'acme', '--reason', 'x'])).stdout).not.toContain(unseen);
});

it('a name that nobody has leads to the right list', async () => {
  await place.run(['account', 'create', 'acme']);
  const hints = [
    [['admin-key', 'revoke', 'inv'], 'admin-key list'],
    [['account', 'notes', 'acme', '--delete', 'none'], 'account notes <account>'],
    [['call', 'gen-none'], 'calls <account>'],
    [['provider', 'pay', `eip155:0x${'1'.repeat(40)}`, '--amount', '1'], 'provider list'],
    [['account', 'credit', 'Acme Ltd', '1'], 'account show "Acme Ltd"'],
  ] as const;
  for (const [command, hint] of hints) {
    const { code, output } = await place.run(command);
    expect.soft([code, output], command.join(' ')).toEqual([1, expect.stringContaining(hint)]);
  }
});

it('a period without a limit is refused, as the key would have no limit', async () => {
  await place.run(['account', 'create', 'acme']);
  const { code, output } = await place.run(['key', 'create', 'acme', '--limit-reset', 'daily']);
  expect([code, output]).toEqual([1, expect.stringContaining('--limit-reset needs --limit')]);
});

it('a limit that cannot be meant is refused, as it would be no limit or another one', async () => {
  await place.run(['account', 'create', 'acme']);
  for (const limit of ['Infinity', '1e400', '', ' ', '0x10', '1e3', '-1', '0.1234567']) {
    const { code, output } = await place.run(['key', 'create', 'acme', `--limit=${limit}`]);
    expect.soft(code, limit).toBe(1);
    expect
      .soft(output, limit)
      .toContain('--limit is an amount in USD with at most 6 decimal places, such as 5 or 0.25');
  }
  for (const limit of ['0', '5', '0.25'])
    expect.soft((await place.run(['key', 'create', 'acme', '--limit', limit])).code, limit).toBe(0);
  const listed = await place.run(['key', 'list', 'acme', '--json']);
  expect(
    (JSON.parse(listed.stdout) as { limit: number }[]).map(({ limit }) => limit).toSorted((a, b) => a - b),
  ).toEqual([0, 0.25, 5]);
});

it('an empty hash names no key, also if the account has only one', async () => {
  await place.run(['account', 'create', 'acme']);
  await place.run(['key', 'create', 'acme']);
  for (const change of ['disable', 'enable', 'delete']) {
    const { code, output } = await place.run(['key', change, 'acme', '']);
    expect.soft([change, code, output]).toEqual([change, 1, expect.stringContaining('<key> is empty. Name the key')]);
  }
  const listed = await place.run(['key', 'list', 'acme', '--json']);
  expect(JSON.parse(listed.stdout)).toMatchObject([{ disabled: false }]);
});

it('an admin key with an empty time does not last for ever', async () => {
  await place.run(['account', 'create', 'acme']);
  const { code, output } = await place.run(['admin-key', 'create', 'grafana', '--role', 'read', '--expires', '']);
  expect([code, output]).toEqual([1, expect.stringContaining('expires_at must be a time in the future')]);
  expect((await place.run(['admin-key', 'list', '--json'])).stdout).toBe('[]\n');
});

it('a name that a consumer chose cannot write to the terminal of the operator', async () => {
  const name = 'x\u001b[2J\u009b2K\r\nroot  active\u202e';
  await place.run(['account', 'create', 'acme']);
  const made = await place.run(['key', 'create', 'acme', '--json']);
  const { hash } = (JSON.parse(made.stdout) as { data: { hash: string } }).data;
  // As labels were before they were checked.
  const database = new DatabaseSync(join(place.data, 'tollgate.db'), { timeout: 10_000 });
  database.prepare('UPDATE consumers SET label = ?').run(name);
  database.prepare('UPDATE api_keys SET label = ?').run(name);
  database.close();
  for (const args of [
    ['account', 'list'],
    ['account', 'show', 'acme'],
    ['key', 'list', 'acme'],
    ['key', 'disable', 'acme', hash],
  ]) {
    const { stdout } = await place.run(args);
    expect.soft(stdout, args.join(' ')).toContain('x [2J 2K root  active');
    expect.soft(stdout, args.join(' ')).not.toMatch(/[^\P{C}\n]/u);
  }
});
