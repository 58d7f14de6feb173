import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ENDINGS } from '../../../src/gateway/call/endings.ts';
import { imageBlock, png } from '../../media/support/image-provider.ts';
import { wavFile } from '../../openai/audio/support/audio-files.ts';
import { modelBlock } from '../../support/spine.ts';
import { startTunnelSpine } from '../../support/tunnel-spine.ts';
import { ask, records, ROWS } from './ends-of-calls.ts';
import type { Kind } from './kinds.ts';
import { ALL_KINDS as KINDS } from './streamed-kinds.ts';
import { REPLY_BYTES_MAX, SAID, startVendor } from './vendor.ts';

/*
 * The vendor bills what it took, at the prices of the gateway. Whatever ends a call, its consumer pays at least that
 * bill, less one micro-USD. Excepted, as docs/reference/endings.md says, are the rows that the provider or the gateway
 * causes, complete answers of chat without usage, and tools that the provider runs in several turns of the model: their
 * input can be larger than the context that is locked. No call here asks for such a tool.
 */

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const [ROUNDS, CALLS] = DEEP ? [10, 120] : [1, 40];

/** The contents of a prompt beside its text, in chat, and the tokens that the vendor bills for them. */
const PARTS = {
  none: { tokens: 0, content: null },
  picture: {
    tokens: 100,
    content: { type: 'image_url', image_url: { url: `data:image/png;base64,${png(8, 8).toString('base64')}` } },
  },
  sound: {
    tokens: 20,
    content: { type: 'input_audio', input_audio: { data: wavFile(2).toString('base64'), format: 'wav' } },
  },
  file: {
    tokens: 3_000,
    content: { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0xLjQK' } },
  },
} as const;
type Part = keyof typeof PARTS;
const takesParts = ({ name }: Kind): boolean => name === 'chat' || name === 'chatstream';

/** Hundredths of a USD for a million units. */
const rate = fc.integer({ min: 0, max: 5_000 });
const arbitrary = fc
  .record({
    // Chat has more ways to be asked.
    kind: fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...KINDS) },
      { weight: 1, arbitrary: fc.constantFrom(...KINDS.filter(takesParts)) },
    ),
    reported: fc.boolean(),
    letters: fc.integer({ min: 1, max: 400 }),
    completion: fc.integer({ min: 0, max: 12 }),
    prompt: rate,
    answer: rate,
    end: fc.nat(),
    part: fc.constantFrom(...(Object.keys(PARTS) as Part[])),
  })
  .map(({ end, ...one }) => {
    const rows = ROWS.filter(
      ([, row, applies]) => applies(one.kind) && ENDINGS[row].cause !== 'provider' && ENDINGS[row].cause !== 'gateway',
    ).filter(([script]) => one.reported || one.kind.measures || !['complete', 'empty', 'thought'].includes(script));
    const [script] = rows[end % rows.length]!;
    return { ...one, script };
  });

type Case = ReturnType<typeof arbitrary.generate>['value'];

const partOf = ({ kind, part }: Case) => PARTS[takesParts(kind) ? part : 'none'];

/** The kind, with the part in its prompt. */
function kindOf(one: Case): Kind {
  const { content } = partOf(one);
  if (content === null) return one.kind;
  return {
    ...one.kind,
    ask(model, text) {
      const { path, body } = one.kind.ask(model, text);
      return { path, body: { ...body, messages: [{ role: 'user', content: [{ type: 'text', text }, content] }] } };
    },
  };
}

/** The vendor counts one token for each four letters, and does not see the words around the text. */
const promptOf = (one: Case) => Math.floor(one.letters / 4) + partOf(one).tokens;

/** Micro-USD that the vendor bills. */
function billOf(one: Case): number {
  const { kind, script, reported, completion, prompt, answer } = one;
  const rates = { prompt: prompt / 100, answer: answer / 100 };
  if (kind.images) return 40_000 + promptOf(one) * rates.prompt;
  if (kind.name === 'speech') return one.letters * rates.prompt;
  if (kind.name === 'transcription') return 2 * Math.floor((prompt * 10_000) / 60 / 1_000_000);
  const tokens = promptOf(one);
  const isSpoken = kind.name === 'speechevents' && reported;
  if (!kind.words && !isSpoken) return tokens * rates.prompt;
  const isAnswered = reported || script.endsWith('midway');
  const said = reported ? completion : Math.floor(SAID.length / 4);
  return tokens * rates.prompt + (isAnswered ? said * rates.answer : 0);
}

const blockOf = ({ kind, prompt, answer }: Case, name: string, url: string) => {
  const { lines = '', params = '', images, noTokens, pricing = '' } = kind;
  if (images) return imageBlock({ url, name, provider: 'own', lines, pricing: `prompt = ${prompt / 100}` });
  const rates = noTokens ? { prompt: 0, completion: 0 } : { prompt: prompt / 100, completion: answer / 100 };
  const priced =
    kind.name === 'speech'
      ? `character = ${prompt / 100}`
      : kind.name === 'transcription'
        ? `per_minute = ${prompt / 100}`
        : pricing;
  const parts = takesParts(kind)
    ? {
        lines: `${lines}\ninput_modalities = ["text", "image", "audio", "file"]`,
        params: `${params}\nimage_tokens_max = ${PARTS.picture.tokens}`,
        contextLength: 8_000,
      }
    : { lines, params };
  return modelBlock({ name, provider: 'own', url, pricing: priced, ...parts, ...rates });
};

test.each(Array.from({ length: ROUNDS }, (_, round) => round))(
  'no call costs less than the bill of its vendor (%i)',
  async () => {
    const seed = Number(process.env['ENDINGS_SEED'] ?? Date.now() % 1_000_000_000);
    const cases: readonly Case[] = fc.sample(arbitrary, { numRuns: CALLS, seed });
    const vendor = await startVendor();
    const { spine } = await startTunnelSpine(
      `[upstream]\ncooldown_ms = 0\nattempts_max = 1\nreply_bytes_max = ${REPLY_BYTES_MAX}\nimages_reply_bytes_max = ${REPLY_BYTES_MAX}\n` +
        `[billing]\ndrain_ms = 700\n${cases.map((one, at) => blockOf(one, `own/m${at}`, vendor.url)).join('')}`,
    );
    const idOf = (at: number) => `call${at}`;
    for (let at = 0; at < cases.length; at += 12)
      await Promise.all(
        cases.slice(at, at + 12).map((one, place) => {
          const { script, reported, completion, letters } = one;
          const more = ` !p:${promptOf(one)} !c:${completion} ${'x'.repeat(letters)}`;
          return ask({
            spine,
            vendor,
            kind: kindOf(one),
            model: `own/m${at + place}`,
            script,
            reported,
            id: idOf(at + place),
            more,
          });
        }),
      );
    expect(await spine.faults()).toEqual([]);
    const found = await records(spine);
    const short = cases
      .map((one, at) => ({
        ...one,
        kind: one.kind.name,
        bill: billOf(one),
        paid: found.get(idOf(at))?.cost_micro_usdc ?? 0,
      }))
      .filter(({ bill, paid }) => paid < bill - 1);
    expect(short, `seed ${seed}`).toEqual([]);
  },
  300_000,
);
