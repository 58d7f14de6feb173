import { afterEach, describe, expect, it } from 'vitest';
import { startSpine, type Spine } from '../support/spine.ts';

let spine: Spine;
afterEach(() => spine.stop());

const LIMIT = 5;
const few = `[sign_in]\nfailures_per_minute = ${LIMIT}\n`;
const admin = (key: string | null, headers: Record<string, string> = {}, path = 'accounts') =>
  fetch(`${spine.origin}/admin/v1/${path}`, {
    headers: { ...headers, ...(key === null ? {} : { authorization: `Bearer ${key}` }) },
  });
const warnings = () =>
  spine.logs
    .map((line) => JSON.parse(line) as { level: unknown; msg: string; address?: string; failures?: number })
    .filter(({ msg }) => msg.startsWith('wrong admin keys'));

describe('guesses of the admin key', () => {
  it('are refused unseen after as many as an API key may fail, on every route, and logged a few times', async () => {
    const at = 1_800_000_000_000;
    let now = at;
    spine = await startSpine({ toml: few, now: () => now });
    const statuses: number[] = [];
    for (let guess = 0; guess < 300; guess += 1)
      statuses.push((await admin(`svc-admin-guess-${guess}`, {}, guess % 2 ? 'accounts' : 'payments')).status);
    expect(statuses.slice(0, LIMIT)).toEqual(Array.from({ length: LIMIT }, () => 401));
    expect(new Set(statuses.slice(LIMIT))).toEqual(new Set([429]));
    const late = await admin('svc-admin-guess-of-the-same-minute');
    expect([late.status, Number(late.headers.get('retry-after')) > 0]).toEqual([429, true]);
    // Guesses of others do not keep the operator out.
    expect((await admin(spine.adminKey)).status).toBe(200);
    expect(warnings().map(({ address, failures }) => [address, failures])).toEqual([
      ['127.0.0.1', 1],
      ['127.0.0.1', 10],
      ['127.0.0.1', 100],
    ]);
    expect(spine.logs.join()).not.toContain('svc-admin-guess');

    now = at + 61_000;
    expect((await admin('svc-admin-guess-of-the-next-minute')).status).toBe(401);
  });

  it('and wrong API keys are counted apart', async () => {
    spine = await startSpine({ toml: few });
    const withKey = () => spine.get('/keys', { authorization: `Bearer svc-sk-wrong` });
    for (let guess = 0; guess < LIMIT + 1; guess += 1) await admin('a-wrong-one');
    expect([(await admin('a-wrong-one')).status, (await withKey()).status]).toEqual([429, 401]);
  });

  it('of one address leave the others alone, and requests without a key count for nothing', async () => {
    spine = await startSpine({ toml: few, env: { TOLLGATE_TRUSTED_PROXIES: '127.0.0.1' } });
    for (let guess = 0; guess < 20; guess += 1) await admin('a-wrong-one', { 'x-forwarded-for': '192.0.2.1' });
    expect((await admin('a-wrong-one', { 'x-forwarded-for': '192.0.2.1' })).status).toBe(429);
    expect((await admin('a-wrong-one', { 'x-forwarded-for': '198.51.100.7' })).status).toBe(401);
    for (let call = 0; call < 20; call += 1) expect((await admin(null)).status).toBe(401);
    expect((await admin(spine.adminKey)).status).toBe(200);
  });
});

describe('server.admin_networks', () => {
  it('takes the admin key from there alone', async () => {
    spine = await startSpine({ env: { TOLLGATE_TRUSTED_PROXIES: '127.0.0.1', TOLLGATE_ADMIN_NETWORKS: '10.0.0.0/8' } });
    const outside = await admin(spine.adminKey, { 'x-forwarded-for': '192.0.2.1' });
    expect([outside.status, ((await outside.json()) as { error: { message: string } }).error.message]).toEqual([
      403,
      'The admin API is not open to your address: see server.admin_networks',
    ]);
    expect((await admin(spine.adminKey, { 'x-forwarded-for': '10.1.2.3' })).status).toBe(200);
  });
});
