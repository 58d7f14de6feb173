import type { IncomingMessage } from 'node:http';
import { readStart } from '#wire';

/** The router answered the dial with an HTTP error. */
export interface DialRejection {
  readonly kind: 'rejected';
  readonly status: number;
  readonly message: string;
  /** The wait that the router asked for in `Retry-After`. null if it asked for none. */
  readonly retryAfterMs: number | null;
  /** This machine's clock minus the router's clock, from the `Date` header. null if there is no valid one. */
  readonly skewMs: number | null;
}

const ANSWER_BYTES_MAX = 4_096;
const MESSAGE_CHARS_MAX = 500;

/** Reads the answer to a dial. `sent` are the header values with the credential. They are removed from the message. */
export async function readRejection(
  response: IncomingMessage,
  sent: readonly string[],
  now: number,
): Promise<DialRejection> {
  const message = await readMessage(response);
  const { headers, statusCode: status = 0 } = response;
  const seconds = Number(headers['retry-after'] ?? Number.NaN);
  const date = Date.parse(headers.date ?? '');
  return {
    kind: 'rejected',
    status,
    message: sent
      .reduce((masked, credential) => masked.replaceAll(credential.replace(/^Bearer /, ''), '[redacted]'), message)
      .slice(0, MESSAGE_CHARS_MAX),
    retryAfterMs: seconds >= 0 && Number.isFinite(seconds) ? seconds * 1000 : null,
    skewMs: Number.isNaN(date) ? null : now - date,
  };
}

async function readMessage(response: IncomingMessage): Promise<string> {
  try {
    const body = JSON.parse(await readStart(response, ANSWER_BYTES_MAX)) as { error?: { message?: unknown } } | null;
    if (typeof body?.error?.message === 'string') return body.error.message;
  } catch {
    // Not JSON, or cut off: use the status text.
  }
  return response.statusMessage ?? '';
}
