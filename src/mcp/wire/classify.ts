import { elementsOf, type JsonObject, RawJsonError, type Span, isObject } from '#wire';
import {
  type JsonRpcError,
  type JsonRpcMessage,
  type NotificationMessage,
  type RequestMessage,
  messageFault,
} from '#json-rpc';
import { nearestHint } from '#catalog';
import { trimHeader, decodeHeaderValue, nameOf } from './param-headers.ts';
import { readMcpMessage } from './interpreted-fields.ts';
import { quote } from './errors-mcp.ts';
import {
  ERROR,
  isLegacyRevision,
  isModernEra,
  LEGACY,
  LEGACY_METHODS,
  META,
  MODERN,
  MODERN_METHODS,
  levelFault,
} from './revisions.ts';

/** The kinds of a POST. `acceptsEvents`: the client accepts an event stream as the response. */
export type Inbound =
  | {
      readonly kind: 'modern';
      readonly message: RequestMessage;
      readonly version: string;
      readonly capabilities: JsonObject;
      readonly acceptsEvents: boolean;
    }
  /** The answer is 202. */
  | { readonly kind: 'modern-notification'; readonly message: NotificationMessage }
  /** Opens a legacy session. `version` is the revision that the client asks for. */
  | {
      readonly kind: 'initialize';
      readonly message: RequestMessage;
      readonly version: string | null;
      readonly acceptsEvents: boolean;
    }
  /** A message in a session. Neither the session nor the method of a request has been looked up yet. */
  | {
      readonly kind: 'legacy';
      readonly message: JsonRpcMessage;
      readonly session: string;
      readonly acceptsEvents: boolean;
    }
  /** A single request of a client that neither opened a session nor speaks the modern revision. */
  | { readonly kind: 'bare'; readonly message: RequestMessage; readonly acceptsEvents: boolean }
  /** A batch, as revision 2025-03-26 has it. Each text is a legacy message other than `initialize`. */
  | {
      readonly kind: 'batch';
      readonly texts: readonly string[];
      readonly session: string | null;
      readonly acceptsEvents: boolean;
    }
  /** Answered with this error and HTTP status. */
  | RefusedMessage;

interface RefusedMessage {
  readonly kind: 'refused';
  readonly status: number;
  /** The id of the request as the client wrote it; `null` if it has no id. */
  readonly idText: string;
  readonly error: JsonRpcError;
}

export const BATCH_MAX = 64;

/**
 * Classifies a POST. The body of a request decides its era, and headers that disagree with the body are an error. Never
 * throws. `parsed`: the value of the body, if it is known.
 */
