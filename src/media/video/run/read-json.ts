import { checkHead, parseReplyJson, retryAfterOf, toFailure, tooLarge } from '#wire/replies';
import type { Send, UpstreamRequest } from '#gateway';

const BYTES_MAX = 256 * 1024;
const LIMITS = { jsonDepthMax: 32, jsonKeysMax: 2_000, jsonElementsMax: 2_000, repairText: true };

/**
 * Sends a request and reads the small JSON answer; null for an answer without a body. Rejects with UpstreamFailure,
 * also for an error status.
 */
export async function askForJson(send: Send, request: UpstreamRequest): Promise<unknown> {
  const exchange = send(request);
  const reply = await exchange.head;
  checkHead(reply.status, reply.headers);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (let arrived = await reply.read(); arrived !== null; arrived = await reply.read()) {
    chunks.push(...arrived);
    for (const chunk of arrived) bytes += chunk.byteLength;
    if (bytes > BYTES_MAX) throw tooLarge(`its reply is larger than ${BYTES_MAX} bytes`);
  }
  reply.discard();
  const body = Buffer.concat(chunks);
  if (reply.status >= 400) {
    const words = Buffer.from(reply.scrub(body.toString('utf8')));
    throw toFailure(reply.status, words, retryAfterOf(reply.headers['retry-after']));
  }
  if (body.byteLength === 0) return null;
  return parseReplyJson(body, LIMITS);
}
