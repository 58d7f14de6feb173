import { randomUUID } from 'node:crypto';
import { GatewayError, GatewayStopping } from '#errors';
import { isObject, type JsonObject, type Members, membersOf, RawJsonError, Shares } from '#wire';
import type { RequestId, RequestMessage } from '#json-rpc';
import type { SessionCall } from './session-call.ts';

/** A call at a legacy server that waits until its modern client has answered the server's questions. */
interface HeldCall {
  readonly account: string;
  readonly offerId: string;
  readonly method: string;
  /** The called tool, prompt or resource; null for other methods. */
  readonly name: string | null;
  readonly call: SessionCall;
  readonly questions: Questions;
}

type HeldFor = Pick<HeldCall, 'account' | 'offerId' | 'method' | 'name'>;

/** Calls that wait between two rounds. Each can be taken once only, so that one answer pays for one piece of work. */
export interface HeldCalls {
  /**
   * Keeps a call until it is taken, and cancels it after `ttlMs`. Returns its id. Throws GatewayError if too many calls
   * are held.
   */
  hold(held: HeldCall): string;
  /** Takes a call. Null if it is gone or belongs to another request; `elsewhere` if another gateway holds it. */
  take(id: string, purpose: HeldFor): HeldCall | 'elsewhere' | null;
  readonly size: number;
  /** Cancels all calls. After this, no call is kept. */
  close(): void;
}

export interface HeldCallsOptions {
  /** Id of this gateway in its installation. */
  readonly nodeId: string;
  /** Default 5 min. */
  readonly ttlMs?: number;
  /** Most held calls of one account. Default 100. */
  readonly perAccountMax?: number;
  /** Most held calls at one offer. Each keeps one or two connections to it open. Default 256. */
  readonly perOfferMax?: number;
  /** Most held calls in all. Default 10,000. */
  readonly max?: number;
  /** Most characters of all questions together. Default 256 Mi. */
  readonly charsMax?: number;
}

const EXPIRED = new Error('the client did not answer in time');
const CLOSED = new Error('the gateway is shutting down');

export function createHeldCalls(options: HeldCallsOptions): HeldCalls {
  const {
    nodeId,
    ttlMs = 5 * 60_000,
    perAccountMax = 100,
    perOfferMax = 256,
    max = 10_000,
    charsMax = 256 * 1024 * 1024,
  } = options;
  const byId = new Map<string, { readonly held: HeldCall; readonly timer: NodeJS.Timeout; readonly chars: number }>();
  let closed = false;
  const calls = new Shares(max, perAccountMax);
  const chars = new Shares(charsMax);
  /** By offer: its calls, by account. */
  const ofOffers = new Map<string, Shares>();
  const prefix = `${Buffer.from(nodeId).toString('base64url')}.`;

  function remove(id: string): HeldCall | null {
    const entry = byId.get(id);
    if (!entry) return null;
    byId.delete(id);
    clearTimeout(entry.timer);
    const { account, offerId } = entry.held;
    calls.leave(account);
    chars.leave(account, entry.chars);
    const ofOffer = ofOffers.get(offerId)!;
    ofOffer.leave(account);
    if (ofOffer.all === 0) ofOffers.delete(offerId);
    return entry.held;
  }

  return {
    hold(held) {
      const again = { retryAfterS: 1 };
      if (closed) throw new GatewayStopping();
      const { account, offerId, questions } = held;
      const ofOffer = ofOffers.get(offerId) ?? new Shares(perOfferMax);
      if (!calls.mayTake(account) || !ofOffer.mayTake(account) || !chars.mayTake(account, questions.chars)) {
        const own = calls.amountOf(account);
        if (own === 0) throw new GatewayError('service_unavailable', 'Too many calls wait for input', again);
        throw new GatewayError(
          'rate_limit_exceeded',
          `This account has ${own} calls that wait for input, which is its share: answer one of them first`,
          again,
        );
      }
      const id = `${prefix}${randomUUID()}`;
      const timer = setTimeout(() => remove(id)?.call.cancel(EXPIRED), ttlMs).unref();
      byId.set(id, { held, timer, chars: questions.chars });
      calls.take(account);
      chars.take(account, questions.chars);
      ofOffer.take(account);
      ofOffers.set(offerId, ofOffer);
      return id;
    },
    take(id, { account, offerId, method, name }) {
      if (!id.startsWith(prefix)) return 'elsewhere';
      const held = byId.get(id)?.held;
      const same =
        held?.account === account && held.offerId === offerId && held.method === method && held.name === name;
      return same ? remove(id) : null;
    },
    get size() {
      return byId.size;
    },
    close() {
      closed = true;
      for (const id of byId.keys()) remove(id)?.call.cancel(CLOSED);
    },
  };
}

