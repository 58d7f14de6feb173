import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { completion } from '../openai/translated/support/transcript-upstream.ts';
import { geminiAnswer, message, response } from '../openai/native/support/transcripts.ts';
import { beside, expectGolden, type Json, readEntries, steady } from './goldens.ts';
import { CHAT, NATIVE, startWorld, WIRES, type World } from './world.ts';

// Each request in one wire, and what a provider gets that speaks chat, and one that speaks the wire itself.

interface Entry extends Json {
  readonly name: string;
  /** What it has besides the model and the members of the least request. null: it lacks one of these. */
  readonly request: Json;
  /** The model in place of those that only speak chat. */
  readonly model?: string;
}

let world: World;
beforeAll(async () => {
  world = await startWorld();
  world.upstream.answer = ({ path }) => {
    if (path.includes(':generateContent')) return { text: geminiAnswer() };
    if (path === '/v1/messages') return { text: message() };
    return { text: path === '/v1/responses' ? response() : JSON.stringify(completion({ content: 'Hello' })) };
  };
});
afterAll(async () => {
  try {
    expect(await world.spine.faults()).toEqual([]);
  } finally {
    await world.stop();
  }
});

const MODEL = 'upstream-of-Acme';

/** What became of a request: the body at the provider without its model, or the status and the error. */
async function sent(wire: string, model: string, request: Json) {
  const { reached } = world.upstream;
  reached.length = 0;
  const reply = await world.send(wire, model, request);
  const text = await reply.text();
  const dropped = reply.headers.get('x-tollgate-dropped') ?? undefined;
  if (reply.status !== 200) {
    expect(reached).toEqual([]);
    const { request_id: _, ...error } = JSON.parse(steady(text)) as Json;
    return { body: [reply.status, error], dropped };
  }
  if (wire !== 'chat') expect(reply.headers.get('x-tollgate-wire')).toBe(model === NATIVE ? 'native' : 'translated');
  const { path, text: came } = reached.at(-1)!;
  const { model: asked, ...body } = JSON.parse(steady(came)) as Json;
  if (wire === 'gemini' && model === NATIVE) expect(path).toContain(`/models/${MODEL}:`);
  else expect(asked).toBe(MODEL);
  return { body, dropped };
}

/** What the least request of a wire becomes in chat. The goldens of the others have only what differs from it. */
const ofLeast: Record<string, Promise<Json>> = {};
const leastOf = (wire: string) =>
  (ofLeast[wire] ??= sent(wire, CHAT, WIRES[wire]!.least).then(({ body }) => body as Json));

/** A body beside another. An error is whole. */
const besideBody = (body: unknown, base: Json) => (Array.isArray(body) ? body : beside(body as Json, base));

test.each(readEntries<Entry>('requests.json'))('$wire: $name', async ({ wire, entry }) => {
  const { least } = WIRES[wire]!;
  const all = Object.entries({ ...least, ...entry.request });
  const request = Object.fromEntries(all.filter(([key, value]) => value !== null || !Object.hasOwn(least, key)));
  const chat = await sent(wire, entry.model ?? CHAT, request);
  expectGolden(entry, 'chat', besideBody(chat.body, wire === 'chat' ? request : await leastOf(wire)));
  expectGolden(entry, 'droppedForChat', chat.dropped);
  if (wire === 'chat' || wire === 'completions') return;
  const native = await sent(wire, NATIVE, request);
  expectGolden(
    entry,
    'native',
    isDeepStrictEqual(native.body, chat.body) ? 'as chat' : besideBody(native.body, request),
  );
  expectGolden(entry, 'droppedForNative', native.dropped);
});
