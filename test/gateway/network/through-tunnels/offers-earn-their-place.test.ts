import { expect, test } from 'vitest';
import { askTunnel, startTunnelSpine, type Supplied, until } from '../../../support/tunnel-spine.ts';

// Strangers who ask little and answer nothing hold up nobody for long.

const world = async () => {
  const started = await startTunnelSpine('[tunnel]\nproviders = "anyone"\n');
  const silent: Supplied[] = [];
  for (const name of ['One', 'Two', 'Three']) {
    const supplied = await started.supply(name, { prompt: 1, completion: 1 });
    supplied.upstream.hold(new Promise(() => {}));
    silent.push(supplied);
  }
  const honest = await started.supply('Honest', { prompt: 3, completion: 3 });
  const asked = () => silent.reduce((sum, { upstream }) => sum + upstream.log.length, 0);
  const call = async (more: object = {}) => {
    const response = await started.spine.post('/chat/completions', askTunnel('!tokens:5', more));
    const text = await response.text();
    return { status: response.status, text, id: response.headers.get('x-generation-id') };
  };
  return { ...started, honest, asked, call };
};

test('an offer that has served calls comes first, however little the others ask', async () => {
  const { honest, asked, call, spine } = await world();
  for (let n = 0; n < 3; n++) expect((await call({ provider: { only: ['Honest'] } })).status).toBe(200);
  const calls = await Promise.all(Array.from({ length: 10 }, () => call({ provider: { ignore: ['One', 'Two'] } })));
  expect(calls.map(({ status }) => status)).toEqual(Array(10).fill(200));
  expect(honest.upstream.log.length).toBe(13);
  expect(await spine.generation(calls[0]!.id)).toMatchObject({ provider: honest.proxy.id });
  expect(asked()).toBeLessThanOrEqual(4);
});

for (const stream of [false, true])
  test(`what two of them do not answer soon goes to the next one (${stream ? 'stream' : 'whole'})`, async () => {
    const { honest, asked, call, spine } = await world();
    for (let n = 0; n < 3; n++) expect((await call({ provider: { only: ['Honest'] } })).status).toBe(200);
    const { status, text, id } = await call({ stream, provider: { order: ['Two', 'One', 'Three'] } });
    expect(status, text).toBe(200);
    expect(asked()).toBe(2);
    const record = await spine.generation(id);
    expect(record).toMatchObject({ provider: honest.proxy.id, state: 'settled' });
    expect(JSON.stringify(record)).toContain('in time');
  });

test('where all are new, the last one is not waited for longer', async () => {
  const { asked, call } = await world();
  const { status, text } = await call({ stream: true, provider: { ignore: ['Honest'] } });
  expect([status, text]).toEqual([500, expect.stringContaining('provider')]);
  expect(asked()).toBe(2);
});

test('a client that gives up counts against the offer that was silent', async () => {
  const { asked, spine } = await world();
  const body = JSON.stringify(askTunnel('!tokens:5', { provider: { only: ['One'] }, stream: true }));
  const gone = new AbortController();
  const left = fetch(`${spine.url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
    body,
    signal: gone.signal,
  });
  left.catch(() => {});
  await until(() => asked() === 1);
  setTimeout(() => gone.abort(), 11_000);
  await expect(left).rejects.toThrow();
  const failures = async () =>
    (
      (await (await spine.get('/models/tunnel/model/endpoints')).json()) as {
        data: { endpoints: { provider_name: string; uptime_last_1h: number | null }[] };
      }
    ).data.endpoints.find(({ provider_name: name }) => name === 'One')?.uptime_last_1h;
  await until(async () => (await failures()) === 0);
});
