import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { keyChangesSchema } from '../../../src/console/pages/account/keys.ts';
import { makePlace, type Place } from './tollgate.ts';

// `tollgate key change`: what the admin API can change of a key, with the same errors.

let place: Place;
beforeAll(async () => {
  place = await makePlace();
  await place.gateway(['serve'], { TOLLGATE_ADMIN_KEY: 'an-admin-key-of-the-test-0123456789' });
  await place.run(['account', 'create', 'acme']);
});
afterAll(() => place.clear());

const END = '2090-01-31T12:00:00.000Z';

/** Each setting: the options that make it, its value then, the options that take it away, and its value without. */
const SETTINGS: readonly (readonly [field: string, set: string[], value: unknown, unset: string[], none: unknown])[] = [
  ['name', ['--name', 'laptop'], 'laptop', ['--name', 'none'], 'none'],
  ['limit', ['--limit', '2.5'], 2.5, ['--limit', 'none'], null],
  ['limit_reset', ['--limit-reset', 'weekly'], 'weekly', ['--limit-reset', 'never'], null],
  ['limit_soft', ['--limit-soft'], true, ['--no-limit-soft'], false],
  ['limit_notify', ['--limit-notify', '60', '90'], [60, 90], ['--limit-notify', 'none'], null],
  ['requests_per_minute', ['--requests-per-minute', '30'], 30, ['--requests-per-minute', 'none'], null],
  ['tokens_per_minute', ['--tokens-per-minute', '5000'], 5_000, ['--tokens-per-minute', 'none'], null],
  ['expires_at', ['--expires', '2090-01-31T12:00:00Z'], END, ['--expires', 'never'], null],
  [
    'allowed_services',
    ['--allow', 'files/*', '--allow=-files/delete'],
    ['files/*', '-files/delete'],
    ['--allow-all'],
    null,
  ],
  ['ask_above', ['--ask-above', '0.5'], 0.5, ['--ask-above', 'none'], null],
  ['continue', ['--continue', 'true'], true, ['--continue', 'none'], null],
  ['tags', ['--tag', 'team=search'], { team: 'search' }, ['--tag', 'none'], null],
];
const fieldOf = (index: 0 | 2 | 4) => (setting: (typeof SETTINGS)[number]) => [setting[0], setting[index]] as const;
const SET = Object.fromEntries(SETTINGS.map(fieldOf(2)));
const UNSET = Object.fromEntries(SETTINGS.map(fieldOf(4)));

const keys = async () =>
  JSON.parse((await place.run(['key', 'list', 'acme', '--json'])).stdout) as { readonly hash: string }[];
const newest = async (...args: string[]): Promise<string> => {
  const made = await place.run(['key', 'create', 'acme', ...args]);
  expect(made.code, made.output).toBe(0);
  return (await keys()).at(-1)!.hash;
};

it('every field that the admin API changes has an option, on a new key and on one that is there', async () => {
  const names = Object.keys(keyChangesSchema.properties).filter((name) => name !== 'label' && name !== 'disabled');
  expect(SETTINGS.map(([field]) => field).toSorted()).toEqual(names.toSorted());
  const hash = await newest('--name', 'before');
  for (const [field, set, value, unset, none] of SETTINGS) {
    const others = { ...(await keys()).at(-1) };
    const changed = await place.run(['key', 'change', 'acme', hash.slice(0, 10), ...set, '--json']);
    expect(changed.code, changed.output).toBe(0);
    // What no option names stays, except that a soft limit gets the usual notices.
    const notices = field === 'limit_soft' ? { limit_notify: [50, 80, 100] } : {};
    const setBy = field === 'limit' ? { limit_set_by: 'operator', limit_remaining: 2.5 } : {};
    expect(JSON.parse(changed.stdout), field).toEqual({
      ...others,
      [field]: value,
      ...(field === 'name' ? { label: value } : {}),
      ...notices,
      ...setBy,
    });
    if (field === 'limit' || field === 'limit_reset') continue;
    const undone = await place.run(['key', 'change', 'acme', hash, ...unset, '--json']);
    expect(JSON.parse(undone.stdout), field).toMatchObject({ [field]: none });
  }
  const all = await place.run(['key', 'change', 'acme', hash, ...SETTINGS.flatMap(([, set]) => set)]);
  expect(all.output).toMatch(/✓ laptop \([0-9a-f]{12}\) is changed\n +limit +2\.5 USD weekly\n/);
  expect(all.output).toContain('asks above  0.5 USD for one call');
  expect((await keys()).at(-1)).toMatchObject(SET);
  await place.run(['key', 'change', 'acme', hash, ...SETTINGS.flatMap(([, , , unset]) => unset)]);
  expect((await keys()).at(-1)).toMatchObject(UNSET);
  await newest(...SETTINGS.flatMap(([, set]) => set));
  expect((await keys()).at(-1)).toMatchObject(SET);
});

