import { afterAll, beforeAll, expect, it } from 'vitest';
import type { CapName } from '../../../src/server/config/refused-cap.ts';
import { createLog } from '../../../src/providers/proxy/log.ts';
import { providerChecks, runChecks } from '../../../src/providers/proxy/probe/checks.ts';
import type { CheckResult } from '../../../src/providers/proxy/probe/ask.ts';
import { modelAt } from '../../support/provider-proxy.ts';
import { startStrictOpenAi, type StrictModel, type StrictOpenAi } from '../../support/strict-openai.ts';

// What --validate says of the cap of a model: by which name it goes, and where its bound is.

const BOTH = ['max_tokens', 'max_completion_tokens'] as const;
const MODELS: Readonly<Record<string, StrictModel>> = {
  both: { takes: BOTH, outputMax: 4096 },
  reasoner: { takes: ['max_completion_tokens'], outputMax: 100_000, reasons: true, roomAtLeast: 16 },
  old: { takes: ['max_tokens'], outputMax: 4096 },
  uncapped: { takes: [], outputMax: 4096 },
  boundless: { takes: BOTH, outputMax: Infinity },
  deaf: { takes: BOTH, outputMax: Infinity, ignores: ['max_completion_tokens'] },
  'other ear': { takes: BOTH, outputMax: Infinity, ignores: ['max_tokens'] },
};

let upstream: StrictOpenAi;
beforeAll(async () => {
  upstream = await startStrictOpenAi(MODELS);
});
afterAll(() => upstream.stop());

const log = createLog({ level: 'silent', style: 'json', secrets: [], write() {}, now: Date.now });

async function probe(name: string, cap: CapName | undefined, maxOutputTokens: number | null): Promise<CheckResult[]> {
  const service = modelAt('m', upstream.url, null, {
    upstreamModel: name,
    maxOutputTokens,
    ...(cap === undefined ? {} : { cap }),
  });
  const config = {
    file: null,
    router: { url: upstream.url, domain: 'x', wallet: null, apiKey: 'k' },
    services: [service],
    providers: [],
    packages: { wall: 'if_available' as const },
  };
  const results: CheckResult[] = [];
  const checks = providerChecks(config, null, { env: {}, version: '1', log }, Date.now).slice(3);
  await runChecks(checks, Date.now, (_check, result) => results.push(result));
  return results;
}

const UNKNOWN = expect.stringMatching(
  /^the maximum number of tokens of an answer is not known\. Set params\.max_output_tokens/,
) as string;
const write = (name: CapName, why: RegExp) =>
  expect.stringMatching(new RegExp(`^write params\\.cap = "${name}": ${why.source}`)) as string;
const bound = (tokens: number) => `write params.max_output_tokens = ${tokens}: it gives no more`;

it.each([
  ['both', undefined, null, [bound(4096)]],
  ['both', undefined, 4096, []],
  ['both', undefined, 8000, [`${bound(4096)}, and the file says 8000`]],
  ['reasoner', undefined, null, [write('max_completion_tokens', /it refuses max_tokens$/), bound(100_000)]],
  ['reasoner', 'max_completion_tokens', 100_000, []],
  ['old', undefined, null, [write('max_tokens', /it refuses max_completion_tokens$/), bound(4096)]],
  ['uncapped', undefined, null, [write('none', /it supports no cap/), UNKNOWN]],
  ['uncapped', 'none', 4096, []],
  ['boundless', undefined, null, [UNKNOWN]],
  ['deaf', undefined, null, [write('max_tokens', /it ignores max_completion_tokens$/), UNKNOWN]],
  ['other ear', undefined, null, [write('max_completion_tokens', /it ignores max_tokens$/), UNKNOWN]],
] as const)('%s, whose file says cap %s and bound %s: what to write', async (name, cap, most, advice) => {
  const results = await probe(name, cap, most);
  expect(results.map(({ ok, detail }) => [ok, detail])).toEqual([
    [true, expect.stringMatching(/^answers, usage/)],
    [true, expect.stringMatching(/^streams, usage/)],
  ]);
  expect(results.flatMap((result) => result.advice)).toEqual(advice);
});

it('a name in the file that the service refuses is a mistake', async () => {
  const wrong = 'refuses the name max_tokens: write params.cap = "max_completion_tokens"';
  expect(await probe('reasoner', 'max_tokens', null)).toMatchObject([
    { ok: false, detail: wrong },
    { ok: false, detail: wrong },
  ]);
});
