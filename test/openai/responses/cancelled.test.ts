import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { unlessStalled } from '../../support/unless-stalled.ts';
import { until } from '../../support/cluster.ts';
import { startRawMcp, type RawMcp } from '../../support/raw-mcp.ts';
import {
  imageBlock,
  type ImageProvider,
  paintAsAsked,
  startImageProvider,
} from '../../media/support/image-provider.ts';
import { MODEL, modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import {
  call,
  chunk,
  startTranscripts,
  type Transcript,
  usage,
  words,
  type TranscriptUpstream,
} from '../translated/support/transcript-upstream.ts';

// Responses in the background that are cancelled or deleted, and what they cost.

const COUNT_MAX = 3;
/** How long a provider is read on after a response was cancelled. */
const DRAIN_MS = 300;
const CALLER = 'acme/caller';
let spine: Spine;
let client: OpenAI;
let tools: RawMcp;
/** The tool and the image model answer after it. */
let held: Promise<unknown> = Promise.resolve();
/** Holds them back until the returned function is called. */
function heldGate(): () => void {
  let open = () => {};
  held = new Promise<void>((resolve) => (open = resolve));
  return open;
}
let caller: TranscriptUpstream;
beforeAll(async () => {
  caller = await startTranscripts();
  tools = await startRawMcp(
    () => held.then(() => '{"resultType":"complete","content":[{"type":"text","text":"noon"}]}'),
    ['{"name":"hour","inputSchema":{"type":"object"}}'],
  );
  const kit = `[[tools]]\nname = "kit"\ndisplay_name = "Kit"\nprovider_name = "Kit"\nendpoint = "${tools.url}"\n[tools.pricing]\nper_call = 0.001\n`;
  const model = modelBlock({ name: CALLER, provider: 'Acme', url: caller.url });
  spine = await startSpine({
    toml: `${UNHURRIED}[billing]\ndrain_ms = ${DRAIN_MS}\n[responses]\nbackground_count_max = ${COUNT_MAX}\n${kit}${model}`,
  });
  client = clientOf(spine.key);
});
beforeEach(() => {
  spine.provider.log.length = 0;
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await Promise.all([tools.close(), caller.stop()]);
  }
});

type Shown = OpenAI.Responses.Response & {
  readonly usage?: { readonly cost?: number };
  readonly tollgate?: { readonly note?: { readonly message: string } };
};
const clientOf = (apiKey: string) => new OpenAI({ baseURL: spine.url, apiKey, maxRetries: 0 });
const begin = (input: string, more: object = {}, by = client) =>
  by.responses.create({ model: MODEL, input, max_output_tokens: 1_000, ...more, background: true }) as Promise<Shown>;
const retrieve = (id: string, by = client) => by.responses.retrieve(id) as Promise<Shown>;
const isUnderWay = ({ status }: Shown) => status === 'queued' || status === 'in_progress';
/** A response at its end, as a client that polls sees it. */
async function ended(id: string, by = client): Promise<Shown> {
  let shown = await retrieve(id, by);
  await until(async () => !isUnderWay((shown = await retrieve(id, by))), 'the response has ended');
  return shown;
}
/** A cancelled response whose call is settled. */
async function settled(id: string, by = client): Promise<Shown> {
  let shown = await retrieve(id, by);
  await until(async () => (shown = await retrieve(id, by)).usage !== null, 'its cost is known');
  return shown;
}
const refusal = async (request: Promise<unknown>) => {
  const error: unknown = await request.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof OpenAI.APIError)) throw new Error('it was not refused', { cause: error });
  return { status: error.status as number, message: (error.error as { message: string }).message, param: error.param };
};
const callOf = (id: string) => id.replace('resp_', 'gen-');