export interface Questions {
  readonly size: number;
  /** Characters of all open questions. */
  readonly chars: number;
  add(request: RequestMessage): void;
  drop(id: unknown): void;
  /** `inputRequests` as JSON text. */
  toInputRequests(): string;
  /**
   * Takes the answers from a request that continues the call, and returns them as responses for the server (JSON text).
   * Questions without a usable answer stay, and are asked again.
   */
  answer(request: RequestMessage): readonly string[];
}

interface Question {
  readonly key: string;
  readonly id: RequestId;
  readonly idText: string;
  /** `{"method":…,"params":…}`. */
  readonly text: string;
}

export const QUESTIONS_MAX = 32;
export const QUESTIONS_CHARS_MAX = 4 * 1024 * 1024;

export function createQuestions(): Questions {
  return new OpenQuestions();
}

class OpenQuestions implements Questions {
  #open: readonly Question[] = [];
  #count = 0;

  get size(): number {
    return this.#open.length;
  }

  get chars(): number {
    return this.#open.reduce((sum, { text }) => sum + text.length, 0);
  }

  add({ id, idText, method, text, members }: RequestMessage): void {
    const params = members.get('params');
    // `params` is always there, because some clients cannot read a question without it.
    const question = `{"method":${JSON.stringify(method)},"params":${params ? text.slice(params.start, params.end) : '{}'}}`;
    this.#open = [...this.#open, { key: `input-${++this.#count}`, id, idText, text: question }];
  }

  drop(id: unknown): void {
    this.#open = this.#open.filter((question) => question.id !== id);
  }

  toInputRequests(): string {
    return `{${this.#open.map(({ key, text }) => `"${key}":${text}`).join(',')}}`;
  }

  answer({ text, params, members }: RequestMessage): readonly string[] {
    const responses = params?.['inputResponses'];
    if (!isObject(responses)) return [];
    const places = placesOf(text, members);
    const answered = this.#open.filter(({ key }) => places.has(key) && isAnswer(responses[key]));
    this.#open = this.#open.filter((question) => !answered.includes(question));
    return answered.map(({ key, idText }) => `{"jsonrpc":"2.0","id":${idText},"result":${at(text, places, key)}}`);
  }
}

/** The places of the answers; empty if a key occurs twice. */
function placesOf(text: string, members: Members): Members {
  const { start } = membersOf(text, members.get('params')!.start).get('inputResponses')!;
  try {
    return membersOf(text, start);
  } catch (error) {
    if (error instanceof RawJsonError) return new Map();
    throw error;
  }
}

/** Whether a value is a plain result. Some clients wrap the result, which no server would understand. */
const isAnswer = (value: unknown) => isObject(value) && !('method' in value) && !('result' in value);

function at(text: string, members: Members, key: string): string {
  const { start, end } = members.get(key)!;
  return text.slice(start, end);
}

export function canAnswer(capabilities: JsonObject, { method, params }: RequestMessage): boolean {
  if (method === 'roots/list') return isObject(capabilities['roots']);
  if (method === 'sampling/createMessage') {
    const { sampling } = capabilities;
    return isObject(sampling) && (params?.['tools'] === undefined || isObject(sampling['tools']));
  }
  if (method !== 'elicitation/create') return false;
  const { elicitation } = capabilities;
  if (!isObject(elicitation)) return false;
  // Without any mode it means forms, as in revisions before there were modes.
  return params?.['mode'] === 'url'
    ? isObject(elicitation['url'])
    : isObject(elicitation['form']) || !isObject(elicitation['url']);
}

export const canBeAsked = (capabilities: JsonObject): boolean =>
  ['elicitation', 'sampling', 'roots'].some((key) => isObject(capabilities[key]));
