import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { BOTH_ENGINES } from '../../support/engines.ts';
import { emptyDataDirectory } from '../../support/data-directory.ts';
import { freshDatabase } from '../../support/fresh-database.ts';
import { ask, IDENTITY_SEED, startSpine } from '../../support/spine.ts';
import { makePlace, type Place } from './tollgate.ts';

const DAY_MS = 86_400_000;
/** Days are counted back from here: a command may run on the next day. */
const BEGUN = Date.now();
const dateOf = (daysAgo: number) => new Date(BEGUN - daysAgo * DAY_MS).toISOString().slice(0, 10);

let place: Place;
let dataDir: string;
beforeAll(async () => {
  place = await makePlace();
});
afterAll(() => place.clear());

it.each(BOTH_ENGINES)('old calls of a gateway on %s are archived, proved and found', async (engine) => {
  dataDir = emptyDataDirectory();
  const fresh = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
  const of = fresh === null ? {} : { databaseUrl: fresh.url };
  const env = {
    TOLLGATE_DATA: dataDir,
    TOLLGATE_IDENTITY_SEED: IDENTITY_SEED,
    ...(fresh === null ? {} : { DATABASE_URL: fresh.url }),
  };
  const past = BEGUN - 100 * DAY_MS;
  const old = await startSpine({ dataDir, ...of, now: () => past, elapsed: () => performance.now() });
  const call = await old.post('/chat/completions', ask('hello'));
  await call.text();
  const id = call.headers.get('x-generation-id')!;
  const receipt = call.headers.get('x-receipt');
  const refunded = await old.post('/chat/completions', ask('hello'));
  await refunded.text();
  const refundedId = refunded.headers.get('x-generation-id')!;
  await old.quiet();
  await old.stop();
  const refund = async (call: string, ...more: readonly string[]) => {
    const { code, output, stdout } = await place.run(['call', 'refund', call, '--reason', 'late', ...more], env);
    return { code, text: code === 0 ? stdout : output };
  };
  expect((await refund(refundedId, '--usd', '0.000001')).code).toBe(0);

  const dry = await place.run(['archive', '--before', dateOf(60), '--dry-run'], env);
  expect(dry).toMatchObject({ code: 0 });
  expect(dry.stdout).toMatch(/^\d+ groups of the journal would be archived in .*\. Nothing was changed\.\n$/);
  const late = await place.run(['archive', '--before', dateOf(3)], env);
  expect(late.code).toBe(1);
  const latest = new RegExp(`the latest day to archive before is (?:${dateOf(35)}|${dateOf(34)}), not ${dateOf(3)}`);
  expect(late.output).toMatch(latest);
  expect((await place.run(['archive', '--before', 'June'], env)).code).toBe(2);

  const folder = join(dataDir, 'kept', 'archives');
  mkdirSync(folder, { recursive: true });
  const made = await place.run(['archive', '--before', dateOf(60), '--to', folder], env);
  expect(made).toMatchObject({ code: 0 });
  expect(made.stdout).toContain(`All calls before ${dateOf(60)} are archived, and their rows are dropped.`);
  const [name, ...more] = readdirSync(folder);
  expect(more).toEqual([]);
  const file = join(folder, name!);
  const listed = await place.run(['archive', 'list'], env);
  expect(listed.stdout).toContain(name);

  // Anybody can prove it, with the file alone.
  const elsewhere = { TOLLGATE_DATA: join(place.dir, 'nothing') };
  const proved = await place.run(['archive', 'verify', file], elsewhere);
  expect(proved).toMatchObject({ code: 0 });
  expect(proved.stdout).toMatch(/calls +2, each as the journal says/);
  const kid = /signed by +(\S+)/.exec(proved.stdout)![1]!;
  expect(await place.run(['archive', 'verify', file, '--kid', kid], elsewhere)).toMatchObject({ code: 0 });
  const other = await place.run(['archive', 'verify', file, '--kid', 'another'], elsewhere);
  expect(other).toMatchObject({ code: 1 });
  expect(other.output).toContain(`was signed with the key ${kid}, not with another`);
  const shown = await place.run(['archive', 'show', file, id], elsewhere);
  const record = JSON.parse(shown.stdout) as { call: { id: string; state: string }; receipt: string };
  expect(record.call).toMatchObject({ id, state: 'settled' });
  if (receipt !== null) expect(record.receipt).toBe(receipt);

  const missing = await place.run(['call', id], env);
  expect(missing.code).toBe(1);
  expect(missing.output).toContain(`The record of this one is in ${name!}`);
  // What had been refunded stays so, and nobody is told to credit it. What had not is credited.
  expect(await refund(id)).toEqual({
    code: 1,
    text: expect.stringMatching(
      /An archived call cannot be refunded: credit its account instead, with the id/,
    ) as string,
  });
  expect(await refund(refundedId, '--usd', '0.000001')).toMatchObject({ code: 0 });
  expect(await refund(refundedId)).toMatchObject({ code: 0 });
  expect(await refund(refundedId, '--usd', '0.000002')).toEqual({
    code: 1,
    text: expect.stringContaining('already refunded, with 0.000001 USD') as string,
  });
  const audit = await place.run(['audit'], env);
  expect([audit.code, audit.output]).toEqual([0, expect.stringContaining('✓ archives')]);

  const gateway = await startSpine({ dataDir, ...of });
  const found = await gateway.get(`/generation?id=${id}`);
  expect(found.status).toBe(410);
  expect(await found.json()).toEqual({
    error: {
      message: `Calls before ${dateOf(60)} are archived. The record of this one is in ${name!}, which the operator of the gateway has`,
      type: 'archived',
      code: 410,
      param: 'id',
    },
  });
  const list = (await (await gateway.get('/generations')).json()) as { data: unknown[]; archived_before: string };
  expect(list).toMatchObject({ data: [], archived_before: dateOf(60) });
  for (const file_ of ['', '/focus']) {
    const statement = await gateway.get(`/statements/${dateOf(100).slice(0, 7)}${file_}`);
    expect(await statement.json()).toMatchObject({ error: { type: 'archived', param: 'month' } });
  }
  const focus = await (await gateway.get(`/statements/${new Date().toISOString().slice(0, 7)}/focus`)).text();
  expect(focus).toMatch(/\r\n-0\.000001,.*,Credit,Correction,Refund: late,.*,Archived call,/);
  const csv = await gateway.get('/generations?format=csv');
  expect(csv.headers.get('x-tollgate-archived-before')).toBe(dateOf(60));
  await csv.text();
  const again = await gateway.post('/chat/completions', ask('hello'));
  expect(again.status).toBe(200);
  await again.text();
  // A stranger cannot tell an archived call of somebody else from one that never was.
  const stranger = await gateway.tenant('stranger', '1');
  const refused = await gateway.get(`/generation?id=${id}`, { authorization: `Bearer ${stranger.key}` });
  expect(refused.status).toBe(404);
  expect(await gateway.faults()).toEqual([]);
  await gateway.stop();
  await fresh?.drop();
  rmSync(dataDir, { recursive: true, force: true });
});
