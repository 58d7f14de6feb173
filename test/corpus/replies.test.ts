import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chunk, completion, eventsOf, USAGE, usage } from '../openai/translated/support/transcript-upstream.ts';
import { startWireUpstream, type WireUpstream } from '../openai/native/support/wire-upstream.ts';
import { beside, expectGolden, type Json, readEntries, steady } from './goldens.ts';
import { joinDeltas } from './join-deltas.ts';
import { createReaders, type Readers } from './readers.ts';
import { CHAT, NATIVE, startWorld, WIRES, type World } from './world.ts';

// What a provider says, and what the clients of each wire get of it, whole and as a stream. The SDKs of the wires read
// the same from both.

interface ChatReply extends Json {
  readonly name: string;
  /** Deltas of a stream. A whole reply is made of them. */
  readonly deltas: readonly Json[];
  readonly finish: string;
  /** Other members of the choice that ends it. */
  readonly choice?: Json;
  readonly usage?: Json;
  /** What clients ask for besides the least, by their wires. */
  readonly asks?: Readonly<Record<string, Json>>;
  /** A stream has parts of calls that a whole reply leaves out. */
  readonly isCut?: true;
  /** Wires whose SDK cannot read the stream. */
  readonly unread?: readonly string[];
}

let world: World;
let replay: WireUpstream;
let readers: Readers;
beforeAll(async () => {
  world = await startWorld();
  replay = await startWireUpstream();
  readers = createReaders(new URL(replay.url).origin);
});
afterAll(async () => {
  try {
    expect(await world.spine.faults()).toEqual([]);
  } finally {
    await world.stop();
    await replay.stop();
  }
});

const isJson = (text: string) => /^[[{]/.test(text) && text !== '[DONE]';

/** The events of a stream: their data, whose types their names repeat. Comments only keep a connection alive. */
function eventsIn(text: string): readonly unknown[] {
  return text
    .split(/\r?\n\r?\n/)
    .filter((one) => one !== '' && !one.startsWith(':'))
    .map((one) => {
      const [, name, data = ''] = /^(?:event: (.*)\r?\n)?data: (.*)$/s.exec(one)!;
      const event: unknown = isJson(data) ? JSON.parse(data) : data;
      if (name !== undefined) expect((event as Json)['type']).toBe(name);
      return event;
    });
}

async function answers(wire: string, model: string, asked: Json, stream: boolean): Promise<string> {
  const reply = await world.send(wire, model, { ...WIRES[wire]!.least, ...asked }, stream);
  const text = await reply.text();
  expect(reply.status, text).toBe(200);
  return text;
}

/** What the SDK of a wire reads in a reply that came. */
async function readBy(wire: string, text: string, stream: boolean) {
  replay.answer = () => ({ text, type: stream ? 'text/event-stream' : 'application/json' });
  return readers[wire]!(stream);
}

const BEGUN = chunk({ role: 'assistant', content: '' });

/** What an event has besides another. What is long, and the same in the whole reply, is only named. */
function shortened(event: Json, first: Json, whole: Json): Json {
  const { without: _, ...more } = beside(event, first);
  const named = Object.entries(more).map(([key, value]) => {
    const isWhole = isDeepStrictEqual(value, whole[key]) && JSON.stringify(value).length > 40;
    return [key, isWhole ? 'as in the whole reply' : value];
  });
  return Object.fromEntries(named) as Json;
}

/** The events of a stream after the first, which each repeats in many members. */
const besideFirst = ([first, ...rest]: readonly unknown[], whole: Json): readonly unknown[] =>
  rest.map((event) => {
    if (typeof event === 'string') return event;
    const { response, ...members } = event as Json;
    const more = shortened(members, first as Json, whole);
    if (response === undefined) return more;
    return { ...more, response: shortened(response as Json, (first as { response: Json }).response, whole) };
  });

/** The same of the first events of two streams, of which one member may have all of the reply. */
const besideNested = (event: Json, first: Json): Json =>
  Object.fromEntries(
    Object.entries(beside(event, first)).map(([key, value]) => {
      const isNested = key === 'message' || key === 'response';
      return [key, isNested ? beside(value as Json, first[key] as Json) : value];
    }),
  );

interface Reply {
  readonly whole: Json;
  readonly first: Json;
  readonly stream: readonly unknown[];
}

const all = readEntries<ChatReply | NativeReply>('replies.json');
const entries = all.flatMap(({ entry, ...one }) => ('deltas' in entry ? [{ ...one, entry: entry as ChatReply }] : []));

test.each(entries.flatMap((one) => Object.keys(WIRES).map((client) => ({ ...one, client }))))(
  '$client: $name',
  async ({ client, entry }) => {
    const { deltas, finish, choice = {}, usage: used = USAGE, asks = {}, isCut = false, unread } = entry;
    const chunks = [BEGUN, ...deltas.map((delta) => chunk(delta)), withChoice(chunk({}, finish), choice), usage(used)];
    const said = withChoice(completion(joinDeltas(deltas), finish, used), choice);
    world.upstream.answer = ({ body }) => ({
      text: body['stream'] === true ? eventsOf(chunks) : JSON.stringify(said),
    });
    const inOne = await answers(client, CHAT, asks[client] ?? {}, false);
    const inPieces = await answers(client, CHAT, asks[client] ?? {}, true);
    const whole = JSON.parse(steady(inOne)) as Json;
    const events = eventsIn(steady(inPieces));
    const reply = { whole, first: events[0] as Json, stream: besideFirst(events, whole) };
    // The first entry has all members. The others have what differs from it.
    const model = entry === entries[0]!.entry ? null : (entries[0]!.entry[client] as Reply);
    const less = model && {
      ...reply,
      whole: beside(whole, model.whole),
      first: besideNested(reply.first, model.first),
    };
    expectGolden(entry, client, less ?? reply);
    if (unread?.includes(client)) return;
    const read = await readBy(client, inPieces, true);
    if (isCut) expect(read.text).toBe((await readBy(client, inOne, false)).text);
    else expect(read).toEqual(await readBy(client, inOne, false));
  },
);

function withChoice(reply: object, more: Json): object {
  const { choices, ...rest } = reply as { choices: readonly Json[] };
  return { ...rest, choices: [{ ...choices[0], ...more }] };
}

interface NativeReply extends Json {
  readonly name: string;
  readonly reply: Json;
  readonly events: readonly Json[];
}

const native = all.flatMap(({ entry, ...one }) => ('events' in entry ? [{ ...one, entry: entry as NativeReply }] : []));

test.each(native)('$wire, as its provider speaks it: $name', async ({ wire, entry }) => {
  const { reply, events } = entry;
  const named = events.map((event) => {
    const name = typeof event['type'] === 'string' ? `event: ${event['type']}\n` : '';
    return `${name}data: ${JSON.stringify(event)}\n\n`;
  });
  world.upstream.answer = ({ path, body }) => {
    const streams = body['stream'] === true || path.includes('alt=sse');
    return {
      type: streams ? 'text/event-stream' : 'application/json',
      text: streams ? named.join('') : JSON.stringify(reply),
    };
  };
  const whole = JSON.parse(steady(await answers(wire, NATIVE, {}, false))) as Json;
  const stream = eventsIn(steady(await answers(wire, NATIVE, {}, true)));
  expectGolden(entry, 'whole', beside(whole, reply));
  expectGolden(entry, 'stream', beside(Object.fromEntries(stream.entries()), Object.fromEntries(events.entries())));
});
