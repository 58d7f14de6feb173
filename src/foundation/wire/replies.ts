export { BOUNDS } from './bounds.ts';
export type { JsonLimits } from './json/json-guard.ts';
export { stringEnd } from './json/parse-pieces.ts';
export {
  bytesOfString,
  longStringsIn,
  type Outline,
  outlineInTurns,
  textOfString,
  withoutLongStrings,
} from './reply/large-strings.ts';
export {
  HeadReader,
  WholeHeadReader,
  checkHead,
  contentTypeOf,
  parseReplyJson,
  parseReplyObject,
  readReplyObject,
} from './reply/provider-reply.ts';
export { lastObjectIn, lastObjectInRest } from './reply/last-object.ts';
export { ReadingThread, readElsewhere } from './reply/reading-thread.ts';
export { type ReplyBytes, createReplyBytes } from './reply/reply-bytes.ts';
export {
  UpstreamFailure,
  contextExceeded,
  failedByItsOwnWords,
  failedInChoice,
  isError,
  malformed,
  toFailure,
  tooLarge,
} from './reply/upstream-failure.ts';
