import { GatewayError } from '#errors';
import { contentCoding } from '../content-coding.ts';
import { retryAfterOf } from '../retry-after.ts';
import { type UpstreamFailure, malformed, toFailure, tooLarge } from './upstream-failure.ts';
import { type JsonLimits, parseJson, readJson, TooMuchStructure, isObject } from '../json/json-guard.ts';

type ReplyHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Reads the head of a provider's reply, and the error that comes instead of a reply. Readers of replies extend it. */
export abstract class HeadReader {
  #retryAfterS: number | undefined;

  /** Throws UpstreamFailure if the reply cannot be used. An error status passes: its body goes to `failure`. */
  head(status: number, headers: ReplyHeaders): void {
    this.#retryAfterS = retryAfterOf(headers['retry-after']);
    checkHead(status, headers);
  }

  failure(status: number, body: Uint8Array): UpstreamFailure {
    return toFailure(status, body, this.#retryAfterS);
  }
}

export abstract class WholeHeadReader extends HeadReader {
  override head(status: number, headers: ReplyHeaders): void {
    super.head(status, headers);
    if (status < 400 && contentTypeOf(headers).startsWith('text/event-stream'))
      throw malformed('it streamed its reply, but the request did not ask for a stream');
  }
}

/**
 * Throws UpstreamFailure for a status below 400 that is not 2xx, and for a body in a content coding that is not
 * decoded. An error status passes.
 */
export function checkHead(status: number, headers: ReplyHeaders): void {
  if (status >= 400) return;
  if (status < 200 || status >= 300) throw malformed(`it answered with status ${status}`);
  const coding = contentCoding.codingOf(headers['content-encoding']);
  if (coding !== null)
    throw malformed(
      `it sent its reply with content-encoding: ${coding}, but accept-encoding was identity. Read are ${contentCoding.known}`,
    );
}

export function contentTypeOf(headers: ReplyHeaders): string {
  const type = headers['content-type'];
  return typeof type === 'string' ? type.toLowerCase() : '';
}

/**
 * Parses the whole reply of a provider. Throws UpstreamFailure if it is not JSON, which is a fault of the provider, or
 * if it has too much structure, which is as if it were too large: the bound is the gateway's own, and the provider may
 * bill what it made.
 */
export function parseReplyJson(bytes: Uint8Array, limits: JsonLimits): unknown {
  try {
    return parseJson(bytes, limits);
  } catch (error) {
    throw failureOf(error);
  }
}

/** As parseReplyJson. Also throws UpstreamFailure if the reply is not an object. */
export function parseReplyObject(bytes: Uint8Array, limits: JsonLimits): Record<string, unknown> {
  return objectIn(parseReplyJson(bytes, limits));
}

/** As parseReplyObject, for a reply that may be large. A large reply is parsed over several turns of the event loop. */
export async function readReplyObject(bytes: Buffer, limits: JsonLimits): Promise<Record<string, unknown>> {
  try {
    return objectIn(await readJson(bytes, limits));
  } catch (error) {
    throw failureOf(error);
  }
}

function objectIn(parsed: unknown): Record<string, unknown> {
  if (!isObject(parsed)) throw malformed('its reply is not a JSON object');
  return parsed;
}

function failureOf(error: unknown): unknown {
  if (error instanceof TooMuchStructure) return tooLarge('its reply has more structure than is read', { cause: error });
  return error instanceof GatewayError ? malformed('its reply is not valid JSON', error) : error;
}
