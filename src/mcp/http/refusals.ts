import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { type GatewayError, jsonText, parseMessage } from '#wire';
import { PARSED_JSON, readBytes } from '#gateway';
import { type McpErrorReply, statusInSession, toMcpError } from '../wire/errors-mcp.ts';
import { isLegacyRevision } from '../wire/revisions.ts';

/** Whether a request names a session, and no revision without sessions. */
export function namesSession(headers: IncomingHttpHeaders): boolean {
  const version = headers['mcp-protocol-version'];
  return (
    typeof headers['mcp-session-id'] === 'string' &&
    (version === undefined || (typeof version === 'string' && isLegacyRevision(version)))
  );
}

/**
 * The body of a refused POST, so that the refusal can have its id. Null for other methods, and for an unreadable body.
 * If the request was refused before its body was read, the body is read now: a large one only in a session of a
 * known caller, because only there the answer needs the id.
 */
export async function bodyOfRefused(
  request: FastifyRequest,
  { code }: GatewayError,
  limits: Parameters<typeof jsonText>[1],
): Promise<string | null> {
  if (request.method !== 'POST') return null;
  try {
    const body = (request.body as Buffer | undefined) ?? (await readLate(request, code));
    return body && jsonText(body, limits);
  } catch {
    return null;
  }
}

/** Refusals before the body is read. The refusal of a page of another site is not among them: it learns nothing. */
const BEFORE_THE_BODY: ReadonlySet<string> = new Set(['unauthorized', 'rate_limit_exceeded', 'service_unavailable']);
const SMALL_BYTES = 64 * 1024;

async function readLate(request: FastifyRequest, code: string): Promise<Buffer | null> {
  if (request.raw.readableDidRead || !BEFORE_THE_BODY.has(code)) return null;
  const small = Number(request.headers['content-length'] ?? Infinity) <= SMALL_BYTES;
  if (!small && (code === 'unauthorized' || !namesSession(request.headers))) return null;
  const { promise, resolve } = Promise.withResolvers<Buffer | null>();
  readBytes(PARSED_JSON)(request, request.raw, (error, body) => resolve(error === null ? (body ?? null) : null));
  return promise;
}

/**
 * The refusal of a POST as its answer, with the id of the request in `body`, if there is one. `body`: null if it could
 * not be read.
 */
export function refusalOf(error: unknown, body: string | null, headers: IncomingHttpHeaders): McpErrorReply {
  const message = body === null ? null : parseMessage(body);
  const hasId = message?.kind === 'request';
  const told = toMcpError(error, hasId ? message.idText : 'null');
  return hasId && namesSession(headers) ? { ...told, status: statusInSession(told) } : told;
}
