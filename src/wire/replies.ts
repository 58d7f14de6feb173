/* Everything that is needed to read a reply. The thread that reads large replies loads only this part of the room. */
export { GatewayError } from './errors.ts';
export { type JsonLimits, parseJson, TooMuchStructure } from './json-guard.ts';
export {
  contextExceeded,
  failedByItsOwnWords,
  malformed,
  toFailure,
  tooLarge,
  UpstreamFailure,
} from './reply/upstream-failure.ts';
export {
  bytesOfString,
  longStringsIn,
  outlineInTurns,
  textOfString,
  withoutLongStrings,
} from './reply/large-strings.ts';
export { createReplyBytes, type ReplyBytes } from './reply/reply-bytes.ts';
export {
  checkHead,
  contentTypeOf,
  HeadReader,
  retryAfterOf,
  WholeHeadReader,
  parseReplyJson,
  parseReplyObject,
} from './reply/provider-reply.ts';
export { readElsewhere } from './reply/long-work.ts';
