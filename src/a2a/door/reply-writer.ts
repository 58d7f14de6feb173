import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  aroundResult,
  type ClientSink,
  editText,
  errorText,
  eventText,
  isObject,
  type MarkedText,
  resultText,
  slicesOf,
  type Answer,
} from '#wire';
import { toGatewayError } from '#gateway';
import type { Around } from '#tasks';
import { A2A_ERRORS, A2aError, errorNameOf } from '../wire/a2a-error.ts';
import { isStreaming, type Operation } from '../wire/methods.ts';
import { legacyRestResult } from '../wire/rest-legacy.ts';
import { bareFromResult } from '../wire/bare-body.ts';
import { errorValue, REST_MEDIA_TYPES, toA2aError, type A2aBinding } from '../wire/errors-a2a.ts';
import type { A2aVersion } from '../wire/version.ts';

/**
 * Writes the reply to one request. Results are JSON text in the client's version; the binding's envelope goes around
 * them.
 */
export interface ReplyWriter {
  /**
   * Writes an event of a stream that goes on. Resolves when more can be written. `headers` are for the head of the
   * stream: only those of the first event count.
   */
  event(text: string | MarkedText, headers?: Readonly<Record<string, string>>): Promise<void>;
  /** Writes the result, or the last event of a stream. `headers` are for a reply that has not begun. */
  result(text: string | MarkedText, headers?: Readonly<Record<string, string>>): Promise<void>;
  /** The form that the binding has results in. */
  readonly form: ResultForm;
  /** A result in that form. */
  formed<S extends string | MarkedText>(text: S): S;
  /** The result as a sink of bytes, for one that is kept as a file in that form; null where only texts are taken. */
  body(): { readonly client: ClientSink; readonly around: Around } | null;
  /** Writes any thrown value as the error of the wire. */
  fail(thrown: unknown): Promise<void>;
  /** Writes an error in the words of the agent. */
  refused(error: { readonly code: number; readonly message: string; readonly data?: unknown }): Promise<void>;
  /** Ends a stream whose last event was written. */
  close(): Promise<void>;
}

/** Most bindings have what JSON-RPC has. */
type ResultForm = 'result' | 'bare' | 'rest-0.3';

/** The form of a reply. */
export interface ReplyEnvelope {
  readonly version: A2aVersion;
  readonly binding: A2aBinding;
  /** JSON text of the id of the request, on JSON-RPC. */
  readonly idText: string;
  /** null while the operation is not known. */
  readonly operation: Operation | null;
  /** The body was a bare message, so that a bare task comes back. */
  readonly bare?: boolean;
}

interface ReplyWriterOptions extends ReplyEnvelope {
  /** Opens the answer. `headers` gives the headers of a stream when its head is written. */
  readonly answer: (headers: () => Readonly<Record<string, string>>) => Answer;
  /** Gives more headers for a reply that is not a stream, when it is written. */
  readonly moreHeaders: () => Readonly<Record<string, string>>;
  /** Called with errors that are the gateway's own. */
  readonly onError: (error: unknown) => void;
}

const NOTHING = Buffer.alloc(0);

/** Writes results as the binding has them: around the id of JSON-RPC, or as they are on HTTP+JSON. */
export function createReplyWriter({
  answer: open,
  version,
  binding,
  idText,
  operation,
  bare = false,
  moreHeaders,
  onError,
}: ReplyWriterOptions): ReplyWriter {
  // A bare message came to an address of JSON-RPC: errors have one form there.
  const rest = binding === 'rest' && !bare;
  // Clients of 0.3 that asked for events read nothing else.
  const failsInEvent = version === '0.3' && !rest && operation !== null && isStreaming(operation);
  const streams = operation !== null && isStreaming(operation);
  const around = <S extends string | MarkedText>(said: S): S => editText(said, aroundText);
  // 0.3 writes on HTTP+JSON what it writes nowhere else.
  const form = bare ? 'bare' : rest && version === '0.3' && operation !== null ? 'rest-0.3' : 'result';
  const formedText = (text: string): string => {
    if (form === 'result') return text;
    return bare ? bareText(text) : JSON.stringify(legacyRestResult(operation!, JSON.parse(text)));
  };
  const aroundText = (text: string) => {
    if (bare) return text;
    return rest ? formedText(text) : resultText(idText, text);
  };
  const type = { 'content-type': rest ? REST_MEDIA_TYPES[version] : 'application/json' };
  let begun = false;
  let head: Readonly<Record<string, string>> = {};
  const answer = open(() => head);

  const fail = async (status: number, headers: Readonly<Record<string, string>>, text: string, inStream: string) => {
    if (!begun && failsInEvent && status === 200) await answer.events(NOTHING);
    else if (!begun) return answer.end(text, status, { ...headers, ...moreHeaders(), ...type });
    // On HTTP+JSON nothing but the name of the event tells an error from a result.
    if (!rest) return answer.end(inStream, 200);
    await answer.events(Buffer.from(eventText(inStream, null, 'error')));
    answer.close();
  };

  return {
    async event(text, headers) {
      if (!begun && headers) head = headers;
      begun = true;
      const said = editText(around(text), (plain) => eventText(plain));
      if (typeof said === 'string') return answer.events(Buffer.from(said));
      for (const piece of said.large.piecesOf(said.text))
        for (const slice of slicesOf(piece)) {
          await answer.events(slice);
          await nextTurn();
        }
    },
    async result(text, headers = {}) {
      if (streams) {
        // Also a single event is a stream to a client that asked for one.
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
      const told = worthTelling(thrown);
      if (told !== null) onError(told);
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

/** A result without what is around it. */
function bareText(text: string): string {
  const task = bareFromResult(JSON.parse(text));
  return task === null ? text : JSON.stringify(task);
}

/** An agent's error over HTTP+JSON. */
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
 * The part of an error for the operator: its cause, where it is the gateway's own. null for errors of clients and
 * agents, and for intended refusals.
 */
function worthTelling(thrown: unknown): unknown {
  if (thrown instanceof A2aError) return null;
  const { code, cause } = toGatewayError(thrown);
  if (code === 'internal') return cause ?? thrown;
  return code === 'service_unavailable' ? (cause ?? null) : null;
}
