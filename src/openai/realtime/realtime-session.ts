import { GatewayError } from '#errors';
import { isObject, readJson, type JsonLimits, type JsonObject } from '#wire';
import { type MessageSocket, toGatewayError } from '#http';
import type { Scrub } from '#security';
import type { Offer } from '#catalog';
import { type ClientEvent, readClientEvent, rulesAt } from './client-events.ts';
import { plus, TOKENS_PER_SECOND } from './conversation-size.ts';
import { cancelOf, closeCodeOf, errorEvent, idIn, ownEventId, remember } from './own-events.ts';
import { readEvent, shownSession } from './provider-session.ts';
import type { ResponseCall } from './response-call.ts';
import { usageWithCost } from './response-end.ts';
import type { ResponseLocks } from './response-locks.ts';
import { SessionSettings } from './session-state.ts';

type TakeTurn = (bytes: number, onLimited: () => void, gone?: AbortSignal) => Promise<void> | null;

interface RealtimeSessionOptions {
  readonly client: MessageSocket;
  readonly provider: MessageSocket;
  readonly session: JsonObject;
  /** The configuration of the session that its client secret has; null for none. Its provider has it. */
  readonly configured: JsonObject | null;
  readonly locks: ResponseLocks;
  /** The turns of the client's events, and of the provider's. */
  readonly turns: { readonly client: TakeTurn; readonly provider: TakeTurn };
  readonly offer: Offer;
  readonly model: string;
  /** The most tokens of one response. */
  readonly outputCap: number;
  readonly limits: JsonLimits;
  readonly scrub: Scrub;
  readonly drainMs: number;
  readonly idleMs: number;
  /** Aborts when the session has to end, with the error that says why. */
  readonly over: AbortSignal;
  readonly onError: (error: unknown) => void;
}

/** Responses of one session that the client asked for or that run, together. */
const RESPONSES_MAX = 4;
/** The parts of a response that clients read. */
const DELTAS: ReadonlySet<string> = new Set(
  ['output_text', 'output_audio', 'output_audio_transcript', 'function_call_arguments'].map(
    (part) => `response.${part}.delta`,
  ),
);
/** A rate that is used up is waited for at most this often, before sound goes on. */
const WAITS_MAX = 30;
/**
 * How a session closes whose provider closed it, by the provider's code; else 1011. Clients act on these: they send
 * less after 1009, and come again after 1012 and 1013.
 */
const CLOSE_CODES: ReadonlyMap<number, number> = new Map([
  [1000, 1000],
  [1001, 1000],
  ...[1009, 1012, 1013].map((code) => [code, code] as const),
]);

/**
 * Passes the events of a session on between a client and a provider. Nothing that may begin a response goes to the
 * provider before a lock waits for the response, and the end of a response goes to the client once it is settled.
 */
export class RealtimeSession {
  readonly #options: RealtimeSessionOptions;
  readonly #settings: SessionSettings;
  /** The provider dialled in, so only what its client can check is paid. */
  readonly #isForeign: boolean;
  /** Tokens of sound that the client has sent, and responses that nobody asked for. */
  #heardTokens = 0;
  #unasked = 0;
  /** Ids of responses that are not passed on: they began without a lock, or have ended. */
  readonly #closedResponses = new Set<string>();
  /** Ids of the client's events, or of the gateway's own, that ask for a response, and that change the session. */
  readonly #requestedIds = new Set<string>();
  readonly #updates = new Set<string>();
  /** Ids that the gateway gave to events of the client. */
  readonly #ownIds = new Set<string>();
  /** The client has sent sound, which may begin a response at any time. */
  #hasHeard = false;
  /** The session ends: nothing of the client goes to the provider any more. */
  #ending = false;
  #toldOfRate = false;
  #idle: NodeJS.Timeout | undefined;
  #onQuiet: (() => void) | null = null;

  constructor(options: RealtimeSessionOptions) {
    this.#options = options;
    this.#isForeign = options.offer.endpoint.kind === 'tunnel';
    this.#settings = new SessionSettings(options.session, options.outputCap, !this.#isForeign);
    if (options.configured !== null) {
      this.#settings.sent(options.configured);
      this.#settings.confirmed(options.session);
    }
    const cut = (id: string, error: unknown) => this.#cut(id, error);
    options.locks.onCut = cut;
    this.#measure();
  }