it('the limits of a program that signed in are changed in the same way', async () => {
  const hash = await newest('--name', 'assistant', '--limit', '1');
  const database = new DatabaseSync(join(place.data, 'tollgate.db'), { timeout: 10_000 });
  const { changes } = database
    .prepare("UPDATE api_keys SET client = 'https://assistant.example' WHERE hash = ?")
    .run(hash);
  database.close();
  expect(changes).toBe(1);
  await place.run(['key', 'change', 'acme', hash, '--limit', '7', '--limit-reset', 'daily', '--allow', 'files']);
  const wanted = { client: 'https://assistant.example', limit: 7, limit_reset: 'daily', allowed_services: ['files'] };
  expect((await keys()).at(-1)).toMatchObject(wanted);
  expect((await place.run(['key', 'list', 'acme'])).output).toContain('assistant (https://assistant.example)');
});

it('a wrong change changes nothing, and the error is that of the admin API or names the option', async () => {
  const hash = await newest('--name', 'same', '--limit', '3');
  const before = (await keys()).at(-1);
  const cases: readonly (readonly [args: string[], text: string])[] = [
    [[], 'Nothing to change. Name what shall be different'],
    [['--limit', '5 dollars'], '--limit is an amount in USD with at most 6 decimal places, such as 5 or 0.25, or none'],
    [['--ask-above', '-1'], '--ask-above is an amount in USD'],
    [['--requests-per-minute', '1.5'], '--requests-per-minute is a whole number, such as 60, or none, not "1.5"'],
    [['--requests-per-minute', '0'], 'requests_per_minute'],
    [['--requests-per-minute', '900000'], 'A key of this account has at most'],
    [['--limit-notify', 'half'], '--limit-notify has percentages of the limit'],
    [['--expires', 'tomorrow'], 'expires_at must be a date and time with time zone, such as 2030-01-31T12:00:00Z'],
    [['--expires', '2001-01-31T12:00:00Z'], 'expires_at is in the past'],
    [['--allow', 'files/**'], 'allowed_services[0]'],
    [['--name', ''], 'name'],
    [['--allow', 'files', '--allow-all'], 'cannot be used with'],
    [['--limit-reset', 'yearly'], 'Allowed choices are daily, weekly, monthly, never'],
  ];
  for (const [args, text] of cases) {
    const refused = await place.run(['key', 'change', 'acme', hash, ...args]);
    expect.soft(refused, args.join(' ')).toMatchObject({ output: expect.stringContaining(text) });
    expect.soft(refused.code, args.join(' ')).not.toBe(0);
    expect.soft(refused.output).not.toContain('    at ');
  }
  expect((await place.run(['key', 'change', 'acme', '', '--limit', '1'])).output).toContain('<key> is empty');
  expect((await place.run(['key', 'change', 'acme', 'ffff', '--limit', '1'])).output).toContain(
    'has no key with the name',
  );
  expect((await keys()).at(-1)).toEqual(before);
});

it('a key is rotated: another text, which is shown once, and all else stays', async () => {
  const hash = await newest('--name', 'leaked', '--limit', '3', '--tag', 'team=search');
  const before = (await keys()).at(-1);
  for (const grace of ['8d', '-1', 'soon', '1w']) {
    const refused = await place.run(['key', 'rotate', 'acme', hash, `--grace=${grace}`]);
    expect([refused.code, refused.output]).toEqual([1, expect.stringContaining('--grace is a time such as')]);
  }
  expect((await place.run(['key', 'rotate', 'acme', ''])).output).toContain('<key> is empty');
  for (const args of [[], ['--grace', '7d']]) {
    const { code, stdout } = await place.run(['key', 'rotate', 'acme', hash.slice(0, 10), ...args]);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^svc-sk-v2-\w+\n\nKeep it now/)]);
    expect((await keys()).at(-1)).toEqual(before);
  }
});
