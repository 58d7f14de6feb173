import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { Caller } from '#accounts';
import type { Config } from '#config';
import { GatewayError } from '#errors';
import { type MessageSocket, requestInside, toGatewayError, toHttpError } from '#http';
import type { EventTurns, StreamSlot } from '#limits';
import { createEventReader, isObject, type JsonObject, readJson, type SseEvent } from '#wire';
import { withMembersOf } from '../../native/passthrough.ts';
import { changedBody } from '../kept/conversations.ts';
import { responseBase } from '../response-object.ts';
import type { ResponsesBody } from '../schema.ts';
import { inside, joined, ownItems, type RememberedResponse, RememberedResponses } from './remembered.ts';

interface ResponseSocketOptions {
  /** Its route of responses answers. */
  readonly server: FastifyInstance;
  readonly limits: Config['limits'];
  readonly turns: EventTurns;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
  /** The handshake. Its headers are those of each response. */
  readonly request: IncomingMessage;
  readonly requestId: string;
  readonly caller: Caller;
  readonly slot: StreamSlot;
}

/** The code that clients know as a reason to open another connection. */
const ENDED = 'websocket_connection_limit_reached';
/** Events that have the response object, of which the last three are the end. */
const OF_RESPONSE: ReadonlySet<string> = new Set(
  ['created', 'queued', 'in_progress', 'completed', 'incomplete', 'failed'].map((end) => `response.${end}`),
);
const CONTINUABLE: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete']);
/** Messages of clients that need no answer. */
const IGNORED: ReadonlySet<unknown> = new Set(['response.processed']);
/** Headers of an answer that an error event has. */
const SHOWN_HEADERS = ['retry-after', 'x-request-id', 'x-generation-id', 'x-should-retry'] as const;

/**
 * A WebSocket of responses. Each `response.create` is the POST of its body: it is made inside of the gateway, one after
 * the other, and the events of its stream become messages. What a later message continues is in memory if it is not
 * kept.
 */
