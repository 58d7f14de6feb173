import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { statusEvent, taskResult, writeEvent } from '../../a2a/calls/support/raw-served.ts';
import { createTalk } from '../../a2a/contract/client-calls.ts';
import { callTool, toolToml } from '../../mcp/calls/modern-post.ts';
import { startVideoProvider, videoBlock, type Queued } from '../../media/support/video-provider.ts';
import { tinyMp4 } from '../../media/support/tiny-mp4.ts';
import { agentBlock, startCardedAgent, type RawExchange } from '../../support/a2a-agent/index.ts';
import { startRawMcp } from '../../support/raw-mcp.ts';
import type { Spine } from '../../support/spine.ts';
import { startTunnelSpine, until } from '../../support/tunnel-spine.ts';
import { records } from './ends-of-calls.ts';

/*
 * As nobody-works-for-nothing.test.ts, for videos, tools and agents of the operator. The bill of the vendor is its
 * price for the work, or the use that it reports, and never more than the lock. Excepted are the rows of their table in
 * docs/reference/endings.md that cost nothing: failures, work without a report, and what was cancelled before output.
 */

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const CALLS = DEEP ? 120 : 30;
const REPLY_BYTES_MAX = 64 * 1024;
const FILE_BYTES_MAX = 64 * 1024;

const TOOL_ENDS = ['complete', 'toolarge', 'left'] as const;
const AGENT_ENDS = ['complete', 'message', 'canceled', 'canceledmidway', 'asked', 'toolarge'] as const;
const VIDEO_ENDS = ['complete', 'uncancelled', 'toolarge'] as const;

/** A price of 0, or one that no operator would take for a mistake. */
const rate = (min: number, max: number) =>
  fc.oneof({ weight: 1, arbitrary: fc.constant(0) }, { weight: 6, arbitrary: fc.integer({ min, max }) });
const micro = rate(100, 50_000);
/** `byUse`: null for a price of the call alone. Rates are in micro-USD: for a million tokens, and for a second. */
const priced = {
  perCall: micro,
  byUse: fc.option(
    fc
      .record({
        prompt: rate(10_000, 20_000_000),
        completion: rate(10_000, 20_000_000),
        perSecond: rate(100, 20_000),
        most: fc.integer({ min: 60_000, max: 400_000 }),
      })
      // A highest price of a call without a price by use is refused.
      .filter(({ prompt, completion, perSecond }) => prompt + completion + perSecond > 0),
    { freq: 4 },
  ),
  /** Null: it reports nothing. The last ones are more than can be true. */
  claim: fc.option(
    fc.record({
      prompt: fc.integer({ min: 0, max: 4_000 }),
      completion: fc.integer({ min: 0, max: 4_000 }),
      second: fc.integer({ min: 0, max: 300 }).map((hundredths) => hundredths / 100),
    }),
    { freq: 4 },
  ),
  letters: fc.integer({ min: 1, max: 4_000 }),
};
const tool = fc.record({ kind: fc.constant('tool' as const), end: fc.constantFrom(...TOOL_ENDS), ...priced });
const agent = fc.record({ kind: fc.constant('agent' as const), end: fc.constantFrom(...AGENT_ENDS), ...priced });
const video = fc.record({
  kind: fc.constant('video' as const),
  end: fc.constantFrom(...VIDEO_ENDS),
  perSecond: rate(100, 200_000),
  base: micro,
  seconds: fc.constantFrom(4, 8),
});
type Work = ReturnType<typeof tool.generate>['value'] | ReturnType<typeof agent.generate>['value'];
type Film = ReturnType<typeof video.generate>['value'];
type Case = Work | Film;

const usd = (amount: number) => (amount / 1_000_000).toFixed(6);
const pricingOf = ({ perCall, byUse }: Work) =>
  byUse === null
    ? `per_call = ${usd(perCall)}`
    : `per_call = ${usd(perCall)}\nprompt = ${usd(byUse.prompt)}\ncompletion = ${usd(byUse.completion)}\nper_second = ${usd(byUse.perSecond)}\nper_call_max = ${usd(byUse.most)}`;

