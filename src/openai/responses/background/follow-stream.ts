import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { GiveBack } from '#billing/amounts';
import { GatewayError } from '#errors';
import { isObject, type JsonObject } from '#wire';
import {
  type ReplySink,
  toHttpError,
  createHttpSink,
  createKeepAlive,
  createSilent,
  type MoreMemory,
  toGatewayError,
} from '#http';
import { type Admission, createStreamQuota, rateHeaders, type StreamShares } from '#limits';
import { ownerOf } from '#tasks';
import type { KeptResponse, KeptResponses } from '#kept-responses';
import type { Config } from '#config';
import { eventText } from '../../native/passthrough.ts';
import { callIdOf } from '../kept/kept-ids.ts';
import { deletedEnd, endLost } from './background-end.ts';
import { isEnd } from './background-sink.ts';
import type { Runs } from './runs.ts';
import { notStreamed } from '../kept/errors.ts';

export type OwnedResponse = Pick<KeptResponse, 'id' | 'account' | 'within'>;

export interface KeptStreams {
  isStreamed(id: string): Promise<boolean>;
  /** Writes the events after number `after` to a client, until the last one. See followStream. */
  follow(response: OwnedResponse, after: number, client: ReplySink, memory?: Memory): Promise<void>;
}

interface FollowDeps {
  readonly keptResponses: KeptResponses;
  readonly giveBack: GiveBack;
  readonly runs: Pick<Runs, 'get'>;
  readonly onError: (error: unknown) => void;
}

export type Memory = Pick<MoreMemory, 'becomes'>;

const UNCOUNTED: Memory = { becomes() {} };
/** An event that waits for its client is in memory as text and as bytes. */
const COPIES = 3;

/** How often it is checked whether another gateway has stored more events. */
const POLL_MS = 500;
/** Most stored parts that are read at once. */
const PARTS = 8;
/** While nothing is stored, it is checked this often whether the client is still there. */
const QUIET_MS = 2_000;
const UNREF = { ref: false };

/**
 * Writes the events of a response after number `after`, as they are stored, until its last one. Every gateway reads
 * them from the database, also the one that makes the response: so there is one way, and a client that comes back gets
 * the same events. `memory` counts the events that are read and not sent. If reading fails, the stream ends with an
 * event that says so, and the client can come back.
 */
export async function followStream(
  deps: FollowDeps,
  place: OwnedResponse,
  after: number,
  client: ReplySink,
  memory: Memory = UNCOUNTED,
): Promise<void> {
  client.head(200, { ...SSE_HEADERS, 'x-generation-id': callIdOf(place.id) });
  client.flush();
  try {
    await writeEvents(deps, place, after, client, memory);
  } catch (error) {
    if (!(error instanceof GatewayError)) deps.onError(error);
    if (!client.closed) client.fail(Buffer.from(errorEvent(toGatewayError(error))));
  }
}

async function writeEvents(
  deps: FollowDeps,
  place: OwnedResponse,
  after: number,
  client: ReplySink,
  memory: Memory,
): Promise<void> {
  const { keptResponses, runs } = deps;
  const { id } = place;
  let seen = after;
  let isOver = false;
  // Only its first event has the response of one that is deleted later.
  let first = after < 0 ? null : responseIn((await keptResponses.running.events(place, -1, 1))[0]?.text);
  while (!client.closed) {
    const run = runs.get(id);
    // Asked for before the events are read, so that nothing is missed.
    const changed = run?.changed();
    const parts = await keptResponses.running.events(place, seen, PARTS);
    memory.becomes(parts.reduce((sum, { text }) => sum + COPIES * text.length, 0));
    for (const { last, text } of parts) {
      first ??= responseIn(text);
      isOver = isOver || isEnd(lastTypeIn(text));
      const isWritten = client.write(Buffer.from(textAfter(text, seen)));
      seen = last;
      if (!isWritten) await client.drained();
      if (client.closed) return;
    }
    if (parts.length > 0) continue;
    if (isOver) return client.end('');
    if (run !== undefined && !run.isDeleted) {
      await Promise.race([changed, pause(QUIET_MS, undefined, UNREF)]);
      continue;
    }
    const keptResponse = await keptResponses.find(id, place);
    if (keptResponse === null)
      return client.end(deletedText(first ?? { id, object: 'response', output: [] }, seen + 1));
    if (keptResponses.running.isLost(keptResponse)) await endLost(deps, keptResponse);
    // The last event is stored together with the end, so it is read once more.
    isOver = keptResponse.run === null || keptResponse.run === 'lost';
    if (!isOver) await pause(POLL_MS, undefined, UNREF);
  }
}

