import { setImmediate as nextTurn } from 'node:timers/promises';
import { aroundResult, errorText, resultText } from '#json-rpc';
import { type ClientSink, slicesOf, type ClientAnswer, toGatewayError } from '#http';
import { charsOf, editText, eventText, isObject, type MarkedText, OWN_TURN_BYTES, ownTurn } from '#wire';
import type { Around } from '#files';
import {
  A2A_ERRORS,
  A2aError,
  errorNameOf,
  errorValue,
  restMediaType,
  toA2aError,
  type A2aBinding,
} from '../wire/errors.ts';
import { exactly } from '../wire/edit-json.ts';
import { isStreaming, type A2aOperation, type A2aVersion } from '../wire/protocol.ts';
import { legacyRestResult } from '../wire/rest-legacy.ts';
import { bareFromResult } from '../wire/bare-body.ts';

/**
 * Writes the reply to one request. It puts results, JSON text in the client's version, into the envelope of the
 * binding.
 */
export interface ReplyWriter {
  /**
   * Writes an event of a stream that goes on. Resolves when more can be written. `headers` are for the head of the
   * stream, so only those of the first event count.
   */
  event(text: string | MarkedText, headers?: Readonly<Record<string, string>>): Promise<void>;
  /** Writes the result, or the last event of a stream. `headers` count only if the reply has not begun. */
  result(text: string | MarkedText, headers?: Readonly<Record<string, string>>): Promise<void>;
  /** The form of results in this binding. */
  readonly form: ResultForm;
  formed<S extends string | MarkedText>(text: S): S;
  /** A byte sink for a result that is stored as a file in this form; null if the reply takes text only. */
  body(): { readonly client: ClientSink; readonly around: Around } | null;
  fail(thrown: unknown): Promise<void>;
  refused(error: { readonly code: number; readonly message: string; readonly data?: unknown }): Promise<void>;
  close(): Promise<void>;
}

/** `result` is the form of JSON-RPC, which most bindings use. */
type ResultForm = 'result' | 'bare' | 'rest-0.3';

/** The binding, version and id that decide the form of a reply. */
export interface ReplyEnvelope {
  readonly version: A2aVersion;
  readonly binding: A2aBinding;
  /** The id of the request as JSON text, for JSON-RPC. */
  readonly idText: string;
  /** null while the operation is not known. */
  readonly operation: A2aOperation | null;
  /** The body was a bare message, so the reply is a bare task. */
  readonly bare?: boolean;
}

interface ReplyWriterOptions extends ReplyEnvelope {
  /** The media types that the client accepts, as its header says them. */
  readonly accept?: string | undefined;
  /** Opens the answer. `headers` is called for the headers of a stream when its head is written. */
  readonly answer: (headers: () => Readonly<Record<string, string>>) => ClientAnswer;
  /** More headers for a reply that is not a stream. Called when it is written. */
  readonly moreHeaders: () => Readonly<Record<string, string>>;
  readonly onError: (error: unknown) => void;
  /** Told of each error that is the reply. */
  readonly onRefused?: (error: unknown) => void;
}

const NOTHING = Buffer.alloc(0);

