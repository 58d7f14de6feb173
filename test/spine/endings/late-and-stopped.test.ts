import { expect, inject, test } from 'vitest';
import { freshDatabase } from '../../support/fresh-database.ts';
import { modelBlock, startSpine, UNHURRIED } from '../../support/spine.ts';
import { startTunnelSpine } from '../../support/tunnel-spine.ts';
import { ask, records } from './ends-of-calls.ts';
import type { Kind } from './kinds.ts';
import { ALL_KINDS } from './streamed-kinds.ts';
import { REPORTED, startVendor } from './vendor.ts';

/* The rows of the table of endings that need another clock, or a gateway that stops. */

const KINDS = ALL_KINDS.filter(({ words }) => words);
const block = (side: 'own' | 'far', { name, params = '' }: Kind, url: string) =>
  modelBlock({ name: `${side}/${name}`, provider: side, url, params });
/** Whether its provider is asked for a stream: one that does not begin is silent. */
const isStreamed = ({ type, inBackground }: Kind): boolean => type !== 'application/json' || inBackground === true;
const idOf = (...parts: readonly (string | number | boolean)[]) => parts.join('').replaceAll('_', '');

test.each([
  { what: 'a call that takes too long', limits: 'call_timeout_ms = 1500', isCut: true },
  { what: 'an answer that does not begin', limits: 'head_timeout_ms = 1500\nidle_timeout_ms = 1500', isCut: false },
])('$what', async ({ limits, isCut }) => {
  const vendor = await startVendor();
  const { spine, dialIn } = await startTunnelSpine(
    `[upstream]\ncooldown_ms = 0\nattempts_max = 1\n${limits}\n[billing]\ndrain_ms = 300\n${KINDS.map((kind) => block('own', kind, vendor.url)).join('')}`,
  );
  await dialIn({ services: KINDS.map((kind) => block('far', kind, vendor.url)).join('') });
  const cases = KINDS.flatMap((kind) =>
    (['own', 'far'] as const).flatMap((side) =>
      [
        { script: 'silent', reported: false, applies: true },
        { script: 'silent', reported: true, applies: isCut && kind.counted !== undefined },
        { script: 'silent_midway', reported: false, applies: isCut && kind.begin !== undefined },
      ]
        .filter(({ applies }) => applies)
        .map(({ script, reported }) => ({ kind, side, script, reported, id: idOf(side, kind.name, script, reported) })),
    ),
  );
  await Promise.all(cases.map(({ side, ...one }) => ask({ spine, vendor, ...one, model: `${side}/${one.kind.name}` })));
  expect(await spine.faults()).toEqual([]);
  const found = await records(spine);
  const costs = cases.map(({ id, side, script, reported, kind }) => {
    const { cost_micro_usdc: cost = 0, estimated = false } = found.get(id) ?? {};
    const isRight =
      side === 'own' && reported
        ? cost === kind.worth(REPORTED)
        : script === 'silent_midway' || (side === 'own' && !isStreamed(kind))
          ? cost > 0 && estimated
          : cost === 0;
    return isRight ? null : `${id} cost ${cost}`;
  });
  expect(costs.filter((fault) => fault !== null)).toEqual([]);
});

test('a call of a gateway that stops is free, unless a part of it is kept', async () => {
  const vendor = await startVendor();
  const database = await freshDatabase(inject('postgresUrl'));
  const [head, ...rest] = UNHURRIED.split('\n');
  const toml =
    [head, 'drain_on_shutdown_ms = 100', ...rest].join('\n') +
    `[billing]\ndrain_ms = 60000\n${KINDS.map((kind) => block('own', kind, vendor.url)).join('')}`;
  const stopping = await startSpine({ databaseUrl: database.url, toml });
  const cases = KINDS.flatMap((kind) =>
    ['silent', ...(kind.begin === undefined ? [] : ['silent_midway'])].map((script) => ({
      kind,
      script,
      id: idOf(kind.name, script),
    })),
  );
  const kept = Promise.withResolvers<string>();
  const asked = cases.map((one) =>
    ask({
      spine: stopping,
      vendor,
      ...one,
      model: `own/${one.kind.name}`,
      reported: false,
      onBegun: (responseId) => one.script === 'silent_midway' && kept.resolve(responseId),
    }),
  );
  await Promise.all(cases.map(({ id }) => vendor.arrived(id)));
  // What the provider of the one in the background has said is read.
  const told = (await stopping.get(`/responses/${await kept.promise}?stream=true`)).body!;
  for await (const part of told) if (Buffer.from(part).includes('response.output_text.delta')) break;
  await stopping.stop();
  await Promise.all(asked);
  const spine = await startSpine({ databaseUrl: database.url, toml, credit: '0' });
  try {
    expect(await spine.faults()).toEqual([]);
    const found = await records({
      ...spine,
      get: (path) => spine.get(path, { authorization: `Bearer ${stopping.key}` }),
    });
    const paid = cases.flatMap(({ id }) => ((found.get(id)?.cost_micro_usdc ?? 0) > 0 ? [id] : []));
    expect(paid).toEqual(['backgroundsilentmidway']);
  } finally {
    await spine.stop();
    await database.drop();
  }
});

test('an answer in one piece that does not begin is made by another provider, which alone is paid', async () => {
  const chat = ALL_KINDS.find(({ name }) => name === 'chat')!;
  const [slow, fast] = [await startVendor(), await startVendor()];
  const { spine } = await startTunnelSpine(
    `[upstream]\ncooldown_ms = 0\nhead_timeout_ms = 1000\n` +
      modelBlock({ name: 'both', provider: 'Slow', url: slow.url, prompt: 1_000 }) +
      modelBlock({ name: 'both', provider: 'Fast', url: fast.url }),
  );
  const asked = (script: string, order: readonly string[], more: object) =>
    spine.post('/chat/completions', {
      ...chat.ask('both', `!k:chat !e:${script} !u:1 !n:${order[0]}`).body,
      provider: { order, ...more },
    });
  slow.answersWith('hung');
  const served = await asked('complete', ['Slow', 'Fast'], {});
  expect([served.status, served.headers.get('x-provider')]).toEqual([200, 'Fast']);
  expect(Number(served.headers.get('x-cost-usd'))).toBe(chat.worth(REPORTED)! / 1e6);
  // Nobody else may answer, so its input is paid, and clients do not ask again.
  const late = await asked('complete', ['Slow'], { allow_fallbacks: false });
  expect(late.status).toBe(422);
  expect(Number(late.headers.get('x-cost-usd'))).toBeGreaterThan(0);
  expect(await spine.faults()).toEqual([]);
});
