import { getEventListeners } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callMessage, INITIALIZE, lastOf } from '../mcp/faults/clients.ts';
import { openRealtime } from '../openai/realtime/support/realtime-client.ts';
import { startRealtimeProvider, usage, type RealtimeProvider } from '../openai/realtime/support/realtime-provider.ts';
import { voiceBlock } from '../openai/realtime/support/voice-gateway.ts';
import { ENDPOINTS, PEER } from '../peers/routes.ts';
import { startPeerProvider, type PeerProvider } from '../peers/peer-provider.ts';
import { peerServices } from '../peers/services.ts';
import { dialIn, offeredModel, type DialledIn } from '../support/dial-in.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

/*
 * What keeps a call in memory after its end: decision 91.
 *
 * - A map that loses an entry with each call keeps calls in the old heap of V8 until the next full collection. So
 *   whatever is called, no `Map` or `Set` of the gateway loses one each time, but for those of `#maps`, which are made
 *   for it.
 * - A listener on a signal keeps its call until that signal aborts, and the end of a session comes hours later. So no
 *   signal has a listener more after each call.
 */

const CALLS = 12;

interface Route {
  readonly name: string;
  /** Makes one more call. */
  readonly begin: (spine: Spine, key: string) => Promise<(number: number) => Promise<unknown>>;
}

const ROUTES: readonly Route[] = [
  // A video is a job of minutes, which the gateway keeps in lists of its own.
  ...ENDPOINTS.filter(({ primitive }) => primitive !== 'video').map(({ name, call }) => ({
    name,
    begin:
      async ({ origin }: Spine, key: string) =>
      async (number: number) => {
        const text = `complete ${name.replaceAll(/\W+/g, '-')} ${number}`;
        expect(await call({ origin, key, text })).toMatchObject({ kind: 'answered' });
      },
  })),
  session('a session with a server of tools', `/mcp/${PEER}`, 'do', { text: 'complete' }),
  session('a session with a model', `/mcp/model/${PEER}`, 'chat', { prompt: 'complete', max_tokens: 5_000 }),
  session('a session with all servers', '/mcp', 'peer_all__do', { text: 'complete' }),
  session('a session with all servers, which asks a model', '/mcp', 'ask_model', {
    model: PEER,
    prompt: 'complete',
    max_tokens: 5_000,
  }),
  {
    name: 'a session of the Realtime API',
    async begin({ origin }, key) {
      const client = await openRealtime(`${origin.replace('http', 'ws')}/v1/realtime?model=voice`, key);
      const side = await voices.session();
      return async (number) => {
        client.send({ type: 'response.create' });
        await side.take('response.create');
        side.say(`resp_${number}`, 'hello', usage(10, 2));
        await client.done();
      };
    },
  },
  {
    name: 'a tunnel of a provider',
    begin: async (_spine, key) => async () => {
      const authorization = `Bearer ${key}`;
      const reply = await spine.post('/chat/completions', ask('complete', { model: TUNNELLED }), { authorization });
      expect([reply.status, await reply.text()]).toEqual([200, expect.stringContaining('complete')]);
    },
  },
];

/** Of a client of MCP with a session, which goes on while its calls end. */
function session(name: string, path: string, tool: string, args: object): Route {
  return {
    name,
    async begin({ origin }, key) {
      const send = (message: object, headers: Record<string, string> = {}) =>
        fetch(origin + path, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${key}`,
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            ...headers,
          },
          body: JSON.stringify(message),
        });
      const opened = await send(INITIALIZE);
      await opened.text();
      const inSession = { 'mcp-session-id': opened.headers.get('mcp-session-id')! };
      await (await send({ jsonrpc: '2.0', method: 'notifications/initialized' }, inSession)).text();
      return async (number) => {
        const { result } = await lastOf(await send(callMessage(tool, args, number), inSession));
        expect(result).toMatchObject({ content: [{ type: 'text' }] });
        expect(result).not.toMatchObject({ isError: true });
      };
    },
  };
}

const TUNNELLED = 'tunnel/model';

let provider: PeerProvider;
let voices: RealtimeProvider;
let proxy: DialledIn;
let spine: Spine;
beforeAll(async () => {
  provider = await startPeerProvider();
  voices = await startRealtimeProvider();
  const services = peerServices(provider) + voiceBlock(voices.url);
  spine = await startSpine({ toml: `${UNHURRIED}[tunnel]\nproviders = "anyone"\n${services}` });
  proxy = await dialIn({ router: spine.origin, services: offeredModel({ name: TUNNELLED, url: provider.modelUrl }) });
});
afterAll(async () => {
  await proxy.close();
  await spine.stop();
  await voices.stop();
  await provider.close();
});

interface Losses {
  count: number;
  readonly at: string;
}

/** Counts the entries that each map and set loses to code of `src` while `work` runs. */
async function lossesDuring(work: () => Promise<void>): Promise<readonly Losses[]> {
  const losses = new Map<object, Losses>();
  const { get, set } = Map.prototype;
  const restore = [Map.prototype, Set.prototype].map((prototype) => {
    const original = prototype.delete as (this: object, key: unknown) => boolean;
    prototype.delete = function (this: object, key: unknown) {
      const had = original.call(this, key);
      const known = get.call(losses, this) as Losses | undefined;
      if (had && known !== undefined) known.count += 1;
      else if (had) {
        const at = new Error('at').stack!.split('\n')[2]!;
        if (/\/src\/(?!foundation\/maps\.ts)/.test(at)) set.call(losses, this, { count: 1, at });
      }
      return had;
    };
    return () => (prototype.delete = original);
  });
  try {
    await work();
  } finally {
    for (const each of restore) each();
  }
  return [...losses.values()];
}

/** The most listeners that a signal has, of those to which code of `src` listened while `work` ran, and that code. */
async function listenersAfter(work: () => Promise<void>): Promise<{ count: number; at: string }> {
  const signals = new Map<EventTarget, string>();
  const { addEventListener } = EventTarget.prototype;
  EventTarget.prototype.addEventListener = function (this: EventTarget, ...args) {
    const at = new Error('at').stack!.split('\n')[2]!;
    if (this instanceof AbortSignal && at.includes('/src/')) signals.set(this, at);
    return addEventListener.apply(this, args);
  };
  try {
    await work();
  } finally {
    EventTarget.prototype.addEventListener = addEventListener;
  }
  const counts = [...signals].map(([signal, at]) => ({ count: getEventListeners(signal, 'abort').length, at }));
  return counts.reduce((most, one) => (one.count > most.count ? one : most), { count: 0, at: '' });
}

test.each(ROUTES)('$name', async ({ name, begin }) => {
  const { key } = await spine.tenant(`leaves-${name.replaceAll(/\W+/g, '-').toLowerCase()}`, '1');
  const call = await begin(spine, key);
  await call(1);
  let losses: readonly Losses[] = [];
  const listeners = await listenersAfter(async () => {
    losses = await lossesDuring(async () => {
      for (let number = 2; number <= CALLS + 1; number += 1) await call(number);
      await spine.quiet();
    });
  });
  expect(losses.filter(({ count }) => count >= CALLS)).toEqual([]);
  expect(listeners.count, listeners.at).toBeLessThan(CALLS);
  expect(await spine.faults()).toEqual([]);
});