/** Writes results in the form of the binding: in a JSON-RPC response with the id, or unchanged on HTTP+JSON. */
export function createReplyWriter({
  answer: open,
  version,
  binding,
  idText,
  operation,
  bare = false,
  accept,
  moreHeaders,
  onError,
  onRefused,
}: ReplyWriterOptions): ReplyWriter {
  // A bare message is sent to a JSON-RPC address, and all errors there have the form of JSON-RPC.
  const rest = binding === 'rest' && !bare;
  // Clients of 0.3 that asked for a stream can read errors only as events.
  const failsInEvent = version === '0.3' && !rest && operation !== null && isStreaming(operation);
  const streams = operation !== null && isStreaming(operation);
  const around = <S extends string | MarkedText>(text: S): S => editText(text, aroundText);
  // Version 0.3 has its own form of results on HTTP+JSON.
  const form = bare ? 'bare' : rest && version === '0.3' && operation !== null ? 'rest-0.3' : 'result';
  const formedText = (text: string): string => {
    if (form === 'result') return text;
    return bare ? bareText(text) : JSON.stringify(legacyRestResult(operation!, exactly(text)));
  };
  const aroundText = (text: string) => {
    if (bare) return text;
    return rest ? formedText(text) : resultText(idText, text);
  };
  const type = { 'content-type': rest ? restMediaType(version, accept) : 'application/json' };
  let begun = false;
  let head: Readonly<Record<string, string>> = {};
  const answer = open(() => head);

  const fail = async (status: number, headers: Readonly<Record<string, string>>, text: string, inStream: string) => {
    if (!begun && failsInEvent && status === 200) await answer.events(NOTHING);
    else if (!begun) return answer.end(text, status, { ...headers, ...moreHeaders(), ...type });
    // On HTTP+JSON only the name of the event distinguishes an error from a result.
    if (!rest) return answer.end(inStream, 200);
    await answer.events(Buffer.from(eventText(inStream, null, 'error')));
    answer.close();
  };

  return {
    async event(text, headers) {
      if (!begun && headers) head = headers;
      begun = true;
      const frame = editText(around(text), (plain) => eventText(plain));
      if (typeof frame === 'string') return answer.events(Buffer.from(frame));
      for (const piece of frame.large.piecesOf(frame.text))
        for (const slice of slicesOf(piece)) {
          await answer.events(slice);
          await nextTurn();
        }
    },
    async result(text, headers = {}) {
      if (charsOf(text) > OWN_TURN_BYTES) await ownTurn();
      if (streams) {
        // A client that asked for a stream gets a stream even for a single event.
        if (!begun) head = headers;
        await answer.events(NOTHING);
        answer.end(around(text), 200);
      } else if (bare) {
        answer.end(editText(text, formedText), 200, { ...headers, ...moreHeaders() });
      } else answer.end(around(text), 200, { ...headers, ...moreHeaders(), ...type });
    },
    form,
    formed: (text) => editText(text, formedText),
    body() {
      const client = answer.body(streams);
      const text = rest || bare ? { before: '', after: '' } : aroundResult(idText);
      return client && { client, around: { ...text, headers: { ...moreHeaders(), ...type } } };
    },
    async fail(thrown) {
      onRefused?.(thrown);
      const fault = worthTelling(thrown);
      if (fault !== null) onError(fault);
      const target = { version, binding: rest ? binding : 'jsonrpc', bare, idText } as const;
      const { status, headers, text } = toA2aError(thrown, target);
      await fail(status, headers, text, rest ? JSON.stringify(errorValue(thrown, target)) : text);
    },
    async refused(error) {
      const text = rest ? JSON.stringify(restError(version, error)) : errorText(idText, error);
      await fail(rest || bare ? statusOf(error.code) : 200, {}, text, text);
    },
    async close() {
      await answer.events(NOTHING);
      answer.close();
    },
  };
}

/** The bare task of a result; the result unchanged if it holds no task. */
function bareText(text: string): string {
  const task = bareFromResult(exactly(text));
  return task === null ? text : JSON.stringify(task);
}

function restError(
  version: A2aVersion,
  error: { readonly code: number; readonly message: string; readonly data?: unknown },
): object {
  if (version === '0.3') return error;
  const details = Array.isArray(error.data) ? error.data.filter(isObject) : [];
  return { error: { code: statusOf(error.code), status: canonicalOf(error.code), message: error.message, details } };
}

const rowOf = (code: number) => A2A_ERRORS[errorNameOf(code) ?? 'InternalError'];
const statusOf = (code: number): number => rowOf(code).status;
const canonicalOf = (code: number): string => rowOf(code).canonical;

/**
 * The part of an error that the operator should see: the cause of an error of the gateway. null for errors of clients
 * and agents, and for intended refusals.
 */
function worthTelling(thrown: unknown): unknown {
  if (thrown instanceof A2aError) return null;
  const { code, cause } = toGatewayError(thrown);
  if (code === 'internal') return cause ?? thrown;
  return code === 'service_unavailable' ? (cause ?? null) : null;
}