  /** Resolves when the session has ended, and everything of it is settled. */
  async run(): Promise<void> {
    const { client, provider, session, locks, over } = this.#options;
    const stop = () => void this.#end(toGatewayError(over.reason));
    over.addEventListener('abort', stop);
    try {
      if (over.aborted) stop();
      const first = { type: 'session.created', event_id: ownEventId(), session: this.#shownSession(session) };
      void client.send(JSON.stringify(first));
      this.#touch();
      await Promise.all([this.#readClient(), this.#readProvider()]);
    } finally {
      over.removeEventListener('abort', stop);
      clearTimeout(this.#idle);
      locks.close();
      provider.close(1000, '');
      client.close(1000, '');
    }
  }

  async #readClient(): Promise<void> {
    const { client, turns } = this.#options;
    const tell = () => this.#tellOfRate();
    for (;;) {
      const message = await client.next();
      if (message === null) break;
      if (this.#ending) continue;
      this.#touch();
      const turn = turns.client(client.weigh(message), tell, client.gone);
      if (turn !== null) {
        await turn;
        // An event that waits does not keep the session of a client that has left.
        if (client.closed !== null) break;
      }
      if (!this.#ending) await this.#take(message);
    }
    if (!this.#ending) this.#clientLeft();
  }

  /** Its events wait, so one error is enough: a session that is always too fast would get as many as it sends. */
  #tellOfRate(): void {
    if (this.#toldOfRate || this.#ending) return;
    this.#toldOfRate = true;
    const error = new GatewayError(
      'rate_limit_exceeded',
      'Events of this account come faster than they are taken here: nothing is lost, but from now on what is too fast waits',
    );
    void this.#options.client.send(errorEvent(error, null));
  }

  async #take(message: Buffer | 'binary'): Promise<void> {
    const { client, limits } = this.#options;
    let id: string | null = null;
    try {
      if (message === 'binary')
        throw new GatewayError('invalid_request', 'Events are text messages with JSON, and this message is binary');
      const event = await readJson(message, limits);
      if (!isObject(event)) throw new GatewayError('invalid_request', 'An event is a JSON object with a type');
      if (typeof event['event_id'] === 'string') id = event['event_id'].slice(0, 512);
      await this.#forward(readClientEvent(event, this.#rules()));
    } catch (error) {
      const known = toGatewayError(error);
      if (known.code === 'internal') this.#options.onError(error);
      // Only a fault of the event itself leaves the session as it was.
      if (known.code === 'invalid_request' || known.code === 'rate_limit_exceeded')
        await client.send(errorEvent(known, id));
      else void this.#end(known, id);
    }
  }

  async #forward({ kind, event, grows, leftOut }: ClientEvent): Promise<void> {
    const { client, provider, locks } = this.#options;
    const sent: Record<string, unknown> = { ...event };
    if (kind === 'respond') {
      if (locks.promised + locks.running.size >= RESPONSES_MAX)
        throw new GatewayError(
          'rate_limit_exceeded',
          `${RESPONSES_MAX} responses of this session are not done yet: wait for the end of one`,
        );
      locks.extra = plus(locks.extra, grows);
      await this.#locked(locks.promised + 1 + (this.#mayRespond() ? 1 : 0));
      locks.promised++;
      remember(this.#requestedIds, this.#withId(sent));
    } else {
      locks.grown = plus(locks.grown, grows);
      if (kind === 'session') {
        this.#settings.sent(sent['session'] as JsonObject);
        this.#measure();
        remember(this.#updates, this.#withId(sent));
      }
      if (kind === 'audio') {
        this.#hasHeard = true;
        this.#heardTokens += grows.audioTokens;
      }
      // A response may begin by itself, so a lock of the right size has to wait for it.
      if (this.#mayRespond()) await this.#lockedInTime(locks.promised + 1);
    }
    if (this.#ending) return;
    await provider.send(JSON.stringify(sent));
    if (leftOut !== null) await client.send(errorEvent(leftOut, (event['event_id'] as string | undefined) ?? null));
  }

  /** Sound that came may begin a response without being asked. */
  #mayRespond(): boolean {
    return this.#hasHeard && this.#settings.respondsToSound;
  }

  async #locked(count: number): Promise<void> {
    const { locks } = this.#options;
    locks.outputMax = this.#settings.outputMax;
    await locks.ensure(count);
  }

  /** Sound cannot be sent again, so it waits for a rate that is used up, and holds its client back. */
  async #lockedInTime(count: number): Promise<void> {
    for (let waits = 0; ; waits++) {
      try {
        return await this.#locked(count);
      } catch (error) {
        const isRate = error instanceof GatewayError && error.code === 'rate_limit_exceeded';
        if (!isRate || waits >= WAITS_MAX || this.#ending)
          throw isRate ? new GatewayError('service_unavailable', error.message) : error;
        await new Promise((resolve) => setTimeout(resolve, (error.retryAfterS ?? 1) * 1000));
      }
    }
  }

  async #readProvider(): Promise<void> {
    const { client, provider, locks, turns } = this.#options;
    const wait = () => {};
    for (;;) {
      const message = await provider.next();
      if (message === null) break;
      const turn = turns.provider(provider.weigh(message), wait);
      if (turn !== null) await turn;
      const event = await readEvent(message);
      if (event === null) {
        void this.#end(new GatewayError('provider_unavailable', 'The provider sent something that is not an event'));
        continue;
      }
      const text = await this.#answer(event, message as Buffer);
      if (text !== null) await client.send(text);
    }
    await this.#providerLeft();
    // What runs is settled before the session is over.
    await Promise.allSettled([...locks.running.values()].map(({ settled }) => settled));
  }

  /** The client gets this for an event of the provider: a text, or the event as it came. null for nothing. */
  async #answer(event: JsonObject, message: Buffer): Promise<string | Buffer | null> {
    switch (event['type']) {
      case 'session.created':
      case 'session.updated':
        this.#settings.confirmed(event['session']);
        this.#measure();
        return JSON.stringify({ ...event, session: this.#shownSession(event['session']) });
      case 'response.created':
        return (await this.#running(idIn(event['response']))) === null ? null : message;
      case 'response.done':
        return this.#done(event);
      case 'error':
        return this.#failed(event);
      default:
        return this.#part(event, message);
    }
  }

  async #part(event: JsonObject, message: Buffer): Promise<Buffer | null> {
    const { response_id: id, type, delta } = event;
    if (typeof id === 'string') {
      const call = await this.#running(id);
      if (call === null) return null;
      if (typeof delta === 'string' && (!this.#isForeign || DELTAS.has(type as string))) {
        const isSound = (type as string).endsWith('audio.delta');
        if (isSound) call.deliver(0, (delta.length * 0.75) / this.#settings.outputBytesOfSecond);
        else call.deliver(Buffer.byteLength(delta), 0);
      }
    }
    return message;
  }

  /** The call of a response, which takes a lock that waits if the response is new. null if it is not passed on. */
  async #running(id: string | null): Promise<ResponseCall | null> {
    const { locks } = this.#options;
    if (id === null || this.#closedResponses.has(id)) return null;
    const known = locks.running.get(id);
    if (known !== undefined) return known;
    if (!this.#mayBegin()) return this.#refuse(id);
    // Sound may begin several responses one after the other. The lock that is asked for below may be on its way.
    if (!locks.isReady && !this.#ending)
      await this.#lockedInTime(1).catch((error: unknown) => void this.#end(toGatewayError(error)));
    const call = locks.take(id);
    if (call === null) return this.#refuse(id);
    if (this.#ending) this.#cancel(id, call);
    else if (this.#mayRespond())
      this.#lockedInTime(locks.promised + 1).catch((error: unknown) => void this.#end(toGatewayError(error)));
    return call;
  }

  /**
   * Whether a response may begin now. A provider that dialled in could begin responses that nobody asked for, and be
   * paid for the whole conversation with each. It may do so for turns that it hears: one, and one more for each second
   * of sound that it got.
   */
  #mayBegin(): boolean {
    if (!this.#isForeign || this.#options.locks.promised > 0) return true;
    if (!this.#mayRespond() || this.#unasked > this.#heardTokens / TOKENS_PER_SECOND) return false;
    this.#unasked++;
    return true;
  }

  /** Nothing pays for a response, so the client gets nothing of it. */
  async #refuse(id: string): Promise<null> {
    remember(this.#closedResponses, id);
    await this.#options.provider.send(cancelOf(id));
    if (this.#isQuiet()) this.#onQuiet?.();
    return null;
  }

  async #done(event: JsonObject): Promise<string | null> {
    const { locks, onError } = this.#options;
    const { response } = event;
    const id = idIn(response);
    const call = await this.#running(id);
    if (id === null || call === null) return null;
    try {
      const settled = await call.done(response);
      const usage = usageWithCost(settled);
      return JSON.stringify({
        ...event,
        response: { ...(response as JsonObject), usage, tollgate: { generation_id: call.id } },
      });
    } catch (error) {
      onError(error);
      void this.#end(toGatewayError(error));
      return null;
    } finally {
      remember(this.#closedResponses, id);
      locks.ended(id, call);
      if (this.#isQuiet()) this.#onQuiet?.();
    }
  }

  /** An error of the provider. It may be the answer to an event that asked for a response or changed the session. */
  #failed(event: JsonObject): string {
    const { locks, scrub } = this.#options;
    const error = isObject(event['error']) ? event['error'] : {};
    const { event_id: id } = error;
    let shownEvent = event;
    if (typeof id === 'string') {
      if (this.#requestedIds.delete(id)) locks.promised = Math.max(0, locks.promised - 1);
      if (this.#updates.delete(id)) this.#settings.refused();
      if (this.#ownIds.has(id)) shownEvent = { ...event, error: { ...error, event_id: null } };
    }
    if (this.#isQuiet()) this.#onQuiet?.();
    return scrub(JSON.stringify(shownEvent));
  }

  async #providerLeft(): Promise<void> {
    const { locks, client, provider } = this.#options;
    const wasEnding = this.#ending;
    this.#ending = true;
    const runningCalls = [...locks.running.values()];
    for (const call of runningCalls) call.providerLeft();
    await Promise.allSettled(runningCalls.map(({ settled }) => settled));
    locks.running.clear();
    this.#onQuiet?.();
    if (wasEnding) return;
    void client.send(errorEvent(new GatewayError('provider_unavailable', 'The provider ended the session'), null));
    client.close(CLOSE_CODES.get(provider.closed?.code ?? 0) ?? 1011, 'The provider ended the session');
  }

  /** Ends what runs, as far as its provider ends it in time. Then the session is over. */
  #clientLeft(): void {
    const { locks, provider, drainMs } = this.#options;
    this.#ending = true;
    for (const [id, call] of locks.running) this.#cancel(id, call);
    void this.#quiet(drainMs).then(() => {
      locks.close();
      provider.close(1000, '');
    });
  }

  #cancel(id: string, call: ResponseCall): void {
    void this.#options.provider.send(cancelOf(id));
    call.clientLeft();
  }

  /**
   * Ends the session with an error: nothing more goes to the provider, what runs may end in time, and then the client
   * is disconnected.
   */
  async #end(error: GatewayError, id: string | null = null): Promise<void> {
    if (this.#ending) return;
    const { client, provider, locks, drainMs } = this.#options;
    this.#ending = true;
    void client.send(errorEvent(error, id));
    await this.#quiet(drainMs);
    for (const [running, call] of locks.running) this.#cancel(running, call);
    await this.#quiet(drainMs);
    locks.close();
    client.close(closeCodeOf(error), error.message);
    provider.close(1000, '');
  }

  #isQuiet(): boolean {
    const { running, promised } = this.#options.locks;
    return running.size === 0 && promised === 0;
  }

  /** Resolves when no response runs and none is expected, or after this time. */
  async #quiet(ms: number): Promise<void> {
    if (this.#isQuiet()) return;
    await new Promise<void>((resolve) => {
      const late = setTimeout(resolve, ms);
      const quiet = () => {
        clearTimeout(late);
        resolve();
      };
      this.#onQuiet = quiet;
    });
    this.#onQuiet = null;
  }

  /** A response whose lock has ended: it took too long, or the gateway stops. What came of it is charged. */
  #cut(id: string, error: unknown): void {
    const { client, provider } = this.#options;
    remember(this.#closedResponses, id);
    void provider.send(cancelOf(id));
    if (!this.#ending)
      void client.send(
        errorEvent(
          error === null
            ? new GatewayError(
                'reply_cut',
                `Response ${id} took too long and was cut. The part that arrived is charged`,
              )
            : toGatewayError(error),
          null,
        ),
      );
    if (this.#isQuiet()) this.#onQuiet?.();
  }

  #shownSession(session: unknown): unknown {
    return shownSession(session, this.#options.model);
  }

  /** The instructions and tools of the session are a part of each prompt. */
  #measure(): void {
    const { locks } = this.#options;
    locks.base = this.#settings.promptBytes;
  }

  #rules() {
    const { offer, model, outputCap } = this.#options;
    return rulesAt(offer, {
      names: [model, offer.service],
      outputMax: outputCap,
      bytesOfSecond: this.#settings.inputBytesOfSecond,
      spokenBytesOfSecond: this.#settings.outputBytesOfSecond,
    });
  }

  /** The id of an event, which gets one if it has none. */
  #withId(event: Record<string, unknown>): string {
    const { event_id: id } = event;
    if (typeof id === 'string') return id;
    const own = ownEventId();
    remember(this.#ownIds, own);
    event['event_id'] = own;
    return own;
  }

  #touch(): void {
    clearTimeout(this.#idle);
    const { idleMs } = this.#options;
    this.#idle = setTimeout(() => {
      void this.#end(
        new GatewayError('request_timeout', `The session ends, because no event came for ${idleMs / 1000} s`),
      );
    }, idleMs);
  }
}
