import {
  contentCoding,
  BOUNDS,
  createEventReader,
  foreignObject,
  parseForeign,
  isObject,
  readBounded,
  type JsonObject,
} from '#wire';
import { loadAgent, loadRequest, skipInterimReplies } from '#wire/undici';
import { oneLine } from '#security';
import { describeFault } from '../connection.ts';

const HttpAgent = loadAgent();
const request = loadRequest();

interface CheckSuccess {
  readonly detail: string;
  readonly advice: readonly string[];
}

/** One check. `run` resolves with what it found, and rejects with ProbeFailure. */
export interface Check {
  /** The kind of thing to check, such as `model`. */
  readonly kind: string;
  readonly name: string;
  readonly run: () => Promise<string | CheckSuccess>;
}

export interface CheckResult {
  readonly ok: boolean;
  /** The finding. For a failure: what is wrong, and what would be right. */
  readonly detail: string;
  /** Optional improvements of the file. */
  readonly advice: readonly string[];
  readonly ms: number;
}

/** A check failed. `message` says what is wrong. */
export class ProbeFailure extends Error {
  override readonly name = 'ProbeFailure';
}

/** Runs one check. An error becomes a failed result. */
export async function runCheck(check: Check, now: () => number): Promise<CheckResult> {
  const begun = now();
  try {
    const result = await check.run();
    const { detail, advice } = typeof result === 'string' ? { detail: result, advice: [] } : result;
    return { ok: true, detail, advice, ms: now() - begun };
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : String(error), advice: [], ms: now() - begun };
  }
}

interface Question {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Secret. Sent as a bearer token. */
  readonly apiKey?: string | null;
  readonly body?: unknown;
}

export interface ProbeResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

const ANSWER_MS = 30_000;
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;
const SHOWN = 200;

const dispatcher = skipInterimReplies(new HttpAgent({ allowH2: false }));

/** Sends one request and reads the whole answer. Rejects with ProbeFailure if there is no answer. */
export async function ask({ method, url, headers = {}, apiKey = null, body }: Question): Promise<ProbeResponse> {
  try {
    const { origin, pathname, search } = new URL(url);
    const response = await request.call(dispatcher, {
      origin,
      path: pathname + search,
      method,
      headers: {
        ...contentCoding.none,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }),
        ...headers,
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    const bytes = await readBounded(response.body, ANSWER_BYTES_MAX, () => new ProbeFailure('the answer is too long'));
    return { status: response.statusCode, headers: response.headers, text: bytes.toString('utf8') };
  } catch (error) {
    if (error instanceof ProbeFailure) throw error;
    throw new ProbeFailure(`does not answer: ${describe(error as Error)}`);
  }
}

function describe(error: Error): string {
  return error.name === 'TimeoutError' ? `nothing within ${ANSWER_MS / 1000} s` : describeFault(error);
}

/** Throws ProbeFailure with the server's error message, or the target of its redirect, if the status isn't 2xx. */
export function mustSucceed({ status, headers, text }: ProbeResponse): void {
  if (status >= 200 && status < 300) return;
  const { location } = headers;
  if (status >= 300 && status < 400 && typeof location === 'string')
    throw new ProbeFailure(
      `answers with status ${status}, a redirect that is not followed. Write the address that it names: ${oneLine(location).slice(0, SHOWN)}`,
    );
  const words = wordsOf(text);
  throw new ProbeFailure(`answers with status ${status}${words === '' ? '' : `: ${words}`}`);
}

/** Returns the data of the events of an answer. Events without data are skipped. */
export function eventData(text: string): readonly string[] {
  const reader = createEventReader({ bytesMax: ANSWER_BYTES_MAX });
  const events = [...reader.push(Buffer.from(text)), ...reader.end()];
  return events.map(({ data }) => data).filter((data) => data !== '');
}

/** Parses the answer as a JSON object. Throws ProbeFailure. */
export function jsonObject(text: string, what: string): JsonObject {
  let value: unknown;
  try {
    value = parseForeign(text, BOUNDS.probed);
  } catch {
    throw new ProbeFailure(`${what} is not JSON`);
  }
  if (!isObject(value)) throw new ProbeFailure(`${what} is not a JSON object`);
  return value;
}

/** Returns the server's error message on one line, with at most `max` characters. */
export function wordsOf(text: string, max = SHOWN): string {
  const error = foreignObject(text, BOUNDS.probed)?.['error'];
  // What is not JSON is shown as it is.
  const words = typeof error === 'string' ? error : String((isObject(error) ? error['message'] : null) ?? text);
  return oneLine(words).slice(0, max);
}
