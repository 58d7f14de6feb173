import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';

/* What the HTTP server reads and answers beside Fastify: ids of requests, and bytes that are not HTTP. */

const PRINTABLE = /^[\x20-\x7e]{1,128}$/;
/** The last generated id: a prefix of this process and a base-36 counter, which is incremented in place. */
const own = Buffer.from(`req-${randomBytes(8).toString('hex')}00000000`);
const [ZERO, NINE, A, Z] = [0x30, 0x39, 0x61, 0x7a];

function nextOwn(): string {
  for (let at = own.length - 1; ; at--) {
    const digit = own[at]!;
    own[at] = digit === NINE ? A : digit === Z ? ZERO : digit + 1;
    // Creates a flat string. With a concatenated string, V8 takes twice as long to write the object that holds it as
    // JSON.
    if (digit !== Z) return own.toString('latin1');
  }
}

/** The caller's `x-request-id` if it is 1 to 128 printable ASCII characters, else a generated id. */
export function requestIdOf(headers: IncomingHttpHeaders): string {
  const header = headers['x-request-id'];
  return typeof header === 'string' && PRINTABLE.test(header) ? header : nextOwn();
}

const ANSWERS: Readonly<Record<string, readonly [status: number, reason: string, message: string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request Timeout', 'The request did not arrive in time'],
  HPE_HEADER_OVERFLOW: [431, 'Request Header Fields Too Large', 'The request headers are too large'],
};
const MALFORMED = [400, 'Bad Request', 'The request is not valid HTTP'] as const;

/**
 * Answers bytes that are not a valid HTTP request, in the shape of every other error, and closes the connection. If the
 * connection has already carried a response, it is closed without an answer.
 */
export function answerClientError(error: Error & { readonly code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable || socket.bytesWritten > 0) {
    socket.destroy();
    return;
  }
  const [status, reason, message] = ANSWERS[error.code ?? ''] ?? MALFORMED;
  const body = JSON.stringify({ error: { message, type: 'invalid_request', code: status, param: null } });
  socket.end(
    `HTTP/1.1 ${status} ${reason}\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
  );
  // Closes the socket as soon as the answer is sent. Otherwise a client that keeps its side open would keep the socket
  // open.
  socket.destroySoon();
}
