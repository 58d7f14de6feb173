import type { Socket } from 'node:net';

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
