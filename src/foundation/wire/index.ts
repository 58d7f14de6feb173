export { bodyLengthOf, fetchText, readBounded, readStart } from './bounded-body.ts';
export { BOUNDS, type Bound } from './bounds.ts';
export { foreignObject, guardForeign, parseForeign, readForeign } from './foreign.ts';
export { CodingFault, contentCoding } from './content-coding.ts';
export { type Placed, PlacedList, dropOldest, getOrInsert } from './collections.ts';
export {
  type JsonLimits,
  type JsonObject,
  NotUtf8,
  type ReadText,
  TooMuchStructure,
  guardInTurns,
  hasByteOrderMark,
  isExactNumber,
  isObject,
  jsonText,
  parseExact,
  parseJson,
  readJson,
  readJsonText,
} from './json/json-guard.ts';
export {
  type AmbiguousKeyFault,
  type InterpretedFieldsAt,
  WRITTEN_NAMES,
  ambiguousKeyAt,
  ambiguousKeyFault,
  beginsAsOwn,
  findAmbiguousKey,
  foldName,
  interpretedFields,
} from './json/ambiguous-keys.ts';
export { type JsonMember, type Members, RawJsonError, type Span, uniqueMembersOf } from './json/json-scan.ts';
export {
  type Edit,
  elementsOf,
  membersAlong,
  membersOf,
  membersOfParsed,
  readableElements,
  readableMembers,
  removeAt,
  replaceAt,
  setMember,
  spanAt,
  splice,
  withMembers,
} from './json/raw-json.ts';
export { syntaxFault } from './json/syntax-error.ts';
export { createByteBuffer, createLines } from './lines.ts';
export { EventError, type SseEvent, createEventReader, eventText, STREAM_HEADERS } from './reply/event-reader.ts';
export {
  LargeStrings,
  type MarkedText,
  charsOf,
  editText,
  inTurns,
  lengthOf,
  markLargeStrings,
  piecesOfText,
  wholePiece,
} from './reply/large-strings.ts';
export { type JobPlace, Places, Shares } from './places.ts';
export { retryAfterOf } from './retry-after.ts';
export { createPace, OWN_TURN_BYTES, ownTurn } from './long-work.ts';
export { createReplyBytes } from './reply/reply-bytes.ts';
export { UpstreamFailure, toFailure, tooLarge } from './reply/upstream-failure.ts';
export { after, isPromise, orElse, NEVER_ABORTED, Timers } from './async.ts';