export class ResponseSocket {
  readonly #options: ResponseSocketOptions;
  readonly #remembered: RememberedResponses;
  readonly #gone = new AbortController();
  #client: MessageSocket | null = null;
  #isBusy = false;
  /** Why the connection ends after the running response. */
  #ends: string | null = null;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: ResponseSocketOptions) {
    const { server, limits, caller } = options;
    this.#options = options;
    this.#remembered = new RememberedResponses(
      server.requestBodies.open(caller.account, null),
      limits.chatBodyBytesMax,
    );
  }

  async serve(client: MessageSocket): Promise<void> {
    const { slot, turns, caller, onError } = this.#options;
    this.#client = client;
    const leave = () => this.#gone.abort(new Error('the client is gone'));
    if (client.gone.aborted) leave();
    else client.gone.addEventListener('abort', leave);
    const over = () => this.#endWhenIdle('It has lasted as long as it may, or the gateway restarts');
    if (slot.over.aborted) over();
    else slot.over.addEventListener('abort', over);
    this.#touch();
    try {
      for (;;) {
        const message = await client.next();
        if (message === null || this.#ends !== null) break;
        this.#isBusy = true;
        clearTimeout(this.#idle);
        const turn = turns.take(caller.account, client.weigh(message), () => {}, client.gone);
        if (turn !== null) await turn;
        if (client.closed !== null) break;
        await this.#take(client, message);
        this.#isBusy = false;
        if (this.#ends !== null) this.#end(client, this.#ends);
        else this.#touch();
      }
    } catch (error) {
      onError(error);
    }
  }

  close(): void {
    clearTimeout(this.#idle);
    this.#gone.abort(new Error('the connection is closed'));
    this.#client?.close(1001, '');
    this.#remembered.release();
    this.#options.slot.leave();
  }

  async #take(client: MessageSocket, message: Buffer | 'binary'): Promise<void> {
    try {
      if (message === 'binary') throw invalid('Messages are texts with JSON, and this one is binary', null);
      const event = await readJson(message, this.#options.limits);
      if (!isObject(event)) throw invalid('A message is a JSON object with a type', null);
      if (IGNORED.has(event['type'])) return;
      if (event['type'] !== 'response.create')
        throw invalid(`type must be response.create, which is all that this connection takes`, 'type');
      if ((event['stream_id'] ?? null) !== null)
        throw invalid('stream_id is not supported: open another connection for each conversation', 'stream_id');
      if (event['background'] === true)
        throw invalid('background is not supported here: send the request as a POST', 'background');
      await this.#respond(client, event as unknown as ResponsesBody & JsonObject, message.toString('utf8'));
    } catch (error) {
      if (this.#gone.signal.aborted) return;
      const known = toGatewayError(error);
      if (known.code === 'internal') this.#options.onError(error);
      const { status, body } = toHttpError(known, 'openai');
      await client.send(errorEvent(status, body.error));
    }
  }

  async #respond(client: MessageSocket, event: ResponsesBody & JsonObject, text: string): Promise<void> {
    const { input, previous_response_id: previous = null } = event;
    const before = this.#remembered.find(previous);
    const isReadable = input === undefined || typeof input === 'string' || Array.isArray(input);
    const items = isReadable ? joined(before?.items ?? '', ownItems(input)) : '';
    // A response that is kept stands for what came before it.
    const conversation = { previous: before === undefined ? previous : before.previous, items };
    if (event['generate'] === false) return this.#warmUp(client, event, conversation);
    const body = changedBody(text, {
      type: null,
      event_id: null,
      generate: null,
      stream: 'true',
      ...(before === undefined || !isReadable
        ? {}
        : {
            input: `[${items}]`,
            previous_response_id: conversation.previous && JSON.stringify(conversation.previous),
          }),
    });
    const { server, request, requestId } = this.#options;
    const answer = await requestInside(server, request, {
      body: Buffer.from(body),
      headers: { 'x-request-id': requestId, accept: 'text/event-stream' },
      signal: this.#gone.signal,
    });
    const isStream = answer.headers['content-type']?.startsWith('text/event-stream') === true;
    if (!isStream) return this.#refused(client, answer);
    const members = { ...(before === undefined ? {} : { previous_response_id: previous }), ...factsOf(answer) };
    await this.#pass(client, answer, members, conversation);
  }

  /** Passes the events of a stream on, as messages. */
  async #pass(
    client: MessageSocket,
    answer: IncomingMessage,
    members: JsonObject,
    conversation: RememberedResponse,
  ): Promise<void> {
    const reader = createEventReader({ bytesMax: Infinity });
    let isOver = false;
    const tell = async (event: SseEvent): Promise<void> => {
      isOver ||= event.event === 'error' || event.event === 'response.failed' || CONTINUABLE.has(event.event);
      const data = OF_RESPONSE.has(event.event) ? this.#toldData(event, members, conversation) : event.data;
      if (data !== '') await client.send(data);
    };
    for await (const chunk of answer as AsyncIterable<Buffer>)
      for (const event of reader.push(chunk)) await tell(event);
    for (const event of reader.end()) await tell(event);
    if (!isOver) throw new GatewayError('provider_unavailable', 'The response ended before its last event');
  }

  /** An event with a response: what stands in headers of a stream is in the response. */
  #toldData({ event, data }: SseEvent, members: JsonObject, { previous, items }: RememberedResponse): string {
    const parsed = JSON.parse(data) as JsonObject;
    const { response } = parsed;
    if (!isObject(response)) return data;
    const { id, store, output, tollgate } = response;
    if (CONTINUABLE.has(event) && store !== true && typeof id === 'string') {
      const outputText = Array.isArray(output) ? inside((output as unknown[]).filter(isObject)) : '';
      if (!this.#remembered.add(id, { previous, items: joined(items, outputText) }))
        this.#ends = 'The conversation is larger than what it can remember';
    }
    const facts = { ...(tollgate as object | undefined), ...(members['tollgate'] as object) };
    return withMembersOf(data, parsed, 'response', { ...members, tollgate: facts });
  }

  async #refused(client: MessageSocket, answer: IncomingMessage): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk);
    const { error } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { readonly error: JsonObject };
    const headers = Object.fromEntries(
      SHOWN_HEADERS.flatMap((name) => (answer.headers[name] === undefined ? [] : [[name, answer.headers[name]]])),
    );
    await client.send(errorEvent(answer.statusCode!, error, headers));
  }

  /** A request that is only remembered. A later one continues it by its id, and is made whole then. */
  async #warmUp(client: MessageSocket, event: ResponsesBody, conversation: RememberedResponse): Promise<void> {
    if (typeof event.model !== 'string') throw invalid('model must be the name of a model', 'model');
    const id = `resp_${randomUUID().replaceAll('-', '')}`;
    if (!this.#remembered.add(id, conversation))
      throw new GatewayError('payload_too_large', 'The request is larger than what this connection can remember');
    const createdAt = Math.floor(this.#options.now() / 1000);
    const previous = event.previous_response_id ?? null;
    const begun = responseBase({ id, createdAt, requestBody: event, stored: false, previous, background: false });
    const ended = { ...begun, status: 'completed', completed_at: createdAt, usage: NO_USAGE };
    await client.send(JSON.stringify({ type: 'response.created', sequence_number: 0, response: begun }));
    await client.send(JSON.stringify({ type: 'response.completed', sequence_number: 1, response: ended }));
  }

  #endWhenIdle(reason: string): void {
    this.#ends = reason;
    if (!this.#isBusy && this.#client !== null) this.#end(this.#client, reason);
  }

  #end(client: MessageSocket, reason: string): void {
    const message = `${reason}: create a new WebSocket connection to continue, with the whole input`;
    void client.send(errorEvent(ENDED_STATUS, { message, type: 'invalid_request', code: ENDED, param: null }));
    client.close(1000, reason);
  }

  #touch(): void {
    clearTimeout(this.#idle);
    const { realtimeIdleMs } = this.#options.limits;
    this.#idle = setTimeout(() => this.#endWhenIdle(`No message came for ${realtimeIdleMs / 1000} s`), realtimeIdleMs);
  }
}

const ENDED_STATUS = 400;
const NO_USAGE = {
  input_tokens: 0,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 0,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 0,
};

/** The facts of a call in the head of its stream: its id, and the fields that its provider did not get. */
function factsOf({ headers }: IncomingMessage): JsonObject {
  const dropped = headers['x-tollgate-dropped'];
  return {
    tollgate: {
      ...(headers['x-generation-id'] === undefined ? {} : { generation_id: headers['x-generation-id'] }),
      ...(typeof dropped === 'string' ? { dropped: dropped.split(', ').map(decodeURIComponent) } : {}),
    },
  };
}

const invalid = (message: string, param: string | null): GatewayError =>
  new GatewayError('invalid_request', message, param === null ? {} : { param });

/** An `error` event. Its code is always a text, because strict clients read no other. */
function errorEvent(status: number, error: object, headers?: object): string {
  const { type, code, ...rest } = error as { readonly type?: unknown; readonly code?: unknown };
  const faultNames = { type, code: typeof code === 'string' ? code : type, ...rest };
  return JSON.stringify({ type: 'error', status, error: faultNames, ...(headers === undefined ? {} : { headers }) });
}