export function classify(body: string, headers: InboundHeaders, parsed?: unknown): Inbound {
  const trimmed = {
    ...headers,
    version: trim(headers.version),
    method: trim(headers.method),
    name: trim(headers.name),
  };
  if (/^[\t\n\r ]*\[/.test(body)) return classifyBatch(body, trimmed, parsed);
  const message = readMcpMessage(body, parsed);
  if (!message) return noMessage(body, parsed);
  if (message.kind === 'ambiguous')
    return refuse(
      message,
      message.where === 'params' ? ERROR.invalidParams : ERROR.invalidRequest,
      message.fault.message,
      {
        type: 'invalid_request',
        param: message.fault.param,
      },
    );
  if (message.kind === 'request') return classifyRequest(message, trimmed);
  if (message.kind === 'notification') return classifyNotification(message, trimmed);
  if (names(trimmed.version, isModernEra))
    return refuse(null, ERROR.invalidRequest, `A response cannot be posted in revision ${MODERN}`);
  return inSession(message, trimmed);
}

const FAULTS = { parse: ERROR.parse, request: ERROR.invalidRequest, params: ERROR.invalidParams } as const;

function noMessage(text: string, parsed: unknown): RefusedMessage {
  const { kind, message, idText } = messageFault(text, parsed);
  return refuse(idText === null ? null : { idText }, FAULTS[kind], message);
}

const trim = (value: string | null) => (value === null ? null : trimHeader(value));
const names = (version: string | null, test: (version: string) => boolean) => version !== null && test(version);
const acceptsEvents = ({ accept }: InboundHeaders) => accept?.toLowerCase().includes('text/event-stream') ?? false;

function classifyRequest(message: RequestMessage, headers: InboundHeaders): Inbound {
  const { method, params } = message;
  const meta = metaOf(params);
  const modernHeader = names(headers.version, isModernEra);
  if (method === 'initialize' && !isModernClaim(meta)) {
    if (modernHeader)
      return mismatch(
        message,
        `initialize opens a legacy session, but the MCP-Protocol-Version header has ${quote(headers.version)}`,
      );
    const version = params?.['protocolVersion'];
    return {
      kind: 'initialize',
      message,
      version: typeof version === 'string' ? version : null,
      acceptsEvents: acceptsEvents(headers),
    };
  }
  if (claimsEnvelope(meta)) return classifyModern(message, meta, headers);
  if (modernHeader) return refuse(message, ERROR.invalidParams, ...missingEnvelope(meta, headers.version!));
  if (headers.session !== null) return inSession(message, headers);
  if (!LEGACY_METHODS[method])
    return refuse(message, ERROR.methodNotFound, noMethod(method, LEGACY_METHODS), undefined, 404);
  if (!LEGACY_METHODS[method].bare)
    return refuse(message, ERROR.server, `${method} needs a session: send initialize first, then its Mcp-Session-Id`);
  return legacyVersionFault(message, headers) ?? { kind: 'bare', message, acceptsEvents: acceptsEvents(headers) };
}

/**
 * Classifies a request with an envelope in `_meta`. The checks are in the order of the specification: revision,
 * headers, method.
 */
function classifyModern(message: RequestMessage, meta: JsonObject, headers: InboundHeaders): Inbound {
  const issue = envelopeIssue(meta);
  if (issue)
    return refuse(message, ERROR.invalidParams, `params._meta["${issue.key}"] ${issue.problem}`, { envelope: issue });
  const version = meta[META.version] as string;
  const fault = versionFault(version, headers) ?? methodFault(message.method, headers);
  if (fault) return mismatch(message, fault);
  if (version !== MODERN)
    return refuse(message, ERROR.unsupportedVersion, `The protocol version ${quote(version)} is not supported`, {
      supported: [MODERN],
      requested: version,
    });
  const missing = missingHeaderFault(message, headers);
  if (missing) return mismatch(message, missing);
  if (!MODERN_METHODS[message.method])
    return refuse(message, ERROR.methodNotFound, noMethod(message.method, MODERN_METHODS), undefined, 404);
  return {
    kind: 'modern',
    message,
    version,
    capabilities: meta[META.capabilities] as JsonObject,
    acceptsEvents: acceptsEvents(headers),
  };
}

/** `methods`: all methods of the era. */
function noMethod(method: string, methods: object): string {
  const hint = nearestHint(method, Object.keys(methods));
  return `There is no method ${quote(method)}${hint === '' ? '' : `. ${hint}`}`;
}

/**
 * A notification normally has no envelope, so the header decides its era. If it has an envelope, the envelope decides.
 */
function classifyNotification(message: NotificationMessage, headers: InboundHeaders): Inbound {
  const meta = metaOf(message.params);
  if (claimsEnvelope(meta)) {
    const version = meta[META.version];
    if (typeof version !== 'string')
      return refuse(null, ERROR.invalidParams, `params._meta["${META.version}"] must be a string`);
    const fault = versionFault(version, headers) ?? methodFault(message.method, headers);
    if (fault) return mismatch(null, fault);
    if (version === MODERN) return { kind: 'modern-notification', message };
    return refuse(null, ERROR.unsupportedVersion, `The protocol version ${quote(version)} is not supported`, {
      supported: [MODERN],
      requested: version,
    });
  }
  if (!names(headers.version, isModernEra)) return inSession(message, headers);
  const fault = methodFault(message.method, headers);
  return fault ? mismatch(null, fault) : { kind: 'modern-notification', message };
}

function inSession(message: JsonRpcMessage, headers: InboundHeaders): Inbound {
  const request = message.kind === 'request' ? message : null;
  if (!headers.session)
    return refuse(request, ERROR.server, `A ${message.kind} needs the Mcp-Session-Id header of its session`);
  return (
    legacyVersionFault(request, headers) ?? {
      kind: 'legacy',
      message,
      session: headers.session,
      acceptsEvents: acceptsEvents(headers),
    }
  );
}

function legacyVersionFault(message: RequestMessage | null, { version }: InboundHeaders): RefusedMessage | null {
  if (version === null || isLegacyRevision(version)) return null;
  const supported = `${MODERN}, ${LEGACY.join(', ')}`;
  return refuse(
    message,
    ERROR.server,
    `The MCP-Protocol-Version header names ${quote(version)}; supported are ${supported}`,
  );
}

function classifyBatch(body: string, headers: InboundHeaders, parsed: unknown): Inbound {
  const refused = (why: string) => refuse(null, ERROR.invalidRequest, why);
  let elements: readonly Span[];
  try {
    elements = elementsOf(body, 0, BATCH_MAX + 1);
    if (elements.length === 0) return refused('The batch is empty');
    if (elements.length > BATCH_MAX) return refused(`The batch has more than ${BATCH_MAX} messages`);
    if (parsed === undefined) JSON.parse(body);
  } catch (error) {
    if (error instanceof RawJsonError || error instanceof SyntaxError)
      return refuse(null, ERROR.parse, messageFault(body).message);
    throw error;
  }
  if (names(headers.version, isModernEra)) return refused(`Revision ${MODERN} has no batches`);
  const texts: string[] = [];
  for (const { start, end } of elements) {
    const message = readMcpMessage(body.slice(start, end));
    if (!message) return refused(`A message of the batch is wrong: ${messageFault(body.slice(start, end)).message}`);
    if (message.kind === 'ambiguous') return refused(message.fault.message);
    texts.push(message.text);
    if (message.kind === 'response') continue;
    if (message.method === 'initialize') return refused('A batch cannot hold initialize');
    if (claimsEnvelope(metaOf(message.params))) return refused(`Revision ${MODERN} has no batches`);
  }
  return (
    legacyVersionFault(null, headers) ?? {
      kind: 'batch',
      texts,
      session: headers.session,
      acceptsEvents: acceptsEvents(headers),
    }
  );
}

const mismatch = (message: RequestMessage | null, what: string): RefusedMessage =>
  refuse(message, ERROR.headerMismatch, `Headers and body disagree: ${what}`);

function refuse(
  message: Pick<RequestMessage, 'idText'> | null,
  code: number,
  text: string,
  data?: unknown,
  status = 400,
): RefusedMessage {
  const error = { code, message: text, ...(data === undefined ? {} : { data }) };
  return { kind: 'refused', status, idText: message?.idText ?? 'null', error };
}

/** Headers of a POST, unchanged. A missing header is null. */
export interface InboundHeaders {
  /** MCP-Protocol-Version */
  readonly version: string | null;
  /** Mcp-Method */
  readonly method: string | null;
  /** Mcp-Name */
  readonly name: string | null;
  /** Mcp-Session-Id */
  readonly session: string | null;
  readonly accept: string | null;
}

/** Says how the MCP-Protocol-Version header disagrees with the body; null if they agree or the header is absent. */
function versionFault(version: string, headers: InboundHeaders): string | null {
  if (headers.version === null || headers.version === version) return null;
  return `the MCP-Protocol-Version header names ${quote(headers.version)}, the body ${quote(version)}`;
}

/** Says how the Mcp-Method header disagrees with the body; null if they agree or the header is absent. */
function methodFault(method: string, headers: InboundHeaders): string | null {
  if (headers.method === null || headers.method === method) return null;
  return `the Mcp-Method header names ${quote(headers.method)}, the body ${quote(method)}`;
}

/** Says which header of a modern request is missing, or how Mcp-Name is wrong; null if all headers are right. */
function missingHeaderFault({ method, params }: RequestMessage, headers: InboundHeaders): string | null {
  if (headers.version === null) return 'the MCP-Protocol-Version header is missing';
  if (headers.method === null) return 'the Mcp-Method header is missing';
  const name = nameOf(method, params);
  const header =
    headers.name === null || MODERN_METHODS[method]?.nameParam === undefined
      ? undefined
      : decodeHeaderValue(headers.name);
  if (header === null) return 'the Mcp-Name header is not valid Base64 of UTF-8';
  if (name === null) return null;
  if (header === undefined) return `the Mcp-Name header is missing, and the body names ${quote(name)}`;
  return header === name ? null : `the Mcp-Name header names ${quote(header)}, the body ${quote(name)}`;
}

/** The `_meta` object of a request's params; null without one. */
function metaOf(params: JsonObject | undefined): JsonObject | null {
  const meta = params?.['_meta'];
  return isObject(meta) ? meta : null;
}

/** Whether `_meta` names a protocol version. A request whose `_meta` does is modern, or invalid. */
const claimsEnvelope = (meta: JsonObject | null): meta is JsonObject =>
  meta !== null && Object.hasOwn(meta, META.version);

function isModernClaim(meta: JsonObject | null): boolean {
  if (!claimsEnvelope(meta)) return false;
  const version = meta[META.version];
  return typeof version === 'string' && isModernEra(version) && envelopeIssue(meta) === null;
}

interface EnvelopeIssue {
  readonly key: string;
  /** Words that follow the name, such as "must be a string". */
  readonly problem: string;
}

/** The fault of `_meta` as the envelope of a modern request; null if it is valid. */
function envelopeIssue(meta: JsonObject): EnvelopeIssue | null {
  for (const key of [META.version, META.capabilities])
    if (!Object.hasOwn(meta, key)) return { key, problem: `is missing, but requests of ${MODERN} must have it` };
  const {
    [META.version]: version,
    [META.capabilities]: capabilities,
    [META.clientInfo]: client,
    [META.logLevel]: level,
  } = meta;
  if (typeof version !== 'string') return { key: META.version, problem: 'must be a string' };
  if (!isObject(capabilities)) return { key: META.capabilities, problem: 'must be an object' };
  if (
    client !== undefined &&
    !(isObject(client) && typeof client['name'] === 'string' && typeof client['version'] === 'string')
  )
    return { key: META.clientInfo, problem: 'must be an object with a name and a version' };
  const fault = level === undefined ? null : levelFault(level);
  if (fault !== null) return { key: META.logLevel, problem: fault };
  const token = meta['progressToken'];
  if (token !== undefined && typeof token !== 'string' && !Number.isInteger(token))
    return { key: 'progressToken', problem: 'must be a string or an integer' };
  return null;
}

/**
 * The message and data of the error for a request whose header names a modern revision and whose body has no envelope.
 */
function missingEnvelope(meta: JsonObject | null, version: string): [string, JsonObject] {
  const missing =
    meta === null ? ['_meta'] : [META.version, META.capabilities].filter((key) => !Object.hasOwn(meta, key));
  return [
    `The MCP-Protocol-Version header names ${quote(version)}, and params lack ${missing.join(', ')}`,
    { envelope: { missing } },
  ];
}
