export { bodyLengthOf, fetchText, readBounded, readStart, withoutCredentials } from './bounded-body.ts';
export { createByteBuffer } from './byte-buffer.ts';
export { CAP_NAMES, type CapName } from './cap-name.ts';
export { clientAddress, createTrust, type Trust } from './client-address.ts';
export { answerClientError } from './client-error.ts';
export { networkOf } from './client-network.ts';
export { dropOldest } from './drop-oldest.ts';
export { type Dialect, dialectOf, STRICT_PREFIX, withoutEndSlashes } from './dialect.ts';
export { errorCodeOf, HTTP_ERRORS, inDialect, toHttpError } from './errors-http.ts';
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
export { getOrInsert } from './get-or-insert.ts';
export { isLoopback, parseHost } from './host-name.ts';
export { isIssuerUrl } from './issuer-url.ts';
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
} from './json-guard.ts';
export { removeAt, replaceAt, spanAt } from './json/at-path.ts';
export { readClientMessage } from './json/client-message.ts';
export { RawJsonError } from './json/json-scan.ts';
export {
  interpretedFields,
  type InterpretedFieldsAt,
  beginsAsOwn,
  foldName,
  ambiguousKeyAt,
  type AmbiguousKeyFault,
  WRITTEN_NAMES,
} from './json/ambiguous-keys.ts';
export { isObject, type JsonObject } from './json/json-object.ts';
export {
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
export {
  type Edit,
  elementsOf,
  type Member,
  type Members,
  membersAlong,
  membersOf,
  readableElements,
  readableMembers,
  setMember,
  type Span,
  splice,
  withMembers,
} from './json/raw-json.ts';
export { uniqueMembersOf } from './json/unique-members.ts';
export { syntaxFault } from './json/syntax-error.ts';
export { createLines } from './lines.ts';
export { NEVER_ABORTED } from './never-aborted.ts';
export { type Placed, PlacedList } from './placed-list.ts';
export { configuredNames, createOriginGuard } from './origin-guard.ts';
export { isPublicAddress } from './outbound-addresses.ts';
export { hostOf, namesPrivateHost, outboundUrlFault } from './outbound-url.ts';
export { type RequestedAddress, createOwnOrigin, type OwnOrigin } from './own-origin.ts';
export { oneLine, printable, SERVICE_NAME_MAX, UNPRINTABLE } from './printable.ts';
export { createScrubber, redact } from './redaction.ts';
export { type CapField, readCapRefusal } from './refused-cap.ts';
export { type Answer, createAnswer } from './reply/answer.ts';
export { createEventReader, EventError, eventText, type SseEvent } from './reply/event-reader.ts';
export {
  INTERIM_REFUSED,
  INTERIM_REPLIES_MAX,
  skipInterimReplies,
  TOO_MANY_INTERIM_REPLIES,
} from './reply/interim-replies.ts';
export { createKeepAlive, createSilent, type KeepAlive } from './reply/keep-alive.ts';
export { editText, LargeStrings, lengthOf, type MarkedText, piecesOfText, wholePiece } from './reply/marked-text.ts';
export { inTurns, markLargeStrings } from './reply/mark-large-strings.ts';
export { OWN_TURN_BYTES, ownTurn } from './reply/own-turn.ts';
export { createReplyBytes } from './reply/reply-bytes.ts';
export { type ClientSink, createHttpSink, type ReplySink } from './reply/reply-sink.ts';
export { endInSlices, slicesOf, writeSlices } from './reply/write-slices.ts';
export { requestIdOf } from './request-id.ts';
export { createSeals, type Seals } from './seal.ts';
export { createSealedTexts, type SealedTexts } from './sealed-text.ts';
export { type Scrub, scrubNothing, scrubOf } from './secrets.ts';
export { SIGN_IN_HEADERS } from './sign-in-headers.ts';
export { formatLine, writeLogLine, writeOrLose } from './text-line.ts';
export { Timers } from './timers.ts';
export { TUNNEL_PATH } from './tunnel-path.ts';
export { asksForTunnel } from './upgrade-request.ts';
export { tooLarge, UpstreamFailure } from './upstream-failure.ts';