/** The event of the API that says that a stream cannot go on. */
function errorEvent(error: GatewayError): string {
  const { message } = toHttpError(error).body.error;
  return eventText('error', JSON.stringify({ type: 'error', code: error.code, message, param: null }));
}

const SSE_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
} as const;

function textAfter(text: string, after: number): string {
  const events = text.split(/(?<=\n\n)/);
  const first = events.findIndex((event) => numberOf(event) > after);
  return first === -1 ? '' : events.slice(first).join('');
}

function numberOf(event: string): number {
  const data = event.slice(event.indexOf(DATA) + DATA.length);
  return (JSON.parse(data) as { readonly sequence_number: number }).sequence_number;
}

const DATA = '\ndata: ';
const EVENT = 'event: ';

function responseIn(text: string | undefined): JsonObject | null {
  if (text === undefined) return null;
  const { response } = JSON.parse(text.slice(text.indexOf(DATA) + DATA.length, text.indexOf('\n\n'))) as JsonObject;
  return isObject(response) ? response : null;
}

function lastTypeIn(text: string): string {
  const at = text.lastIndexOf(`\n${EVENT}`) + 1 + EVENT.length;
  return text.slice(at, text.indexOf('\n', at));
}

function deletedText(first: JsonObject, number: number): string {
  const { type, response } = deletedEnd(first);
  return eventText(type, JSON.stringify({ type, sequence_number: number, response }));
}

export interface SendStreamDeps {
  readonly background: KeptStreams;
  readonly config: { readonly limits: Pick<Config['limits'], 'clientStallMs' | 'listensMax'> };
  /** Open streams of accounts, also at other routes. */
  readonly listeners: StreamShares;
  readonly keepAliveMs?: number | undefined;
}

interface StreamRequest {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly admission: Admission;
}

const KEEP_ALIVE_MS = 15_000;
const COMMENT = Buffer.from(': keep-alive\n\n');

/** Sends the stream of a response that is made in the background to a client that asks for it. */
export function createSendStream({ background, config, listeners, keepAliveMs = KEEP_ALIVE_MS }: SendStreamDeps) {
  const { clientStallMs, listensMax } = config.limits;
  const keepAlive = createKeepAlive(keepAliveMs);
  const places = createStreamQuota({ max: listensMax, ofAccounts: listeners });

  return async (
    keptResponse: KeptResponse,
    after: number | undefined,
    { request, reply, admission: { caller, rate } }: StreamRequest,
  ): Promise<void> => {
    if (!(await background.isStreamed(keptResponse.id))) throw notStreamed(keptResponse.id);
    const place = places.take(ownerOf(caller));
    if (place === null) {
      const { code, message } = places.refusal();
      throw new GatewayError(code, message);
    }
    const client = createHttpSink(
      reply,
      clientStallMs,
      () => {},
      () => ({ ...rateHeaders(rate), 'request-id': request.id }),
    );
    const silent = createSilent(() => void client.write(COMMENT));
    const over = () => client.cut();
    place.over.addEventListener('abort', over);
    const memory = request.server.requestBodies.beside(request);
    keepAlive.watch(silent);
    try {
      await background.follow(keptResponse, after ?? -1, client, memory);
    } finally {
      memory.release();
      keepAlive.forget(silent);
      place.over.removeEventListener('abort', over);
      place.leave();
    }
  };
}
