import type { Command } from 'commander';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adHoc } from '../../support/ad-hoc.ts';
import { modelBlock, type Spine, startSpine, UNHURRIED } from '../../support/spine.ts';
import { makePlace, type Place } from './tollgate.ts';
import { createProgram } from '../../../src/program/cli/program.ts';

// An account, a provider and a key can be named by an id, or by a name that only one of them has.

let spine: Spine;
let place: Place;
beforeAll(async () => {
  const two = ['one/chat', 'two/chat'].map((name) =>
    modelBlock({ name, provider: 'Only Ltd', url: 'http://127.0.0.1:9/v1' }),
  );
  spine = await startSpine({ toml: `${UNHURRIED}\n${two.join('\n')}` });
  place = await makePlace();
});
afterAll(async () => {
  await place.clear();
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

const run = async (...args: readonly string[]) => {
  const { code, output } = await place.run([...args, '--url', spine.origin], { TOLLGATE_ADMIN_KEY: spine.adminKey });
  return { code, output };
};

test('an account by its label, in each command', async () => {
  await run('account', 'create', 'acme', '--label', 'Acme Ltd');
  await run('account', 'credit', 'acme', '4');
  for (const args of [
    ['account', 'movements', 'Acme Ltd'],
    ['account', 'notes', 'Acme Ltd'],
    ['account', 'refusals', 'Acme Ltd'],
    ['account', 'freeze', 'Acme Ltd', '--reason', 'a test'],
    ['account', 'unfreeze', 'Acme Ltd', '--reason', 'a test'],
    ['usage', 'Acme Ltd'],
    ['usage', 'Acme Ltd', '--csv'],
    ['calls', 'Acme Ltd'],
    ['statement', 'Acme Ltd', new Date().toISOString().slice(0, 7)],
    ['focus', new Date().toISOString().slice(0, 7), '--account', 'Acme Ltd'],
    ['key', 'list', 'Acme Ltd'],
  ])
    expect(await run(...args), args.join(' ')).toMatchObject({ code: 0 });
  expect((await run('account', 'show', 'acme')).output).toMatch(/balance +4 USD/);
});

test('no command that moves money takes a label, because a stranger may have chosen the expected one', async () => {
  for (const args of [
    ['account', 'credit', 'Acme Ltd', '5'],
    ['account', 'debit', 'Acme Ltd', '1', '--reason', 'too much'],
  ])
    expect(await run(...args), args.join(' ')).toMatchObject({
      code: 1,
      output: expect.stringContaining('account show "Acme Ltd" says which account has it') as string,
    });
  await run('account', 'create', 'initech', '--label', 'hooli');
  expect((await run('account', 'credit', 'hooli', '5')).output).toContain('Account not found');
  expect((await run('account', 'show', 'hooli')).output).toContain('tollgate:local:initech');
});

test('a name that is the label of another account is refused, with both', async () => {
  await run('account', 'create', 'globex');
  await run('account', 'create', 'other');
  // Older databases can have it.
  await spine.app.database.query(adHoc("UPDATE consumers SET label = 'globex' WHERE account = 'tollgate:local:other'"));
  const { code, output } = await run('account', 'freeze', 'globex', '--reason', 'a test');
  expect([code, output]).toEqual([
    1,
    expect.stringMatching(/2 accounts have the name or label globex[^]*tollgate:local:globex[^]*tollgate:local:other/),
  ]);
  expect((await run('account', 'freeze', 'tollgate:local:globex', '--reason', 'a test')).code).toBe(0);
  expect((await run('account', 'freeze', 'nobody', '--reason', 'a test')).output).toContain('Account not found');
  // Money goes to the account with the name, whatever labels say.
  expect((await run('account', 'credit', 'other', '5')).output).toContain('tollgate:local:other');
});

test('a key by its name, if only one has it', async () => {
  await run('key', 'create', 'acme', '--name', 'laptop');
  await run('key', 'create', 'acme', '--name', 'twin');
  await run('key', 'create', 'acme', '--name', 'twin');
  expect((await run('key', 'change', 'Acme Ltd', 'laptop', '--limit', '3')).output).toMatch(/laptop .* is changed/);
  const twins = await run('key', 'delete', 'acme', 'twin');
  expect([twins.code, twins.output]).toEqual([
    1,
    expect.stringMatching(/2 keys of acme [^]*\n {2}[0-9a-f]{64} {2}twin/),
  ]);
  const [hash] = /[0-9a-f]{64}/.exec(twins.output)!;
  expect((await run('key', 'delete', 'acme', hash)).output).toMatch(/twin .* is deleted/);
  expect((await run('key', 'delete', 'acme', 'twin')).output).toMatch(/twin .* is deleted/);
  expect((await run('key', 'delete', 'acme', 'twin')).output).toContain('has no key with the name twin');
  expect((await run('key', 'disable', 'acme', 'laptop')).output).toMatch(/laptop .* is disabled/);
});

test('a provider by its name, of the configuration too', async () => {
  const shown = await run('provider', 'show', 'only ltd');
  expect([shown.code, shown.output]).toEqual([0, expect.stringMatching(/Only Ltd \(\w+\), in the configuration/)]);
  expect((await run('provider', 'show', 'Nobody Ltd')).output).toContain('No provider has the name Nobody Ltd');
  // A provider may have the name of another one's account.
  const provider = (index: number) => `0x${`${index}`.repeat(40)}`;
  for (const [index, account, name] of [
    [1, 'tollgate:local:twin', 'First'],
    [2, 'tollgate:local:second', 'Twin'],
  ] as const)
    await spine.app.database.query(
      adHoc(
        "INSERT INTO provider_registrations (provider, account, name, name_key, document, revision, created_at, updated_at) VALUES ($1, $2, $3, $4, '[]', 1, 1, 1)",
      ),
      [provider(index), account, name, name.toLowerCase()],
    );
  const twins = await run('provider', 'payouts', 'twin');
  expect([twins.code, twins.output]).toEqual([
    1,
    expect.stringMatching(new RegExp(`2 providers have the name twin[^]*${provider(1)}[^]*${provider(2)}`)),
  ]);
  expect((await run('provider', 'payouts', 'first')).code).toBe(0);
  expect((await run('provider', 'payouts', provider(2))).code).toBe(0);
});

test('each command that takes one of them has the same argument', () => {
  const args = (command: Command): readonly (readonly [string, string, string])[] => [
    ...command.registeredArguments.map((each) => [command.name(), each.name(), each.description] as const),
    ...command.commands.flatMap(args),
  ];
  const named = args(createProgram()).filter(([, name]) => ['account', 'provider'].includes(name));
  expect(named.length).toBeGreaterThan(20);
  for (const [command, name, description] of named)
    expect(description, command).toContain(
      name === 'provider' ? 'name' : ['credit', 'debit'].includes(command) ? 'its name or id' : 'its name, id or label',
    );
});
