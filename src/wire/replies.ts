/* Everything that is needed to read a reply. The thread that reads large replies loads only this part of the room. */
export { GatewayError } from './errors.ts';
export { type JsonLimits, parseJson, TooMuchStructure } from './json-guard.ts';
export {
  checkHead,
  contentTypeOf,
  failedByItsOwnWords,
  malformed,
  retryAfterOf,
  toFailure,
} from './reply/provider-failure.ts';
export { parseReplyJson, parseReplyObject } from './reply/reply-json.ts';
export { readElsewhere } from './reply/read-elsewhere.ts';
export { tooLarge, UpstreamFailure } from './upstream-failure.ts';
