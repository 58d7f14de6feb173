/* Everything that is needed to read a reply. The thread that reads large replies loads only this part of the room. */
export { GatewayError } from './errors.ts';
export { type JsonLimits, parseJson, TooMuchStructure } from './json-guard.ts';
export { contextExceeded } from './reply/context-exceeded.ts';
export { failedByItsOwnWords, malformed, toFailure } from './reply/provider-failure.ts';
export {
  bytesOfString,
  longStringsIn,
  outlineInTurns,
  textOfString,
  withoutLongStrings,
} from './reply/long-strings.ts';
export { createReplyBytes, type ReplyBytes } from './reply/reply-bytes.ts';
export { checkHead, contentTypeOf, HeadReader, retryAfterOf, WholeHeadReader } from './reply/reply-head.ts';
export { parseReplyJson, parseReplyObject } from './reply/reply-json.ts';
export { readElsewhere } from './reply/read-elsewhere.ts';
export { tooLarge, UpstreamFailure } from './upstream-failure.ts';