/** Micro-USD that the vendor bills, at most what is locked. */
function billOf(one: Case): number {
  if (one.kind === 'video') return one.base + one.seconds * one.perSecond;
  const { kind, end, perCall, byUse, claim } = one;
  const before = kind === 'agent' && end === 'canceled';
  if (byUse === null) return before ? 0 : perCall;
  if (claim === null || end === 'toolarge') {
    const isCut = end === 'canceledmidway' || end === 'asked' || end === 'toolarge';
    return isCut ? Math.min(perCall, byUse.most) : 0;
  }
  const { prompt, completion, second } = claim;
  const used = (prompt * byUse.prompt + completion * byUse.completion) / 1e6 + Math.ceil(second) * byUse.perSecond;
  return Math.min(perCall + used, byUse.most);
}

const reportOf = ({ claim }: Work) => (claim === null ? {} : { 'tollgate/usage': claim });
const HUGE = 'x'.repeat(2 * REPLY_BYTES_MAX);
const nthOf = (text: unknown) => Number(String(text).slice(4).split(' ')[0]);

/** The tool of all cases. Resolves what waits for a call when it has come. */
async function startTools(cases: readonly Case[]) {
  const came = cases.map(() => Promise.withResolvers<void>());
  const left = cases.map(() => Promise.withResolvers<void>());
  const server = await startRawMcp(({ params, idText }) => {
    const nth = nthOf((params['arguments'] as { id: string }).id);
    const one = cases[nth] as Work;
    came[nth]!.resolve();
    const text = one.end === 'toolarge' ? HUGE : 'x'.repeat(one.letters);
    const result = { resultType: 'complete', content: [{ type: 'text', text }], _meta: reportOf(one) };
    if (one.end !== 'left') return JSON.stringify(result);
    return (response) => {
      void left[nth]!.promise.then(() => {
        const body = `{"jsonrpc":"2.0","id":${idText},"result":${JSON.stringify(result)}}`;
        response.writeHead(200, { 'content-type': 'application/json' }).end(body);
      });
    };
  });
  return { server, came, left };
}

/** The agent of all cases. A task has the id of its call. */
const startAgent = (cases: readonly Case[]) =>
  startCardedAgent(
    (exchange: RawExchange) => {
      const { params, method } = exchange.request as { params: Record<string, unknown>; method: string | null };
      const isSent = method === 'SendMessage' || method === 'SendStreamingMessage';
      const id = isSent
        ? (params['message'] as { parts: readonly { text: string }[] }).parts[0]!.text
        : String(params['id']);
      const one = cases[nthOf(id)] as Work;
      const metadata = reportOf(one);
      if (method === 'CancelTask') return exchange.result(taskResult(id, 'CANCELED', { metadata }).task);
      if (!isSent) return exchange.result(taskResult(id, 'WORKING').task);
      const text = one.end === 'toolarge' ? HUGE : 'x'.repeat(one.letters);
      const artifacts = [{ artifactId: 'a', parts: [{ text }] }];
      if (one.end === 'message')
        return exchange.result({ message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text }], metadata } });
      if (one.end === 'complete' || one.end === 'toolarge')
        return exchange.result(taskResult(id, 'COMPLETED', { artifacts, metadata }));
      writeEvent(exchange, taskResult(id, 'WORKING'));
      const contextId = `context-of-${id}`;
      if (one.end === 'canceledmidway')
        writeEvent(exchange, { artifactUpdate: { taskId: id, contextId, artifact: artifacts[0]! } });
      if (one.end !== 'asked') return writeEvent(exchange, statusEvent(id, 'WORKING'));
      const message = { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'which one?' }] };
      const status = { state: 'TASK_STATE_INPUT_REQUIRED', message };
      writeEvent(exchange, { statusUpdate: { taskId: id, contextId, status } });
      return void exchange.response.end();
    },
    { streaming: true },
  );

async function askAgent({ origin, key }: Spine, { end }: Work, id: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'x-request-id': id };
  const talk = createTalk({ url: `${origin}/a2a/own/${id}`, headers }, '1.0', 'JSONRPC');
  if (!['canceled', 'canceledmidway', 'asked'].includes(end)) return void (await talk.send(id));
  const stream = await talk.stream(id);
  const until = { canceled: 'WORKING', canceledmidway: 'artifactId', asked: 'which one' }[end as 'asked'];
  for (let heard = ''; !heard.includes(until);) heard += JSON.stringify(await stream.next());
  await talk.call('CancelTask', { id });
  stream.leave();
}