describe('a cancelled response', () => {
  test('is so at once with what came, and has its cost when its call is settled', async () => {
    const cancelled = await unlessStalled(20, async () => {
      spine.provider.log.length = 0;
      const begun = await begin('!tokens:1000 !token-ms:20');
      await until(() => (spine.provider.log.at(-1)?.completionTokens ?? 0) > 5, 'its model says something');
      const shown = (await client.responses.cancel(begun.id)) as Shown;
      const none = { error: null, incomplete_details: null, usage: null };
      expect(shown).toMatchObject({ id: begun.id, status: 'cancelled', ...none });
      expect(shown.output[0]).toMatchObject({ type: 'message', status: 'incomplete' });
      expect(shown.tollgate!.note!.message).toContain('not settled yet');
      return shown;
    });
    const { id } = cancelled;
    const shown = await settled(id);
    expect(shown).toMatchObject({ id, status: 'cancelled', error: null, incomplete_details: null });
    expect(shown.usage!.cost).toBeGreaterThan(0);
    expect(shown.tollgate!.note!.message).toContain('it was cancelled');
    const textOf = ({ output }: Shown) => (output as { content: { text: string }[] }[])[0]!.content[0]!.text;
    expect(textOf(shown).startsWith(textOf(cancelled))).toBe(true);
    await until(() => spine.provider.log.at(-1)!.end === 'client_closed', 'its provider is left');
    expect(await spine.generation(callOf(id))).toMatchObject({ state: 'settled', outcome: 'cut' });
    expect(shown).toMatchObject(await client.responses.cancel(id));
  });

  test('frees its place when its call is settled, also if it was deleted', async () => {
    const { account, key } = await spine.tenant('in-places', '10');
    const by = clientOf(key);
    const left = { name: 'test/left', text: 'SELECT id FROM kept_responses WHERE account = $1 AND run IS NOT NULL' };
    const endsKeepPlaces = async (end: 'cancel' | 'delete') => {
      const ids = await Promise.all(
        Array.from({ length: COUNT_MAX }, async () => (await begin('!tokens:1000 !token-ms:20', {}, by)).id),
      );
      try {
        for (const id of ids) await by.responses[end](id);
        expect(await refusal(begin('!tokens:3', {}, by))).toMatchObject({
          status: 429,
          message: expect.stringContaining('until its call is settled'),
        });
      } finally {
        await until(async () => {
          const one = await begin('!tokens:3', {}, by).catch(() => null);
          return one !== null && (await ended(one.id, by)).status === 'completed';
        }, 'a place is free');
        await until(async () => (await spine.app.database.query(left, [account])).length === 0, 'none is under way');
      }
    };
    // On a machine that stands still, the calls are settled before the next request is made.
    for (const end of ['cancel', 'delete'] as const) await unlessStalled(20, () => endsKeepPlaces(end));
  });

  test('with tools shows the cost of what was called', async () => {
    const asks = [call(0, { id: 'c0', name: 'kit__hour', args: '{}' }), chunk({}, 'tool_calls'), usage()];
    caller.answer = ({ messages }) => ({ chunks: (messages as unknown[]).length > 1 ? words('It is noon') : asks });
    const gate = heldGate();
    const before = tools.asked.length;
    const { id } = await begin('What time is it?', { model: CALLER, tools: [{ type: 'mcp', service: 'kit' }] });
    await until(() => tools.asked.length > before, 'the tool is called');
    expect((await client.responses.cancel(id)) as Shown).toMatchObject({ status: 'cancelled', usage: null });
    gate();
    const shown = await settled(id);
    expect(shown.status).toBe('cancelled');
    expect(shown.usage!.cost).toBeGreaterThan(0.001);
    const locked = async () => (await spine.balance()).locked;
    await until(async () => (await locked()) === 0n, 'the lock of the run is given back');
  });

  test('of a tool that takes longer than the bound is free, and no error of the gateway', async () => {
    const gate = heldGate();
    const before = tools.asked.length;
    const { id } = await begin('{}', { model: 'mcp/kit/hour', max_output_tokens: undefined });
    await until(() => tools.asked.length > before, 'the tool is called');
    await client.responses.cancel(id);
    await spine.quiet();
    gate();
    expect(await retrieve(id)).toMatchObject({ status: 'cancelled', output: [] });
    expect(await spine.generation(callOf(id))).toMatchObject({ cost_micro_usdc: 0 });
    expect(spine.logs.filter((line) => line.includes('TypeError') || line.includes('the client is gone'))).toEqual([]);
  });

  test('costs its input if its model has said nothing', async () => {
    const asked = spine.provider.log.length;
    const { id } = await begin('!head-delay:forever');
    await until(() => spine.provider.log.length > asked, 'its model is asked');
    expect(await client.responses.cancel(id)).toMatchObject({ status: 'cancelled', output: [] });
    await spine.quiet();
    const record = await spine.generation(callOf(id));
    expect(record).toMatchObject({ outcome: 'cut', tokens_completion: 0, estimated: true });
    expect(record.cost_micro_usdc).toBe(record.tokens_prompt);
    expect(record.cost_micro_usdc).toBeGreaterThan(0);
  });

  test('has not ended yet, is not answered in place, and is the own', async () => {
    const { id } = await begin('!tokens:3');
    await ended(id);
    expect(await refusal(client.responses.cancel(id))).toMatchObject({
      status: 400,
      message: expect.stringContaining('completed'),
    });
    const inPlace = await client.responses.create({ model: MODEL, input: '!tokens:3' });
    expect(await refusal(client.responses.cancel(inPlace.id))).toMatchObject({
      status: 400,
      message: expect.stringContaining('Cannot cancel a synchronous response'),
    });
    const other = clientOf((await spine.tenant('other', '1')).key);
    for (const ask of [other.responses.cancel(id), other.responses.retrieve(id)])
      expect(await refusal(ask)).toMatchObject({ status: 404 });
  });

  test('is deleted with what it was made of', async () => {
    const { id } = await begin('!tokens:1000 !token-ms:20', { stream: false });
    await until(() => (spine.provider.log.at(-1)?.completionTokens ?? 0) > 5, 'its model says something');
    await client.responses.delete(id);
    expect(await refusal(retrieve(id))).toMatchObject({ status: 404 });
    await until(() => spine.provider.log.at(-1)!.end === 'client_closed', 'its provider is left');
    await spine.quiet();
    expect(await spine.generation(callOf(id))).toMatchObject({ state: 'settled', outcome: 'cut' });
  });
});

