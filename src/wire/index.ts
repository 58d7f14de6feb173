export { bodyLengthOf, fetchText, readBounded, readStart, withoutCredentials } from './bounded-body.ts';
export { createByteBuffer, createLines } from './lines.ts';
export { CAP_NAMES, type CapName, type CapField, readCapRefusal } from './refused-cap.ts';
export { clientAddress, createTrust, type Trust, networkOf } from './client-address.ts';
export { answerClientError, requestIdOf, TUNNEL_PATH, asksForTunnel } from './http-server.ts';
export { dropOldest, getOrInsert, type Placed, PlacedList } from './collections.ts';
export {
  type Dialect,
  dialectOf,
  STRICT_PREFIX,
  withoutEndSlashes,
  errorCodeOf,
  HTTP_ERRORS,
  inDialect,
  toHttpError,
} from './errors-http.ts';
export {
  ERROR_CODES,
  type ErrorCode,
  GatewayError,
  type GatewayErrorOptions,
  GatewayStopping,
  isOfProvider,
  ofGeneration,
} from './errors.ts';
export { checksummed, keccak, parseEvmAddress } from './evm-address.ts';
export {
  isLoopback,
  parseHost,
  isIssuerUrl,
  configuredNames,
  createOriginGuard,
  type RequestedAddress,
  createOwnOrigin,
  type OwnOrigin,
} from './origins.ts';
export {
  guardStructure,
  hasByteOrderMark,
  isExactNumber,
  type JsonLimits,
  jsonText,
  NotUtf8,
  parseExact,
  parseJson,
  readJson,
  readJsonText,
  TooMuchStructure,
  isObject,
  type JsonObject,
} from './json-guard.ts';
export {
  removeAt,
  replaceAt,
  spanAt,
  type Edit,
  elementsOf,
  membersAlong,
  membersOf,
  readableElements,
  readableMembers,
  setMember,
  splice,
  withMembers,
} from './json/raw-json.ts';
export {
  readClientMessage,
  errorText,
  exactId,
  type JsonRpcError,
  type JsonRpcMessage,
  type NotificationMessage,
  parseMessage,
  parseRaw,
  type RawMessage,
  type RequestId,
  type RequestMessage,
  type ResponseMessage,
  resultText,
  aroundResult,
} from './json/message.ts';
export { type Member, type Members, RawJsonError, type Span, uniqueMembersOf } from './json/json-scan.ts';
export {
  interpretedFields,
  type InterpretedFieldsAt,
  beginsAsOwn,
  foldName,
  ambiguousKeyAt,
  type AmbiguousKeyFault,
  WRITTEN_NAMES,
} from './json/ambiguous-keys.ts';
export { syntaxFault } from './json/syntax-error.ts';
export { NEVER_ABORTED, Timers } from './timers.ts';
export { isPublicAddress, hostOf, namesPrivateHost, outboundUrlFault } from './outbound-url.ts';
export {
  oneLine,
  printable,
  SERVICE_NAME_MAX,
  UNPRINTABLE,
  createScrubber,
  redact,
  type Scrub,
  scrubNothing,
  scrubOf,
  SIGN_IN_HEADERS,
} from './safe-text.ts';
export { type Answer, createAnswer } from './reply/answer.ts';
export { createEventReader, EventError, eventText, type SseEvent } from './reply/event-reader.ts';
export {
  INTERIM_REFUSED,
  INTERIM_REPLIES_MAX,
  skipInterimReplies,
  TOO_MANY_INTERIM_REPLIES,
} from './reply/interim-replies.ts';
export { createKeepAlive, createSilent, type KeepAlive } from './reply/keep-alive.ts';
export {
  editText,
  LargeStrings,
  lengthOf,
  type MarkedText,
  piecesOfText,
  wholePiece,
  inTurns,
  markLargeStrings,
} from './reply/large-strings.ts';
export { OWN_TURN_BYTES, ownTurn } from './reply/long-work.ts';
export { createReplyBytes } from './reply/reply-bytes.ts';
export {
  type ClientSink,
  createHttpSink,
  type ReplySink,
  endInSlices,
  slicesOf,
  writeSlices,
} from './reply/reply-sink.ts';
export { createSeals, type Seals, createSealedTexts, type SealedTexts } from './seals.ts';
export { formatLine, writeLogLine, writeOrLose } from './text-line.ts';
export { tooLarge, UpstreamFailure } from './reply/upstream-failure.ts';