test('no tool, agent or video costs less than the bill of its vendor, or more than its lock', async () => {
  const seed = Number(process.env['ENDINGS_SEED'] ?? Date.now() % 1_000_000_000);
  const cases: readonly Case[] = fc.sample(
    fc.oneof({ weight: 2, arbitrary: tool }, { weight: 2, arbitrary: agent }, { weight: 1, arbitrary: video }),
    {
      numRuns: CALLS,
      seed,
    },
  );
  const idOf = (nth: number) => `call${nth}`;
  const [tools, agents, films] = await Promise.all([startTools(cases), startAgent(cases), startVideoProvider()]);
  onTestFinished(() => Promise.all([tools.server.close(), agents.close(), films.close()]).then(() => {}));
  const block = (one: Case, nth: number) => {
    const name = `own/${idOf(nth)}`;
    if (one.kind === 'tool') return toolToml({ name, url: tools.server.url, pricing: pricingOf(one), provider: 'own' });
    if (one.kind === 'agent')
      return agentBlock({ name, endpoint: agents.url, pricing: pricingOf(one), provider: 'own' });
    const pricing = `per_second = { "720p" = ${usd(one.perSecond)} }\nbase = ${usd(one.base)}`;
    return videoBlock({ name, provider: 'own', url: films.url, pricing, lines: 'durations = ["4s", "8s"]' });
  };
  const { spine } = await startTunnelSpine(
    `[upstream]\ncooldown_ms = 0\nidle_timeout_ms = 3000\nreply_bytes_max = ${REPLY_BYTES_MAX}\nimages_reply_bytes_max = ${REPLY_BYTES_MAX}\n` +
      `[billing]\ndrain_ms = 5000\n[media]\nfree_bytes_min = 0\nfile_bytes_max = ${FILE_BYTES_MAX}\n${cases.map(block).join('')}`,
  );
  const useTool = async ({ end }: Work, nth: number) => {
    const leaving = new AbortController();
    const options = { signal: leaving.signal, headers: { 'x-request-id': idOf(nth) } };
    const calling = callTool(spine, `own/${idOf(nth)}`, 't', { id: idOf(nth) }, options).catch(() => {});
    if (end === 'left') {
      await tools.came[nth]!.promise;
      leaving.abort();
      tools.left[nth]!.resolve();
    }
    await calling;
  };
  /** Resolves when the film has begun, with its end. */
  const makeFilm = async ({ end, seconds }: Film, nth: number) => {
    const stays = end === 'uncancelled';
    films.begin(() =>
      stays ? { status: 'in_progress' } : end === 'toolarge' ? { file: tinyMp4(seconds, 2 * FILE_BYTES_MAX) } : {},
    );
    films.cancels = !stays;
    const asked = { model: `own/${idOf(nth)}`, prompt: 'A tollgate', duration: `${seconds}s` };
    const queued = await spine.post('/video/queue', asked, { 'x-request-id': idOf(nth) });
    const { id: task } = (await queued.json()) as Queued;
    if (stays) {
      await spine.post('/video/cancel', { task_id: task });
      Object.assign(films.last(), { status: 'completed', file: tinyMp4(seconds) });
    }
    const runs = async () => {
      const shown = await spine.post('/video/retrieve', { task_id: task });
      const text = await shown.text();
      return shown.headers.get('content-type') !== 'video/mp4' && !/"status":"(?:completed|failed)"/.test(text);
    };
    return { final: until(async () => !(await runs())) };
  };
  const others = cases.map((one, nth) =>
    one.kind === 'tool' ? useTool(one, nth) : one.kind === 'agent' ? askAgent(spine, one, idOf(nth)) : null,
  );
  const finals: Promise<unknown>[] = [];
  for (const [nth, one] of cases.entries()) if (one.kind === 'video') finals.push((await makeFilm(one, nth)).final);
  await Promise.all([...others, ...finals]);
  await spine.quiet();
  expect(await spine.faults()).toEqual([]);
  const found = await records(spine);
  const seen = await Promise.all(
    cases.map(async (one, nth) => {
      const record = found.get(idOf(nth)) as unknown as { readonly id: string } | undefined;
      const shown = record === undefined ? null : await spine.generation(record.id);
      const entries = (shown?.['entries'] ?? []) as readonly { type: string; amount_micro_usdc: number }[];
      const lock = entries.find(({ type }) => type === 'lock')?.amount_micro_usdc ?? 0;
      return {
        ...one,
        bill: billOf(one),
        paid: shown?.['cost_micro_usdc'] ?? 0,
        lock,
        state: shown?.['state'],
      };
    }),
  );
  expect(
    seen.filter(({ bill, paid, lock, state }) => paid < bill - 1 || paid > lock || state === 'held'),
    `seed ${seed}`,
  ).toEqual([]);
}, 300_000);
