import { isObject, type LargeStrings, OWN_TURN_BYTES, ownTurn, UpstreamFailure, BOUNDS, parseForeign } from '#wire';
import {
  type JsonRpcError,
  type JsonRpcMessage,
  readEventData,
  readBatches,
  readText,
  credentialFailure,
  unreadable,
  refuseOtherAnswer,
  refusesCredentials,
  resultTextOf,
  hasEvents,
  type LargeReply,
} from '#json-rpc';
import type { UpstreamReply } from '#call';
import type { Link } from './resolve.ts';
import { withoutMoney } from '../protocol/metadata.ts';
import { A2A_ERRORS, errorNameOf } from '../wire/errors.ts';
import { resultFromBare } from '../wire/bare-body.ts';
import { exactValue } from '../wire/edit-json.ts';

/** A result, an event or an error of an agent, in the version of the link. */
export type AgentSaid = AgentResult | { readonly kind: 'error'; readonly error: JsonRpcError };

interface AgentResult {
  readonly kind: 'result';
  /** With marks instead of the strings in `large`; so is `value`. */
  readonly text: string;
  readonly value: unknown;
  /** null: it has no marks. */
  readonly large: LargeStrings | null;
}

/**
 * Reads an agent's answer to the request with this id, piece by piece: the pieces of one read together. Throws
 * UpstreamFailure if the answer is not A2A, belongs to another request, or has a piece of more than `bytesMax` bytes,
 * after the pieces before it. `large`: large strings of an answer do not count as part of such a piece, and are
 * replaced by marks.
 */
export async function* readAgentBatches(
  link: Link,
  id: string,
  reply: UpstreamReply,
  bytesMax: number,
  large?: LargeReply,
): AsyncGenerator<readonly AgentSaid[], void, undefined> {
  const { status } = reply;
  if (refusesCredentials(status)) throw await credentialFailure('the agent', reply);
  if (link.binding === 'jsonrpc') {
    // Each event is part of the answer. A client of A2A ends the stream at an event that it cannot read.
    for await (const messages of readBatches(reply, bytesMax, { strict: true, large }))
      yield* inOrder(messages, ({ message }) => (message === null ? null : saidIn(message, id, status, large)));
    return;
  }
  if (hasEvents(reply)) {
    for await (const events of readEventData(reply, bytesMax, large)) {
      if (events.some(({ data }) => data.length > OWN_TURN_BYTES)) await ownTurn();
      yield* inOrder(events, ({ data, event }) => {
        if (data === '') return null;
        const value = parse(data, reply);
        if (event !== 'error') return resultOf(data, value, large);
        refuseLargeError(data, large, status);
        return { kind: 'error', error: errorOf(parse(reply.scrub(data), reply), reply, data) };
      });
    }
    return;
  }
  const text = await readText(reply, bytesMax, large);
  if (text.length > OWN_TURN_BYTES) await ownTurn();
  // The deletion of a push notification configuration has an empty answer.
  const value = text === '' && status < 300 ? {} : parse(text, reply);
  if (status >= 400) {
    refuseLargeError(text, large, status);
    return yield [{ kind: 'error', error: errorOf(parse(reply.scrub(text), reply), reply, text) }];
  }
  // Its writer may read the text once more.
  if (text.length > OWN_TURN_BYTES) await ownTurn();
  if (link.binding === 'rest') return yield [resultOf(text === '' ? '{}' : text, value, large)];
  const result = resultFromBare(exactValue(text, value));
  if (result === null) throw broken('the agent answered with no task', status);
  yield [resultOf(JSON.stringify(result), result, large)];
}

export async function* readAgent(
  ...answer: Parameters<typeof readAgentBatches>
): AsyncGenerator<AgentSaid, void, undefined> {
  for await (const pieces of readAgentBatches(...answer)) yield* pieces;
}

/** The answers in the pieces of one read, together. If a piece cannot be read, those before it come first. */
function* inOrder<T>(pieces: readonly T[], read: (piece: T) => AgentSaid | null): Iterable<readonly AgentSaid[]> {
  const messages: AgentSaid[] = [];
  try {
    for (const piece of pieces) {
      const one = read(piece);
      if (one !== null) messages.push(one);
    }
  } finally {
    if (messages.length > 0) yield messages;
  }
}

function saidIn(message: JsonRpcMessage, id: string, status: number, large: LargeReply | undefined): AgentSaid {
  if (message.kind !== 'response') throw broken('the agent sent something that is not a response', status);
  refuseOtherAnswer(message, id, status);
  if (message.error !== undefined) {
    refuseLargeError(message.text, large, status);
    return { kind: 'error', error: message.error };
  }
  return resultOf(resultTextOf(message), message.result, large);
}

/** Throws UpstreamFailure for an error with large strings, because the provider's secrets could be in them. */
function refuseLargeError(text: string, large: LargeReply | undefined, status: number): void {
  if (large?.strings.isIn(text)) throw broken('the agent answered with an error that is too large', status);
}

/** Removes the members about money from an agent's value, because only this gateway may set them. */
function resultOf(text: string, value: unknown, large?: LargeReply): AgentResult {
  const clean = withoutMoney(value);
  return {
    kind: 'result',
    large: large?.strings.isIn(text) ? large.strings : null,
    text: clean === value ? text : JSON.stringify(withoutMoney(exactValue(text, value))),
    value: clean,
  };
}

/**
 * Reads an error of HTTP+JSON as an error of JSON-RPC, by its reason. Throws UpstreamFailure for a value that is no A2A
 * error: then the server is broken.
 */
function errorOf(value: unknown, reply: UpstreamReply, text: string): JsonRpcError {
  const { status } = reply;
  const refused = () => unreadable(`the agent answered with status ${status}`, reply, text);
  const error = isObject(value) && isObject(value['error']) ? value['error'] : value;
  if (!isObject(error) || typeof error['message'] !== 'string') throw refused();
  const { details, code } = error;
  const message = error['message'].slice(0, MESSAGE_CHARS_MAX);
  for (const detail of Array.isArray(details) ? (details as unknown[]).slice(0, DETAILS_MAX) : []) {
    const reasonCode = isObject(detail) ? BY_REASON.get(detail['reason']) : undefined;
    if (reasonCode !== undefined) return { code: reasonCode, message, data: details };
  }
  if (typeof code === 'number' && errorNameOf(code) !== null) return { code, message };
  if (status >= 500 || status === 429) throw refused();
  return { code: status === 404 ? A2A_ERRORS.TaskNotFound.code : A2A_ERRORS.InvalidParams.code, message };
}

const DETAILS_MAX = 20;
const MESSAGE_CHARS_MAX = 4_096;
const BY_REASON: ReadonlyMap<unknown, number> = new Map(
  Object.values(A2A_ERRORS).map(({ reason, code }) => [reason, code]),
);

function parse(text: string, reply: UpstreamReply): unknown {
  const { status } = reply;
  try {
    return parseForeign(text, BOUNDS.message);
  } catch (error) {
    throw unreadable(
      status >= 400 ? `the agent answered with status ${status}` : 'the agent answered with text that is not JSON',
      reply,
      text,
      error,
    );
  }
}

/** A failure that is never retried, because the agent may already have acted. */
export function broken(message: string, status: number | null, cause?: unknown): UpstreamFailure {
  return new UpstreamFailure(message, {
    status,
    retryable: false,
    attributedTo: 'provider',
    ...(cause === undefined ? {} : { cause }),
  });
}