describe('a response that is cancelled or deleted costs what a client that leaves pays', () => {
  const IMAGE = 'image/test/paint';
  let shop: Spine;
  let painter: ImageProvider;
  let by: OpenAI;
  let answered = 0;
  beforeAll(async () => {
    painter = await startImageProvider();
    painter.answer(async (request, response) => {
      await held;
      await paintAsAsked({ ...request, body: { ...request.body, size: '64x64' } }, response);
    });
    const kit = `[[tools]]\nname = "kit"\ndisplay_name = "Kit"\nprovider_name = "Kit"\nendpoint = "${tools.url}"\n[tools.pricing]\nper_call = 0.001\n`;
    const model = modelBlock({ name: CALLER, provider: 'Acme', url: caller.url, maxOutputTokens: 10_000 });
    shop = await startSpine({ toml: UNHURRIED + kit + model + imageBlock({ url: painter.url }) });
    by = new OpenAI({ baseURL: shop.url, apiKey: shop.key, maxRetries: 0 });
  });
  afterAll(async () => {
    try {
      expect(await shop.faults()).toEqual([]);
    } finally {
      await shop.stop();
      await painter.close();
    }
  });

  const claim = (prompt: number, completion: number, reasoning: number) => [
    chunk({}, 'stop'),
    usage({
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      completion_tokens_details: { reasoning_tokens: reasoning },
    }),
  ];
  const said = chunk({ role: 'assistant', content: 'Well, ' });
  const asked = () => caller.asked.length + tools.asked.length + painter.requests.length;
  /** What one call costs that is ended as soon as its provider is at work, and whose provider then goes on. */
  async function costOf(leave: () => Promise<unknown>): Promise<bigint> {
    const before = await shop.balance();
    const open = heldGate();
    caller.answer = () => ({ ...answers[answered]!, until: held });
    await leave();
    open();
    await shop.quiet();
    const after = await shop.balance();
    return before.available - after.available;
  }
  const answers: readonly Transcript[] = [
    { chunks: [said, ...claim(18_000, 20, 0)] },
    { first: [said], chunks: claim(500, 5_020, 5_000) },
    {},
    {},
  ];
  const prompt = 'x'.repeat(72_000);

  test.each([
    ['before its first token, for a long prompt', { model: CALLER, input: prompt, max_output_tokens: 50 }, 18_040n],
    ['after its first word, for much thinking', { model: CALLER, input: 'Hi', max_output_tokens: 9_000 }, 10_126n],
    ['while its tool works', { model: 'mcp/kit/hour', input: '{}' }, 1_000n],
    ['while its image is made', { model: IMAGE, input: 'A tollgate' }, 40_000n],
  ])('%s', async (_when, body, cost) => {
    answered = [prompt, 'Hi', '{}', 'A tollgate'].indexOf(body.input);
    const { first } = answers[answered]!;
    const inPlace = await costOf(async () => {
      const leaving = new AbortController();
      const count = asked();
      const answer = shop.post('/responses', { ...body, stream: true }, {}, leaving.signal);
      answer.catch(() => {});
      await until(() => asked() > count, 'its provider is at work');
      if (first) await (await answer).body!.getReader().read();
      leaving.abort();
    });
    expect(inPlace).toBe(cost);
    for (const end of ['cancel', 'delete'] as const) {
      const inBackground = await costOf(async () => {
        const count = asked();
        const { id } = (await by.responses.create({ ...body, background: true })) as Shown;
        await until(() => asked() > count, 'its provider is at work');
        if (first) await until(async () => (await retrieve(id, by)).status === 'in_progress', 'it says something');
        await by.responses[end](id);
      });
      expect(inBackground).toBe(inPlace);
    }
  });
});
