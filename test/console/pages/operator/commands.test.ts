import { afterAll, beforeAll, expect, test } from 'vitest';
import { makePlace, type Place } from '../../../program/cli/tollgate.ts';
import { pauses } from '../../../support/pauses.ts';
import { ask, modelBlock, type Spine, startSpine, UNHURRIED } from '../../../support/spine.ts';

// Each view of the operator's console has its command, which says the same at a terminal.

let spine: Spine;
let place: Place;
beforeAll(async () => {
  const gone = modelBlock({ name: 'gone/chat', provider: 'Gone', url: 'http://127.0.0.1:9/v1' });
  spine = await startSpine({ toml: `${UNHURRIED}\n[analytics]\nevery_ms = 50\n${gone}` });
  place = await makePlace();
  const { key } = await spine.tenant('acme', '5');
  for (const model of ['test/model', 'gone/chat'])
    await (
      await spine.post('/chat/completions', ask('hello', { model }), {
        authorization: `Bearer ${key}`,
        'x-tollgate-tags': 'team=search',
      })
    ).text();
  await spine.quiet();
  const counted = async () => {
    const answer = await spine.get('/analytics/own', { authorization: `Bearer ${key}` });
    const { totals } = (await answer.json()) as { readonly totals: Readonly<Record<string, number>> };
    return totals['requests']! + totals['failed']!;
  };
  for (const pause of pauses()) {
    if ((await counted()) === 2) break;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
});
afterAll(async () => {
  await place.clear();
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

const run = async (...args: readonly string[]) => {
  const { code, output, stdout } = await place.run([...args, '--url', spine.origin], {
    TOLLGATE_ADMIN_KEY: spine.adminKey,
  });
  expect(code, output).toBe(0);
  return stdout;
};

test('status shows the volume, the causes of failures and the gateways', async () => {
  const shown = await run('status');
  expect(shown).toMatch(/^24h +1 +1 +1 /m);
  expect(shown).toMatch(/^provider_unavailable +1$/m);
  expect(shown).toMatch(/^tollgate:local:acme|^acme/m);
  expect(shown).toMatch(/ ready /);
});

test('refusals have a line for each reason, and say since when; so do alerts', async () => {
  expect(await run('account', 'refusals', 'acme')).toMatch(
    /^No request was refused since the gateway's start at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.$/m,
  );
  const { key } = await spine.tenant('clumsy', '1');
  const headers = { authorization: `Bearer ${key}` };
  for (const body of [{ model: 'test/model' }, { model: 'test/model' }, { model: 'test/model', messages: 'hi' }])
    expect((await spine.post('/chat/completions', body, headers)).status).toBe(400);
  const shown = await run('account', 'refusals', 'clumsy');
  expect(shown).toMatch(/ 1 +400 +POST \/api\/v1\/chat\/completions +clumsy +messages must be an array/);
  expect(shown).toMatch(/ 2 +400 +POST \/api\/v1\/chat\/completions +clumsy +\S/);
  expect(shown).toMatch(/^These are those since the gateway's start at \d{4}-.*; none of before are known\.$/m);
  expect(await run('status')).toMatch(/^(?:No alerts since \d{4}-.*\.|All alerts since \d{4}-.* are known; .*)$/m);
});

test('services and provider show say why one is broken, and a service can be tried', async () => {
  expect(await run('services')).toMatch(/^gone\/chat +Gone +(?:cooling_down|failing) .*refused the connection$/m);
  const offers = JSON.parse(await run('services', '--json')) as readonly { service: string; provider: string }[];
  const shown = await run('provider', 'show', offers.find(({ service }) => service === 'gone/chat')!.provider);
  expect(shown).toMatch(/^Gone \(\w+\), in the configuration\. To be paid: 0/);
  expect(shown).toMatch(/gone\/chat .*refused the connection/);
  await run('account', 'create', 'operator');
  await run('account', 'credit', 'operator', '1');
  expect(await run('services', 'test', 'test/model')).toMatch(/^✓ ".+" \(\d+ ms, 0\.\d+ USD, gen-\w+\)$/m);
});

test('the calls of an account can be those that failed, and its spending that of a tag', async () => {
  const failed = await run('calls', 'acme', '--failed');
  expect(failed.match(/gen-\w+/g)).toHaveLength(1);
  expect(failed).toContain('gone/chat');
  expect((await run('calls', 'acme')).match(/gen-\w+/g)).toHaveLength(2);
  expect(await run('usage', 'acme', '--group-by', 'month,tag:team')).toMatch(/search +1 +1 /);
  expect(await run('usage', '--group-by', 'month,account,tag:team')).toMatch(/tollgate:local:acme +search +1 +1 /);
  expect(await run('usage', '--time-zone', 'Asia/Kathmandu')).toMatch(
    /^tollgate:local:acme +1 +1 [^]*, in Asia\/Kathmandu\. /m,
  );
});

test('a command prints the file of its route, which is that of the API', async () => {
  const month = new Date().toISOString().slice(0, 7);
  // The calls of the tests above are counted by the analytics a moment after they end.
  await expect.poll(() => run('usage', '--group-by', 'account'), { interval: 250 }).toMatch(/:local:operator +1 +0 /);
  const commands: Readonly<Record<string, readonly string[]>> = {
    '/usage?group_by=account,tag:team': ['usage', '--group-by', 'account,tag:team', '--csv'],
    '/accounts/tollgate:local:acme/usage?group_by=model': ['usage', 'acme', '--group-by', 'model', '--csv'],
    [`/accounts/tollgate:local:acme/statements/${month}?calls=each`]: [
      'statement',
      'acme',
      month,
      '--calls',
      'each',
      '--csv',
    ],
    [`/accounts/tollgate:local:acme/statements/${month}/focus`]: ['focus', month, '--account', 'acme'],
    [`/focus/${month}`]: ['focus', month],
  };
  for (const [path, args] of Object.entries(commands)) {
    const file = await fetch(`${spine.origin}/admin/v1${path}${path.includes('?') ? '&format=csv' : ''}`, {
      headers: { authorization: `Bearer ${spine.adminKey}` },
    });
    expect(file.headers.get('content-type')).toContain('text/csv');
    expect(await run(...args)).toBe(await file.text());
  }
  // A route with a new file needs its command, and a line here.
  const { paths } = (await (await fetch(`${spine.origin}/openapi.json`)).json()) as {
    readonly paths: Readonly<Record<string, { readonly get?: { readonly responses: Record<string, object> } }>>;
  };
  const files = Object.entries(paths)
    .filter(
      ([path, { get }]) => path.startsWith('/admin/') && JSON.stringify(get?.responses['200'])?.includes('text/csv'),
    )
    .map(([path]) => path.replace('/admin/v1', '').replace('{id}', 'tollgate:local:acme').replace('{month}', month));
  expect(files.sort()).toEqual(
    Object.keys(commands)
      .map((path) => path.replace(/\?.*/, ''))
      .sort(),
  );
  const both = await place.run(['usage', '--csv', '--json']);
  expect([both.code, both.output]).toEqual([2, expect.stringContaining("'--csv' cannot be used with option '--json'")]);
});

test('the movements and notes of an account are those of its page', async () => {
  await run('account', 'credit', 'acme', '2', '--reference', 'SEPA-117');
  await run('account', 'debit', 'acme', '1', '--reason', 'credited twice');
  const movements = await run('account', 'movements', 'acme');
  expect(movements).toMatch(/credit +2 +SEPA-117/);
  expect(movements).toMatch(/debit +-1 .*credited twice$/m);
  expect((await run('account', 'movements', 'acme', '--limit', '1')).match(/debit|credit /g)).toHaveLength(1);
  expect(await run('account', 'notes', 'acme', '--add', 'asked for a higher rate')).toMatch(/asked for a higher rate/);
  const [note] = JSON.parse(await run('account', 'notes', 'acme', '--json')) as readonly { id: string }[];
  expect(await run('account', 'notes', 'acme', '--delete', note!.id)).toMatch(/^No notes\.$/m);
});
