import { afterAll, beforeAll, expect, it } from 'vitest';
import { makePlace, type Place } from './tollgate.ts';

// Commands on the database of a stopped gateway are logged as well.

let place: Place;
beforeAll(async () => {
  place = await makePlace();
});
afterAll(() => place.clear());

it('makes, lists and revokes admin keys, and logs what was changed', async () => {
  await place.run(['account', 'create', 'acme']);
  const made = await place.run(['admin-key', 'create', 'invoices', '--role', 'credit', 'read']);
  expect(made, made.output).toMatchObject({ code: 0, stdout: expect.stringMatching(/^svc-admin-\S+\n\nKeep it now/) });
  const key = made.stdout.split('\n')[0]!;
  const listed = await place.run(['admin-key', 'list', '--json']);
  const [record] = JSON.parse(listed.stdout) as { id: string; roles: string[]; state: string }[];
  expect(record).toMatchObject({ label: 'invoices', roles: ['read', 'credit'], state: 'active' });
  expect((await place.run(['admin-key', 'revoke', record!.id])).code).toBe(0);
  expect((await place.run(['admin-key', 'list'])).stdout).toMatch(/invoices +read credit +revoked/);

  const logged = await place.run(['admin-log', '--limit', '10']);
  expect(logged.stdout).toMatch(/command +127\.0\.0\.1 +POST \/accounts +201 +\{"name":"acme"\}/);
  expect(logged.stdout).toMatch(/POST \/admin-keys +201 +\{"label":"invoices","roles":\["credit","read"\]\}/);
  expect(logged.stdout).toContain(`DELETE /admin-keys/${record!.id}`);
  expect(logged.stdout).not.toContain(key);

  expect((await place.run(['admin-key', 'create', 'x', '--role', 'all'])).code).toBe(1);
  expect((await place.run(['admin-log', '--limit', '0'])).code).toBe(1);
});

it('revokes an admin key by its label, if that names one key', async () => {
  const make = async (label: string) => {
    await place.run(['admin-key', 'create', label, '--role', 'read']);
    const { stdout } = await place.run(['admin-key', 'list', '--json']);
    return (JSON.parse(stdout) as { id: string }[]).at(-1)!.id;
  };
  const revoke = (named: string) => place.run(['admin-key', 'revoke', named]);
  const first = await make('grafana');
  expect(await revoke('grafana')).toMatchObject({ code: 0, stdout: `✓ grafana (${first}) is revoked\n` });
  expect(await revoke('grafana')).toMatchObject({
    code: 1,
    output: expect.stringMatching(/Every admin key with the label "grafana" is revoked already\.\nSee them: .*list$/m),
  });
  // A key that is revoked by its id again stays revoked.
  expect((await revoke(first.toUpperCase())).code).toBe(0);

  // The label of a revoked key is free for another.
  const [second, third] = [await make('grafana'), await make('grafana')];
  const twice = await revoke('grafana');
  expect(twice.code).toBe(1);
  expect(twice.output).toContain(`2 admin keys have the label "grafana". Name one by its id: ${second}, ${third};`);
  expect((await revoke(second)).code).toBe(0);
  expect((await revoke('grafana')).stdout).toContain(third);

  // A label that reads as the id of another key names that key.
  const other = await make('other');
  await make(other);
  expect((await revoke(other)).stdout).toContain(`other (${other})`);
  for (const unknown of ['nobody', '', 'log/../../accounts'])
    expect((await revoke(unknown)).output).toContain(`no admin key with the id or the label "${unknown}"`);
});
